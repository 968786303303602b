//! Components of options: comparators, filter policies, caches and the environment; and the small
//! functions.

use std::cmp::Ordering;
use std::ffi::{c_char, c_int, c_void};
use std::fmt;
use std::sync::Arc;

use terrace::{BlockCache, BloomFilterPolicy, Comparator, FilterPolicy};

use crate::guard::export;
use crate::memory::{Name, address, bytes, hand_out, malloc_c_string, release};
use crate::options::test_directory;

// A C++ exception in one of these ends the process at the next frame that may not unwind, which is
// defined: for functions that are declared `extern "C"` it would not be.
type Destructor = unsafe extern "C-unwind" fn(*mut c_void);
type Compare =
    unsafe extern "C-unwind" fn(*mut c_void, *const c_char, usize, *const c_char, usize) -> c_int;
type GetName = unsafe extern "C-unwind" fn(*mut c_void) -> *const c_char;
type CreateFilter = unsafe extern "C-unwind" fn(
    *mut c_void,
    *const *const c_char,
    *const usize,
    c_int,
    *mut usize,
) -> *mut c_char;
type KeyMayMatch =
    unsafe extern "C-unwind" fn(*mut c_void, *const c_char, usize, *const c_char, usize) -> u8;

/// The caller's functions and what they are called with. The header asks of callers that the
/// functions may be called from any thread, which is what makes the implementations of `Send` and
/// `Sync` right.
#[derive(Clone, Copy)]
struct ComparatorCalls {
    state: *mut c_void,
    compare: Compare,
}

// SAFETY: see the type: a comparator is called from background threads in LevelDB too.
unsafe impl Send for ComparatorCalls {}
// SAFETY: likewise.
unsafe impl Sync for ComparatorCalls {}

/// `leveldb_comparator_t`.
pub struct CComparator {
    calls: ComparatorCalls,
    destructor: Option<Destructor>,
    name: GetName,
}

impl CComparator {
    /// The comparator as the engine calls it.
    ///
    /// # Safety
    /// The result is not used after `leveldb_comparator_destroy`.
    pub(super) unsafe fn adapter(&self) -> Arc<dyn Comparator> {
        // SAFETY: the header asks for a function that returns a C string.
        let name = unsafe { Name::copied_from((self.name)(self.calls.state)) };
        Arc::new(ComparatorAdapter { calls: self.calls, name })
    }
}

impl fmt::Debug for CComparator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CComparator").finish_non_exhaustive()
    }
}

/// A C comparator. It cannot shorten keys; LevelDB's cannot either.
struct ComparatorAdapter {
    calls: ComparatorCalls,
    name: Name,
}

impl Comparator for ComparatorAdapter {
    fn name(&self) -> &str {
        self.name.text()
    }

    fn name_bytes(&self) -> &[u8] {
        self.name.bytes()
    }

    fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        let ComparatorCalls { state, compare } = self.calls;
        // SAFETY: the function and its state live until the comparator is destroyed, after the
        // database.
        unsafe { compare(state, address(a), a.len(), address(b), b.len()) }.cmp(&0)
    }
}

/// See [`ComparatorCalls`].
#[derive(Clone, Copy)]
struct FilterCalls {
    state: *mut c_void,
    create: CreateFilter,
    key_may_match: KeyMayMatch,
}

// SAFETY: see `ComparatorCalls`.
unsafe impl Send for FilterCalls {}
// SAFETY: likewise.
unsafe impl Sync for FilterCalls {}

/// `leveldb_filterpolicy_t`.
pub struct CFilterPolicy(FilterKind);

enum FilterKind {
    Bloom(BloomFilterPolicy),
    Custom { calls: FilterCalls, destructor: Option<Destructor>, name: GetName },
}

impl CFilterPolicy {
    /// The policy as the engine calls it.
    ///
    /// # Safety
    /// The result is not used after `leveldb_filterpolicy_destroy`.
    pub(super) unsafe fn adapter(&self) -> Arc<dyn FilterPolicy> {
        match &self.0 {
            FilterKind::Bloom(policy) => Arc::new(*policy),
            FilterKind::Custom { calls, name, .. } => {
                // SAFETY: the header asks for a function that returns a C string.
                let name = unsafe { Name::copied_from(name(calls.state)) };
                Arc::new(FilterAdapter { calls: *calls, name })
            }
        }
    }
}

impl fmt::Debug for CFilterPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CFilterPolicy").finish_non_exhaustive()
    }
}

struct FilterAdapter {
    calls: FilterCalls,
    name: Name,
}

impl FilterPolicy for FilterAdapter {
    fn name(&self) -> &str {
        self.name.text()
    }

