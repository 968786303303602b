//! A file system in memory, for tests and for databases that need not outlive their process.
//!
//! Names behave as under POSIX: a rename replaces, a removed file stays for those that hold it
//! open, a lock belongs to the file and not to its name, of which it may have several. Symbolic
//! links and permissions do not exist.
//!
//! # Invariants
//! 1. Every entry's parent is a directory of the tree; the root and the empty path always are.
//! 2. Locks are taken in the order tree, then file; neither is held while anything waits.

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::ops::Bound;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use super::lock::{Holders, NoLock, busy_here};
use super::{
    CreateOptions, Env, FileLock, FileSyncer, Job, LockMode, Priority, RandomAccessFile,
    ReadAccess, WritableFile, clock, pool, timer,
};
use crate::base::error::{Error, Result};
use crate::base::fork;
use crate::base::locks::plain::Mutex;

/// A file system in memory. Clones share it; it vanishes with the last of them and of the files
/// opened in it.
///
/// Threads and clocks are the real ones. Syncs do nothing, so it says nothing about crashes.
///
/// ```
/// use terrace::MemEnv;
///
/// let env = MemEnv::new();
/// env.write("/db/CURRENT", b"MANIFEST-000001\n".to_vec());
/// assert_eq!(env.read("/db/CURRENT").unwrap(), b"MANIFEST-000001\n");
/// ```
#[derive(Clone, Default)]
pub struct MemEnv {
    tree: Arc<Mutex<Tree>>,
}

impl fmt::Debug for MemEnv {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemEnv").field("entries", &self.tree.lock().entries.len()).finish()
    }
}

/// Everything that has a name. Sorted, so that a directory's contents follow it.
#[derive(Default)]
struct Tree {
    entries: BTreeMap<PathBuf, Node>,
}

#[derive(Clone)]
enum Node {
    Directory,
    File(Arc<MemFile>),
}

/// A file, whatever its name.
#[derive(Default)]
struct MemFile {
    /// Shared with readers that asked for a mapping: they keep the bytes as they were when they
    /// opened the file.
    data: Mutex<Arc<Vec<u8>>>,
    holders: Mutex<Holders>,
}

impl MemEnv {
    /// An empty file system.
    pub fn new() -> Self {
        Self::default()
    }

    /// The contents of a file; `None` if there is no file of that name.
    ///
    /// ```
    /// # use terrace::*;
    /// let env = MemEnv::new();
    /// assert_eq!(env.read("/nothing"), None);
    /// # Ok::<_, terrace::Error>(())
    /// ```
    pub fn read(&self, path: impl AsRef<Path>) -> Option<Vec<u8>> {
        match self.tree.lock().entries.get(&normal(path.as_ref())) {
            Some(Node::File(file)) => Some(file.data.lock().to_vec()),
            _ => None,
        }
    }

    /// Gives a file new contents, creating it and its directories if they are missing. A mapping
    /// of the file keeps the old ones.
    ///
    /// ```
    /// # use terrace::*;
    /// let env = MemEnv::new();
    /// env.write("/db/notes", b"seven".to_vec());
    /// assert_eq!(env.read("/db/notes").as_deref(), Some(&b"seven"[..]));
    /// # Ok::<_, terrace::Error>(())
    /// ```
    ///
    /// # Panics
    /// If the path or the name of one of its directories belongs to something else.
    pub fn write(&self, path: impl AsRef<Path>, contents: Vec<u8>) {
        let path = normal(path.as_ref());
        let mut tree = self.tree.lock();
        if let Some(parent) = path.parent() {
            assert!(tree.create_dir(parent).is_ok(), "{}: not a directory", parent.display());
        }
        let node = tree.entries.entry(path).or_insert_with(|| Node::File(Arc::default()));
        let Node::File(file) = node else { panic!("a directory is no file") };
        *file.data.lock() = Arc::new(contents);
    }

    fn file(&self, operation: &str, path: &Path) -> Result<Arc<MemFile>> {
        match self.tree.lock().entries.get(&normal(path)) {
            Some(Node::File(file)) => Ok(file.clone()),
            Some(Node::Directory) => Err(system_error(operation, path, libc::EISDIR)),
            None => Err(system_error(operation, path, libc::ENOENT)),
        }
    }
}

