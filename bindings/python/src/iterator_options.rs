//! The keywords of `iterator` and `iter_many`.

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};
use terrace::{ReadOptions, Snapshot};

use crate::bytes::Bytes;
use crate::flag::flag;
use crate::scan::{Direction, Range};

/// What of an entry an iterator returns.
#[derive(Clone, Copy)]
pub(crate) struct Shown {
    pub(crate) key: bool,
    pub(crate) value: bool,
    /// Bytes of the prefix that is cut off every key.
    pub(crate) prefix_length: usize,
}

/// See the [module](self).
pub(crate) struct IteratorOptions {
    pub(crate) direction: Direction,
    pub(crate) range: Range,
    pub(crate) shown: Shown,
    fill_cache: bool,
}

/// The keywords as they were given.
struct Keywords {
    reverse: bool,
    start: Option<Vec<u8>>,
    stop: Option<Vec<u8>>,
    include_start: bool,
    include_stop: bool,
    prefix: Option<Vec<u8>>,
    include_key: bool,
    include_value: bool,
    fill_cache: bool,
}

impl Default for Keywords {
    fn default() -> Self {
        Keywords {
            reverse: false,
            start: None,
            stop: None,
            include_start: true,
            include_stop: false,
            prefix: None,
            include_key: true,
            include_value: true,
            fill_cache: true,
        }
    }
}

impl Keywords {
    fn set(&mut self, name: &str, value: &Bound<'_, PyAny>) -> PyResult<()> {
        let bytes = |value: &Bound<'_, PyAny>| -> PyResult<_> {
            let bytes: Option<Bytes<'_>> = value.extract()?;
            Ok(bytes.map(|bytes| bytes.as_slice().to_vec()))
        };
        match name {
            "reverse" => self.reverse = flag(name, value)?,
            "start" => self.start = bytes(value)?,
            "stop" => self.stop = bytes(value)?,
            "include_start" => self.include_start = flag(name, value)?,
            "include_stop" => self.include_stop = flag(name, value)?,
            "prefix" => self.prefix = bytes(value)?,
            "include_key" => self.include_key = flag(name, value)?,
            "include_value" => self.include_value = flag(name, value)?,
            // Blocks are always checked when they are loaded.
            "verify_checksums" => _ = flag(name, value)?,
            "fill_cache" => self.fill_cache = flag(name, value)?,
            _ => {
                let message = format!("iterator: unexpected keyword argument '{name}'");
                return Err(PyTypeError::new_err(message));
            }
        }
        Ok(())
    }

    /// The range, all keys of which begin with `db_prefix`.
    fn range(&mut self, db_prefix: &[u8]) -> PyResult<Range> {
        let (mut start, mut stop) = (self.start.take(), self.stop.take());
        if let Some(prefix) = &self.prefix {
            if start.is_some() || stop.is_some() {
                let message = "'prefix' cannot be used together with 'start' or 'stop'";
                return Err(PyTypeError::new_err(message));
            }
            return Ok(Range::prefix([db_prefix, prefix].concat()));
        }
        let (mut include_start, mut include_stop) = (self.include_start, self.include_stop);
        if !db_prefix.is_empty() {
            let whole = Range::prefix(db_prefix.to_vec());
            include_start |= start.is_none();
            include_stop &= stop.is_some();
            start = start.map(|key| [db_prefix, &key].concat()).or(whole.start);
            stop = stop.map(|key| [db_prefix, &key].concat()).or(whole.stop);
        }
        Ok(Range { start, stop, include_start, include_stop, order: None })
    }
}

impl IteratorOptions {
    /// Reads the keywords for an iterator over the keys that begin with `db_prefix`.
    pub(crate) fn parse(
        keywords: Option<&Bound<'_, PyDict>>,
        db_prefix: &[u8],
    ) -> PyResult<IteratorOptions> {
        let mut parsed = Keywords::default();
        for (name, value) in keywords.into_iter().flatten() {
            parsed.set(name.cast::<PyString>()?.to_str()?, &value)?;
        }
        let range = parsed.range(db_prefix)?;
        let direction = if parsed.reverse { Direction::Backward } else { Direction::Forward };
        let (key, value) = (parsed.include_key, parsed.include_value);
        let shown = Shown { key, value, prefix_length: db_prefix.len() };
        Ok(IteratorOptions { direction, range, shown, fill_cache: parsed.fill_cache })
    }

    /// How the engine reads for the iterator.
    pub(crate) fn read_options(&self, snapshot: Option<&Snapshot>) -> ReadOptions {
        read_options(snapshot, Some(self.fill_cache))
    }
}

/// How the engine reads as of `snapshot`, or the present.
pub(crate) fn read_options(snapshot: Option<&Snapshot>, fill_cache: Option<bool>) -> ReadOptions {
    let options = ReadOptions::new().fill_cache(fill_cache.unwrap_or(true));
    match snapshot {
        Some(snapshot) => options.snapshot(snapshot),
        None => options,
    }
}
