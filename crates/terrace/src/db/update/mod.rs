//! Atomic updates: one key is read, and written in the light of what was read, in one commit.
//!
//! The value is read without a lock. Under the commit lock the memtables alone are asked whether
//! the key was written since: a commit never waits for a disk read of another one. If it was, or if
//! a flush or an ingest has come in between, the value is read once more and the change computed
//! anew; another write has succeeded then, so all writers together make progress. An update that
//! others keep overtaking locks the key, and is the next.
//!
//! # Invariants
//! 1. Between the check and the write no other writer writes.
//! 2. Functions and operators of the caller run outside of every lock but, once others have
//!    overtaken them often, that of the key.

mod merge_operator;

use std::result;
use std::sync::atomic::Ordering;

use crate::base::error::{Error, Result};
use crate::base::mutation::mutated;

use crate::db::db_impl::DbImpl;
use crate::db::options::WriteOptions;
use crate::db::read;

pub use self::merge_operator::{Append, Counter, MergeOperator, SetUnion};

/// At this attempt the key is locked for all other writers: an update is not kept waiting by those
/// that overtake it.
const ATTEMPTS: u32 = 8;

/// The outcome for a key.
pub(in crate::db) enum Change<V> {
    Keep,
    Set(Option<V>),
}

impl<V> Change<V> {
    /// For a value of which a function of the caller's has made `new`.
    pub(in crate::db) fn to(value: Option<&[u8]>, new: Option<V>) -> Self {
        if value.is_none() && new.is_none() { Change::Keep } else { Change::Set(new) }
    }

    /// For a value that becomes `new` if it is `expected`.
    pub(in crate::db) fn if_expected(
        value: Option<&[u8]>,
        expected: Option<&[u8]>,
        new: Option<V>,
    ) -> Self {
        if value == expected { Change::Set(new) } else { Change::Keep }
    }
}

/// What a function of the caller's that may fail decides: where it fails the key is kept, and
/// `failed` has its error.
pub(in crate::db) fn fallible<V, E>(
    mut change: impl FnMut(Option<&[u8]>) -> result::Result<Option<V>, E>,
    failed: &mut Option<E>,
) -> impl FnMut(Option<&[u8]>) -> Result<Change<V>> {
    move |value| match change(value) {
        Ok(new) => Ok(Change::to(value, new)),
        Err(error) => {
            *failed = Some(error);
            Ok(Change::Keep)
        }
    }
}

/// Does to `key` what `decide` says of its present value. Returns what it was set to, or `None`
/// if it was kept. `decide` is called again whenever the key was written in between. Nothing is
/// written if `terms` fails, which is its error then.
pub(in crate::db) fn change_key<V: AsRef<[u8]>>(
    core: &DbImpl,
    key: &[u8],
    options: WriteOptions,
    terms: impl Fn() -> Result<()>,
    mut decide: impl FnMut(Option<&[u8]>) -> Result<Change<V>>,
) -> Result<Option<Option<V>>> {
    core.files.check_writable()?;
    let mut locks = None;
    for attempt in 1_u32.. {
        terms()?;
        if attempt == ATTEMPTS {
            core.writes.lock_for_write(&mut locks, key)?;
        }
        let ingests = core.views.ingests.load(Ordering::Acquire);
        let (decision, read_at) = read::get_present(core, key, &mut decide)?;
        let Change::Set(value) = decision? else { return Ok(None) };
        let bytes = value.as_ref().map(AsRef::as_ref);
        let check = || {
            let ingested = core.views.ingests.load(Ordering::Relaxed) != ingests;
            let holds = mutated("updates") || !ingested && is_unchanged(core, key, read_at);
            holds && terms().is_ok()
        };
        if core.writes.write_one_if(key, bytes, options, &mut locks, check)? {
            return Ok(Some(value));
        }
    }
    Err(Error::conflict("the key was written by others all the time"))
}

/// Whether `key` has not been written since `sequence`, as far as memtables tell. False if later
/// writes are in tables by now. The caller holds the commit lock.
fn is_unchanged(core: &DbImpl, key: &[u8], sequence: u64) -> bool {
    let view = core.views.current.load();
    view.in_tables <= sequence && view.newest_in_memory(key).is_none_or(|newest| newest <= sequence)
}
