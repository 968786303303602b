//! Reads the values that lie in value files.
//!
//! Values of neighbouring keys lie here and there, in as many files as flushes have written. Where
//! they are not in memory, a reader of several asks the device for all of them before it waits for the
//! first, so that it waits about as long as for one ([WiscKey] has threads read them; here the
//! system does that in the background).
//!
//! Any thread. Nothing here takes a lock, so that a child of a fork reads like its parent.
//!
//! [WiscKey]: https://www.usenix.org/conference/fast16/technical-sessions/presentation/lu

use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::base::checksum;
use crate::base::error::{Error, ErrorKind, Result};
use crate::base::value_pointer::ValuePointer;
use crate::env::{Env, ReadAccess};
use crate::log::{payload_end, strip_headers};
use crate::table::ScanLength;

use super::filename;
use super::value_files::{OpenValueFile, UsedValueFile, ValueFile, ValueFileMap, unknown};

/// How many values scans go on to read from where they are sought.
pub(crate) type ValueScanLength = ScanLength<32>;

/// Bytes of values that the device is asked for at once, at most, but for the last one, of which it is
/// no more either.
pub(crate) const MOST_ASKED: u64 = 2 << 20;

/// Bytes between two values, at most, that are read along, unless the second has fewer.
const APART: u64 = 16 << 10;

/// Reads values, and keeps value files open.
pub(crate) struct ValueReader {
    env: Arc<dyn Env>,
    dir: PathBuf,
    /// About how many files may be open at once.
    capacity: usize,
    count: Arc<AtomicUsize>,
    /// Of scans that have waited for values.
    pub(crate) scan_length: Arc<ValueScanLength>,
}

impl ValueReader {
    pub(crate) fn new(env: Arc<dyn Env>, dir: PathBuf, capacity: usize) -> Self {
        ValueReader { env, dir, capacity, count: Arc::default(), scan_length: Arc::default() }
    }

    /// Reads the value that a table's entry points at, which is one of a version with `files`, into
    /// `value`, whose contents go.
    pub(crate) fn read(
        &self,
        files: &ValueFileMap,
        pointer: &[u8],
        value: &mut Vec<u8>,
    ) -> Result<()> {
        self.read_value(files, pointer, value, None)
    }

    /// Does what [`read`](Self::read) does, and calls `before_waiting` if the device has to be waited
    /// for: time to [ask](Self::ask) for what is wanted next.
    pub(crate) fn read_or_wait(
        &self,
        files: &ValueFileMap,
        pointer: &[u8],
        value: &mut Vec<u8>,
        before_waiting: &mut dyn FnMut(),
    ) -> Result<()> {
        self.read_value(files, pointer, value, Some(before_waiting))
    }

    fn read_value(
        &self,
        files: &ValueFileMap,
        pointer: &[u8],
        value: &mut Vec<u8>,
        before_waiting: Option<&mut dyn FnMut()>,
    ) -> Result<()> {
        value.clear();
        let pointer = ValuePointer::decode(pointer)
            .ok_or_else(|| Error::corruption("a table holds a malformed pointer to a value"))?;
        let used = files.get(pointer.file).ok_or_else(|| unknown(pointer.file))?;
        let ValuePointer { offset, length, .. } = pointer;
        let bad = |what: &str| {
            let path = self.dir.join(filename::values(pointer.file));
            let path = path.display();
            Error::corruption(format!("{path}: the value of {length} bytes at {offset} {what}"))
        };
        let end = payload_end(offset, length).filter(|&end| end <= used.size);
        let end = end.ok_or_else(|| bad("does not lie within the file"))?;
        let open = self.open(files, &used.file, end)?;
        if end > open.file.size() {
            let (found, named) = (open.file.size(), used.size);
            return Err(bad(&format!(
                "is lost: the file is {found} bytes long, the MANIFEST says {named}"
            )));
        }
        let stored = usize::try_from(end - offset).map_err(|_| bad("is too large"))?;
        // A sparse file may be larger than memory.
        value.try_reserve_exact(stored).map_err(|_| {
            let name = filename::values(pointer.file);
            Error::out_of_memory(format!("{name}: out of memory for a value of {length} bytes"))
        })?;
        value.resize(stored, 0);
        let mut in_memory = None;
        if let Some(before_waiting) = before_waiting
            && open.file.reads_in_background()
        {
            in_memory = open.file.read_in_memory(offset, value);
            if in_memory.is_none() {
                before_waiting();
            }
        }
        let read = match in_memory {
            Some(read) => read,
            None => open.file.read_at(offset, value)?,
        };
        if read != stored {
            return Err(bad("is cut off"));
        }
        strip_headers(value, offset);
        if value.len() as u64 != length || checksum::masked(value) != pointer.checksum {
            value.clear();
            return Err(bad("has a wrong checksum"));
        }
        Ok(())
    }

