//! An Env in memory under which something happens in the middle of an operation, and whose clock
//! may go back.

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use terrace::{Env, MemEnv, Result};

use crate::env_methods;

type Hook = Box<dyn FnOnce(&Path) + Send>;

/// See the [module](self).
#[derive(Default)]
pub struct Hooked {
    files: MemEnv,
    hook: Mutex<Option<(&'static str, Hook)>>,
    goes_back: AtomicBool,
    looks: AtomicU64,
}

impl Hooked {
    /// Has `hook` called, once, before the next `operation`: "link" or "remove", a space, and how
    /// the name ends, or nothing.
    pub fn once_at(&self, operation: &'static str, hook: impl FnOnce(&Path) + Send + 'static) {
        *self.hook.lock().unwrap_or_else(PoisonError::into_inner) =
            Some((operation, Box::new(hook)));
    }

    /// From now on every look at the clock finds it a second earlier.
    pub fn set_the_clock_back(&self) {
        self.goes_back.store(true, Ordering::Relaxed);
    }

    fn operate(&self, operation: &str, path: &Path) {
        let mut hook = self.hook.lock().unwrap_or_else(PoisonError::into_inner);
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

impl Env for Hooked {
    fn link(&self, from: &Path, to: &Path) -> Result<()> {
        self.operate("link", from);
        self.files.link(from, to)
    }

    fn remove(&self, path: &Path) -> Result<()> {
        self.operate("remove", path);
        self.files.remove(path)
    }

    fn now_micros(&self) -> u64 {
        match self.goes_back.load(Ordering::Relaxed) {
            true => (1 << 50) - 1_000_000 * self.looks.fetch_add(1, Ordering::Relaxed),
            false => self.files.now_micros(),
        }
    }

    env_methods! {
        open_random create open_append exists list create_dir remove_dir file_size rename
        sync_dir lock schedule set_background_threads wall_clock sleep
    }
}
