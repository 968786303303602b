//! Writes the tables of a compaction or a flush.
//!
//! # Invariants
//! 1. A table is synced before it is handed over.
//! 2. Tables that are not handed over are removed when the writer is dropped.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::Arc;

use crate::base::error::Result;
use crate::base::internal_key::user_key;
use crate::base::mutation::mutated;
use crate::env::{CreateOptions, Env, WritableFile};
use crate::table::{StoredBlock, TableBuilder, TableSettings};
use crate::version::edit::NewFile;
use crate::version::file_meta::Contents;
use crate::version::filename;
use crate::version::version_set::FileNumbers;

use super::rate_limiter::RateLimiter;

/// Files that may be on their way to the disk while the next one is made.
const MOST_UNSYNCED: usize = 4;

/// Where tables are written and how.
#[derive(Clone)]
pub(crate) struct OutputSettings {
    pub(crate) env: Arc<dyn Env>,
    pub(crate) dir: PathBuf,
    pub(crate) numbers: Arc<FileNumbers>,
    /// The number of the first table, where that is decided already.
    pub(crate) first_number: Option<u64>,
    pub(crate) file_mode: u32,
    /// How fast the tables are written.
    pub(crate) limit: Option<Arc<RateLimiter>>,
    pub(crate) table: TableSettings,
}

impl OutputSettings {
    fn start(&mut self) -> Result<Open> {
        let number = self.first_number.take().unwrap_or_else(|| self.numbers.take());
        let path = self.dir.join(filename::table(number));
        let file =
            self.env.create(&path, CreateOptions { mode: self.file_mode, exclusive: true })?;
        let file = RateLimiter::over(self.limit.as_ref(), file);
        Ok(Open { number, builder: TableBuilder::new(file, &self.table) })
    }

    /// Removes an unneeded table.
    pub(crate) fn remove(&self, number: u64) {
        // A leftover is harmless: no MANIFEST names it, and the next open removes it.
        let _ = self.env.remove(&self.dir.join(filename::table(number)));
    }
}

/// A finished, durable table.
#[derive(Clone, Debug)]
pub(crate) struct Output {
    pub(crate) file: NewFile,
    pub(crate) contents: Contents,
}

impl Output {
    /// The first and the last key.
    pub(crate) fn user_keys(&self) -> (&[u8], &[u8]) {
        (user_key(&self.file.smallest), user_key(&self.file.largest))
    }
}

struct Open {
    number: u64,
    builder: TableBuilder,
}

/// Writes entries, in order, to one table after another.
pub(crate) struct OutputWriter {
    settings: OutputSettings,
    level: usize,
    open: Option<Open>,
    finished: Vec<Output>,
    /// Complete files that are being written out while the next ones are made; the oldest first.
    unsynced: VecDeque<Box<dyn WritableFile>>,
}

impl OutputWriter {
    pub(crate) fn new(settings: OutputSettings, level: usize) -> Self {
        OutputWriter {
            settings,
            level,
            open: None,
            finished: Vec::new(),
            unsynced: VecDeque::new(),
        }
    }

    /// Adds an entry to the present table, starting one if there is none.
    #[inline]
    pub(crate) fn add(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        self.open()?.builder.add(key, value)
    }

    /// [`add`](Self::add) of an entry of another table; see [`TableBuilder::add_stored`].
    #[inline]
    pub(crate) fn add_stored<'a>(
        &mut self,
        key: &[u8],
        value: &[u8],
        lone_block: impl FnOnce() -> Option<StoredBlock<'a>>,
    ) -> Result<()> {
        self.open()?.builder.add_stored(key, value, lone_block)
    }

    /// The bytes of the present table so far; 0 if there is none.
    #[inline]
    pub(crate) fn present_size(&self) -> u64 {
        self.open.as_ref().map_or(0, |open| open.builder.file_size())
    }

    /// The present table.
    #[inline]
    fn open(&mut self) -> Result<&mut Open> {
        Ok(match &mut self.open {
            Some(open) => open,
            none => none.insert(self.settings.start()?),
        })
    }

    /// Completes the present table, if there is one.
    pub(crate) fn finish_table(&mut self) -> Result<()> {
        let Some(open) = self.open.take() else { return Ok(()) };
        match complete_table(open.number, open.builder, self.level) {
            Ok((output, mut file)) => {
                file.start_writeback(0, output.file.size);
                self.finished.push(output);
                self.unsynced.push_back(file);
                self.sync_down_to(MOST_UNSYNCED)
            }
            Err(error) => {
                self.settings.remove(open.number);
                Err(error)
            }
        }
    }

    /// Makes files durable, the oldest first, until `most` are left.
    fn sync_down_to(&mut self, most: usize) -> Result<()> {
        while self.unsynced.len() > most
            && let Some(file) = self.unsynced.pop_front()
        {
            seal(file)?;
        }
        Ok(())
    }

    /// Finishes, makes the names of all tables durable and hands them over.
    pub(crate) fn finish(mut self) -> Result<Vec<Output>> {
        self.finish_table()?;
        self.sync_down_to(0)?;
        if !self.finished.is_empty() && !mutated("table-names") {
            self.settings.env.sync_dir(&self.settings.dir)?;
        }
        Ok(std::mem::take(&mut self.finished))
    }
}

/// Writes the rest of table `number`. Neither syncs nor closes the file.
pub(crate) fn complete_table(
    number: u64,
    builder: TableBuilder,
    level: usize,
) -> Result<(Output, Box<dyn WritableFile>)> {
    let table = builder.finish()?;
    let output = Output {
        file: NewFile {
            level,
            number,
            size: table.size,
            smallest: table.smallest,
            largest: table.largest,
        },
        contents: Contents::from(table.properties),
    };
    Ok((output, table.file))
}

/// Makes a file durable that is complete.
pub(crate) fn seal(mut file: Box<dyn WritableFile>) -> Result<()> {
    let synced = if mutated("table-sync") { Ok(()) } else { file.sync() };
    if !mutated("table-sync-errors") {
        synced?;
    }
    file.close()
}

impl Drop for OutputWriter {
    fn drop(&mut self) {
        let abandoned = self.open.take().map(|open| open.number);
        let finished = std::mem::take(&mut self.finished);
        for number in finished.iter().map(|output| output.file.number).chain(abandoned) {
            self.settings.remove(number);
        }
    }
}
