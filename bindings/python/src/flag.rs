//! Keywords that are true or false.

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;

/// The value of the keyword `name`. Like plyvel's, it is a `bool`, or `None` for false.
pub(crate) fn flag(name: &str, value: &Bound<'_, PyAny>) -> PyResult<bool> {
    if value.is_none() {
        return Ok(false);
    }
    value.extract().map_err(|_| match value.get_type().name() {
        Ok(got) => {
            let message = format!("'{name}' must be a bool, not '{got}'");
            PyTypeError::new_err(message)
        }
        Err(exception) => exception,
    })
}
