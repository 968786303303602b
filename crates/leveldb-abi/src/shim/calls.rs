//! The calls into C++ and the options that carry them.

use std::ffi::{c_char, c_int, c_void};
use std::path::Path;

use super::cache::{CustomCache, ShimBlock, ShimCache};
use super::components::{BloomOrCustom, CustomComparator, LoggerAdapter};
use super::env::{CustomEnv, EnvLogger};
use super::outcome::{Bytes, Outcome, Put};
use crate::options::Settings;

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

/// `shim_custom_cache`. Without an object: none.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CacheCalls {
    pub(super) object: *mut c_void,
    pub(super) new_id: Option<unsafe extern "C" fn(*mut c_void) -> u64>,
    pub(super) lookup: Option<unsafe extern "C" fn(*mut c_void, Bytes) -> *mut c_void>,
    pub(super) insert:
        Option<unsafe extern "C" fn(*mut c_void, Bytes, *mut ShimBlock, usize) -> *mut c_void>,
    pub(super) value: Option<unsafe extern "C" fn(*mut c_void, *mut c_void) -> *const ShimBlock>,
    pub(super) release: Option<unsafe extern "C" fn(*mut c_void, *mut c_void)>,
    pub(super) total_charge: Option<unsafe extern "C" fn(*const c_void) -> usize>,
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

/// `shim_options`.
#[repr(C)]
#[derive(Debug)]
pub struct ShimOptions {
    comparator: ComparatorCalls,
    env: EnvHandle,
    logger: LoggerCalls,
    filter: FilterCalls,
    cache: *const ShimCache,
    custom_cache: CacheCalls,
    write_buffer_size: usize,
    block_size: usize,
    max_file_size: usize,
    max_open_files: c_int,
    block_restart_interval: c_int,
    compression: c_int,
    create_if_missing: u8,
    error_if_exists: u8,
    paranoid_checks: u8,
    reuse_logs: u8,
}

impl ShimOptions {
    /// The options with adapters around what they lead to.
    ///
    /// # Safety
    /// Every object outlives the result and whatever is opened with it, and may be called from any
    /// thread.
    pub(super) unsafe fn settings(&self) -> Settings {
        // SAFETY: guaranteed by the caller.
        unsafe {
            Settings {
                comparator: CustomComparator::adapter(self.comparator),
                env: CustomEnv::adapter(self.env),
                logger: LoggerAdapter::adapter(self.logger),
                cache: self
                    .cache
                    .as_ref()
                    .map(ShimCache::cache)
                    .or_else(|| CustomCache::adapter(self.custom_cache)),
                filter: BloomOrCustom::adapter(self.filter),
                create_if_missing: self.create_if_missing != 0,
                error_if_exists: self.error_if_exists != 0,
                paranoid_checks: self.paranoid_checks != 0,
                reuse_logs: self.reuse_logs != 0,
                write_buffer_size: self.write_buffer_size,
                max_open_files: self.max_open_files,
                block_size: self.block_size,
                block_restart_interval: self.block_restart_interval,
                max_file_size: self.max_file_size,
                compression: self.compression,
                ..Settings::default()
            }
        }
    }

    /// The same for opening the database in `dir`: without a logger, it is the environment that
    /// makes one.
    ///
    /// # Safety
    /// As for [`settings`](Self::settings).
    pub(super) unsafe fn settings_at(&self, dir: &Path) -> Settings {
        // SAFETY: guaranteed by the caller.
        unsafe {
            let mut settings = self.settings();
            settings.logger = settings.logger.or_else(|| EnvLogger::adapter(self.env, dir));
            settings
        }
    }
}
