//! The class `WriteBatch`.

use std::sync::{Arc, Mutex, PoisonError};

use pyo3::prelude::*;
use pyo3::sync::MutexExt;
use pyo3::types::PyAny;
use terrace::WriteOptions;

use crate::bytes::Bytes;
use crate::handle::Handle;
use crate::protocol;

/// Collects puts and deletes, which `write` applies together or not at all.
///
/// As a context manager it is written in the end; also after an exception, unless it was made with
/// `transaction=True`.
#[pyclass(frozen, weakref, module = "terrace")]
pub(crate) struct WriteBatch {
    handle: Arc<Handle>,
    prefix: Vec<u8>,
    is_transaction: bool,
    sync: bool,
    batch: Mutex<terrace::WriteBatch>,
}

impl WriteBatch {
    pub(crate) fn new(
        py: Python<'_>,
        handle: &Arc<Handle>,
        prefix: &[u8],
        is_transaction: Option<bool>,
        sync: Option<bool>,
    ) -> PyResult<Self> {
        handle.check(py)?;
        Ok(WriteBatch {
            handle: handle.clone(),
            prefix: prefix.to_vec(),
            is_transaction: is_transaction.unwrap_or(false),
            sync: sync.unwrap_or(false),
            batch: Mutex::default(),
        })
    }

    fn with<T>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&mut terrace::WriteBatch) -> T,
    ) -> PyResult<T> {
        self.handle.check(py)?;
        let mut batch = self.batch.lock_py_attached(py).unwrap_or_else(PoisonError::into_inner);
        Ok(work(&mut batch))
    }
}

#[pymethods]
impl WriteBatch {
    /// Adds: sets `key` to `value`.
    fn put(&self, py: Python<'_>, key: Bytes<'_>, value: Bytes<'_>) -> PyResult<()> {
        self.with(py, |batch| batch.put(key.prefixed(&self.prefix), value))
    }

    /// Adds: removes `key`.
    fn delete(&self, py: Python<'_>, key: Bytes<'_>) -> PyResult<()> {
        self.with(py, |batch| batch.delete(key.prefixed(&self.prefix)))
    }

    fn __setitem__(&self, py: Python<'_>, key: Bytes<'_>, value: Bytes<'_>) -> PyResult<()> {
        self.put(py, key, value)
    }

    fn __delitem__(&self, py: Python<'_>, key: Bytes<'_>) -> PyResult<()> {
        self.delete(py, key)
    }

    /// The number of operations.
    fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
        self.with(py, |batch| batch.len())
    }

    /// A batch is true even if it is empty.
    fn __bool__(&self) -> bool {
        true
    }

    /// Removes every operation.
    fn clear(&self, py: Python<'_>) -> PyResult<()> {
        self.with(py, terrace::WriteBatch::clear)
    }

    /// Applies every operation or, after an error, none. The batch stays as it is.
    fn write(&self, py: Python<'_>) -> PyResult<()> {
        self.handle.check(py)?;
        let guard = self.batch.lock_py_attached(py).unwrap_or_else(PoisonError::into_inner);
        let batch = &*guard;
        self.handle.run(py, |db| db.write_with(batch, WriteOptions { sync: self.sync }))
    }

    /// Returns about how many bytes the batch takes in the log.
    fn approximate_size(&self, py: Python<'_>) -> PyResult<usize> {
        self.with(py, |batch| batch.approximate_size())
    }

    /// Adds the operations of `source`, whose keys stay as they are.
    fn append(&self, py: Python<'_>, source: &Bound<'_, WriteBatch>) -> PyResult<()> {
        // Two batches are never locked at once.
        let added = source.get().with(py, |batch| batch.clone())?;
        self.with(py, |batch| batch.append(&added))
    }

    fn __enter__(slf: PyRef<'_, Self>) -> PyResult<PyRef<'_, Self>> {
        slf.handle.check(slf.py())?;
        Ok(slf)
    }

    #[pyo3(signature = (exc_type=None, _exc_value=None, _traceback=None))]
    fn __exit__(
        &self,
        py: Python<'_>,
        exc_type: Option<&Bound<'_, PyAny>>,
        _exc_value: Option<&Bound<'_, PyAny>>,
        _traceback: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        if !(self.is_transaction && exc_type.is_some()) {
            self.write(py)?;
        }
        self.clear(py)
    }

    fn __reduce__(&self) -> PyResult<()> {
        protocol::refuse_pickle("WriteBatch")
    }
}
