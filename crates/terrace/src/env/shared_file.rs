//! Gives every file a syncer: one that cannot sync beside its appends is shared under a lock.

use std::io::IoSlice;
use std::sync::Arc;

use crate::base::error::{Error, Result};
use crate::base::locks::plain::Mutex;

use super::{FileSyncer, WritableFile};

/// `file`, and the handle that syncs it while it is appended to.
pub(crate) fn with_syncer(
    file: Box<dyn WritableFile>,
) -> (Box<dyn WritableFile>, Arc<dyn FileSyncer>) {
    if let Some(syncer) = file.syncer() {
        return (file, syncer);
    }
    let shared = Arc::new(Shared(Mutex::new(State::Open(file))));
    (Box::new(Handle(shared.clone())), shared)
}

enum State {
    Open(Box<dyn WritableFile>),
    Closed,
    /// Closed, and its contents are obsolete.
    Retired,
}

impl State {
    fn file(&mut self) -> Option<&mut dyn WritableFile> {
        match self {
            State::Open(file) => Some(file.as_mut()),
            State::Closed | State::Retired => None,
        }
    }
}

struct Shared(Mutex<State>);

impl Shared {
    fn with<T>(&self, action: impl FnOnce(&mut dyn WritableFile) -> Result<T>) -> Result<T> {
        match self.0.lock().file() {
            Some(file) => action(file),
            None => Err(closed()),
        }
    }
}

impl FileSyncer for Shared {
    fn sync(&self) -> Result<()> {
        match &mut *self.0.lock() {
            State::Open(file) => file.sync(),
            State::Retired => Ok(()),
            State::Closed => Err(closed()),
        }
    }
}

fn closed() -> Error {
    Error::io_message("a file was used after it was closed")
}

struct Handle(Arc<Shared>);

impl WritableFile for Handle {
    fn append(&mut self, data: &[u8]) -> Result<()> {
        self.0.with(|file| file.append(data))
    }

    fn append_parts(&mut self, parts: &mut [IoSlice<'_>], headers: &[usize]) -> Result<()> {
        self.0.with(|file| file.append_parts(parts, headers))
    }

    fn is_prepared(&self) -> bool {
        self.0.0.lock().file().is_some_and(|file| file.is_prepared())
    }

    fn takes_at_once(&self, length: usize) -> bool {
        self.0.0.lock().file().is_some_and(|file| file.takes_at_once(length))
    }

    fn append_filled(&mut self, data: &[u8], filler: usize) -> Result<()> {
        self.0.with(|file| file.append_filled(data, filler))
    }

    fn cut_back(&mut self, length: u64) {
        if let Some(file) = self.0.0.lock().file() {
            file.cut_back(length);
        }
    }

    fn sync(&mut self) -> Result<()> {
        self.0.with(|file| file.sync())
    }

    fn retire(self: Box<Self>) {
        // Under the lock, so that a file that is found retired is closed.
        let mut state = self.0.0.lock();
        if let State::Open(file) = std::mem::replace(&mut *state, State::Retired) {
            file.retire();
        }
    }

    fn close(self: Box<Self>) -> Result<()> {
        let state = std::mem::replace(&mut *self.0.0.lock(), State::Closed);
        match state {
            State::Open(file) => file.close(),
            State::Closed | State::Retired => Ok(()),
        }
    }
}
