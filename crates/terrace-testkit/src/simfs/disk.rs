//! The state of a simulated disk: a tree of directories and files with everything that is not yet
//! durable.
//!
//! A plain value without threads or I/O. [`Disk::apply`] is the only way in which it changes, so
//! that replaying a recorded list of [`Step`]s gives the same disk again. Cloning is cheap: files
//! share their pages.
//!
//! # Invariants
//! 1. `entries` is what processes see: `durable` with every pending change applied in order.
//! 2. A file without an entry lives on while a pending change, a durable entry or an open handle
//!    may need it.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::file::{File, SyncEnd};

/// Which file, whatever its name is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Inode(pub(super) u64);

/// The object that a name refers to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Entry {
    File(Inode),
    Dir,
}

/// A change of one directory that is not durable yet.
#[derive(Clone, Debug)]
pub(super) enum Change {
    Link { name: PathBuf, entry: Entry },
    Unlink { name: PathBuf },
    Rename { from: PathBuf, to: PathBuf, entry: Entry },
}

/// One change of the disk, or one request to make changes durable.
#[derive(Clone, Debug)]
pub(super) enum Step {
    Create {
        path: PathBuf,
        inode: Inode,
    },
    CreateDir {
        path: PathBuf,
    },
    Link {
        path: PathBuf,
        inode: Inode,
    },
    Write {
        inode: Inode,
        offset: usize,
        data: Arc<[u8]>,
    },
    SetLen {
        inode: Inode,
        len: usize,
    },
    ZeroOut {
        inode: Inode,
    },
    /// The system writes unsynced pages back.
    Writeback {
        inode: Inode,
        pages: Vec<usize>,
    },
    /// Later writes are not part of the sync `number`.
    SyncBegin {
        inode: Inode,
        number: u64,
    },
    SyncEnd {
        inode: Inode,
        number: u64,
        end: SyncEnd,
    },
    Rename {
        from: PathBuf,
        to: PathBuf,
    },
    Remove {
        path: PathBuf,
    },
    SyncDir {
        path: PathBuf,
    },
}

#[derive(Clone, Default)]
pub(super) struct Disk {
    pub(super) entries: BTreeMap<PathBuf, Entry>,
    pub(super) durable: BTreeMap<PathBuf, Entry>,
    /// Changes since the last sync, by directory, in order. A rename between directories is in
    /// both.
    pub(super) pending: BTreeMap<PathBuf, Vec<Change>>,
    pub(super) files: BTreeMap<Inode, Arc<File>>,
    /// Files that a handle of the running system may still write.
    pub(super) open: BTreeSet<Inode>,
}

/// The directory that holds `path`.
pub(super) fn parent(path: &Path) -> &Path {
    path.parent().unwrap_or(Path::new(""))
}

impl Disk {
    /// Whether `path` is a directory. The root exists always.
    pub(super) fn is_dir(&self, path: &Path) -> bool {
        path.parent().is_none()
            || path.as_os_str().is_empty()
            || self.entries.get(path) == Some(&Entry::Dir)
    }

    pub(super) fn inode(&self, path: &Path) -> Option<Inode> {
        match self.entries.get(path) {
            Some(Entry::File(inode)) => Some(*inode),
            _ => None,
        }
    }

    pub(super) fn file(&self, path: &Path) -> Option<&Arc<File>> {
        self.files.get(&self.inode(path)?)
    }

    /// Why there is nothing at `path`, as the system's number: a directory is missing, or is a
    /// file.
    pub(super) fn why_missing(&self, path: &Path) -> i32 {
        let mut above = path.ancestors().skip(1);
        if above.any(|path| self.inode(path).is_some()) { libc::ENOTDIR } else { libc::ENOENT }
    }

    pub(super) fn children<'a>(&'a self, dir: &'a Path) -> impl Iterator<Item = &'a Path> {
        let below = self.entries.range::<Path, _>((Bound::Excluded(dir), Bound::Unbounded));
        let paths =
            below.map(|(path, _)| path.as_path()).take_while(move |path| path.starts_with(dir));
        paths.filter(move |path| parent(path) == dir)
    }

    /// Bytes in all files that exist.
    pub(super) fn used(&self) -> u64 {
        let linked: BTreeSet<Inode> =
            self.entries.values().filter_map(|entry| entry.inode()).collect();
        linked
            .union(&self.open)
            .filter_map(|inode| self.files.get(inode))
            .map(|file| file.current.len() as u64)
            .sum()
    }

