//! Builds tables of chunks of entries, on background threads and on the caller's own.
//!
//! One thread submits; when more chunks wait than it pays to keep, it builds one itself. So a load
//! never waits for threads that are busy with something else.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use crate::base::error::{Error, Result};
use crate::base::locks::{Condvar, Mutex};
use crate::compaction::output::{OutputSettings, complete_table, seal};
use crate::db::db_impl::DbImpl;
use crate::env::{CreateOptions, Priority, WritableFile};
use crate::table::{Compression, DictionarySettings, TableBuilder};
use crate::version::NUM_LEVELS;
use crate::version::filename;

use super::sort::Chunk;
use crate::db::staged::{Staged, discard};

/// Chunks that wait for a thread before the submitting one builds a table itself.
const MOST_WAITING: usize = 2;

/// Complete files that are being written out, so that building goes on while the disk works.
const MOST_UNSYNCED: usize = 8;

/// The use of the tables.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Purpose {
    /// To become part of the database.
    Final,
    /// To be rewritten before the load ends: a sorted run.
    Temporary,
}

/// See the [module](self).
pub(super) struct Builders {
    shared: Arc<Shared>,
    /// Background threads at most.
    threads: usize,
    submitted: usize,
}

struct Shared {
    core: Arc<DbImpl>,
    outputs: OutputSettings,
    state: Mutex<State>,
    done: Condvar,
}

#[derive(Default)]
struct State {
    /// Each with its number.
    waiting: VecDeque<(usize, Purpose, Chunk)>,
    /// Background jobs that are scheduled or running, and tables being built by them.
    jobs: usize,
    building: usize,
    finished: Vec<(usize, Staged)>,
    unsynced: VecDeque<Box<dyn WritableFile>>,
    free: Vec<Chunk>,
    /// Bytes of final tables, and of the chunks that they were made of.
    table_bytes: u64,
    chunk_bytes: u64,
    error: Option<Error>,
}

impl Builders {
    pub(super) fn new(core: &Arc<DbImpl>, threads: usize) -> Self {
        // Where they cannot be read the tables are as the database says.
        let _ = core.background.prefix_settings();
        // The level is not known yet: these tables are meant for a deep one.
        let mut outputs = core.files.output_settings(NUM_LEVELS - 1);
        outputs.table.dictionary = DictionarySettings::new(core.files.options.zstd_dictionary);
        let shared =
            Shared { core: core.clone(), outputs, state: Mutex::default(), done: Condvar::new() };
        Builders { shared: Arc::new(shared), threads, submitted: 0 }
    }

    /// An empty chunk.
    pub(super) fn chunk(&self) -> Chunk {
        self.shared.state.lock().free.pop().unwrap_or_default()
    }

    /// Bytes of entries that make a table of `size` bytes, as far as that is known.
    pub(super) fn entries_for(&self, size: usize) -> usize {
        let state = self.shared.state.lock();
        if state.table_bytes == 0 {
            return size;
        }
        (size as f64 * state.chunk_bytes as f64 / state.table_bytes as f64) as usize
    }

    /// Has a table made of `chunk`. Tables are numbered in the order of their chunks, from 0. An
    /// error is that of any table so far.
    pub(super) fn submit(&mut self, purpose: Purpose, chunk: Chunk) -> Result<()> {
        let mut state = self.shared.state.lock();
        if let Some(error) = &state.error {
            return Err(error.clone());
        }
        state.waiting.push_back((self.submitted, purpose, chunk));
        self.submitted += 1;
        let start = state.jobs < self.threads;
        let help = state.waiting.len() > MOST_WAITING || self.threads == 0;
        state.jobs += usize::from(start);
        drop(state);
        if start {
            let shared = self.shared.clone();
            self.shared.core.background.in_background(Priority::Compaction, move |_| shared.work());
        }
        if help {
            self.shared.build_one(false);
        }
        Ok(())
    }

    /// How many chunks have been submitted.
    pub(super) fn submitted(&self) -> usize {
        self.submitted
    }