    /// Asks the device for the values that `pointers` lead to, [`MOST_ASKED`] bytes of them, without
    /// waiting, and returns how many of the pointers that were. A hint.
    pub(crate) fn ask(
        &self,
        files: &ValueFileMap,
        pointers: impl Iterator<Item = ValuePointer>,
    ) -> usize {
        let mut run: Option<(&UsedValueFile, Range<u64>)> = None;
        let (mut taken, mut asked) = (0, 0);
        for ValuePointer { file, offset, length, .. } in pointers {
            if asked >= MOST_ASKED {
                break;
            }
            taken += 1;
            asked += length;
            let Some(used) = files.get(file) else { continue };
            let end = payload_end(offset, length).filter(|&end| end <= used.size);
            let Some(end) = end else { continue };
            let (apart, end) = (APART.min(length), end.min(offset.saturating_add(MOST_ASKED)));
            match &mut run {
                Some((known, range))
                    if known.file.number == file
                        && offset <= range.end.saturating_add(apart)
                        && end.saturating_add(apart) >= range.start =>
                {
                    *range = range.start.min(offset)..range.end.max(end);
                }
                _ => self.ask_for(run.replace((used, offset..end))),
            }
        }
        self.ask_for(run);
        taken
    }

    fn ask_for(&self, run: Option<(&UsedValueFile, Range<u64>)>) {
        let Some((used, Range { start, end })) = run else { return };
        let known = used.file.open.load_full();
        // No file is worth being closed for a hint.
        let open = match known.filter(|open| open.file.size() >= end) {
            Some(open) => open,
            None if self.count.load(Ordering::Relaxed) >= self.capacity => return,
            None => match self.open_anew(&used.file) {
                Ok(open) => open,
                Err(_) => return,
            },
        };
        if open.file.reads_in_background() {
            open.file.will_need(start, usize::try_from(end - start).unwrap_or(usize::MAX));
        }
    }

    /// A value file that is open, with its first `needed` bytes if it has as many.
    fn open(
        &self,
        files: &ValueFileMap,
        file: &Arc<ValueFile>,
        needed: u64,
    ) -> Result<Arc<OpenValueFile>> {
        if !file.recently_used.load(Ordering::Relaxed) {
            file.recently_used.store(true, Ordering::Relaxed);
        }
        // A program's environment need not show what is appended after a file was opened.
        if let Some(open) = file.open.load_full().filter(|open| open.file.size() >= needed) {
            return Ok(open);
        }
        let opened = match self.open_anew(file) {
            Err(error) if error.is_out_of_descriptors() => {
                // Twice: the first time may do no more than clear marks.
                (0..2).for_each(|_| self.close_some(files));
                self.open_anew(file)
            }
            opened => opened,
        };
        let open = opened.map_err(|error| match error.kind() {
            ErrorKind::NotFound => {
                let path = self.dir.join(filename::values(file.number));
                let path = path.display();
                Error::corruption(format!("{path}: missing, and tables point into it"))
            }
            _ => error,
        })?;
        if self.count.load(Ordering::Relaxed) > self.capacity {
            self.close_some(files);
            file.open.store(Some(open.clone()));
        }
        Ok(open)
    }

    /// Opens a value file once more.
    fn open_anew(&self, file: &ValueFile) -> Result<Arc<OpenValueFile>> {
        let path = self.dir.join(filename::values(file.number));
        let opened = self.env.open_random(&path, ReadAccess::Pread)?;
        self.count.fetch_add(1, Ordering::Relaxed);
        let open = Arc::new(OpenValueFile { file: opened, count: self.count.clone() });
        file.open.store(Some(open.clone()));
        Ok(open)
    }

    /// Closes the files that were not used since this was last called.
    fn close_some(&self, files: &ValueFileMap) {
        for UsedValueFile { file, .. } in files.iter() {
            if !file.recently_used.swap(false, Ordering::Relaxed) {
                file.open.store(None);
            }
        }
    }
}
