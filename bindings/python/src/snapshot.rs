//! The class `Snapshot`.

use std::sync::{Arc, Mutex, PoisonError};

use pyo3::exceptions::PyKeyError;
use pyo3::prelude::*;
use pyo3::sync::MutexExt;
use pyo3::types::{PyDict, PyList, PyTuple};
use terrace::Db;

use crate::bytes::Bytes;
use crate::errors;
use crate::handle::{Handle, refuse_within_comparator};
use crate::iterator::Iterator;
use crate::many_iterator::ManyIterator;
use crate::protocol;
use crate::raw_iterator::RawIterator;

/// The database, or the part of it below a prefix, as it was when the snapshot was taken.
///
/// It keeps old versions of changed keys on disk until it is closed.
#[pyclass(frozen, weakref, module = "terrace")]
pub(crate) struct Snapshot {
    handle: Arc<Handle>,
    prefix: Vec<u8>,
    /// `None` once closed.
    snapshot: Mutex<Option<terrace::Snapshot>>,
}

impl Snapshot {
    pub(crate) fn take(py: Python<'_>, handle: &Arc<Handle>, prefix: &[u8]) -> PyResult<Self> {
        let snapshot = handle.run(py, |db: &Db| Ok(db.snapshot()))?;
        let snapshot = Mutex::new(Some(snapshot));
        Ok(Snapshot { handle: handle.clone(), prefix: prefix.to_vec(), snapshot })
    }

    fn open(&self, py: Python<'_>) -> PyResult<terrace::Snapshot> {
        self.handle.check_open("the database or snapshot")?;
        let guard = self.snapshot.lock_py_attached(py).unwrap_or_else(PoisonError::into_inner);
        guard.clone().ok_or_else(|| errors::closed("the database or snapshot"))
    }
}

#[pymethods]
impl Snapshot {
    /// Returns the value that `key` had, or `default`.
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
        let snapshot = self.open(py)?;
        let key = key.prefixed(&self.prefix);
        Ok(self.handle.get(py, &key, Some(snapshot), fill_cache)?.or(default))
    }

    fn __getitem__<'py>(&self, py: Python<'py>, key: Bytes<'py>) -> PyResult<Bound<'py, PyAny>> {
        let snapshot = self.open(py)?;
        let value = self.handle.get(py, &key.prefixed(&self.prefix), Some(snapshot), None)?;
        value.ok_or_else(|| PyKeyError::new_err(key.as_slice().to_vec()))
    }

    fn __contains__(&self, py: Python<'_>, key: Bytes<'_>) -> PyResult<bool> {
        let snapshot = self.open(py)?;
        self.handle.contains(py, &key.prefixed(&self.prefix), Some(snapshot))
    }

    /// Returns the values that `keys` had, in their order; `default` for those that had none.
    #[pyo3(signature = (keys, default=None, *, fill_cache=None))]
    fn get_many<'py>(
        &self,
        py: Python<'py>,
        keys: &Bound<'py, PyAny>,
        default: Option<Bound<'py, PyAny>>,
        fill_cache: Option<bool>,
    ) -> PyResult<Bound<'py, PyList>> {
        let snapshot = self.open(py)?;
        self.handle.get_many(py, &self.prefix, keys, default, Some(snapshot), fill_cache)
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
        Iterator::open(py, &self.handle, &self.prefix, Some(self.open(py)?), options)
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
        ManyIterator::open(py, &self.handle, &self.prefix, Some(self.open(py)?), size, options)
    }

    /// Returns a `RawIterator` over the whole database, whatever the prefix.
    #[pyo3(signature = (*, verify_checksums=None, fill_cache=None))]
    fn raw_iterator(
        &self,
        py: Python<'_>,
        verify_checksums: Option<bool>,
        fill_cache: Option<bool>,
    ) -> PyResult<RawIterator> {
        let _ = verify_checksums;
        RawIterator::open(py, &self.handle, Some(self.open(py)?), fill_cache)
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

    /// Closes the snapshot. Nothing happens if it is closed.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        refuse_within_comparator()?;
        let snapshot =
            self.snapshot.lock_py_attached(py).unwrap_or_else(PoisonError::into_inner).take();
        self.handle.release(snapshot);
        Ok(())
    }

    /// Closes the snapshot: another name of `close`.
    fn release(&self, py: Python<'_>) -> PyResult<()> {
        self.close(py)
    }

    fn __enter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    #[pyo3(signature = (*_exception))]
    fn __exit__(&self, py: Python<'_>, _exception: &Bound<'_, PyTuple>) -> PyResult<bool> {
        self.close(py)?;
        Ok(false)
    }

    fn __reduce__(&self) -> PyResult<()> {
        protocol::refuse_pickle("Snapshot")
    }
}

impl Drop for Snapshot {
    fn drop(&mut self) {
        let snapshot = self.snapshot.get_mut().unwrap_or_else(PoisonError::into_inner).take();
        self.handle.release(snapshot);
    }
}

/// The keywords of an iterator that leaves keys or values out.
pub(crate) fn without<'py>(py: Python<'py>, keyword: &str) -> PyResult<Bound<'py, PyDict>> {
    let options = PyDict::new(py);
    options.set_item(keyword, false)?;
    Ok(options)
}
