//! Entries that were read ahead without the GIL, on their way to Python objects.

use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::bytes::to_python;
use crate::iterator_options::Shown;
use crate::pair::pair;

/// Keys and values one behind the other.
#[derive(Default)]
pub(crate) struct EntryBuffer {
    bytes: Vec<u8>,
    /// Where each key ends and where its value does.
    ends: Vec<(usize, usize)>,
}

impl EntryBuffer {
    pub(crate) fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
    }

    #[inline]
    pub(crate) fn push(&mut self, key: &[u8], value: &[u8]) {
        self.bytes.reserve(key.len() + value.len());
        self.bytes.extend_from_slice(key);
        let key_end = self.bytes.len();
        self.bytes.extend_from_slice(value);
        self.ends.push((key_end, self.bytes.len()));
    }

    /// The number of entries.
    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }

    /// The bytes of all entries.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes.len()
    }

    /// An entry that is there.
    #[inline]
    pub(crate) fn get(&self, at: usize) -> (&[u8], &[u8]) {
        let start = if at == 0 { 0 } else { self.ends[at - 1].1 };
        let (key_end, end) = self.ends[at];
        (&self.bytes[start..key_end], &self.bytes[key_end..end])
    }
}

impl EntryBuffer {
    /// All entries.
    pub(crate) fn iter(&self) -> impl ExactSizeIterator<Item = (&[u8], &[u8])> {
        let mut start = 0;
        self.ends.iter().map(move |&(key_end, end)| {
            let key = &self.bytes[start..key_end];
            start = end;
            (key, &self.bytes[key_end..end])
        })
    }
}

/// What an iterator returns of an entry, but for the tuple. A collection of garbage may begin when a
/// container is made, up to Python 3.11, and run any code of the program's: that must not be under a
/// lock.
pub(crate) enum Parts<'py> {
    Both(Bound<'py, PyBytes>, Bound<'py, PyBytes>),
    One(Bound<'py, PyBytes>),
    Neither,
}

impl<'py> Parts<'py> {
    #[inline]
    pub(crate) fn of(
        py: Python<'py>,
        (key, value): (&[u8], &[u8]),
        shown: Shown,
    ) -> PyResult<Self> {
        let key = key.get(shown.prefix_length..).unwrap_or_default();
        Ok(match (shown.key, shown.value) {
            (true, true) => Parts::Both(to_python(py, key)?, to_python(py, value)?),
            (true, false) => Parts::One(to_python(py, key)?),
            (false, true) => Parts::One(to_python(py, value)?),
            (false, false) => Parts::Neither,
        })
    }

    /// A pair, a key, a value or `None`.
    #[inline]
    pub(crate) fn into_object(self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        Ok(match self {
            Parts::Both(key, value) => pair(key, value)?.into_any(),
            Parts::One(part) => part.into_any(),
            Parts::Neither => py.None().into_bound(py),
        })
    }
}

/// Parts of an entry as one object. The caller holds no lock.
#[inline]
pub(crate) fn shown<'py>(
    py: Python<'py>,
    entry: (&[u8], &[u8]),
    shown: Shown,
) -> PyResult<Bound<'py, PyAny>> {
    Parts::of(py, entry, shown)?.into_object(py)
}
