//! Keyspaces: named, ordered sets of keys in one database.
//!
//! A keyspace is a prefix of keys and a handle over it. The prefix of `users` is `!users!`, and
//! that of `archived` within it `!users!!archived!`: what the `sublevel` of abstract-level and
//! classic-level makes, so that programs in other languages see the same keyspaces ([`name`]).
//! Batches, snapshots, transactions and checkpoints span keyspaces, for they are one tree; for the
//! same reason compactions do not isolate them from each other, and all have the bytewise order.
//!
//! A catalogue in a reserved keyspace has an entry for each that was created here ([`catalogue`]);
//! any other is found by its keys. A program that clears the whole database takes the entries with
//! it, and then a keyspace without keys is not listed any more: nothing else is lost.
//!
//! # Invariants
//! 1. A keyspace goes as one step, with the keyspaces within it and their entries in the catalogue.
//! 2. A handle of a keyspace that was dropped writes nothing, also if another one was created under
//!    its name: each creation makes an *incarnation*, which writes check under the commit lock.
//! 3. One incarnation of a prefix is alive at most. The registry's lock is held for a moment only,
//!    also under the commit lock; creations and drops follow one another by a lock of their own,
//!    which is taken before any other. An open takes neither that nor a lock under which others
//!    wait.

mod clock_mark;
mod cursor;
mod entries;
#[expect(clippy::module_inception, reason = "the handle, as db.rs")]
mod keyspace;
mod lifecycle;
mod name;
mod put_options;
mod reads;
mod updates;
mod writes;

use std::cell::RefCell;
use std::ops::Bound;
use std::sync::Arc;

use crate::base::error::Result;
use crate::compaction::filter::CompactionFilter;

use crate::db::db_impl::DbImpl;
use crate::db::db_impl::incarnations::{Incarnation, Incarnations};
use crate::db::key_range::{KeyRange, check_prefixes, prefix_end};
use crate::db::options::WriteOptions;
use crate::db::range_delete::delete_ranges;
use crate::db::range_delete::terms::Terms;
use crate::db::read;
use crate::db::read::cursor::Cursor;
use crate::db::read::read_options::ReadOptions;
use crate::db::view::catalogue::keyspace_options::KeyspaceOptions;
use crate::db::view::catalogue::{Catalogue, entry};
use crate::table::PrefixSetting;

pub use self::cursor::KeyspaceCursor;
pub use self::entries::KeyspaceEntries;
pub use self::keyspace::Keyspace;
pub use self::put_options::PutOptions;

/// The end of the keyspace with a prefix, when its keys are gone.
struct Ending<'a> {
    keyspaces: &'a Incarnations,
    catalogue: &'a Catalogue,
    prefix: &'a [u8],
    /// Those of the keyspace, dropped when no lock is held: programs' destructors run then.
    filters: RefCell<Vec<Arc<dyn CompactionFilter>>>,
}

impl Terms for Ending<'_> {
    fn done(&self) {
        self.keyspaces.registry.lock().end(self.prefix);
        self.filters.borrow_mut().extend(self.catalogue.filters.lock().remove_within(self.prefix));
    }
}

/// The parent of a keyspace: another one, or the database.
type Parent<'a> = Option<&'a Incarnation>;

fn prefix_within(parent: Parent<'_>, name: &str) -> Result<Vec<u8>> {
    name::prefix(parent.map_or(&[], |parent| &parent.prefix), name)
}

/// Makes the keyspace `name` within `parent`.
fn create_keyspace(
    core: &Arc<DbImpl>,
    parent: Parent<'_>,
    name: &str,
    options: &KeyspaceOptions,
) -> Result<Option<Arc<Incarnation>>> {
    check_prefixes(&core.files.order.keys)?;
    let prefix = prefix_within(parent, name)?;
    options.check()?;
    let _one = core.keyspaces.one_at_a_time.lock();
    parent.map_or(Ok(()), Incarnation::check)?;
    let is_open = core.keyspaces.registry.lock().alive.contains_key(&prefix);
    if is_open || find_keyspace(core, &prefix)?.is_some() {
        return Ok(None);
    }
    core.files.check_writable()?;
    // Before there is a key that they are for.
    let settings = core.keyspaces.settings.lock();
    core.background.change_settings(|all| all.set(&prefix, options.prefix_setting()))?;
    drop(settings);
    let (key, value) = (entry::key(&prefix), entry::encode(options));
    core.writes.write_one(&key, Some(&value), WriteOptions::sync())?;
    core.background.schedule_expiry_check();
    Ok(Some(core.keyspaces.registry.lock().get_or_add(prefix, options.clone())))
}

/// The keyspace `name` within `parent`, if it is in the catalogue or has keys.
fn open_keyspace(
    core: &Arc<DbImpl>,
    parent: Parent<'_>,
    name: &str,
) -> Result<Option<Arc<Incarnation>>> {
    check_prefixes(&core.files.order.keys)?;
    let prefix = prefix_within(parent, name)?;
    if core.files.is_inherited() {
        // A child of a fork only reads, and the registry's lock may never be free in it.
        let options = find_keyspace(core, &prefix)?;
        return Ok(options.map(|options| Incarnation::new(prefix, options)));
    }
    loop {
        let drops = {
            let registry = core.keyspaces.registry.lock();
            if let Some(incarnation) = registry.alive.get(&prefix) {
                return Ok(Some(incarnation.clone()));
            }
            registry.drops
        };
        let Some(options) = find_keyspace(core, &prefix)? else { return Ok(None) };
        // What was found may be gone, and what is created after it gets settings of its own, which
        // come later than these.
        let _settings = core.keyspaces.settings.lock();
        if core.keyspaces.registry.lock().drops != drops {
            continue;
        }
        match options.prefix_setting() {
            none if none == PrefixSetting::default() => _ = core.background.prefix_settings()?,
            setting => core.background.ensure_setting(&prefix, setting)?,
        }
        let mut registry = core.keyspaces.registry.lock();
        if registry.drops == drops {
            return Ok(Some(registry.get_or_add(prefix, options)));
        }
    }
}