impl Tree {
    /// Whether a directory of that name exists. Takes normal paths, as everything here does.
    fn is_dir(&self, path: &Path) -> bool {
        is_root(path) || matches!(self.entries.get(path), Some(Node::Directory))
    }

    /// Why an entry of that name cannot be created, if so.
    fn parent_fault(&self, path: &Path) -> Option<i32> {
        let parent = path.parent()?;
        match self.entries.get(parent) {
            _ if self.is_dir(parent) => None,
            Some(_) => Some(libc::ENOTDIR),
            None => Some(libc::ENOENT),
        }
    }

    fn create_dir(&mut self, path: &Path) -> std::result::Result<(), i32> {
        let missing: Vec<&Path> =
            path.ancestors().take_while(|ancestor| !self.is_dir(ancestor)).collect();
        if missing.iter().any(|ancestor| self.entries.contains_key(*ancestor)) {
            return Err(libc::ENOTDIR);
        }
        self.entries
            .extend(missing.into_iter().map(|ancestor| (ancestor.to_path_buf(), Node::Directory)));
        Ok(())
    }

    /// The entries below a directory, at any depth.
    fn below<'a>(&'a self, dir: &'a Path) -> impl Iterator<Item = &'a PathBuf> {
        let rooted = dir.has_root();
        self.entries
            .range::<Path, _>((Bound::Excluded(dir), Bound::Unbounded))
            .map(|(path, _)| path)
            .take_while(move |path| path.starts_with(dir))
            .filter(move |path| path.has_root() == rooted)
    }
}

/// A name without `.`, doubled or trailing separators.
fn normal(path: &Path) -> PathBuf {
    path.components().filter(|part| !matches!(part, std::path::Component::CurDir)).collect()
}

fn is_root(path: &Path) -> bool {
    path.as_os_str().is_empty() || path.parent().is_none()
}

fn system_error(operation: &str, path: &Path, code: i32) -> Error {
    Error::io(operation, path, io::Error::from_raw_os_error(code))
}

/// A file opened for reading in place: it sees what is appended later.
struct MemReader {
    file: Arc<MemFile>,
    size: u64,
}

impl RandomAccessFile for MemReader {
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<usize> {
        Ok(copy_from(&self.file.data.lock(), offset, buffer))
    }

    fn size(&self) -> u64 {
        self.size
    }
}

/// A file as it was when it was opened.
struct MemMapping(Arc<Vec<u8>>);

impl RandomAccessFile for MemMapping {
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<usize> {
        Ok(copy_from(&self.0, offset, buffer))
    }

    fn size(&self) -> u64 {
        self.0.len() as u64
    }

    fn mapped(&self) -> Option<&[u8]> {
        Some(&self.0)
    }
}

fn copy_from(data: &[u8], offset: u64, buffer: &mut [u8]) -> usize {
    let rest = usize::try_from(offset).ok().and_then(|start| data.get(start..)).unwrap_or_default();
    let length = rest.len().min(buffer.len());
    buffer[..length].copy_from_slice(&rest[..length]);
    length
}

struct MemWriter(Arc<MemFile>);

impl WritableFile for MemWriter {
    fn append(&mut self, data: &[u8]) -> Result<()> {
        // Copies only if a reader has the file mapped.
        Arc::make_mut(&mut self.0.data.lock()).extend_from_slice(data);
        Ok(())
    }

    fn sync(&mut self) -> Result<()> {
        Ok(())
    }

    fn syncer(&self) -> Option<Arc<dyn FileSyncer>> {
        Some(Arc::new(MemSyncer))
    }

    fn close(self: Box<Self>) -> Result<()> {
        Ok(())
    }
}

struct MemSyncer;

impl FileSyncer for MemSyncer {
    fn sync(&self) -> Result<()> {
        Ok(())
    }
}

struct MemLock {
    file: Arc<MemFile>,
    mode: LockMode,
}

impl FileLock for MemLock {}

impl Drop for MemLock {
    fn drop(&mut self) {
        self.file.holders.lock().remove(self.mode);
    }
}

impl Env for MemEnv {
    fn open_random(&self, path: &Path, access: ReadAccess) -> Result<Arc<dyn RandomAccessFile>> {
        let file = self.file("open", path)?;
        let data = file.data.lock().clone();
        match access {
            ReadAccess::Auto | ReadAccess::Mapped => Ok(Arc::new(MemMapping(data))),
            ReadAccess::Pread => Ok(Arc::new(MemReader { file, size: data.len() as u64 })),
        }
    }

