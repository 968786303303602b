//! Checks one table: blocks, order, range, sequence numbers, filter, properties. Changes nothing.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::sync::Arc;

use crate::base::error::{Error, Result};
use crate::base::internal_key::{EntryKind, InternalOrder, ParsedKey, SequenceNumber, user_key};
use crate::base::value_pointer::{ValuePointer, ValueUse};
use crate::env::RandomAccessFile;
use crate::table::{BlockEntries, Codecs, ScanItem, Table, TableOrder, TableProperties, rescue};
use crate::version::file_meta::FileMeta;
use crate::version::value_files::ValueFileMap;
use crate::version::value_reader::ValueReader;

use crate::db::check::problem::{shown_key, shown_user_key};
use crate::db::io_error::{is_damage, retry_once};

/// Messages about one table at most; more are only counted.
const MAX_MESSAGES: usize = 100;

/// The bounds of a table in the MANIFEST.
#[derive(Clone, Copy)]
pub(in crate::db) struct Expected<'a> {
    pub(in crate::db) file: &'a Arc<FileMeta>,
    pub(in crate::db) last_sequence: SequenceNumber,
}

/// The value files that tables may point into.
#[derive(Clone, Copy)]
pub(in crate::db) struct Values<'a> {
    pub(in crate::db) reader: &'a ValueReader,
    pub(in crate::db) files: &'a ValueFileMap,
}

impl Values<'_> {
    /// Asks the device for the values that `entries` point at, or the first of them.
    fn ask(&self, entries: &BlockEntries<'_>) {
        if self.files.iter().next().is_none() {
            return;
        }
        let mut pointers = Vec::new();
        entries.show(|key, value| pointers.extend(ValuePointer::of_entry(key, value)));
        self.reader.ask(self.files, pointers.into_iter());
    }

    /// What is wrong with the value that `pointer` leads to. An error is the system's.
    pub(in crate::db) fn problem(&self, pointer: &[u8]) -> Result<Option<String>> {
        match retry_once(|| self.reader.read(self.files, pointer, &mut Vec::new())) {
            Ok(()) => Ok(None),
            Err(error) if is_damage(&error) => Ok(Some(error.message().to_owned())),
            Err(error) => Err(error),
        }
    }
}

/// The contents of a table, and its problems.
#[derive(Default)]
pub(in crate::db) struct TableSummary {
    pub(in crate::db) blocks: u64,
    pub(in crate::db) entries: u64,
    /// The least and the greatest key that can be read; empty without entries.
    pub(in crate::db) smallest: Vec<u8>,
    pub(in crate::db) largest: Vec<u8>,
    pub(in crate::db) smallest_sequence: SequenceNumber,
    pub(in crate::db) largest_sequence: SequenceNumber,
    /// Whether the entries that can be read ascend and lie where the MANIFEST says.
    pub(in crate::db) is_orderly: bool,
    /// How much it points at of each value file, as far as it can be read.
    pub(in crate::db) values: BTreeMap<u64, u64>,
    /// The compressions beyond LevelDB's that its blocks have or its properties name.
    pub(in crate::db) codecs: Codecs,
    pub(in crate::db) messages: Vec<String>,
}

struct Check<'a> {
    order: &'a InternalOrder,
    values: Values<'a>,
    expected: Option<Expected<'a>>,
    summary: TableSummary,
    unlisted: u64,
    /// Whether an entry counts as lost because its value is.
    lost_values: bool,
    last: Vec<u8>,
    counted: Counted,
}

/// The properties as they should be.
#[derive(Default)]
struct Counted {
    deletions: u64,
    key_bytes: u64,
    value_bytes: u64,
}

