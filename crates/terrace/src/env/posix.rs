//! The real system.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

#[cfg(all(target_os = "linux", not(terrace_portable)))]
use super::mapped_log::MappedLog;
use super::mapped_table::MappedTable;
use super::posix_file::{self, PosixRandomFile, PosixWritableFile, SyncedFile};
use super::{
    CreateOptions, Env, FileLock, Job, LockMode, Priority, RandomAccessFile, ReadAccess,
    WritableFile, clock, filesystem, lock, pool, system_call, timer,
};
use crate::base::error::{Error, Result};
use crate::base::fork;

/// The operating system's files, locks, clocks and threads.
///
/// There is one per process, so that all databases share their background threads.
///
/// ```
/// # use terrace::*;
/// use std::path::Path;
///
/// let env = PosixEnv::shared(); // one for the process, and its background threads
/// assert!(env.exists(Path::new("/"))?);
/// # Ok::<_, terrace::Error>(())
/// ```
#[derive(Debug)]
pub struct PosixEnv(());

impl PosixEnv {
    /// The process's instance.
    pub fn shared() -> Arc<dyn Env> {
        static SHARED: LazyLock<Arc<PosixEnv>> = LazyLock::new(|| Arc::new(PosixEnv(())));
        SHARED.clone()
    }
}

impl Env for PosixEnv {
    fn open_random(&self, path: &Path, access: ReadAccess) -> Result<Arc<dyn RandomAccessFile>> {
        let file = posix_file::open_for_read(path)?;
        let size = file.metadata().map_err(|e| Error::io("stat", path, e))?.len();
        let maps = match access {
            ReadAccess::Auto => system_call::CHECKS_MAPPINGS,
            ReadAccess::Mapped => true,
            ReadAccess::Pread => false,
        };
        if maps
            && filesystem::may_map_tables(&file)
            && let Some(mapped) = MappedTable::new(&file, path, size)
        {
            return Ok(Arc::new(mapped));
        }
        Ok(Arc::new(PosixRandomFile::new(file, path, size)))
    }

    fn create(&self, path: &Path, options: CreateOptions) -> Result<Box<dyn WritableFile>> {
        let file = posix_file::create(path, options)?;
        Ok(Box::new(PosixWritableFile::new(SyncedFile::new(file, path))))
    }

    fn create_log(
        &self,
        path: &Path,
        options: CreateOptions,
        expected_size: u64,
    ) -> Result<Box<dyn WritableFile>> {
        let file = SyncedFile::new(posix_file::create(path, options)?, path);
        #[cfg(all(target_os = "linux", not(terrace_portable)))]
        if let Some(log) = MappedLog::new(&file, expected_size) {
            return Ok(Box::new(log));
        }
        let _ = expected_size;
        Ok(Box::new(PosixWritableFile::new(file)))
    }

    fn open_append(&self, path: &Path) -> Result<Box<dyn WritableFile>> {
        let file =
            posix_file::open_regular(OpenOptions::new().append(true), "open for appending", path)?;
        Ok(Box::new(PosixWritableFile::new(SyncedFile::new(file, path))))
    }

    fn exists(&self, path: &Path) -> Result<bool> {
        match fs::symlink_metadata(path) {
            Ok(_) => Ok(true),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
            Err(error) => Err(Error::io("stat", path, error)),
        }
    }

    fn list(&self, dir: &Path) -> Result<Vec<String>> {
        let entries = fs::read_dir(here_if_empty(dir)).map_err(|e| Error::io("list", dir, e))?;
        let mut names = Vec::new();
        for entry in entries {
            let entry = entry.map_err(|e| Error::io("list", dir, e))?;
            names.extend(entry.file_name().into_string());
        }
        Ok(names)
    }

    fn remove(&self, path: &Path) -> Result<()> {
        fs::remove_file(path).map_err(|e| Error::io("remove", path, e))
    }

