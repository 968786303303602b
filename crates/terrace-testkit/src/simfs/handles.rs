//! Open files and held locks of a simulated file system.

use std::io::IoSlice;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use terrace::{Error, FileLock, FileSyncer, LockMode, RandomAccessFile, Result, WritableFile};

use super::disk::{Inode, Step};
use super::fault::{Fault, OpKind};
use super::file::{Content, SyncEnd};
use super::{LogKind, SimFs, State, late, refuse};

/// A file as it was when it was opened for reading.
pub(super) struct Reader {
    fs: SimFs,
    path: PathBuf,
    content: Content,
    mapped: Option<Vec<u8>>,
}

impl Reader {
    pub(super) fn new(fs: SimFs, path: &Path, content: Content, mapped: Option<Vec<u8>>) -> Reader {
        Reader { fs, path: path.to_owned(), content, mapped }
    }
}

impl RandomAccessFile for Reader {
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<usize> {
        let fault = self.fs.state().begin(OpKind::Read, "read", &self.path)?;
        late(fault, "read", &self.path)?;
        Ok(self.content.read(usize::try_from(offset).unwrap_or(usize::MAX), buffer))
    }

    fn size(&self) -> u64 {
        self.content.len() as u64
    }

    fn mapped(&self) -> Option<&[u8]> {
        self.mapped.as_deref()
    }
}

/// A file that is being written.
pub(super) struct Writer {
    fs: SimFs,
    path: PathBuf,
    inode: Inode,
    /// Where the next byte goes.
    end: usize,
    /// How far space is prepared, if this is a prepared log.
    prepared: usize,
}

impl Writer {
    pub(super) fn new(fs: SimFs, path: &Path, inode: Inode, end: usize) -> Writer {
        Writer { fs, path: path.to_owned(), inode, end, prepared: 0 }
    }

    /// Prepares space for `len` bytes if there is room.
    pub(super) fn prepare(&mut self, state: &mut State, len: usize) {
        let more = len.saturating_sub(self.prepared.max(self.end));
        if state.room(more) == more {
            state.apply(Step::SetLen { inode: self.inode, len });
            self.prepared = len;
        }
    }
}

/// How many of the first bytes of an append a prepared log stores last, so that a reader finds all
/// of it or nothing.
const STORED_LAST: usize = 8;

impl Writer {
    /// Stores `data` at the end: in one step, or in several where the process may die between them.
    fn store(&self, state: &mut State, data: &[u8]) {
        if self.prepared > 0 {
            self.store_visibly(state, self.end, data);
        } else {
            let middle = halfway(state, 1..data.len()).unwrap_or(data.len());
            self.write(state, self.end, &data[..middle]);
            self.write(state, self.end + middle, &data[middle..]);
        }
    }

    /// Stores `data` at `at` so that all of it appears with its first bytes.
    fn store_visibly(&self, state: &mut State, at: usize, data: &[u8]) {
        let Some(middle) = halfway(state, STORED_LAST..data.len()) else {
            return self.write(state, at, data);
        };
        self.write(state, at + middle, &data[middle..]);
        self.write(state, at + STORED_LAST, &data[STORED_LAST..middle]);
        self.write(state, at, &data[..STORED_LAST]);
    }

    fn write(&self, state: &mut State, offset: usize, data: &[u8]) {
        if !data.is_empty() {
            state.apply(Step::Write { inode: self.inode, offset, data: data.into() });
        }
    }

    /// Stores `data` at the end, the bytes in `headers` last and at once.
    fn store_with_headers(&self, state: &mut State, data: &[u8], headers: &[Range<usize>]) {
        if let Some(middle) = halfway(state, 1..data.len()) {
            let mut without = data.to_vec();
            headers.iter().for_each(|header| without[header.clone()].fill(0));
            self.write(state, self.end, &without[..middle]);
            self.write(state, self.end + middle, &without[middle..]);
            if state.tears_headers {
                headers.iter().for_each(|header| {
                    self.write(state, self.end + header.start, &data[header.clone()]);
                });
            }
        }
        self.write(state, self.end, data);
    }

    fn add(&mut self, data: &[u8], order: &Order<'_>) -> Result<()> {
        let fs = self.fs.clone();
        let state = &mut *fs.state();
        let fault = state.begin(OpKind::Append, "write", &self.path)?;
        let end = self.end + data.len();
        if self.prepared > 0 && end > self.prepared && state.log_kind == LogKind::Prepared {
            self.prepare(state, end.next_multiple_of(64 << 10));
        }
        let growth = end.saturating_sub(self.prepared.max(self.end));
        let room = data.len() - growth + state.room(growth);
        let taken = if fault == Some(Fault::Short) { data.len() / 2 } else { data.len() }.min(room);
        if matches!(order, Order::Headers(_))
            && self.prepared > 0
            && (taken < data.len() || growth > 0)
        {
            state.apply(Step::SetLen { inode: self.inode, len: self.end });
            self.prepared = 0;
        }
        match order {
            Order::Filler(filler) if taken == data.len() && self.prepared > 0 && *filler > 0 => {
                self.store_visibly(state, self.end + filler, &data[*filler..]);
                self.store_visibly(state, self.end, &data[..(*filler).max(STORED_LAST)]);
            }
            Order::Headers(headers) if self.prepared > 0 => {
                self.store_with_headers(state, data, headers);
            }
            _ if taken > 0 => self.store(state, &data[..taken]),
            _ => {}
        }
        if taken > 0 {
            self.end += taken;
            state.write_back();
        }
        late(fault, "write", &self.path)?;
        if taken < data.len() { Err(refuse("write", &self.path, libc::ENOSPC)) } else { Ok(()) }
    }
}

