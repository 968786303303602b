//! Executes a plan: merges the inputs, drops obsolete entries, writes the outputs.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::sync::Arc;

use crate::base::error::{Error, Result};
use crate::base::internal_key::{
    self, EntryKind, InternalOrder, KIND_FOR_SEEK, MAX_SEQUENCE, ParsedKey, SequenceNumber,
};
use crate::base::mutation::mutated;
use crate::base::value_pointer::{ValuePointer, is_pointer};
use crate::iterator::level::LevelIter;
use crate::iterator::merged::Merged;
use crate::iterator::source::Source;
use crate::iterator::values_ahead::ValuesAhead;
use crate::table::DictionarySettings;
use crate::version::NUM_LEVELS;
use crate::version::file_meta::FileMeta;
use crate::version::filename;
use crate::version::level::Level;
use crate::version::table_set::TableSet;
use crate::version::value_files::UsedValueFile;
use crate::version::value_reader::ValueReader;
use crate::version::version::{Version, key_range};

use super::drop_rules::DropRules;
use super::filter::{AppliedFilter, FilterDecision};
use super::output::{Output, OutputSettings, OutputWriter};
use super::plan::{Plan, Reason};

/// Entries, or KiB of values, between two looks at whether to stop.
const CANCEL_INTERVAL: u64 = 512;

/// The inputs of a compaction.
pub(crate) struct CompactionJob {
    pub(crate) plan: Arc<Plan>,
    /// The version that was planned on.
    pub(crate) version: Arc<Version>,
    pub(crate) tables: Arc<TableSet>,
    pub(crate) values: Arc<ValueReader>,
    pub(crate) order: InternalOrder,
    pub(crate) outputs: OutputSettings,
    pub(crate) max_file_size: u64,
    /// Bytes of a zstd dictionary at most, for outputs with nothing below them. 0: none.
    pub(crate) dictionary_bytes: usize,
    /// The sequence numbers of live snapshots.
    pub(crate) snapshots: Vec<SequenceNumber>,
    pub(crate) filter: Option<Arc<AppliedFilter>>,
    /// Called now and then on every thread of the compaction. The last field, so that everything
    /// else is gone when it goes.
    pub(crate) cancelled: Box<dyn Fn() -> bool + Send + Sync>,
}

/// User keys from one, inclusive, to another, exclusive; an absent end is open.
#[derive(Clone, Debug, Default)]
pub(crate) struct UserRange {
    pub(crate) from: Option<Vec<u8>>,
    pub(crate) to: Option<Vec<u8>>,
}

