//! The calls into C++.

use std::ffi::{c_char, c_int, c_void};

use super::outcome::{Bytes, Outcome, Put};

/// `shim_comparator`. Without an object: bytewise.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ComparatorCalls {
    pub(super) object: *const c_void,
    pub(super) name: *const c_char,
    pub(super) compare: Option<unsafe extern "C" fn(*const c_void, Bytes, Bytes) -> c_int>,
    pub(super) shortest_separator:
        Option<unsafe extern "C" fn(*const c_void, Bytes, Bytes, *mut c_void, Put)>,
    pub(super) short_successor:
        Option<unsafe extern "C" fn(*const c_void, Bytes, *mut c_void, Put)>,
}

/// `shim_filter`. Without an object: none, or LevelDB's own.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct FilterCalls {
    pub(super) object: *const c_void,
    pub(super) name: *const c_char,
    pub(super) bloom_bits: c_int,
    pub(super) create:
        Option<unsafe extern "C" fn(*const c_void, *const Bytes, usize, *mut c_void, Put)>,
    pub(super) may_match: Option<unsafe extern "C" fn(*const c_void, Bytes, Bytes) -> u8>,
}

/// `shim_logger`. Without an object: none.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct LoggerCalls {
    pub(super) object: *mut c_void,
    pub(super) log: Option<unsafe extern "C" fn(*mut c_void, *const c_char, usize)>,
}

/// `shim_file_calls`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct FileCalls {
    pub(super) append: unsafe extern "C" fn(*mut c_void, Bytes) -> Outcome,
    pub(super) sync: unsafe extern "C" fn(*mut c_void) -> Outcome,
    pub(super) close: unsafe extern "C" fn(*mut c_void) -> Outcome,
    pub(super) release: unsafe extern "C" fn(*mut c_void),
}

/// `shim_random_calls`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct RandomCalls {
    pub(super) read:
        unsafe extern "C" fn(*const c_void, u64, *mut u8, usize, *mut usize) -> Outcome,
    pub(super) release: unsafe extern "C" fn(*mut c_void),
}

/// A call that takes an environment and a path.
type PathCall = unsafe extern "C" fn(*mut c_void, Bytes) -> Outcome;
/// A call that opens something by its path.
type OpenCall = unsafe extern "C" fn(*mut c_void, Bytes, *mut *mut c_void) -> Outcome;

/// `shim_env_calls`.
#[repr(C)]
#[derive(Debug)]
pub struct EnvCalls {
    pub(super) open_random:
        unsafe extern "C" fn(*mut c_void, Bytes, *mut *mut c_void, *mut u64) -> Outcome,
    pub(super) create: OpenCall,
    pub(super) open_append: OpenCall,
    pub(super) exists: unsafe extern "C" fn(*mut c_void, Bytes) -> u8,
    pub(super) list: unsafe extern "C" fn(*mut c_void, Bytes, *mut c_void, Put) -> Outcome,
    pub(super) remove: PathCall,
    pub(super) create_dir: PathCall,
    pub(super) remove_dir: PathCall,
    pub(super) file_size: unsafe extern "C" fn(*mut c_void, Bytes, *mut u64) -> Outcome,
    pub(super) rename: unsafe extern "C" fn(*mut c_void, Bytes, Bytes) -> Outcome,
    pub(super) lock: OpenCall,
    pub(super) unlock: unsafe extern "C" fn(*mut c_void, *mut c_void),
    pub(super) schedule:
        unsafe extern "C" fn(*mut c_void, unsafe extern "C" fn(*mut c_void), *mut c_void),
    pub(super) now_micros: unsafe extern "C" fn(*mut c_void) -> u64,
    pub(super) sleep: unsafe extern "C" fn(*mut c_void, u64),
    pub(super) new_logger: unsafe extern "C" fn(*mut c_void, Bytes, *mut LoggerCalls) -> Outcome,
    pub(super) release_logger: unsafe extern "C" fn(*mut c_void),
    pub(super) file: FileCalls,
    pub(super) random: RandomCalls,
}

/// `shim_env`. Without an object: the system's.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct EnvHandle {
    pub(super) object: *mut c_void,
    pub(super) calls: *const EnvCalls,
}
