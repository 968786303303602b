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
//!    which is taken before any other.

mod catalogue;
mod cursor;
mod entries;
#[expect(clippy::module_inception, reason = "the handle, as db.rs")]
mod keyspace;
mod name;
mod options;

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::base::error::{Error, Result};
use crate::base::locks::Mutex;

use crate::db::db_impl::DbImpl;
use crate::db::options::{ReadOptions, WriteOptions};
use crate::db::range_delete::{KeyRange, Terms};
use crate::db::read::cursor::Cursor;
use crate::db::read::range::{check_prefixes, prefix_end};

pub use self::cursor::KeyspaceCursor;
pub use self::entries::KeyspaceEntries;
pub use self::keyspace::Keyspace;
pub use self::options::KeyspaceOptions;

/// A keyspace from its creation, or from when it was found, to its end.
pub(in crate::db) struct Incarnation {
    /// What its keys begin with.
    prefix: Vec<u8>,
    is_dropped: AtomicBool,
}

impl Incarnation {
    fn new(prefix: Vec<u8>) -> Arc<Self> {
        Arc::new(Incarnation { prefix, is_dropped: AtomicBool::new(false) })
    }

    fn is_alive(&self) -> bool {
        !self.is_dropped.load(Ordering::Acquire)
    }

    fn check(&self) -> Result<()> {
        match self.is_alive() {
            true => Ok(()),
            false => Err(Error::closed(format!("{} was dropped", name::shown(&self.prefix)))),
        }
    }
}

/// The incarnations that there are handles of or have been.
#[derive(Default)]
pub(in crate::db) struct Keyspaces {
    registry: Mutex<Registry>,
    /// Held while a keyspace is created or dropped.
    one_at_a_time: Mutex<()>,
}

#[derive(Default)]
struct Registry {
    /// By their prefixes.
    alive: BTreeMap<Vec<u8>, Arc<Incarnation>>,
    /// How many keyspaces were dropped: what was found before one was may be gone.
    drops: u64,
}

impl Registry {
    fn get_or_add(&mut self, prefix: Vec<u8>) -> Arc<Incarnation> {
        let new = || Incarnation::new(prefix.clone());
        self.alive.entry(prefix.clone()).or_insert_with(new).clone()
    }

    /// Ends the incarnations of a prefix and of what lies within it.
    fn end(&mut self, prefix: &[u8]) {
        self.drops += 1;
        let within = self.alive.range(prefix.to_vec()..);
        let within = within.take_while(|(other, _)| other.starts_with(prefix));
        let ended: Vec<_> = within.map(|(other, _)| other.clone()).collect();
        for incarnation in ended.iter().filter_map(|other| self.alive.remove(other)) {
            incarnation.is_dropped.store(true, Ordering::Release);
        }
    }
}

/// The end of the keyspace with a prefix, when its keys are gone.
struct Ending<'a> {
    keyspaces: &'a Keyspaces,
    prefix: &'a [u8],
}

impl Terms for Ending<'_> {
    fn done(&self) {
        self.keyspaces.registry.lock().end(self.prefix);
    }
}

impl DbImpl {
    /// Makes the keyspace `name` within `parent`, the prefix of another one or nothing.
    fn create_keyspace(
        self: &Arc<Self>,
        parent: &[u8],
        name: &str,
        options: &KeyspaceOptions,
    ) -> Result<Arc<Incarnation>> {
        check_prefixes(&self.order.keys)?;
        let prefix = name::prefix(parent, name)?;
        let _one = self.keyspaces.one_at_a_time.lock();
        let is_open = self.keyspaces.registry.lock().alive.contains_key(&prefix);
        if is_open || self.find_keyspace(&prefix)? {
            return Err(Error::invalid_argument(format!(
                "{} exists already",
                name::shown(&prefix)
            )));
        }
        let (key, value) = (catalogue::key(&prefix), catalogue::encode(options));
        self.write_one(&key, Some(&value), WriteOptions::sync())?;
        Ok(self.keyspaces.registry.lock().get_or_add(prefix))
    }

    /// The keyspace `name` within `parent`, if it is in the catalogue or has keys.
    fn open_keyspace(
        self: &Arc<Self>,
        parent: &[u8],
        name: &str,
    ) -> Result<Option<Arc<Incarnation>>> {
        check_prefixes(&self.order.keys)?;
        let prefix = name::prefix(parent, name)?;
        loop {
            let drops = {
                let registry = self.keyspaces.registry.lock();
                if let Some(incarnation) = registry.alive.get(&prefix) {
                    return Ok(Some(incarnation.clone()));
                }
                registry.drops
            };
            if !self.find_keyspace(&prefix)? {
                return Ok(None);
            }
            let mut registry = self.keyspaces.registry.lock();
            if registry.drops == drops {
                return Ok(Some(registry.get_or_add(prefix)));
            }
        }
    }

    /// Deletes the keyspace `name` within `parent` and all that lies within it. Returns whether
    /// there was one.
    fn drop_keyspace(self: &Arc<Self>, parent: &[u8], name: &str) -> Result<bool> {
        check_prefixes(&self.order.keys)?;
        let prefix = name::prefix(parent, name)?;
        let _one = self.keyspaces.one_at_a_time.lock();
        let is_open = self.keyspaces.registry.lock().alive.contains_key(&prefix);
        if !is_open && !self.find_keyspace(&prefix)? {
            return Ok(false);
        }
        let ranges = [prefix.clone(), catalogue::key(&prefix)]
            .map(|prefix| KeyRange::prefix(&self.order.keys, &prefix));
        let ranges = ranges.into_iter().collect::<Result<Vec<_>>>()?;
        let ending = Ending { keyspaces: &self.keyspaces, prefix: &prefix };
        self.delete_ranges(ranges, WriteOptions::sync(), &ending).map(|()| true)
    }

    /// Whether a keyspace is in the catalogue, as one that can be used, or has keys.
    fn find_keyspace(self: &Arc<Self>, prefix: &[u8]) -> Result<bool> {
        let key = catalogue::key(prefix);
        if let Some(entry) = self.get(&key, &ReadOptions::new(), <[u8]>::to_vec)? {
            return catalogue::decode(&entry)
                .map(|_| true)
                .map_err(|error| error.context(name::shown(prefix)));
        }
        let mut cursor = Cursor::new(self, &ReadOptions::new())?;
        cursor.seek(prefix);
        cursor.status()?;
        Ok(cursor.valid() && cursor.key().starts_with(prefix))
    }

    /// The names of the keyspaces right within `parent`, in order: those of the catalogue and those
    /// that have keys.
    fn keyspaces_within(self: &Arc<Self>, parent: &[u8]) -> Result<Vec<String>> {
        check_prefixes(&self.order.keys)?;
        let mut names = self.names_behind(&catalogue::key(parent))?;
        names.extend(self.names_behind(parent)?);
        names.sort_unstable();
        names.dedup();
        if parent.is_empty() {
            names.retain(|name| name != name::RESERVED);
        }
        Ok(names)
    }

    /// The names that follow `before` in keys: finds one, and skips to behind its keys.
    fn names_behind(self: &Arc<Self>, before: &[u8]) -> Result<Vec<String>> {
        let mut names = Vec::new();
        let mut cursor = Cursor::new(self, &ReadOptions::new())?;
        let mut next = Some([before, b"!"].concat());
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
