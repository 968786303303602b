//! The file system as an [`Env`].

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use terrace::{
    CreateOptions, Env, Error, FileLock, Job, LockMode, Priority, RandomAccessFile, ReadAccess,
    Result, WritableFile,
};

use super::disk::{Entry, Inode, Step, parent};
use super::fault::OpKind;
use super::handles::{Lock, NoLock, Reader, Writer};
use super::{LogKind, SimFs, late, refuse};

impl Env for SimFs {
    fn open_random(&self, path: &Path, access: ReadAccess) -> Result<Arc<dyn RandomAccessFile>> {
        let state = &mut *self.state();
        let fault = state.begin(OpKind::Open, "open", path)?;
        late(fault, "open", path)?;
        let Some(file) = state.disk.file(path) else {
            let code =
                if state.disk.is_dir(path) { libc::EISDIR } else { state.disk.why_missing(path) };
            return Err(refuse("open", path, code));
        };
        let mapped =
            (state.serve_mapped && access == ReadAccess::Mapped).then(|| file.current.to_vec());
        Ok(Arc::new(Reader::new(self.clone(), path, file.current.clone(), mapped)))
    }

    fn create(&self, path: &Path, options: CreateOptions) -> Result<Box<dyn WritableFile>> {
        let inode = self.state().create(path, options)?;
        Ok(Box::new(Writer::new(self.clone(), path, inode, 0)))
    }

    fn create_log(
        &self,
        path: &Path,
        options: CreateOptions,
        expected_size: u64,
    ) -> Result<Box<dyn WritableFile>> {
        let state = &mut *self.state();
        let inode = state.create(path, options)?;
        let mut writer = Writer::new(self.clone(), path, inode, 0);
        if state.log_kind == LogKind::Prepared {
            writer.prepare(state, (expected_size as usize).clamp(8192, 1 << 20));
        }
        Ok(Box::new(writer))
    }

    fn open_append(&self, path: &Path) -> Result<Box<dyn WritableFile>> {
        let state = &mut *self.state();
        let fault = state.begin(OpKind::Open, "open", path)?;
        late(fault, "open", path)?;
        let inode = state
            .disk
            .inode(path)
            .ok_or_else(|| refuse("open", path, state.disk.why_missing(path)))?;
        let len = state.disk.files.get(&inode).map_or(0, |file| file.current.len());
        state.disk.open.insert(inode);
        Ok(Box::new(Writer::new(self.clone(), path, inode, len)))
    }

    fn exists(&self, path: &Path) -> Result<bool> {
        let state = &mut *self.state();
        let fault = state.begin(OpKind::Look, "stat", path)?;
        late(fault, "stat", path)?;
        Ok(state.disk.is_dir(path) || state.disk.entries.contains_key(path))
    }

    fn list(&self, dir: &Path) -> Result<Vec<String>> {
        let state = &mut *self.state();
        let fault = state.begin(OpKind::Look, "list", dir)?;
        late(fault, "list", dir)?;
        if !state.disk.is_dir(dir) {
            let is_file = state.disk.inode(dir).is_some();
            let code = if is_file { libc::ENOTDIR } else { state.disk.why_missing(dir) };
            return Err(refuse("list", dir, code));
        }
        Ok(state
            .disk
            .children(dir)
            .filter_map(|path| Some(path.file_name()?.to_str()?.to_owned()))
            .collect())
    }

    fn remove(&self, path: &Path) -> Result<()> {
        let state = &mut *self.state();
        let fault = state.begin(OpKind::Remove, "remove", path)?;
        if state.disk.inode(path).is_none() {
            let code =
                if state.disk.is_dir(path) { libc::EISDIR } else { state.disk.why_missing(path) };
            return Err(refuse("remove", path, code));
        }
        state.apply(Step::Remove { path: path.to_owned() });
        late(fault, "remove", path)
    }

    fn create_dir(&self, path: &Path, _mode: u32) -> Result<()> {
        let state = &mut *self.state();
        let fault = state.begin(OpKind::CreateDir, "create directory", path)?;
        let mut missing = Vec::new();
        let mut at = path;
        while !state.disk.is_dir(at) {
            if state.disk.entries.contains_key(at) {
                return Err(refuse("create directory", path, libc::ENOTDIR));
            }
            missing.push(at.to_owned());
            at = parent(at);
        }
        for path in missing.into_iter().rev() {
            state.apply(Step::CreateDir { path });
        }
        late(fault, "create directory", path)
    }

    fn remove_dir(&self, path: &Path) -> Result<()> {
        let state = &mut *self.state();
        let fault = state.begin(OpKind::Remove, "remove directory", path)?;
        if state.disk.entries.get(path) != Some(&Entry::Dir) {
            let is_file = state.disk.inode(path).is_some();
            let code = if is_file { libc::ENOTDIR } else { state.disk.why_missing(path) };
            return Err(refuse("remove directory", path, code));
        }
        if state.disk.children(path).next().is_some() {
            return Err(refuse("remove directory", path, libc::ENOTEMPTY));
        }
        state.apply(Step::Remove { path: path.to_owned() });
        late(fault, "remove directory", path)
    }

