//! Reads of values that may expire.

use std::cell::OnceCell;

use crate::base::error::Result;
use crate::base::mutation::mutated;

use crate::db::db_impl::DbImpl;
use crate::db::read::read_options::ReadOptions;
use crate::db::view::catalogue::{ExpiryCheck, ReadTime, shown_at};

/// The value of `key` as a read sees it that has found `stored`: `None` if it has expired. To be
/// called when the read has its view.
#[inline]
pub(in crate::db) fn shown<'v>(
    core: &DbImpl,
    key: &[u8],
    stored: &'v [u8],
    options: &ReadOptions,
) -> Result<Option<&'v [u8]>> {
    shown_at_once(core, key, stored, options, &OnceCell::new())
}

/// As [`shown`], for a read of several keys, which keeps in `now` the time at which it sees all.
#[inline]
pub(in crate::db) fn shown_at_once<'v>(
    core: &DbImpl,
    key: &[u8],
    stored: &'v [u8],
    options: &ReadOptions,
    now: &OnceCell<u64>,
) -> Result<Option<&'v [u8]>> {
    // Only keys of keyspaces begin so.
    if key.first() != Some(&b'!') || options.stored_values {
        return Ok(Some(stored));
    }
    shown_in_keyspace(core, key, stored, options, now)
}

/// Whether a read of `key` would first have to read the catalogue.
pub(in crate::db) fn needs_catalogue(core: &DbImpl, key: &[u8], options: &ReadOptions) -> bool {
    key.first() == Some(&b'!') && !options.stored_values && core.files.catalogue.known().is_none()
}

#[inline(never)]
fn shown_in_keyspace<'v>(
    core: &DbImpl,
    key: &[u8],
    stored: &'v [u8],
    options: &ReadOptions,
    now: &OnceCell<u64>,
) -> Result<Option<&'v [u8]>> {
    if !expires(core, key)? {
        return Ok(Some(stored));
    }
    let read_time = options.snapshot.as_ref().and_then(|snapshot| snapshot.read_time());
    let look = || core.files.catalogue.now(core.files.env.as_ref());
    let present = || if mutated("one-time") { look() } else { *now.get_or_init(look) };
    Ok(shown_at(key, stored, read_time.map_or_else(present, ReadTime::millis)))
}

/// Whether the value of `key` may have a trailer that a read with `options` looks at.
pub(in crate::db) fn may_expire(core: &DbImpl, key: &[u8], options: &ReadOptions) -> Result<bool> {
    Ok(key.first() == Some(&b'!') && !options.stored_values && expires(core, key)?)
}

/// Whether `key`, which begins like those of keyspaces, is of one with expiry.
fn expires(core: &DbImpl, key: &[u8]) -> Result<bool> {
    Ok(match core.files.catalogue.known() {
        Some(settings) => settings.expires(key),
        None => core.background.prefix_settings()?.expires(key),
    })
}

/// The check by which a read that lasts sees values as they are at its beginning. To be called when
/// it has its view. `None` if no value expires; an error is that of the first key of a keyspace
/// that the read comes to.
pub(in crate::db) fn expiry_check(
    core: &DbImpl,
    options: &ReadOptions,
) -> Option<Result<ExpiryCheck>> {
    if options.stored_values || core.files.catalogue.expires_nothing() {
        return None;
    }
    let settings = match core.background.prefix_settings() {
        Ok(settings) if !settings.any_expires() => return None,
        Ok(settings) => settings,
        Err(error) => return Some(Err(error)),
    };
    let of_snapshot = options.snapshot.as_ref().and_then(|snapshot| snapshot.read_time());
    let begin = || core.files.catalogue.begin_read(core.files.env.as_ref());
    Some(Ok(ExpiryCheck::new(settings, of_snapshot.cloned().unwrap_or_else(begin))))
}

/// The time of a snapshot that was taken just now. A catalogue that cannot be read is the error of
/// reads.
pub(in crate::db) fn read_time(core: &DbImpl) -> Option<ReadTime> {
    if core.files.catalogue.expires_nothing() {
        return None;
    }
    let settings = core.background.prefix_settings().ok()?;
    settings.any_expires().then(|| core.files.catalogue.begin_read(core.files.env.as_ref()))
}
