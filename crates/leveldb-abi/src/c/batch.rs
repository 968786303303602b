//! `leveldb_writebatch_t`, which is Terrace's batch.

use std::ffi::{c_char, c_void};

use terrace::{Operation, WriteBatch};

use crate::guard::export;
use crate::memory::{bytes, hand_out, release};

/// What `leveldb_writebatch_iterate` tells of a put.
type PutVisitor = unsafe extern "C" fn(*mut c_void, *const c_char, usize, *const c_char, usize);

/// What it tells of a deletion.
type DeleteVisitor = unsafe extern "C" fn(*mut c_void, *const c_char, usize);

export! {
    /// An empty batch.
    fn leveldb_writebatch_create() -> *mut WriteBatch {
        hand_out(WriteBatch::new())
    }

    /// Releases a batch.
    fn leveldb_writebatch_destroy(batch: *mut WriteBatch) {
        drop(release(batch));
    }

    /// Removes every operation.
    fn leveldb_writebatch_clear(batch: *mut WriteBatch) {
        if let Some(batch) = batch.as_mut() {
            batch.clear();
        }
    }

    /// Adds a put.
    fn leveldb_writebatch_put(
        batch: *mut WriteBatch, key: *const c_char, klen: usize, val: *const c_char, vlen: usize,
    ) {
        if let Some(batch) = batch.as_mut() {
            batch.put(bytes(key, klen), bytes(val, vlen));
        }
    }

    /// Adds a deletion.
    fn leveldb_writebatch_delete(batch: *mut WriteBatch, key: *const c_char, klen: usize) {
        if let Some(batch) = batch.as_mut() {
            batch.delete(bytes(key, klen));
        }
    }

    /// Tells the operations in order.
    fn leveldb_writebatch_iterate(
        batch: *const WriteBatch, state: *mut c_void, put: Option<PutVisitor>, deleted: Option<DeleteVisitor>,
    ) {
        let Some(batch) = batch.as_ref() else { return };
        for operation in batch.iter() {
            match operation {
                Ok(Operation::Put { key, value }) => {
                    if let Some(put) = put {
                        put(state, key.as_ptr().cast(), key.len(), value.as_ptr().cast(), value.len());
                    }
                }
                Ok(Operation::Delete { key }) => {
                    if let Some(deleted) = deleted {
                        deleted(state, key.as_ptr().cast(), key.len());
                    }
                }
                // A batch of this API holds only what was put in through it.
                Err(_) => return,
            }
        }
    }

    /// Adds the operations of `source` to `destination`, which may be the same.
    fn leveldb_writebatch_append(destination: *mut WriteBatch, source: *const WriteBatch) {
        let Some(copy) = source.as_ref().cloned() else { return };
        if let Some(destination) = destination.as_mut() {
            destination.append(&copy);
        }
    }
}
