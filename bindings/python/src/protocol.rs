//! Protocols of Python's that several classes share.

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyType;

/// What `__reduce__` of every class does: no object of this package can be pickled or copied, as it
/// stands for an open database.
pub(crate) fn refuse_pickle(class: &str) -> PyResult<()> {
    Err(PyTypeError::new_err(format!(
        "cannot pickle or copy a terrace.{class}: it belongs to a database that is open in this \
         process; open the database where it is needed"
    )))
}

/// What `__class_getitem__` of generic classes returns.
pub(crate) fn generic_alias<'py>(
    class: &Bound<'py, PyType>,
    item: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyAny>> {
    class.py().import("types")?.getattr("GenericAlias")?.call1((class, item))
}
