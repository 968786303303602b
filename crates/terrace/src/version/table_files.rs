//! The files of tables that are read with `pread`. Such a file has a descriptor only while it is
//! among the few that may hold one; a read opens it again. So a table keeps its index and its
//! filter in memory though its descriptor is closed.
//!
//! Any thread may call anything. A read of a file that has its descriptor takes no lock.
//!
//! # Invariants
//! 1. No more than `capacity` handles are open or being opened, unless more readers than that are
//!    in the middle of a read: a handle that is closed stays open for its readers, and counts.
//! 2. A file that is opened again has the size that it had before, or the read fails.
//! 3. Each handle that a [`TableFile`] keeps is in the ring once. In a child of a fork the ring may
//!    stay locked for ever; then handles stay open.
//! 4. A child of a fork neither reads nor closes what its parent opened. A fork copies descriptors
//!    before memory, so that one which another thread closes and opens in between is another file
//!    in the child than its memory says.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};

use arc_swap::{ArcSwapOption, Guard};

use crate::base::error::{Error, ErrorKind, Result};
use crate::base::fork::Origin;
use crate::base::locks::{Mutex, MutexGuard};
use crate::base::mutation::mutated;
use crate::env::{Env, RandomAccessFile, ReadAccess};

/// Descriptors that are left to everything else once the process has run out: a log, a MANIFEST,
/// CURRENT, a directory and a few tables that are being written.
pub(super) const SPARE_DESCRIPTORS: usize = 6;

/// Times that a file is opened again with what [`retry_sparing`] has closed. Another thread may
/// take it first.
const RETRIES: usize = 4;

/// So many files are opened before one more may be open, after the process had run out.
const REGAIN: usize = 64;

/// What `open` returns, called again while the process has run out of descriptors and `spare` has
/// closed some.
pub(super) fn retry_sparing<T>(
    mut open: impl FnMut() -> Result<T>,
    spare: impl Fn() -> bool,
) -> Result<T> {
    let mut result = open();
    for _ in 0..RETRIES {
        if !result.as_ref().is_err_and(Error::is_out_of_descriptors) || !spare() {
            break;
        }
        result = open();
    }
    result
}

/// What `open` returns for the first of `paths` that is there, and that path.
pub(super) fn open_first<T>(
    paths: impl IntoIterator<Item = PathBuf>,
    mut open: impl FnMut(&Path) -> Result<T>,
) -> Result<(T, PathBuf)> {
    let mut missing = None;
    for path in paths {
        match open(&path) {
            Ok(file) => return Ok((file, path)),
            Err(error) if error.kind() == ErrorKind::NotFound => {
                missing.get_or_insert(error);
            }
            Err(error) => return Err(error),
        }
    }
    Err(missing.unwrap_or_else(|| Error::corruption("a table has no name")))
}

/// Bounds how many files of tables hold a descriptor.
pub(super) struct TableFiles {
    env: Arc<dyn Env>,
    /// Falls when the process runs out of descriptors, and rises slowly up to `most`.
    capacity: AtomicUsize,
    most: usize,
    /// Files opened while `capacity` was less than that.
    opened: AtomicUsize,
    /// Handles that are open, and those that are being opened.
    live: AtomicUsize,
    /// Those that may be closed, in the order of a clock.
    ring: Mutex<VecDeque<Weak<TableFile>>>,
    origin: Origin,
}

/// A handle that counts as long as it is open.
pub(super) struct Opened {
    pub(super) file: Arc<dyn RandomAccessFile>,
    origin: Origin,
    /// The last one: fields are dropped in this order.
    _place: Place,
}

impl Opened {
    /// Whether it was opened by an ancestor of this process.
    #[inline]
    fn is_inherited(&self) -> bool {
        self.origin.is_ancestor() && !mutated("inherited-descriptors")
    }
}

impl Drop for Opened {
    fn drop(&mut self) {
        if self.is_inherited() {
            std::mem::forget(self.file.clone());
        }
    }
}

/// One of the handles that may be open.
struct Place(Arc<TableFiles>);

impl Drop for Place {
    fn drop(&mut self) {
        self.0.live.fetch_sub(1, Ordering::Relaxed);
    }
}

impl TableFiles {
    pub(super) fn new(env: Arc<dyn Env>, capacity: usize) -> Arc<Self> {
        Arc::new(TableFiles {
            env,
            capacity: AtomicUsize::new(capacity),
            most: capacity,
            opened: AtomicUsize::new(0),
            live: AtomicUsize::new(0),
            ring: Mutex::default(),
            origin: Origin::here(),
        })
    }

    /// How many handles may be open.
    pub(super) fn capacity(&self) -> usize {
        self.capacity.load(Ordering::Relaxed)
    }

