//! Plays a [`Script`] on a database in a [`SimFs`], and keeps a [`History`] of what was written and
//! acknowledged.

use std::ops::Bound;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use terrace::{Db, Error, Logger, WriteOptions};

use crate::history::{History, number_key, show};
use crate::model::{Change, Pair};
use crate::option_set::OptionSet;
use crate::runner::{batch_of, load};
use crate::script::{Action, Script};
use crate::simfs::SimFs;

/// One writer at work.
pub struct Driver {
    fs: SimFs,
    path: PathBuf,
    settings: OptionSet,
    history: History,
    db: Option<Db>,
    /// Whether the database may return errors.
    tolerant: bool,
    /// Whether every write puts a key with its number, for [`History::check_numbered`].
    numbered: bool,
    /// Whether the system may forget what was not synced.
    forgetful: bool,
    logger: Option<Arc<dyn Logger>>,
    errors: Vec<Error>,
}

impl Driver {
    /// A writer that expects that everything works.
    pub fn new(fs: &SimFs, path: &Path, settings: &OptionSet, history: History) -> Driver {
        let (path, settings) = (path.to_owned(), settings.clone());
        Driver {
            fs: fs.clone(),
            path,
            settings,
            history,
            db: None,
            tolerant: false,
            numbered: false,
            forgetful: false,
            logger: None,
            errors: Vec::new(),
        }
    }

    /// Has each write that changes something put a key with its number, so that
    /// [`History::check_numbered`] can tell which ones took effect.
    #[must_use]
    pub fn numbered(mut self) -> Driver {
        self.numbered = true;
        self
    }

    /// A writer that goes on after errors, and opens again what could not be opened. Its writes are
    /// numbered.
    #[must_use]
    pub fn tolerant(mut self) -> Driver {
        self.tolerant = true;
        self.numbered()
    }

    /// Expects that a file may show again what is on the disk, without what was not synced.
    #[must_use]
    pub fn forgetful(mut self, forgetful: bool) -> Driver {
        self.forgetful = forgetful;
        self
    }

    /// Has the database's messages logged by `logger`.
    #[must_use]
    pub fn logger(mut self, logger: Arc<dyn Logger>) -> Driver {
        self.logger = Some(logger);
        self
    }

    /// The errors met by a tolerant writer.
    pub fn errors(&self) -> &[Error] {
        &self.errors
    }

    /// The history that was written.
    pub fn history(&self) -> &History {
        &self.history
    }

    /// The history that was written, with the database closed.
    ///
    /// # Errors
    /// A message if closing fails.
    pub fn finish(mut self) -> Result<History, String> {
        self.close()?;
        Ok(self.history)
    }

    /// Opens, does everything in `script`, and leaves the database open.
    ///
    /// # Errors
    /// A message if the database fails, unless the writer is tolerant, or if it returns wrong
    /// results in any case.
    pub fn play(&mut self, script: &Script) -> Result<(), String> {
        self.open()?;
        self.play_on(script)
    }

    /// Does everything in `script` on the database that is open.
    ///
    /// # Errors
    /// As [`Driver::play`].
    pub fn play_on(&mut self, script: &Script) -> Result<(), String> {
        for (number, action) in script.actions.iter().enumerate() {
            self.act(action)
                .map_err(|error| format!("action {number} of \"{}\": {error}", script.name))?;
        }
        Ok(())
    }

    fn act(&mut self, action: &Action) -> Result<(), String> {
        if self.db.is_none() {
            self.open()?;
        }
        let Some(db) = self.db.clone() else { return Ok(()) };
        match action {
            Action::Write(changes, sync) => self.write(&db, changes, *sync),
            Action::DeleteRange(from, to, sync) => self.delete_range(&db, from, to, *sync),
            Action::Load(entries) => self.load(&db, entries),
            Action::Flush => {
                let outcome = db.flush();
                self.durable(outcome)
            }
            Action::Compact => {
                let outcome = db.compact_range::<&[u8]>(..);
                self.durable(outcome)
            }
            Action::WaitIdle => self.accept(db.wait_idle()).map(|_| ()),
            Action::Reopen => {
                drop(db);
                self.close()?;
                self.open()
            }
            Action::Scan => self.scan(&db),
        }
    }

    fn open(&mut self) -> Result<(), String> {
        let options = self.settings.options(self.fs.env()).logger(self.logger.clone());
        let opened = Db::open(&self.path, options);
        self.db = self.accept(opened).map_err(|error| format!("open: {error}"))?;
        if self.forgetful {
            self.note_forgotten()?;
        }
        Ok(())
    }

    /// Notes which writes the system has forgotten; none if they cannot be read, and then the
    /// database is not open.
    fn note_forgotten(&mut self) -> Result<(), String> {
        let Some(db) = self.db.take() else { return Ok(()) };
        let Some(found) = self.accept(read_all(&db))? else { return Ok(()) };
        self.history.check_numbered(&found, self.alive(), self.history.writes().len())?;
        self.history.forget_all_but(&found);
        self.db = Some(db);
        Ok(())
    }

    fn close(&mut self) -> Result<(), String> {
        match self.db.take() {
            Some(db) => {
                self.accept(db.close()).map(|_| ()).map_err(|error| format!("close: {error}"))
            }
            None => Ok(()),
        }
    }

