//! Writes, for every class that has them.

use pyo3::exceptions::PyKeyError;
use pyo3::prelude::*;
use pyo3::types::{PyAny, PyMapping};
use terrace::{WriteBatch, WriteOptions};

use crate::bytes::BytesPair;
use crate::handle::Handle;

/// How durably a write is done.
pub(crate) fn write_options(sync: Option<bool>) -> WriteOptions {
    WriteOptions { sync: sync.unwrap_or(false) }
}

impl Handle {
    /// Sets `key` to `value`.
    #[inline]
    pub(crate) fn put(
        &self,
        py: Python<'_>,
        key: &[u8],
        value: &[u8],
        sync: Option<bool>,
    ) -> PyResult<()> {
        self.run(py, |db| db.put_with(key, value, write_options(sync)))
    }

    /// Removes `key`.
    #[inline]
    pub(crate) fn delete(&self, py: Python<'_>, key: &[u8], sync: Option<bool>) -> PyResult<()> {
        self.run(py, |db| db.delete_with(key, write_options(sync)))
    }

    /// Removes `key`, which the caller calls `shown`; `KeyError` if it is not there.
    pub(crate) fn delete_present(&self, py: Python<'_>, key: &[u8], shown: &[u8]) -> PyResult<()> {
        if !self.contains(py, key, None)? {
            return Err(PyKeyError::new_err(shown.to_vec()));
        }
        self.delete(py, key, None)
    }

    /// Applies every operation of `batch`, or none.
    pub(crate) fn write(
        &self,
        py: Python<'_>,
        batch: &WriteBatch,
        sync: Option<bool>,
    ) -> PyResult<()> {
        self.run(py, |db| db.write_with(batch, write_options(sync)))
    }
}

/// A batch that puts every entry of a mapping or of an iterable of pairs, below `prefix`.
pub(crate) fn batch_of(entries: &Bound<'_, PyAny>, prefix: &[u8]) -> PyResult<WriteBatch> {
    let mut batch = WriteBatch::new();
    let pairs = match entries.cast::<PyMapping>() {
        Ok(mapping) => mapping.items()?.into_any(),
        Err(_) => entries.clone(),
    };
    for pair in pairs.try_iter()? {
        let BytesPair(key, value) = pair?.extract()?;
        batch.put(key.prefixed(prefix), value);
    }
    Ok(batch)
}