impl CompactionJob {
    /// Compacts the entries in `range`. The outputs are durable but not installed. `given_up` says
    /// whether they are still wanted.
    pub(crate) fn run(
        &self,
        range: &UserRange,
        given_up: &dyn Fn() -> bool,
    ) -> Result<Vec<Output>> {
        let mut merged = Merged::new(self.sources()?, &self.order);
        let mut rules = DropRules::new(self.order.keys.clone(), self.snapshots.clone());
        let mut below = Below::new(&self.version, self.plan.output_level, &self.order);
        let mut grandparents =
            Grandparents::new(&self.plan.grandparents, &self.order, self.max_file_size);
        let mut outputs = self.outputs.clone();
        outputs.table.is_above_more = self.is_above_at_least(self.plan.input_bytes());
        if self.plan.output_level > 0 && !self.is_above_at_least(1) {
            outputs.table.dictionary = DictionarySettings::new(self.dictionary_bytes);
        }
        let mut writer = OutputWriter::new(outputs, self.plan.output_level);
        // Several files of level 0 would need several numbers.
        let max_file_size =
            if self.plan.is_intra_level_0() { u64::MAX } else { self.max_file_size };
        let mut until_look = CANCEL_INTERVAL;
        let mut unmoved = Unmoved::of(&self.plan);
        // A value that was read from a value file.
        let mut value = Vec::new();
        let mut values_ahead = ValuesAhead::of_whole_scan();
        let has_moving = self.plan.files().flat_map(|file| &file.values).any(|input| {
            self.version.values.get(input.file).is_some_and(|used| self.empties(used))
        });
        match &range.from {
            None => merged.seek_to_first(),
            Some(from) => merged.seek(&internal_key::encode(from, MAX_SEQUENCE, KIND_FOR_SEEK)),
        }
        while merged.valid() {
            until_look = until_look.saturating_sub(1 + (merged.value().len() as u64 >> 10));
            if until_look == 0 {
                until_look = CANCEL_INTERVAL;
                if (self.cancelled)() || given_up() {
                    // Stopped for any other reason nobody is told.
                    return Err(Error::busy("the database is closing"));
                }
            }
            if has_moving && is_pointer(merged.key()) {
                values_ahead
                    .go_on(&mut merged, None, false, |pointers| self.ask_for_moving(pointers));
            }
            let key = merged.key();
            let entry = ParsedKey::parse(key).ok_or_else(|| {
                Error::corruption("an entry whose internal key is too short or of an unknown kind")
            })?;
            if range
                .to
                .as_ref()
                .is_some_and(|to| self.order.keys.compare(entry.user_key, to).is_ge())
            {
                break;
            }
            let is_pointer = entry.kind == EntryKind::Pointer;
            let decision = match &self.filter {
                Some(filter) if entry.kind == EntryKind::Value => {
                    let is_unseen = || rules.is_unseen(&entry);
                    filter.decide(entry.user_key, merged.value(), is_unseen)?
                }
                Some(filter)
                    if is_pointer
                        && filter.looks_at(entry.user_key, || rules.is_unseen(&entry)) =>
                {
                    self.values.read(&self.version.values, merged.value(), &mut value)?;
                    until_look = until_look.saturating_sub(value.len() as u64 >> 10).max(1);
                    filter.decide(entry.user_key, &value, || rules.is_unseen(&entry))?
                }
                _ => FilterDecision::Keep,
            };
            let kind = match decision {
                FilterDecision::Remove => EntryKind::Deletion,
                _ => entry.kind,
            };
            if rules.keep(&ParsedKey { kind, ..entry }, |user_key| below.is_base(user_key)) {
                let size = writer.present_size();
                let should_stop_before =
                    size >= max_file_size || grandparents.should_stop_before(key, size);
                // The versions of a key stay together.
                if should_stop_before && rules.starts_key() {
                    writer.finish_table()?;
                    grandparents.restart();
                }
                match decision {
                    FilterDecision::Keep
                        if is_pointer && self.moves(merged.value(), &mut unmoved)? =>
                    {
                        self.values.read(&self.version.values, merged.value(), &mut value)?;
                        until_look = until_look.saturating_sub(value.len() as u64 >> 10).max(1);
                        writer.add_read(key, &value)?;
                    }
                    FilterDecision::Keep => {
                        writer.add_stored(key, merged.value(), || merged.lone_block())?;
                    }
                    FilterDecision::Replace(value) if is_pointer => writer.add_read(key, &value)?,
                    FilterDecision::Replace(value) => writer.add(key, &value)?,
                    FilterDecision::Remove => {
                        writer.add(
                            &internal_key::encode(entry.user_key, entry.sequence, kind),
                            &[],
                        )?;
                    }
                }
            }
            merged.next();
        }
        if !mutated("merge-errors") {
            merged.status()?;
        }
        writer.finish()
    }

    /// Whether so many bytes lie below the output.
    fn is_above_at_least(&self, bytes: u64) -> bool {
        let keys = &self.order.keys;
        key_range(keys, self.plan.files()).is_some_and(|(from, to)| {
            let below = self.plan.output_level + 1..NUM_LEVELS;
            self.version.overlap_at_least(keys, below, (&from, &to), bytes)
        })
    }

    /// Whether a value leaves the value file that it lies in, so that the file can go, or so that a
    /// database without a value log becomes plain.
    fn moves(&self, pointer: &[u8], unmoved: &mut Unmoved) -> Result<bool> {
        let pointer = ValuePointer::decode(pointer);
        let used = pointer.and_then(|pointer| self.version.values.get(pointer.file));
        let (pointer, used) = pointer.zip(used).ok_or_else(|| {
            Error::corruption("a table points into a value file that the MANIFEST does not name")
        })?;
        let moves = self.empties(used);
        if moves {
            unmoved.take(&pointer)?;
        }
        Ok(moves)
    }

    /// Whether values leave a value file.
    fn empties(&self, used: &UsedValueFile) -> bool {
        let comes_back = self.plan.reason == Reason::Manual && self.outputs.values.is_none();
        comes_back || used.is_collected()
    }

