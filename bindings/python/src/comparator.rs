//! An order of keys that is a function in Python.
//!
//! The engine calls it from any thread, its background threads included. None of them has the GIL
//! then, since all calls of the engine are made detached.
//!
//! # Invariants
//! 1. After an exception the function is never called again and no comparison returns: each panics,
//!    which the engine takes for the end of all writing. So an order that contradicts itself never
//!    reaches a file.
//! 2. Within the function, databases raise instead of working: the thread may hold locks of the
//!    engine.

use std::cell::Cell;
use std::cmp::Ordering;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{self, AtomicBool};
use std::sync::{Mutex, PoisonError};

use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::errors;

thread_local!(static COMPARES: Cell<bool> = const { Cell::new(false) });

/// Whether this thread is within a comparator.
#[inline]
pub(crate) fn is_comparing() -> bool {
    COMPARES.get()
}

/// What unwinds through the engine after an exception.
struct Raised;

/// A callable with a name, as a comparator of the engine.
pub(crate) struct PyComparator {
    name: Vec<u8>,
    shown_name: String,
    callable: Py<PyAny>,
    has_failed: AtomicBool,
    /// The exception, until it is raised once.
    exception: Mutex<Option<PyErr>>,
}

impl PyComparator {
    pub(crate) fn new(name: &[u8], callable: Py<PyAny>) -> Self {
        PyComparator {
            name: name.to_vec(),
            shown_name: String::from_utf8_lossy(name).into_owned(),
            callable,
            has_failed: AtomicBool::new(false),
            exception: Mutex::new(None),
        }
    }

    /// Fails if the function has raised.
    pub(crate) fn check(&self, py: Python<'_>) -> PyResult<()> {
        if self.has_failed.load(atomic::Ordering::Relaxed) { Err(self.failure(py)) } else { Ok(()) }
    }

    /// The exception that the function raised; from the second time on an `Error` that says so.
    #[cold]
    pub(crate) fn failure(&self, py: Python<'_>) -> PyErr {
        let exception = self.exception.lock().unwrap_or_else(PoisonError::into_inner).take();
        exception.unwrap_or_else(|| {
            let name = &self.shown_name;
            errors::general(
                py,
                format!("the comparator {name} has raised: the database has to be opened again"),
            )
        })
    }

    /// Does `work` with the engine. The exception if the function has raised meanwhile, here or on
    /// a background thread that made the work fail.
    pub(crate) fn guard<T>(
        &self,
        py: Python<'_>,
        work: impl FnOnce() -> terrace::Result<T> + Send,
    ) -> PyResult<T>
    where
        T: Send,
    {
        match py.detach(|| catch_unwind(AssertUnwindSafe(work))) {
            Ok(Ok(result)) => Ok(result),
            Ok(Err(_)) if self.has_failed.load(atomic::Ordering::Relaxed) => Err(self.failure(py)),
            Ok(Err(error)) => Err(errors::to_python(py, &error)),
            Err(panic) if panic.is::<Raised>() => Err(self.failure(py)),
            Err(panic) => resume_unwind(panic),
        }
    }

    fn call(&self, py: Python<'_>, a: &[u8], b: &[u8]) -> PyResult<Ordering> {
        let result = self.callable.bind(py).call1((PyBytes::new(py, a), PyBytes::new(py, b)))?;
        Ok(result.extract::<i64>()?.cmp(&0))
    }

    /// Takes note of an exception, unless there was one before.
    #[cold]
    fn fail(&self, exception: PyErr) {
        if !self.has_failed.swap(true, atomic::Ordering::Relaxed) {
            *self.exception.lock().unwrap_or_else(PoisonError::into_inner) = Some(exception);
        }
    }
}

impl terrace::Comparator for PyComparator {
    fn name(&self) -> &str {
        &self.shown_name
    }

    fn name_bytes(&self) -> &[u8] {
        &self.name
    }

    fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        if self.has_failed.load(atomic::Ordering::Relaxed) {
            resume_unwind(Box::new(Raised));
        }
        let before = COMPARES.replace(true);
        let result = Python::try_attach(|py| self.call(py, a, b));
        COMPARES.set(before);
        match result {
            Some(Ok(ordering)) => ordering,
            Some(Err(exception)) => {
                self.fail(exception);
                // Past the panic hook: this is no defect of the program's.
                resume_unwind(Box::new(Raised))
            }
            // The interpreter has ended, and the process is about to. There is no order any more.
            None => loop {
                std::thread::park();
            },
        }
    }
}
