//! A planned compaction: its reason, its inputs, and what it keeps other compactions from.

use std::sync::Arc;

use crate::base::comparator::KeyOrder;
use crate::base::mutation::mutated;
use crate::version::file_meta::FileMeta;
use crate::version::version::key_range;

/// An output may overlap this many times its own size in the level below, so that it can be
/// compacted down cheaply.
const GRANDPARENT_LIMIT: u64 = 10;

/// The reason for a compaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reason {
    /// A level is larger than it should be.
    Size,
    /// Many small files of level 0 become one there.
    SmallFiles,
    /// Files of level 0 are to skip a level that has older entries.
    Skipped,
    /// A manual compaction.
    Manual,
    /// Mostly tombstones: a compaction gives space back.
    Tombstones,
    /// Mostly expired entries: a compaction gives space back.
    Expired,
    /// Values lie in value files that are collected: a compaction copies them out.
    Values,
    /// Newer entries may hide many values: a compaction shows which are garbage.
    HiddenValues,
    /// Many lookups searched this file without a hit.
    Seeks,
    /// A range delete has left little: one run of it costs little.
    RangeDelete,
    /// There are reads and no writes, or scans and few: fewer runs make them faster.
    ReadTriggered,
}

impl Reason {
    /// For the info log.
    pub(crate) fn describe(self) -> &'static str {
        match self {
            Reason::Size => "the level was full",
            Reason::SmallFiles => "small tables of level 0",
            Reason::Skipped => "level 0 is to skip the level",
            Reason::Manual => "asked for",
            Reason::Tombstones => "mostly tombstones",
            Reason::Expired => "mostly expired entries",
            Reason::Values => "value files with much garbage",
            Reason::HiddenValues => "overwritten or deleted large values",
            Reason::RangeDelete => "what a range delete left",
            Reason::Seeks => "lookups without a hit",
            Reason::ReadTriggered => "reads and few writes, if any",
        }
    }
}

/// The files and ranges that a compaction in progress holds.
#[derive(Clone, Debug)]
pub(crate) struct Reservation {
    pub(crate) id: u64,
    pub(crate) files: Vec<u64>,
    pub(crate) output_level: usize,
    pub(crate) from: Vec<u8>,
    pub(crate) to: Vec<u8>,
}

/// A planned compaction.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) reason: Reason,
    pub(crate) level: usize,
    pub(crate) output_level: usize,
    /// The files of `level`, and those of `output_level` that they overlap.
    pub(crate) inputs: [Vec<Arc<FileMeta>>; 2],
    /// The files below the output, which limit how far one output file may reach.
    pub(crate) grandparents: Vec<Arc<FileMeta>>,
    /// Whether the only input can be handed down as it is.
    pub(crate) is_trivial_move: bool,
}

impl Plan {
    pub(crate) fn files(&self) -> impl Iterator<Item = &Arc<FileMeta>> {
        self.inputs.iter().flatten()
    }

    pub(crate) fn input_bytes(&self) -> u64 {
        self.files().map(|file| file.size).sum()
    }

    /// Whether all inputs become one file of level 0.
    pub(crate) fn is_intra_level_0(&self) -> bool {
        self.level == 0 && self.output_level == 0
    }

    /// The number of the first output, if that is given: newer than the inputs, older than all that is
    /// newer than them.
    pub(crate) fn first_number(&self) -> Option<u64> {
        let has_one = self.is_intra_level_0() && !mutated("intra-level-0-number");
        let newest = self.inputs[0].first().filter(|_| has_one)?;
        Some(newest.successor())
    }

    pub(crate) fn grandparent_limit(settings_max_file_size: u64) -> u64 {
        GRANDPARENT_LIMIT * settings_max_file_size
    }

    pub(crate) fn reservation(&self, id: u64, keys: &KeyOrder) -> Reservation {
        let (from, to) = key_range(keys, self.files()).unwrap_or_default();
        let files = self.files().map(|file| file.number).collect();
        Reservation { id, files, output_level: self.output_level, from, to }
    }
}