    /// Waits for every table and hands all of them over in the order of their numbers. Those that
    /// were finished before an error are removed.
    pub(super) fn finish(&mut self) -> Result<Vec<Staged>> {
        while self.shared.build_one(false) {}
        self.shared.sync_down_to(0);
        let mut state = self.shared.state.lock();
        // Jobs that have not begun find nothing to do.
        while state.building > 0 {
            self.shared.done.wait(&mut state);
        }
        drop(state);
        self.shared.sync_down_to(0);
        let mut state = self.shared.state.lock();
        self.submitted = 0;
        let mut finished = std::mem::take(&mut state.finished);
        let error = state.error.clone();
        drop(state);
        finished.sort_by_key(|(number, _)| *number);
        let finished: Vec<_> = finished.into_iter().map(|(_, staged)| staged).collect();
        match error {
            None => Ok(finished),
            Some(error) => {
                discard(&self.shared.core, &finished);
                Err(error)
            }
        }
    }
}

impl Drop for Builders {
    fn drop(&mut self) {
        self.shared.state.lock().waiting.clear();
        if let Ok(unused) = self.finish() {
            discard(&self.shared.core, &unused);
        }
    }
}

impl Shared {
    /// A background thread's part.
    fn work(&self) {
        while self.build_one(true) {}
    }

    /// Builds the table of the first chunk that waits. Whether there was one; if not, a job is
    /// over.
    fn build_one(&self, is_job: bool) -> bool {
        let mut state = self.state.lock();
        let Some((number, purpose, mut chunk)) = state.waiting.pop_front() else {
            state.jobs -= usize::from(is_job);
            return false;
        };
        state.building += 1;
        drop(state);
        let built =
            catch_unwind(AssertUnwindSafe(|| self.build(purpose, &chunk))).unwrap_or_else(|_| {
                Err(Error::io_message("a panic while building a table of a bulk load"))
            });
        let mut state = self.state.lock();
        match built {
            Ok((staged, file)) => {
                state.unsynced.extend(file);
                if purpose == Purpose::Final {
                    state.table_bytes += staged.table.file.size;
                    state.chunk_bytes += chunk.len() as u64;
                }
                state.finished.push((number, staged));
            }
            Err(error) => {
                state.error.get_or_insert(error);
                state.waiting.clear();
            }
        }
        chunk.clear();
        state.free.push(chunk);
        drop(state);
        self.sync_down_to(MOST_UNSYNCED);
        let mut state = self.state.lock();
        state.building -= 1;
        drop(state);
        self.done.notify_all();
        true
    }

    /// Makes files durable, the oldest first, until `most` are left.
    fn sync_down_to(&self, most: usize) {
        loop {
            let mut state = self.state.lock();
            if state.unsynced.len() <= most {
                return;
            }
            let Some(file) = state.unsynced.pop_front() else { return };
            drop(state);
            if let Err(error) = seal(file) {
                self.state.lock().error.get_or_insert(error);
            }
        }
    }

    /// The table, and, if it must become durable, its file.
    fn build(
        &self,
        purpose: Purpose,
        chunk: &Chunk,
    ) -> Result<(Staged, Option<Box<dyn WritableFile>>)> {
        let _open = self.core.background.stay_open()?;
        let OutputSettings { env, dir, numbers, file_mode, table, .. } = &self.outputs;
        let number = numbers.take();
        let path = dir.join(filename::temp(number));
        let create = || env.create(&path, CreateOptions { mode: *file_mode, exclusive: true });
        let file = self.core.files.sparing(create)?;
        let mut settings = table.clone();
        if purpose == Purpose::Temporary {
            settings.compression = Compression::None;
            settings.dictionary = None;
            settings.full_filter_bits = 0;
            settings.filter_policy = None;
        }
        let mut builder = TableBuilder::new(file, &settings);
        let built = chunk
            .entries()
            .try_for_each(|(key, value)| builder.add(key, value))
            .and_then(|()| complete_table(number, builder, 0))
            .and_then(|(table, mut file)| match purpose {
                Purpose::Final => {
                    file.start_writeback(0, table.file.size);
                    Ok((table, Some(file)))
                }
                Purpose::Temporary => file.close().map(|()| (table, None)),
            });
        match built {
            Ok((table, file)) => Ok((Staged { table, path }, file)),
            Err(error) => {
                // A leftover is harmless: the next open removes it.
                let _ = env.remove(&path);
                Err(error)
            }
        }
    }
}