/// Reads all of `table`. `on_block` is told the size of every block. An error is the system's, or
/// `NotSupported` for a table of a later version of Terrace: damage is in the summary.
pub(in crate::db) fn check_table(
    table: &Table,
    order: &InternalOrder,
    values: Values<'_>,
    expected: Option<Expected<'_>>,
    on_block: &mut dyn FnMut(u64),
) -> Result<TableSummary> {
    if table.properties().is_some_and(|properties| properties.codecs.has_unknown()) {
        let name = table.name();
        let message = format!("{name}: has a compression of a later version of Terrace");
        return Err(Error::not_supported(message));
    }
    let mut check = Check::new(order, values, expected);
    let (mut data_is_whole, mut stored) = (true, Codecs::default());
    table.scan(&mut |item| {
        match item {
            ScanItem::Block { size, codecs, entries } => {
                values.ask(&entries);
                check.summary.blocks += 1;
                stored = stored.union(codecs);
                on_block(size);
            }
            ScanItem::Entry { offset, key, value, fault } => {
                check.entry(offset, key, value, fault)?;
            }
            ScanItem::Damage { error, .. } if !is_damage(&error) => return Err(error),
            ScanItem::Damage { error, after, up_to } => {
                data_is_whole = false;
                let (after, up_to) =
                    (shown_user_key(user_key(after)), shown_user_key(user_key(up_to)));
                check.report(format!(
                    "{}; entries between {after} and {up_to} are lost",
                    error.message()
                ));
            }
        }
        Ok(())
    })?;
    let mut failed = None;
    table.for_each_meta_block(&mut |_, size, result| match result {
        Ok(codecs) => {
            check.summary.blocks += 1;
            stored = stored.union(codecs);
            on_block(size);
        }
        Err(error) if !is_damage(&error) => failed = Some(error),
        Err(error) => check.report(error.message().to_owned()),
    });
    if let Some(error) = failed {
        return Err(error);
    }
    check.codecs(stored, table.properties().map(|known| known.codecs));
    let data_is_whole = data_is_whole && !check.lost_values;
    if let Some(properties) = table.properties().filter(|_| data_is_whole) {
        check.properties(&properties);
    }
    if data_is_whole && let Some(Expected { file, .. }) = expected {
        check.value_uses(&file.values);
    }
    if check.summary.entries == 0 && data_is_whole {
        check.report("holds no entries".to_owned());
    }
    Ok(check.finish())
}

/// Looks for entries in a table that cannot be opened, for the reason that `error` gives.
pub(in crate::db) fn check_wreck(
    (file, name): (&Arc<dyn RandomAccessFile>, &str),
    order: &InternalOrder,
    values: Values<'_>,
    expected: Option<Expected<'_>>,
    error: &Error,
) -> Result<TableSummary> {
    let mut check = Check::new(order, values, expected);
    check.report(error.message().to_owned());
    let searched =
        rescue(file, name, &TableOrder::internal(order.keys.clone()), &mut |offset, key, value| {
            check.entry(offset, key, value, None)
        });
    if let Err(error) = searched {
        if !is_damage(&error) {
            return Err(error);
        }
        check.report(error.message().to_owned());
    }
    let found = check.summary.entries;
    check.report(format!("{found} entries were found without the index, all others are lost"));
    Ok(check.finish())
}

impl TableSummary {
    /// How much of which value files it points at.
    pub(in crate::db) fn value_uses(&self) -> Vec<ValueUse> {
        self.values.iter().map(|(&file, &bytes)| ValueUse { file, bytes }).collect()
    }
}

impl<'a> Check<'a> {
    fn new(order: &'a InternalOrder, values: Values<'a>, expected: Option<Expected<'a>>) -> Self {
        let summary = TableSummary {
            is_orderly: true,
            smallest_sequence: SequenceNumber::MAX,
            ..TableSummary::default()
        };
        Check {
            order,
            values,
            expected,
            summary,
            unlisted: 0,
            lost_values: false,
            last: Vec::new(),
            counted: Counted::default(),
        }
    }

    fn finish(mut self) -> TableSummary {
        if self.unlisted > 0 {
            let more = self.unlisted;
            self.summary.messages.push(format!("and {more} more of these"));
        }
        self.summary
    }

    fn report(&mut self, message: String) {
        match self.summary.messages.len() < MAX_MESSAGES {
            true => self.summary.messages.push(message),
            false => self.unlisted += 1,
        }
    }

    fn misplaced(&mut self, offset: u64, key: &[u8], what: &str) {
        self.summary.is_orderly = false;
        self.report(format!("block at offset {offset}: key {}: {what}", shown_key(key)));
    }

