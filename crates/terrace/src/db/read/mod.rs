//! The life of a point read: memtables, newest first, then tables, newest run to oldest.
//!
//! A read pins the view and *then* looks at the sequence number: whatever is visible by then and
//! not in the view is in a memtable that began after the read did.

pub(super) mod cursor;
pub(super) mod entries;
pub(super) mod expiring;
mod held;
pub(super) mod pinned;
pub(super) mod range;
pub(super) mod read_options;
mod sampling;
pub(super) mod snapshot;

use std::cell::OnceCell;
use std::sync::Arc;

use crate::base::error::{Error, Result};
use crate::base::internal_key::{EntryKind, KIND_FOR_SEEK, SequenceNumber, TAG_SIZE, pack_tag};
use crate::base::value_pointer::ValuePointer;
use crate::table::{BlockSlice, TableHit};
use crate::version::version::{Lookup, TOGETHER, Version};

use crate::db::db_impl::DbImpl;
use crate::db::db_impl::background::read_stats::Read;
use crate::db::db_impl::files::Files;
use crate::db::read::expiring::{may_expire, needs_catalogue, shown, shown_at_once};
use crate::db::read::pinned::PinnedValue;
use crate::db::read::read_options::ReadOptions;
use crate::db::read::sampling::{is_sampled, sample_read};
use crate::db::view::View;

/// Values shorter than this are copied out of a memtable rather than pinned there.
const PIN_FROM: usize = 4096;
/// Keys that `multi_get` looks up at the same time where most wait for a device, which reads for as
/// many at once as it can; [`TOGETHER`] otherwise.
const AT_ONCE_FROM_DEVICE: usize = 64;

/// Where a value was found.
enum Found<'v> {
    Memtable {
        value: &'v [u8],
        memtable: usize,
    },
    Block(BlockSlice),
    /// Read from a value file.
    Read(Vec<u8>),
}

impl Found<'_> {
    fn as_slice(&self) -> &[u8] {
        match self {
            Found::Memtable { value, .. } => value,
            Found::Block(slice) => slice.as_slice(),
            Found::Read(value) => value,
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

/// Returns the view that a read with `options` looks into, and the last write that it sees, if
/// `view` is the present view.
///
/// The sequence number is read after the view was taken. It may be a moment behind a view
/// without the tables of a deleted range, which at an earlier number would be half a deletion.
#[inline]
fn as_of<'v>(
    core: &DbImpl,
    view: &'v Arc<View>,
    options: &'v ReadOptions,
) -> Result<(&'v Arc<View>, SequenceNumber)> {
    match &options.snapshot {
        None => Ok((view, core.views.visible_sequence().max(view.in_tables))),
        Some(snapshot) if snapshot.belongs_to(&core.views.snapshots) => {
            Ok((snapshot.earlier_view().unwrap_or(view), snapshot.sequence()))
        }
        Some(_) => Err(Error::invalid_argument("the snapshot belongs to another database")),
    }
}

/// Returns the view that a read that begins now, and may last, looks into, and the last write that
/// it sees.
pub(in crate::db) fn present(
    core: &DbImpl,
    options: &ReadOptions,
) -> Result<(Arc<View>, SequenceNumber)> {
    core.files.check_open()?;
    // The view first: what the number counts is in it then, or came later.
    let present = core.views.current.load();
    let (view, sequence) = as_of(core, &present, options)?;
    Ok((view.clone(), sequence))
}

/// Looks `key` up in a view as of a sequence number that was read after the view was pinned.
fn find<'v>(
    core: &DbImpl,
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
        &core.files.tables,
        &core.files.order,
        seek_key.as_slice(),
        !options.skip_cache,
    )?;
    found(core, &view.version, key, lookup, options)
}

/// Returns the value that a lookup of `key` in tables found.
#[inline]
fn found(
    core: &DbImpl,
    version: &Version,
    key: &[u8],
    lookup: Lookup<'_>,
    options: &ReadOptions,
) -> Result<Option<Found<'static>>> {
    if is_sampled() {
        sample_read(core, Read::Lookup, lookup.wasted);
    }
    let Some(hit) = lookup.hit else { return Ok(None) };
    match EntryKind::from_byte(hit.tag as u8) {
        Some(EntryKind::Value) => Ok(Some(Found::Block(hit.value))),
        Some(EntryKind::Deletion) => Ok(None),
        Some(EntryKind::Pointer) => read_value(core, version, key, &hit.value, options).map(Some),
        None => Err(Error::corruption("a table holds an entry of an unknown kind")),
    }
}

