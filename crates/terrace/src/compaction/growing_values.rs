//! Value files that the next outputs append to, so that their number stays small: each table may point
//! into all of them, and the MANIFEST records how much it uses of each.
//!
//! Any thread. Flushes and compactions have one of their own each, since what compactions copy is
//! older and stays longer.

use crate::base::locks::Mutex;
use crate::base::mutation::mutated;
use crate::version::edit::NewValueFile;
use crate::version::value_files::Growth;
use crate::version::version::Version;

/// A value file is full with as many bytes, whatever there is.
pub(super) const LARGEST: u64 = 256 << 20;

/// A value file is full when it has this part of the bytes of all values. So the number of files
/// grows with the logarithm of their bytes, and one whose values are all overwritten, which goes
/// without a copy, is small where there is little.
const PART: u64 = 64;

/// But no file of fewer bytes is full.
const SMALLEST: u64 = 1 << 20;

/// As many files may wait for outputs: more are seldom written at once.
const MOST: usize = 2;

/// A durable value file that an output has written or appended to.
#[derive(Debug)]
pub(crate) struct WrittenValues {
    pub(crate) record: NewValueFile,
    /// The bytes of it that the output wrote.
    pub(crate) appended: u64,
    /// The right to append, where an earlier edit has named the file.
    pub(super) growth: Option<Growth>,
}

impl WrittenValues {
    pub(super) fn abandoned(&self) -> Abandoned {
        let NewValueFile { number, size, .. } = self.record;
        match self.growth {
            None => Abandoned::File(number),
            Some(_) => Abandoned::End { number, size: size - self.appended },
        }
    }
}

/// What nobody needs of a value file whose output is given up before an edit has named it.
pub(super) enum Abandoned {
    /// All of this file.
    File(u64),
    /// What lies behind the first `size` bytes.
    End { number: u64, size: u64 },
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
    /// A file to append to. Versions keep it as long as the caller keeps its [`Growth`].
    pub(super) fn take(&self) -> Option<GrowingValueFile> {
        let mut waiting = self.0.lock();
        while let Some(file) = waiting.pop() {
            if file.growth.resume() {
                return Some(file);
            }
        }
        None
    }

    /// Takes the files of outputs whose edit made `version`. The caller holds the manifest lock, so
    /// that none goes meanwhile.
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
            let grows = version.values.get(record.number).filter(|used| used.size < full);
            let Some(used) = grows.filter(|_| waiting.len() < MOST) else {
                *growth = None;
                continue;
            };
            let growth = growth.take().unwrap_or_else(|| Growth::of(&used.file));
            growth.pause();
            waiting.push(GrowingValueFile { growth, record: *record });
        }
        drop(waiting);
        self.drop_garbage(version);
    }

    /// Lets go of the files that `version`, the newest, does not have any more, so that they can be
    /// removed, and of those that are collected: what is appended to one would be copied soon.
    pub(crate) fn drop_garbage(&self, version: &Version) {
        let is_needed = |file: &GrowingValueFile| {
            let used = version.values.get(file.record.number);
            used.is_some_and(|used| !used.is_collected() || mutated("garbage-grows"))
        };
        self.0.lock().retain(is_needed);
    }

    /// No file that is waiting grows any more.
    pub(crate) fn seal(&self) {
        self.0.lock().clear();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::base::comparator::KeyOrder;
    use crate::base::internal_key::{EntryKind, InternalOrder, encode};
    use crate::base::value_pointer::ValueUse;
    use crate::version::edit::{NewFile, VersionEdit};

    /// A version whose only table uses so many bytes of a value file of `size` bytes, nearly all of
    /// them values.
    fn version(size: u64, used: u64) -> Version {
        let key = encode(b"a", 9, EntryKind::Value);
        let table = NewFile {
            level: 0,
            number: 8,
            size: 100,
            smallest: key.clone(),
            largest: key,
            values: vec![ValueUse { file: 7, bytes: used }],
            codecs: Default::default(),
        };
        let edit = VersionEdit {
            new_files: vec![table],
            new_value_files: vec![NewValueFile { number: 7, size, value_bytes: size - 10 }],
            ..VersionEdit::default()
        };
        let order = InternalOrder::new(KeyOrder::default());
        Version::default().apply(&edit, &order, &Arc::default()).expect("a version")
    }

    fn kept(version: &Version) -> GrowingValueFiles {
        let files = GrowingValueFiles::default();
        let record = version.values.get(7).expect("is there").record();
        let mut written = WrittenValues { record, appended: record.size, growth: None };
        files.keep(version, std::iter::once(&mut written));
        files
    }

    #[test]
    fn outputs_append_to_a_file_until_it_is_full() {
        let found = |size| kept(&version(size, size - 10)).take().map(|file| file.record.size);
        assert_eq!(found(1000), Some(1000));
        assert_eq!(found(SMALLEST - 1), Some(SMALLEST - 1));
        assert_eq!(found(SMALLEST), None);
        let files = kept(&version(1000, 990));
        assert!(files.take().is_some() && files.take().is_none(), "one output at a time");
    }

    #[test]
    fn nothing_is_appended_to_garbage_and_behind_a_seal() {
        let files = kept(&version(1000, 990));
        files.drop_garbage(&version(1000, 743));
        assert_eq!(files.take().expect("three quarters of it are used").record.number, 7);
        let files = kept(&version(1000, 990));
        files.drop_garbage(&version(1000, 742));
        assert!(files.take().is_none());
        assert!(kept(&version(1000, 742)).take().is_none());
        let files = kept(&version(1000, 990));
        files.drop_garbage(&Version::default());
        assert!(files.take().is_none());
        let files = kept(&version(1000, 990));
        files.seal();
        assert!(files.take().is_none());
    }
}