    /// Asks the device for those values that leave their files.
    fn ask_for_moving(&self, pointers: &[ValuePointer]) {
        let files = &self.version.values;
        let moving = |pointer: &&ValuePointer| {
            files.get(pointer.file).is_some_and(|used| self.empties(used))
        };
        self.values.ask(files, pointers.iter().filter(moving).copied());
    }

    fn sources(&self) -> Result<Vec<Source>> {
        let mut sources = Vec::new();
        for (side, files) in self.plan.inputs.iter().enumerate() {
            let level = if side == 0 { self.plan.level } else { self.plan.output_level };
            if level == 0 {
                for file in files {
                    sources.push(Source::Table(
                        self.tables.table(file)?.into_arc().iter(false).read_once(),
                    ));
                }
            } else if !files.is_empty() {
                let run = Level::from(files.clone());
                let run =
                    LevelIter::new(run, self.tables.clone(), self.order.clone(), false).read_once();
                sources.push(Source::Level(run));
            }
        }
        Ok(sources)
    }
}

/// The bytes of values that a compaction may copy out of each value file: as many as its inputs
/// use, as the MANIFEST says. So entries that share a value cannot have it copied without bound.
struct Unmoved(BTreeMap<u64, u64>);

impl Unmoved {
    fn of(plan: &Plan) -> Self {
        let mut bytes = BTreeMap::new();
        for used in plan.files().flat_map(|file| &file.values) {
            let sum: &mut u64 = bytes.entry(used.file).or_default();
            *sum = sum.saturating_add(used.bytes);
        }
        Unmoved(bytes)
    }

    fn take(&mut self, pointer: &ValuePointer) -> Result<()> {
        let left = self.0.get_mut(&pointer.file);
        let taken = left.and_then(|left| {
            *left = left.checked_sub(pointer.length)?;
            Some(())
        });
        taken.ok_or_else(|| {
            let name = filename::values(pointer.file);
            Error::corruption(format!("tables point at more of {name} than the MANIFEST says"))
        })
    }
}

/// Whether a key may have older entries below the output. Asked with ascending keys, so that each
/// level is iterated once.
struct Below<'a> {
    version: &'a Version,
    order: &'a InternalOrder,
    output_level: usize,
    positions: [usize; NUM_LEVELS],
}

impl<'a> Below<'a> {
    fn new(version: &'a Version, output_level: usize, order: &'a InternalOrder) -> Self {
        Below { version, order, output_level, positions: [0; NUM_LEVELS] }
    }

    fn is_base(&mut self, user_key: &[u8]) -> bool {
        if self.output_level == 0 && !mutated("intra-level-0-tombstones") {
            // Older files of level 0 may have it.
            return false;
        }
        let keys = &self.order.keys;
        for level in self.output_level + 1..NUM_LEVELS {
            let files = &self.version.levels[level];
            let position = &mut self.positions[level];
            while let Some(file) = files.get(*position) {
                if keys.compare(user_key, file.largest_user_key()) != Ordering::Greater {
                    if keys.compare(user_key, file.smallest_user_key()) != Ordering::Less {
                        return false;
                    }
                    break;
                }
                *position += 1;
            }
        }
        true
    }
}

/// How much of the level below the output the present table overlaps.
struct Grandparents<'a> {
    files: &'a [Arc<FileMeta>],
    order: &'a InternalOrder,
    limit: u64,
    position: usize,
    overlapped: u64,
}

impl<'a> Grandparents<'a> {
    fn new(files: &'a [Arc<FileMeta>], order: &'a InternalOrder, max_file_size: u64) -> Self {
        Grandparents {
            files,
            order,
            limit: Plan::grandparent_limit(max_file_size),
            position: 0,
            overlapped: 0,
        }
    }

    /// Whether the table must end before `key`, so that compacting it down later does not rewrite
    /// too much.
    #[inline]
    fn should_stop_before(&mut self, key: &[u8], present_size: u64) -> bool {
        while let Some(file) = self.files.get(self.position)
            && self.order.compare(key, &file.largest) == Ordering::Greater
        {
            if present_size > 0 {
                self.overlapped += file.size;
            }
            self.position += 1;
        }
        self.overlapped > self.limit
    }

    fn restart(&mut self) {
        self.overlapped = 0;
    }
}
