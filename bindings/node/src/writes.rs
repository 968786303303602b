//! The writes of one database object, in the order in which they were asked for.
//!
//! JavaScript queues writes on the event loop and runs everything that is queued as one job, one
//! job at a time. So writes that are not awaited take effect in the order of their calls, and those
//! that ask for `sync` share one.

use napi_derive::napi;
use terrace::{Db, Error, Result, WriteBatch};

use crate::error::code;
use crate::frames::{Frames, Operation};
use crate::range::Range;

/// Bytes of keys that `clear` removes at a time.
const CLEAR_BATCH: usize = 64 << 10;

/// Writes that have not been started.
#[derive(Default)]
pub struct Writes {
    /// The operations of all of them.
    operations: Vec<u8>,
    queue: Vec<Write>,
}

enum Write {
    /// Operations in so many of the bytes that come next.
    Operations { bytes: usize, is_batch: bool, sync: bool },
    /// The removal of a range.
    Clear { range: Range, limit: Option<u64>, snapshot: Option<terrace::Snapshot> },
}

/// Why a write of a job failed.
#[napi(object)]
pub struct Failure {
    /// Which of the writes that were queued.
    pub index: u32,
    /// The error's code.
    pub code: String,
    /// Its text.
    pub message: String,
}

impl Writes {
    /// Queues operations: one, or a batch that is applied as a whole or not at all.
    ///
    /// # Errors
    /// `InvalidArgument` if the frames are not operations. Nothing is queued then.
    pub fn push(&mut self, operations: Frames<'_>, sync: bool) -> Result<()> {
        let (mut left, mut count) = (operations, 0_usize);
        while !left.is_empty() {
            left.operation()?;
            count += 1;
        }
        let bytes = operations.rest();
        if self.operations.try_reserve(bytes.len()).is_err() {
            let message = format!("no memory for a write of {} bytes", bytes.len());
            return Err(Error::io_message(message));
        }
        self.operations.extend_from_slice(bytes);
        let is_batch = count != 1;
        self.queue.push(Write::Operations { bytes: bytes.len(), is_batch, sync });
        Ok(())
    }

    /// Queues the removal of a range: of what is there when its turn comes, or was there in
    /// `snapshot`.
    pub fn push_clear(
        &mut self,
        range: Range,
        limit: Option<u64>,
        snapshot: Option<terrace::Snapshot>,
    ) {
        self.queue.push(Write::Clear { range, limit, snapshot });
    }

    /// Runs all of them and returns those that failed.
    pub fn run(&self, db: &Db) -> Vec<Failure> {
        let mut failures = Vec::new();
        let mut fail = |index: usize, error: &Error| {
            let (code, message) = (code(error).as_ref().to_owned(), error.to_string());
            failures.push(Failure { index: index as u32, code, message });
        };
        let (mut rest, mut to_sync) = (&self.operations[..], Vec::new());
        for (index, write) in self.queue.iter().enumerate() {
            let written = match write {
                Write::Operations { bytes, is_batch, sync } => {
                    let (operations, behind) = rest.split_at_checked(*bytes).unwrap_or_default();
                    rest = behind;
                    let written = apply(db, operations, *is_batch);
                    if *sync && written.is_ok() {
                        to_sync.push(index);
                    }
                    written
                }
                Write::Clear { range, limit, snapshot } => {
                    clear(db, range, *limit, snapshot.as_ref())
                }
            };
            if let Err(error) = written {
                fail(index, &error);
            }
        }
        if !to_sync.is_empty()
            && let Err(error) = db.sync()
        {
            to_sync.iter().for_each(|index| fail(*index, &error));
        }
        failures
    }
}

fn apply(db: &Db, operations: &[u8], is_batch: bool) -> Result<()> {
    let mut frames = Frames::new(operations, operations.len() as u32)?;
    if is_batch {
        return db.write(&frames.batch()?);
    }
    match frames.operation()? {
        Operation::Put(key, value) => db.put(key, value),
        Operation::Delete(key) => db.delete(key),
    }
}

/// Removes the keys in `range`: all of them as one step; or, with a limit or a snapshot, the first
/// of them or those that it has, batch by batch.
fn clear(
    db: &Db,
    range: &Range,
    limit: Option<u64>,
    snapshot: Option<&terrace::Snapshot>,
) -> Result<()> {
    if limit.is_none() && snapshot.is_none() {
        return db.delete_range::<&[u8]>(range.ends());
    }
    let snapshot = snapshot.cloned().unwrap_or_else(|| db.snapshot());
    let mut cursor = db.cursor_with(&range.read_options(&snapshot, false))?;
    match range.reverse {
        true => cursor.seek_to_last(),
        false => cursor.seek_to_first(),
    }
    let mut left = limit.unwrap_or(u64::MAX);
    let mut batch = WriteBatch::new();
    while left > 0 && cursor.valid() {
        batch.delete(cursor.key());
        left -= 1;
        if batch.approximate_size() >= CLEAR_BATCH {
            db.write(&batch)?;
            batch.clear();
        }
        match range.reverse {
            true => cursor.prev(),
            false => cursor.next(),
        }
    }
    cursor.status()?;
    if batch.is_empty() { Ok(()) } else { db.write(&batch) }
}
