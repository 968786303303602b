//! The memory of a mapped log: the only place where bytes are stored through a mapping.
//!
//! The whole range a log may grow to is mapped at once, far beyond the end of the file. Touching a
//! page that has no bytes of the file behind it kills the process (SIGBUS); so the file is
//! lengthened with zeros first, by `write`, which can fail politely, and stores go below the end of
//! that.
//!
//! One thread owns the cursor and stores. Any one other thread may prepare at the same time.
//!
//! # Invariants
//! 1. Below `ready` the file has been written: blocks exist or are reserved. Only
//!    [`LogRegion::prepare`] raises it; it falls, to nothing, before the file is shortened. (The
//!    engine's lock keeps others from shortening it.)
//! 2. Stores lie below `ready`, and only the cursor makes them, of which a region has one. Behind
//!    `ready` there are zeros only.
//! 3. No reference to the mapping is ever formed: the file is shared with the rest of the world.
//!    Bytes go in through a raw pointer and are not read back.
//! 4. The first eight bytes of what is appended, which hold a record's whole header, are stored
//!    last, by one instruction; the headers of a record that has several are, by one system call. A
//!    process that dies at any point leaves zeros there, or the whole record.
#![allow(unsafe_code)]

#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
use std::arch::asm;
use std::io::{self, IoSlice};
use std::os::fd::AsFd;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::ptr::{self, NonNull};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering, compiler_fence};

use rustix::io::Errno;
use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap, munmap};

use super::FileSyncer;
use super::posix_file::SyncedFile;
use super::system_call::{self, ScatterCopy};
use crate::base::error::{Error, Result};
use crate::base::mutation::mutated;

/// The bytes that are stored last: a fragment's header and the first byte behind it.
const COMMIT_SIZE: usize = size_of::<u64>();

/// How a region is prepared. The page cache keeps a file in the pieces it was written in and writes
/// out a whole piece when one byte of it is synced, so small pieces make small syncs fast; large
/// ones cost a third to prepare.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Use {
    /// Syncs are expected: small pieces, made durable, so that a sync allocates no blocks and
    /// leaves the file system's journal alone. Their pages are not made writable: that would count
    /// as a change of them all, and the next sync would write them all once more.
    Synced,
    /// No syncs are expected: large pieces, their pages made writable, so that stores do not fault.
    Unsynced,
    /// Few records may come: small pieces, their pages not made writable, so that those that are
    /// never stored to take no memory of the process.
    Small,
}

const SMALL_PIECE: usize = 4 << 10;
const LARGE_PIECE: usize = 64 << 10;

/// No page is larger.
const LARGEST_PAGE: usize = 64 << 10;

/// How much is given back at once, and in a log that has come less far, of which there may be
/// hundreds.
const GIVEN_BACK_STEP: usize = 1 << 20;
const SMALL_GIVEN_BACK_STEP: usize = 64 << 10;

/// A shared, writable mapping of the first `length` bytes a file has or may come to have.
pub(super) struct LogRegion {
    base: NonNull<u8>,
    length: usize,
    ready: AtomicUsize,
    /// The length of the file. Only the thread that prepares changes it.
    extent: AtomicUsize,
    /// The pages below have been given back. Only the thread that prepares changes it.
    given_back: AtomicUsize,
    pub(super) file: Arc<SyncedFile>,
}

// SAFETY: the memory belongs to this value alone, and nothing about it is bound to a thread. Stores
// are made by the cursor only, through `&mut`, so never by two threads at once; everything else
// only advises the kernel, which synchronises by itself, or is atomic.
unsafe impl Send for LogRegion {}

// SAFETY: as for Send.
unsafe impl Sync for LogRegion {}

/// The place behind the last record, and the right to store there.
pub(super) struct LogCursor {
    region: Arc<LogRegion>,
    position: usize,
}

impl LogRegion {
    /// The end of what may be stored to.
    #[inline]
    pub(super) fn ready(&self) -> usize {
        self.ready.load(Ordering::Acquire)
    }

    /// Where the mapping lies.
    #[cfg(test)]
    pub(super) fn address(&self) -> usize {
        self.base.as_ptr().addr()
    }