    /// Opens the file at `path`, after closing others if too many are open.
    pub(super) fn open(self: &Arc<Self>, path: &Path, access: ReadAccess) -> Result<Opened> {
        let place = Place(self.clone());
        self.live.fetch_add(1, Ordering::Relaxed);
        while self.live.load(Ordering::Relaxed) > self.capacity()
            && !mutated("table-descriptors")
            && self.close_one().is_some()
        {}
        let file = self.env.open_random(path, access)?;
        if self.capacity() < self.most
            && (self.opened.fetch_add(1, Ordering::Relaxed) + 1).is_multiple_of(REGAIN)
        {
            self.capacity.fetch_add(1, Ordering::Relaxed);
        }
        Ok(Opened { file, origin: Origin::here(), _place: place })
    }

    /// What a table reads whose file is at one of `paths`. A mapped file holds no descriptor.
    pub(super) fn readable(
        self: &Arc<Self>,
        opened: Opened,
        paths: Vec<PathBuf>,
    ) -> Arc<dyn RandomAccessFile> {
        match opened.file.mapped() {
            Some(_) => opened.file.clone(),
            None => self.unmapped(opened, paths),
        }
    }

    fn unmapped(self: &Arc<Self>, opened: Opened, paths: Vec<PathBuf>) -> Arc<TableFile> {
        let file = Arc::new_cyclic(|itself| TableFile {
            files: self.clone(),
            paths: paths.into(),
            size: opened.file.size(),
            reads_in_background: opened.file.reads_in_background(),
            open: ArcSwapOption::empty(),
            recently_used: AtomicBool::new(false),
            itself: itself.clone(),
        });
        file.keep(Arc::new(opened));
        file
    }

    /// Closes handles, and keeps fewer from now on, because the process has run out of descriptors.
    /// Whether there was one to close.
    pub(super) fn spare(&self) -> bool {
        let keep = self.live.load(Ordering::Relaxed).saturating_sub(SPARE_DESCRIPTORS).max(1);
        self.capacity.fetch_min(keep, Ordering::Relaxed);
        let mut has_closed = false;
        while !has_closed || self.live.load(Ordering::Relaxed) > keep {
            match self.close_one() {
                Some(closed) => has_closed |= closed,
                None => break,
            }
        }
        has_closed
    }

    /// An error of opening a table, where a missing file is one that the MANIFEST names.
    pub(super) fn explain(&self, error: Error) -> Error {
        if error.kind() != ErrorKind::NotFound {
            return error;
        }
        if self.origin.is_ancestor() {
            return Error::not_supported(
                "the parent of this fork has removed a table since: open the database here",
            );
        }
        let missing = error.message();
        Error::corruption(format!("a table that the MANIFEST names is missing: {missing}"))
    }

    fn lock_ring(&self) -> Option<MutexGuard<'_, VecDeque<Weak<TableFile>>>> {
        if self.origin.is_ancestor() { self.ring.try_lock() } else { Some(self.ring.lock()) }
    }

    fn enter(&self, file: Weak<TableFile>) {
        let Some(mut ring) = self.lock_ring() else { return };
        ring.push_back(file);
        // Tables that were closed leave their place in the ring.
        if ring.len() > 2 * self.live.load(Ordering::Relaxed) + SPARE_DESCRIPTORS {
            ring.retain(|file| file.strong_count() > 0);
        }
    }

    /// Gives one handle up that was not used lately, if there is one. Whether that leaves a
    /// descriptor, as one that a parent opened does not, nor one that is being read.
    fn close_one(&self) -> Option<bool> {
        let mut ring = self.lock_ring()?;
        // Twice round: the first may only clear marks.
        for _ in 0..2 * ring.len() {
            let Some(member) = ring.pop_front() else { break };
            let Some(file) = member.upgrade() else { continue };
            if file.recently_used.swap(false, Ordering::Relaxed) {
                ring.push_back(member);
                continue;
            }
            drop(ring);
            // Until now no read opened the file again, so that it is not in the ring.
            let opened = file.open.swap(None).and_then(Arc::into_inner);
            return Some(opened.is_some_and(|opened| !opened.is_inherited()));
        }
        None
    }
}

/// The file of a table, whose descriptor may be closed.
pub(super) struct TableFile {
    files: Arc<TableFiles>,
    /// A range delete renames it.
    paths: Box<[PathBuf]>,
    size: u64,
    reads_in_background: bool,
    open: ArcSwapOption<Opened>,
    /// Set on use, cleared by the clock.
    recently_used: AtomicBool,
    itself: Weak<TableFile>,
}

impl TableFile {
    /// Has the clock pass over the file once.
    #[inline]
    fn note_use(&self) {
        if !self.recently_used.load(Ordering::Relaxed) {
            self.recently_used.store(true, Ordering::Relaxed);
        }
    }

    /// The handle, if the file has one. Kept in a variable, it stays open.
    #[inline]
    fn handle(&self) -> Guard<Option<Arc<Opened>>> {
        let open = self.open.load();
        match &*open {
            Some(opened) if !opened.is_inherited() => open,
            _ => Guard::from_inner(None),
        }
    }

    /// Keeps a handle, unless another thread's is kept.
    fn keep(&self, opened: Arc<Opened>) {
        self.note_use();
        let present = self.open.load();
        if present.as_ref().is_some_and(|present| !present.is_inherited()) {
            return;
        }
        let found = self.open.compare_and_swap(&*present, Some(opened));
        // One that a parent opened is in the ring already.
        if found.is_none() && present.is_none() {
            self.files.enter(self.itself.clone());
        }
    }

