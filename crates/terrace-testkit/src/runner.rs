//! Runs operations on a database and on the model side by side, and says where they part.

use std::ops::Bound;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use terrace::{
    BulkLoadOptions, CompactOptions, Cursor, Db, Env, ErrorKind, LoadReport, Options, ReadOptions,
    Snapshot, WriteBatch, WriteOptions,
};

use crate::history::show;
use crate::maintenance;
use crate::model::{Change, CursorStep, Model, ModelCursor, Pair};
use crate::ops::{Closed, Ending, Op, View};
use crate::option_set::OptionSet;

/// A database and its model.
pub struct Runner {
    path: PathBuf,
    env: Arc<dyn Env>,
    settings: OptionSet,
    db: Option<Db>,
    model: Model,
    snapshots: Vec<(Snapshot, Model)>,
    cursors: Vec<(Cursor, ModelCursor)>,
    opens: u64,
}

/// Reads without a write after which a database starts read-triggered compactions.
const LINGERING_READS: usize = 3_000;

/// The failure, for people.
pub type Outcome = Result<(), String>;

impl Runner {
    /// Opens an empty database.
    ///
    /// # Errors
    /// A message if it cannot be opened or is not empty.
    pub fn open(path: &Path, env: Arc<dyn Env>, settings: OptionSet) -> Result<Runner, String> {
        let model = Model::new(settings.reverse);
        let (snapshots, cursors) = (Vec::new(), Vec::new());
        let mut runner = Runner {
            path: path.to_owned(),
            env,
            settings,
            db: None,
            model,
            snapshots,
            cursors,
            opens: 0,
        };
        runner.reopen()?;
        runner.check_all()?;
        Ok(runner)
    }

    /// The open database.
    ///
    /// # Panics
    /// After a failed reopening.
    pub fn db(&self) -> &Db {
        self.db.as_ref().expect("the database is open")
    }

    /// The model.
    pub fn model(&self) -> &Model {
        &self.model
    }

    fn options(&self) -> Options {
        self.settings.options(self.env.clone())
    }

    fn shut(&mut self) -> Outcome {
        match self.db.take() {
            Some(db) => db.close().map_err(|error| format!("close: {error}")),
            None => Ok(()),
        }
    }

    fn reopen(&mut self) -> Outcome {
        self.shut()?;
        self.opens += 1;
        let paranoid = self.settings.paranoid_checks ^ self.opens.is_multiple_of(2);
        let opened = Db::open(&self.path, self.options().paranoid_checks(paranoid));
        self.db = Some(opened.map_err(|error| format!("open, paranoid: {paranoid}: {error}"))?);
        Ok(())
    }

    fn drop_views(&mut self) {
        self.snapshots.clear();
        self.cursors.clear();
    }

