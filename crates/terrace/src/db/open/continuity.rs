//! Whether the batches of logs follow one another, or writes between them are missing.
//!
//! Sequence numbers alone do not tell. LevelDB uses numbers up for an append that fails, and goes
//! on in the same log; and its MANIFEST records the last number that it had handed out, not where
//! the logs begin. So numbers that are skipped mean a loss only where bytes may be missing (behind
//! damage or zeros, and at the beginning of a later log), or where a table that no MANIFEST names
//! may hold what a MANIFEST that lost its end had named.
//!
//! Between two logs of LevelDB's bytes may always be missing: it does not sync the one that it ends.
//! But what is missing then was not synced, and what follows may have been. So where the earlier log
//! ends with a whole record, the later one is taken, as LevelDB takes it.
//!
//! # Invariants
//! 1. Where no byte is missing no batch is refused for the number that it begins with, unless that
//!    was there before.
//! 2. Where bytes may be missing a batch is accepted only if nothing can be missing.

use crate::base::internal_key::SequenceNumber;
use crate::base::mutation::mutated;
use crate::log::next_record_offset;
use crate::version::manifest::ManifestState;

/// Which sequence number the next batch must have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Expected {
    /// Something is known to be missing before it.
    Any,
    /// It follows the batch before it.
    Exactly(SequenceNumber),
    /// It is the first. It continues the tables, which end there (Terrace) or earlier (LevelDB).
    AtMost(SequenceNumber),
}

/// How a batch follows those before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::db) enum Place {
    /// Nothing is missing in between.
    Follows,
    /// It is the first, and not where the logs begin. Nothing is missing if tables hold the write
    /// before it.
    FollowsTables,
    /// It is the first, at the beginning of the first log, and does not have the number that is due.
    /// Nothing is missing unless the numbers in between are those of a bulk load, whose edit the
    /// MANIFEST has lost.
    SkipsNumbers { due: SequenceNumber },
    /// The write with this number is missing, or it was there before.
    Misplaced { due: SequenceNumber },
}

/// See the [module](self).
pub(in crate::db) struct Continuity {
    expected: Expected,
    /// The log that the MANIFEST names as the first one needed: its first batch is the first that
    /// no table has. 0 if there is none yet.
    first_log: u64,
    /// The number of the first write of all logs, if the MANIFEST tells it.
    logs_begin: Option<SequenceNumber>,
    /// The same, if LevelDB's MANIFEST tells it.
    new_log_begins: Option<SequenceNumber>,
    /// The logs begin with that number, and with nothing before it.
    begins_new_log: bool,
    /// LevelDB wrote the logs, which has no loads.
    is_leveldbs: bool,
    /// Bytes may be missing between the last batch and the next record.
    may_miss: bool,
    /// Where the next record begins if no bytes are missing before it.
    next_offset: u64,
    /// The last number of the last batch, or of the tables, if they are known.
    last: Option<SequenceNumber>,
    /// Where that batch ended in this log.
    last_end: u64,
    /// The log before this one has records, and ends with the last of them.
    follows_whole_log: bool,
    /// The logs before this one are files without a byte.
    follows_empty_logs: bool,
    /// This log is such a file, as far as it has been read.
    is_empty: bool,
    /// Bytes between the last batch and the next record are not what a log has there.
    is_gap: bool,
}

impl Continuity {
    /// That of the logs that belong to what a MANIFEST says.
    pub(in crate::db) fn following(state: &ManifestState) -> Self {
        Continuity {
            first_log: state.log_number,
            logs_begin: state.logs_begin.filter(|_| !mutated("logs-begin")),
            new_log_begins: state.new_log_begins,
            is_leveldbs: !state.is_terraces,
            ..Self::without_manifest(Some(state.last_sequence))
        }
    }

    /// That of logs of which nothing is known but, perhaps, the last sequence number that a
    /// MANIFEST recorded.
    pub(in crate::db) fn without_manifest(flushed: Option<SequenceNumber>) -> Self {
        Continuity {
            expected: flushed.map_or(Expected::Any, |flushed| Expected::AtMost(flushed + 1)),
            first_log: 0,
            logs_begin: None,
            new_log_begins: None,
            begins_new_log: false,
            is_leveldbs: true,
            may_miss: false,
            next_offset: 0,
            last: flushed,
            last_end: 0,
            follows_whole_log: false,
            follows_empty_logs: true,
            is_empty: true,
            is_gap: false,
        }
    }

    pub(in crate::db) fn begin_log(&mut self, number: u64) {
        // What the log before it has lost at its end shows nowhere else.
        self.may_miss = match self.expected {
            Expected::AtMost(_) => number != self.first_log,
            Expected::Exactly(_) => {
                let is_leveldbs = self.is_leveldbs && self.first_log != 0;
                !(is_leveldbs && self.follows_whole_log)
            }
            Expected::Any => true,
        };
        self.follows_empty_logs &= self.is_empty;
        self.is_empty = false;
        self.is_gap = false;
        self.next_offset = 0;
        self.last_end = 0;
        self.follows_whole_log = false;
    }

