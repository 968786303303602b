//! Gives every file a syncer: one that cannot sync beside its appends is shared under a lock.

use std::io::IoSlice;
use std::sync::Arc;

use parking_lot::Mutex;

use crate::base::error::{Error, Result};

use super::{FileSyncer, WritableFile};

/// `file`, and the handle that syncs it while it is appended to.
pub(crate) fn with_syncer(file: Box<dyn WritableFile>) -> (Box<dyn WritableFile>, Arc<dyn FileSyncer>) {
    if let Some(syncer) = file.syncer() {
        return (file, syncer);
    }
    let shared = Arc::new(Shared(Mutex::new(Some(file))));
    (Box::new(Handle(shared.clone())), shared)
}

/// `None` once it is closed.
struct Shared(Mutex<Option<Box<dyn WritableFile>>>);

impl Shared {
    fn with<T>(&self, action: impl FnOnce(&mut dyn WritableFile) -> Result<T>) -> Result<T> {
        match self.0.lock().as_mut() {
            Some(file) => action(file.as_mut()),
            None => Err(Error::io_message("a file was used after it was closed")),
        }
    }
}

impl FileSyncer for Shared {
    fn sync(&self) -> Result<()> {
        self.with(|file| file.sync())
    }
}

struct Handle(Arc<Shared>);

impl WritableFile for Handle {
    fn append(&mut self, data: &[u8]) -> Result<()> {
        self.0.with(|file| file.append(data))
    }

    fn append_parts(&mut self, parts: &mut [IoSlice<'_>]) -> Result<()> {
        self.0.with(|file| file.append_parts(parts))
    }

    fn is_prepared(&self) -> bool {
        self.0.0.lock().as_ref().is_some_and(|file| file.is_prepared())
    }

    fn append_filled(&mut self, data: &[u8], filler: usize) -> Result<()> {
        self.0.with(|file| file.append_filled(data, filler))
    }

    fn sync(&mut self) -> Result<()> {
        self.0.with(|file| file.sync())
    }

    fn close(self: Box<Self>) -> Result<()> {
        let file = self.0.0.lock().take();
        file.map_or(Ok(()), |file| file.close())
    }
}
