//! Finished tables that are not part of the database yet.

use std::path::PathBuf;

use crate::base::error::Result;
use crate::compaction::output::Output;
use crate::env::Env;
use crate::version::filename;

use crate::db::db_impl::DbImpl;

/// A finished table and where it lies. Nobody removes it unless [`discard`](Staged::discard) is
/// called.
pub(in crate::db) struct Staged {
    pub(in crate::db) table: Output,
    pub(in crate::db) path: PathBuf,
}

impl Staged {
    /// The first and the last key.
    pub(in crate::db) fn user_keys(&self) -> (&[u8], &[u8]) {
        self.table.user_keys()
    }

    /// Removes the file. A leftover is harmless: the next open removes it.
    pub(in crate::db) fn discard(&self, env: &dyn Env) {
        let _ = env.remove(&self.path);
    }
}

/// Removes tables that will not be installed. Once the database is closed its files are the
/// next open's.
pub(in crate::db) fn discard(core: &DbImpl, staged: &[Staged]) {
    if !staged.is_empty()
        && let Ok(_open) = core.background.stay_open()
    {
        staged.iter().for_each(|staged| staged.discard(core.files.env.as_ref()));
    }
}

/// Gives the tables their names, durably. The numbers are new: within level 0 the greater one
/// is the newer table, and recovery tells tables that a damaged end of the MANIFEST may have
/// named by numbers that it has not recorded.
///
/// A link may have an unrecorded number here, unlike a temporary name: the logs hold no writes,
/// so LevelDB makes no table in its recovery, and then removes those that the MANIFEST does not
/// name before it makes any.
pub(in crate::db) fn give_names(core: &DbImpl, staged: &mut [Staged]) -> Result<Vec<Output>> {
    for staged in staged.iter_mut() {
        let number = core.files.numbers.take();
        let path = core.files.path(&filename::table(number));
        core.files.env.rename(&staged.path, &path)?;
        staged.path = path;
        staged.table.file.number = number;
    }
    core.files.sparing(|| core.files.env.sync_dir(&core.files.dir))?;
    // Their values lie in the tables.
    let table = |Output { file, contents, .. }: &Output| Output {
        file: file.clone(),
        contents: *contents,
        value_files: Vec::new(),
    };
    Ok(staged.iter().map(|staged| table(&staged.table)).collect())
}
