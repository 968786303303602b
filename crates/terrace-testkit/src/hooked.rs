//! An Env in memory under which something happens in the middle of an operation, and whose clock
//! may go back.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use terrace::{Env, MemEnv, RandomAccessFile, ReadAccess, Result, WritableFile};

use crate::env_methods;

type Hook = Box<dyn FnOnce(&Path) + Send>;

/// See the [module](self).
#[derive(Default)]
pub struct Hooked {
    files: MemEnv,
    hook: Arc<PendingHook>,
    goes_back: AtomicBool,
    looks: AtomicU64,
}

/// The hook that was not called yet, and the operation that calls it.
#[derive(Default)]
struct PendingHook(Mutex<Option<(&'static str, Hook)>>);

/// A file whose reads are operations.
struct HookedFile {
    file: Arc<dyn RandomAccessFile>,
    path: PathBuf,
    hook: Arc<PendingHook>,
}

impl Hooked {
    /// Has `hook` called, once, before the next `operation`: "link", "read", "remove" or
    /// "open_append", a space, and how the name ends, or nothing.
    pub fn once_at(&self, operation: &'static str, hook: impl FnOnce(&Path) + Send + 'static) {
        let mut pending = self.hook.0.lock().unwrap_or_else(PoisonError::into_inner);
        *pending = Some((operation, Box::new(hook)));
    }

    /// From now on every look at the clock finds it a second earlier.
    pub fn set_the_clock_back(&self) {
        self.goes_back.store(true, Ordering::Relaxed);
    }
}

impl PendingHook {
    fn operate(&self, operation: &str, path: &Path) {
        let mut hook = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let matches = |(wanted, _): &mut (&'static str, Hook)| {
            let (kind, suffix) = wanted.split_once(' ').unwrap_or((wanted, ""));
            kind == operation && path.to_string_lossy().ends_with(suffix)
        };
        let due = hook.take_if(|hook| matches(hook));
        drop(hook);
        if let Some((_, hook)) = due {
            hook(path);
        }
    }
}

impl RandomAccessFile for HookedFile {
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<usize> {
        self.hook.operate("read", &self.path);
        self.file.read_at(offset, buffer)
    }

    fn size(&self) -> u64 {
        self.file.size()
    }
}

impl Env for Hooked {
    fn open_random(&self, path: &Path, access: ReadAccess) -> Result<Arc<dyn RandomAccessFile>> {
        let file = self.files.open_random(path, access)?;
        Ok(Arc::new(HookedFile { file, path: path.into(), hook: self.hook.clone() }))
    }

    fn open_append(&self, path: &Path) -> Result<Box<dyn WritableFile>> {
        self.hook.operate("open_append", path);
        self.files.open_append(path)
    }

    fn has_other_names(&self, path: &Path) -> Result<bool> {
        self.files.has_other_names(path)
    }

    fn link(&self, from: &Path, to: &Path) -> Result<()> {
        self.hook.operate("link", from);
        self.files.link(from, to)
    }

    fn remove(&self, path: &Path) -> Result<()> {
        self.hook.operate("remove", path);
        self.files.remove(path)
    }

    fn now_micros(&self) -> u64 {
        match self.goes_back.load(Ordering::Relaxed) {
            true => (1 << 50) - 1_000_000 * self.looks.fetch_add(1, Ordering::Relaxed),
            false => self.files.now_micros(),
        }
    }

    env_methods! {
        create exists list create_dir remove_dir file_size rename
        sync_dir lock schedule set_background_threads wall_clock sleep
    }
}
