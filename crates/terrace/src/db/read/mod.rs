//! The life of a point read: memtables, newest first, then tables, newest run to oldest.
//!
//! A read pins the view and *then* looks at the sequence number: whatever is visible by then and
//! not in the view is in a memtable that began after the read did.

pub(super) mod cursor;
pub(super) mod pinned;
pub(super) mod range;
pub(super) mod snapshot;

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::base::error::{Error, Result};
use crate::base::internal_key::{EntryKind, KIND_FOR_SEEK, SequenceNumber, TAG_SIZE, pack_tag};
use crate::iterator::deleted_ranges::Beginning;
use crate::table::BlockSlice;
use crate::version::file_meta::FileMeta;
use crate::version::version::Lookup;

use crate::db::db_impl::{DbImpl, READ_SAMPLE, Read, View};
use crate::db::options::ReadOptions;
use crate::db::read::pinned::PinnedValue;

/// Values shorter than this are copied out of a memtable rather than pinned there.
const PIN_FROM: usize = 4096;
/// Keys that `multi_get` looks up at the same time: as many as keep the processor's loads under
/// way, and few enough that what was asked for is still there when it is needed.
const AT_ONCE: usize = 16;

/// Where a value was found.
enum Found<'v> {
    Memtable { value: &'v [u8], memtable: usize },
    Block(BlockSlice),
}

impl Found<'_> {
    fn as_slice(&self) -> &[u8] {
        match self {
            Found::Memtable { value, .. } => value,
            Found::Block(slice) => slice.as_slice(),
        }
    }
}

/// An internal key made for seeking, without an allocation unless it is long.
struct SeekKey {
    short: [u8; Self::SHORT],
    long: Vec<u8>,
    length: usize,
}

impl SeekKey {
    const SHORT: usize = 128;

    fn new(user_key: &[u8], sequence: SequenceNumber) -> Self {
        let length = user_key.len() + TAG_SIZE;
        let mut key = SeekKey { short: [0; Self::SHORT], long: Vec::new(), length };
        if length > Self::SHORT {
            key.long = vec![0; length];
        }
        let bytes = if length > Self::SHORT { &mut key.long[..] } else { &mut key.short[..length] };
        let (prefix, tag) = bytes.split_at_mut(user_key.len());
        prefix.copy_from_slice(user_key);
        tag.copy_from_slice(&pack_tag(sequence, KIND_FOR_SEEK).to_le_bytes());
        key
    }

    fn as_slice(&self) -> &[u8] {
        if self.length > Self::SHORT { &self.long } else { &self.short[..self.length] }
    }
}

