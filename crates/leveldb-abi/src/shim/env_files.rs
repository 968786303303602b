//! Files of a program's own environment.

use std::ffi::c_void;

use terrace::{Error, ErrorKind, RandomAccessFile, Result, WritableFile};

use super::calls::{FileCalls, RandomCalls};
use super::outcome::Bytes;

/// A `leveldb::WritableFile`.
pub(super) struct CustomFile {
    object: *mut c_void,
    calls: FileCalls,
    /// Whether the object is deleted with this.
    owned: bool,
}

// SAFETY: LevelDB moves its files between threads, one thread at a time.
unsafe impl Send for CustomFile {}

impl CustomFile {
    /// # Safety
    /// `object` is a file of the kind that `calls` take, with no other owner.
    pub(super) unsafe fn owned(object: *mut c_void, calls: FileCalls) -> Self {
        CustomFile { object, calls, owned: true }
    }

    /// # Safety
    /// `object` is a file of the kind that `calls` take, and outlives the result.
    pub(super) unsafe fn borrowed(object: *mut c_void, calls: FileCalls) -> Self {
        CustomFile { object, calls, owned: false }
    }
}

impl WritableFile for CustomFile {
    fn append(&mut self, data: &[u8]) -> Result<()> {
        // SAFETY: the object is alive, by the constructors.
        unsafe { (self.calls.append)(self.object, Bytes::of(data)).into_result() }
    }

    fn sync(&mut self) -> Result<()> {
        // SAFETY: as above.
        unsafe { (self.calls.sync)(self.object).into_result() }
    }

    fn close(self: Box<Self>) -> Result<()> {
        if !self.owned {
            return Ok(());
        }
        // SAFETY: as above; the object is deleted when `self` is dropped.
        unsafe { (self.calls.close)(self.object).into_result() }
    }
}

impl Drop for CustomFile {
    fn drop(&mut self) {
        if self.owned {
            // SAFETY: the object is this one's, and not used again.
            unsafe { (self.calls.release)(self.object) };
        }
    }
}

/// A file without contents: some environments map files, and nothing cannot be mapped.
pub(super) struct EmptyFile;

impl RandomAccessFile for EmptyFile {
    fn read_at(&self, _offset: u64, _buffer: &mut [u8]) -> Result<usize> {
        Ok(0)
    }

    fn size(&self) -> u64 {
        0
    }
}

/// A `leveldb::RandomAccessFile`.
pub(super) struct CustomRandomFile {
    object: *mut c_void,
    size: u64,
    calls: RandomCalls,
    owned: bool,
}

// SAFETY: LevelDB reads such files from any thread at any time.
unsafe impl Send for CustomRandomFile {}
// SAFETY: likewise.
unsafe impl Sync for CustomRandomFile {}

impl CustomRandomFile {
    /// # Safety
    /// `object` is a file of the kind that `calls` take, with no other owner.
    pub(super) unsafe fn owned(object: *mut c_void, size: u64, calls: RandomCalls) -> Self {
        CustomRandomFile { object, size, calls, owned: true }
    }

    /// # Safety
    /// `object` is a file of the kind that `calls` take, and outlives the result.
    pub(super) unsafe fn borrowed(object: *mut c_void, size: u64, calls: RandomCalls) -> Self {
        CustomRandomFile { object, size, calls, owned: false }
    }
}

impl RandomAccessFile for CustomRandomFile {
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<usize> {
        // Past the end some files return an error rather than nothing.
        let left = usize::try_from(self.size.saturating_sub(offset)).unwrap_or(usize::MAX);
        let wanted = left.min(buffer.len());
        if wanted == 0 {
            return Ok(0);
        }
        let mut got = 0;
        // SAFETY: the object is alive, by the constructors; the buffer has room.
        let read = unsafe {
            (self.calls.read)(self.object, offset, buffer.as_mut_ptr(), wanted, &mut got)
                .into_result()
        };
        match read {
            // A get must not take that for a missing key.
            Err(error) if error.kind() == ErrorKind::NotFound => {
                Err(Error::io_message(error.message()))
            }
            Err(error) => Err(error),
            Ok(()) => Ok(got.min(wanted)),
        }
    }

    fn size(&self) -> u64 {
        self.size
    }
}

impl Drop for CustomRandomFile {
    fn drop(&mut self) {
        if self.owned {
            // SAFETY: the object is this one's, and not used again.
            unsafe { (self.calls.release)(self.object) };
        }
    }
}