    fn create_dir(&self, path: &Path, mode: u32) -> Result<()> {
        // From the first missing ancestor down. Each new name is made durable in its parent, which
        // the caller, which knows only the last directory, could not do.
        let mut missing: Vec<PathBuf> = Vec::new();
        for ancestor in path.ancestors().filter(|ancestor| !ancestor.as_os_str().is_empty()) {
            match fs::metadata(ancestor) {
                Ok(info) if info.is_dir() => break,
                Ok(_) => {
                    let error = io::Error::from_raw_os_error(libc::ENOTDIR);
                    return Err(Error::io("create directory", ancestor, error));
                }
                Err(error) if error.kind() == ErrorKind::NotFound => missing.push(ancestor.into()),
                Err(error) => return Err(Error::io("create directory", ancestor, error)),
            }
        }
        for dir in missing.iter().rev() {
            match DirBuilder::new().mode(mode).create(dir) {
                Ok(()) => match self.sync_dir(dir.parent().unwrap_or(dir)) {
                    // A parent that may be written and not read cannot be synced.
                    Err(e) if matches!(e.raw_os_error(), Some(libc::EACCES | libc::EPERM)) => {}
                    done => done?,
                },
                // Another process was faster.
                Err(error) if error.kind() == ErrorKind::AlreadyExists && dir.is_dir() => {}
                Err(error) => return Err(Error::io("create directory", dir, error)),
            }
        }
        Ok(())
    }

    fn remove_dir(&self, path: &Path) -> Result<()> {
        fs::remove_dir(path).map_err(|e| Error::io("remove directory", path, e))
    }

