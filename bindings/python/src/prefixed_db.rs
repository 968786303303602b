//! The class `PrefixedDB`.

use pyo3::exceptions::PyKeyError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList};

use crate::batch::WriteBatch;
use crate::bytes::Bytes;
use crate::db::DB;
use crate::handle::Handle;
use crate::iterator::Iterator;
use crate::many_iterator::ManyIterator;
use crate::protocol;
use crate::snapshot::{Snapshot, without};
use crate::write;

/// The part of a database whose keys begin with a prefix, as a database whose keys do without it.
#[pyclass(name = "PrefixedDB", frozen, weakref, module = "terrace")]
pub(crate) struct PrefixedDB {
    db: Py<DB>,
    prefix: Vec<u8>,
}

impl PrefixedDB {
    pub(crate) fn of(db: Py<DB>, prefix: Vec<u8>) -> Self {
        PrefixedDB { db, prefix }
    }

    fn handle(&self) -> &std::sync::Arc<Handle> {
        self.db.get().handle()
    }
}

#[pymethods]
impl PrefixedDB {
    #[new]
    #[pyo3(signature = (*, db, prefix))]
    fn new(db: Py<DB>, prefix: Bytes<'_>) -> Self {
        Self::of(db, prefix.as_slice().to_vec())
    }

    /// The database.
    #[getter]
    fn db(&self, py: Python<'_>) -> Py<DB> {
        self.db.clone_ref(py)
    }

    /// The prefix of every key.
    #[getter]
    fn prefix<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.prefix)
    }

    fn __repr__(slf: PyRef<'_, Self>, py: Python<'_>) -> PyResult<String> {
        let prefix = slf.prefix(py).repr()?.to_string();
        Ok(format!("<terrace.PrefixedDB with prefix {prefix} at {:p}>", slf.as_ptr()))
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
        let _ = verify_checksums;
        let key = key.prefixed(&self.prefix);
        Ok(self.handle().get(py, &key, None, fill_cache)?.or(default))
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
        self.handle().get_many(py, &self.prefix, keys, default, None, fill_cache)
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
        self.handle().put(py, &key.prefixed(&self.prefix), value.as_slice(), sync)
    }

    /// Removes `key`. Removing an absent key is no error.
    #[pyo3(signature = (key, *, sync=None))]
    fn delete(&self, py: Python<'_>, key: Bytes<'_>, sync: Option<bool>) -> PyResult<()> {
        self.handle().delete(py, &key.prefixed(&self.prefix), sync)
    }

    fn __getitem__<'py>(&self, py: Python<'py>, key: Bytes<'py>) -> PyResult<Bound<'py, PyAny>> {
        let value = self.handle().get(py, &key.prefixed(&self.prefix), None, None)?;
        value.ok_or_else(|| PyKeyError::new_err(key.as_slice().to_vec()))
    }

    fn __setitem__(&self, py: Python<'_>, key: Bytes<'_>, value: Bytes<'_>) -> PyResult<()> {
        self.put(py, key, value, None)
    }

    /// Raises `KeyError` if there is no such key.
    fn __delitem__(&self, py: Python<'_>, key: Bytes<'_>) -> PyResult<()> {
        self.handle().delete_present(py, &key.prefixed(&self.prefix), key.as_slice())
    }

    fn __contains__(&self, py: Python<'_>, key: Bytes<'_>) -> PyResult<bool> {
        self.handle().contains(py, &key.prefixed(&self.prefix), None)
    }

    /// Sets every key of `other`, a mapping or an iterable of pairs, to its value: all of them or,
    /// after an error, none.
    #[pyo3(signature = (other, *, sync=None))]
    fn update(&self, py: Python<'_>, other: &Bound<'_, PyAny>, sync: Option<bool>) -> PyResult<()> {
        self.handle().check(py)?;
        let batch = write::batch_of(other, &self.prefix)?;
        self.handle().write(py, &batch, sync)
    }

    /// Returns an empty `WriteBatch`, which puts the prefix before every key.
    #[pyo3(signature = (*, transaction=None, sync=None))]
    fn write_batch(
        &self,
        py: Python<'_>,
        transaction: Option<bool>,
        sync: Option<bool>,
    ) -> PyResult<WriteBatch> {
        WriteBatch::new(py, self.handle(), &self.prefix, transaction, sync)
    }

    fn __iter__(&self, py: Python<'_>) -> PyResult<Iterator> {
        self.iterator(py, None)
    }

    /// Returns an iterator; see `DB.iterator`.
    #[pyo3(
        signature = (**options),
        text_signature = "($self, *, reverse=False, start=None, stop=None, include_start=True, \
            include_stop=False, prefix=None, include_key=True, include_value=True, \
            verify_checksums=False, fill_cache=True)"
    )]
    fn iterator(&self, py: Python<'_>, options: Option<&Bound<'_, PyDict>>) -> PyResult<Iterator> {
        Iterator::open(py, self.handle(), &self.prefix, None, options)
    }

    /// Returns an iterator over lists of entries; see `DB.iter_many`.
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
        ManyIterator::open(py, self.handle(), &self.prefix, None, size, options)
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

    /// Returns this part of the database as it is now, for reads later.
    fn snapshot(&self, py: Python<'_>) -> PyResult<Snapshot> {
        Snapshot::take(py, self.handle(), &self.prefix)
    }

    /// Returns the part of this part whose keys begin with `prefix`.
    fn prefixed_db(&self, py: Python<'_>, prefix: Bytes<'_>) -> PrefixedDB {
        let prefix = prefix.prefixed(&self.prefix).into_owned();
        PrefixedDB::of(self.db.clone_ref(py), prefix)
    }

    fn __reduce__(&self) -> PyResult<()> {
        protocol::refuse_pickle("PrefixedDB")
    }
}
