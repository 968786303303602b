//! Bytes from Python, and bytes for Python.

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyBytes, PyMemoryView, PyTuple};

/// Values from this size on report a failed allocation as `MemoryError`.
const LARGE: usize = 1 << 20;

/// A bytes-like argument.
pub(crate) enum Bytes<'py> {
    /// A `bytes` object, which never changes.
    Shared(Bound<'py, PyBytes>),
    /// A copy of anything else with a buffer: other threads might change that.
    Copied(Vec<u8>),
}

impl Bytes<'_> {
    pub(crate) fn as_slice(&self) -> &[u8] {
        match self {
            Bytes::Shared(bytes) => bytes.as_bytes(),
            Bytes::Copied(bytes) => bytes,
        }
    }

    /// The bytes with `prefix` in front; where they lie if there is none.
    pub(crate) fn prefixed<'a>(&'a self, prefix: &[u8]) -> std::borrow::Cow<'a, [u8]> {
        if prefix.is_empty() {
            return self.as_slice().into();
        }
        [prefix, self.as_slice()].concat().into()
    }
}

impl AsRef<[u8]> for Bytes<'_> {
    fn as_ref(&self) -> &[u8] {
        self.as_slice()
    }
}

impl<'py> FromPyObject<'_, 'py> for Bytes<'py> {
    type Error = PyErr;

    #[inline]
    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        match object.cast::<PyBytes>() {
            Ok(bytes) => Ok(Bytes::Shared(bytes.to_owned())),
            Err(_) => copied(&object),
        }
    }
}

/// A pair of bytes-like arguments, in a sequence or another iterable.
pub(crate) struct BytesPair<'py>(pub(crate) Bytes<'py>, pub(crate) Bytes<'py>);

impl<'py> FromPyObject<'_, 'py> for BytesPair<'py> {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        if let Ok(tuple) = object.cast::<PyTuple>() {
            let (first, second) = tuple.extract()?;
            return Ok(BytesPair(first, second));
        }
        // No more than tells that there are too many.
        let items: Vec<_> = object.try_iter()?.take(3).collect::<PyResult<_>>()?;
        match items.as_slice() {
            [first, second] => Ok(BytesPair(first.extract()?, second.extract()?)),
            _ => Err(PyValueError::new_err("a pair has two items")),
        }
    }
}

#[cold]
fn copied<'py>(object: &Bound<'py, PyAny>) -> PyResult<Bytes<'py>> {
    if let Ok(bytes) = object.cast::<PyByteArray>() {
        return Ok(Bytes::Copied(bytes.to_vec()));
    }
    let Ok(view) = PyMemoryView::from(object) else {
        let name = object.get_type().name()?;
        return Err(PyTypeError::new_err(format!("a bytes-like object is required, not '{name}'")));
    };
    Ok(Bytes::Shared(view.call_method0("tobytes")?.cast_into::<PyBytes>()?))
}

/// A `bytes` object of what the engine returned. `MemoryError` if there is no room for it.
#[inline]
pub(crate) fn to_python<'py>(py: Python<'py>, bytes: &[u8]) -> PyResult<Bound<'py, PyBytes>> {
    if bytes.len() < LARGE {
        return Ok(PyBytes::new(py, bytes));
    }
    PyBytes::new_with(py, bytes.len(), |object| {
        object.copy_from_slice(bytes);
        Ok(())
    })
}
