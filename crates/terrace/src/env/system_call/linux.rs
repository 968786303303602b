//! The calls of Linux.

use std::fs::File;
use std::io;
use std::num::NonZeroU64;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::os::unix::fs::FileExt;

use memmap2::{Advice, Mmap};
use rustix::fs::MemfdFlags;

/// Locks of open file descriptions: they conflict with the POSIX lock that LevelDB takes, both
/// ways, and are not lost when the process closes another descriptor of the file.
pub(super) const SET_LOCK: libc::c_int = libc::F_OFD_SETLK;
pub(super) const GET_LOCK: libc::c_int = libc::F_OFD_GETLK;

/// The name of what [`sync`] calls, for messages.
pub(in crate::env) const SYNC_CALL: &str = "fdatasync";

/// Makes a file's bytes and its size durable.
pub(in crate::env) fn sync(file: &File) -> io::Result<()> {
    file.sync_data()
}

/// Reads what the page cache has of a range, from its beginning. An error of the kind `WouldBlock` if
/// that is nothing, and another where it cannot be told.
pub(in crate::env) fn read_in_memory(
    file: &File,
    offset: u64,
    buffer: &mut [u8],
) -> io::Result<usize> {
    let parts = &mut [io::IoSliceMut::new(buffer)];
    Ok(rustix::io::preadv2(file, parts, offset, rustix::io::ReadWriteFlags::NOWAIT)?)
}

/// Whether [`will_need`] does anything.
pub(in crate::env) const READS_IN_BACKGROUND: bool = true;

/// Says that a range of a file will be read soon. A hint.
pub(in crate::env) fn will_need(file: &File, offset: u64, length: usize) {
    let end = offset.saturating_add(length as u64);
    let mut from = offset;
    while let Some(length) = NonZeroU64::new((end - from).min(MOST_ADVISED)) {
        let _ = rustix::fs::fadvise(file, from, Some(length), rustix::fs::Advice::WillNeed);
        from += length.get();
    }
}

/// Of one call, Linux reads no more than the device's readahead or its largest request, whichever is
/// more (`force_page_cache_ra` in `mm/readahead.c`). This is the default of the former.
const MOST_ADVISED: u64 = 128 << 10;

/// Says that a file is read here and there, so that reading ahead is of no use. A hint.
pub(in crate::env) fn do_not_read_ahead(file: &File) {
    let _ = rustix::fs::fadvise(file, 0, None, rustix::fs::Advice::Random);
}

/// Whether [`populate`] tells what the device cannot read.
pub(in crate::env) const CHECKS_MAPPINGS: bool = true;

/// Brings `length` bytes from `start` of a mapping into memory. Fails where the device cannot read
/// them.
pub(in crate::env) fn populate(memory: &Mmap, start: usize, length: usize) -> io::Result<()> {
    match memory.advise_range(Advice::PopulateRead, start, length) {
        Err(error) if matches!(error.raw_os_error(), Some(libc::EFAULT | libc::EHWPOISON)) => {
            Err(io::Error::from_raw_os_error(libc::EIO))
        }
        // Linux before 5.14 cannot tell (EINVAL), and lack of memory says nothing about the
        // device.
        _ => Ok(()),
    }
}

/// Starts writing out a range of a file. A hint: its failure says nothing.
pub(in crate::env) fn start_writeback(file: BorrowedFd<'_>, offset: u64, length: u64) {
    let (Ok(offset), Ok(length)) = (i64::try_from(offset), i64::try_from(length)) else { return };
    // SAFETY: the descriptor is open for the life of `file`; no memory is passed.
    unsafe { libc::sync_file_range(file.as_raw_fd(), offset, length, libc::SYNC_FILE_RANGE_WRITE) };
}

/// The pieces of a file that the system tells of at once: what was prepared and written from front
/// to back is in one.
const MOST_EXTENTS: usize = 16;

/// `FS_IOC_FIEMAP`, `FIEMAP_EXTENT_DELALLOC` and the two structures are those of `linux/fs.h` and
/// `linux/fiemap.h`.
const FIEMAP: libc::c_ulong = 0xc020_660b;
const EXTENT_IN_MEMORY: u32 = 0x4;

