//! Gets, for every class that has them.

use std::cell::Cell;

use pyo3::prelude::*;
use pyo3::types::{PyAny, PyList};
use terrace::Snapshot;

use crate::bytes::{Bytes, to_python};
use crate::handle::Handle;
use crate::iterator_options::read_options;

/// Bytes that the buffer of a thread keeps at most.
const MOST_KEPT: usize = 256 << 10;

thread_local! {
    /// Where values are copied to without the GIL.
    static BUFFER: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

impl Handle {
    /// The value of `key`, if it has one.
    #[inline]
    pub(crate) fn get<'py>(
        &self,
        py: Python<'py>,
        key: &[u8],
        snapshot: Option<Snapshot>,
        fill_cache: Option<bool>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        let read = read_options(snapshot.as_ref(), fill_cache);
        let mut value = BUFFER.take();
        let is_there = self.run(py, |db| db.get_into_with(key, &mut value, &read))?;
        let result = if is_there { Some(to_python(py, &value)?.into_any()) } else { None };
        if value.capacity() <= MOST_KEPT {
            BUFFER.set(value);
        }
        Ok(result)
    }

    /// Whether `key` has a value.
    pub(crate) fn contains(
        &self,
        py: Python<'_>,
        key: &[u8],
        snapshot: Option<Snapshot>,
    ) -> PyResult<bool> {
        let read = read_options(snapshot.as_ref(), None);
        self.run(py, |db| db.contains_key_with(key, &read))
    }

    /// The values of `keys`, all as of one moment; `default` for those that have none.
    pub(crate) fn get_many<'py>(
        &self,
        py: Python<'py>,
        prefix: &[u8],
        keys: &Bound<'py, PyAny>,
        default: Option<Bound<'py, PyAny>>,
        snapshot: Option<Snapshot>,
        fill_cache: Option<bool>,
    ) -> PyResult<Bound<'py, PyList>> {
        self.check(py)?;
        let keys: Vec<Bytes<'_>> =
            keys.try_iter()?.map(|key| key?.extract()).collect::<PyResult<_>>()?;
        let keys: Vec<_> = keys.iter().map(|key| key.prefixed(prefix)).collect();
        let read = read_options(snapshot.as_ref(), fill_cache);
        let values = self.run(py, |db| db.multi_get_with(&keys, &read))?;
        let default = default.unwrap_or_else(|| py.None().into_bound(py));
        let list = PyList::empty(py);
        for value in values {
            match value {
                Some(value) => list.append(to_python(py, &value)?)?,
                None => list.append(&default)?,
            }
        }
        Ok(list)
    }
}
