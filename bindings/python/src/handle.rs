//! An open database, shared by the `DB` and by everything that was made of it.
//!
//! All calls of the engine go through a [`Handle`]: it raises what a closed database raises, and
//! releases the GIL. The engine's handle is taken out of it only to be closed.

use std::mem::ManuallyDrop;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use terrace::Db;

use crate::comparator::{PyComparator, is_comparing};
use crate::errors;
use crate::options::OpenOptions;

/// See the [module](self).
pub(crate) struct Handle {
    /// Locked with the GIL only and for moments, so that a fork finds it free.
    db: Mutex<Option<Db>>,
    is_open: AtomicBool,
    /// Set once the database is closed.
    closed: OnceLock<()>,
    /// The process that closes it, or has.
    closed_by: AtomicU32,
    comparator: Option<Arc<PyComparator>>,
}

/// Databases with a comparator of Python's, which have to end before the interpreter does.
static COMPARED: Mutex<Vec<Weak<Handle>>> = Mutex::new(Vec::new());

impl Handle {
    /// Opens the database.
    pub(crate) fn open(
        py: Python<'_>,
        path: std::path::PathBuf,
        options: OpenOptions,
    ) -> PyResult<Arc<Self>> {
        let OpenOptions { options, comparator, .. } = options;
        refuse_within_comparator()?;
        let open = || Db::open(path, options);
        let db = match &comparator {
            None => py.detach(open).map_err(|error| errors::to_python(py, &error))?,
            Some(comparator) => comparator.guard(py, open)?,
        };
        let has_comparator = comparator.is_some();
        let handle = Arc::new(Handle {
            db: Mutex::new(Some(db)),
            is_open: AtomicBool::new(true),
            closed: OnceLock::new(),
            closed_by: AtomicU32::new(0),
            comparator,
        });
        if has_comparator {
            let mut compared = COMPARED.lock().unwrap_or_else(PoisonError::into_inner);
            compared.retain(|handle| handle.strong_count() > 0);
            compared.push(Arc::downgrade(&handle));
        }
        Ok(handle)
    }

    pub(crate) fn comparator(&self) -> Option<&Arc<PyComparator>> {
        self.comparator.as_ref()
    }

    pub(crate) fn is_open(&self) -> bool {
        self.is_open.load(Ordering::Relaxed)
    }

    /// Fails if the database is closed or cannot be used.
    #[inline]
    pub(crate) fn check(&self, py: Python<'_>) -> PyResult<()> {
        self.check_open("the database")?;
        match &self.comparator {
            None => Ok(()),
            Some(comparator) => comparator.check(py),
        }
    }

    /// Fails if the database is closed, naming `what` was asked.
    #[inline]
    pub(crate) fn check_open(&self, what: &str) -> PyResult<()> {
        refuse_within_comparator()?;
        if self.is_open() { Ok(()) } else { Err(errors::closed(what)) }
    }

    /// Does `work` with the database, without the GIL.
    #[inline]
    pub(crate) fn run<T: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&Db) -> terrace::Result<T> + Send,
    ) -> PyResult<T> {
        self.check(py)?;
        let db = self.db.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let db = db.ok_or_else(|| errors::closed("the database"))?;
        self.detached(py, move || work(&db))
    }

    /// Does `work` with something that was made of the database, without the GIL.
    #[inline]
    pub(crate) fn detached<T: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce() -> terrace::Result<T> + Send,
    ) -> PyResult<T> {
        match &self.comparator {
            None => py.detach(work).map_err(|error| errors::to_python(py, &error)),
            Some(comparator) => comparator.guard(py, work),
        }
    }

    /// Closes the database. Nothing happens if it is closed; while another thread closes it, waits
    /// for that.
    pub(crate) fn close(&self, py: Python<'_>) -> PyResult<()> {
        refuse_within_comparator()?;
        self.is_open.store(false, Ordering::Relaxed);
        let mut guard = self.db.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(db) = guard.take() else {
            drop(guard);
            // In the child of a fork the thread that was closing does not exist.
            if self.closed_by.load(Ordering::Relaxed) == std::process::id() {
                py.detach(|| self.closed.wait());
            }
            return Ok(());
        };
        self.closed_by.store(std::process::id(), Ordering::Relaxed);
        drop(guard);
        let closing = Closing(&self.closed);
        self.detached(py, move || {
            // Dropped last, and before the GIL is taken again: a daemon thread does not get it back
            // once the interpreter finalizes.
            let _closing = closing;
            // A clone stays until it is closed: the drop of the last one waits for that.
            let db = db;
            db.clone().close()
        })
    }

    /// Drops what was made of the database. It may wait for a thread that compares, which needs
    /// the GIL.
    pub(crate) fn release<T: Send + 'static>(&self, made: T) {
        if self.comparator.is_none() {
            drop(made);
        } else {
            drop_detached(made);
        }
    }
}

/// Wakes those who wait for a close, however it ends.
struct Closing<'a>(&'a OnceLock<()>);

impl Drop for Closing<'_> {
    fn drop(&mut self) {
        // Set nowhere else.
        let _ = self.0.set(());
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        let db = self.db.get_mut().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(db) = db {
            drop_detached(db);
        }
    }
}

/// Drops without the GIL.
fn drop_detached<T: Send + 'static>(value: T) {
    // The last reference to a database may go within a comparator, by a collection of garbage.
    // Closing it there could wait for the very job that compares. Where there is no thread to be
    // had for it, it goes with the process.
    if is_comparing() {
        let value = ManuallyDrop::new(value);
        let close = move || drop(ManuallyDrop::into_inner(value));
        let _ = std::thread::Builder::new().name("terrace-close".to_owned()).spawn(close);
        return;
    }
    let mut value = Some(value);
    // Once the interpreter has ended there is nothing to detach from.
    Python::try_attach(|py| {
        let value = value.take();
        py.detach(|| {
            // In an object's end nobody can be told of an exception.
            let _ = catch_unwind(AssertUnwindSafe(|| drop(value)));
        });
    });
}

/// Fails within a comparator: the thread may hold locks of the engine.
#[inline]
pub(crate) fn refuse_within_comparator() -> PyResult<()> {
    if is_comparing() {
        return Err(PyRuntimeError::new_err("a comparator must not use a database"));
    }
    Ok(())
}

/// Has databases with comparators closed before the interpreter ends: background threads could not
/// compare any more.
pub(crate) fn close_at_exit(py: Python<'_>) -> PyResult<()> {
    let close = pyo3::wrap_pyfunction!(close_compared, py)?;
    py.import("atexit")?.call_method1("register", (close,))?;
    Ok(())
}

#[pyfunction]
fn close_compared(py: Python<'_>) {
    let compared = std::mem::take(&mut *COMPARED.lock().unwrap_or_else(PoisonError::into_inner));
    for handle in compared.iter().filter_map(Weak::upgrade) {
        // Nobody is left to be told.
        let _ = handle.close(py);
    }
}