    fn file_size(&self, path: &Path) -> Result<u64> {
        let state = &mut *self.state();
        let fault = state.begin(OpKind::Look, "stat", path)?;
        late(fault, "stat", path)?;
        let file = state
            .disk
            .file(path)
            .ok_or_else(|| refuse("stat", path, state.disk.why_missing(path)))?;
        Ok(file.current.len() as u64)
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<()> {
        let state = &mut *self.state();
        let fault = state.begin(OpKind::Rename, "rename", from)?;
        match state.disk.entries.get(from) {
            Some(Entry::File(_)) => (),
            // No directory is moved: what lies below it would have to be, too.
            Some(Entry::Dir) => return Err(refuse("rename", from, libc::EOPNOTSUPP)),
            None => return Err(refuse("rename", from, state.disk.why_missing(from))),
        }
        if !state.disk.is_dir(parent(to)) {
            return Err(refuse("rename", from, state.disk.why_missing(to)));
        }
        if state.disk.is_dir(to) {
            return Err(refuse("rename", to, libc::EISDIR));
        }
        // Of two names of one file none goes.
        if state.disk.inode(from).is_none_or(|inode| state.disk.inode(to) != Some(inode)) {
            state.apply(Step::Rename { from: from.to_owned(), to: to.to_owned() });
        }
        late(fault, "rename", from)
    }

    fn has_other_names(&self, path: &Path) -> Result<bool> {
        let state = &mut *self.state();
        let fault = state.begin(OpKind::Look, "stat", path)?;
        late(fault, "stat", path)?;
        let Some(inode) = state.disk.inode(path) else {
            return Err(refuse("stat", path, state.disk.why_missing(path)));
        };
        let is_it = |entry: &&Entry| matches!(entry, Entry::File(other) if *other == inode);
        Ok(state.disk.entries.values().filter(is_it).count() > 1)
    }

    fn link(&self, from: &Path, to: &Path) -> Result<()> {
        let state = &mut *self.state();
        let fault = state.begin(OpKind::Link, "link", from)?;
        let Some(inode) = state.disk.inode(from) else {
            let code =
                if state.disk.is_dir(from) { libc::EPERM } else { state.disk.why_missing(from) };
            return Err(refuse("link", from, code));
        };
        if state.disk.is_dir(to) || state.disk.entries.contains_key(to) {
            return Err(refuse("link", to, libc::EEXIST));
        }
        if !state.disk.is_dir(parent(to)) {
            return Err(refuse("link", to, state.disk.why_missing(to)));
        }
        state.apply(Step::Link { path: to.to_owned(), inode });
        late(fault, "link", from)
    }

    fn sync_dir(&self, dir: &Path) -> Result<()> {
        let state = &mut *self.state();
        let fault = state.begin(OpKind::SyncDir, "sync directory", dir)?;
        if !state.disk.is_dir(dir) {
            return Err(refuse("sync directory", dir, state.disk.why_missing(dir)));
        }
        state.apply(Step::SyncDir { path: dir.to_owned() });
        late(fault, "sync directory", dir)
    }

    fn lock(&self, path: &Path, mode: LockMode) -> Result<Box<dyn FileLock>> {
        let state = &mut *self.state();
        let fault = state.begin(OpKind::Lock, "lock", path)?;
        late(fault, "lock", path)?;
        let inode = match state.disk.entries.get(path) {
            Some(Entry::File(inode)) => *inode,
            _ if state.disk.is_dir(path) => return Err(refuse("lock", path, libc::EISDIR)),
            // As on a disk that is read-only.
            _ if mode == LockMode::Shared => return Ok(Box::new(NoLock)),
            _ if !state.disk.is_dir(parent(path)) => {
                return Err(refuse("lock", path, state.disk.why_missing(path)));
            }
            _ => {
                let inode = Inode(state.next_inode);
                state.next_inode += 1;
                state.apply(Step::Create { path: path.to_owned(), inode });
                inode
            }
        };
        let held = state.locks.entry(inode).or_default();
        if !held.take(mode) {
            return Err(Error::busy(format!("lock {}: already held", path.display())));
        }
        Ok(Box::new(Lock::new(self.clone(), inode, mode)))
    }

    fn schedule(&self, priority: Priority, job: Job) {
        self.shared.system.schedule(priority, job);
    }

    fn set_background_threads(&self, count: usize) -> Result<()> {
        self.shared.system.set_background_threads(count)
    }

    fn now_micros(&self) -> u64 {
        self.shared.system.now_micros()
    }

    fn wall_clock(&self) -> Duration {
        let set = self.state().wall_clock;
        set.unwrap_or_else(|| self.shared.system.wall_clock())
    }

    fn sleep(&self, duration: Duration) {
        self.shared.system.sleep(duration);
    }
}