    /// Lengthens what may be stored to, to `end` or to nothing more than it is on an error. One
    /// thread at a time. `end` is a multiple of the log's block size.
    pub(super) fn prepare(&self, end: usize, expected_use: Use) -> Result<()> {
        let start = self.ready();
        if end > self.length {
            return Err(Error::io_message(format!(
                "{}: mapping exhausted",
                self.file.path().display()
            )));
        }
        self.lengthen(end).map_err(|e| self.file.error("prepare", e))?;
        let piece = if expected_use == Use::Unsynced { LARGE_PIECE } else { SMALL_PIECE };
        let mut at = start;
        while at < end {
            // The first piece may begin anywhere; the others are whole.
            let next = (at + 1).next_multiple_of(piece).min(end);
            let zeros = &[0; LARGE_PIECE][..next - at];
            self.file
                .file
                .write_all_at(zeros, at as u64)
                .map_err(|e| self.file.error("prepare", e))?;
            at = next;
        }
        match expected_use {
            Use::Synced => self.file.sync()?,
            Use::Unsynced => {
                self.populate(start, end).map_err(|e| self.file.error("map", e))?;
            }
            Use::Small => {}
        }
        self.ready.store(end, Ordering::Release);
        Ok(())
    }

    /// Makes the file at least `end` bytes long. This comes before anything is written, and in one
    /// step: a LevelDB that reuses the log of a killed process appends at its end, which must
    /// be the end of a block then, and not wherever the zeros had come to.
    fn lengthen(&self, end: usize) -> io::Result<()> {
        if end > self.extent.load(Ordering::Relaxed) {
            self.file.file.set_len(end as u64)?;
            self.extent.store(end, Ordering::Relaxed);
        }
        Ok(())
    }

    /// Gives back pages below `end`, which is not beyond `ready` and below which nothing is stored
    /// any more, now and then some. They stay with the system until they are on the disk or the
    /// file is gone, but do not count as the process's any longer: a log is as large as its
    /// memtable. One thread at a time.
    pub(super) fn give_back(&self, end: usize) {
        let step = if end < GIVEN_BACK_STEP { SMALL_GIVEN_BACK_STEP } else { GIVEN_BACK_STEP };
        self.give_back_whole(end, step);
    }

    /// As [`give_back`](Self::give_back), every page at once.
    pub(super) fn give_back_pages(&self, end: usize) {
        self.give_back_whole(end, rustix::param::page_size());
    }

    /// Gives back what there is of pieces of `step` bytes below `end`.
    fn give_back_whole(&self, end: usize, step: usize) {
        let start = self.given_back.load(Ordering::Relaxed);
        let end = end / step * step;
        if start >= end {
            return;
        }
        debug_assert!(end <= self.length);
        // SAFETY: the range is inside the mapping, to which no reference exists; the pages of a
        // shared mapping are the file's, so doing without them loses no byte of them, and a store
        // there gets them again.
        let _ = unsafe {
            madvise(self.base.as_ptr().add(start).cast(), end - start, Advice::LinuxDontNeed)
        };
        self.given_back.store(end, Ordering::Relaxed);
    }

    /// Whether nothing that the file has ever held is on the disk, and no other name shows what it
    /// holds.
    fn is_private(&self) -> bool {
        let file = &self.file.file;
        let is_unwritten = system_call::is_in_memory_only(file.as_fd()) || mutated("logs-on-disk");
        is_unwritten && file.metadata().is_ok_and(|info| info.nlink() == 1)
    }

    /// Fills the file with zeros up to `end`, which is not beyond `ready`.
    fn fill_with_zeros(&self, end: usize) -> io::Result<()> {
        debug_assert!(end <= self.ready());
        let zeros = &[0; LARGE_PIECE];
        for at in (0..end).step_by(LARGE_PIECE) {
            self.file.file.write_all_at(&zeros[..LARGE_PIECE.min(end - at)], at as u64)?;
        }
        // So that stores do not fault. No hardship if they do.
        let _ = self.populate(0, self.given_back.swap(0, Ordering::Relaxed));
        Ok(())
    }

