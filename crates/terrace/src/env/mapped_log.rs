//! A write-ahead log that is appended to by copying memory.
//!
//! A `write` per record costs more than everything else a put does. Here a record is copied into a
//! shared mapping of the file. That is the kernel's memory just as well: it survives the process.
//! The background threads prepare the file ahead, in windows of zeros. If the log is synced, the
//! zeros are made durable before they are used, so that a sync allocates no blocks.
//!
//! The headers of a record that crosses a block are stored by one system call, where there is such
//! a call; elsewhere the record is written, and so is everything behind it (decision 10). A large log
//! of large records goes on by `write`, too. A log that the disk has never seen is zeroed out and
//! recycled (decision 7).
//!
//! One thread appends; syncers work beside it on any thread.
//!
//! # Invariants
//! 1. Behind the last record the file holds zeros only, until [`WritableFile::close`] cuts them
//!    off.
//! 2. The thread that prepares holds `preparation`. A closed log is not prepared, which would
//!    lengthen the file again.
//! 3. A child of a fork changes nothing: the file is its parent's.
//! 4. Where preparing fails, the file is cut to its records and the rest is appended by `write`,
//!    whose errors are the caller's.

use std::fs::File;
use std::io::{self, IoSlice};
use std::os::fd::AsFd;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use super::log_region::{LogCursor, LogRegion, Use};
use super::posix_file::{self, SyncedFile};
use super::system_call::ScatterCopy;
use super::{FileSyncer, Priority, WritableFile, pool, system_call};
use crate::base::error::Result;
use crate::base::fork::generation;
use crate::base::locks::plain::Mutex;
use crate::base::mutation::mutated;

/// How much is prepared at once: as much again as the log has, up to this. The writer has to wake a
/// thread for each window, and that is its slowest record but for those that wait.
const LARGEST_WINDOW: usize = 1 << 20;

/// So much of the prepared space is left when the next window is asked for, and half of it as long
/// as there is less: 1,800 records of 140 bytes, half a millisecond at full speed.
const RESERVE: usize = 256 << 10;

/// The first window, which the creator waits for, and what sizes are rounded to: a multiple of
/// every page size and of the log's block size.
const FIRST_WINDOW: usize = 64 << 10;

/// A log that has come this far is taken for one that grows: pages are made writable ahead. Before,
/// a page takes memory of the process when it is stored to, because there may be hundreds of
/// databases with few writes.
const GROWS_FROM: usize = 512 << 10;

/// A record from this size on is written about as fast as it is stored, and needs no window, for which
/// the writer would wait: the thread that prepares one is slower than the writer is then. A log that
/// can be recycled is worth more than that.
const LARGE_RECORD: usize = 64 << 10;

/// Bytes that a smaller log takes between two times that its pages are given back.
const SMALL_LOOK: usize = 4 << 10;

/// A larger log is not zeroed out: all its pages count as the process's memory.
const LARGEST_RECYCLED: usize = 8 << 20;

/// With more mapped logs than this open in the process, each may be that of one of hundreds of
/// databases with few writes, and gives pages back while it is small. Giving back stops every
/// thread of the process for a moment, and a busy database has a log for each full memtable.
const FEW_LOGS: usize = 12;

/// How many mapped logs are open.
static OPEN: AtomicUsize = AtomicUsize::new(0);

/// Counts a log that is open.
struct Counted(());

impl Counted {
    fn new() -> Self {
        OPEN.fetch_add(1, Ordering::Relaxed);
        Counted(())
    }

