//! Whether the tables of one database are read from mappings.
//!
//! A load from a mapping costs a third of a `pread` while its pages are in the page cache. When
//! they are not, the kernel reads 64 to 128 KiB around the fault, and a sector that cannot be read
//! kills the process. So tables that are mapped automatically are *populated* before they are
//! loaded, region by region, which returns an error instead of a signal, and they are mapped no
//! longer once a read has failed or they are too large for the memory that there is.
//!
//! Any number of threads may call.
//!
//! # Invariants
//! 1. The first load of each region of an open table is populated.
//! 2. Mappings are given up once and for all: `TableSet` opens tables for `pread` from then on,
//!    those that are open, too.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use crate::base::error::{ErrorKind, Result};
use crate::base::mutation::mutated;
use crate::env::RandomAccessFile;

use super::readahead::EndShare;

/// The memory that there is never matters to tables of less than this.
const SMALL: u64 = 16 << 20;

/// Bytes of the indexes and filters of open tables, at most, where more are open than
/// `max_open_files` and memory is not known to be plentiful. About 60 KB a table of the default size
/// with short values.
pub(crate) const MOST_HEAP: usize = 512 << 20;

/// Bytes that are populated at once: what the kernel maps at a fault if they are in the page cache.
const REGION: u64 = 64 << 10;

/// How the tables of a database are read. By default nothing is ever populated.
pub(crate) struct ReadPolicy {
    automatic: bool,
    unmapped: AtomicBool,
    exceeds_memory: AtomicBool,
    /// Bytes that the indexes and filters of tables may take that are not mapped.
    most_heap: AtomicUsize,
    /// Bytes that they may take beyond, if the cache lends them.
    most_borrowed: AtomicUsize,
    /// Of the tables that were opened.
    pub(crate) end_share: EndShare,
}

impl Default for ReadPolicy {
    fn default() -> Self {
        ReadPolicy {
            automatic: false,
            unmapped: AtomicBool::new(false),
            exceeds_memory: AtomicBool::new(false),
            most_heap: AtomicUsize::new(MOST_HEAP),
            most_borrowed: AtomicUsize::new(0),
            end_share: EndShare::default(),
        }
    }
}

impl ReadPolicy {
    /// For a database whose read access is automatic.
    pub(crate) fn automatic() -> Arc<Self> {
        Arc::new(ReadPolicy { automatic: true, ..ReadPolicy::default() })
    }

    /// Whether mappings are given up, so that tables are read with `pread`.
    #[inline]
    pub(crate) fn is_unmapped(&self) -> bool {
        self.unmapped.load(Ordering::Relaxed)
    }

    /// Whether the tables were once found to exceed memory.
    pub(crate) fn exceeds_memory(&self) -> bool {
        self.exceeds_memory.load(Ordering::Relaxed)
    }

    /// Looks whether `table_bytes` exceed half of the `available` memory: the rest is for the
    /// program and for what is written. If so, automatic mappings are given up. A cache may take
    /// `cache_bytes` of the memory; one of the program's, an unknown part.
    pub(crate) fn weigh(
        &self,
        table_bytes: u64,
        cache_bytes: Option<usize>,
        available: impl FnOnce() -> Option<u64>,
    ) {
        if self.exceeds_memory() || table_bytes < SMALL {
            return;
        }
        let Some(available) = available() else { return };
        let most_heap = heap_within(available, cache_bytes);
        self.most_heap.store(most_heap, Ordering::Relaxed);
        let half = usize::try_from(available / 2).unwrap_or(usize::MAX);
        self.most_borrowed.store(half.saturating_sub(most_heap), Ordering::Relaxed);
        if table_bytes > available / 2 && !mutated("larger-than-memory") {
            self.exceeds_memory.store(true, Ordering::Relaxed);
            self.unmapped.fetch_or(self.automatic, Ordering::Relaxed);
        }
    }

