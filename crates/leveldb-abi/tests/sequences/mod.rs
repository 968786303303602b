//! Calls of the C API in any order, one or two bytes each, against a model. Also a fuzz target:
//! `fuzz/src/main.rs`.
#![allow(unsafe_code)]

use std::collections::BTreeMap;
use std::ffi::{CString, c_char};
use std::path::Path;
use std::ptr;

use leveldb_abi::c::*;

type Model = BTreeMap<Vec<u8>, Vec<u8>>;

/// The bytes of a sequence, taken from the front; zeros once they are used up.
struct Input<'a>(&'a [u8]);

impl Input<'_> {
    fn byte(&mut self) -> u8 {
        let Some((&first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        first
    }

    /// A key: few, so that they meet again, some empty or with zeros in them.
    fn key(&mut self) -> Vec<u8> {
        let byte = self.byte();
        vec![byte % 5; usize::from(byte >> 4 & 3)]
    }

    fn value(&mut self) -> Vec<u8> {
        let byte = self.byte();
        vec![byte; usize::from(byte) * if byte.is_multiple_of(8) { 64 } else { 1 }]
    }
}

/// Takes the message of a failed call, which must be one that can be freed.
unsafe fn take(error: &mut *mut c_char) -> bool {
    let failed = !error.is_null();
    // SAFETY: null, or a message of this library that was not freed.
    unsafe { leveldb_free(error.cast()) };
    *error = ptr::null_mut();
    failed
}

unsafe fn bytes<'a>(pointer: *const c_char, length: usize) -> &'a [u8] {
    assert!(!pointer.is_null());
    // SAFETY: the library says that so many bytes are there.
    unsafe { std::slice::from_raw_parts(pointer.cast(), length) }
}

/// Makes the calls that `data` stands for in a new database at `path`.
///
/// # Panics
/// If a result differs from the model's.
pub(crate) fn run(data: &[u8], path: &Path) {
    let mut input = Input(data);
    let name = CString::new(path.to_str().expect("a path in UTF-8")).expect("a path without zeros");
    let mut error = ptr::null_mut();
    let mut model = Model::new();
    let mut snapshots: Vec<(*const CSnapshot, Model)> = Vec::new();
    // SAFETY: every object is used after it was made and before it is released, and released once;
    // lengths are those of the slices.
    unsafe {
        let options = leveldb_options_create();
        leveldb_options_set_create_if_missing(options, 1);
        leveldb_options_set_write_buffer_size(options, 1 << usize::from(input.byte() % 24));
        leveldb_options_set_block_size(options, usize::from(input.byte()));
        leveldb_options_set_compression(options, i32::from(input.byte() % 3));
        let filter = leveldb_filterpolicy_create_bloom(i32::from(input.byte()) - 20);
        leveldb_options_set_filter_policy(options, filter);
        let (write, read, batch) = (
            leveldb_writeoptions_create(),
            leveldb_readoptions_create(),
            leveldb_writebatch_create(),
        );
        let mut pending: Vec<(Vec<u8>, Option<Vec<u8>>)> = Vec::new();
        let mut db = leveldb_open(options, name.as_ptr(), &mut error);
        assert!(!take(&mut error) && !db.is_null());
        while !input.0.is_empty() {
            match input.byte() % 16 {
                0..=2 => {
                    let (key, value) = (input.key(), input.value());
                    leveldb_put(
                        db,
                        write,
                        key.as_ptr().cast(),
                        key.len(),
                        value.as_ptr().cast(),
                        value.len(),
                        &mut error,
                    );
                    assert!(!take(&mut error));
                    model.insert(key, value);
                }
                3 => {
                    let key = input.key();
                    leveldb_delete(db, write, key.as_ptr().cast(), key.len(), &mut error);
                    assert!(!take(&mut error));
                    model.remove(&key);
                }
                4 => {
                    let (key, value) = (input.key(), input.value());
                    leveldb_writebatch_put(
                        batch,
                        key.as_ptr().cast(),
                        key.len(),
                        value.as_ptr().cast(),
                        value.len(),
                    );
                    pending.push((key, Some(value)));
                }
                5 => {
                    let key = input.key();
                    leveldb_writebatch_delete(batch, key.as_ptr().cast(), key.len());
                    pending.push((key, None));
                }
                6 => {
                    leveldb_write(db, write, batch, &mut error);
                    assert!(!take(&mut error));
                    for (key, value) in &pending {
                        match value {
                            Some(value) => model.insert(key.clone(), value.clone()),
                            None => model.remove(key),
                        };
                    }
                }
                7 => {
                    leveldb_writebatch_clear(batch);
                    pending.clear();
                }
                8 if pending.len() < 100 => {
                    leveldb_writebatch_append(batch, batch);
                    pending.extend_from_within(..);
                }
                9 => snapshots.push((leveldb_create_snapshot(db), model.clone())),
                10 if !snapshots.is_empty() => {
                    let at = usize::from(input.byte()) % snapshots.len();
                    leveldb_release_snapshot(db, snapshots.swap_remove(at).0);
                }
                11 => leveldb_compact_range(db, ptr::null(), 0, ptr::null(), 0),
                12 => {
                    let property = [
                        c"leveldb.stats",
                        c"leveldb.sstables",
                        c"leveldb.num-files-at-level9",
                        c"x",
                    ];
                    let property = property[usize::from(input.byte()) % 4];
                    leveldb_free(leveldb_property_value(db, property.as_ptr()).cast());
                }
                13 => {
                    snapshots
                        .drain(..)
                        .for_each(|(snapshot, _)| leveldb_release_snapshot(db, snapshot));
                    leveldb_close(db);
                    if input.byte() % 4 == 0 {
                        leveldb_repair_db(options, name.as_ptr(), &mut error);
                        assert!(!take(&mut error));
                    }
                    db = leveldb_open(options, name.as_ptr(), &mut error);
                    assert!(!take(&mut error) && !db.is_null());
                }
                choice => {
                    let at = usize::from(input.byte());
                    let (snapshot, expected) = match snapshots.get(at) {
                        Some((snapshot, model)) => (*snapshot, model),
                        None => (ptr::null(), &model),
                    };
                    leveldb_readoptions_set_snapshot(read, snapshot);
                    let key = input.key();
                    if choice == 14 {
                        let mut length = 0;
                        let value = leveldb_get(
                            db,
                            read,
                            key.as_ptr().cast(),
                            key.len(),
                            &mut length,
                            &mut error,
                        );
                        assert!(!take(&mut error));
                        let found = (!value.is_null()).then(|| bytes(value, length).to_vec());
                        leveldb_free(value.cast());
                        assert_eq!(found.as_ref(), expected.get(&key));
                    } else {
                        scan(leveldb_create_iterator(db, read), expected, &key);
                    }
                    leveldb_readoptions_set_snapshot(read, ptr::null());
                }
            }
        }
        snapshots.drain(..).for_each(|(snapshot, _)| leveldb_release_snapshot(db, snapshot));
        leveldb_close(db);
        leveldb_destroy_db(options, name.as_ptr(), &mut error);
        assert!(!take(&mut error));
        leveldb_writebatch_destroy(batch);
        leveldb_writeoptions_destroy(write);
        leveldb_readoptions_destroy(read);
        leveldb_options_destroy(options);
        leveldb_filterpolicy_destroy(filter);
    }
}

/// Compares everything from `key` on, and the last entry.
unsafe fn scan(iter: *mut Iterator, expected: &Model, key: &[u8]) {
    // SAFETY: the caller hands the iterator over; keys and values are read while it stands at them.
    unsafe {
        let entry = || {
            let (mut key_length, mut value_length) = (0, 0);
            let key = bytes(leveldb_iter_key(iter, &mut key_length), key_length).to_vec();
            (key, bytes(leveldb_iter_value(iter, &mut value_length), value_length).to_vec())
        };
        leveldb_iter_seek(iter, key.as_ptr().cast(), key.len());
        for (key, value) in expected.range(key.to_vec()..) {
            assert_eq!(leveldb_iter_valid(iter), 1);
            assert_eq!(entry(), (key.clone(), value.clone()));
            leveldb_iter_next(iter);
        }
        assert_eq!(leveldb_iter_valid(iter), 0);
        leveldb_iter_seek_to_last(iter);
        assert_eq!(leveldb_iter_valid(iter) == 1, !expected.is_empty());
        if let Some((key, value)) = expected.last_key_value() {
            assert_eq!(entry(), (key.clone(), value.clone()));
        }
        let mut error = ptr::null_mut();
        leveldb_iter_get_error(iter, &mut error);
        assert!(!take(&mut error));
        leveldb_iter_destroy(iter);
    }
}
