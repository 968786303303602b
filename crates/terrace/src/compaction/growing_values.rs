//! Value files that the next outputs go on with, so that their number stays small: each table may
//! point into all of them, and the MANIFEST records how much it uses of each.
//!
//! Any thread. Flushes and compactions have one of their own each, since what compactions copy is
//! older and stays longer.

use crate::base::locks::Mutex;
use crate::version::edit::NewValueFile;
use crate::version::value_files::Growth;
use crate::version::version::Version;

/// Bytes of a value file before the next one begins, whatever there is.
pub(super) const LARGEST: u64 = 256 << 20;

/// A value file is full when it has this part of all bytes of values: so there are about as many
/// files, and a file that dies as a whole, with what it holds, is small where there is little.
const PART: u64 = 64;

/// But it has as many bytes before it is full.
const SMALLEST: u64 = 1 << 20;

/// As many files may wait for outputs: more are seldom written at once.
const MOST: usize = 2;

/// A durable value file, or as much of one as is durable.
#[derive(Debug)]
pub(crate) struct WrittenValues {
    pub(crate) record: NewValueFile,
    /// Of it, what is new.
    pub(crate) appended: u64,
    /// Of a file that an earlier edit named.
    pub(super) growth: Option<Growth>,
}

impl WrittenValues {
    /// The number of the file if no edit has named it.
    pub(super) fn new_file(&self) -> Option<u64> {
        self.growth.is_none().then_some(self.record.number)
    }
}

/// A value file that is not full, as the newest version knows it.
pub(super) struct GrowingValueFile {
    pub(super) growth: Growth,
    pub(super) record: NewValueFile,
}

/// See the [module](self).
#[derive(Default)]
pub(crate) struct GrowingValueFiles(Mutex<Vec<GrowingValueFile>>);

impl GrowingValueFiles {
    /// A file to go on with. Versions keep it as long as the caller keeps its [`Growth`].
    pub(super) fn take(&self) -> Option<GrowingValueFile> {
        let mut waiting = self.0.lock();
        while let Some(file) = waiting.pop() {
            if file.growth.resume() {
                return Some(file);
            }
        }
        None
    }

    /// Takes the files of outputs whose edit made `version`, under the manifest lock, so that none
    /// goes meanwhile.
    pub(crate) fn keep<'a>(
        &self,
        version: &Version,
        written: impl Iterator<Item = &'a mut WrittenValues>,
    ) {
        let mut written = written.peekable();
        if written.peek().is_none() {
            return;
        }
        let full = (version.values.value_bytes() / PART).clamp(SMALLEST, LARGEST);
        let mut waiting = self.0.lock();
        for WrittenValues { record, growth, .. } in written {
            let Some(used) = version.values.get(record.number) else { continue };
            // What is appended to one that is mostly garbage would be copied soon.
            if used.size >= full || used.is_mostly_garbage() || waiting.len() >= MOST {
                *growth = None;
                continue;
            }
            let growth = growth.take().unwrap_or_else(|| Growth::of(&used.file));
            growth.pause();
            waiting.push(GrowingValueFile { growth, record: *record });
        }
    }

    /// Lets go of the files that no table uses any more, so that they can be removed.
    pub(crate) fn forget_obsolete(&self) {
        let mut waiting = self.0.lock();
        let obsolete: Vec<_> = waiting.extract_if(.., |file| file.growth.is_over()).collect();
        drop(waiting);
        drop(obsolete);
    }
}