    /// Makes pages present and writable. A fault that would kill a storing process is an error
    /// here.
    fn populate(&self, start: usize, end: usize) -> io::Result<()> {
        if start >= end {
            return Ok(());
        }
        debug_assert!(end <= self.length);
        // Pages begin at multiples of their size.
        let start = start - start % LARGEST_PAGE;
        // SAFETY: the range is inside the mapping, to which no reference exists; the pages of a
        // shared mapping are the file's, so populating them changes nothing that anybody sees.
        let done = unsafe {
            madvise(self.base.as_ptr().add(start).cast(), end - start, Advice::LinuxPopulateWrite)
        };
        match done {
            // The kernel does not know how to; stores will fault.
            Ok(()) | Err(Errno::INVAL) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

impl Drop for LogRegion {
    fn drop(&mut self) {
        // SAFETY: exactly the mapping that `LogCursor::new` made; cursor and region are gone.
        let _ = unsafe { munmap(self.base.as_ptr().cast(), self.length) };
    }
}

impl LogCursor {
    /// Maps `length` bytes of the empty `file`: a region that is not prepared for anything yet.
    pub(super) fn new(file: Arc<SyncedFile>, length: usize) -> io::Result<Self> {
        // SAFETY: a null hint lets the kernel choose the place, so no existing mapping is touched.
        let base = unsafe {
            mmap(
                ptr::null_mut(),
                length,
                ProtFlags::READ | ProtFlags::WRITE,
                MapFlags::SHARED,
                &file.file,
                0,
            )?
        };
        let base = NonNull::new(base.cast::<u8>()).ok_or(io::ErrorKind::OutOfMemory)?;
        let zero = || AtomicUsize::new(0);
        let region =
            LogRegion { base, length, ready: zero(), extent: zero(), given_back: zero(), file };
        Ok(LogCursor { region: Arc::new(region), position: 0 })
    }

    pub(super) fn region(&self) -> &Arc<LogRegion> {
        &self.region
    }

    /// The end of what was appended.
    pub(super) fn position(&self) -> usize {
        self.position
    }

    /// How far the region must be prepared before `length` bytes can be appended.
    pub(super) fn end_with(&self, length: usize) -> usize {
        self.position.saturating_add(length.max(COMMIT_SIZE))
    }

    /// Stores `data` behind what is there, so that it appears as a whole; `false`, and nothing
    /// done, if the region is not prepared for it.
    #[inline]
    pub(super) fn append(&mut self, data: &[u8]) -> bool {
        if self.end_with(data.len()) > self.region.ready() {
            return false;
        }
        let (head, tail) = match data.split_first_chunk::<COMMIT_SIZE>() {
            Some((head, tail)) => (*head, tail),
            None => {
                // What stands behind is zeros and stays so.
                let mut head = [0; COMMIT_SIZE];
                head[..data.len()].copy_from_slice(data);
                (head, &[][..])
            }
        };
        let place = self.place();
        // SAFETY: the range from `position` to `end_with(data)` is inside the mapping and backed by
        // the file (invariant 1 and the test above; `&mut self` keeps `retire` away). Nobody else
        // stores (invariant 2). `data` cannot overlap a mapping to which no reference exists.
        unsafe {
            ptr::copy_nonoverlapping(tail.as_ptr(), place.add(COMMIT_SIZE), tail.len());
            commit(place, head);
        }
        self.position += data.len();
        true
    }

    /// As [`append`](Self::append), but for the order: what follows the first `filler` bytes
    /// appears before them, each as a whole.
    pub(super) fn append_filled(&mut self, data: &[u8], filler: usize) -> bool {
        let (first, second) = data.split_at(filler.min(data.len()));
        let head = data.first_chunk::<COMMIT_SIZE>();
        let (Some(&head), Some((second_head, second_tail))) =
            (head, second.split_first_chunk::<COMMIT_SIZE>())
        else {
            return self.append(data);
        };
        if self.end_with(data.len()) > self.region.ready() {
            return false;
        }
        let place = self.place();
        // SAFETY: as in `append`; all offsets are below `data.len()`. Where the first part is
        // shorter than what is stored at once, its store stores the beginning of the second part
        // again, as it is.
        unsafe {
            let second_place = place.add(first.len());
            ptr::copy_nonoverlapping(
                second_tail.as_ptr(),
                second_place.add(COMMIT_SIZE),
                second_tail.len(),
            );
            commit(second_place, *second_head);
            if let Some(first_tail) = first.get(COMMIT_SIZE..) {
                ptr::copy_nonoverlapping(
                    first_tail.as_ptr(),
                    place.add(COMMIT_SIZE),
                    first_tail.len(),
                );
            }
            commit(place, head);
        }
        self.position += data.len();
        true
    }

    /// Stores all of `parts`, one behind the other, those at the indices `headers` last, and by one
    /// `copy`. `false`, and nothing done, if the region is not prepared for it. After an error some
    /// of the headers may be there.
    pub(super) fn append_parts(
        &mut self,
        parts: &[IoSlice<'_>],
        headers: &[usize],
        copy: &ScatterCopy,
    ) -> io::Result<bool> {
        let length = parts.iter().map(|part| part.len()).sum();
        if self.end_with(length) > self.region.ready() {
            return Ok(false);
        }
        let mut place = self.place();
        let mut left = headers.iter().copied().peekable();
        let (mut bytes, mut places) = (Vec::new(), Vec::with_capacity(headers.len()));
        for (index, part) in parts.iter().enumerate() {
            // SAFETY: as in `append`; the parts end at `end_with(length)` together.
            unsafe {
                if left.next_if_eq(&index).is_some() && !mutated("headers-at-once") {
                    // As it is already: so that the page is one that can be stored to.
                    ptr::write_bytes(place, 0, part.len());
                    places.push(libc::iovec { iov_base: place.cast(), iov_len: part.len() });
                    bytes.extend_from_slice(part);
                } else {
                    ptr::copy_nonoverlapping(part.as_ptr(), place, part.len());
                }
            }
            place = place.wrapping_add(part.len());
        }
        compiler_fence(Ordering::SeqCst);
        // SAFETY: the places lie among what was just stored to.
        unsafe { copy.copy(&bytes, &places)? };
        self.position += length;
        Ok(true)
    }

    /// Begins anew in a file of zeros, of which nothing that was appended before is on the disk or
    /// will ever be: as long as the system had not chosen a place there for any of it when all was
    /// zeros, only zeros and what comes behind them can be written to it. `false` where that is not
    /// so; then what the file holds is arbitrary.
    ///
    /// No thread may be preparing.
    pub(super) fn zero_out(&mut self) -> bool {
        let region = &self.region;
        let done = region.is_private()
            && region.fill_with_zeros(self.position).is_ok()
            && region.is_private();
        if done {
            self.position = 0;
        }
        done
    }

    /// The address of the next record.
    #[inline]
    fn place(&self) -> *mut u8 {
        // The position is inside the mapping or at its end.
        self.region.base.as_ptr().wrapping_add(self.position)
    }

    /// Cuts the file to what was appended and accepts nothing more. No thread may be preparing.
    pub(super) fn retire(&mut self) -> Result<()> {
        self.region.ready.store(0, Ordering::Release);
        let file = &self.region.file;
        file.file.set_len(self.position as u64).map_err(|e| file.error("truncate", e))
    }
}

/// Stores the first bytes of a record at `place`, after everything that has been stored before.
///
/// # Safety
/// The eight bytes at `place` lie in a mapping, below `ready`, and no other thread stores there.
#[inline]
unsafe fn commit(place: *mut u8, head: [u8; COMMIT_SIZE]) {
    let head = u64::from_ne_bytes(head);
    // A process dies between two of its instructions: their order is what counts, not the
    // processor's. A compiler may split an unaligned store, so the instruction is written out.
    compiler_fence(Ordering::SeqCst);
    #[cfg(target_arch = "x86_64")]
    // SAFETY: the caller's word; the instruction stores eight bytes at `place` and changes nothing
    // else.
    unsafe {
        asm!(
            "mov qword ptr [{}], {}",
            in(reg) place, in(reg) head,
            options(nostack, preserves_flags)
        );
    }
    #[cfg(target_arch = "aarch64")]
    // SAFETY: as on x86-64.
    unsafe {
        asm!("str {1}, [{0}]", in(reg) place, in(reg) head, options(nostack, preserves_flags));
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    // Logs are not mapped here (`mapped_log::may_map`).
    // SAFETY: the caller's word.
    unsafe {
        place.cast::<u64>().write_unaligned(head);
    }
    compiler_fence(Ordering::SeqCst);
}
