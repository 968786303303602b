//! What is queued and running. Guarded by the state lock, which is held for pointer work only.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use parking_lot::Mutex;

use crate::base::error::Error;
use crate::base::internal_key::SequenceNumber;
use crate::compaction::plan::Reservation;
use crate::log::LogWriter;
use crate::memtable::MemTable;

/// A full memtable and the logs that hold the same entries, until it is a table.
pub(super) struct Immutable {
    pub(super) memtable: Arc<MemTable>,
    /// One log, or, recovered, several; oldest first. A log too large for one memtable is only the last one's.
    pub(super) logs: Vec<u64>,
    pub(super) last_sequence: SequenceNumber,
    /// Kept open for syncs and for the trim of a clean close.
    pub(super) log: Mutex<Option<LogWriter>>,
}

impl Immutable {
    /// The first log that is needed while this memtable is no table yet.
    pub(super) fn first_log(&self) -> u64 {
        self.logs.first().copied().unwrap_or(0)
    }
}

/// A background failure.
#[derive(Clone)]
pub(super) struct BackgroundError {
    pub(super) error: Error,
    /// Whether trying again can help: not where data is damaged or a job panicked.
    pub(super) retryable: bool,
}

/// See the [module](self).
#[derive(Default)]
pub(super) struct State {
    /// Oldest first.
    pub(super) immutables: VecDeque<Arc<Immutable>>,
    /// The log of the memtable being written.
    pub(super) log_number: u64,
    /// Logs in which recovery met damage with something valid behind it: kept under `lost/` when they are replaced.
    pub(super) damaged_logs: BTreeSet<u64>,
    pub(super) flushing: bool,
    /// Whether there have been reads and no full memtable lately.
    pub(super) is_quiet: bool,
    pub(super) compactions: usize,
    /// Manual merges in progress: automatic ones wait.
    pub(super) manual: usize,
    pub(super) reservations: Vec<Reservation>,
    pub(super) next_reservation: u64,
    pub(super) purging: bool,
    /// Whether the memtable of a quiet database is about to be flushed.
    pub(super) settling: bool,
    /// Tables of bulk loads being built or removed: a close waits for them.
    pub(super) loading: usize,
    pub(super) error: Option<BackgroundError>,
    pub(super) closing: bool,
    /// Bytes of memtable a second that flushes get through, and bytes of user data that merges of level 0 do.
    pub(super) flush_speed: Speed,
    pub(super) level_0_speed: Speed,
}

impl State {
    pub(super) fn is_idle(&self) -> bool {
        !self.flushing && self.compactions == 0 && !self.purging && !self.settling
    }

    pub(super) fn reserve(&mut self, make: impl FnOnce(u64) -> Reservation) -> u64 {
        let id = self.next_reservation;
        self.next_reservation += 1;
        self.reservations.push(make(id));
        id
    }

    pub(super) fn release(&mut self, id: u64) {
        self.reservations.retain(|reservation| reservation.id != id);
    }
}

/// A speed, smoothed over the last few measurements.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Speed {
    bytes_per_second: f64,
}

impl Speed {
    pub(super) fn record(&mut self, bytes: u64, micros: u64) {
        let measured = bytes as f64 * 1e6 / micros.max(1) as f64;
        let weight = if self.bytes_per_second == 0.0 { 1.0 } else { 0.3 };
        self.bytes_per_second += weight * (measured - self.bytes_per_second);
    }

    /// The speed, or a guess that is low for any disk in use while nothing was measured.
    pub(super) fn get(self) -> f64 {
        if self.bytes_per_second == 0.0 { 50e6 } else { self.bytes_per_second }
    }
}