    fn create(&self, path: &Path, options: CreateOptions) -> Result<Box<dyn WritableFile>> {
        let name = normal(path);
        let mut tree = self.tree.lock();
        match tree.entries.get(&name) {
            Some(_) if options.exclusive => Err(system_error("create", path, libc::EEXIST)),
            Some(Node::File(file)) => {
                *file.data.lock() = Arc::default();
                Ok(Box::new(MemWriter(file.clone())))
            }
            None if !is_root(&name) => {
                if let Some(code) = tree.parent_fault(&name) {
                    return Err(system_error("create", path, code));
                }
                let file = Arc::<MemFile>::default();
                tree.entries.insert(name, Node::File(file.clone()));
                Ok(Box::new(MemWriter(file)))
            }
            _ => Err(system_error("create", path, libc::EISDIR)),
        }
    }

    fn open_append(&self, path: &Path) -> Result<Box<dyn WritableFile>> {
        Ok(Box::new(MemWriter(self.file("open for appending", path)?)))
    }

    fn exists(&self, path: &Path) -> Result<bool> {
        let name = normal(path);
        Ok(is_root(&name) || self.tree.lock().entries.contains_key(&name))
    }

    fn list(&self, dir: &Path) -> Result<Vec<String>> {
        let name = normal(dir);
        let tree = self.tree.lock();
        if !tree.is_dir(&name) {
            let code = if tree.entries.contains_key(&name) { libc::ENOTDIR } else { libc::ENOENT };
            return Err(system_error("list", dir, code));
        }
        let children = tree.below(&name).filter(|path| path.parent() == Some(&name));
        Ok(children.filter_map(|path| Some(path.file_name()?.to_str()?.to_owned())).collect())
    }

    fn remove(&self, path: &Path) -> Result<()> {
        let name = normal(path);
        let mut tree = self.tree.lock();
        if tree.is_dir(&name) {
            return Err(system_error("remove", path, libc::EISDIR));
        }
        tree.entries
            .remove(&name)
            .map(drop)
            .ok_or_else(|| system_error("remove", path, libc::ENOENT))
    }

    fn create_dir(&self, path: &Path, _mode: u32) -> Result<()> {
        self.tree
            .lock()
            .create_dir(&normal(path))
            .map_err(|code| system_error("create directory", path, code))
    }

    fn remove_dir(&self, path: &Path) -> Result<()> {
        let name = normal(path);
        let mut tree = self.tree.lock();
        let code = match tree.entries.get(&name) {
            None if is_root(&name) => libc::EBUSY,
            None => libc::ENOENT,
            Some(Node::File(_)) => libc::ENOTDIR,
            Some(Node::Directory) if tree.below(&name).next().is_some() => libc::ENOTEMPTY,
            Some(Node::Directory) => {
                tree.entries.remove(&name);
                return Ok(());
            }
        };
        Err(system_error("remove directory", path, code))
    }