    fn file_size(&self, path: &Path) -> Result<u64> {
        Ok(fs::symlink_metadata(path).map_err(|e| Error::io("stat", path, e))?.len())
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<()> {
        fs::rename(from, to)
            .map_err(|e| Error::io("rename", from, e).context(format_args!("to {}", to.display())))
    }

    fn true_path(&self, dir: &Path) -> PathBuf {
        fs::canonicalize(here_if_empty(dir)).unwrap_or_else(|_| dir.to_owned())
    }

    fn has_other_names(&self, path: &Path) -> Result<bool> {
        let metadata = fs::metadata(path).map_err(|error| Error::io("stat", path, error))?;
        Ok(metadata.nlink() > 1)
    }

    fn link(&self, from: &Path, to: &Path) -> Result<()> {
        fs::hard_link(from, to)
            .map_err(|e| Error::io("link", from, e).context(format_args!("to {}", to.display())))
    }

    fn sync_dir(&self, dir: &Path) -> Result<()> {
        let handle =
            File::open(here_if_empty(dir)).map_err(|e| Error::io("open directory", dir, e))?;
        match handle.sync_all() {
            // A file system that has no notion of it.
            Err(error) if error.raw_os_error() == Some(libc::EINVAL) => Ok(()),
            done => done.map_err(|e| Error::io("sync directory", dir, e)),
        }
    }

    fn lock(&self, path: &Path, mode: LockMode) -> Result<Box<dyn FileLock>> {
        lock::lock(path, mode)
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

    #[cfg(all(target_os = "linux", not(terrace_portable)))]
    fn available_memory(&self) -> Option<u64> {
        super::available_memory::available_memory()
    }

    fn process_generation(&self) -> u64 {
        fork::generation()
    }
}

/// The parent of a bare name is the empty path, which the system does not take for the current
/// directory.
fn here_if_empty(dir: &Path) -> &Path {
    if dir.as_os_str().is_empty() { Path::new(".") } else { dir }
}

#[cfg(test)]
mod tests {
    use std::io::IoSlice;
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;
    use crate::base::error::ErrorKind as Kind;

    fn write(env: &dyn Env, path: &Path, data: &[u8]) {
        let mut file = env.create(path, CreateOptions::default()).unwrap();
        file.append(data).unwrap();
        file.sync().unwrap();
        file.close().unwrap();
    }

    #[test]
    fn files_mapped_and_not_read_the_same() {
        let dir = tempfile::tempdir().unwrap();
        let env = PosixEnv::shared();
        let path = dir.path().join("000001.ldb");
        write(&*env, &path, b"0123456789");
        let mut file = env.open_append(&path).unwrap();
        let syncer = file.syncer().unwrap();
        file.append(b"ab").unwrap();
        syncer.sync().unwrap();
        file.start_writeback(0, 12);
        file.close().unwrap();
        syncer.sync().unwrap();
        for access in [ReadAccess::Mapped, ReadAccess::Pread] {
            let file = env.open_random(&path, access).unwrap();
            assert_eq!(
                file.mapped(),
                (access == ReadAccess::Mapped).then_some(&b"0123456789ab"[..])
            );
            assert_eq!(file.size(), 12);
            let mut buffer = [0; 5];
            for (offset, expected) in
                [(0, &b"01234"[..]), (9, b"9ab"), (12, b""), (u64::MAX, b""), (1 << 40, b"")]
            {
                if access == ReadAccess::Pread && offset == u64::MAX {
                    continue;
                }
                let count = file.read_at(offset, &mut buffer).unwrap();
                assert_eq!(&buffer[..count], expected, "{access:?} at {offset}");
            }
            file.will_need(3, 100);
            file.will_need(100, 100);
        }
        assert_eq!(env.file_size(&path).unwrap(), 12);
    }

    #[test]
    fn any_number_of_parts_is_one_append() {
        let dir = tempfile::tempdir().unwrap();
        let env = PosixEnv::shared();
        let path = dir.path().join("000001.ldb");
        let mut file = env.create(&path, CreateOptions::default()).unwrap();
        let bytes: Vec<u8> = (0..30_000_u32).map(|at| (at / 7) as u8).collect();
        file.append_parts(&mut bytes.chunks(7).map(IoSlice::new).collect::<Vec<_>>(), &[]).unwrap();
        file.append_parts(&mut [], &[]).unwrap();
        file.append_parts(&mut [IoSlice::new(&[]), IoSlice::new(b"end"), IoSlice::new(&[])], &[])
            .unwrap();
        file.close().unwrap();
        assert!(fs::read(&path).unwrap() == [&bytes[..], b"end"].concat());
    }

    #[test]
    fn an_empty_file_is_not_mapped() {
        let dir = tempfile::tempdir().unwrap();
        let env = PosixEnv::shared();
        let path = dir.path().join("empty");
        write(&*env, &path, b"");
        let file = env.open_random(&path, ReadAccess::Mapped).unwrap();
        assert_eq!((file.size(), file.mapped()), (0, None));
        assert_eq!(file.read_at(0, &mut [0; 4]).unwrap(), 0);
    }

    #[test]
    fn names_are_refused_with_reasons() {
        let dir = tempfile::tempdir().unwrap();
        let env = PosixEnv::shared();
        let (file, link, pipe) =
            (dir.path().join("file"), dir.path().join("link"), dir.path().join("pipe"));
        write(&*env, &file, b"x");
        symlink(&file, &link).unwrap();
        rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, 0o600.into(), 0)
            .unwrap();
        let refused = |result: Result<()>, word: &str| {
            let error = result.unwrap_err();
            assert!(error.message().contains(word) && error.kind() == Kind::Io, "{error}");
        };
        let reuse = CreateOptions { exclusive: false, ..CreateOptions::default() };
        refused(env.open_random(&link, ReadAccess::Mapped).map(drop), "symbolic link");
        refused(env.open_append(&link).map(drop), "symbolic link");
        refused(env.create(&link, reuse).map(drop), "symbolic link");
        refused(env.lock(&link, LockMode::Exclusive).map(drop), "symbolic link");
        refused(env.open_random(&pipe, ReadAccess::Pread).map(drop), "regular");
        refused(env.open_random(dir.path(), ReadAccess::Pread).map(drop), "regular");
        assert_eq!(
            env.create(&file, CreateOptions::default()).err().unwrap().raw_os_error(),
            Some(libc::EEXIST)
        );
        assert_eq!(
            env.open_random(&dir.path().join("no"), ReadAccess::Pread).err().unwrap().kind(),
            Kind::NotFound
        );
        assert!(env.exists(&link).unwrap() && !env.exists(&dir.path().join("no")).unwrap());
        env.create(&file, reuse).unwrap().close().unwrap();
        assert_eq!(env.file_size(&file).unwrap(), 0);
    }

    #[test]
    fn directories_come_and_go() {
        let dir = tempfile::tempdir().unwrap();
        let env = PosixEnv::shared();
        let deep = dir.path().join("a/b/c");
        env.create_dir(&deep, 0o750).unwrap();
        env.create_dir(&deep, 0o750).unwrap();
        assert_eq!(fs::metadata(&deep).unwrap().permissions().mode() & 0o027, 0);
        let (one, two) = (deep.join("one"), deep.join("two"));
        write(&*env, &one, b"1");
        write(&*env, &two, b"2");
        env.rename(&one, &two).unwrap();
        env.sync_dir(&deep).unwrap();
        assert_eq!(env.list(&deep).unwrap(), ["two"]);
        assert!(env.rename(&one, &two).unwrap_err().kind() == Kind::NotFound);
        assert!(env.create_dir(&two.join("x"), 0o755).is_err());
        assert!(env.remove_dir(&deep).is_err());
        env.remove(&two).unwrap();
        env.remove_dir(&deep).unwrap();
        env.sync_dir(Path::new("")).unwrap();
    }
}