    fn name_bytes(&self) -> &[u8] {
        self.name.bytes()
    }

    fn create_filter(&self, keys: &[&[u8]], dst: &mut Vec<u8>) {
        let pointers: Vec<*const c_char> = keys.iter().map(|key| address(key)).collect();
        let lengths: Vec<usize> = keys.iter().map(|key| key.len()).collect();
        let count = c_int::try_from(keys.len()).unwrap_or(c_int::MAX);
        let mut length = 0;
        // SAFETY: the arrays have `count` entries; the function returns memory from `malloc` of the
        // length it stores.
        unsafe {
            let filter = (self.calls.create)(
                self.calls.state,
                pointers.as_ptr(),
                lengths.as_ptr(),
                count,
                &mut length,
            );
            dst.extend_from_slice(bytes(filter, length));
            libc::free(filter.cast());
        }
    }

    fn key_may_match(&self, key: &[u8], filter: &[u8]) -> bool {
        let FilterCalls { state, key_may_match, .. } = self.calls;
        // SAFETY: the function and its state live until the policy is destroyed, after the
        // database.
        unsafe { key_may_match(state, address(key), key.len(), address(filter), filter.len()) != 0 }
    }
}

/// `leveldb_cache_t`.
#[derive(Debug)]
pub struct CCache(pub(super) BlockCache);

/// `leveldb_env_t`: the system's, the only one of the C API.
#[derive(Debug)]
pub struct CEnv(());

export! {
    /// A comparator of the caller's.
    fn leveldb_comparator_create(
        state: *mut c_void, destructor: Option<Destructor>, compare: Option<Compare>,
        name: Option<GetName>,
    ) -> *mut CComparator {
        match (compare, name) {
            (Some(compare), Some(name)) => {
                let calls = ComparatorCalls { state, compare };
                hand_out(CComparator { calls, destructor, name })
            }
            _ => std::ptr::null_mut(),
        }
    }

    /// Releases a comparator and calls its destructor.
    fn leveldb_comparator_destroy(comparator: *mut CComparator) {
        let released = release(comparator);
        if let Some(CComparator { calls, destructor: Some(destructor), .. }) = released.as_deref() {
            destructor(calls.state);
        }
    }

    /// A filter policy of the caller's.
    fn leveldb_filterpolicy_create(
        state: *mut c_void, destructor: Option<Destructor>, create_filter: Option<CreateFilter>,
        key_may_match: Option<KeyMayMatch>, name: Option<GetName>,
    ) -> *mut CFilterPolicy {
        match (create_filter, key_may_match, name) {
            (Some(create), Some(key_may_match), Some(name)) => {
                let calls = FilterCalls { state, create, key_may_match };
                hand_out(CFilterPolicy(FilterKind::Custom { calls, destructor, name }))
            }
            _ => std::ptr::null_mut(),
        }
    }

    /// Releases a filter policy and calls its destructor.
    fn leveldb_filterpolicy_destroy(policy: *mut CFilterPolicy) {
        if let Some(CFilterPolicy(FilterKind::Custom { calls, destructor: Some(destructor), .. })) =
            release(policy).as_deref()
        {
            destructor(calls.state);
        }
    }

    /// LevelDB's bloom filter.
    fn leveldb_filterpolicy_create_bloom(bits_per_key: c_int) -> *mut CFilterPolicy {
        let bits = usize::try_from(bits_per_key).unwrap_or(0);
        hand_out(CFilterPolicy(FilterKind::Bloom(BloomFilterPolicy::new(bits))))
    }

    /// A block cache of `capacity` bytes.
    fn leveldb_cache_create_lru(capacity: usize) -> *mut CCache {
        hand_out(CCache(BlockCache::new(capacity)))
    }

    /// Releases a cache.
    fn leveldb_cache_destroy(cache: *mut CCache) {
        drop(release(cache));
    }

    /// The system's environment.
    fn leveldb_create_default_env() -> *mut CEnv {
        hand_out(CEnv(()))
    }

    /// Releases the handle of an environment.
    fn leveldb_env_destroy(env: *mut CEnv) {
        drop(release(env));
    }

    /// Where tests may put files, as a string from `malloc`.
    fn leveldb_env_get_test_directory(_env: *mut CEnv) -> *mut c_char {
        malloc_c_string(&test_directory())
    }

    /// Frees memory that a function of this API returned.
    fn leveldb_free(memory: *mut c_void) {
        libc::free(memory);
    }

    /// The version of LevelDB that this library stands in for.
    fn leveldb_major_version() -> c_int {
        1
    }

    /// See [`leveldb_major_version`].
    fn leveldb_minor_version() -> c_int {
        23
    }
}
