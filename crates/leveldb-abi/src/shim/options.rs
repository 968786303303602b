//! Options as C++ gives them.

use std::ffi::c_int;
use std::path::Path;

use super::cache::{CacheCalls, CustomCache, ShimCache};
use super::calls::{ComparatorCalls, EnvHandle, FilterCalls, LoggerCalls};
use super::components::{BloomOrCustom, CustomComparator, LoggerAdapter};
use super::env::{CustomEnv, EnvLogger};
use crate::options::Settings;

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
            let dir = settings.directory(dir);
            settings.logger = settings.logger.take().or_else(|| EnvLogger::adapter(self.env, dir));
            settings
        }
    }
}