    fn write(&mut self, db: &Db, changes: &[Change], sync: bool) -> Result<(), String> {
        let with_number = self.with_number(changes.to_vec());
        let batch = batch_of(&with_number);
        let at = self.history.begin(with_number, sync, self.fs.steps());
        let options = if sync { WriteOptions::sync() } else { WriteOptions::new() };
        // Every other write that may be made without waiting is tried that way first.
        let tries = !sync && at.is_multiple_of(2);
        let written = match tries.then(|| db.try_write(&batch)) {
            None | Some(Ok(false)) => db.write_with(&batch, options),
            Some(tried) => tried.map(drop),
        };
        if self.accept(written)?.is_some() {
            self.history.acknowledge(at, self.fs.steps());
        }
        if let Some(change) = changes.last()
            && let Some(found) = self.accept(db.get(change.key()))?
        {
            self.history.check_key(change.key(), found.as_deref(), self.alive())?;
        }
        Ok(())
    }

    /// The changes of the next write, with its number if writes are numbered.
    fn with_number(&self, mut changes: Vec<Change>) -> Vec<Change> {
        if self.numbered && !changes.is_empty() {
            changes.push(Change::Put(number_key(self.history.writes().len()), Vec::new()));
        }
        changes
    }

    /// Not where writes are numbered: a range delete puts no number.
    fn delete_range(
        &mut self,
        db: &Db,
        from: &Bound<Vec<u8>>,
        to: &Bound<Vec<u8>>,
        sync: bool,
    ) -> Result<(), String> {
        if self.numbered {
            return Ok(());
        }
        let (low, high) = (from.as_ref().map(Vec::as_slice), to.as_ref().map(Vec::as_slice));
        let at = self.history.begin(self.history.deletions(low, high), sync, self.fs.steps());
        let options = if sync { WriteOptions::sync() } else { WriteOptions::new() };
        if self.accept(db.delete_range_with((from.clone(), to.clone()), options))?.is_some() {
            self.history.acknowledge(at, self.fs.steps());
        }
        Ok(())
    }

    fn load(&mut self, db: &Db, entries: &[Pair]) -> Result<(), String> {
        let put = |(key, value): &Pair| Change::Put(key.clone(), value.clone());
        let changes = self.with_number(entries.iter().map(put).collect());
        let pair = |change: &Change| match change {
            Change::Put(key, value) => Some((key.clone(), value.clone())),
            Change::Delete(_) => None,
        };
        let entries: Vec<_> = changes.iter().filter_map(pair).collect();
        let at = self.history.begin(changes, true, self.fs.steps());
        // Little memory, so that loads in any order are compacted.
        if self.accept(load(db, &entries, 0))?.is_some() {
            self.history.acknowledge(at, self.fs.steps());
        }
        Ok(())
    }

    fn durable(&mut self, outcome: terrace::Result<()>) -> Result<(), String> {
        if self.accept(outcome)?.is_some() {
            self.history.all_durable(self.fs.steps());
        }
        Ok(())
    }

    fn scan(&mut self, db: &Db) -> Result<(), String> {
        match self.accept(read_all(db))? {
            Some(found) if self.numbered => self
                .history
                .check_numbered(&found, self.alive(), self.history.writes().len())
                .map(|_| ()),
            Some(found) => self.history.check_keys(&found, self.history.writes().len()),
            None => Ok(()),
        }
    }

    /// How many writes, as far as they were acknowledged, must be there now.
    fn alive(&self) -> usize {
        if self.forgetful {
            self.history.required(self.fs.steps())
        } else {
            self.history.writes().len()
        }
    }

    fn accept<T>(&mut self, outcome: terrace::Result<T>) -> Result<Option<T>, String> {
        match outcome {
            Ok(value) => Ok(Some(value)),
            Err(error) if self.tolerant => {
                self.errors.push(error);
                Ok(None)
            }
            Err(error) => Err(error.to_string()),
        }
    }
}

/// Every entry of a database, read forwards.
///
/// # Errors
/// The database's.
pub fn read_all(db: &Db) -> terrace::Result<Vec<Pair>> {
    db.range::<Vec<u8>>(..)?.collect()
}

/// Reads every entry forwards, backwards and one by one, which must agree.
///
/// # Errors
/// A message if the database fails or disagrees with itself.
pub fn read_all_ways(db: &Db) -> Result<Vec<Pair>, String> {
    let forwards = read_all(db).map_err(|error| error.to_string())?;
    let backwards =
        db.iter().and_then(|entries| entries.rev().collect::<terrace::Result<Vec<Pair>>>());
    let mut backwards = backwards.map_err(|error| error.to_string())?;
    backwards.reverse();
    if backwards != forwards {
        return Err(format!(
            "{} entries forwards, {} others backwards",
            forwards.len(),
            backwards.len()
        ));
    }
    for (key, value) in &forwards {
        let found = db.get(key).map_err(|error| error.to_string())?;
        if found.as_ref() != Some(value) {
            return Err(format!("get {}: not what a cursor finds", show(key)));
        }
    }
    Ok(forwards)
}
