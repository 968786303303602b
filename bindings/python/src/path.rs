//! Paths from Python: `str`, `bytes` or `os.PathLike`.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use pyo3::prelude::*;
use pyo3::types::PyBytes;

/// The path that `name` is. `TypeError` if it is none.
pub(crate) fn from_python(name: &Bound<'_, PyAny>) -> PyResult<PathBuf> {
    let path = name.py().import("os")?.call_method1("fspath", (name,))?;
    match path.cast::<PyBytes>() {
        Ok(bytes) => Ok(OsStr::from_bytes(bytes.as_bytes()).into()),
        Err(_) => Ok(path.extract::<OsString>()?.into()),
    }
}
