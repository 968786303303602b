//! The class `TransactionIterator`.

use std::collections::VecDeque;
use std::ops::Bound::{Excluded, Included, Unbounded};
use std::sync::{Mutex, PoisonError};

use pyo3::prelude::*;
use pyo3::sync::MutexExt;
use pyo3::types::{PyDict, PyTuple, PyType};

use crate::entry_buffer::shown;
use crate::errors;
use crate::handle::refuse_within_comparator;
use crate::iterator_options::{IteratorOptions, Shown};
use crate::protocol;
use crate::scan::{Direction, Range};
use crate::transaction::Transaction;

/// Entries that are read at a time at most, and about how many bytes.
const MOST_AHEAD: usize = 256;
const BYTES_AHEAD: usize = 64 << 10;

/// Iterates over what a transaction sees.
#[pyclass(frozen, weakref, module = "terrace")]
pub(crate) struct TransactionIterator {
    transaction: Py<Transaction>,
    direction: Direction,
    shown: Shown,
    /// `None` once closed.
    rest: Mutex<Option<Rest>>,
}

/// What is still to be returned.
struct Rest {
    /// Entries that were read.
    entries: VecDeque<(Vec<u8>, Vec<u8>)>,
    /// What was not read.
    range: Range,
    is_read: bool,
}

impl Rest {
    /// Reads the next entries. A transaction takes writes between two calls, so every call looks
    /// for the place anew. What fails behind entries fails again in the next call, and ends the
    /// iteration there.
    fn read(
        &mut self,
        transaction: &terrace::Transaction,
        direction: Direction,
    ) -> terrace::Result<()> {
        let Range { start, stop, include_start, include_stop, .. } = &self.range;
        let from = start.as_deref().map_or(Unbounded, |key| match include_start {
            true => Included(key),
            false => Excluded(key),
        });
        let to = stop.as_deref().map_or(Unbounded, |key| match include_stop {
            true => Included(key),
            false => Excluded(key),
        });
        let mut entries = transaction.range::<&[u8]>((from, to));
        let mut bytes = 0;
        while self.entries.len() < MOST_AHEAD && bytes < BYTES_AHEAD {
            let entry = match direction {
                Direction::Forward => entries.next(),
                Direction::Backward => entries.next_back(),
            };
            match entry {
                Some(Ok((key, value))) => {
                    bytes += key.len() + value.len();
                    self.entries.push_back((key, value));
                }
                Some(Err(_)) if !self.entries.is_empty() => break,
                end => {
                    self.is_read = true;
                    return end.map_or(Ok(()), |entry| entry.map(drop));
                }
            }
        }
        drop(entries);
        let last = self.entries.back().map(|(key, _)| key.clone());
        match direction {
            Direction::Forward => (self.range.start, self.range.include_start) = (last, false),
            Direction::Backward => (self.range.stop, self.range.include_stop) = (last, false),
        }
        Ok(())
    }
}

impl TransactionIterator {
    pub(crate) fn open(
        transaction: Bound<'_, Transaction>,
        keywords: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Self> {
        let py = transaction.py();
        // That it is still going on.
        transaction.get().run(py, |_| Ok(()))?;
        let options = IteratorOptions::parse(keywords, &[])?;
        let (direction, shown) = (options.direction, options.shown);
        let rest = Rest { entries: VecDeque::new(), range: options.range, is_read: false };
        let rest = Mutex::new(Some(rest));
        Ok(TransactionIterator { transaction: transaction.unbind(), direction, shown, rest })
    }
}

#[pymethods]
impl TransactionIterator {
    fn __iter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let transaction = self.transaction.get();
        transaction.handle().check(py)?;
        let mut guard = self.rest.lock_py_attached(py).unwrap_or_else(PoisonError::into_inner);
        let rest = guard.as_mut().ok_or_else(|| errors::closed("the iterator"))?;
        if rest.entries.is_empty() && !rest.is_read {
            transaction.run(py, |transaction| rest.read(transaction, self.direction))?;
        }
        let entry = rest.entries.pop_front();
        drop(guard);
        entry.map(|(key, value)| shown(py, (&key, &value), self.shown)).transpose()
    }

    /// Closes the iterator. Nothing happens if it is closed.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        refuse_within_comparator()?;
        self.rest.lock_py_attached(py).unwrap_or_else(PoisonError::into_inner).take();
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

    /// So that `TransactionIterator[...]` may stand in annotations.
    #[classmethod]
    fn __class_getitem__<'py>(
        class: &Bound<'py, PyType>,
        item: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        protocol::generic_alias(class, item)
    }

    fn __reduce__(&self) -> PyResult<()> {
        protocol::refuse_pickle("TransactionIterator")
    }
}
