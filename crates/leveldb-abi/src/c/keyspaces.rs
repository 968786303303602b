//! `terrace/c.h`: keyspaces.

use std::ffi::{c_char, c_int, c_void};
use std::ptr;
use std::time::Duration;

use terrace::{Compression, Db, Error, Keyspace, KeyspaceOptions, PutOptions, Result};

use super::database::{Database, read_options, write_options};
use super::error::{reporting, required};
use super::filters::{Decide, Destructor, adapter};
use super::iterator::Iterator;
use super::options::{CReadOptions, CWriteOptions};
use crate::guard::export;
use crate::memory::{argument, c_string, copied, hand_out, key_range, release, store, store_entry};

/// `terrace_ttl_never`; zero is the keyspace's default.
const NEVER: u64 = u64::MAX;

/// `terrace_keyspace_t`.
#[derive(Debug)]
pub struct CKeyspace(Keyspace);

/// `terrace_keyspace_options_t`.
#[derive(Debug)]
pub struct CKeyspaceOptions(KeyspaceOptions);

/// The name of a keyspace.
///
/// # Safety
/// `name` is null or leads to a C string.
unsafe fn name<'a>(name: *const c_char) -> Result<&'a str> {
    // SAFETY: guaranteed by the caller.
    std::str::from_utf8(unsafe { c_string(name) })
        .map_err(|_| Error::invalid_argument("the name of a keyspace is not ASCII"))
}

/// The settings of a keyspace; the default for null.
///
/// # Safety
/// `options` is null or leads to options.
unsafe fn settings(options: *const CKeyspaceOptions) -> KeyspaceOptions {
    // SAFETY: guaranteed by the caller.
    unsafe { options.as_ref() }.map(|options| options.0.clone()).unwrap_or_default()
}

/// The keyspace within which another one is meant, if one is.
///
/// # Safety
/// `parent` is null or leads to a keyspace.
unsafe fn within<'a>(parent: *const CKeyspace) -> Option<&'a Keyspace> {
    // SAFETY: guaranteed by the caller.
    unsafe { parent.as_ref() }.map(|parent| &parent.0)
}

/// How an entry is put that lives for so many milliseconds.
///
/// # Safety
/// `options` is null or leads to write options.
unsafe fn put_options(options: *const CWriteOptions, ttl_millis: u64) -> PutOptions {
    // SAFETY: guaranteed by the caller.
    let options = PutOptions::from(unsafe { write_options(options) });
    match ttl_millis {
        0 => options,
        NEVER => options.never_expires(),
        millis => options.ttl(Duration::from_millis(millis)),
    }
}

/// Changes one setting.
///
/// # Safety
/// `options` is null or leads to options that nobody else uses.
unsafe fn change(
    options: *mut CKeyspaceOptions,
    change: impl FnOnce(KeyspaceOptions) -> KeyspaceOptions,
) {
    // SAFETY: guaranteed by the caller.
    if let Some(options) = unsafe { options.as_mut() } {
        options.0 = change(std::mem::take(&mut options.0));
    }
}

fn names_of(db: &Db, parent: Option<&Keyspace>) -> Result<Vec<String>> {
    parent.map_or_else(|| db.keyspaces(), Keyspace::keyspaces)
}

