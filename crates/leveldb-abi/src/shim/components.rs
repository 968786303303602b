//! Comparators, filter policies and loggers of C++ programs, as the engine calls them.

use std::cmp::Ordering;
use std::ffi::{c_int, c_void};
use std::sync::Arc;

use terrace::{BloomFilterPolicy, Comparator, FilterPolicy, Logger};

use super::calls::{ComparatorCalls, FilterCalls, LoggerCalls};
use super::outcome::{Bytes, Put, Sink, extend_vec, replace_vec};
use crate::guard::export;
use crate::memory::{Name, address};

/// The address of a `Vec<u8>` that C++ hands back with bytes for it.
fn target(vec: &mut Vec<u8>) -> *mut c_void {
    std::ptr::from_mut(vec).cast()
}

/// A comparator of the program's.
pub(super) struct CustomComparator {
    calls: ComparatorCalls,
    name: Name,
}

// SAFETY: LevelDB's header asks of comparators that any thread may call them.
unsafe impl Send for CustomComparator {}
// SAFETY: likewise.
unsafe impl Sync for CustomComparator {}

impl CustomComparator {
    /// # Safety
    /// The object outlives the result.
    pub(super) unsafe fn adapter(calls: ComparatorCalls) -> Option<Arc<dyn Comparator>> {
        if calls.object.is_null() {
            return None;
        }
        // SAFETY: the name of a comparator is a C string.
        let name = unsafe { Name::copied_from(calls.name) };
        Some(Arc::new(CustomComparator { calls, name }))
    }
}

impl Comparator for CustomComparator {
    fn name(&self) -> &str {
        self.name.text()
    }

    fn name_bytes(&self) -> &[u8] {
        self.name.bytes()
    }

    fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        let Some(compare) = self.calls.compare else { return a.cmp(b) };
        // SAFETY: the object is alive, by `adapter`.
        unsafe { compare(self.calls.object, Bytes::of(a), Bytes::of(b)) }.cmp(&0)
    }

    fn find_shortest_separator(&self, start: &mut Vec<u8>, limit: &[u8]) {
        let Some(shorten) = self.calls.shortest_separator else { return };
        let mut shorter = Vec::new();
        // SAFETY: as above; the target is the vector that `replace_vec` expects.
        unsafe {
            shorten(
                self.calls.object,
                Bytes::of(start),
                Bytes::of(limit),
                target(&mut shorter),
                replace_vec,
            )
        };
        *start = shorter;
    }

    fn find_short_successor(&self, key: &mut Vec<u8>) {
        let Some(shorten) = self.calls.short_successor else { return };
        let mut shorter = Vec::new();
        // SAFETY: as above.
        unsafe { shorten(self.calls.object, Bytes::of(key), target(&mut shorter), replace_vec) };
        *key = shorter;
    }
}

/// A filter policy of the program's.
pub(super) struct BloomOrCustom {
    calls: FilterCalls,
    name: Name,
}

// SAFETY: LevelDB's header asks of filter policies that any thread may call them.
unsafe impl Send for BloomOrCustom {}
// SAFETY: likewise.
unsafe impl Sync for BloomOrCustom {}

impl BloomOrCustom {
    /// # Safety
    /// The object outlives the result.
    pub(super) unsafe fn adapter(calls: FilterCalls) -> Option<Arc<dyn FilterPolicy>> {
        if calls.object.is_null() {
            let bits = usize::try_from(calls.bloom_bits).ok()?;
            return Some(Arc::new(BloomFilterPolicy::new(bits)));
        }
        // SAFETY: the name of a filter policy is a C string.
        let name = unsafe { Name::copied_from(calls.name) };
        Some(Arc::new(BloomOrCustom { calls, name }))
    }
}

impl FilterPolicy for BloomOrCustom {
    fn name(&self) -> &str {
        self.name.text()
    }

    fn name_bytes(&self) -> &[u8] {
        self.name.bytes()
    }

    fn create_filter(&self, keys: &[&[u8]], dst: &mut Vec<u8>) {
        let Some(create) = self.calls.create else { return };
        let keys: Vec<Bytes> = keys.iter().map(|key| Bytes::of(key)).collect();
        // SAFETY: the object is alive, by `adapter`; the target is the vector that `extend_vec`
        // expects.
        unsafe { create(self.calls.object, keys.as_ptr(), keys.len(), target(dst), extend_vec) };
    }

    fn key_may_match(&self, key: &[u8], filter: &[u8]) -> bool {
        let Some(may_match) = self.calls.may_match else { return true };
        // SAFETY: as above.
        unsafe { may_match(self.calls.object, Bytes::of(key), Bytes::of(filter)) != 0 }
    }
}

/// A logger of the program's.
pub(super) struct LoggerAdapter(pub(super) LoggerCalls);

// SAFETY: LevelDB calls loggers from any thread.
unsafe impl Send for LoggerAdapter {}
// SAFETY: likewise.
unsafe impl Sync for LoggerAdapter {}

impl LoggerAdapter {
    /// # Safety
    /// The object outlives the result.
    pub(super) unsafe fn adapter(calls: LoggerCalls) -> Option<Arc<dyn Logger>> {
        (!calls.object.is_null()).then(|| Arc::new(LoggerAdapter(calls)) as Arc<dyn Logger>)
    }
}

impl Logger for LoggerAdapter {
    fn log(&self, message: &str) {
        if let Some(log) = self.0.log {
            // SAFETY: the object is alive, by `adapter`.
            unsafe { log(self.0.object, address(message.as_bytes()), message.len()) };
        }
    }
}

fn bloom(bits: c_int) -> BloomFilterPolicy {
    BloomFilterPolicy::new(usize::try_from(bits).unwrap_or(0))
}

export! {
    /// Makes a filter of LevelDB's kind.
    fn shim_bloom_create(bits: c_int, keys: *const Bytes, count: usize, to: *mut c_void, put: Put) {
        let keys: Vec<&[u8]> = (0..count).map(|at| (*keys.add(at)).get()).collect();
        let mut filter = Vec::new();
        bloom(bits).create_filter(&keys, &mut filter);
        Sink::new(to, put).put(&filter);
    }

    /// Asks a filter of LevelDB's kind.
    fn shim_bloom_may_match(bits: c_int, key: Bytes, filter: Bytes) -> u8 {
        bloom(bits).key_may_match(key.get(), filter.get()).into()
    }
}