    /// Does one operation.
    ///
    /// # Errors
    /// A message if the database fails or its results differ from the model's.
    pub fn run(&mut self, op: &Op) -> Outcome {
        match op {
            Op::Change(change, sync) => self.change(change, *sync),
            Op::Batch(changes, sync) => self.batch(changes, *sync),
            Op::Get(key, view) => self.get(key, *view),
            Op::MultiGet(keys, view) => self.multi_get(keys, *view),
            Op::Snapshot => {
                if self.snapshots.len() < 8 {
                    self.snapshots.push((self.db().snapshot(), self.model.clone()));
                }
                Ok(())
            }
            Op::Release(at) => {
                if !self.snapshots.is_empty() {
                    self.snapshots.swap_remove(at % self.snapshots.len());
                }
                Ok(())
            }
            Op::OpenCursor(view) => {
                if self.cursors.len() < 8 {
                    let (options, model) = self.view(*view);
                    let cursor = self.db().cursor_with(&options).map_err(text)?;
                    self.cursors.push((cursor, ModelCursor::new(&model)));
                }
                Ok(())
            }
            Op::MoveCursor(at, steps) => self.move_cursor(*at, steps),
            Op::DropCursor(at) => {
                if !self.cursors.is_empty() {
                    self.cursors.swap_remove(at % self.cursors.len());
                }
                Ok(())
            }
            Op::Range(from, to, takes, view) => {
                let (options, model) = self.view(*view);
                let bounds = (from.clone(), to.clone());
                let expected =
                    model.range(from.as_ref().map(Vec::as_slice), to.as_ref().map(Vec::as_slice));
                compare_entries(
                    self.db().range_with(bounds, &options).map_err(text)?,
                    expected,
                    takes,
                )
            }
            Op::Prefix(prefix, backwards, view) => {
                if self.settings.reverse {
                    return Ok(());
                }
                let (options, model) = self.view(*view);
                let entries = self.db().prefix_with(prefix, &options).map_err(text)?;
                compare_entries(entries, model.prefix(prefix), &vec![!backwards; model.len() + 1])
            }
            Op::DeleteRange(from, to, sync) => {
                let options = if *sync { WriteOptions::sync() } else { WriteOptions::new() };
                self.db().delete_range_with((from.clone(), to.clone()), options).map_err(text)?;
                let (from, to) = (from.as_ref().map(Vec::as_slice), to.as_ref().map(Vec::as_slice));
                self.model.delete_range(from, to);
                Ok(())
            }
            Op::Load(entries, memory) => self.load(entries, *memory),
            Op::Ingest(entries, move_files) => self.ingest(entries, *move_files),
            Op::Transact(changes, ending) => self.transact(changes, ending),
            Op::Flush => self.db().flush().map_err(text),
            Op::Compact(from, to, force) => {
                let options = CompactOptions::new().force(*force);
                let end = |key: Option<Vec<u8>>| key.map_or(Bound::Unbounded, Bound::Included);
                self.db()
                    .compact_range_with((end(from.clone()), end(to.clone())), options)
                    .map_err(text)
            }
            Op::WaitIdle => self.db().wait_idle().map_err(text),
            Op::Linger(key) => {
                (0..LINGERING_READS).try_for_each(|_| self.agree("get", key, self.db().get(key)))
            }
            Op::Checkpoint => {
                maintenance::checkpoint(self.db(), &self.options(), |copy| self.compare_all(copy))
            }
            Op::Verify => {
                let report = self.db().verify().map_err(text)?;
                if report.is_clean() { Ok(()) } else { Err(format!("verify: {report:?}")) }
            }
            Op::Reopen(drop_views_after) => {
                if !drop_views_after {
                    self.drop_views();
                }
                self.reopen()?;
                self.drop_views();
                self.check_all()
            }
            Op::Closed(what) => {
                self.drop_views();
                self.shut()?;
                match what {
                    Closed::ReadOnly => {
                        maintenance::open_read_only(&self.path, &self.options(), |db| {
                            self.compare_all(db)
                        })?;
                    }
                    Closed::Repair => maintenance::repair_healthy(&self.path, &self.options())?,
                }
                self.reopen()?;
                self.check_all()
            }
        }
    }

    fn ingest(&mut self, entries: &[Pair], move_files: bool) -> Outcome {
        // The last of a key's entries counts, in the database's order.
        let mut wanted = Model::new(self.settings.reverse);
        let changes: Vec<_> =
            entries.iter().map(|(key, value)| Change::Put(key.clone(), value.clone())).collect();
        wanted.apply(&changes);
        if wanted.is_empty() {
            return Ok(());
        }
        maintenance::ingest(
            self.db(),
            self.env.as_ref(),
            &self.options(),
            &wanted.entries(),
            move_files,
        )?;
        self.model.apply(&changes);
        Ok(())
    }

    fn transact(&mut self, changes: &[Change], ending: &Ending) -> Outcome {
        let mut own = self.model.clone();
        let mut transaction = self.db().transaction();
        for change in changes {
            let key = change.key();
            self.agree_with(&own, "get of a transaction", key, transaction.get_for_update(key))?;
            match change {
                Change::Put(key, value) => transaction.put(key, value),
                Change::Delete(key) => transaction.delete(key),
            }
            own.apply(std::slice::from_ref(change));
        }
        match ending {
            Ending::Rollback => transaction.rollback(),
            Ending::Commit(sync) => {
                let options = if *sync { WriteOptions::sync() } else { WriteOptions::new() };
                transaction.commit_with(options).map_err(|error| format!("commit: {error}"))?;
                self.model = own;
            }
            Ending::Conflict(other) => {
                let collides = changes.iter().any(|change| change.key() == other.key());
                self.change(other, false)?;
                match transaction.commit() {
                    Err(error) if error.kind() == ErrorKind::Conflict && collides => (),
                    Ok(()) if !collides => self.model.apply(changes),
                    outcome => {
                        return Err(format!("commit beside a write of {other:?}: {outcome:?}"));
                    }
                }
            }
        }
        Ok(())
    }