    fn are_many() -> bool {
        OPEN.load(Ordering::Relaxed) > FEW_LOGS
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        OPEN.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A record of at most as many bytes is stored in a log that is synced, too. For a larger one the
/// mapping may be given up, once the thread that prepares has been waited for.
const SURELY_STORED: usize = 4 << 10;

/// File systems on which writing zeros reserves blocks that a later store through a mapping uses.
/// Where a store needs new blocks, as it does under copy-on-write, a full disk would kill the
/// process (SIGBUS).
///
/// XFS is not one of them: a store to a page that was written back fails after the file system has
/// shut down, and so does a store to a file that `cp` has reflinked when the disk is full. Both
/// kill the process.
const IN_PLACE: &[u32] = &[
    0x0000_ef53, // ext2, ext3, ext4
    0x0102_1994, // tmpfs
];

/// Whether a store of eight unaligned bytes is one instruction, which a mapped log needs.
const STORES_ARE_WHOLE: bool = cfg!(any(target_arch = "x86_64", target_arch = "aarch64"));

/// Whether a log may be appended to through a mapping. On unknown file systems it may not.
fn may_map(file: &File) -> bool {
    STORES_ARE_WHOLE
        && rustix::fs::fstatfs(file).is_ok_and(|info| IN_PLACE.contains(&(info.f_type as u32)))
}

/// A log of the real system.
pub(super) struct MappedLog {
    shared: Arc<Shared>,
    cursor: LogCursor,
    /// When the cursor passes it, [`look_around`](Self::look_around) has something to do.
    next_look: usize,
    /// Where the next window is wanted.
    low_water: usize,
    /// The prepared length when the pool was last asked for more.
    asked_at: usize,
    /// Stores the headers of large records; made for the first one.
    headers: Option<ScatterCopy>,
    /// The bytes of records of [`LARGE_RECORD`] and more.
    large: usize,
    _counted: Counted,
    /// Once the mapping has been given up: where `write` goes.
    plain: Option<u64>,
}

/// The state that the appending thread, syncers and the pool share.
struct Shared {
    region: Arc<LogRegion>,
    /// Windows are prepared ahead up to here; beyond, when they are needed.
    expected: usize,
    /// Whether a sync came since the last window was prepared.
    synced: AtomicBool,
    /// Whether any sync came.
    was_synced: AtomicBool,
    /// How often the log has been recycled.
    times_recycled: AtomicUsize,
    /// Held by the thread that prepares; whether the log is closed.
    preparation: Mutex<bool>,
    /// The process the log belongs to.
    generation: u64,
}

impl Shared {
    /// Where a window ends that begins at `ready`.
    fn window_end(&self, ready: usize) -> usize {
        let ready = ready.next_multiple_of(FIRST_WINDOW);
        (ready + ready.clamp(FIRST_WINDOW, LARGEST_WINDOW))
            .min(self.expected.max(ready + FIRST_WINDOW))
    }

    /// Prepares up to `end`. The caller holds `preparation`.
    fn prepare(&self, end: usize) -> Result<()> {
        let expected = match self.synced.swap(false, Ordering::Relaxed) {
            true => Use::Synced,
            false if self.region.ready() < GROWS_FROM && Counted::are_many() => Use::Small,
            false => Use::Unsynced,
        };
        self.region.prepare(end, expected)
    }

    /// The pool's part: the window behind `ready`, if it is still wanted, which was asked for after
    /// the log had been recycled so many times.
    fn prepare_ahead(&self, ready: usize, times_recycled: usize) {
        // Waits for a thread that has prepared the window before and is giving pages back: the
        // writer may have come through that window meanwhile, and it asks only once.
        let closed = self.preparation.lock();
        let is_recycled = self.times_recycled.load(Ordering::Relaxed) != times_recycled;
        if *closed || is_recycled || self.region.ready() != ready {
            return;
        }
        // If it fails, the writer tries again when it needs the space, and is told.
        let _ = self.prepare(self.window_end(ready));
        // The writer asked when it had come that far.
        self.region.give_back(low_water(ready));
    }
}

impl FileSyncer for Shared {
    fn sync(&self) -> Result<()> {
        self.synced.store(true, Ordering::Relaxed);
        self.was_synced.store(true, Ordering::Relaxed);
        // Dirty pages of a shared mapping are the file's dirty pages, so this writes what was
        // stored.
        self.region.file.sync()
    }
}

/// Where a writer asks for the window behind `ready`.
fn low_water(ready: usize) -> usize {
    ready - RESERVE.min(ready / 2)
}

/// Writes all of `parts`, one behind the other, from `offset` on.
fn write_parts_at(file: &File, parts: &mut [IoSlice<'_>], mut offset: u64) -> io::Result<()> {
    posix_file::write_all_parts(parts, |parts| {
        let written = rustix::io::pwritev(file, parts, offset)?;
        offset += written as u64;
        Ok(written)
    })
}

impl MappedLog {
    /// Maps and prepares `file`, which is empty. `None` if that cannot be done, or not safely on
    /// its file system; the file is empty then, too.
    pub(super) fn new(file: &Arc<SyncedFile>, expected_size: u64) -> Option<MappedLog> {
        if !may_map(&file.file) {
            return None;
        }
        let expected =
            usize::try_from(expected_size).ok()?.max(1).checked_next_multiple_of(FIRST_WINDOW)?;
        // Somewhat more than expected still finds room; beyond that the log is written.
        let length = expected.checked_add(expected / 4)?.checked_add(RESERVE)?;
        let cursor = LogCursor::new(file.clone(), length).ok()?;
        let region = cursor.region().clone();
        if region.prepare(FIRST_WINDOW, Use::Small).is_err() {
            file.file.set_len(0).ok()?;
            return None;
        }
        let shared = Shared {
            region,
            expected,
            synced: AtomicBool::new(false),
            was_synced: AtomicBool::new(false),
            times_recycled: AtomicUsize::new(0),
            preparation: Mutex::default(),
            generation: generation(),
        };
        let mut log = MappedLog {
            shared: Arc::new(shared),
            cursor,
            next_look: 0,
            low_water: 0,
            asked_at: 0,
            headers: None,
            large: 0,
            plain: None,
            _counted: Counted::new(),
        };
        log.set_low_water(FIRST_WINDOW);
        Some(log)
    }

    fn set_low_water(&mut self, ready: usize) {
        self.low_water = match ready {
            _ if ready >= self.shared.expected => usize::MAX,
            // Asked once. Whether it came shows when its space is needed; if so, the one behind it
            // is asked for.
            _ if ready == self.asked_at => ready,
            _ => low_water(ready),
        };
        self.set_next_look();
    }

    fn set_next_look(&mut self) {
        self.next_look = match self.is_small() {
            true => self.low_water.min((self.cursor.position() + 1).next_multiple_of(SMALL_LOOK)),
            false => self.low_water,
        };
    }

    /// Whether this may be the log of one of hundreds of databases with few writes.
    fn is_small(&self) -> bool {
        Counted::are_many()
            && self.cursor.position() < GROWS_FROM
            && self.shared.times_recycled.load(Ordering::Relaxed) == 0
    }

    /// Gives the pages of a small log back, and asks the pool for the next window if it is time and
    /// it has not come by now.
    #[cold]
    fn look_around(&mut self) {
        let ready = self.shared.region.ready();
        if self.is_small()
            && let Some(closed) = self.shared.preparation.try_lock()
        {
            self.shared.region.give_back_pages(self.cursor.position());
            drop(closed);
        }
        self.set_low_water(ready);
        if self.cursor.position() < self.low_water {
            return;
        }
        self.asked_at = ready;
        self.set_low_water(ready);
        let times_recycled = self.shared.times_recycled.load(Ordering::Relaxed);
        let shared = Arc::downgrade(&self.shared);
        let job = move || {
            if let Some(shared) = shared.upgrade() {
                shared.prepare_ahead(ready, times_recycled);
            }
        };
        // The flushes' priority, because a writer will wait for it and compactions may take long.
        pool::shared().schedule(Priority::Flush, Box::new(job));
    }

    /// Appends when the prepared space is used up or given up.
    #[cold]
    fn append_slowly(&mut self, data: &[u8]) -> Result<()> {
        if self.plain.is_none() {
            if self.make_ready(self.cursor.end_with(data.len())) && self.cursor.append(data) {
                return Ok(());
            }
            self.give_up_mapping()?;
        }
        self.append_plainly(&mut [IoSlice::new(data)], data.len())
    }

    /// Stores `parts`, `length` bytes together, unless there is no way to store the `headers` at
    /// once, or no room; or unless the log is synced, whose room would have to be synced as well:
    /// as much work for the disk again.
    fn store_parts(&mut self, parts: &[IoSlice<'_>], headers: &[usize], length: usize) -> bool {
        if headers.len() > ScatterCopy::MOST_PLACES {
            return false;
        }
        let end = self.cursor.end_with(length);
        if length >= LARGE_RECORD {
            self.large += length;
            if end > LARGEST_RECYCLED && self.large >= end / 8 * 7 {
                return false;
            }
        }
        // Where there are syncs pages are written out, which may break the copy off.
        let was_synced = self.shared.was_synced.load(Ordering::Relaxed);
        if was_synced || end > self.shared.region.ready() && !self.make_ready(end) {
            return false;
        }
        if self.headers.is_none() {
            self.headers = ScatterCopy::new().ok();
        }
        let Some(copy) = &self.headers else { return false };
        self.cursor.append_parts(parts, headers, copy).unwrap_or(false)
    }

    /// From here on the log is written.
    fn give_up_mapping(&mut self) -> Result<()> {
        self.close_preparation();
        self.cursor.retire()?;
        self.plain = Some(self.cursor.position() as u64);
        Ok(())
    }

    /// Not after a sync that failed, be it the one of a new window: the kernel may have dropped pages
    /// before it, so nothing may be acknowledged behind them.
    fn append_plainly(&mut self, parts: &mut [IoSlice<'_>], length: usize) -> Result<()> {
        let file = &self.shared.region.file;
        if !mutated("failed-window") {
            file.check()?;
        }
        let offset = self.plain.get_or_insert(0);
        write_parts_at(&file.file, parts, *offset).map_err(|e| file.error("write", e))?;
        *offset += length as u64;
        Ok(())
    }

    /// Waits until the file is prepared up to `end`, or prepares it here and now.
    fn make_ready(&mut self, end: usize) -> bool {
        let closed = self.shared.preparation.lock();
        let ready = self.shared.region.ready();
        if ready < end {
            let least = end.next_multiple_of(FIRST_WINDOW);
            let window = self.shared.window_end(ready).max(least);
            // Less may still fit where a window does not, on the disk or in the mapping.
            let has_failed = || self.shared.region.file.has_failed() && !mutated("failed-window");
            if has_failed() {
                return false;
            }
            let done = self.shared.prepare(window).or_else(|error| match has_failed() {
                true => Err(error),
                false => self.shared.prepare(least),
            });
            if done.is_err() {
                return false;
            }
        }
        drop(closed);
        self.set_low_water(self.shared.region.ready());
        true
    }

    /// Waits for the thread that prepares, and lets no other begin.
    fn close_preparation(&self) {
        // In a child of a fork the lock may be held by a thread that did not come along.
        if self.shared.generation != generation() {
            return;
        }
        *self.shared.preparation.lock() = true;
    }
}

impl WritableFile for MappedLog {
    #[inline]
    fn append(&mut self, data: &[u8]) -> Result<()> {
        if !self.cursor.append(data) {
            return self.append_slowly(data);
        }
        if self.cursor.position() >= self.next_look {
            self.look_around();
        }
        Ok(())
    }

    fn append_parts(&mut self, parts: &mut [IoSlice<'_>], headers: &[usize]) -> Result<()> {
        let length = parts.iter().map(|part| part.len()).sum();
        if self.plain.is_none() {
            if self.store_parts(parts, headers, length) {
                if self.cursor.position() >= self.next_look {
                    self.look_around();
                }
                return Ok(());
            }
            // Which removes what may have come of them.
            self.give_up_mapping()?;
        }
        self.append_plainly(parts, length)
    }

    fn is_prepared(&self) -> bool {
        self.plain.is_none()
    }

    fn takes_at_once(&self, length: usize) -> bool {
        if self.plain.is_some() {
            return true;
        }
        let most = match self.shared.was_synced.load(Ordering::Relaxed) {
            true => SURELY_STORED,
            false => FIRST_WINDOW,
        };
        length <= most && self.cursor.end_with(length) <= self.shared.region.ready()
    }

    fn append_filled(&mut self, data: &[u8], filler: usize) -> Result<()> {
        if self.plain.is_none() {
            let is_ready = self.cursor.end_with(data.len()) <= self.shared.region.ready();
            if (is_ready || self.make_ready(self.cursor.end_with(data.len())))
                && self.cursor.append_filled(data, filler)
            {
                if self.cursor.position() >= self.next_look {
                    self.look_around();
                }
                return Ok(());
            }
            self.give_up_mapping()?;
        }
        self.append_plainly(&mut [IoSlice::new(data)], data.len())
    }

    fn cut_back(&mut self, length: u64) {
        // Behind what is mapped there are zeros, which the close cuts off.
        if self.plain.is_some() && self.shared.generation == generation() {
            let _ = self.shared.region.file.file.set_len(length);
        }
    }

    fn sync(&mut self) -> Result<()> {
        self.shared.sync()
    }

    fn syncer(&self) -> Option<Arc<dyn FileSyncer>> {
        Some(self.shared.clone())
    }

    fn start_writeback(&mut self, offset: u64, length: u64) {
        system_call::start_writeback(self.shared.region.file.file.as_fd(), offset, length);
    }

    fn zero_out(&mut self) -> bool {
        let is_worth_it = self.plain.is_none() && self.cursor.position() <= LARGEST_RECYCLED;
        if !is_worth_it
            || self.shared.generation != generation()
            || self.shared.region.file.has_failed()
        {
            return false;
        }
        let closed = self.shared.preparation.lock();
        if *closed || !self.cursor.zero_out() {
            return false;
        }
        self.shared.times_recycled.fetch_add(1, Ordering::Relaxed);
        drop(closed);
        (self.asked_at, self.large) = (0, 0);
        self.shared.synced.store(false, Ordering::Relaxed);
        self.set_low_water(self.shared.region.ready());
        true
    }

    fn set_path(&mut self, path: &Path) {
        self.shared.region.file.set_path(path);
    }

    fn close(mut self: Box<Self>) -> Result<()> {
        self.close_preparation();
        match self.plain {
            None if self.shared.generation == generation() => self.cursor.retire(),
            // Cut when the mapping was given up, or not this process's to cut.
            _ => Ok(()),
        }
        // Dropping closes the descriptor. The file systems that logs are mapped on report nothing
        // there.
    }
}

impl Drop for MappedLog {
    fn drop(&mut self) {
        self.close_preparation();
    }
}

#[cfg(test)]
mod tests;
