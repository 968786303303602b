//! Terrace's own entries in the input of a load. A dump of a whole database has a catalogue of
//! keyspaces and a clock, which must be whole, and must fit the database's own.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use terrace::{Db, MemEnv, Options};

use super::scope;
use crate::failure::{Failure, Result};
use crate::own_entries::{CATALOGUE, CLOCK, PREFIX, is_prepared_transaction, refuse};
use crate::text::Notation;

/// The check of all entries of an input, one after the other.
#[derive(Default)]
pub(super) struct LoadCheck {
    /// An empty database in memory, which opens keyspaces by entries of the input.
    probe: Option<Db>,
    /// The catalogue's entries that the input has had so far.
    loaded: BTreeMap<Vec<u8>, Vec<u8>>,
}

impl LoadCheck {
    /// Returns whether the entry is to be loaded. Fails if it is one of Terrace's own and `db`
    /// cannot take it.
    pub(super) fn check(&mut self, db: &Db, key: &[u8], value: &[u8]) -> Result<bool> {
        if !key.starts_with(PREFIX) {
            return Ok(true);
        }
        if key == CLOCK {
            return takes_clock(db, value);
        }
        if is_prepared_transaction(key) {
            return refuse(key).map(|()| true);
        }
        let Some(entry) = key.strip_prefix(CATALOGUE) else {
            // Nobody's: this version gives it no meaning.
            return Ok(true);
        };
        let Some(names) = names_of(entry) else { return refuse(key).map(|()| true) };
        self.check_opens(key, value, &names)?;
        let (before, place) = match self.loaded.get(key) {
            Some(before) => (Some(before.clone()), "before this line"),
            None => (db.get(key)?, "in the database"),
        };
        if before.as_deref().is_some_and(|before| before != value) {
            return Err(Failure::other(format!(
                "the keyspace {} has other settings {place} ({}) than in the input ({}); \
                 `terrace dump` and `terrace load`, both with --keyspace, copy its entries alone",
                names.join(" > "),
                settings(before.as_deref().unwrap_or_default()),
                settings(value),
            )));
        }
        self.loaded.insert(key.to_vec(), value.to_vec());
        Ok(true)
    }

    /// Fails if the library does not open the keyspace by its entry.
    fn check_opens(&mut self, key: &[u8], value: &[u8], names: &[String]) -> Result<()> {
        let probe = match &self.probe {
            Some(probe) => probe,
            None => {
                let options = Options::new().env(Arc::new(MemEnv::new())).create_if_missing(true);
                self.probe.insert(Db::open("/probe", options)?)
            }
        };
        probe.put(key, value)?;
        scope::find(probe, names)?;
        if let Some(first) = names.first() {
            probe.drop_keyspace(first)?;
        }
        Ok(())
    }
}

/// Fails if an entry, which would go into a keyspace, is one of Terrace's own: a dump of a whole
/// database brings no keyspaces there.
pub(super) fn refuse_whole_dump(key: &[u8], value: &[u8]) -> Result<()> {
    let is_keyspace = key.strip_prefix(CATALOGUE).and_then(names_of).is_some();
    match is_keyspace || key == CLOCK && millis_of_clock(value).is_some() {
        true => Err(Failure::other(
            "entries of keyspaces and of the clock of expiry are of a dump of a whole database; \
             load it without --keyspace",
        )),
        false => Ok(()),
    }
}

/// The names that lead to the keyspace with the prefix `!outer!!inner!`.
fn names_of(prefix: &[u8]) -> Option<Vec<String>> {
    let names = std::str::from_utf8(prefix).ok()?.strip_prefix('!')?.strip_suffix('!')?;
    Some(names.split("!!").map(str::to_owned).collect())
}

/// The settings in an entry of the catalogue, for a message.
fn settings(entry: &[u8]) -> String {
    let lines: Vec<_> = entry.split(|&byte| byte == b'\n').skip(1).collect();
    let lines = lines.iter().filter(|line| !line.is_empty());
    let shown: Vec<_> = lines.map(|line| Notation::Text.encode(line)).collect();
    if shown.is_empty() { "none".to_owned() } else { shown.join(", ") }
}

/// Whether the clock's entry is to be loaded: an earlier one says nothing new. A time that is far
/// away would have all entries expire that are there.
fn takes_clock(db: &Db, value: &[u8]) -> Result<bool> {
    const DAY_MILLIS: u64 = 24 * 60 * 60 * 1000;
    let Some(millis) = millis_of_clock(value) else {
        return Err(Failure::other("the entry of the clock of expiry is of another format"));
    };
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis();
    if u128::from(millis) > now + u128::from(DAY_MILLIS) {
        return Err(Failure::other(
            "the entry of the clock of expiry is more than a day ahead of this system's clock",
        ));
    }
    let own = db.get(CLOCK)?.and_then(|own| millis_of_clock(&own));
    Ok(own.is_none_or(|own| own < millis))
}

fn millis_of_clock(value: &[u8]) -> Option<u64> {
    let digits = value.strip_prefix(b"clock 1\n")?.strip_suffix(b"\n")?;
    std::str::from_utf8(digits).ok()?.parse().ok()
}
