//! The keywords with which a database is opened or repaired.

use std::sync::Arc;

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyString};
use terrace::{BloomFilterPolicy, Compression, Options, RecoveryMode};

use crate::bytes::Bytes;
use crate::comparator::PyComparator;
use crate::flag::flag;

/// The engine's options, and the comparator in them.
pub(crate) struct OpenOptions {
    pub(crate) options: Options,
    pub(crate) comparator: Option<Arc<PyComparator>>,
    pub(crate) is_read_only: bool,
}

/// The parts of a comparator, which are given together.
#[derive(Default)]
struct ComparatorKeywords<'py> {
    callable: Option<Bound<'py, PyAny>>,
    name: Option<Bytes<'py>>,
}

impl OpenOptions {
    /// Reads the keywords of `function`. `None` stands for a default, but for `compression`.
    pub(crate) fn parse(function: &str, keywords: Option<&Bound<'_, PyDict>>) -> PyResult<Self> {
        let mut options = Options::new();
        let mut comparator = ComparatorKeywords::default();
        let mut is_read_only = false;
        for (name, value) in keywords.into_iter().flatten() {
            let name = name.cast::<PyString>()?.to_str()?.to_owned();
            match name.as_str() {
                "compression" => options = options.compression(compression(&value)?),
                _ if value.is_none() => check_name(function, &name)?,
                "read_only" => {
                    is_read_only = flag(&name, &value)?;
                    options = options.read_only(is_read_only);
                }
                "comparator" => comparator.callable = Some(value),
                "comparator_name" => comparator.name = Some(value.extract()?),
                _ => options = set(function, options, &name, &value)?,
            }
        }
        let comparator = comparator.finish()?;
        if let Some(comparator) = &comparator {
            options = options.comparator(comparator.clone());
        }
        Ok(OpenOptions { options, comparator, is_read_only })
    }
}

/// Every keyword but `name`.
const NAMES: [&str; 20] = [
    "create_if_missing",
    "error_if_exists",
    "paranoid_checks",
    "write_buffer_size",
    "max_open_files",
    "lru_cache_size",
    "block_size",
    "block_restart_interval",
    "max_file_size",
    "compression",
    "bloom_filter_bits",
    "comparator",
    "comparator_name",
    "read_only",
    "recovery_mode",
    "reuse_logs",
    "background_threads",
    "table_filter_bits",
    "compaction_rate_limit",
    "value_log",
];

fn check_name(function: &str, name: &str) -> PyResult<()> {
    if NAMES.contains(&name) {
        return Ok(());
    }
    let message = format!("{function}: unexpected keyword argument '{name}'");
    Err(PyTypeError::new_err(message))
}

/// Sets the option that is called `name`.
fn set(
    function: &str,
    options: Options,
    name: &str,
    value: &Bound<'_, PyAny>,
) -> PyResult<Options> {
    Ok(match name {
        "create_if_missing" => options.create_if_missing(flag(name, value)?),
        "error_if_exists" => options.error_if_exists(flag(name, value)?),
        // Plyvel's takes anything.
        "paranoid_checks" => options.paranoid_checks(value.is_truthy()?),
        "write_buffer_size" => options.write_buffer_size(value.extract()?),
        "max_open_files" => options.max_open_files(value.extract()?),
        "lru_cache_size" => options.block_cache_size(value.extract()?),
        "block_size" => options.block_size(value.extract()?),
        "block_restart_interval" => options.block_restart_interval(value.extract()?),
        "max_file_size" => options.max_file_size(value.extract()?),
        "bloom_filter_bits" => match usize::try_from(value.extract::<i64>()?) {
            Ok(bits @ 1..) => options.filter_policy(Some(Arc::new(BloomFilterPolicy::new(bits)))),
            _ => options,
        },
        "recovery_mode" => options.recovery_mode(recovery_mode(value)?),
        "reuse_logs" => options.reuse_logs(flag(name, value)?),
        "background_threads" => options.background_threads(value.extract()?),
        "table_filter_bits" => options.table_filter_bits(value.extract()?),
        "compaction_rate_limit" => options.compaction_rate_limit(value.extract()?),
        "value_log" => options.value_log(Some(value.extract()?)),
        _ => {
            check_name(function, name)?;
            options
        }
    })
}

fn compression(value: &Bound<'_, PyAny>) -> PyResult<Compression> {
    if value.is_none() {
        return Ok(Compression::None);
    }
    let name = match value.cast::<PyBytes>() {
        Ok(bytes) => String::from_utf8_lossy(bytes.as_bytes()).into_owned(),
        Err(_) => text("compression", value)?,
    };
    match Compression::from_name(&name) {
        Some(compression) if compression != Compression::None => Ok(compression),
        _ => Err(PyValueError::new_err("'compression' must be None, 'snappy', 'lz4' or 'zstd'")),
    }
}

fn recovery_mode(value: &Bound<'_, PyAny>) -> PyResult<RecoveryMode> {
    match text("recovery_mode", value)?.as_str() {
        "prefix" => Ok(RecoveryMode::Prefix),
        "strict" => Ok(RecoveryMode::Strict),
        "salvage" => Ok(RecoveryMode::Salvage),
        _ => Err(PyValueError::new_err("'recovery_mode' must be 'prefix', 'strict' or 'salvage'")),
    }
}

fn text(name: &str, value: &Bound<'_, PyAny>) -> PyResult<String> {
    let text = value.cast::<PyString>();
    let text = text.map_err(|_| PyTypeError::new_err(format!("'{name}' must be a string")))?;
    Ok(text.to_str()?.to_owned())
}

impl ComparatorKeywords<'_> {
    fn finish(self) -> PyResult<Option<Arc<PyComparator>>> {
        match (self.callable, self.name) {
            (None, None) => Ok(None),
            (Some(callable), Some(name)) if callable.is_callable() => {
                Ok(Some(Arc::new(PyComparator::new(name.as_slice(), callable.unbind()))))
            }
            (Some(_), Some(_)) => {
                Err(PyTypeError::new_err("custom comparator object must be callable"))
            }
            _ => Err(PyValueError::new_err(
                "'comparator' and 'comparator_name' must be specified together",
            )),
        }
    }
}
