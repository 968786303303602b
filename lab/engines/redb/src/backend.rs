//! A file that is written and not synced: what the lab asks of an asynchronous write, which redb
//! itself does not offer.
//!
//! A commit's pages and its header reach the operating system in redb's order, so that the process
//! may die at any moment; the machine may not. [`UnsyncedBackend::sync`] is for those writes that
//! are to be on the disk.

use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::Arc;

use lab_driver::{Failure, Result};
use redb::StorageBackend;
use redb::backends::FileBackend;

/// Shares one file between redb and the caller that syncs it.
#[derive(Clone, Debug)]
pub(crate) struct UnsyncedBackend {
    inner: Arc<FileBackend>,
}

impl UnsyncedBackend {
    pub(crate) fn open(path: &Path) -> Result<Self> {
        let file = File::options().read(true).write(true).create(true).truncate(false).open(path);
        let file = file.map_err(|e| Failure::io("open", path, &e))?;
        let inner = FileBackend::new(file).map_err(Failure::new)?;
        Ok(UnsyncedBackend { inner: Arc::new(inner) })
    }

    pub(crate) fn sync(&self) -> Result<()> {
        self.inner.sync_data().map_err(|e| Failure::new(format!("cannot sync: {e}")))
    }
}

impl StorageBackend for UnsyncedBackend {
    fn len(&self) -> io::Result<u64> {
        self.inner.len()
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.inner.read(offset, out)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.inner.set_len(len)
    }

    fn sync_data(&self) -> io::Result<()> {
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.inner.write(offset, data)
    }

    fn close(&self) -> io::Result<()> {
        self.inner.close()
    }
}
