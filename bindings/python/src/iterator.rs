//! The class `Iterator`.
//!
//! Entries are read ahead in growing numbers, so that the GIL is released once for many of them. An
//! iterator reads the database of one moment, so nobody can tell.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pyo3::prelude::*;
use pyo3::sync::MutexExt;
use pyo3::types::{PyDict, PyTuple, PyType};
use terrace::Snapshot;

use crate::bytes::Bytes;
use crate::entry_buffer::{EntryBuffer, Parts};
use crate::errors;
use crate::handle::{Handle, refuse_within_comparator};
use crate::iterator_options::{IteratorOptions, Shown};
use crate::protocol;
use crate::scan::{Direction, Scan};

/// Entries that are read ahead at first.
const FIRST_AHEAD: usize = 4;
/// Entries that are read ahead at most, and about how many bytes.
const MOST_AHEAD: usize = 256;
const BYTES_AHEAD: usize = 64 << 10;
/// An entry from this size on is handed over from where it lies, without a copy in between.
const LARGE: usize = 16 << 10;

/// Iterates over the entries of a range, in either direction, as of the moment it was made.
///
/// It stands between two entries: `next(it)` returns the one behind it and `it.prev()` the one
/// before it, the other way round for an iterator made with `reverse=True`. Threads that share one
/// take turns.
#[pyclass(frozen, weakref, module = "terrace")]
pub(crate) struct Iterator {
    handle: Arc<Handle>,
    prefix: Vec<u8>,
    direction: Direction,
    shown: Shown,
    /// `None` once closed.
    position: Mutex<Option<Position>>,
}

/// Where an iterator stands, and what it has read ahead of that.
///
/// # Invariants
/// 1. The scan stands behind what is ahead, in the direction of `heading`.
struct Position {
    scan: Scan,
    heading: Direction,
    ahead: EntryBuffer,
    /// How many entries of `ahead` were returned.
    returned: usize,
    /// Whether the entry that the scan passed last is large and comes after `ahead`.
    large: bool,
    /// What stopped the scan behind `ahead`.
    error: Option<terrace::Error>,
    /// How many entries to read ahead next time.
    want: usize,
}

/// An entry that is to be returned.
enum Next {
    Ahead(usize),
    AtScan,
    None,
}

impl Position {
    fn new(scan: Scan) -> Self {
        Position {
            scan,
            heading: Direction::Forward,
            ahead: EntryBuffer::default(),
            returned: 0,
            large: false,
            error: None,
            want: FIRST_AHEAD,
        }
    }

    /// Forgets what was read ahead.
    fn forget(&mut self) {
        self.ahead.clear();
        (self.returned, self.want) = (0, FIRST_AHEAD);
        (self.large, self.error) = (false, None);
    }

    /// The next entry if it was read ahead.
    #[inline]
    fn ready(&mut self, direction: Direction) -> Option<Next> {
        if direction != self.heading {
            return None;
        }
        if self.returned < self.ahead.len() {
            self.returned += 1;
            return Some(Next::Ahead(self.returned - 1));
        }
        std::mem::take(&mut self.large).then_some(Next::AtScan)
    }

    /// Reads ahead, without the GIL.
    fn read(&mut self, direction: Direction) -> terrace::Result<()> {
        if direction != self.heading {
            self.switch_direction(direction)?;
        }
        if let Some(error) = self.error.take() {
            return Err(error);
        }
        self.ahead.clear();
        self.returned = 0;
        while self.ahead.len() < self.want && self.ahead.bytes() < BYTES_AHEAD {
            match self.scan.step(direction) {
                Ok(Some((key, value))) => {
                    if key.len() + value.len() >= LARGE {
                        self.large = true;
                        break;
                    }
                    self.ahead.push(key, value);
                }
                Ok(None) => break,
                Err(error) if self.ahead.len() == 0 => return Err(error),
                Err(error) => {
                    self.error = Some(error);
                    break;
                }
            }
        }
        self.want = (2 * self.want).min(MOST_AHEAD);
        Ok(())
    }

    /// Takes the scan back to where the iterator stands, to go on in the other direction.
    fn switch_direction(&mut self, direction: Direction) -> terrace::Result<()> {
        if self.returned < self.ahead.len() {
            let key = self.ahead.get(self.returned).0;
            self.scan.return_to(key, self.heading)?;
        } else if self.large {
            self.scan.return_to_entry(self.heading);
        }
        self.forget();
        // The direction may soon be switched again.
        self.want = 1;
        self.heading = direction;
        Ok(())
    }
}