    /// Takes note of the end of a log of `size` bytes, whose records end at `offset`. It is whole if
    /// the file ends there, or with the filler behind it.
    pub(in crate::db) fn end_log(&mut self, offset: u64, size: u64) {
        let is_whole = (offset..=next_record_offset(offset)).contains(&size);
        self.follows_whole_log = is_whole && self.next_offset > 0;
        self.is_empty = size == 0;
    }

    /// Takes note of a record, whatever it holds. Its batch, if it has one, is placed next.
    pub(in crate::db) fn record(&mut self, offset: u64, end: u64) {
        self.is_gap |= offset != self.next_offset;
        self.may_miss |= self.is_gap;
        self.next_offset = next_record_offset(end);
    }

    /// Something is missing here; whatever comes next is taken.
    pub(in crate::db) fn interrupt(&mut self) {
        self.expected = Expected::Any;
    }

    /// Where the batch stands whose operations have the numbers from `sequence` to `last`.
    pub(in crate::db) fn place(&mut self, sequence: SequenceNumber, last: SequenceNumber) -> Place {
        let place = match self.expected {
            Expected::Any => Place::Follows,
            Expected::Exactly(due) if sequence == due || sequence > due && !self.may_miss => {
                Place::Follows
            }
            Expected::AtMost(_) if self.logs_begin == Some(sequence) => Place::Follows,
            // Behind empty logs only: LevelDB begins one for each manual compaction.
            Expected::AtMost(_)
                if self.new_log_begins == Some(sequence)
                    && self.follows_empty_logs
                    && !self.is_gap =>
            {
                self.begins_new_log = true;
                Place::Follows
            }
            Expected::AtMost(most) if sequence <= most && self.may_miss && self.first_log != 0 => {
                Place::FollowsTables
            }
            Expected::AtMost(most) if sequence <= most || self.is_leveldbs && !self.may_miss => {
                Place::Follows
            }
            // Not by LevelDB, as far as the MANIFEST tells. With `reuse_logs` it goes on without an
            // edit, and a failed append uses numbers up.
            Expected::AtMost(due) if !self.may_miss => Place::SkipsNumbers { due },
            Expected::Exactly(due) | Expected::AtMost(due) => Place::Misplaced { due },
        };
        self.expected = Expected::Exactly(last + 1);
        // A batch that is out of place, a part of a value perhaps, does not take it back.
        if self.last.is_none_or(|known| known < last) {
            (self.last, self.last_end) = (Some(last), self.next_offset);
        }
        (self.may_miss, self.is_gap) = (false, false);
        if mutated("sequence-holes") { Place::Follows } else { place }
    }

    /// The last write that a durability mark at `offset` proves durable; 0 if it proves none. A
    /// doubtful one, which may be a part of a value, counts if the bytes behind the last batch have
    /// room for as many writes.
    pub(in crate::db) fn proven_durable(
        &self,
        mark: Option<SequenceNumber>,
        doubtful: bool,
        offset: u64,
    ) -> SequenceNumber {
        let bytes = offset.saturating_sub(self.last_end);
        let most = self.last.map_or(SequenceNumber::MAX, |last| last.saturating_add(bytes));
        let counts =
            |durable: &SequenceNumber| !doubtful || *durable <= most || mutated("doubtful-marks");
        mark.filter(counts).unwrap_or(0)
    }

    /// Whether LevelDB's MANIFEST has told rightly where the logs begin.
    pub(in crate::db) fn begins_new_log(&self) -> bool {
        self.begins_new_log
    }

    /// Whether nothing is known of the number that the next batch may have.
    pub(in crate::db) fn is_interrupted(&self) -> bool {
        self.expected == Expected::Any
    }