#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Extent {
    logical: u64,
    physical: u64,
    length: u64,
    reserved: [u64; 2],
    flags: u32,
    more_reserved: [u32; 3],
}

#[repr(C)]
#[derive(Default)]
struct ExtentMap {
    start: u64,
    length: u64,
    flags: u32,
    mapped: u32,
    room: u32,
    reserved: u32,
    extents: [Extent; MOST_EXTENTS],
}

/// Whether the file system has not even chosen yet where on the disk the file's bytes will go: then
/// nothing that the file has ever held is there. What can't be said so is not so.
pub(in crate::env) fn is_in_memory_only(file: BorrowedFd<'_>) -> bool {
    let mut map = ExtentMap { length: u64::MAX, room: MOST_EXTENTS as u32, ..ExtentMap::default() };
    // SAFETY: the descriptor is open for the life of `file`; the kernel writes into `map`, which
    // has room for as many extents as it says, and outlives the call.
    let done = unsafe { libc::ioctl(file.as_raw_fd(), FIEMAP as _, &raw mut map) };
    let extents = map.extents.get(..map.mapped as usize).unwrap_or_default();
    // As many as there is room for may not be all.
    done == 0
        && (1..MOST_EXTENTS).contains(&extents.len())
        && extents.iter().all(|extent| extent.flags & EXTENT_IN_MEMORY != 0)
}

/// Copies bytes to several places of memory, so that a process that is killed leaves all of them
/// there or none, unless a page is taken away from it in that very moment.
///
/// The copy is one read of one page of a file in memory. Linux, which is where a process dies
/// unless it is between two of its own instructions, copies such a page to all the places that a
/// read names without a look at signals (`shmem_file_read_iter`, `copy_folio_to_iter`). It stops
/// where a place cannot be stored to; and where a place has become read-only since it was stored to
/// last, because the system writes the page out, while another thread holds the lock of the
/// process's mappings, and a signal that kills is pending: the fault waits for the lock then, and is
/// broken off. A loop of copies, `fdatasync` and three threads that map and unmap left 16 of 1,500
/// killed processes with a part of the places; without either of these it was 0 of 4,500.
#[derive(Debug)]
pub(in crate::env) struct ScatterCopy {
    source: File,
}

impl ScatterCopy {
    /// The places and the bytes that one copy can have.
    pub(in crate::env) const MOST_PLACES: usize = 512;
    pub(in crate::env) const MOST_BYTES: usize = 4096;

    pub(in crate::env) fn new() -> io::Result<Self> {
        let create = |flags| rustix::fs::memfd_create("terrace", MemfdFlags::CLOEXEC | flags);
        // Some systems demand the seal, and Linux before 6.3 does not know it.
        let source = create(MemfdFlags::NOEXEC_SEAL).or_else(|_| create(MemfdFlags::empty()))?;
        Ok(ScatterCopy { source: source.into() })
    }

    /// Copies `bytes` to `places`, which are as long together. After an error some of them may be
    /// there.
    ///
    /// # Safety
    /// The memory at `places` may be stored to, and nobody else does, or has a reference to it.
    pub(in crate::env) unsafe fn copy(
        &self,
        bytes: &[u8],
        places: &[libc::iovec],
    ) -> io::Result<()> {
        if places.len() > Self::MOST_PLACES || bytes.len() > Self::MOST_BYTES {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        self.source.write_all_at(bytes, 0)?;
        let (source, count) = (self.source.as_raw_fd(), places.len() as libc::c_int);
        // SAFETY: the descriptor is open for the life of `source`; the kernel stores into the
        // places, which the caller vouches for.
        match unsafe { libc::preadv(source, places.as_ptr(), count, 0) } {
            -1 => Err(io::Error::last_os_error()),
            copied if copied as usize == bytes.len() => Ok(()),
            _ => Err(io::Error::from_raw_os_error(libc::EFAULT)),
        }
    }
}
