//! A finished file as memory.
//!
//! Any number of threads may read. The engine never modifies or shortens a finished table while it
//! is open, and the directory is locked against other engines: that is what makes handing out
//! `&[u8]` sound. A load of bytes that the device cannot read is SIGBUS;
//! [`populate`](RandomAccessFile::populate) makes an error of it.
//!
//! # Invariants
//! 1. At most [`MAX_MAPPINGS`] files of the process are mapped: the system limits mappings (65,530
//!    by default on Linux), and the allocator and the program need some too.
//! 2. The descriptor is closed once the mapping stands, so mapped tables cost no descriptors.
#![allow(unsafe_code)]

use std::fs::File;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use memmap2::{Advice, Mmap, UncheckedAdvice};

use super::{RandomAccessFile, system_call};
use crate::base::error::{Error, Result};

/// The most files mapped at once; the next ones are read by calls.
const MAX_MAPPINGS: usize = if usize::BITS >= 64 { 32_768 } else { 0 };

static MAPPINGS: AtomicUsize = AtomicUsize::new(0);

/// A file mapped as a whole.
pub(super) struct MappedTable {
    memory: Mmap,
    path: Box<Path>,
    _place: Place,
}

/// One of [`MAX_MAPPINGS`].
struct Place;

impl Place {
    fn take() -> Option<Place> {
        if MAPPINGS.fetch_add(1, Ordering::Relaxed) < MAX_MAPPINGS {
            return Some(Place);
        }
        MAPPINGS.fetch_sub(1, Ordering::Relaxed);
        None
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        MAPPINGS.fetch_sub(1, Ordering::Relaxed);
    }
}

impl MappedTable {
    /// Maps `file`, whose size is `size`. `None` if it cannot or should not be mapped: empty, too
    /// many mappings, no address space.
    pub(super) fn new(file: &File, path: &Path, size: u64) -> Option<MappedTable> {
        let length = usize::try_from(size).ok().filter(|&length| length > 0)?;
        let place = Place::take()?;
        // SAFETY: the file is not modified while it is mapped; see the module's contract.
        let memory = unsafe { memmap2::MmapOptions::new().len(length).map(file).ok()? };
        Some(MappedTable { memory, path: path.into(), _place: place })
    }

    /// Where a range begins and ends within the mapping.
    fn clipped(&self, offset: u64, length: u64) -> (usize, usize) {
        let clipped = |at: u64| usize::try_from(at).unwrap_or(usize::MAX).min(self.memory.len());
        (clipped(offset), clipped(offset.saturating_add(length)))
    }
}

impl RandomAccessFile for MappedTable {
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<usize> {
        let rest = usize::try_from(offset)
            .ok()
            .and_then(|start| self.memory.get(start..))
            .unwrap_or_default();
        let length = rest.len().min(buffer.len());
        buffer[..length].copy_from_slice(&rest[..length]);
        Ok(length)
    }

    fn size(&self) -> u64 {
        self.memory.len() as u64
    }

    fn mapped(&self) -> Option<&[u8]> {
        Some(&self.memory)
    }

    fn will_need(&self, offset: u64, length: usize) {
        let Ok(start) = usize::try_from(offset) else { return };
        let length = length.min(self.memory.len().saturating_sub(start));
        if length > 0 {
            let _ = self.memory.advise_range(Advice::WillNeed, start, length);
        }
    }

    fn populate(&self, offset: u64, length: u64) -> Result<()> {
        let (start, end) = self.clipped(offset, length);
        if start >= end {
            return Ok(());
        }
        system_call::populate(&self.memory, start, end - start).map_err(|error| {
            Error::io("read", &self.path, error)
                .context(format_args!("{length} bytes at offset {offset} of a mapping"))
        })
    }

    fn not_needed(&self, offset: u64, length: u64) {
        let (start, end) = self.clipped(offset, length);
        if start < end {
            // SAFETY: the mapping is shared and for reading only, so that its pages have nothing
            // that the file has not: a read during the call or after it finds the same bytes.
            let _ = unsafe {
                self.memory.unchecked_advise_range(UncheckedAdvice::DontNeed, start, end - start)
            };
        }
    }
}
