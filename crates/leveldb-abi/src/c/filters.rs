//! `terrace/c.h`: compaction filters.

use std::ffi::{c_char, c_int, c_void};
use std::ptr;
use std::sync::Arc;

use terrace::{CompactionFilter, FilterDecision};

use super::options::COptions;
use crate::guard::export;
use crate::memory::{address, bytes};

/// The decisions of a filter.
const REMOVE: c_int = 1;
const REPLACE: c_int = 2;

/// A program's function that decides about an entry. An exception in it ends the process at the
/// next frame that may not unwind.
pub(super) type Decide = unsafe extern "C-unwind" fn(
    state: *mut c_void,
    key: *const c_char,
    key_length: usize,
    value: *const c_char,
    value_length: usize,
    new_value: *mut *mut c_char,
    new_length: *mut usize,
) -> c_int;
pub(super) type Destructor = unsafe extern "C-unwind" fn(*mut c_void);

/// What a program's function is called with, and what is called when it is needed no more.
struct Owner {
    state: *mut c_void,
    destructor: Option<Destructor>,
}

impl Drop for Owner {
    fn drop(&mut self) {
        if let Some(destructor) = self.destructor {
            // SAFETY: the header asks for a function that may be called once, with the state.
            unsafe { destructor(self.state) };
        }
    }
}

/// A filter as the engine asks it.
struct FilterAdapter {
    owner: Owner,
    decide: Decide,
}

// SAFETY: the header asks for functions that may be called from any thread, several at once.
unsafe impl Send for FilterAdapter {}
// SAFETY: likewise.
unsafe impl Sync for FilterAdapter {}

impl CompactionFilter for FilterAdapter {
    fn filter(&self, key: &[u8], value: &[u8]) -> FilterDecision {
        let (mut new_value, mut length) = (ptr::null_mut(), 0);
        let (key, key_length) = (address(key), key.len());
        let (value, value_length) = (address(value), value.len());
        // SAFETY: the header asks for a function that may be called so until the destructor is.
        let decision = unsafe {
            (self.decide)(
                self.owner.state,
                key,
                key_length,
                value,
                value_length,
                &raw mut new_value,
                &raw mut length,
            )
        };
        // Null with a length, as where a program has no memory, is no empty value.
        let is_missing = new_value.is_null() && length > 0;
        // SAFETY: the header asks for null, or memory from malloc of the length that was stored.
        let replacement = unsafe { bytes(new_value, length) }.to_vec();
        // SAFETY: likewise; it is not used again.
        unsafe { libc::free(new_value.cast()) };
        match decision {
            REMOVE => FilterDecision::Remove,
            REPLACE if !is_missing => FilterDecision::Replace(replacement),
            _ => FilterDecision::Keep,
        }
    }
}

/// The filter of a program, if there is one. Without one its destructor is called at once.
pub(super) fn adapter(
    state: *mut c_void,
    decide: Option<Decide>,
    destructor: Option<Destructor>,
) -> Option<Arc<dyn CompactionFilter>> {
    let owner = Owner { state, destructor };
    Some(Arc::new(FilterAdapter { owner, decide: decide? }))
}

export! {
    /// Sets the filter that compactions ask.
    fn terrace_options_set_compaction_filter(
        options: *mut COptions, state: *mut c_void, filter: Option<Decide>,
        destructor: Option<Destructor>,
    ) {
        let filter = adapter(state, filter, destructor);
        if let Some(options) = options.as_mut() {
            options.plain.compaction_filter = filter;
        }
    }
}