    fn agree(&self, how: &str, key: &[u8], found: terrace::Result<Option<Vec<u8>>>) -> Outcome {
        self.agree_with(&self.model, how, key, found)
    }

    fn agree_with(
        &self,
        model: &Model,
        how: &str,
        key: &[u8],
        found: terrace::Result<Option<Vec<u8>>>,
    ) -> Outcome {
        let (found, expected) = (found.map_err(text)?, model.get(key));
        if found.as_deref() == expected {
            return Ok(());
        }
        Err(format!(
            "{how} {}: {:?}, must be {:?}",
            show(key),
            found.as_deref().map(show),
            expected.map(show)
        ))
    }

    /// Compares everything in `db`, another database, forwards and backwards.
    fn compare_all(&self, db: &Db) -> Outcome {
        for forwards in [true, false] {
            let takes = vec![forwards; self.model.len() + 1];
            compare_entries(db.iter().map_err(text)?, self.model.entries(), &takes)?;
        }
        Ok(())
    }

    fn change(&mut self, change: &Change, sync: bool) -> Outcome {
        if sync {
            return self.batch(std::slice::from_ref(change), true);
        }
        match change {
            Change::Put(key, value) => self.db().put(key, value),
            Change::Delete(key) => self.db().delete(key),
        }
        .map_err(text)?;
        self.model.apply(std::slice::from_ref(change));
        Ok(())
    }

    fn batch(&mut self, changes: &[Change], sync: bool) -> Outcome {
        let options = if sync { WriteOptions::sync() } else { WriteOptions::new() };
        self.db().write_with(&batch_of(changes), options).map_err(text)?;
        self.model.apply(changes);
        Ok(())
    }

    fn load(&mut self, entries: &[Pair], memory: usize) -> Outcome {
        load(self.db(), entries, memory).map_err(text)?;
        let changes: Vec<_> =
            entries.iter().map(|(key, value)| Change::Put(key.clone(), value.clone())).collect();
        self.model.apply(&changes);
        Ok(())
    }

    fn view(&self, view: View) -> (ReadOptions, Model) {
        match view {
            Some(at) if !self.snapshots.is_empty() => {
                let (snapshot, model) = &self.snapshots[at % self.snapshots.len()];
                (ReadOptions::new().snapshot(snapshot), model.clone())
            }
            _ => (ReadOptions::new(), self.model.clone()),
        }
    }

    fn get(&self, key: &[u8], view: View) -> Outcome {
        let (options, model) = self.view(view);
        let expected = model.get(key);
        let db = self.db();
        let agree = |how: &str, found: Option<&[u8]>| {
            if found == expected {
                return Ok(());
            }
            Err(format!(
                "{how} {}: {:?}, must be {:?}",
                show(key),
                found.map(show),
                expected.map(show)
            ))
        };
        let mut buffer = b"leftover".to_vec();
        // First: later everything is in memory.
        if let Some(found) = db.get_in_memory(key, &mut buffer, &options).map_err(text)? {
            agree("get_in_memory", found.then_some(buffer.as_slice()))?;
        }
        agree("get_with", db.get_with(key, &options).map_err(text)?.as_deref())?;
        let found = db.get_into_with(key, &mut buffer, &options).map_err(text)?;
        agree("get_into", found.then_some(buffer.as_slice()))?;
        agree("get_pinned", db.get_pinned_with(key, &options).map_err(text)?.as_deref())?;
        let present = self.model.get(key);
        if db.get(key).map_err(text)?.as_deref() != present {
            return Err(format!("get {}: must be {:?}", show(key), present.map(show)));
        }
        if db.contains_key(key).map_err(text)? != present.is_some() {
            return Err(format!("contains_key {}: must be {}", show(key), present.is_some()));
        }
        Ok(())
    }

