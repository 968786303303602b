//! Notices what reads are worth to compactions: fewer sorted runs, in a database that is read and
//! not written.
//!
//! Any thread, without a lock.

use std::sync::atomic::Ordering;

use crate::base::internal_key::SequenceNumber;
use crate::base::locks::AtomicU64;

/// Samples one read in this many, for read-triggered compaction.
pub(in crate::db) const READ_SAMPLE: u64 = 16;
/// Sampled reads without a write among them after which a database counts as idle: a few thousand
/// reads.
const IDLE_AFTER_SAMPLES: u64 = 128;
/// Seeks of cursors for a write, at least, where compactions pay for scans. Entries written are
/// compacted with up to twenty times as many before there is one sorted run again, a few
/// microseconds an entry; a scan of fifty entries is a microsecond or two shorter on one run than
/// on three.
const SEEKS_FOR_A_WRITE: u64 = 8;
/// Bytes that compactions may rewrite to spare one read a sorted run. For a seek a run more is a
/// block more to search and most often to decompress, about 0.8 µs, and compacting takes 0.3 µs for
/// an entry of 116 bytes; for a look-up it is a filter, a tenth of that.
const SEEK_WORTH: u64 = 256;
const LOOKUP_WORTH: u64 = 32;
/// From a device, a block is 60 µs or more, in which a compaction rewrites so much.
const DEVICE_SEEK_WORTH: u64 = 16 << 10;

/// A read that asks for fewer sorted runs.
#[derive(Clone, Copy)]
pub(in crate::db) enum Read {
    Lookup,
    Seek,
}

/// Notices that there are reads and no writes, or scans and few.
#[derive(Default)]
pub(in crate::db) struct ReadStats {
    last_sequence: AtomicU64,
    samples: AtomicU64,
    /// Bytes that compactions may rewrite for the reads that have seen it.
    worth: AtomicU64,
    /// The value of `worth` at which compactions are planned again; 0: never.
    look_at: AtomicU64,
    /// Sampled seeks of cursors since a moment, and the last write then.
    seeks: AtomicU64,
    seeks_since: AtomicU64,
}

impl ReadStats {
    /// Takes note of a sampled read, of more data than memory if `from_device`. True when enough of
    /// them have seen the same last write, and once more when they have been worth what
    /// [`look_again`](Self::look_again) said.
    pub(in crate::db) fn sample(
        &self,
        sequence: SequenceNumber,
        kind: Read,
        from_device: bool,
    ) -> bool {
        if self.last_sequence.swap(sequence, Ordering::Relaxed) != sequence {
            self.samples.store(0, Ordering::Relaxed);
            self.worth.store(0, Ordering::Relaxed);
            self.look_at.store(0, Ordering::Relaxed);
        }
        let worth = match (kind, from_device) {
            (Read::Lookup, _) => LOOKUP_WORTH,
            (Read::Seek, false) => SEEK_WORTH,
            (Read::Seek, true) => DEVICE_SEEK_WORTH,
        };
        let worth =
            worth * READ_SAMPLE + self.worth.fetch_add(worth * READ_SAMPLE, Ordering::Relaxed);
        let look_at = self.look_at.load(Ordering::Relaxed);
        let is_time = look_at > 0 && worth >= look_at;
        self.samples.fetch_add(1, Ordering::Relaxed) == IDLE_AFTER_SAMPLES || is_time
    }

    /// Takes note of a sampled read for [`has_read_since`](Self::has_read_since) alone.
    pub(in crate::db) fn note(&self, sequence: SequenceNumber) {
        self.last_sequence.store(sequence, Ordering::Relaxed);
    }

    /// Has [`sample`](Self::sample) say so when the reads have been worth rewriting `bytes`, unless
    /// they have been already.
    pub(in crate::db) fn look_again(&self, bytes: u64) {
        let look_at = if self.worth.load(Ordering::Relaxed) < bytes { bytes } else { 0 };
        self.look_at.store(look_at, Ordering::Relaxed);
    }

    /// Takes note of a sampled seek of a cursor. True now and then while there are many for each
    /// write.
    pub(in crate::db) fn sample_seek(&self, sequence: SequenceNumber) -> bool {
        if self.seeks.fetch_add(1, Ordering::Relaxed) + 1 < IDLE_AFTER_SAMPLES {
            return false;
        }
        self.seeks.store(0, Ordering::Relaxed);
        let writes = sequence.saturating_sub(self.seeks_since.swap(sequence, Ordering::Relaxed));
        writes * SEEKS_FOR_A_WRITE <= IDLE_AFTER_SAMPLES * READ_SAMPLE
    }

    /// Bytes that compactions may rewrite for the reads since the last write.
    pub(in crate::db) fn worth(&self) -> u64 {
        self.worth.load(Ordering::Relaxed)
    }

    /// Whether a sampled read has seen a later write than this one.
    pub(in crate::db) fn has_read_since(&self, sequence: SequenceNumber) -> bool {
        self.last_sequence.load(Ordering::Relaxed) > sequence
    }
}
