//! Lookups: single ones that wait to be run together, and many at once.

use terrace::{Db, ReadOptions, Result};

use crate::frames;

/// A lookup that has been asked for: a key, and the moment as of which it is read.
pub struct Lookup {
    /// The key.
    pub key: Vec<u8>,
    /// The database when the lookup was asked for, or an explicit snapshot.
    pub snapshot: terrace::Snapshot,
    /// Whether blocks that are read stay in the cache.
    pub fill_cache: bool,
}

impl Lookup {
    fn options(&self) -> ReadOptions {
        ReadOptions::new().snapshot(&self.snapshot).fill_cache(self.fill_cache)
    }

    fn shares_options_with(&self, other: &Lookup) -> bool {
        self.snapshot.sequence() == other.snapshot.sequence() && self.fill_cache == other.fill_cache
    }
}

impl AsRef<[u8]> for Lookup {
    fn as_ref(&self) -> &[u8] {
        &self.key
    }
}

/// Runs lookups and returns a result frame for each. Neighbours as of the same moment are looked up
/// together; where that fails, one by one, so that each has its own error.
pub fn run(db: &Db, lookups: &[Lookup]) -> Vec<u8> {
    let mut results = Vec::new();
    for group in lookups.chunk_by(Lookup::shares_options_with) {
        let Some(first) = group.first() else { continue };
        let options = first.options();
        match db.multi_get_with(group, &options) {
            Ok(values) if group.len() > 1 => {
                values.into_iter().for_each(|value| frames::put_result(&mut results, &Ok(value)));
            }
            _ => group.iter().for_each(|lookup| {
                frames::put_result(&mut results, &db.get_with(lookup, &options));
            }),
        }
    }
    results
}

/// Looks every key up and returns a result frame for each.
///
/// # Errors
/// Those of [`Db::get_with`].
pub fn get_many(db: &Db, keys: &[Vec<u8>], options: &ReadOptions) -> Result<Vec<u8>> {
    let values = db.multi_get_with(keys, options)?;
    let bytes: usize = values.iter().flatten().map(Vec::len).sum();
    let mut results = Vec::with_capacity(bytes + values.len() * size_of::<u32>());
    values.into_iter().for_each(|value| frames::put_result(&mut results, &Ok(value)));
    Ok(results)
}

/// Returns a byte for each key: whether it has a value.
///
/// # Errors
/// Those of [`Db::get_with`].
pub fn has_many(db: &Db, keys: &[Vec<u8>], options: &ReadOptions) -> Result<Vec<u8>> {
    keys.iter().map(|key| db.contains_key_with(key, options).map(u8::from)).collect()
}