    /// The number of the next batch, once one has been placed.
    pub(in crate::db) fn next(&self) -> Option<SequenceNumber> {
        match self.expected {
            Expected::Exactly(next) => Some(next),
            Expected::Any | Expected::AtMost(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::BLOCK_SIZE;

    const END: u64 = BLOCK_SIZE as u64;

    /// The logs begin with log 3, the tables end at 10.
    fn manifest(is_terraces: bool) -> ManifestState {
        ManifestState { log_number: 3, last_sequence: 10, is_terraces, ..ManifestState::default() }
    }

    fn at_first_log() -> Continuity {
        let mut continuity = Continuity::following(&manifest(true));
        continuity.begin_log(3);
        continuity
    }

    /// The same, and LevelDB wrote the logs.
    fn at_first_log_of_leveldb() -> Continuity {
        let mut continuity = Continuity::following(&manifest(false));
        continuity.begin_log(3);
        continuity
    }

    #[test]
    fn the_first_append_to_a_log_of_leveldb_may_have_failed() {
        assert_eq!(one(&mut at_first_log_of_leveldb(), (0, 50), 12), Place::Follows);
        let mut with_zeros = at_first_log_of_leveldb();
        assert_eq!(one(&mut with_zeros, (4096, 4150), 12), Place::Misplaced { due: 11 });
        let mut later = at_first_log_of_leveldb();
        later.begin_log(5);
        assert_eq!(one(&mut later, (0, 50), 12), Place::Misplaced { due: 11 });
        // It may have gone on in a log of Terrace's without an edit.
        assert_eq!(one(&mut at_first_log(), (0, 50), 12), Place::SkipsNumbers { due: 11 });
    }

    /// Notes a record and places its batch of one operation.
    fn one(
        continuity: &mut Continuity,
        (offset, end): (u64, u64),
        sequence: SequenceNumber,
    ) -> Place {
        continuity.record(offset, end);
        continuity.place(sequence, sequence)
    }

    #[test]
    fn numbers_may_be_skipped_where_no_byte_is_missing() {
        let mut logs = at_first_log();
        assert_eq!(one(&mut logs, (0, 50), 8), Place::Follows);
        assert_eq!(one(&mut logs, (50, 90), 9), Place::Follows);
        assert_eq!(
            one(&mut logs, (90, END - 3), 20),
            Place::Follows,
            "a failed append of LevelDB's"
        );
        assert_eq!(one(&mut logs, (END, END + 60), 30), Place::Follows, "filler is no gap");
        assert_eq!(one(&mut logs, (END + 60, END + 90), 30), Place::Misplaced { due: 31 });
        assert_eq!(logs.next(), Some(31));
    }

    #[test]
    fn numbers_skipped_where_bytes_may_be_missing_are_a_hole() {
        let mut logs = at_first_log();
        assert_eq!(one(&mut logs, (0, 50), 11), Place::Follows);
        assert_eq!(one(&mut logs, (4096, 4150), 13), Place::Misplaced { due: 12 });
        assert_eq!(one(&mut logs, (8192, 8200), 14), Place::Follows);
        // A record without a batch hides no gap before it.
        logs.record(9000, 9026);
        assert_eq!(one(&mut logs, (9026, 9060), 16), Place::Misplaced { due: 15 });
        logs.end_log(9060, 9060);
        logs.begin_log(5);
        assert_eq!(one(&mut logs, (0, 50), 18), Place::Misplaced { due: 17 });
        logs.interrupt();
        assert_eq!((logs.next(), one(&mut logs, (70, 80), 90)), (None, Place::Follows));
    }

    /// A later log of LevelDB's is taken as it is if the one before it ends with a record: what that
    /// may have lost was not synced. A log that lost all of it is another matter.
    #[test]
    fn the_first_append_to_a_later_log_of_leveldb_may_have_failed() {
        for (records, is_whole, place) in [
            (1, true, Place::Follows),
            (1, false, Place::Misplaced { due: 12 }),
            (0, true, Place::Misplaced { due: 12 }),
        ] {
            let mut logs = at_first_log_of_leveldb();
            assert_eq!(one(&mut logs, (0, 50), 11), Place::Follows);
            logs.end_log(50, 50);
            logs.begin_log(5);
            let end = 26 * records;
            if records == 1 {
                logs.record(0, end);
            }
            logs.end_log(end, if is_whole { end } else { end + 9 });
            logs.begin_log(7);
            assert_eq!(one(&mut logs, (0, 50), 13), place, "{records} {is_whole}");
        }
    }

    #[test]
    fn the_first_batch_follows_tables_unless_it_is_where_the_logs_begin() {
        assert_eq!(one(&mut at_first_log(), (4096, 4150), 9), Place::FollowsTables);
        let mut later = at_first_log();
        later.begin_log(5);
        assert_eq!(one(&mut later, (0, 50), 11), Place::FollowsTables);
        let mut without = Continuity::without_manifest(Some(0));
        without.begin_log(5);
        assert_eq!(one(&mut without, (0, 50), 1), Place::Follows);
        let mut unknown = Continuity::without_manifest(None);
        unknown.begin_log(5);
        assert_eq!(one(&mut unknown, (70, 80), 90), Place::Follows);
    }

    #[test]
    fn the_write_with_which_the_logs_begin_follows_wherever_it_stands() {
        for (log, sequence, place) in [
            (3, 11, Place::Follows),
            (5, 11, Place::Follows),
            (3, 10, Place::FollowsTables),
            (3, 12, Place::FollowsTables),
            (3, 22, Place::Misplaced { due: 21 }),
        ] {
            // LevelDB, which went on in log 3, has recorded number 20 since.
            let state =
                ManifestState { logs_begin: Some(11), last_sequence: 20, ..manifest(false) };
            let mut continuity = Continuity::following(&state);
            continuity.begin_log(log);
            assert_eq!(one(&mut continuity, (65536, 65590), sequence), place);
        }
    }
}