    /// Opens the file again.
    #[cold]
    fn reopen(&self) -> Result<Arc<Opened>> {
        let count = if mutated("renamed-tables") { 1 } else { self.paths.len() };
        let paths = self.paths[..count].iter().cloned();
        let opened = open_first(paths, |path| self.files.open(path, ReadAccess::Pread));
        let (opened, path) = opened.map_err(|error| self.files.explain(error))?;
        let size = opened.file.size();
        if size != self.size && !mutated("reopened-table-size") {
            let path = path.display();
            let message = format!("{path}: is {size} bytes long, and was {} before", self.size);
            return Err(Error::corruption(message));
        }
        let opened = Arc::new(opened);
        self.keep(opened.clone());
        Ok(opened)
    }

    #[cold]
    fn reopen_to_read(&self) -> Result<Arc<Opened>> {
        retry_sparing(|| self.reopen(), || self.files.spare())
    }
}

impl RandomAccessFile for TableFile {
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<usize> {
        match &*self.handle() {
            Some(opened) => {
                self.note_use();
                opened.file.read_at(offset, buffer)
            }
            None => self.reopen_to_read()?.file.read_at(offset, buffer),
        }
    }

    fn size(&self) -> u64 {
        self.size
    }

    /// The read that follows needs the descriptor, too; but not even the last one of the process is
    /// worth closing others for a hint.
    fn will_need(&self, offset: u64, length: usize) {
        match &*self.handle() {
            Some(opened) => {
                self.note_use();
                opened.file.will_need(offset, length);
            }
            None if self.reads_in_background => {
                if let Ok(opened) = self.reopen() {
                    opened.file.will_need(offset, length);
                }
            }
            None => {}
        }
    }

    fn reads_in_background(&self) -> bool {
        self.reads_in_background
    }

    fn not_needed(&self, offset: u64, length: u64) {
        if let Some(opened) = &*self.handle() {
            opened.file.not_needed(offset, length);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::env::{CreateOptions, MemEnv};

    const PATH: &str = "/000001.ldb";

    fn table_files(capacity: usize) -> Arc<TableFiles> {
        let env = MemEnv::new();
        let mut file = env.create(Path::new(PATH), CreateOptions::default()).expect("creates");
        file.append(b"0123456789").expect("writes");
        TableFiles::new(Arc::new(env), capacity)
    }

    fn open(files: &Arc<TableFiles>) -> Arc<TableFile> {
        let path = Path::new(PATH);
        files.unmapped(files.open(path, ReadAccess::Pread).expect("opens"), vec![path.into()])
    }

    fn live(files: &TableFiles) -> usize {
        files.live.load(Ordering::Relaxed)
    }

    #[test]
    fn a_handle_counts_until_its_last_reader_is_done_and_others_are_closed_instead() {
        let files = table_files(2);
        let (first, second) = (open(&files), open(&files));
        let reader = first.open.load_full().expect("a handle");
        let third = open(&files);
        assert!(first.open.load().is_none() && second.open.load().is_none());
        assert_eq!(live(&files), 2);
        drop(reader);
        assert_eq!(live(&files), 1);
        let mut buffer = [0; 4];
        for file in [&first, &second, &third, &first] {
            assert_eq!(file.read_at(3, &mut buffer).expect("reads"), 4);
            assert_eq!(&buffer, b"3456");
            assert_eq!((file.size(), live(&files)), (10, 2));
        }
    }

    #[test]
    fn a_hint_opens_no_file_that_reads_nothing_in_the_background() {
        let files = table_files(1);
        let (first, second) = (open(&files), open(&files));
        assert!(first.open.load().is_none());
        first.will_need(0, 10);
        first.not_needed(0, 10);
        assert!(first.open.load().is_none() && second.open.load().is_some());
    }

    #[test]
    fn files_that_are_gone_take_no_room() {
        let files = table_files(100);
        let kept = open(&files);
        for _ in 0..1_000 {
            open(&files);
        }
        assert_eq!(live(&files), 1);
        let length = files.lock_ring().expect("not a child").len();
        assert!(length < 10, "{length}");
        assert!(files.spare() && live(&files) == 0 && files.capacity() == 1);
        assert!(!files.spare());
        assert_eq!(kept.read_at(9, &mut [0; 4]).expect("reads"), 1);
        // One more with every so many.
        (0..REGAIN).for_each(|_| drop(open(&files)));
        assert_eq!(files.capacity(), 2);
        (0..200 * REGAIN).for_each(|_| drop(open(&files)));
        assert_eq!(files.capacity(), 100);
    }

    #[test]
    fn a_mapped_file_is_read_as_it_is_and_counts_for_nothing() {
        let files = table_files(1);
        let opened = files.open(Path::new(PATH), ReadAccess::Mapped).expect("opens");
        let mapped = files.readable(opened, vec![PATH.into()]);
        assert_eq!((mapped.mapped(), live(&files)), (Some(&b"0123456789"[..]), 0));
    }
}