    /// Bytes that the indexes and filters of open tables may take that are not mapped, by the memory
    /// that was available when the tables were weighed.
    ///
    /// Half of what a cache leaves of it: a read whose table is closed waits for an index of ten
    /// blocks and more before it can wait for its own. At least an eighth of all memory, and beyond
    /// [`MOST_HEAP`] no more than that.
    pub(crate) fn most_heap(&self) -> usize {
        self.most_heap.load(Ordering::Relaxed)
    }

    /// Bytes that they may take of the cache's beyond that: half of all memory with those.
    pub(crate) fn most_borrowed(&self) -> usize {
        self.most_borrowed.load(Ordering::Relaxed)
    }

    /// Learns from the result of a read.
    pub(super) fn learn<T>(&self, result: Result<T>) -> Result<T> {
        if self.automatic
            && result.as_ref().is_err_and(|error| {
                // Lack of descriptors or of memory says nothing about the device.
                error.kind() == ErrorKind::Io
                    && !error.is_out_of_descriptors()
                    && !error.is_out_of_memory()
            })
            && !mutated("read-access-after-error")
        {
            self.unmapped.store(true, Ordering::Relaxed);
        }
        result
    }
}

fn heap_within(available: u64, cache_bytes: Option<usize>) -> usize {
    let eighth = available / 8;
    let cache_bytes = cache_bytes.map_or(available / 2, |bytes| bytes as u64);
    let half = available.saturating_sub(cache_bytes) / 2;
    let most = half.min(eighth.max(MOST_HEAP as u64)).max(eighth);
    usize::try_from(most).unwrap_or(usize::MAX)
}

/// Which regions of a mapped table were populated, one bit each. Empty if nothing is to be
/// populated.
pub(super) struct Populated {
    size: u64,
    regions: Box<[AtomicU64]>,
}

impl Populated {
    /// For `file`, if it is mapped and the policy is to populate.
    pub(super) fn new(file: &dyn RandomAccessFile, policy: &ReadPolicy) -> Self {
        let size = file.size();
        let count =
            if policy.automatic && file.mapped().is_some() { size.div_ceil(REGION) } else { 0 };
        let words = usize::try_from(count.div_ceil(64)).unwrap_or(0);
        Populated { size, regions: (0..words).map(|_| AtomicU64::new(0)).collect() }
    }

    /// Populates the regions of `file` that hold `length` bytes from `offset`, unless they were. If
    /// a region cannot be read as a whole, and once mappings are given up, only the bytes
    /// themselves.
    #[inline]
    pub(super) fn ensure(
        &self,
        file: &dyn RandomAccessFile,
        policy: &ReadPolicy,
        offset: u64,
        length: u64,
    ) -> Result<()> {
        if self.regions.is_empty() {
            return Ok(());
        }
        if policy.is_unmapped() {
            return file.populate(offset, length);
        }
        let end = offset.saturating_add(length).min(self.size);
        for region in offset / REGION..end.div_ceil(REGION) {
            if !self.has(region) {
                let start = region * REGION;
                if file.populate(start, REGION).is_err() {
                    return file.populate(offset, length);
                }
                self.set(region);
            }
        }
        Ok(())
    }

    fn word(&self, region: u64) -> Option<(&AtomicU64, u64)> {
        let word = usize::try_from(region / 64).ok().and_then(|at| self.regions.get(at))?;
        Some((word, 1 << (region % 64)))
    }

    /// A region outside of the file has no bytes to populate.
    fn has(&self, region: u64) -> bool {
        self.word(region).is_none_or(|(word, bit)| word.load(Ordering::Relaxed) & bit != 0)
    }

    fn set(&self, region: u64) {
        if let Some((word, bit)) = self.word(region) {
            word.fetch_or(bit, Ordering::Relaxed);
        }
    }

