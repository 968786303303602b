//! The options of `open`, as JavaScript passes them.

use std::sync::Arc;

use napi_derive::napi;
use terrace::{BloomFilterPolicy, Compression, Options};

/// Bits a key of the filter that classic-level gives its tables, which LevelDB reads as well.
const FILTER_BITS: usize = 10;

/// The options of `open`, defaults filled in by the JavaScript half.
#[napi(object)]
pub struct OpenOptions {
    /// Creates the database if there is none.
    pub create_if_missing: bool,
    /// Fails if there is one.
    pub error_if_exists: bool,
    /// Compresses blocks with snappy.
    pub compression: bool,
    /// Shares one database among the threads of this process.
    pub multithreading: bool,
    /// Bytes of the block cache.
    pub cache_size: u32,
    /// Bytes of a memtable.
    pub write_buffer_size: u32,
    /// Bytes of a block before compression.
    pub block_size: u32,
    /// Files that may be open at once.
    pub max_open_files: u32,
    /// Keys between two restart points of a block.
    pub block_restart_interval: u32,
    /// Bytes of a table file.
    pub max_file_size: u32,
    /// From how many bytes on values go to value files; 0 for none.
    pub value_log: u32,
}

impl OpenOptions {
    /// The same for the engine.
    pub fn engine(&self) -> Options {
        Options::new()
            .create_if_missing(self.create_if_missing)
            .error_if_exists(self.error_if_exists)
            .compression(if self.compression { Compression::Snappy } else { Compression::None })
            .filter_policy(Some(Arc::new(BloomFilterPolicy::new(FILTER_BITS))))
            .block_cache_size(self.cache_size as usize)
            .write_buffer_size(self.write_buffer_size as usize)
            .block_size(self.block_size as usize)
            .max_open_files(self.max_open_files as usize)
            .block_restart_interval(self.block_restart_interval as usize)
            .max_file_size(self.max_file_size as usize)
            .value_log((self.value_log > 0).then_some(self.value_log as usize))
    }
}
