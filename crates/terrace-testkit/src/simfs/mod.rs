//! A simulated file system: a [`terrace::Env`] in memory that knows what is durable.
//!
//! It records every change in one total order, so that the disk after a power loss at any moment
//! can be made afterwards ([`Recording`]); it fails operations on request ([`FaultPlan`]) and fills
//! up ([`SimFs::set_capacity`]). Threads, clocks and sleeping are those of the real system.
//!
//! Every method may be called from any thread. An operation takes place at once, under one lock, so
//! that its place in the order is the moment at which it took effect.

mod disk;
mod env;
mod fault;
mod file;
mod handles;
mod held;
mod power_loss;
mod recording;

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use terrace::{CreateOptions, Env, Error, PosixEnv, Result};

pub use fault::{Fault, FaultPlan, OpKind};
pub use power_loss::{DataLoss, EntryLoss, PowerLoss};
pub use recording::{Recording, Replay};

use crate::rng::Rng;
use disk::{Disk, Entry, Inode, Step, parent};

use fault::Faults;
use file::Content;
use held::Held;

/// How logs made by [`Env::create_log`] behave.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum LogKind {
    /// Like any other file.
    #[default]
    Plain,
    /// Space is prepared ahead, so that a reader finds zeros behind the last record until the log
    /// is closed, and a log that was not closed keeps them.
    Prepared,
}

/// The simulated file system. Clones are handles to the same one.
#[derive(Clone)]
pub struct SimFs {
    shared: Arc<Shared>,
}

struct Shared {
    state: Mutex<State>,
    /// Threads and clocks.
    system: Arc<dyn Env>,
}

struct State {
    disk: Disk,
    next_inode: u64,
    recording: Option<Recording>,
    /// Steps since the file system was made.
    steps: u64,
    operations: u64,
    /// Syncs so far.
    syncs: u64,
    /// Decides what the system does by itself, if it does.
    unrest: Option<Rng>,
    /// Whether a process may die with some of the headers stored that are stored at once.
    tears_headers: bool,
    faults: Faults,
    capacity: Option<u64>,
    log_kind: LogKind,
    serve_mapped: bool,
    locks: BTreeMap<Inode, Held>,
    /// The time of the wall clock; none for the system's.
    wall_clock: Option<Duration>,
}

impl Default for SimFs {
    fn default() -> Self {
        SimFs::new()
    }
}

impl SimFs {
    /// An empty file system.
    pub fn new() -> SimFs {
        SimFs::with_disk(Disk::default())
    }

