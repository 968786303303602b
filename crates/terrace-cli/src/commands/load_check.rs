//! Terrace's own entries in the input of a load. A dump of a whole database has a catalogue of
//! keyspaces and a clock, which must be whole, and must fit the database's own.

use std::collections::BTreeMap;
use std::sync::Arc;

use terrace::{Db, MemEnv, Options};

use super::scope;
use crate::failure::{Failure, Result};
use crate::own_entries::{CATALOGUE, CLOCK, PREFIX, refuse};
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
    /// Fails if the entry is one of Terrace's own and `db` cannot take it.
    pub(super) fn check(&mut self, db: &Db, key: &[u8], value: &[u8]) -> Result<()> {
        if !key.starts_with(PREFIX) {
            return Ok(());
        }
        if key == CLOCK {
            return check_clock(value);
        }
        let Some(names) = key.strip_prefix(CATALOGUE).and_then(names_of) else {
            return refuse(key);
        };
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
        Ok(())
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

/// Fails if `key`, which would go into a keyspace, is one of Terrace's own: a dump of a whole
/// database brings no keyspaces there.
pub(super) fn refuse_whole_dump(key: &[u8]) -> Result<()> {
    match key.starts_with(PREFIX) {
        true => Err(Failure::other(
            "keys that begin with !$terrace! are of a dump of a whole database; load it without \
             --keyspace",
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

fn check_clock(value: &[u8]) -> Result<()> {
    let lines: Vec<_> = value.split(|&byte| byte == b'\n').collect();
    let is_number =
        |digits: &[u8]| std::str::from_utf8(digits).is_ok_and(|d| d.parse::<u64>().is_ok());
    match lines.as_slice() {
        [b"clock 1", millis, b""] if is_number(millis) => Ok(()),
        _ => Err(Failure::other("the entry of the clock of expiry is of another format")),
    }
}