    pub(super) fn memory_usage(&self) -> usize {
        size_of_val(&*self.regions)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;
    use crate::base::error::Error;

    #[test]
    fn mappings_are_given_up_for_tables_that_exceed_half_of_the_memory_and_after_failed_reads() {
        let policy = ReadPolicy::automatic();
        policy.weigh(50 << 20, Some(20 << 20), || Some(100 << 20));
        policy.weigh(50 << 20, None, || None);
        policy.weigh(15 << 20, None, || Some(0));
        assert!(
            policy.learn(Err::<(), _>(Error::corruption("damaged"))).is_err()
                && !policy.is_unmapped()
        );
        assert_eq!((policy.most_heap(), policy.most_borrowed()), (40 << 20, 10 << 20));
        policy.weigh(51 << 20, None, || Some(100 << 20));
        assert!(policy.is_unmapped() && policy.exceeds_memory());
        assert_eq!(ReadPolicy::automatic().most_heap(), MOST_HEAP);
        let policy = ReadPolicy::automatic();
        assert!(
            policy.learn(Err::<(), _>(Error::io_message("a sector"))).is_err()
                && policy.is_unmapped()
                && !policy.exceeds_memory()
        );
        let chosen = ReadPolicy::default();
        chosen.weigh(51 << 20, None, || Some(100 << 20));
        assert!(chosen.exceeds_memory());
        assert!(
            chosen.learn(Err::<(), _>(Error::io_message("a sector"))).is_err()
                && !chosen.is_unmapped()
        );
    }

    #[test]
    fn indexes_take_half_of_what_a_cache_leaves() {
        for (available, cache, most) in [
            (300, Some(64), 118),
            (300, None, 75),
            (1024, Some(8), 508),
            (1024, Some(900), 128),
            (100, Some(200), 12),
            (2 << 10, Some(8), 512),
            (15 << 10, Some(64), 1920),
        ] {
            let found = heap_within(available << 20, cache.map(|bytes| bytes << 20));
            assert_eq!(found >> 20, most, "{available} {cache:?}");
        }
    }

    /// A mapped file, what was populated of it, and an offset that cannot be read.
    struct Disk {
        bytes: Vec<u8>,
        populated: Mutex<Vec<(u64, u64)>>,
        bad: Option<u64>,
    }

    impl RandomAccessFile for Disk {
        fn read_at(&self, _: u64, _: &mut [u8]) -> Result<usize> {
            Ok(0)
        }

        fn size(&self) -> u64 {
            self.bytes.len() as u64
        }

        fn mapped(&self) -> Option<&[u8]> {
            Some(&self.bytes)
        }

        fn populate(&self, offset: u64, length: u64) -> Result<()> {
            self.populated.lock().unwrap().push((offset, length));
            match self.bad.is_some_and(|bad| (offset..offset + length).contains(&bad)) {
                true => Err(Error::io_message("a sector")),
                false => Ok(()),
            }
        }
    }

    #[test]
    fn regions_are_populated_once_and_a_bad_neighbour_does_no_harm() {
        let policy = ReadPolicy::automatic();
        let mut disk = Disk {
            bytes: vec![0; 2 * REGION as usize + 10],
            populated: Mutex::default(),
            bad: None,
        };
        let populated = Populated::new(&disk, &policy);
        for (offset, length) in
            [(REGION - 1, 2), (REGION, 100), (2 * REGION, 10), (u64::MAX - 1, 1)]
        {
            populated.ensure(&disk, &policy, offset, length).unwrap();
        }
        let calls = std::mem::take(&mut *disk.populated.lock().unwrap());
        assert_eq!(calls, [(0, REGION), (REGION, REGION), (2 * REGION, REGION)]);
        assert_eq!(Populated::new(&disk, &ReadPolicy::default()).memory_usage(), 0);

        disk.bad = Some(5);
        let populated = Populated::new(&disk, &policy);
        assert!(populated.ensure(&disk, &policy, 0, 6).is_err());
        populated.ensure(&disk, &policy, 6, 100).unwrap();
        assert!(populated.ensure(&disk, &policy, 5, 1).is_err());
    }
}
