//! The class `ManyIterator`: lists of entries, for programs that want many.

use std::sync::{Arc, Mutex, PoisonError};

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::sync::MutexExt;
use pyo3::types::{PyDict, PyList, PyTuple, PyType};
use terrace::Snapshot;

use crate::entry_buffer::{EntryBuffer, shown};
use crate::errors;
use crate::handle::{Handle, refuse_within_comparator};
use crate::iterator::open_scan;
use crate::iterator_options::{IteratorOptions, Shown};
use crate::protocol;
use crate::scan::{Direction, Scan};

/// A list ends behind this many bytes, however few entries that are.
const MOST_BYTES: usize = 8 << 20;
/// Iterates over lists of the entries of a range: the GIL is released once for each list.
#[pyclass(frozen, weakref, module = "terrace")]
pub(crate) struct ManyIterator {
    handle: Arc<Handle>,
    direction: Direction,
    shown: Shown,
    size: usize,
    /// `None` once closed.
    position: Mutex<Option<Position>>,
}

struct Position {
    scan: Scan,
    entries: EntryBuffer,
    /// What stopped the scan behind the last list.
    error: Option<terrace::Error>,
}

impl Position {
    /// Reads the entries of a list, without the GIL.
    fn read(&mut self, direction: Direction, size: usize) -> terrace::Result<()> {
        self.entries.clear();
        if let Some(error) = self.error.take() {
            return Err(error);
        }
        while self.entries.len() < size && self.entries.bytes() < MOST_BYTES {
            match self.scan.step(direction) {
                Ok(Some((key, value))) => self.entries.push(key, value),
                Ok(None) => break,
                Err(error) if self.entries.len() == 0 => return Err(error),
                // What comes before it is returned first.
                Err(error) => {
                    self.error = Some(error);
                    break;
                }
            }
        }
        Ok(())
    }
}

impl ManyIterator {
    pub(crate) fn open(
        py: Python<'_>,
        handle: &Arc<Handle>,
        prefix: &[u8],
        snapshot: Option<Snapshot>,
        size: usize,
        keywords: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Self> {
        if size == 0 {
            return Err(PyValueError::new_err("size must be at least 1"));
        }
        let options = IteratorOptions::parse(keywords, prefix)?;
        let (direction, shown) = (options.direction, options.shown);
        let scan = open_scan(py, handle, snapshot, options)?;
        let position = Position { scan, entries: EntryBuffer::default(), error: None };
        let position = Mutex::new(Some(position));
        Ok(ManyIterator { handle: handle.clone(), direction, shown, size, position })
    }
}

#[pymethods]
impl ManyIterator {
    fn __iter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyList>>> {
        self.handle.check_open("the database or iterator")?;
        let mut guard = self.position.lock_py_attached(py).unwrap_or_else(PoisonError::into_inner);
        let position = guard.as_mut().ok_or_else(|| errors::closed("the database or iterator"))?;
        self.handle.detached(py, || position.read(self.direction, self.size))?;
        if position.entries.len() == 0 {
            return Ok(None);
        }
        // Not under the lock: see `Parts`.
        let mut entries = std::mem::take(&mut position.entries);
        drop(guard);
        let list = PyList::empty(py);
        for entry in entries.iter() {
            list.append(shown(py, entry, self.shown)?)?;
        }
        entries.clear();
        let mut guard = self.position.lock_py_attached(py).unwrap_or_else(PoisonError::into_inner);
        if let Some(position) = guard.as_mut() {
            // For the next time.
            position.entries = entries;
        }
        Ok(Some(list))
    }

    /// Closes the iterator and lets go of what it reads. Nothing happens if it is closed.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        refuse_within_comparator()?;
        let position =
            self.position.lock_py_attached(py).unwrap_or_else(PoisonError::into_inner).take();
        self.handle.release(position);
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

    /// So that `ManyIterator[...]` may stand in annotations.
    #[classmethod]
    fn __class_getitem__<'py>(
        class: &Bound<'py, PyType>,
        item: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        protocol::generic_alias(class, item)
    }

    fn __reduce__(&self) -> PyResult<()> {
        protocol::refuse_pickle("ManyIterator")
    }
}

impl Drop for ManyIterator {
    fn drop(&mut self) {
        let position = self.position.get_mut().unwrap_or_else(PoisonError::into_inner).take();
        self.handle.release(position);
    }
}