    fn with_disk(disk: Disk) -> SimFs {
        let next_inode = disk.files.keys().next_back().map_or(1, |inode| inode.0 + 1);
        let state = State {
            disk,
            next_inode,
            recording: None,
            steps: 0,
            operations: 0,
            syncs: 0,
            unrest: None,
            tears_headers: false,
            faults: Faults::default(),
            capacity: None,
            log_kind: LogKind::Plain,
            serve_mapped: false,
            locks: BTreeMap::new(),
            wall_clock: None,
        };
        SimFs { shared: Arc::new(Shared { state: Mutex::new(state), system: PosixEnv::shared() }) }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.shared.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// This file system as an Env for [`terrace::Options`].
    pub fn env(&self) -> Arc<dyn Env> {
        Arc::new(self.clone())
    }

    /// Chooses how logs behave from now on.
    pub fn set_log_kind(&self, kind: LogKind) {
        self.state().log_kind = kind;
    }

    /// Whether files opened for mapped reading really offer their bytes as memory. Default: no.
    pub fn set_serve_mapped(&self, mapped: bool) {
        self.state().serve_mapped = mapped;
    }

    /// From now on the system writes unsynced pages back, and writes take several
    /// steps, so that a process may die between them. `seed` decides which.
    pub fn set_unrest(&self, seed: u64) {
        self.state().unrest = Some(Rng::new(seed));
    }

    /// From now on, where there is unrest, a process may die with some of the headers stored that
    /// are stored at once: what the real system does once in a million deaths.
    pub fn tear_headers(&self) {
        self.state().tears_headers = true;
    }

    /// Sets the wall clock, which stands still then.
    pub fn set_wall_clock(&self, time: Duration) {
        self.state().wall_clock = Some(time);
    }

    /// Starts recording; what was recorded before is forgotten.
    pub fn record(&self) {
        let state = &mut *self.state();
        state.steps = 0;
        state.recording = Some(Recording { base: state.disk.clone(), steps: Vec::new() });
    }

    /// Stops recording and hands out what was recorded.
    pub fn take_recording(&self) -> Recording {
        self.state().recording.take().unwrap_or_default()
    }

    /// How many changes of the disk have taken effect since [`SimFs::record`]. An operation that
    /// has returned is among the first `steps()`.
    pub fn steps(&self) -> usize {
        self.state().steps as usize
    }

    /// How many operations of every kind were asked for.
    pub fn operations(&self) -> u64 {
        self.state().operations
    }

    /// From now on operations fail as each of `plans` says, which count for themselves; none of
    /// them, `None` for example, heals the file system.
    pub fn set_faults(&self, plans: impl IntoIterator<Item = FaultPlan>) {
        self.state().faults = Faults::new(plans);
    }

    /// How many operations have failed since [`SimFs::set_faults`].
    pub fn injected(&self) -> u64 {
        self.state().faults.injected
    }

    /// The first operations that have failed since [`SimFs::set_faults`], for a message.
    pub fn injections(&self) -> Vec<String> {
        self.state().faults.shown.clone()
    }

    /// Limits the bytes in all files together; `None` for no limit.
    pub fn set_capacity(&self, bytes: Option<u64>) {
        self.state().capacity = bytes;
    }

    /// Bytes in all files.
    pub fn used(&self) -> u64 {
        self.state().disk.used()
    }

    /// The file system after a power loss now. This one goes on.
    pub fn power_loss(&self, loss: PowerLoss) -> SimFs {
        SimFs::with_disk(power_loss::after_power_loss(&self.state().disk, loss))
    }

    /// The bytes of a file, past every fault; `None` if there is no such file.
    pub fn contents(&self, path: &Path) -> Option<Vec<u8>> {
        self.state().disk.file(path).map(|file| file.current.to_vec())
    }

    /// Replaces a file's bytes durably, past every fault. Makes the file if there is none.
    pub fn set_contents(&self, path: &Path, bytes: &[u8]) {
        let state = &mut *self.state();
        let mut content = Content::default();
        content.write(0, bytes);
        let inode = state.disk.inode(path).unwrap_or_else(|| {
            state.next_inode += 1;
            Inode(state.next_inode - 1)
        });
        state.disk.entries.insert(path.to_owned(), Entry::File(inode));
        state.disk.durable.insert(path.to_owned(), Entry::File(inode));
        state.disk.files.insert(inode, Arc::new(file::File::all_durable(content)));
    }

    /// Writes the files in `dir`, and those in directories below it, to the directory `to` of the
    /// real file system, past every fault. Two names of one file are two names of one file there,
    /// too.
    pub fn export(&self, dir: &Path, to: &Path) -> io::Result<()> {
        let state = self.state();
        let mut written: BTreeMap<Inode, PathBuf> = BTreeMap::new();
        for (path, entry) in &state.disk.entries {
            let Ok(name) = path.strip_prefix(dir) else { continue };
            let to = to.join(name);
            match entry {
                Entry::Dir => std::fs::create_dir_all(&to)?,
                Entry::File(inode) => match written.get(inode) {
                    Some(first) => std::fs::hard_link(first, &to)?,
                    None => {
                        std::fs::write(
                            &to,
                            state
                                .disk
                                .file(path)
                                .map(|file| file.current.to_vec())
                                .unwrap_or_default(),
                        )?;
                        written.insert(*inode, to);
                    }
                },
            }
        }
        Ok(())
    }

    /// The names of the files in `dir`, sorted, past every fault.
    pub fn names(&self, dir: &Path) -> Vec<String> {
        let state = self.state();
        state
            .disk
            .children(dir)
            .filter_map(|path| Some(path.file_name()?.to_str()?.to_owned()))
            .collect()
    }
}

impl Replay<'_> {
    /// The file system as it may be if the power fails now.
    pub fn power_loss(&self, loss: PowerLoss) -> SimFs {
        SimFs::with_disk(power_loss::after_power_loss(&self.disk, loss))
    }
}