export! {
    /// Settings of a keyspace: those of the database.
    fn terrace_keyspace_options_create() -> *mut CKeyspaceOptions {
        hand_out(CKeyspaceOptions(KeyspaceOptions::new()))
    }

    /// Releases settings.
    fn terrace_keyspace_options_destroy(options: *mut CKeyspaceOptions) {
        drop(release(options));
    }

    /// Whether entries may expire, and after how many milliseconds by themselves.
    fn terrace_keyspace_options_set_expiry(
        options: *mut CKeyspaceOptions, expiry: u8, default_ttl_millis: u64,
    ) {
        let is_never = matches!(default_ttl_millis, 0 | NEVER);
        let ttl = (!is_never).then(|| Duration::from_millis(default_ttl_millis));
        change(options, |options| options.expiry(expiry != 0).default_ttl(ttl));
    }

    /// Sets how blocks are compressed.
    fn terrace_keyspace_options_set_compression(options: *mut CKeyspaceOptions, kind: c_int) {
        let kind = if kind == 0 { Compression::None } else { Compression::Snappy };
        change(options, |options| options.compression(kind));
    }

    /// Sets the bytes of a block.
    fn terrace_keyspace_options_set_block_size(options: *mut CKeyspaceOptions, size: usize) {
        change(options, |options| options.block_size(size));
    }

    /// Sets the bits for each key in filters.
    fn terrace_keyspace_options_set_filter_bits(options: *mut CKeyspaceOptions, bits: c_int) {
        let bits = usize::try_from(bits).unwrap_or(usize::MAX);
        change(options, |options| options.filter_bits(bits));
    }

    /// Makes a keyspace.
    fn terrace_keyspace_create(
        db: *mut Database, parent: *const CKeyspace, keyspace: *const c_char,
        options: *const CKeyspaceOptions, errptr: *mut *mut c_char,
    ) -> *mut CKeyspace {
        reporting(errptr, || {
            let db = required(db, "db")?.db();
            let (name, options) = (name(keyspace)?, settings(options));
            let created = match within(parent) {
                Some(parent) => parent.create_keyspace(name, options)?,
                None => db.create_keyspace(name, options)?,
            };
            Ok(hand_out(CKeyspace(created)))
        })
    }

    /// Finds a keyspace.
    fn terrace_keyspace_open(
        db: *mut Database, parent: *const CKeyspace, keyspace: *const c_char,
        options: *const CKeyspaceOptions, errptr: *mut *mut c_char,
    ) -> *mut CKeyspace {
        reporting(errptr, || {
            let (db, name) = (required(db, "db")?.db(), name(keyspace)?);
            let found = match (within(parent), options.as_ref()) {
                (Some(parent), Some(options)) => parent.keyspace_with(name, &options.0)?,
                (Some(parent), None) => parent.keyspace(name)?,
                (None, Some(options)) => db.keyspace_with(name, &options.0)?,
                (None, None) => db.keyspace(name)?,
            };
            Ok(hand_out(CKeyspace(found)))
        })
    }

    /// Releases a handle.
    fn terrace_keyspace_release(keyspace: *mut CKeyspace) {
        drop(release(keyspace));
    }

    /// Removes a keyspace with all that is in it.
    fn terrace_keyspace_drop(
        db: *mut Database, parent: *const CKeyspace, keyspace: *const c_char,
        errptr: *mut *mut c_char,
    ) -> u8 {
        reporting(errptr, || {
            let (db, name) = (required(db, "db")?.db(), name(keyspace)?);
            let dropped = match within(parent) {
                Some(parent) => parent.drop_keyspace(name)?,
                None => db.drop_keyspace(name)?,
            };
            Ok(dropped.into())
        })
    }

    /// Lists the names of keyspaces, a line each.
    fn terrace_keyspace_list(
        db: *mut Database, parent: *const CKeyspace, errptr: *mut *mut c_char,
    ) -> *mut c_char {
        reporting(errptr, || {
            let mut list = String::new();
            for name in names_of(required(db, "db")?.db(), within(parent))? {
                list.push_str(&name);
                list.push('\n');
            }
            list.push('\0');
            copied(list.as_bytes())
        })
    }

    /// Puts an entry.
    fn terrace_keyspace_put(
        keyspace: *const CKeyspace, options: *const CWriteOptions, key: *const c_char,
        keylen: usize, val: *const c_char, vallen: usize, ttl_millis: u64,
        errptr: *mut *mut c_char,
    ) {
        reporting(errptr, || {
            let (key, value) = (argument(key, keylen, "key")?, argument(val, vallen, "value")?);
            let options = put_options(options, ttl_millis);
            required(keyspace, "keyspace")?.0.put_with(key, value, options)
        })
    }

    /// Removes an entry.
    fn terrace_keyspace_delete(
        keyspace: *const CKeyspace, options: *const CWriteOptions, key: *const c_char,
        keylen: usize, errptr: *mut *mut c_char,
    ) {
        reporting(errptr, || {
            let (key, options) = (argument(key, keylen, "key")?, write_options(options));
            required(keyspace, "keyspace")?.0.delete_with(key, options)
        })
    }

    /// Removes the entries of a range.
    fn terrace_keyspace_delete_range(
        keyspace: *const CKeyspace, options: *const CWriteOptions, start_key: *const c_char,
        start_key_len: usize, limit_key: *const c_char, limit_key_len: usize,
        errptr: *mut *mut c_char,
    ) {
        reporting(errptr, || {
            let range = key_range((start_key, start_key_len), (limit_key, limit_key_len))?;
            let options = write_options(options);
            required(keyspace, "keyspace")?.0.delete_range_with::<&[u8]>(range, options)
        })
    }

    /// The value of a key.
    fn terrace_keyspace_get(
        keyspace: *const CKeyspace, options: *const CReadOptions, key: *const c_char,
        keylen: usize, vallen: *mut usize, errptr: *mut *mut c_char,
    ) -> *mut c_char {
        store(vallen, 0);
        reporting(errptr, || {
            let options = read_options(options).stored_values(false);
            let key = argument(key, keylen, "key")?;
            let value = required(keyspace, "keyspace")?.0.get_with(key, &options)?;
            let Some(value) = value else { return Ok(ptr::null_mut()) };
            let copy = copied(&value)?;
            store(vallen, value.len());
            Ok(copy)
        })
    }

    /// An iterator over a keyspace.
    fn terrace_keyspace_create_iterator(
        keyspace: *const CKeyspace, options: *const CReadOptions,
    ) -> *mut Iterator {
        let cursor = || {
            let keyspace = &required(keyspace, "keyspace")?.0;
            let options = read_options(options).stored_values(false);
            // Whether it was dropped.
            drop(keyspace.cursor_with(&options)?);
            let prefix = keyspace.key("");
            let mut end = prefix.clone();
            // A separator, the bytes behind which are no part of the keyspace.
            end.last_mut().into_iter().for_each(|last| *last += 1);
            let bounded = options.lower_bound(prefix.clone()).upper_bound(end);
            Ok((keyspace.db().cursor_with(&bounded)?, prefix))
        };
        hand_out(match cursor() {
            Ok((cursor, prefix)) => Iterator::within(cursor, prefix),
            Err(error) => Iterator::new(Err(error)),
        })
    }

    /// A key and a value as the database has them.
    fn terrace_keyspace_entry(
        keyspace: *const CKeyspace, key: *const c_char, keylen: usize, val: *const c_char,
        vallen: usize, ttl_millis: u64, full_key: *mut *mut c_char, full_keylen: *mut usize,
        stored: *mut *mut c_char, stored_len: *mut usize, errptr: *mut *mut c_char,
    ) {
        for (place, length) in [(full_key, full_keylen), (stored, stored_len)] {
            store(place, ptr::null_mut());
            store(length, 0);
        }
        reporting(errptr, || {
            let (key, value) = (argument(key, keylen, "key")?, argument(val, vallen, "value")?);
            let options = put_options(ptr::null(), ttl_millis);
            let (key, value) = required(keyspace, "keyspace")?.0.entry(key, value, options)?;
            store_entry(&key, &value, [(full_key, full_keylen), (stored, stored_len)])
        })
    }

    /// Sets the filter that compactions ask about a keyspace.
    fn terrace_keyspace_set_compaction_filter(
        keyspace: *const CKeyspace, state: *mut c_void, filter: Option<Decide>,
        destructor: Option<Destructor>, errptr: *mut *mut c_char,
    ) {
        let filter = adapter(state, filter, destructor);
        reporting(errptr, || {
            let keyspace = &required(keyspace, "keyspace")?.0;
            let filter = filter.ok_or_else(|| Error::invalid_argument("the filter is null"))?;
            keyspace.set_compaction_filter(filter)
        })
    }
}