/// Which part of an append a prepared log stores first.
enum Order<'a> {
    /// The bytes behind so much filler; without filler those behind the first few bytes.
    Filler(usize),
    /// All but these.
    Headers(&'a [Range<usize>]),
}

/// A place in `places`, if there is one and the process may die there this time.
fn halfway(state: &mut State, places: Range<usize>) -> Option<usize> {
    let rng = state.unrest.as_mut().filter(|_| !places.is_empty())?;
    rng.one_in(2).then(|| rng.between(places.start, places.end - 1))
}

impl WritableFile for Writer {
    fn append(&mut self, data: &[u8]) -> Result<()> {
        self.add(data, &Order::Filler(0))
    }

    fn append_parts(&mut self, parts: &mut [IoSlice<'_>], headers: &[usize]) -> Result<()> {
        let mut data = Vec::new();
        let mut places = Vec::with_capacity(headers.len());
        for (index, part) in parts.iter().enumerate() {
            if headers.contains(&index) {
                places.push(data.len()..data.len() + part.len());
            }
            data.extend_from_slice(part);
        }
        self.add(&data, &Order::Headers(&places))
    }

    fn is_prepared(&self) -> bool {
        self.prepared > 0
    }

    fn append_filled(&mut self, data: &[u8], filler: usize) -> Result<()> {
        self.add(data, &Order::Filler(filler))
    }

    fn cut_back(&mut self, length: u64) {
        let fs = self.fs.clone();
        let len = usize::try_from(length).expect("a length in memory");
        fs.state().apply(Step::SetLen { inode: self.inode, len });
        (self.end, self.prepared) = (len, 0);
    }

    fn sync(&mut self) -> Result<()> {
        sync(&self.fs, self.inode, &self.path)
    }

    fn syncer(&self) -> Option<Arc<dyn FileSyncer>> {
        Some(Arc::new(Syncer { fs: self.fs.clone(), inode: self.inode, path: self.path.clone() }))
    }

    fn zero_out(&mut self) -> bool {
        let fs = self.fs.clone();
        let state = &mut *fs.state();
        let file = state.disk.files.get(&self.inode);
        let may = self.prepared > 0 && file.is_some_and(|file| file.is_unsynced());
        if may {
            state.apply(Step::ZeroOut { inode: self.inode });
            self.prepared = self.prepared.max(self.end);
            self.end = 0;
        }
        may
    }

    fn set_path(&mut self, path: &Path) {
        self.path = path.to_owned();
    }

    fn close(mut self: Box<Self>) -> Result<()> {
        let fs = self.fs.clone();
        let state = &mut *fs.state();
        let fault = state.begin(OpKind::Close, "close", &self.path)?;
        if self.prepared > self.end {
            state.apply(Step::SetLen { inode: self.inode, len: self.end });
            self.prepared = 0;
        }
        late(fault, "close", &self.path)
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.fs.state().disk.open.remove(&self.inode);
    }
}

struct Syncer {
    fs: SimFs,
    inode: Inode,
    path: PathBuf,
}

impl FileSyncer for Syncer {
    fn sync(&self) -> Result<()> {
        sync(&self.fs, self.inode, &self.path)
    }
}

/// A sync takes two steps, between which others may write, and which the power may fail between.
fn sync(fs: &SimFs, inode: Inode, path: &Path) -> Result<()> {
    let (outcome, number) = {
        let state = &mut *fs.state();
        let outcome = state.begin(OpKind::Sync, "sync", path);
        state.syncs += 1;
        let number = state.syncs;
        state.apply(Step::SyncBegin { inode, number });
        (outcome, number)
    };
    std::thread::yield_now();
    let (end, outcome) = match outcome {
        Ok(None) => (SyncEnd::Done, Ok(())),
        Ok(Some(Fault::Reverted)) => {
            (SyncEnd::Reverted, Err(Error::io("sync", path, Fault::Reverted.error())))
        }
        Ok(Some(fault)) => (SyncEnd::Done, Err(Error::io("sync", path, fault.error()))),
        Err(error) => (SyncEnd::Failed, Err(error)),
    };
    fs.state().apply(Step::SyncEnd { inode, number, end });
    outcome
}

pub(super) struct Lock {
    fs: SimFs,
    inode: Inode,
    mode: LockMode,
}

impl Lock {
    pub(super) fn new(fs: SimFs, inode: Inode, mode: LockMode) -> Lock {
        Lock { fs, inode, mode }
    }
}

impl FileLock for Lock {}

/// A reader's lock where there is no file to lock.
pub(super) struct NoLock;

impl FileLock for NoLock {}

impl Drop for Lock {
    fn drop(&mut self) {
        if let Some(held) = self.fs.state().locks.get_mut(&self.inode) {
            held.give_back(self.mode);
        }
    }
}