impl State {
    fn apply(&mut self, step: Step) {
        self.disk.apply(&step);
        self.steps += 1;
        if let Some(recording) = &mut self.recording {
            recording.steps.push(step);
        }
    }

    /// Counts an operation and decides whether it fails before it begins. `Late` and `Short` are
    /// left to the caller.
    fn begin(&mut self, kind: OpKind, what: &str, path: &Path) -> Result<Option<Fault>> {
        self.operations += 1;
        match self.faults.next(kind, path, self.steps) {
            None => Ok(None),
            Some(fault @ Fault::Late) => Ok(Some(fault)),
            Some(fault @ Fault::Short) if kind == OpKind::Append => Ok(Some(fault)),
            Some(fault @ Fault::Reverted) if kind == OpKind::Sync => Ok(Some(fault)),
            // A directory whose sync is forbidden was created by another process and is durable.
            // Here any may have been made just now.
            Some(Fault::Access) if kind == OpKind::SyncDir => {
                Err(Error::io(what, path, Fault::Io.error()))
            }
            Some(fault) => Err(Error::io(what, path, fault.error())),
        }
    }

    fn create(&mut self, path: &Path, options: CreateOptions) -> Result<Inode> {
        let fault = self.begin(OpKind::Create, "create", path)?;
        if !self.disk.is_dir(parent(path)) {
            return Err(refuse("create", path, self.disk.why_missing(path)));
        }
        let inode = match self.disk.entries.get(path) {
            Some(_) if options.exclusive => return Err(refuse("create", path, libc::EEXIST)),
            Some(Entry::Dir) => return Err(refuse("create", path, libc::EISDIR)),
            Some(Entry::File(inode)) => {
                let inode = *inode;
                self.apply(Step::SetLen { inode, len: 0 });
                inode
            }
            None => {
                let inode = Inode(self.next_inode);
                self.next_inode += 1;
                self.apply(Step::Create { path: path.to_owned(), inode });
                inode
            }
        };
        late(fault, "create", path)?;
        self.disk.open.insert(inode);
        Ok(inode)
    }

    /// One time in four some dirty pages of a file reach the disk, if there is unrest.
    fn write_back(&mut self) {
        let Some(rng) = self.unrest.as_mut() else { return };
        let dirty: Vec<_> =
            self.disk.files.iter().filter(|(_, file)| !file.dirty.is_empty()).collect();
        if dirty.is_empty() || !rng.one_in(4) {
            return;
        }
        let (inode, file) = *rng.pick(&dirty);
        let pages = file.dirty.iter().copied().filter(|_| rng.one_in(2)).collect();
        let inode = *inode;
        self.apply(Step::Writeback { inode, pages });
    }

    /// How many of `wanted` further bytes there is room for.
    fn room(&self, wanted: usize) -> usize {
        match self.capacity {
            None => wanted,
            Some(capacity) => wanted.min(capacity.saturating_sub(self.disk.used()) as usize),
        }
    }
}

fn refuse(what: &str, path: &Path, code: i32) -> Error {
    Error::io(what, path, io::Error::from_raw_os_error(code))
}

fn late(fault: Option<Fault>, what: &str, path: &Path) -> Result<()> {
    match fault {
        Some(fault) => Err(Error::io(what, path, fault.error())),
        None => Ok(()),
    }
}