impl DbImpl {
    /// What a read with `options` looks into, and up to which write, if `view` is the present view.
    ///
    /// The sequence number is read after the view was taken. It may be a moment behind a view
    /// without the tables of a deleted range, which at an earlier number would be half a deletion.
    #[inline]
    fn as_of<'v>(
        self: &Arc<Self>,
        view: &'v Arc<View>,
        options: &'v ReadOptions,
    ) -> Result<(&'v Arc<View>, SequenceNumber)> {
        match &options.snapshot {
            None => Ok((view, self.visible_sequence().max(view.in_tables))),
            Some(snapshot) if snapshot.belongs_to(self) => {
                Ok((snapshot.earlier_view().unwrap_or(view), snapshot.sequence()))
            }
            Some(_) => Err(Error::invalid_argument("the snapshot belongs to another database")),
        }
    }

    /// What a read that [skips known deleted ranges](crate::iterator::deleted_ranges) takes before
    /// [what it reads](Self::present).
    pub(in crate::db) fn beginning(&self) -> Beginning {
        Beginning { moment: self.deleted_ranges.moment(), visible: self.visible_sequence() }
    }

    /// What a read that begins now, and may last, looks into, and up to which write.
    pub(in crate::db) fn present(
        self: &Arc<Self>,
        options: &ReadOptions,
    ) -> Result<(Arc<View>, SequenceNumber)> {
        self.check_open()?;
        // The view first: what the number counts is in it then, or came later.
        let present = self.view.load();
        let (view, sequence) = self.as_of(&present, options)?;
        Ok((view.clone(), sequence))
    }

    /// Looks `key` up in a view as of a sequence number that was read after the view was pinned.
    fn find<'v>(
        self: &Arc<Self>,
        view: &'v View,
        key: &[u8],
        sequence: SequenceNumber,
        options: &ReadOptions,
    ) -> Result<Option<Found<'v>>> {
        if let Some(found) = find_in_memtables(view, key, sequence) {
            return Ok(found);
        }
        let seek_key = SeekKey::new(key, sequence);
        let lookup = view.version.get(
            &self.tables,
            &self.order,
            seek_key.as_slice(),
            !options.skip_cache,
        )?;
        self.found(lookup)
    }

    /// What a look-up in tables found.
    #[inline]
    fn found(self: &Arc<Self>, lookup: Lookup<'_>) -> Result<Option<Found<'static>>> {
        if self.options.seek_compaction && sampled() {
            self.sample_read(Read::Lookup, lookup.wasted.map(|(_, file)| file));
        }
        let Some(hit) = lookup.hit else { return Ok(None) };
        match EntryKind::from_byte(hit.tag as u8) {
            Some(EntryKind::Value) => Ok(Some(Found::Block(hit.value))),
            Some(EntryKind::Deletion) => Ok(None),
            None => Err(Error::corruption("a table holds an entry of an unknown kind")),
        }
    }

    /// Counts a seek of a cursor over several runs towards read-triggered compactions.
    #[inline]
    pub(in crate::db) fn sample_seek(self: &Arc<Self>) {
        if self.options.seek_compaction && sampled() {
            self.sample_read(Read::Seek, None);
            if self.read_stats.sample_seek(self.visible_sequence()) {
                self.compact_for_scans();
            }
        }
    }

    /// Compacts as in an idle database, but leaves the memtable, which is being written.
    #[cold]
    fn compact_for_scans(self: &Arc<Self>) {
        if self.works_elsewhere() {
            return;
        }
        let mut state = self.state.lock();
        if !state.is_write_idle {
            state.is_write_idle = true;
            self.schedule(&mut state);
        }
    }

    /// Counts a sampled read, and the file that it searched without a hit, if there was one.
    #[cold]
    fn sample_read(self: &Arc<Self>, kind: Read, wasted: Option<&Arc<FileMeta>>) {
        if self.works_elsewhere() {
            return;
        }
        let exhausted = |file: &Arc<FileMeta>| {
            let sample = READ_SAMPLE as i64;
            (1..=sample).contains(&file.seeks_left.fetch_sub(sample, Ordering::Relaxed))
        };
        let becomes_idle = self.read_stats.sample(self.visible_sequence(), kind);
        if becomes_idle || wasted.is_some_and(exhausted) {
            let mut state = self.state.lock();
            state.is_write_idle |= becomes_idle;
            self.schedule(&mut state);
            if becomes_idle {
                self.read_stats.look_again(self.view.load().version.bytes());
                self.schedule_idle_flush(&mut state);
            }
        }
    }

    /// Looks `key` up and hands its value to `use_value`.
    #[inline]
    pub(in crate::db) fn get<R>(
        self: &Arc<Self>,
        key: &[u8],
        options: &ReadOptions,
        use_value: impl FnOnce(&[u8]) -> R,
    ) -> Result<Option<R>> {
        self.check_open()?;
        let present = self.view.load();
        let (view, sequence) = self.as_of(&present, options)?;
        let found = self.find(view, key, sequence, options)?;
        Ok(found.map(|found| use_value(found.as_slice())))
    }

    /// Looks `key` up as it is now, hands its value to `use_value`, and returns what that returns,
    /// and a sequence number up to which the read certainly sees: read before the view is taken,
    /// so that it counts no load and no range delete that is not part of the view.
    pub(in crate::db) fn get_present<R>(
        self: &Arc<Self>,
        key: &[u8],
        use_value: impl FnOnce(Option<&[u8]>) -> R,
    ) -> Result<(R, SequenceNumber)> {
        let options = ReadOptions::new();
        let seen = self.visible_sequence();
        let (view, sequence) = self.present(&options)?;
        let found = self.find(&view, key, sequence, &options)?;
        Ok((use_value(found.as_ref().map(Found::as_slice)), seen))
    }

    /// Looks every key up, all as of one moment.
    pub(in crate::db) fn multi_get<K: AsRef<[u8]>>(
        self: &Arc<Self>,
        keys: &[K],
        options: &ReadOptions,
    ) -> Result<Vec<Option<Vec<u8>>>> {
        let (view, sequence) = self.present(options)?;
        let value = |found: Option<Found<'_>>| found.map(|found| found.as_slice().to_vec());
        let mut values = Vec::with_capacity(keys.len());
        // Keys that no memtable knows, and their places in `values`.
        let mut left = Vec::with_capacity(AT_ONCE.min(keys.len()));
        for group in keys.chunks(AT_ONCE) {
            for key in group.iter().map(AsRef::as_ref) {
                let found = find_in_memtables(&view, key, sequence);
                if found.is_none() {
                    left.push((SeekKey::new(key, sequence), values.len()));
                }
                values.push(value(found.flatten()));
            }
            let (seek_keys, mut places) =
                (left.iter().map(|(key, _)| key.as_slice()), left.iter().map(|(_, at)| *at));
            view.version.get_many(
                &self.tables,
                &self.order,
                seek_keys,
                !options.skip_cache,
                |lookup| {
                    let found = value(self.found(lookup)?);
                    if let Some(at) = places.next() {
                        values[at] = found;
                    }
                    Ok(())
                },
            )?;
            left.clear();
        }
        Ok(values)
    }

    pub(in crate::db) fn get_pinned(
        self: &Arc<Self>,
        key: &[u8],
        options: &ReadOptions,
    ) -> Result<Option<PinnedValue>> {
        self.check_open()?;
        let present = self.view.load();
        let (view, sequence) = self.as_of(&present, options)?;
        Ok(match self.find(view, key, sequence, options)? {
            None => None,
            Some(Found::Block(slice)) => Some(PinnedValue::block(slice)),
            Some(Found::Memtable { value, .. }) if value.len() < PIN_FROM => {
                Some(PinnedValue::owned(value.to_vec()))
            }
            Some(Found::Memtable { value, memtable }) => {
                let table =
                    if memtable == 0 { &view.memtable } else { &view.immutables[memtable - 1] };
                let mut iter = table.iter();
                iter.seek(SeekKey::new(key, sequence).as_slice());
                debug_assert!(std::ptr::eq(iter.value(), value));
                Some(PinnedValue::memtable(iter))
            }
        })
    }
}

/// What the memtables say about `key`: `None` if they do not know it.
#[inline]
fn find_in_memtables<'v>(
    view: &'v View,
    key: &[u8],
    sequence: SequenceNumber,
) -> Option<Option<Found<'v>>> {
    let memtables = std::iter::once(&view.memtable).chain(&view.immutables);
    memtables.enumerate().find_map(|(memtable, table)| {
        let (tag, value) = table.get(key, sequence)?;
        let is_value = EntryKind::from_byte(tag as u8) == Some(EntryKind::Value);
        Some(is_value.then_some(Found::Memtable { value, memtable }))
    })
}

/// True once in [`READ_SAMPLE`] calls of a thread.
fn sampled() -> bool {
    thread_local!(static CALLS: Cell<u64> = const { Cell::new(0) });
    CALLS.with(|calls| {
        calls.set(calls.get().wrapping_add(1));
        calls.get() % READ_SAMPLE == 0
    })
}