/// Reads the value that the entry of `key` points at, if the read looks at it.
#[cold]
fn read_value(
    core: &DbImpl,
    version: &Version,
    key: &[u8],
    pointer: &BlockSlice,
    options: &ReadOptions,
) -> Result<Found<'static>> {
    let mut value = Vec::new();
    if options.keys_only && !may_expire(core, key, options)? {
        return Ok(Found::Read(value));
    }
    core.files
        .sparing(|| core.files.values.read(&version.values, pointer.as_slice(), &mut value))?;
    Ok(Found::Read(value))
}

/// Looks `key` up and hands its value to `use_value`.
#[inline]
pub(in crate::db) fn get<R>(
    core: &DbImpl,
    key: &[u8],
    options: &ReadOptions,
    use_value: impl FnOnce(&[u8]) -> R,
) -> Result<Option<R>> {
    core.files.check_open()?;
    let present = core.views.current.load();
    let (view, sequence) = as_of(core, &present, options)?;
    let Some(found) = find(core, view, key, sequence, options)? else { return Ok(None) };
    Ok(shown(core, key, found.as_slice(), options)?.map(use_value))
}

/// Whether `key` has a value.
pub(in crate::db) fn contains(core: &DbImpl, key: &[u8], options: &ReadOptions) -> Result<bool> {
    Ok(get(core, key, &options.clone().keys_only(), |_| ())?.is_some())
}

/// [`get`] without reading a file; `None` if what is in memory does not tell.
pub(in crate::db) fn get_in_memory<R>(
    core: &DbImpl,
    key: &[u8],
    options: &ReadOptions,
    use_value: impl FnOnce(&[u8]) -> R,
) -> Result<Option<Option<R>>> {
    core.files.check_open()?;
    let present = core.views.current.load();
    let (view, sequence) = as_of(core, &present, options)?;
    let value = match find_in_memtables(view, key, sequence) {
        Some(value) => value,
        None => {
            let seek_key = SeekKey::new(key, sequence);
            let Files { tables, order, .. } = core.files.as_ref();
            let lookup = view.version.get_in_memory(tables, order, seek_key.as_slice())?;
            let Some(lookup) = lookup else { return Ok(None) };
            if lookup.hit.as_ref().is_some_and(is_pointer) {
                return Ok(None);
            }
            found(core, &view.version, key, lookup, options)?
        }
    };
    let Some(found) = value else { return Ok(Some(None)) };
    if needs_catalogue(core, key, options) {
        return Ok(None);
    }
    Ok(Some(shown(core, key, found.as_slice(), options)?.map(use_value)))
}

/// Looks `key` up as it is now, hands its value to `use_value`, and returns what that returns,
/// and a sequence number up to which the read certainly sees: read before the view is taken,
/// so that it counts no load and no range delete that is not part of the view.
pub(in crate::db) fn get_present<R>(
    core: &DbImpl,
    key: &[u8],
    use_value: impl FnOnce(Option<&[u8]>) -> R,
) -> Result<(R, SequenceNumber)> {
    let options = ReadOptions::new();
    let seen = core.views.visible_sequence();
    let (view, sequence) = present(core, &options)?;
    let found = match find(core, &view, key, sequence, &options)? {
        // The caller's code may last, and write: a short hold must do neither.
        Some(Found::Block(slice)) => Some(Found::Block(slice.detach())),
        found => found,
    };
    let value = match &found {
        Some(found) => shown(core, key, found.as_slice(), &options)?,
        None => None,
    };
    Ok((use_value(value), seen))
}

/// Whether a lookup has found a pointer in place of a value.
fn is_pointer(hit: &TableHit) -> bool {
    hit.tag as u8 == EntryKind::Pointer as u8
}

