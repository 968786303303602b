//! Functions on databases that are not open.

use std::path::PathBuf;

use pyo3::prelude::*;
use pyo3::types::PyDict;
use terrace::Options;

use crate::errors;
use crate::handle::refuse_within_comparator;
use crate::options::OpenOptions;
use crate::path;
use crate::report;

/// Repairs the database in the directory `name` and returns what was found, as a dictionary.
///
/// A healthy database stays as it is. From a damaged one everything is saved that can be read;
/// damaged files move to the directory `lost` beside them. Takes the keywords of `DB`.
#[pyfunction]
#[pyo3(signature = (name, **options), text_signature = "(name, **options)")]
pub(crate) fn repair_db<'py>(
    py: Python<'py>,
    name: &Bound<'py, PyAny>,
    options: Option<&Bound<'py, PyDict>>,
) -> PyResult<Bound<'py, PyDict>> {
    let path = path::from_python(name)?;
    let options = OpenOptions::parse("repair_db", options)?;
    let report = checked(py, path, options, terrace::repair)?;
    report::repair(py, &report)
}

/// Removes the database in the directory `name`, and the directory if nothing else is in it.
///
/// Nothing happens if there is no database. Raises `BusyError` if it is open anywhere.
#[pyfunction]
pub(crate) fn destroy_db(py: Python<'_>, name: &Bound<'_, PyAny>) -> PyResult<()> {
    let path = path::from_python(name)?;
    refuse_within_comparator()?;
    py.detach(|| terrace::destroy(&path, &Options::new()))
        .map_err(|error| errors::to_python(py, &error))
}

/// Checks every file of the database in the directory `name`, which nobody may have open for
/// writing, and returns what was found, as a dictionary. Takes the keywords of `DB`.
#[pyfunction]
#[pyo3(signature = (name, **options), text_signature = "(name, **options)")]
pub(crate) fn verify_db<'py>(
    py: Python<'py>,
    name: &Bound<'py, PyAny>,
    options: Option<&Bound<'py, PyDict>>,
) -> PyResult<Bound<'py, PyDict>> {
    let path = path::from_python(name)?;
    let options = OpenOptions::parse("verify_db", options)?;
    let report = checked(py, path, options, terrace::verify)?;
    report::verification(py, &report)
}

/// Does `work` on a directory without the GIL.
fn checked<T: Send>(
    py: Python<'_>,
    path: PathBuf,
    OpenOptions { options, comparator, .. }: OpenOptions,
    work: impl FnOnce(PathBuf, &Options) -> terrace::Result<T> + Send,
) -> PyResult<T> {
    refuse_within_comparator()?;
    match &comparator {
        None => py.detach(|| work(path, &options)).map_err(|error| errors::to_python(py, &error)),
        Some(comparator) => comparator.guard(py, || work(path, &options)),
    }
}
