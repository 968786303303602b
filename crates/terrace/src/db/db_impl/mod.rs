//! An open database, shared by its handles, iterators, snapshots and background jobs: LevelDB's
//! `DBImpl`.
//!
//! Its parts, lowest first; each knows those before it:
//! 1. [`Files`]: the directory, and whether this process may use it;
//! 2. [`Views`]: what reads see; [`Logs`]: the write-ahead logs;
//! 3. [`Background`]: flushes and compactions, the MANIFEST, what is queued and running. Jobs hold
//!    this part and nothing above it, but for the flush of an idle memtable;
//! 4. [`WritePath`]: what the commit lock guards.
//!
//! Methods stand beside the part whose fields they use. An operation that needs all of them is
//! a function of a `&DbImpl`, in a module of its own above this one.

pub(in crate::db) mod background;
pub(in crate::db) mod file_copy;
pub(in crate::db) mod files;
pub(in crate::db) mod incarnations;
pub(in crate::db) mod logs;
pub(in crate::db) mod lost;
pub(in crate::db) mod prepared_list;
pub(in crate::db) mod recent_range_deletes;
mod recycled_logs;
pub(in crate::db) mod views;
pub(in crate::db) mod write_path;

use std::sync::Arc;

use crate::base::locks::Mutex;
use crate::version::version_set::VersionSet;

use crate::db::db_impl::background::Background;
use crate::db::db_impl::files::Files;
use crate::db::db_impl::incarnations::Incarnations;
use crate::db::db_impl::logs::Logs;
use crate::db::db_impl::prepared_list::PreparedList;
use crate::db::db_impl::views::Views;
use crate::db::db_impl::write_path::WritePath;

/// See the [module](self).
pub(crate) struct DbImpl {
    pub(in crate::db) files: Arc<Files>,
    pub(in crate::db) views: Arc<Views>,
    pub(in crate::db) logs: Arc<Logs>,
    pub(in crate::db) background: Arc<Background>,
    pub(in crate::db) writes: Arc<WritePath>,
    pub(in crate::db) keyspaces: Incarnations,
    pub(in crate::db) prepared: PreparedList,
    /// Held for as long as the database is being closed.
    pub(in crate::db) shutting_down: Mutex<()>,
}

impl DbImpl {
    /// A database in which nothing runs yet, and nothing can be written.
    pub(in crate::db) fn new(files: Files, views: Views, versions: VersionSet) -> Self {
        let (files, views) = (Arc::new(files), Arc::new(views));
        let logs = Arc::new(Logs::new(&files));
        let background = Arc::new(Background::new(&files, &views, &logs, versions));
        let writes = Arc::new(WritePath::new(&background));
        DbImpl {
            files,
            views,
            logs,
            background,
            writes,
            keyspaces: Incarnations::default(),
            prepared: PreparedList::default(),
            shutting_down: Mutex::new(()),
        }
    }
}
