//! The write-ahead logs of an open database: how far they are durable, and which file becomes the
//! next one.
//!
//! Any thread.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::base::error::Result;
use crate::base::locks::AtomicBool;
use crate::base::mutation::mutated;
use crate::env::{CreateOptions, FileSyncer, with_syncer};
use crate::log::LogWriter;
use crate::version::filename;
use crate::write::log_sync::LogSync;

use crate::db::db_impl::files::Files;
use crate::db::db_impl::recycled_logs::{RecycledLog, RecycledLogs};

/// See the [module](self).
pub(in crate::db) struct Logs {
    files: Arc<Files>,
    pub(in crate::db) sync: LogSync,
    /// Set when the present log may not hold what was appended to it: the next write moves on
    /// first.
    pub(in crate::db) suspect: AtomicBool,
    pub(in crate::db) recycled: RecycledLogs,
}

impl Logs {
    pub(in crate::db) fn new(files: &Arc<Files>) -> Self {
        Logs {
            files: files.clone(),
            sync: LogSync::default(),
            suspect: AtomicBool::new(false),
            recycled: RecycledLogs::default(),
        }
    }

    /// Until it is dispelled, the present log is suspect once this is dropped: where a sync fails,
    /// and where a program's file panics in it.
    pub(in crate::db) fn doubt(&self) -> Doubt<'_> {
        Doubt { logs: self, is_dispelled: false }
    }

    /// Creates a log as the options say.
    pub(in crate::db) fn create(&self, path: &Path) -> Result<(LogWriter, Arc<dyn FileSyncer>)> {
        let Files { options, env, .. } = &*self.files;
        let create = CreateOptions { mode: options.file_mode, exclusive: true };
        let file = match options.mapped_log {
            true => env.create_log(path, create, options.write_buffer_size as u64)?,
            false => env.create(path, create)?,
        };
        let (file, syncer) = with_syncer(file);
        Ok((LogWriter::new(file, 0), syncer))
    }

    /// A log that another memtable has no use for any more, under the name `path`, if there is one.
    pub(in crate::db) fn reuse(&self, path: &Path) -> Option<(LogWriter, Arc<dyn FileSyncer>)> {
        let RecycledLog { number, mut file } = self.recycled.take()?;
        // A file of that name would be lost, and creating the log tells of it.
        let is_free = self.files.env.exists(path).is_ok_and(|exists| !exists);
        if !is_free
            || self.files.env.rename(&self.files.path(&filename::temp(number)), path).is_err()
        {
            drop(file);
            self.delete_recycled_log(number);
            return None;
        }
        file.set_path(path);
        let (file, syncer) = with_syncer(file);
        Some((LogWriter::new(file, 0), syncer))
    }

    /// Removes the logs that were kept. Whether there were any.
    pub(in crate::db) fn delete_recycled_logs(&self) -> bool {
        let mut had_any = false;
        while let Some(log) = self.recycled.take() {
            let number = log.number;
            drop(log);
            self.delete_recycled_log(number);
            had_any = true;
        }
        had_any
    }

    /// A leftover is harmless: the next open removes it.
    pub(in crate::db) fn delete_recycled_log(&self, number: u64) {
        let _ = self.files.env.remove(&self.files.path(&filename::temp(number)));
    }
}

/// See [`Logs::doubt`].
pub(in crate::db) struct Doubt<'a> {
    logs: &'a Logs,
    is_dispelled: bool,
}

impl Doubt<'_> {
    pub(in crate::db) fn dispel(mut self) {
        self.is_dispelled = true;
    }
}

impl Drop for Doubt<'_> {
    fn drop(&mut self) {
        if !self.is_dispelled {
            self.logs.suspect.store(!mutated("failed-sync"), Ordering::Relaxed);
        }
    }
}