/// Looks every key up, all as of one moment.
pub(in crate::db) fn multi_get<K: AsRef<[u8]>>(
    core: &DbImpl,
    keys: &[K],
    options: &ReadOptions,
) -> Result<Vec<Option<Vec<u8>>>> {
    let (view, sequence) = present(core, options)?;
    let now = OnceCell::new();
    let value = |key: &[u8], found: Option<Found<'_>>| match found {
        Some(found) => {
            let shown = shown_at_once(core, key, found.as_slice(), options, &now)?;
            Ok(shown.map(<[u8]>::to_vec))
        }
        None => Result::Ok(None),
    };
    let mut values = Vec::with_capacity(keys.len());
    // Keys that no memtable knows, and their places in `values`.
    let tables = &core.files.tables;
    let many = tables.exceed_memory() && tables.can_spare(AT_ONCE_FROM_DEVICE);
    let at_once = if many { AT_ONCE_FROM_DEVICE } else { TOGETHER };
    let mut left = Vec::with_capacity(at_once.min(keys.len()));
    for group in keys.chunks(at_once) {
        for key in group.iter().map(AsRef::as_ref) {
            let found = find_in_memtables(&view, key, sequence);
            if found.is_none() {
                left.push((SeekKey::new(key, sequence), values.len()));
            }
            values.push(value(key, found.flatten())?);
        }
        let (seek_keys, mut places) =
            (left.iter().map(|(key, _)| key.as_slice()), left.iter().map(|(_, at)| *at));
        let mut pointed = Vec::new();
        view.version.get_many(
            &core.files.tables,
            &core.files.order,
            seek_keys,
            !options.skip_cache,
            |lookup| {
                let Some(at) = places.next() else { return Ok(()) };
                let key = keys[at].as_ref();
                match lookup.hit {
                    Some(hit) if is_pointer(&hit) && !options.keys_only => {
                        if is_sampled() {
                            sample_read(core, Read::Lookup, lookup.wasted);
                        }
                        pointed.push((at, hit.value));
                    }
                    _ => {
                        values[at] = value(key, found(core, &view.version, key, lookup, options)?)?
                    }
                }
                Ok(())
            },
        )?;
        left.clear();
        // Where one of them is waited for, the others of the group are read meanwhile.
        let mut asked = 0;
        for (number, (at, pointer)) in pointed.iter().enumerate() {
            let mut ask = || {
                if number >= asked {
                    let others = pointed[number..].iter();
                    let others =
                        others.map_while(|(_, other)| ValuePointer::decode(other.as_slice()));
                    asked = number + core.files.values.ask(&view.version.values, others);
                }
            };
            let mut read = Vec::new();
            core.files.sparing(|| {
                let files = &view.version.values;
                core.files.values.read_or_wait(files, pointer.as_slice(), &mut read, &mut ask)
            })?;
            values[*at] = value(keys[*at].as_ref(), Some(Found::Read(read)))?;
        }
    }
    Ok(values)
}

pub(in crate::db) fn get_pinned(
    core: &DbImpl,
    key: &[u8],
    options: &ReadOptions,
) -> Result<Option<PinnedValue>> {
    core.files.check_open()?;
    let present = core.views.current.load();
    let (view, sequence) = as_of(core, &present, options)?;
    let Some(found) = find(core, view, key, sequence, options)? else { return Ok(None) };
    let Some(length) = shown(core, key, found.as_slice(), options)?.map(<[u8]>::len) else {
        return Ok(None);
    };
    Ok(Some(match found {
        Found::Block(slice) => PinnedValue::block(slice, length),
        Found::Read(value) => PinnedValue::read(value, length),
        Found::Memtable { value, .. } if value.len() < PIN_FROM => {
            PinnedValue::owned(value[..length].to_vec())
        }
        Found::Memtable { value, memtable } => {
            let table = if memtable == 0 { &view.memtable } else { &view.immutables[memtable - 1] };
            let mut iter = table.iter();
            iter.seek(SeekKey::new(key, sequence).as_slice());
            debug_assert!(std::ptr::eq(iter.value(), value));
            PinnedValue::memtable(iter, length)
        }
    }))
}

/// Looks `key` up in the memtables: `None` if they have no entry of it.
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
