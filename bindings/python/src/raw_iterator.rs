//! The class `RawIterator`: LevelDB's own kind of iterator.

use std::sync::{Arc, Mutex, PoisonError};

use pyo3::prelude::*;
use pyo3::sync::MutexExt;
use pyo3::types::{PyBytes, PyTuple};
use terrace::{Cursor, Snapshot};

use crate::bytes::{Bytes, to_python};
use crate::errors;
use crate::handle::{Handle, refuse_within_comparator};
use crate::iterator_options::read_options;
use crate::protocol;

/// A position at an entry, or at none: seek it first.
#[pyclass(frozen, weakref, module = "terrace")]
pub(crate) struct RawIterator {
    handle: Arc<Handle>,
    /// `None` once closed.
    cursor: Mutex<Option<Cursor>>,
}

impl RawIterator {
    pub(crate) fn open(
        py: Python<'_>,
        handle: &Arc<Handle>,
        snapshot: Option<Snapshot>,
        fill_cache: Option<bool>,
    ) -> PyResult<Self> {
        let read = read_options(snapshot.as_ref(), fill_cache);
        let cursor = handle.run(py, |db| db.cursor_with(&read))?;
        Ok(RawIterator { handle: handle.clone(), cursor: Mutex::new(Some(cursor)) })
    }

    fn with<T>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&mut Cursor) -> PyResult<T>,
    ) -> PyResult<T> {
        self.handle.check_open("the database or iterator")?;
        let mut guard = self.cursor.lock_py_attached(py).unwrap_or_else(PoisonError::into_inner);
        work(guard.as_mut().ok_or_else(|| errors::closed("the database or iterator"))?)
    }

    fn go(&self, py: Python<'_>, work: impl FnOnce(&mut Cursor) + Send) -> PyResult<()> {
        self.with(py, |cursor| {
            self.handle.detached(py, || {
                work(cursor);
                cursor.status()
            })
        })
    }

    fn step(&self, py: Python<'_>, work: impl FnOnce(&mut Cursor) + Send) -> PyResult<()> {
        self.with(py, |cursor| {
            if !cursor.valid() {
                return Err(errors::iterator_invalid(py));
            }
            self.handle.detached(py, || {
                work(cursor);
                cursor.status()
            })
        })
    }

    fn entry<T>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&[u8], &[u8]) -> PyResult<T>,
    ) -> PyResult<T> {
        self.with(py, |cursor| {
            let (key, value) = cursor.entry().ok_or_else(|| errors::iterator_invalid(py))?;
            work(key, value)
        })
    }
}

#[pymethods]
impl RawIterator {
    /// Returns whether the iterator is at an entry.
    fn valid(&self, py: Python<'_>) -> PyResult<bool> {
        self.with(py, |cursor| Ok(cursor.valid()))
    }

    /// Moves to the first entry.
    fn seek_to_first(&self, py: Python<'_>) -> PyResult<()> {
        self.go(py, Cursor::seek_to_first)
    }

    /// Moves to the last entry.
    fn seek_to_last(&self, py: Python<'_>) -> PyResult<()> {
        self.go(py, Cursor::seek_to_last)
    }

    /// Moves to the first entry whose key is `target` or follows it.
    fn seek(&self, py: Python<'_>, target: Bytes<'_>) -> PyResult<()> {
        let target = target.as_slice();
        self.go(py, |cursor| cursor.seek(target))
    }

    /// Moves to the next entry. Raises `IteratorInvalidError` if the iterator is at none.
    fn next(&self, py: Python<'_>) -> PyResult<()> {
        self.step(py, Cursor::next)
    }

    /// Moves to the previous entry. Raises `IteratorInvalidError` if the iterator is at none.
    fn prev(&self, py: Python<'_>) -> PyResult<()> {
        self.step(py, Cursor::prev)
    }

    /// Returns the key. Raises `IteratorInvalidError` if the iterator is at no entry.
    fn key<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        self.entry(py, |key, _| to_python(py, key))
    }

    /// Returns the value. Raises `IteratorInvalidError` if the iterator is at no entry.
    fn value<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        self.entry(py, |_, value| to_python(py, value))
    }

    /// Returns key and value. Raises `IteratorInvalidError` if the iterator is at no entry.
    fn item<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        // No tuple under the lock: see `Parts`.
        let parts =
            self.entry(py, |key, value| Ok([to_python(py, key)?, to_python(py, value)?]))?;
        PyTuple::new(py, parts)
    }

    /// Closes the iterator and lets go of what it reads. Nothing happens if it is closed.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        refuse_within_comparator()?;
        let cursor =
            self.cursor.lock_py_attached(py).unwrap_or_else(PoisonError::into_inner).take();
        self.handle.release(cursor);
        Ok(())
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
        protocol::refuse_pickle("RawIterator")
    }
}

impl Drop for RawIterator {
    fn drop(&mut self) {
        let cursor = self.cursor.get_mut().unwrap_or_else(PoisonError::into_inner).take();
        self.handle.release(cursor);
    }
}
