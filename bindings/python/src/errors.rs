//! Errors of the engine as exceptions of Python.
//!
//! The classes are those of `terrace/_errors.py`: plyvel's, and a few below them. The text is the
//! engine's, which names the file and, where known, the offset.

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyType;
use terrace::{Error, ErrorKind};

macro_rules! classes {
    ($($function:ident: $name:literal;)*) => {
        $(fn $function(py: Python<'_>) -> PyResult<&Bound<'_, PyType>> {
            static CLASS: PyOnceLock<Py<PyType>> = PyOnceLock::new();
            CLASS.import(py, "terrace._errors", $name)
        })*
    };
}

classes! {
    base_class: "Error";
    io_class: "IOError";
    busy_class: "BusyError";
    corruption_class: "CorruptionError";
    conflict_class: "ConflictError";
    not_supported_class: "NotSupportedError";
    iterator_invalid_class: "IteratorInvalidError";
}

/// The exception for `error`.
#[cold]
pub(crate) fn to_python(py: Python<'_>, error: &Error) -> PyErr {
    let class = match error.kind() {
        ErrorKind::Closed => return PyRuntimeError::new_err(error.message().to_owned()),
        ErrorKind::Corruption => corruption_class(py),
        ErrorKind::Busy => busy_class(py),
        ErrorKind::Conflict => conflict_class(py),
        ErrorKind::NotSupported => not_supported_class(py),
        ErrorKind::Io => io_class(py),
        // A file that is not there, rather than a key.
        ErrorKind::NotFound if error.raw_os_error().is_some() => io_class(py),
        _ => base_class(py),
    };
    let text = error.to_string();
    match (class, error.raw_os_error()) {
        (Err(missing), _) => missing,
        // `OSError` makes `errno` and `strerror` of two arguments.
        (Ok(class), Some(number))
            if matches!(error.kind(), ErrorKind::Io | ErrorKind::NotFound) =>
        {
            PyErr::from_type(class.clone(), (number, text))
        }
        (Ok(class), _) => PyErr::from_type(class.clone(), (text,)),
    }
}

/// `Error`, for what has no class of its own.
#[cold]
pub(crate) fn general(py: Python<'_>, text: impl Into<String>) -> PyErr {
    match base_class(py) {
        Ok(class) => PyErr::from_type(class.clone(), (text.into(),)),
        Err(missing) => missing,
    }
}

/// What an open raises where the directory `name` cannot be written, whatever else was wrong with
/// it: LevelDB takes its lock there before it looks.
#[cold]
pub(crate) fn no_permission(py: Python<'_>, name: &Bound<'_, PyAny>, exception: PyErr) -> PyErr {
    let explain = || -> PyResult<PyErr> {
        if !exception.get_type(py).is(base_class(py)?) {
            return Ok(exception.clone_ref(py));
        }
        let number = py.import("errno")?.getattr("EACCES")?;
        let text = format!("I/O error: the directory {} cannot be written", name.repr()?);
        let explained = PyErr::from_type(io_class(py)?.clone(), (number.unbind(), text));
        explained.set_cause(py, Some(exception.clone_ref(py)));
        Ok(explained)
    };
    explain().unwrap_or_else(|error| error)
}

/// What a `RawIterator` raises that is at no entry.
#[cold]
pub(crate) fn iterator_invalid(py: Python<'_>) -> PyErr {
    match iterator_invalid_class(py) {
        Ok(class) => PyErr::from_type(class.clone(), ("the iterator is at no entry",)),
        Err(missing) => missing,
    }
}

/// What a closed object raises.
#[cold]
pub(crate) fn closed(what: &str) -> PyErr {
    PyRuntimeError::new_err(format!("{what} is closed"))
}
