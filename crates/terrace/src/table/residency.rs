//! Whether the bytes of mapped tables are in memory, for the tables of one database.
//!
//! A load from a mapping costs a third of a `pread` while its pages are in the page cache. When they are not, the kernel
//! reads 64 to 128 KiB around the fault, and a sector that cannot be read kills the process. So a block is *populated* before
//! it is loaded (one device read of exactly its pages, and an error instead of a signal) unless it is known to be resident:
//! it was loaded before, and recent loads did not wait for a device.
//!
//! Any number of threads may call. The counters are relaxed and lose updates: they decide speed only.
//!
//! # Invariants
//! 1. The first load of a block through an open table is populated.
//! 2. Once a read has failed, every load is populated, and `TableSet` opens tables for `pread`.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

use crate::base::error::{ErrorKind, Result};
use crate::base::sabotage::sabotaged;
use crate::env::Env;

/// A load that takes longer has waited for a device, in microseconds: this, and one for each [`BYTES_PER_MICRO`].
const SLOW_MICROS: u64 = 16;
/// Far below what checksum and decompression handle in a microsecond.
const BYTES_PER_MICRO: u64 = 512;
/// Loads in a row that did not wait, after which blocks count as resident again. Populating costs less than a microsecond and a
/// fault that was not expected a hundred, so it pays from one device read in some hundred loads.
const CALM_LOADS: u32 = 256;
/// One load in this many is timed while blocks count as resident.
const SAMPLED: u32 = 8;

/// And one use in place of this many.
const REVISITS_SAMPLED: u32 = 32;

/// What a database has learned about its mapped tables. By default nothing is ever populated.
#[derive(Default)]
pub(crate) struct Residency {
    /// Tells the time. Absent unless access is automatic.
    env: Option<Arc<dyn Env>>,
    /// Loads without a wait until blocks count as resident; 0 if they do.
    calm_in: AtomicU32,
    loads: AtomicU32,
    failed: AtomicBool,
}

impl Residency {
    /// For a database whose read access is automatic.
    pub(crate) fn automatic(env: Arc<dyn Env>) -> Arc<Self> {
        Arc::new(Residency { env: Some(env), ..Residency::default() })
    }

    /// Whether a read of a table has failed, so that tables are read with `pread` from then on.
    #[inline]
    pub(crate) fn has_failed(&self) -> bool {
        self.failed.load(Ordering::Relaxed) && !sabotaged("read-access-after-error")
    }

    /// Whether blocks are populated at all.
    pub(super) fn is_automatic(&self) -> bool {
        self.env.is_some()
    }

    /// Whether a block that was loaded before may be on the device only.
    #[inline]
    pub(super) fn is_cold(&self) -> bool {
        self.calm_in.load(Ordering::Relaxed) > 0 || self.has_failed()
    }

    /// Runs `load` for a block of `size` bytes, after `populate` unless the block is `resident`, and learns from how
    /// long they take and whether they fail.
    pub(super) fn load<T>(
        &self,
        resident: bool,
        size: u64,
        populate: impl FnOnce() -> Result<()>,
        load: impl FnOnce() -> Result<T>,
    ) -> Result<T> {
        let Some(env) = &self.env else { return load() };
        let populates = !resident || self.is_cold();
        let number = self.loads.load(Ordering::Relaxed).wrapping_add(1);
        self.loads.store(number, Ordering::Relaxed);
        let start = (populates || number.is_multiple_of(SAMPLED)).then(|| env.now_micros());
        let loaded = if populates { populate().and_then(|()| load()) } else { load() };
        if let Some(start) = start {
            self.learn(env.now_micros().saturating_sub(start), size);
        }
        if loaded.as_ref().is_err_and(|error| error.kind() == ErrorKind::Io) {
            self.failed.store(true, Ordering::Relaxed);
        }
        loaded
    }

    /// Like [`load`](Self::load), for a block of a mapping that is used in place and was loaded before. Nothing tells how long
    /// its use will take, so now and then it is populated to find out.
    #[inline]
    pub(super) fn revisit(&self, size: u64, populate: impl FnOnce() -> Result<()>) -> Result<()> {
        if self.env.is_none() {
            return Ok(());
        }
        let number = self.loads.load(Ordering::Relaxed).wrapping_add(1);
        self.loads.store(number, Ordering::Relaxed);
        if number.is_multiple_of(REVISITS_SAMPLED) || self.is_cold() {
            return self.load(false, size, populate, || Ok(()));
        }
        Ok(())
    }

    fn learn(&self, micros: u64, size: u64) {
        let calm_in = self.calm_in.load(Ordering::Relaxed);
        if micros > SLOW_MICROS + size / BYTES_PER_MICRO {
            self.calm_in.store(CALM_LOADS, Ordering::Relaxed);
        } else if calm_in > 0 {
            self.calm_in.store(calm_in - 1, Ordering::Relaxed);
        }
    }
}

/// Which blocks of an open table were populated, one bit each.
pub(super) struct Populated(Box<[AtomicU64]>);

impl Populated {
    pub(super) fn new(blocks: usize) -> Self {
        Populated((0..blocks.div_ceil(64)).map(|_| AtomicU64::new(0)).collect())
    }

    #[inline]
    pub(super) fn has(&self, at: usize) -> bool {
        self.0.get(at / 64).is_some_and(|word| word.load(Ordering::Relaxed) & (1 << (at % 64)) != 0)
    }

    pub(super) fn set(&self, at: usize) {
        if let Some(word) = self.0.get(at / 64) {
            word.fetch_or(1 << (at % 64), Ordering::Relaxed);
        }
    }

    pub(super) fn memory_usage(&self) -> usize {
        size_of_val(&*self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::error::Error;
    use crate::env::MemEnv;

    #[test]
    fn a_wait_makes_cold_and_calm_loads_make_resident_again() {
        let residency = Residency::automatic(Arc::new(MemEnv::new()));
        assert!(!residency.is_cold());
        residency.learn(SLOW_MICROS + 4096 / BYTES_PER_MICRO, 4096);
        assert!(!residency.is_cold());
        residency.learn(SLOW_MICROS + 1, 100);
        for _ in 0..CALM_LOADS {
            assert!(residency.is_cold());
            residency.learn(SLOW_MICROS, 100);
        }
        assert!(!residency.is_cold());
    }

    #[test]
    fn a_failed_read_is_remembered_and_damage_is_not_one() {
        let residency = Residency::automatic(Arc::new(MemEnv::new()));
        let fails = |error: Error| residency.load(true, 1, || Ok(()), || Err::<(), _>(error)).is_err();
        assert!(fails(Error::corruption("damaged")) && !residency.has_failed());
        assert!(fails(Error::io_message("a sector")) && residency.has_failed() && residency.is_cold());
        let populated = Populated::new(65);
        populated.set(64);
        populated.set(1000);
        assert!(populated.has(64) && !populated.has(0) && !populated.has(1000));
    }
}
