//! The class `DB`.

use std::ops::Bound::{Excluded, Included, Unbounded};
use std::sync::Arc;

use pyo3::exceptions::PyKeyError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList};
use terrace::{KeyspaceOptions, WriteBatch as Batch, WriteOptions};

use crate::batch::WriteBatch;
use crate::bytes::{Bytes, BytesPair, to_python};
use crate::errors;
use crate::handle::Handle;
use crate::iterator::Iterator;
use crate::many_iterator::ManyIterator;
use crate::options::OpenOptions;
use crate::prefixed_db::PrefixedDB;
use crate::protocol;
use crate::raw_iterator::RawIterator;
use crate::report;
use crate::snapshot::{Snapshot, without};
use crate::transaction::{Transaction, transact};
use crate::{path, write};

/// An open database: an ordered mapping from bytes to bytes, in the directory `name`.
///
/// Any number of threads may use it. A write that has returned survives the death of the process;
/// with `sync=True` it survives the loss of power, and so does every write before it. After `close`
/// everything raises `RuntimeError`.
#[pyclass(name = "DB", frozen, weakref, module = "terrace")]
pub(crate) struct DB {
    handle: Arc<Handle>,
    name: Py<PyAny>,
}

impl DB {
    pub(crate) fn handle(&self) -> &Arc<Handle> {
        &self.handle
    }
}

/// Whether the directory is absent or may be written to.
fn may_write(name: &Bound<'_, PyAny>) -> PyResult<bool> {
    let os = name.py().import("os")?;
    let may = |mode| os.call_method1("access", (name, os.getattr(mode)?))?.is_truthy();
    Ok(!may("F_OK")? || may("W_OK")?)
}

