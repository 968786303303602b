//! Writers wait for locks, without holding the commit lock.

use std::time::Duration;

use crate::base::error::{ErrorKind, Result};
use crate::base::locks::MutexGuard;
use crate::base::mutation::mutated;

use crate::db::concurrency::footprint::Footprint;
use crate::db::concurrency::lock_manager::LockOwner;
use crate::db::db_impl::write_path::WritePath;
use crate::db::db_impl::write_path::commit::Commit;

/// How long a write outside of locking transactions waits for a lock before it fails: its program
/// has most likely locked the key in the same thread.
///
/// An explored schedule has no time: a wait with a limit would be a loop there, which others may
/// never come to interrupt.
const WRITER_TIMEOUT: Duration =
    if cfg!(all(test, loom)) { Duration::MAX } else { Duration::from_secs(10) };

impl WritePath {
    /// Waits until no other than the owner of `locks` has locked any of `footprint`, and returns
    /// with the commit lock held. The locks that were waited for are the owner's then, which is
    /// made if there is none.
    #[cold]
    pub(in crate::db) fn await_locks<'g>(
        &'g self,
        mut guard: MutexGuard<'g, Option<Commit>>,
        locks: &mut Option<LockOwner>,
        footprint: &impl Footprint,
    ) -> Result<MutexGuard<'g, Option<Commit>>> {
        while let Some(key) = footprint.locked_key(&self.control.locks, locks.as_ref())
            && !mutated("obey-locks")
        {
            drop(guard);
            let owner = locks.get_or_insert_with(|| self.control.locks.writer(WRITER_TIMEOUT));
            match owner.lock_ordered(key) {
                // It has given its locks up, and begins anew.
                Err(error) if error.kind() == ErrorKind::Deadlock && owner.gives_way() => {}
                locked => locked?,
            }
            self.files.check_writable()?;
            guard = self.commit.lock();
        }
        Ok(guard)
    }

    /// Locks `key` for a write that follows. Nobody else writes it from then on.
    #[cold]
    pub(in crate::db) fn lock_for_write(
        &self,
        locks: &mut Option<LockOwner>,
        key: &[u8],
    ) -> Result<()> {
        let owner = locks.get_or_insert_with(|| self.control.locks.writer(WRITER_TIMEOUT));
        owner.lock(key)?;
        self.await_commits();
        Ok(())
    }

    /// Waits for commits that are under way: they may have missed a lock, or a transaction that
    /// wants them recorded. Later ones do not. In a fork there are none.
    pub(in crate::db) fn await_commits(&self) {
        if !self.files.is_inherited() {
            drop(self.commit.lock());
        }
    }
}