    /// An error is the system's.
    fn entry(
        &mut self,
        offset: u64,
        key: &[u8],
        value: &[u8],
        fault: Option<&'static str>,
    ) -> Result<()> {
        let Some(entry) = ParsedKey::parse(key) else {
            self.misplaced(offset, key, "too short, or of an unknown kind");
            return Ok(());
        };
        if entry.kind == EntryKind::Pointer {
            if let Some(problem) = self.values.problem(value)? {
                self.lost_values = true;
                self.report(format!("key {}: {problem}", shown_key(key)));
                return Ok(());
            }
            if let Some(pointer) = ValuePointer::decode(value) {
                let bytes = self.summary.values.entry(pointer.file).or_default();
                *bytes = bytes.saturating_add(pointer.length);
            }
        }
        if let Some(fault) = fault {
            self.report(format!("block at offset {offset}: key {}: {fault}", shown_key(key)));
        }
        let summary = &mut self.summary;
        summary.entries += 1;
        summary.smallest_sequence = summary.smallest_sequence.min(entry.sequence);
        summary.largest_sequence = summary.largest_sequence.max(entry.sequence);
        self.counted.deletions += u64::from(entry.kind == EntryKind::Deletion);
        self.counted.key_bytes += entry.user_key.len() as u64;
        self.counted.value_bytes += value.len() as u64;
        if summary.entries == 1 {
            summary.smallest.extend_from_slice(key);
            summary.largest.extend_from_slice(key);
        } else if self.order.compare(&self.last, key) != Ordering::Less {
            self.misplaced(offset, key, "not after the key before it");
        }
        if self.order.compare(key, &self.summary.smallest) == Ordering::Less {
            self.summary.smallest = key.to_vec();
        }
        if self.order.compare(key, &self.summary.largest) == Ordering::Greater {
            self.summary.largest.clear();
            self.summary.largest.extend_from_slice(key);
        }
        self.last.clear();
        self.last.extend_from_slice(key);
        let Some(Expected { file, last_sequence }) = self.expected else { return Ok(()) };
        if self.order.compare(key, &file.smallest) == Ordering::Less
            || self.order.compare(key, &file.largest) == Ordering::Greater
        {
            self.misplaced(offset, key, "outside of the range that the MANIFEST gives this table");
        }
        if entry.sequence > last_sequence {
            let what = format!("above the MANIFEST's last sequence number, {last_sequence}");
            self.report(format!("block at offset {offset}: key {}: {what}", shown_key(key)));
        }
        Ok(())
    }

    /// A table that LevelDB cannot read must be known for one. Those of forks, which have no
    /// properties, are in plain databases.
    fn codecs(&mut self, stored: Codecs, named: Option<Codecs>) {
        let Some(named) = named else { return };
        let all = named.union(stored);
        self.summary.codecs = all;
        if !named.contains(stored) {
            let names = match named.is_empty() {
                true => "none that LevelDB does not read".to_owned(),
                false => named.to_string(),
            };
            self.report(format!("blocks have {stored}, the properties say {names}"));
        } else if let Some(Expected { file, .. }) = self.expected
            && !file.codecs.contains(all)
        {
            self.report(format!(
                "has {all}, which LevelDB does not read, and the MANIFEST does not say so"
            ));
        }
    }

    /// Value files go when the MANIFEST has no table that points into them.
    fn value_uses(&mut self, named: &[ValueUse]) {
        let counted = self.summary.value_uses();
        if counted != named {
            self.report(format!("points at values as {counted:?}, the MANIFEST says {named:?}"));
        }
    }

    fn properties(&mut self, properties: &TableProperties) {
        let counted = TableProperties {
            entries: self.summary.entries,
            deletions: self.counted.deletions,
            raw_key_bytes: self.counted.key_bytes,
            raw_value_bytes: self.counted.value_bytes,
            smallest_sequence: self.summary.smallest_sequence,
            largest_sequence: self.summary.largest_sequence,
            // Not counted: it rests on what keyspaces there were.
            half_expired: properties.half_expired,
            codecs: properties.codecs,
        };
        if counted != *properties {
            self.report(format!("the properties say {properties:?}, the contents are {counted:?}"));
        }
    }
}
