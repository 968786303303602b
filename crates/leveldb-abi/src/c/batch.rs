//! `leveldb_writebatch_t`.

use std::ffi::{c_char, c_void};

use terrace::{Error, Operation, Result, WriteBatch};

use crate::guard::export;
use crate::memory::{address, argument, hand_out, release};

/// `leveldb_writebatch_iterate` calls this for a put.
type PutVisitor =
    unsafe extern "C-unwind" fn(*mut c_void, *const c_char, usize, *const c_char, usize);

/// `leveldb_writebatch_iterate` calls this for a deletion.
type DeleteVisitor = unsafe extern "C-unwind" fn(*mut c_void, *const c_char, usize);

/// `leveldb_writebatch_t`: a batch, and the first operation that it could not take, which the write
/// reports: the functions that add operations cannot.
#[derive(Clone, Debug, Default)]
pub struct CWriteBatch {
    batch: WriteBatch,
    refused: Option<Error>,
}

impl CWriteBatch {
    /// The batch, if it has every operation that the caller added.
    pub(super) fn complete(&self) -> Result<&WriteBatch> {
        self.refused.clone().map_or(Ok(&self.batch), Err)
    }

    fn add(&mut self, add: impl FnOnce(&mut WriteBatch) -> Result<()>) {
        if let Err(error) = add(&mut self.batch) {
            self.refused.get_or_insert(error);
        }
    }
}

export! {
    /// An empty batch.
    fn leveldb_writebatch_create() -> *mut CWriteBatch {
        hand_out(CWriteBatch::default())
    }

    /// Releases a batch.
    fn leveldb_writebatch_destroy(batch: *mut CWriteBatch) {
        drop(release(batch));
    }

    /// Removes every operation.
    fn leveldb_writebatch_clear(batch: *mut CWriteBatch) {
        if let Some(batch) = batch.as_mut() {
            batch.batch.clear();
            batch.refused = None;
        }
    }

    /// Adds a put.
    fn leveldb_writebatch_put(
        batch: *mut CWriteBatch, key: *const c_char, klen: usize, val: *const c_char, vlen: usize,
    ) {
        if let Some(batch) = batch.as_mut() {
            batch.add(|batch| {
                batch.put(argument(key, klen, "key")?, argument(val, vlen, "value")?);
                Ok(())
            });
        }
    }

    /// Adds a deletion.
    fn leveldb_writebatch_delete(batch: *mut CWriteBatch, key: *const c_char, klen: usize) {
        if let Some(batch) = batch.as_mut() {
            batch.add(|batch| {
                batch.delete(argument(key, klen, "key")?);
                Ok(())
            });
        }
    }

    /// Adds the operations of `source` to `destination`, which may be the same.
    fn leveldb_writebatch_append(destination: *mut CWriteBatch, source: *const CWriteBatch) {
        let Some(copy) = source.as_ref().cloned() else { return };
        if let Some(destination) = destination.as_mut() {
            destination.batch.append(&copy.batch);
            destination.refused = destination.refused.take().or(copy.refused);
        }
    }
}

/// Calls `put` and `deleted` for the operations in order. What they throw passes to the caller, as
/// in LevelDB: no guard against panics stops it, and the engine has no part in this.
///
/// # Safety
/// As for every function here: `batch` is null or a batch that was not released, and the functions,
/// where given, may be called with `state`.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn leveldb_writebatch_iterate(
    batch: *const CWriteBatch,
    state: *mut c_void,
    put: Option<PutVisitor>,
    deleted: Option<DeleteVisitor>,
) {
    // SAFETY: guaranteed by the caller.
    let Some(batch) = (unsafe { batch.as_ref() }) else { return };
    // A batch of this API holds only what was put in through it: nothing that cannot be read.
    for operation in batch.batch.iter().flatten() {
        match operation {
            Operation::Put { key, value } => {
                if let Some(put) = put {
                    // SAFETY: guaranteed by the caller; the bytes live until the function returns.
                    unsafe { put(state, address(key), key.len(), address(value), value.len()) };
                }
            }
            Operation::Delete { key } => {
                if let Some(deleted) = deleted {
                    // SAFETY: as above.
                    unsafe { deleted(state, address(key), key.len()) };
                }
            }
        }
    }
}
