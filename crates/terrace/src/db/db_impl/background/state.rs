//! The state of background work: what is queued and running. Guarded by the state lock, which is
//! held for pointer work only.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::base::error::Error;
use crate::base::internal_key::SequenceNumber;
use crate::base::locks::Mutex;
use crate::compaction::plan::Reservation;
use crate::log::LogWriter;
use crate::memtable::MemTable;
use crate::version::edit::NewFile;

use crate::db::db_impl::background::turns::Manuals;

/// A full memtable and the logs that hold the same entries, until it is flushed.
pub(in crate::db) struct Immutable {
    pub(in crate::db) memtable: Arc<MemTable>,
    /// One log, or, recovered, several; oldest first. No log is another memtable's too.
    pub(in crate::db) logs: Vec<u64>,
    pub(in crate::db) last_sequence: SequenceNumber,
    /// Tables of what its logs held before it, oldest first: they are installed with its own.
    pub(in crate::db) recovered_tables: Vec<NewFile>,
    /// Kept open for syncs and for the trim of a clean close.
    pub(in crate::db) log: Mutex<Option<LogWriter>>,
    /// Guarded by the state lock.
    pub(in crate::db) progress: FlushProgress,
}

/// The progress of an immutable memtable's flush.
#[derive(Default)]
pub(in crate::db) struct FlushProgress {
    /// Whether a job has taken it.
    taken: AtomicBool,
    /// Whether the job has to begin anew, because one ahead of it has failed: that one will get a
    /// later file number.
    spoiled: AtomicBool,
}

impl FlushProgress {
    pub(in crate::db) fn is_spoiled(&self) -> bool {
        self.spoiled.load(Ordering::Relaxed)
    }
}

impl Immutable {
    /// The first log that is needed while this memtable is no table yet.
    pub(in crate::db) fn first_log(&self) -> u64 {
        self.logs.first().copied().unwrap_or(0)
    }
}

/// A background failure.
#[derive(Clone)]
pub(in crate::db) struct BackgroundError {
    pub(in crate::db) error: Error,
    /// Whether trying again can help: not where data is damaged or a job panicked.
    pub(in crate::db) retryable: bool,
}

/// See the [module](self).
#[derive(Default)]
pub(in crate::db) struct State {
    /// Oldest first.
    pub(in crate::db) immutables: VecDeque<Arc<Immutable>>,
    /// The log of the memtable being written.
    pub(in crate::db) log_number: u64,
    /// The last sequence numbers of the two memtables before the present one, older first.
    pub(in crate::db) switched_at: [SequenceNumber; 2],
    /// Logs in which recovery met damage with something valid behind it: kept under `lost/` when
    /// they are replaced.
    pub(in crate::db) damaged_logs: BTreeSet<u64>,
    /// Flush jobs, running and scheduled.
    pub(in crate::db) flushing: usize,
    /// Whether there have been reads and no full memtable lately.
    pub(in crate::db) is_write_idle: bool,
    /// Whether there was more to compact than was done, and no pause in flushes since.
    pub(in crate::db) is_loading: bool,
    /// Whether there was a flush since that was last looked at.
    pub(in crate::db) has_flushed: bool,
    pub(in crate::db) compactions: usize,
    /// See [`PlanSettings`](crate::compaction::inputs::PlanSettings).
    pub(in crate::db) range_delete_bytes: u64,
    pub(in crate::db) manual: Manuals,
    /// An open that leaves nothing behind which compares is under way: only due compactions begin.
    pub(in crate::db) starting: bool,
    pub(in crate::db) reservations: Vec<Reservation>,
    /// The reservations of automatic compactions, and whether they are to stop, because what they
    /// read is to go.
    pub(in crate::db) automatic: BTreeMap<u64, bool>,
    pub(in crate::db) next_reservation: u64,
    /// Callers that wait until no background work is due.
    pub(in crate::db) awaited: usize,
    pub(in crate::db) purging: bool,
    /// Whether tables are being opened ahead of reads.
    pub(in crate::db) is_opening: bool,
    /// Whether the memtable of an idle database is about to be flushed.
    pub(in crate::db) flushing_idle: bool,
    /// Tables of bulk loads being built or removed: a close waits for them.
    pub(in crate::db) loading: usize,
    /// Whether no job has succeeded since one failed.
    pub(in crate::db) has_failed: bool,
    pub(in crate::db) error: Option<BackgroundError>,
    pub(in crate::db) closing: bool,
    /// Bytes of memtable a second that flushes get through, and bytes of user data that compactions
    /// of level 0 do.
    pub(in crate::db) flush_speed: Speed,
    pub(in crate::db) level_0_speed: Speed,
}

