//! The extension module `terrace._terrace`: Terrace for Python. The package `terrace`, in
//! `python/`, re-exports it.
//!
//! # Invariants
//! 1. Whatever may wait, for a disk, a lock of the engine or a comparator, is done detached from
//!    the interpreter, without the GIL. What is done attached takes no lock that is held by
//!    anybody who waits for the GIL.
//! 2. A closed object raises `RuntimeError`; nothing reaches the engine through it.
//! 3. Bytes that Python code may change are copied before the GIL is released; `bytes` objects
//!    never change and are used where they lie.
//! 4. Unsafe code is in `pair` only.

mod batch;
mod bytes;
mod comparator;
mod db;
mod entry_buffer;
mod errors;
mod files;
mod flag;
mod handle;
mod iterator;
mod iterator_options;
mod many_iterator;
mod options;
mod pair;
mod path;
mod prefixed_db;
mod protocol;
mod raw_iterator;
mod read;
mod report;
mod scan;
mod snapshot;
mod transaction;
mod transaction_iterator;
mod write;

/// Terrace's native part. Import the package `terrace` instead.
#[pyo3::pymodule(name = "_terrace")]
mod module {
    use pyo3::prelude::*;

    #[pymodule_export]
    use crate::batch::WriteBatch;
    #[pymodule_export]
    use crate::db::DB;
    #[pymodule_export]
    use crate::files::{destroy_db, repair_db, verify_db};
    #[pymodule_export]
    use crate::iterator::Iterator;
    #[pymodule_export]
    use crate::many_iterator::ManyIterator;
    #[pymodule_export]
    use crate::prefixed_db::PrefixedDB;
    #[pymodule_export]
    use crate::raw_iterator::RawIterator;
    #[pymodule_export]
    use crate::snapshot::Snapshot;
    #[pymodule_export]
    use crate::transaction::Transaction;
    #[pymodule_export]
    use crate::transaction_iterator::TransactionIterator;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))?;
        crate::handle::close_at_exit(module.py())
    }
}
