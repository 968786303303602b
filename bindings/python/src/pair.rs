//! Pairs of `bytes`, of which iterators make millions.
//!
//! The only unsafe code of the crate.
#![allow(unsafe_code)]

use pyo3::ffi::PyObject_GC_UnTrack;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyTuple};

/// A tuple of two `bytes` objects, which the garbage collector does not look at: it refers to
/// nothing that could refer to it. The collector finds that out by itself, but only after it has
/// been started by every seven hundredth tuple and has gone through all of them.
#[inline]
pub(crate) fn pair<'py>(
    first: Bound<'py, PyBytes>,
    second: Bound<'py, PyBytes>,
) -> PyResult<Bound<'py, PyTuple>> {
    let tuple = PyTuple::new(first.py(), [first, second])?;
    // SAFETY: the pointer is that of a live tuple, a container object, which this thread alone
    // knows of, with the GIL held. Its items are `bytes`, so it can be part of no cycle, and tuples
    // never change. Removing a container from the collector's list is allowed at any time; its
    // deallocator does nothing about one that was removed before.
    unsafe { PyObject_GC_UnTrack(tuple.as_ptr().cast()) };
    Ok(tuple)
}