    fn multi_get(&self, keys: &[Vec<u8>], view: View) -> Outcome {
        let (options, model) = self.view(view);
        let found = self.db().multi_get_with(keys, &options).map_err(text)?;
        if found.len() != keys.len() {
            return Err(format!("multi_get of {} keys: {} results", keys.len(), found.len()));
        }
        for (key, value) in keys.iter().zip(&found) {
            if value.as_deref() != model.get(key) {
                return Err(format!("multi_get {}: {:?}", show(key), value.as_deref().map(show)));
            }
        }
        Ok(())
    }

    fn move_cursor(&mut self, at: usize, steps: &[CursorStep]) -> Outcome {
        if self.cursors.is_empty() {
            return Ok(());
        }
        let at = at % self.cursors.len();
        let (cursor, model) = &mut self.cursors[at];
        for (number, step) in steps.iter().enumerate() {
            match step {
                CursorStep::First => cursor.seek_to_first(),
                CursorStep::Last => cursor.seek_to_last(),
                CursorStep::Seek(key) => cursor.seek(key),
                CursorStep::SeekForPrev(key) => cursor.seek_for_prev(key),
                CursorStep::Next => cursor.next(),
                CursorStep::Prev => cursor.prev(),
            }
            model.step(step);
            cursor.status().map_err(|error| format!("cursor after {step:?}: {error}"))?;
            let found = cursor.valid().then(|| (cursor.key(), cursor.value()));
            if found != model.entry() {
                let shown = |entry: Option<(&[u8], &[u8])>| entry.map(|(k, v)| (show(k), show(v)));
                return Err(format!(
                    "cursor after step {number} of {steps:?}: on {:?}, must be on {:?}",
                    shown(found),
                    shown(model.entry())
                ));
            }
        }
        Ok(())
    }

    /// Compares everything there is, forwards and backwards, and every snapshot.
    ///
    /// # Errors
    /// A message if anything differs.
    pub fn check_all(&self) -> Outcome {
        self.compare_all(self.db())?;
        for (snapshot, model) in &self.snapshots {
            let options = ReadOptions::new().snapshot(snapshot);
            let entries = self.db().range_with::<Vec<u8>>(.., &options).map_err(text)?;
            compare_entries(entries, model.entries(), &vec![true; model.len() + 1])
                .map_err(|error| format!("in a snapshot: {error}"))?;
        }
        Ok(())
    }

    /// Closes the database.
    ///
    /// # Errors
    /// A message if that fails.
    pub fn close(mut self) -> Outcome {
        self.drop_views();
        self.shut()
    }
}

/// Loads `entries` in bulk, holding about `memory` bytes of them in memory.
///
/// # Errors
/// The database's.
pub fn load(db: &Db, entries: &[Pair], memory: usize) -> terrace::Result<LoadReport> {
    let mut load = db.bulk_load_with(BulkLoadOptions::new().memory(memory))?;
    entries.iter().try_for_each(|(key, value)| load.put(key, value))?;
    load.finish()
}

/// The batch that makes `changes`.
pub fn batch_of(changes: &[Change]) -> WriteBatch {
    let mut batch = WriteBatch::new();
    for change in changes {
        match change {
            Change::Put(key, value) => batch.put(key, value),
            Change::Delete(key) => batch.delete(key),
        }
    }
    batch
}

fn text(error: terrace::Error) -> String {
    error.to_string()
}

/// Takes entries from the front where `takes` says true and from the back where false, until one
/// side is out.
fn compare_entries(
    mut entries: impl DoubleEndedIterator<Item = terrace::Result<Pair>>,
    expected: Vec<Pair>,
    takes: &[bool],
) -> Outcome {
    let mut expected = expected.into_iter();
    for (number, front) in takes.iter().enumerate() {
        let (found, must) = if *front {
            (entries.next(), expected.next())
        } else {
            (entries.next_back(), expected.next_back())
        };
        let found = found.transpose().map_err(text)?;
        if found != must {
            let shown = |pair: Option<Pair>| pair.map(|(key, value)| (show(&key), show(&value)));
            let side = if *front { "front" } else { "back" };
            return Err(format!(
                "entry {number}, from the {side}: {:?}, must be {:?}",
                shown(found),
                shown(must)
            ));
        }
        if must.is_none() {
            break;
        }
    }
    Ok(())
}
