//! The directory `lost/` of a database: what may hold something that is nowhere else, and would do
//! harm where it was. Repair and people look there; the engine only puts things in.
//!
//! Names and contents are durable when a method returns `Ok`.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::base::error::{ErrorKind, Result};
use crate::base::internal_key::SequenceNumber;
use crate::base::mutation::mutated;
use crate::env::{Env, RandomAccessFile, ReadAccess};
use crate::version::edit::NewFile;
use crate::version::file_meta::FileMeta;
use crate::version::filename::{self, FileKind, LOST_DIR};

use crate::db::db_impl::DbImpl;
use crate::db::file_copy::{PIECE, each_piece};
use crate::db::open::recovery::Recovered;
use crate::db::stats::events::Event;

impl DbImpl {
    /// Moves a file there. Returns where it is now, seen from the database's directory.
    pub(in crate::db) fn move_to_lost(&self, name: &str) -> Result<String> {
        let lost = self.lost_dir()?;
        let kept_as = free_name(self.env.as_ref(), &lost, name)?;
        self.env.rename(&self.path(name), &lost.join(&kept_as))?;
        self.sync_lost(&lost)?;
        Ok(format!("{LOST_DIR}/{kept_as}"))
    }

    /// Copies a file there, unless an equal one is there under its name. Returns where.
    pub(in crate::db) fn copy_to_lost(&self, name: &str) -> Result<String> {
        let (lost, path) = (self.lost_dir()?, self.path(name));
        let original = self.env.open_random(&path, ReadAccess::Pread)?;
        let mut kept_as = name.to_owned();
        if !self.is_copy(&*original, &lost.join(name))? {
            kept_as = free_name(self.env.as_ref(), &lost, name)?;
            let unfinished = lost.join(format!("{name}.unfinished"));
            // A crash may have left one.
            let _ = self.env.remove(&unfinished);
            self.copy_file(&path, &unfinished)?;
            self.env.rename(&unfinished, &lost.join(&kept_as))?;
        }
        self.sync_lost(&lost)?;
        Ok(format!("{LOST_DIR}/{kept_as}"))
    }

    /// Moves tables to `lost/` that no MANIFEST names and that may be all there is of some writes,
    /// so that repair and people find them there. That is any of them where recovery cut the
    /// history: the MANIFEST may have lost its end rather than the logs theirs. Where the
    /// MANIFEST's last record is bad, it is those of a bulk load, which stands in no log, and of a
    /// log that has lost more than its table. Others are in their logs.
    pub(in crate::db) fn set_aside_tables(
        &self,
        unnamed: &mut Vec<String>,
        torn: Option<String>,
        recovered: &Recovered,
    ) {
        let was_cut = recovered.was_damaged();
        if !was_cut && torn.is_none() {
            return;
        }
        let is_wanted = |name: &str| match filename::parse(name) {
            Some((FileKind::Table, number)) => {
                was_cut || self.holds_more(name, number, recovered.last_sequence)
            }
            _ => false,
        };
        let (wanted, unwanted) =
            std::mem::take(unnamed).into_iter().partition(|name| is_wanted(name));
        *unnamed = unwanted;
        for name in wanted {
            match self.move_to_lost(&name) {
                Ok(kept_as) => {
                    self.log(format!("moved {name}, which no MANIFEST names, to {kept_as}"));
                    if let Some(torn) = &torn {
                        let message = format!(
                            "{torn}; {name}, which may have been named there, holds writes that are lost"
                        );
                        let (file, kept_as) = (name, Some(kept_as));
                        self.tell(&Event::RecoveryDamage { file, message, kept_as });
                    }
                }
                Err(error) => self
                    .log(format!("could not move {name}, which no MANIFEST names, away: {error}")),
            }
        }
    }

    /// Whether a table that no MANIFEST names may hold writes later than `last_sequence`, or such
    /// as have no place in the history. One that was never finished, as a crash leaves it, was in
    /// no edit.
    fn holds_more(&self, name: &str, number: u64, last_sequence: SequenceNumber) -> bool {
        let Ok(size) = self.env.file_size(&self.path(name)) else { return true };
        let file = NewFile { level: 0, number, size, smallest: Vec::new(), largest: Vec::new() };
        match self.tables.table(&Arc::new(FileMeta::new(file, &Arc::default()))) {
            // LevelDB, which records no properties, has no loads either.
            Ok(table) => table.properties().is_some_and(|properties| {
                properties.largest_sequence == 0 || properties.largest_sequence > last_sequence
            }),
            Err(error) => error.kind() != ErrorKind::Corruption,
        }
    }

    /// Copies logs to `lost/` in which recovery met damage with something valid behind it.
    /// Otherwise they go there when they are not needed any more; but a crash may come in between,
    /// and the open after it would know nothing of it.
    pub(in crate::db) fn set_aside_logs(&self, recovered: &mut Recovered) {
        for damage in recovered
            .damage
            .iter_mut()
            .filter(|damage| damage.keep && !mutated("keep-damaged-logs"))
        {
            match self.copy_to_lost(&filename::log(damage.log)) {
                Ok(kept_as) => damage.kept_as = Some(kept_as),
                Err(error) => {
                    self.log(format!("{} is damaged and could not be copied: {error}", damage.file))
                }
            }
        }
    }

    fn lost_dir(&self) -> Result<PathBuf> {
        let lost = self.path(LOST_DIR);
        self.env.create_dir(&lost, self.options.dir_mode)?;
        Ok(lost)
    }

    /// The new names before the old ones are gone for good.
    fn sync_lost(&self, lost: &Path) -> Result<()> {
        self.env.sync_dir(lost)?;
        self.env.sync_dir(&self.dir)
    }

    /// Whether the file at `path` holds what `original` does.
    fn is_copy(&self, original: &dyn RandomAccessFile, path: &Path) -> Result<bool> {
        if !self.env.exists(path)? {
            return Ok(false);
        }
        let copy = self.env.open_random(path, ReadAccess::Pread)?;
        let mut buffer = vec![0; PIECE];
        let is_same = |offset, piece: &[u8]| {
            let read = copy.read_at(offset, &mut buffer[..piece.len()])?;
            Ok(buffer[..read] == *piece)
        };
        Ok(copy.size() == original.size() && each_piece(original, is_same)?)
    }
}

/// `name`, or with a number behind it if that is taken: a database of the same name was there
/// before, perhaps.
pub(in crate::db) fn free_name(env: &dyn Env, lost: &Path, name: &str) -> Result<String> {
    let mut free = name.to_owned();
    let mut taken = 0;
    while env.exists(&lost.join(&free))? {
        taken += 1;
        free = format!("{name}.{taken}");
    }
    Ok(free)
}