impl State {
    pub(in crate::db) fn is_idle(&self) -> bool {
        self.flushing == 0
            && self.compactions == 0
            && !self.purging
            && !self.is_opening
            && !self.flushing_idle
    }

    /// How many jobs run that may fail.
    pub(in crate::db) fn attempts(&self) -> usize {
        self.flushing + self.compactions
    }

    /// Takes the first memtable that is due for a flush. None if those ahead of it may have to be
    /// flushed once more: the numbers of tables ascend with their age.
    pub(in crate::db) fn take_flush(&mut self) -> Option<Arc<Immutable>> {
        for immutable in &self.immutables {
            if immutable.progress.is_spoiled() {
                return None;
            }
            if !immutable.progress.taken.swap(true, Ordering::Relaxed) {
                return Some(immutable.clone());
            }
        }
        None
    }

    /// Gives a memtable back that was not flushed. The tables being made of those
    /// behind it have to be made anew.
    pub(in crate::db) fn give_flush_back(&mut self, immutable: &Arc<Immutable>) {
        let behind =
            self.immutables.iter().skip_while(|other| !Arc::ptr_eq(other, immutable)).skip(1);
        for other in behind.filter(|other| other.progress.taken.load(Ordering::Relaxed)) {
            other.progress.spoiled.store(true, Ordering::Relaxed);
        }
        immutable.progress.spoiled.store(false, Ordering::Relaxed);
        immutable.progress.taken.store(false, Ordering::Relaxed);
    }

    pub(in crate::db) fn reserve(&mut self, make: impl FnOnce(u64) -> Reservation) -> u64 {
        let id = self.next_reservation;
        self.next_reservation += 1;
        self.reservations.push(make(id));
        id
    }

    pub(in crate::db) fn release(&mut self, id: u64) {
        self.reservations.retain(|reservation| reservation.id != id);
        self.automatic.remove(&id);
    }

    /// Has the automatic compaction with this reservation stop. Returns whether there is one that
    /// was not told so before.
    pub(in crate::db) fn stop(&mut self, id: u64) -> bool {
        self.automatic.get_mut(&id).is_some_and(|stops| !std::mem::replace(stops, true))
    }

    /// Whether the compaction with this reservation is to stop.
    pub(in crate::db) fn stops(&self, id: u64) -> bool {
        self.closing || self.automatic.get(&id) == Some(&true)
    }
}

/// A speed, smoothed over the last few measurements.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::db) struct Speed {
    bytes_per_second: f64,
}

impl Speed {
    pub(in crate::db) fn record(&mut self, bytes: u64, micros: u64) {
        let measured = bytes as f64 * 1e6 / micros.max(1) as f64;
        let weight = if self.bytes_per_second == 0.0 { 1.0 } else { 0.3 };
        self.bytes_per_second += weight * (measured - self.bytes_per_second);
    }

    /// The speed, or a guess that is low for any disk in use while nothing was measured.
    pub(in crate::db) fn get(self) -> f64 {
        if self.bytes_per_second == 0.0 { 50e6 } else { self.bytes_per_second }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::internal_key::InternalOrder;

    #[test]
    fn flushes_behind_a_failed_one_begin_anew() {
        let immutable = |log| {
            let (_, memtable) = MemTable::new(InternalOrder::default(), 0);
            let (log_writer, progress) = (Mutex::new(None), FlushProgress::default());
            let (logs, recovered_tables) = (vec![log], Vec::new());
            Arc::new(Immutable {
                memtable,
                logs,
                last_sequence: log,
                recovered_tables,
                log: log_writer,
                progress,
            })
        };
        let mut state = State { immutables: (1..4).map(immutable).collect(), ..State::default() };
        let log = |taken: Option<Arc<Immutable>>| taken.map(|immutable| immutable.first_log());
        let (first, second) = (state.take_flush().unwrap(), state.take_flush().unwrap());
        assert_eq!((first.first_log(), second.first_log()), (1, 2));
        state.give_flush_back(&first);
        assert!(second.progress.is_spoiled() && !first.progress.is_spoiled());
        // The third would have a smaller number than the second's next table.
        assert_eq!((log(state.take_flush()), log(state.take_flush())), (Some(1), None));
        state.give_flush_back(&second);
        assert_eq!(
            (log(state.take_flush()), log(state.take_flush()), log(state.take_flush())),
            (Some(2), Some(3), None)
        );
        // A failure says nothing of those ahead.
        state.give_flush_back(&state.immutables[2].clone());
        assert!(!first.progress.is_spoiled() && !second.progress.is_spoiled());
    }
}