    /// Carries out `step`, which the caller has checked against the current entries.
    pub(super) fn apply(&mut self, step: &Step) {
        match step {
            Step::Create { path, inode } => {
                self.files.insert(*inode, Arc::default());
                self.link(path, Entry::File(*inode));
            }
            Step::CreateDir { path } => self.link(path, Entry::Dir),
            Step::Link { path, inode } => self.link(path, Entry::File(*inode)),
            Step::Write { inode, offset, data } => {
                self.change(*inode, |file| file.write(*offset, data))
            }
            Step::SetLen { inode, len } => self.change(*inode, |file| file.set_len(*len)),
            Step::ZeroOut { inode } => self.change(*inode, File::zero_out),
            Step::Writeback { inode, pages } => self.change(*inode, |file| file.write_back(pages)),
            Step::SyncBegin { inode, number } => {
                self.change(*inode, |file| file.begin_sync(*number))
            }
            Step::SyncEnd { inode, number, end } => {
                self.change(*inode, |file| file.end_sync(*number, *end))
            }
            Step::Rename { from, to } => self.rename(from, to),
            Step::Remove { path } => {
                self.entries.remove(path);
                self.note(parent(path), Change::Unlink { name: path.clone() });
            }
            Step::SyncDir { path } => self.sync_dir(path),
        }
    }

    fn change(&mut self, inode: Inode, change: impl FnOnce(&mut File)) {
        if let Some(file) = self.files.get_mut(&inode) {
            change(Arc::make_mut(file));
        }
    }

    fn link(&mut self, path: &Path, entry: Entry) {
        self.entries.insert(path.to_owned(), entry);
        self.note(parent(path), Change::Link { name: path.to_owned(), entry });
    }

    fn rename(&mut self, from: &Path, to: &Path) {
        let Some(entry) = self.entries.remove(from) else { return };
        self.entries.insert(to.to_owned(), entry);
        let change = Change::Rename { from: from.to_owned(), to: to.to_owned(), entry };
        if parent(from) != parent(to) {
            self.note(parent(to), change.clone());
        }
        self.note(parent(from), change);
    }

    fn note(&mut self, dir: &Path, change: Change) {
        self.pending.entry(dir.to_owned()).or_default().push(change);
    }

    fn sync_dir(&mut self, dir: &Path) {
        for change in self.pending.remove(dir).unwrap_or_default() {
            change.apply_within(dir, &mut self.durable);
        }
        self.forget_unreachable();
    }

    /// Drops files that no entry, pending change or handle can bring back.
    pub(super) fn forget_unreachable(&mut self) {
        let mut live = self.open.clone();
        live.extend(self.entries.values().chain(self.durable.values()).filter_map(Entry::inode));
        live.extend(self.pending.values().flatten().filter_map(Change::inode));
        self.files.retain(|inode, _| live.contains(inode));
    }
}

impl Entry {
    pub(super) fn inode(&self) -> Option<Inode> {
        match self {
            Entry::File(inode) => Some(*inode),
            Entry::Dir => None,
        }
    }
}

impl Change {
    fn inode(&self) -> Option<Inode> {
        match self {
            Change::Link { entry, .. } | Change::Rename { entry, .. } => entry.inode(),
            Change::Unlink { .. } => None,
        }
    }

    /// Makes the part of this change that concerns `dir` in `entries`.
    pub(super) fn apply_within(&self, dir: &Path, entries: &mut BTreeMap<PathBuf, Entry>) {
        match self {
            Change::Link { name, entry } => {
                entries.insert(name.clone(), *entry);
            }
            Change::Unlink { name } => {
                entries.remove(name);
            }
            Change::Rename { from, to, entry } => {
                // Between two directories the halves become durable one by one: first a second
                // name, or no name.
                if parent(from) == dir && entries.get(from) == Some(entry) {
                    entries.remove(from);
                }
                if parent(to) == dir {
                    entries.insert(to.clone(), *entry);
                }
            }
        }
    }

    /// The two directories of a rename between directories.
    pub(super) fn crosses(&self) -> Option<(&Path, &Path)> {
        match self {
            Change::Rename { from, to, .. } if parent(from) != parent(to) => {
                Some((parent(from), parent(to)))
            }
            _ => None,
        }
    }
}