/// Deletes the keyspace `name` within `parent` and all that lies within it. Returns whether
/// there was one.
fn drop_keyspace(core: &Arc<DbImpl>, parent: Parent<'_>, name: &str) -> Result<bool> {
    check_prefixes(&core.files.order.keys)?;
    let prefix = prefix_within(parent, name)?;
    let one = core.keyspaces.one_at_a_time.lock();
    parent.map_or(Ok(()), Incarnation::check)?;
    let is_open = core.keyspaces.registry.lock().alive.contains_key(&prefix);
    // One with settings that are not known here can be dropped all the same.
    let has_entry = || read::contains(core, &entry::key(&prefix), &ReadOptions::new());
    if !is_open && !has_entry()? && find_keyspace(core, &prefix)?.is_none() {
        return Ok(false);
    }
    let ranges = [prefix.clone(), entry::key(&prefix)]
        .map(|prefix| KeyRange::prefix(&core.files.order.keys, &prefix));
    let ranges = ranges.into_iter().collect::<Result<Vec<_>>>()?;
    let (keyspaces, catalogue) = (&core.keyspaces, &core.files.catalogue);
    let ending = Ending { keyspaces, catalogue, prefix: &prefix, filters: RefCell::default() };
    let deleted = delete_ranges(core, ranges, WriteOptions::sync(), &ending);
    drop(one);
    deleted.map(|()| true)
}

/// The settings of a keyspace that is in the catalogue, as one that can be used, or has keys or
/// keyspaces within it.
fn find_keyspace(core: &Arc<DbImpl>, prefix: &[u8]) -> Result<Option<KeyspaceOptions>> {
    let key = entry::key(prefix);
    let decoded = |value: &[u8]| {
        entry::decode(value).map(Some).map_err(|error| error.context(name::shown(prefix)))
    };
    if let Some(value) = read::get(core, &key, &ReadOptions::new(), <[u8]>::to_vec)? {
        return decoded(&value);
    }
    // Keys of its own, or entries of keyspaces within it. The second cursor's view is newer than the
    // first one's: if the keyspace has been created in between, it has its entry.
    let first_of = |begins: &[u8]| {
        let mut options = ReadOptions::new().stored_values(true).keys_only();
        options.upper_bound = prefix_end(begins);
        let mut cursor = Cursor::new(core, &options)?;
        cursor.seek(begins);
        cursor.status().map(|()| cursor)
    };
    let has_keys = first_of(prefix)?.valid();
    let mut cursor = first_of(&key)?;
    if cursor.key() == key {
        cursor.load_value();
    }
    cursor.status()?;
    match cursor.entry() {
        Some((found, value)) if found == key => decoded(value),
        Some(_) => Ok(Some(KeyspaceOptions::new())),
        None => Ok(has_keys.then(KeyspaceOptions::new)),
    }
}

/// The names of the keyspaces right within `parent`, in order: those of the catalogue and those
/// that have keys.
fn keyspaces_within(core: &Arc<DbImpl>, parent: &[u8]) -> Result<Vec<String>> {
    check_prefixes(&core.files.order.keys)?;
    let mut names = names_behind(core, &entry::key(parent))?;
    names.extend(names_behind(core, parent)?);
    names.sort_unstable();
    names.dedup();
    if parent.is_empty() {
        names.retain(|name| name != entry::RESERVED);
    }
    Ok(names)
}

/// The names that follow `before` in keys: finds one, and skips to behind its keys.
fn names_behind(core: &Arc<DbImpl>, before: &[u8]) -> Result<Vec<String>> {
    let mut names = Vec::new();
    let first = [before, b"!"].concat();
    let mut options = ReadOptions::new().stored_values(true).keys_only();
    options.upper_bound = prefix_end(&first);
    let mut cursor = Cursor::new(core, &options)?;
    let mut next = Some(first);
    while let Some(target) = next.take() {
        cursor.seek(&target);
        let Some((key, _)) = cursor.entry() else { break };
        let Some(rest) = key.strip_prefix(before).filter(|rest| rest.starts_with(b"!")) else {
            break;
        };
        let (name, length) = name::first(rest);
        names.extend(name.map(str::to_owned));
        next = match length {
            // A key that ends within what could be a name.
            None => Some([key, &[0]].concat()),
            Some(length) => prefix_end(&key[..before.len() + length]),
        };
    }
    cursor.status()?;
    Ok(names)
}

/// Bounds of keys within a keyspace as bounds of keys of the database.
fn bounds_within(
    prefix: &[u8],
    from: Bound<&[u8]>,
    to: Bound<&[u8]>,
) -> (Bound<Vec<u8>>, Bound<Vec<u8>>) {
    let within = |key: &[u8]| [prefix, key].concat();
    let from = match from {
        Bound::Unbounded => Bound::Included(prefix.to_vec()),
        bound => bound.map(within),
    };
    let to = match to {
        Bound::Unbounded => prefix_end(prefix).map_or(Bound::Unbounded, Bound::Excluded),
        bound => bound.map(within),
    };
    (from, to)
}