    fn file_size(&self, path: &Path) -> Result<u64> {
        Ok(self.file("stat", path)?.data.lock().len() as u64)
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<()> {
        let (old, new) = (normal(from), normal(to));
        let mut tree = self.tree.lock();
        let fault = |code| {
            Err(system_error("rename", from, code).context(format_args!("to {}", to.display())))
        };
        let Some(node) = tree.entries.get(&old).cloned() else { return fault(libc::ENOENT) };
        if let Some(code) = tree.parent_fault(&new) {
            return fault(code);
        }
        match (&node, tree.entries.get(&new)) {
            _ if old == new => return Ok(()),
            (Node::File(file), Some(Node::File(there))) if Arc::ptr_eq(file, there) => {
                return Ok(());
            }
            (Node::File(_), Some(Node::Directory)) => return fault(libc::EISDIR),
            (Node::Directory, Some(Node::File(_))) => return fault(libc::ENOTDIR),
            (Node::Directory, _) if new.starts_with(&old) => return fault(libc::EINVAL),
            (Node::Directory, Some(_)) if tree.below(&new).next().is_some() => {
                return fault(libc::ENOTEMPTY);
            }
            _ => {}
        }
        let moved: Vec<PathBuf> = tree.below(&old).cloned().collect();
        for path in moved {
            if let (Ok(rest), Some(node)) = (path.strip_prefix(&old), tree.entries.remove(&path)) {
                tree.entries.insert(new.join(rest), node);
            }
        }
        tree.entries.remove(&old);
        tree.entries.insert(new, node);
        Ok(())
    }

    fn has_other_names(&self, path: &Path) -> Result<bool> {
        let file = self.file("stat", path)?;
        let is_it = |node: &&Node| matches!(node, Node::File(other) if Arc::ptr_eq(other, &file));
        Ok(self.tree.lock().entries.values().filter(is_it).count() > 1)
    }

    fn link(&self, from: &Path, to: &Path) -> Result<()> {
        let (old, new) = (normal(from), normal(to));
        let mut tree = self.tree.lock();
        let code = match tree.entries.get(&old).cloned() {
            None if !is_root(&old) => libc::ENOENT,
            _ if tree.is_dir(&new) || tree.entries.contains_key(&new) => libc::EEXIST,
            Some(node @ Node::File(_)) => match tree.parent_fault(&new) {
                Some(code) => code,
                None => {
                    tree.entries.insert(new, node);
                    return Ok(());
                }
            },
            _ => libc::EPERM,
        };
        Err(system_error("link", from, code).context(format_args!("to {}", to.display())))
    }

    fn sync_dir(&self, dir: &Path) -> Result<()> {
        match self.tree.lock().is_dir(&normal(dir)) {
            true => Ok(()),
            false => Err(system_error("sync directory", dir, libc::ENOENT)),
        }
    }

    fn lock(&self, path: &Path, mode: LockMode) -> Result<Box<dyn FileLock>> {
        let file = match (mode, self.file("lock", path)) {
            (_, Ok(file)) => file,
            (LockMode::Shared, Err(error)) if error.raw_os_error() == Some(libc::ENOENT) => {
                return Ok(Box::new(NoLock));
            }
            (LockMode::Exclusive, Err(error)) if error.raw_os_error() == Some(libc::ENOENT) => {
                // If another thread creates it in between, that one is locked.
                let created = self.create(path, CreateOptions::default());
                created.map(drop).or_else(|e| {
                    if e.raw_os_error() == Some(libc::EEXIST) { Ok(()) } else { Err(e) }
                })?;
                self.file("lock", path)?
            }
            (_, Err(error)) => return Err(error),
        };
        let mut holders = file.holders.lock();
        if !holders.allow(mode) {
            return Err(busy_here(path));
        }
        holders.add(mode);
        drop(holders);
        Ok(Box::new(MemLock { file, mode }))
    }

    fn schedule_after(&self, delay: Duration, job: Job) -> bool {
        timer::schedule_after(delay, job)
    }

    fn schedule(&self, priority: Priority, job: Job) {
        pool::shared().schedule(priority, job);
    }

    fn set_background_threads(&self, count: usize) -> Result<()> {
        pool::shared().grow(count)
    }

    fn now_micros(&self) -> u64 {
        clock::now_micros()
    }

    fn wall_clock(&self) -> Duration {
        clock::wall_clock()
    }

    fn sleep(&self, duration: Duration) {
        std::thread::sleep(duration);
    }

    fn process_generation(&self) -> u64 {
        fork::generation()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::error::ErrorKind;

    fn file(env: &MemEnv, path: &str, data: &[u8]) {
        let mut file = env.create(Path::new(path), CreateOptions::default()).unwrap();
        file.append(data).unwrap();
        file.close().unwrap();
    }

    fn names(env: &MemEnv, dir: &str) -> Vec<String> {
        env.list(Path::new(dir)).unwrap()
    }

    fn code<T>(result: Result<T>) -> Option<i32> {
        result.err().and_then(|error| error.raw_os_error())
    }

    #[test]
    fn open_files_survive_names() {
        let env = MemEnv::new();
        env.create_dir(Path::new("db"), 0o755).unwrap();
        file(&env, "db/one", b"first");
        file(&env, "./db//two/", b"second");
        let mapped = env.open_random(Path::new("db/two"), ReadAccess::Mapped).unwrap();
        let live = env.open_random(Path::new("db/one"), ReadAccess::Pread).unwrap();
        env.rename(Path::new("db/one"), Path::new("db/two")).unwrap();
        assert_eq!(env.read("db/two").unwrap(), b"first");
        assert_eq!(mapped.mapped(), Some(&b"second"[..]));
        let mut writer = env.open_append(Path::new("db/two")).unwrap();
        env.remove(Path::new("db/two")).unwrap();
        writer.append(b" and more").unwrap();
        writer.syncer().unwrap().sync().unwrap();
        let mut buffer = [0; 20];
        let count = live.read_at(2, &mut buffer).unwrap();
        assert_eq!(&buffer[..count], b"rst and more");
        assert_eq!((live.size(), live.read_at(u64::MAX, &mut buffer).unwrap()), (5, 0));
        assert!(names(&env, "db").is_empty() && env.read("db/two").is_none());
    }

    #[test]
    fn names_fail_as_they_do_under_posix() {
        let env = MemEnv::new();
        let path = Path::new("/db/file");
        assert_eq!(code(env.create(path, CreateOptions::default())), Some(libc::ENOENT));
        env.create_dir(Path::new("/db/sub/deep"), 0o755).unwrap();
        file(&env, "/db/file", b"x");
        assert_eq!(code(env.create(path, CreateOptions::default())), Some(libc::EEXIST));
        assert_eq!(
            code(env.create(&path.join("x"), CreateOptions::default())),
            Some(libc::ENOTDIR)
        );
        assert_eq!(code(env.create_dir(&path.join("x"), 0o755)), Some(libc::ENOTDIR));
        assert_eq!(code(env.open_random(Path::new("/db"), ReadAccess::Pread)), Some(libc::EISDIR));
        assert_eq!(code(env.remove(Path::new("/db/sub"))), Some(libc::EISDIR));
        assert_eq!(code(env.remove_dir(Path::new("/db/sub"))), Some(libc::ENOTEMPTY));
        assert_eq!(code(env.list(path)), Some(libc::ENOTDIR));
        assert_eq!(env.file_size(Path::new("/db/none")).unwrap_err().kind(), ErrorKind::NotFound);
        assert_eq!(code(env.sync_dir(Path::new("/none"))), Some(libc::ENOENT));
        assert_eq!(names(&env, "/"), ["db"]);
        assert_eq!(names(&env, "/db"), ["file", "sub"]);
        let reuse = CreateOptions { exclusive: false, ..CreateOptions::default() };
        env.create(path, reuse).unwrap();
        assert_eq!(env.file_size(path).unwrap(), 0);
        env.remove_dir(Path::new("/db/sub/deep")).unwrap();
        assert!(
            !env.exists(Path::new("/db/sub/deep")).unwrap()
                && env.exists(Path::new("/db/sub/.")).unwrap()
        );
    }

    #[test]
    fn directories_move_with_their_contents() {
        let env = MemEnv::new();
        for path in ["/a/b/one", "/a/b/c/two", "/a/bb", "/ab/x"] {
            env.write(path, path.into());
        }
        env.create_dir(Path::new("/empty"), 0o755).unwrap();
        assert_eq!(code(env.rename(Path::new("/a"), Path::new("/a/b/in"))), Some(libc::EINVAL));
        assert_eq!(code(env.rename(Path::new("/empty"), Path::new("/a"))), Some(libc::ENOTEMPTY));
        env.rename(Path::new("/a/b"), Path::new("/empty")).unwrap();
        assert_eq!(names(&env, "/a"), ["bb"]);
        assert_eq!(names(&env, "/empty"), ["c", "one"]);
        assert_eq!(env.read("/empty/c/two").unwrap(), b"/a/b/c/two");
        assert_eq!(names(&env, "/"), ["a", "ab", "empty"]);
    }

    #[test]
    fn locks_are_exclusive_or_shared_and_belong_to_the_file() {
        let env = MemEnv::new();
        let path = Path::new("LOCK");
        drop(env.lock(path, LockMode::Shared).unwrap());
        assert!(!env.exists(path).unwrap());
        let writer = env.lock(path, LockMode::Exclusive).unwrap();
        for mode in [LockMode::Exclusive, LockMode::Shared] {
            assert_eq!(env.clone().lock(path, mode).err().unwrap().kind(), ErrorKind::Busy);
        }
        env.remove(path).unwrap();
        assert!(env.lock(path, LockMode::Exclusive).is_ok());
        drop(writer);
        let readers =
            [env.lock(path, LockMode::Shared).unwrap(), env.lock(path, LockMode::Shared).unwrap()];
        assert!(env.lock(path, LockMode::Exclusive).is_err());
        drop(readers);
        assert!(env.lock(path, LockMode::Exclusive).is_ok());
    }
}