impl Iterator {
    /// An iterator over `handle`'s database, as of `snapshot` or the present.
    pub(crate) fn open(
        py: Python<'_>,
        handle: &Arc<Handle>,
        prefix: &[u8],
        snapshot: Option<Snapshot>,
        keywords: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Self> {
        let options = IteratorOptions::parse(keywords, prefix)?;
        let (direction, shown) = (options.direction, options.shown);
        let scan = open_scan(py, handle, snapshot, options)?;
        Ok(Iterator {
            handle: handle.clone(),
            prefix: prefix.to_vec(),
            direction,
            shown,
            position: Mutex::new(Some(Position::new(scan))),
        })
    }

    fn lock<'a>(&'a self, py: Python<'_>) -> PyResult<MutexGuard<'a, Option<Position>>> {
        self.handle.check_open("the database or iterator")?;
        Ok(self.position.lock_py_attached(py).unwrap_or_else(PoisonError::into_inner))
    }

    /// Does `work` with the position.
    #[inline]
    fn with<T>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&mut Position) -> PyResult<T>,
    ) -> PyResult<T> {
        let mut guard = self.lock(py)?;
        work(guard.as_mut().ok_or_else(|| errors::closed("the database or iterator"))?)
    }

    fn step<'py>(
        &self,
        py: Python<'py>,
        direction: Direction,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        let parts = self.with(py, |position| {
            let next = match position.ready(direction) {
                Some(next) => next,
                None => {
                    self.handle.detached(py, || position.read(direction))?;
                    position.ready(direction).unwrap_or(Next::None)
                }
            };
            let entry = match next {
                Next::Ahead(at) => position.ahead.get(at),
                Next::AtScan => position.scan.entry(),
                Next::None => return Ok(None),
            };
            Parts::of(py, entry, self.shown).map(Some)
        })?;
        parts.map(|parts| parts.into_object(py)).transpose()
    }
}

/// Makes the scan of an iterator.
pub(crate) fn open_scan(
    py: Python<'_>,
    handle: &Handle,
    snapshot: Option<Snapshot>,
    mut options: IteratorOptions,
) -> PyResult<Scan> {
    let read = options.read_options(snapshot.as_ref());
    let cursor = handle.run(py, |db| db.cursor_with(&read))?;
    options.range.order = handle.comparator().cloned();
    Ok(Scan::new(cursor, options.range, options.direction))
}

#[pymethods]
impl Iterator {
    fn __iter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        self.step(py, self.direction)
    }

    /// Returns the entry before the position and moves before it.
    ///
    /// Raises `StopIteration` where there is none.
    fn prev<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let entry = self.step(py, self.direction.reversed())?;
        entry.ok_or_else(|| pyo3::exceptions::PyStopIteration::new_err(()))
    }

    /// Moves before the first entry of the range in the order of keys.
    fn seek_to_start(&self, py: Python<'_>) -> PyResult<()> {
        self.with(py, |position| {
            position.forget();
            position.scan.go_to_start();
            Ok(())
        })
    }

    /// Moves behind the last entry of the range in the order of keys.
    fn seek_to_stop(&self, py: Python<'_>) -> PyResult<()> {
        self.with(py, |position| {
            position.forget();
            position.scan.go_to_stop();
            Ok(())
        })
    }

    /// Moves before the first entry whose key is `target` or follows it. Outside of the range it
    /// moves to the end of the range that is nearer.
    fn seek(&self, py: Python<'_>, target: Bytes<'_>) -> PyResult<()> {
        let target = target.prefixed(&self.prefix);
        self.with(py, |position| {
            position.forget();
            self.handle.detached(py, || position.scan.seek(&target))
        })
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

    /// So that `Iterator[...]` may stand in annotations.
    #[classmethod]
    fn __class_getitem__<'py>(
        class: &Bound<'py, PyType>,
        item: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        protocol::generic_alias(class, item)
    }

    fn __reduce__(&self) -> PyResult<()> {
        protocol::refuse_pickle("Iterator")
    }
}

impl Drop for Iterator {
    fn drop(&mut self) {
        let position = self.position.get_mut().unwrap_or_else(PoisonError::into_inner).take();
        self.handle.release(position);
    }
}