#[pymethods]
impl DB {
    #[new]
    #[pyo3(
        signature = (name, **options),
        text_signature = "(name, *, create_if_missing=False, error_if_exists=False, \
            paranoid_checks=None, write_buffer_size=None, max_open_files=None, \
            lru_cache_size=None, block_size=None, block_restart_interval=None, \
            max_file_size=None, compression='snappy', bloom_filter_bits=0, \
            comparator=None, comparator_name=None, read_only=False, \
            recovery_mode='prefix', reuse_logs=False, background_threads=2, \
            table_filter_bits=10, compaction_rate_limit=0, value_log=None)"
    )]
    fn new(
        py: Python<'_>,
        name: Bound<'_, PyAny>,
        options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Self> {
        let path = path::from_python(&name)?;
        let options = OpenOptions::parse("DB", options)?;
        let is_read_only = options.is_read_only;
        let handle = Handle::open(py, path, options).or_else(|exception| {
            let explained = !is_read_only && !may_write(&name)?;
            Err(if explained { errors::no_permission(py, &name, exception) } else { exception })
        })?;
        Ok(DB { handle, name: name.unbind() })
    }

    /// The directory, as it was given.
    #[getter]
    fn name(&self, py: Python<'_>) -> Py<PyAny> {
        self.name.clone_ref(py)
    }

    /// Whether the database is closed.
    #[getter]
    fn closed(&self) -> bool {
        !self.handle.is_open()
    }

    /// Closes the database and everything that was made of it. Nothing happens if it is closed;
    /// while another thread closes it, waits for that.
    ///
    /// Raises what kept background work from going on, if something did: no write is lost by that.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        self.handle.close(py)
    }

    fn __enter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    #[pyo3(signature = (exc_type=None, _exc_value=None, _traceback=None))]
    fn __exit__(
        &self,
        py: Python<'_>,
        exc_type: Option<&Bound<'_, PyAny>>,
        _exc_value: Option<&Bound<'_, PyAny>>,
        _traceback: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let closed = self.close(py);
        // An exception on its way says more.
        if exc_type.is_some() { Ok(()) } else { closed }
    }

    fn __repr__(slf: PyRef<'_, Self>, py: Python<'_>) -> PyResult<String> {
        let name = slf.name.bind(py).repr()?;
        let state = if slf.closed() { " (closed)" } else { "" };
        Ok(format!("<terrace.DB with name {name}{state} at {:p}>", slf.as_ptr()))
    }

    /// Returns the value of `key`, or `default`.
    #[pyo3(signature = (key, default=None, *, verify_checksums=None, fill_cache=None))]
    fn get<'py>(
        &self,
        py: Python<'py>,
        key: Bytes<'py>,
        default: Option<Bound<'py, PyAny>>,
        verify_checksums: Option<bool>,
        fill_cache: Option<bool>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        // Blocks are always checked when they are loaded.
        let _ = verify_checksums;
        Ok(self.handle.get(py, key.as_slice(), None, fill_cache)?.or(default))
    }

    /// Returns the values of `keys`, in their order and as of one moment; `default` for those that
    /// have none.
    #[pyo3(signature = (keys, default=None, *, fill_cache=None))]
    fn get_many<'py>(
        &self,
        py: Python<'py>,
        keys: &Bound<'py, PyAny>,
        default: Option<Bound<'py, PyAny>>,
        fill_cache: Option<bool>,
    ) -> PyResult<Bound<'py, PyList>> {
        self.handle.get_many(py, &[], keys, default, None, fill_cache)
    }

    /// Sets `key` to `value`.
    #[pyo3(signature = (key, value, *, sync=None))]
    fn put(
        &self,
        py: Python<'_>,
        key: Bytes<'_>,
        value: Bytes<'_>,
        sync: Option<bool>,
    ) -> PyResult<()> {
        self.handle.put(py, key.as_slice(), value.as_slice(), sync)
    }

    /// Removes `key`. Removing an absent key is no error.
    #[pyo3(signature = (key, *, sync=None))]
    fn delete(&self, py: Python<'_>, key: Bytes<'_>, sync: Option<bool>) -> PyResult<()> {
        self.handle.delete(py, key.as_slice(), sync)
    }

    fn __getitem__<'py>(&self, py: Python<'py>, key: Bytes<'py>) -> PyResult<Bound<'py, PyAny>> {
        let value = self.handle.get(py, key.as_slice(), None, None)?;
        value.ok_or_else(|| PyKeyError::new_err(key.as_slice().to_vec()))
    }

    fn __setitem__(&self, py: Python<'_>, key: Bytes<'_>, value: Bytes<'_>) -> PyResult<()> {
        self.put(py, key, value, None)
    }

    /// Raises `KeyError` if there is no such key.
    fn __delitem__(&self, py: Python<'_>, key: Bytes<'_>) -> PyResult<()> {
        self.handle.delete_present(py, key.as_slice(), key.as_slice())
    }

    fn __contains__(&self, py: Python<'_>, key: Bytes<'_>) -> PyResult<bool> {
        self.handle.contains(py, key.as_slice(), None)
    }

    /// Sets every key of `other`, a mapping or an iterable of pairs, to its value: all of them or,
    /// after an error, none.
    #[pyo3(signature = (other, *, sync=None))]
    fn update(&self, py: Python<'_>, other: &Bound<'_, PyAny>, sync: Option<bool>) -> PyResult<()> {
        self.handle.check(py)?;
        let batch = write::batch_of(other, &[])?;
        self.handle.write(py, &batch, sync)
    }

    /// Makes every earlier write survive the loss of power.
    fn sync(&self, py: Python<'_>) -> PyResult<()> {
        self.handle.run(py, |db| db.write_with(&Batch::new(), WriteOptions::sync()))
    }

    /// Returns an empty `WriteBatch`.
    #[pyo3(signature = (*, transaction=None, sync=None))]
    fn write_batch(
        &self,
        py: Python<'_>,
        transaction: Option<bool>,
        sync: Option<bool>,
    ) -> PyResult<WriteBatch> {
        WriteBatch::new(py, &self.handle, &[], transaction, sync)
    }

    /// Begins a `Transaction`.
    #[pyo3(signature = (*, sync=None))]
    fn transaction(&self, py: Python<'_>, sync: Option<bool>) -> PyResult<Transaction> {
        Transaction::begin(py, &self.handle, sync)
    }

    /// Calls `work` with a transaction, commits it and returns what `work` returned; again, on the
    /// database as it is then, for as long as the commit conflicts with other writes.
    ///
    /// Raises `ConflictError` after `retries` more attempts. An exception of `work` ends the
    /// transaction without a trace.
    #[pyo3(signature = (work, *, retries=None, sync=None))]
    fn transact<'py>(
        &self,
        py: Python<'py>,
        work: &Bound<'py, PyAny>,
        retries: Option<u64>,
        sync: Option<bool>,
    ) -> PyResult<Bound<'py, PyAny>> {
        transact(py, &self.handle, work, retries, sync)
    }

    fn __iter__(&self, py: Python<'_>) -> PyResult<Iterator> {
        self.iterator(py, None)
    }

    /// Returns an iterator over pairs of key and value in the order of keys.
    ///
    /// `start`, `stop` and `prefix` limit it, `include_start` and `include_stop` tell whether the
    /// limits are in; `reverse` goes backwards. Without `include_key` it returns values, without
    /// `include_value` keys. With `fill_cache=False` what it reads does not stay in the cache.
    #[pyo3(
        signature = (**options),
        text_signature = "($self, *, reverse=False, start=None, stop=None, include_start=True, \
            include_stop=False, prefix=None, include_key=True, include_value=True, \
            verify_checksums=False, fill_cache=True)"
    )]
    fn iterator(&self, py: Python<'_>, options: Option<&Bound<'_, PyDict>>) -> PyResult<Iterator> {
        Iterator::open(py, &self.handle, &[], None, options)
    }

    /// Returns an iterator over lists of up to `size` entries each, the fastest way to read many.
    ///
    /// The other keywords are those of `iterator`. A list ends early behind 8 MiB.
    #[pyo3(
        signature = (size=1000, **options),
        text_signature = "($self, size=1000, *, reverse=False, start=None, stop=None, \
            include_start=True, include_stop=False, prefix=None, include_key=True, \
            include_value=True, verify_checksums=False, fill_cache=True)"
    )]
    fn iter_many(
        &self,
        py: Python<'_>,
        size: usize,
        options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<ManyIterator> {
        ManyIterator::open(py, &self.handle, &[], None, size, options)
    }

    /// Returns a `RawIterator`.
    #[pyo3(signature = (*, verify_checksums=None, fill_cache=None))]
    fn raw_iterator(
        &self,
        py: Python<'_>,
        verify_checksums: Option<bool>,
        fill_cache: Option<bool>,
    ) -> PyResult<RawIterator> {
        let _ = verify_checksums;
        RawIterator::open(py, &self.handle, None, fill_cache)
    }

    /// Returns an iterator over the keys.
    fn keys(&self, py: Python<'_>) -> PyResult<Iterator> {
        self.iterator(py, Some(&without(py, "include_value")?))
    }

    /// Returns an iterator over the values.
    fn values(&self, py: Python<'_>) -> PyResult<Iterator> {
        self.iterator(py, Some(&without(py, "include_key")?))
    }

    /// Returns an iterator over the pairs of key and value.
    fn items(&self, py: Python<'_>) -> PyResult<Iterator> {
        self.iterator(py, None)
    }

    /// Returns the database as it is now, for reads later.
    fn snapshot(&self, py: Python<'_>) -> PyResult<Snapshot> {
        Snapshot::take(py, &self.handle, &[])
    }

    /// Returns the part of the database whose keys begin with `prefix`.
    fn prefixed_db(slf: PyRef<'_, Self>, prefix: Bytes<'_>) -> PrefixedDB {
        PrefixedDB::of(slf.into(), prefix.as_slice().to_vec())
    }

    /// Makes the keyspace `name`, durably, and returns it: the part of the database whose keys
    /// begin with `!name!`, as of a sublevel of abstract-level. Raises `Error` if there is one.
    fn create_keyspace(slf: PyRef<'_, Self>, name: &str) -> PyResult<PrefixedDB> {
        let prefix = slf.handle.run(slf.py(), |db| {
            db.create_keyspace(name, KeyspaceOptions::new()).map(|keyspace| keyspace.key(b""))
        })?;
        Ok(PrefixedDB::of(slf.into(), prefix))
    }

    /// Returns the keyspace `name`. Raises `Error` if there is none.
    ///
    /// After `drop_keyspace` writes to it begin it anew.
    fn keyspace(slf: PyRef<'_, Self>, name: &str) -> PyResult<PrefixedDB> {
        let prefix =
            slf.handle.run(slf.py(), |db| db.keyspace(name).map(|keyspace| keyspace.key(b"")))?;
        Ok(PrefixedDB::of(slf.into(), prefix))
    }

    /// Returns the names of all keyspaces, in order.
    fn keyspaces(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        self.handle.run(py, |db| db.keyspaces())
    }

    /// Removes the keyspace `name` with all of its entries, as one step and durably, and returns
    /// whether there was one.
    fn drop_keyspace(&self, py: Python<'_>, name: &str) -> PyResult<bool> {
        self.handle.run(py, |db| db.drop_keyspace(name))
    }

    /// Removes every key from `start` to before `stop`, as one step. Large ranges take time by
    /// their tables, not by their entries.
    #[pyo3(signature = (*, start=None, stop=None, sync=None))]
    fn delete_range(
        &self,
        py: Python<'_>,
        start: Option<Bytes<'_>>,
        stop: Option<Bytes<'_>>,
        sync: Option<bool>,
    ) -> PyResult<()> {
        let start = start.as_ref().map_or(Unbounded, |key| Included(key.as_slice()));
        let stop = stop.as_ref().map_or(Unbounded, |key| Excluded(key.as_slice()));
        let options = write::write_options(sync);
        self.handle.run(py, |db| db.delete_range_with::<&[u8]>((start, stop), options))
    }

    /// Returns one of LevelDB's properties, or `None` for a name that is none.
    fn get_property<'py>(
        &self,
        py: Python<'py>,
        name: Bytes<'_>,
    ) -> PyResult<Option<Bound<'py, PyBytes>>> {
        let name = String::from_utf8_lossy(name.as_slice());
        let value = self.handle.run(py, |db| Ok(db.property(&name)))?;
        value.map(|value| to_python(py, value.as_bytes())).transpose()
    }

    /// Compacts the tables that hold keys from `start` to `stop`, and waits for it.
    #[pyo3(signature = (*, start=None, stop=None))]
    fn compact_range(
        &self,
        py: Python<'_>,
        start: Option<Bytes<'_>>,
        stop: Option<Bytes<'_>>,
    ) -> PyResult<()> {
        let start = start.as_ref().map_or(Unbounded, |key| Included(key.as_slice()));
        let stop = stop.as_ref().map_or(Unbounded, |key| Included(key.as_slice()));
        self.handle.run(py, |db| db.compact_range::<&[u8]>((start, stop)))
    }

    /// Writes what is in memory to tables, and waits for it.
    fn flush(&self, py: Python<'_>) -> PyResult<()> {
        self.handle.run(py, |db| db.flush())
    }

    /// Waits until no flush or compaction is due.
    fn wait_idle(&self, py: Python<'_>) -> PyResult<()> {
        self.handle.run(py, |db| db.wait_idle())
    }

    /// Returns about how many bytes the keys from `start` to before `stop` take on disk.
    fn approximate_size(&self, py: Python<'_>, start: Bytes<'_>, stop: Bytes<'_>) -> PyResult<u64> {
        let range = (start.as_slice(), stop.as_slice());
        let sizes = self.handle.run(py, |db| db.approximate_sizes(&[range]))?;
        Ok(sizes.first().copied().unwrap_or(0))
    }

    /// Returns about how many bytes each of the ranges takes on disk: pairs of start and stop.
    #[pyo3(signature = (*ranges))]
    fn approximate_sizes(&self, py: Python<'_>, ranges: Vec<BytesPair<'_>>) -> PyResult<Vec<u64>> {
        let ranges: Vec<_> = ranges
            .iter()
            .map(|BytesPair(start, stop)| (start.as_slice(), stop.as_slice()))
            .collect();
        self.handle.run(py, |db| db.approximate_sizes(&ranges))
    }

    /// Returns numbers about the database and its work since it was opened, as a dictionary.
    fn stats<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let stats = self.handle.run(py, |db| Ok(db.stats()))?;
        report::stats(py, &stats)
    }

    /// Makes a copy of the database in the directory `name`, which must be absent or empty, while
    /// it is in use, and returns what it consists of, as a dictionary.
    ///
    /// Tables are shared by hard links where the file system allows that.
    fn checkpoint<'py>(
        &self,
        py: Python<'py>,
        name: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let path = path::from_python(name)?;
        let report = self.handle.run(py, |db| db.checkpoint(path))?;
        report::checkpoint(py, &report)
    }

    /// Checks every file of the database while it is in use and returns what was found, as a
    /// dictionary: `is_clean` tells whether nothing is wrong.
    fn verify<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let report = self.handle.run(py, |db| db.verify())?;
        report::verification(py, &report)
    }

    fn __reduce__(&self) -> PyResult<()> {
        protocol::refuse_pickle("DB")
    }
}
