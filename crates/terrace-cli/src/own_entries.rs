//! The entries in which Terrace keeps its catalogue of keyspaces, its clock and prepared
//! transactions (`docs/format.md`). To LevelDB they are entries as any other.

use crate::failure::{Failure, Result};
use crate::range::KeyRange;

/// The prefix of their keys.
pub(crate) const PREFIX: &[u8] = b"!$terrace!";

/// What the keys of the catalogue's entries begin with, before the keyspace's prefix.
pub(crate) const CATALOGUE: &[u8] = b"!$terrace!keyspace";

/// The key of the clock's mark.
pub(crate) const CLOCK: &[u8] = b"!$terrace!clock";

/// The prefix of the keys of prepared transactions.
const PREPARED: &[u8] = b"!$terrace!prepared!";

/// Whether `key`, as the database has it, is that of a prepared transaction.
pub(crate) fn is_prepared_transaction(key: &[u8]) -> bool {
    key.starts_with(PREPARED)
}

/// Fails if `key`, as the database has it, is that of such an entry: a change by hand would spoil
/// what rests on it.
pub(crate) fn refuse(key: &[u8]) -> Result<()> {
    if !key.starts_with(PREFIX) {
        return Ok(());
    }
    Err(Failure::other(
        "keys that begin with !$terrace! are Terrace's own; `terrace keyspace` and `terrace \
         prepared` change what they hold",
    ))
}

/// Whether the range begins with such keys: they are what is asked for.
pub(crate) fn is_asked_for(range: &KeyRange) -> bool {
    range.from.as_deref().is_some_and(|from| from.starts_with(PREFIX))
}

/// The part of the range in which they are, if there is such a part.
pub(crate) fn within(range: &KeyRange) -> Option<KeyRange> {
    let own = range.clone().intersection(KeyRange::of_prefix(PREFIX));
    (own.from < own.to).then_some(own)
}
