//! The database as it was at one moment.

use std::collections::BTreeMap;
use std::ops::RangeBounds;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use crate::base::error::Result;
use crate::base::internal_key::SequenceNumber;
use crate::base::locks::Mutex;

use crate::db::db_impl::{DbImpl, View};
use crate::db::options::ReadOptions;
use crate::db::read::cursor::{Cursor, Entries};

/// The sequence numbers of live snapshots.
#[derive(Default)]
pub(in crate::db) struct SnapshotList {
    /// Held while a snapshot is taken, and while a load or a range delete keeps snapshots from
    /// being taken, which may last: across I/O and with other locks taken in between. So nothing
    /// else waits for it; compactions look at the list with the state lock held.
    gate: Mutex<()>,
    live: Mutex<BTreeMap<SequenceNumber, Live>>,
}

/// The snapshots at a sequence number.
struct Live {
    count: usize,
    /// When the first of them was taken.
    taken: u64,
    earlier_view: EarlierView,
}

/// The view that snapshots read, once a later one lacks tables that they see into.
type EarlierView = Arc<OnceLock<Arc<View>>>;

impl SnapshotList {
    /// Takes a snapshot of the present, which `present` returns under the list's lock: a compaction
    /// that looks at the list sees either the snapshot or a present that is not older.
    pub(in crate::db) fn take(
        &self,
        present: impl FnOnce() -> SequenceNumber,
        now_micros: u64,
    ) -> (SequenceNumber, EarlierView) {
        let _gate = self.gate.lock();
        let mut live = self.live.lock();
        let sequence = present();
        let first = || Live { count: 0, taken: now_micros, earlier_view: Arc::default() };
        let snapshots = live.entry(sequence).or_insert_with(first);
        snapshots.count += 1;
        (sequence, snapshots.earlier_view.clone())
    }

    fn release(&self, sequence: SequenceNumber) {
        let mut live = self.live.lock();
        if let Some(snapshots) = live.get_mut(&sequence) {
            snapshots.count -= 1;
            if snapshots.count == 0 {
                live.remove(&sequence);
            }
        }
    }

    /// Has all live snapshots from the sequence number `from` on go on reading `view`, but for
    /// those that read an earlier one. To be called before a view without what they see is there to
    /// be seen.
    pub(in crate::db) fn keep_view(&self, view: &Arc<View>, from: SequenceNumber) {
        for (_, snapshots) in self.live.lock().range(from..) {
            snapshots.earlier_view.get_or_init(|| view.clone());
        }
    }

    /// Keeps snapshots from being taken.
    pub(in crate::db) fn close(&self) -> impl Sized + '_ {
        self.gate.lock()
    }

    /// The oldest sequence number of all.
    pub(in crate::db) fn oldest(&self) -> Option<SequenceNumber> {
        self.live.lock().keys().next().copied()
    }

    /// All live sequence numbers, ascending, and the present one.
    pub(in crate::db) fn all(
        &self,
        present: impl FnOnce() -> SequenceNumber,
    ) -> (Vec<SequenceNumber>, SequenceNumber) {
        let live = self.live.lock();
        (live.keys().copied().collect(), present())
    }

    /// Keeps snapshots from being taken; `None` if there is one.
    pub(in crate::db) fn keep_none(&self) -> Option<impl Sized + '_> {
        let gate = self.gate.lock();
        self.live.lock().is_empty().then_some(gate)
    }

    pub(in crate::db) fn count(&self) -> usize {
        self.live.lock().values().map(|snapshots| snapshots.count).sum()
    }

    pub(in crate::db) fn oldest_age(&self, now_micros: u64) -> Option<Duration> {
        let live = self.live.lock();
        let taken = live.values().map(|snapshots| snapshots.taken).min()?;
        Some(Duration::from_micros(now_micros.saturating_sub(taken)))
    }
}

/// The database as it was when the snapshot was taken. Clones share it; the last one releases it.
///
/// A live snapshot keeps old versions of changed keys on disk. It does not keep the database open.
///
/// # Example
/// ```
/// # use terrace::*;
/// # let options = Options::new().create_if_missing(true).env(std::sync::Arc::new(MemEnv::new()));
/// # let db = Db::open("/db", options)?;
/// db.put("apple", "red")?;
/// let before = db.snapshot();
/// db.put("apple", "green")?;
/// assert_eq!(before.get("apple")?.as_deref(), Some(&b"red"[..]));
/// # Ok::<_, terrace::Error>(())
/// ```
#[derive(Clone)]
pub struct Snapshot(Arc<Inner>);

struct Inner {
    sequence: SequenceNumber,
    earlier_view: EarlierView,
    /// The last one: fields are dropped in this order.
    core: Arc<DbImpl>,
}

impl Snapshot {
    pub(in crate::db) fn take(core: &Arc<DbImpl>) -> Self {
        let (sequence, earlier_view) =
            core.snapshots.take(|| core.visible_sequence(), core.env.now_micros());
        Snapshot(Arc::new(Inner { sequence, earlier_view, core: core.clone() }))
    }

    /// The sequence number of the last write that the snapshot sees.
    pub fn sequence(&self) -> u64 {
        self.0.sequence
    }

    fn options(&self) -> ReadOptions {
        ReadOptions::new().snapshot(self)
    }

    /// Returns the value that `key` had, if it had one.
    ///
    /// ```
    /// # fn main() -> terrace::Result<()> {
    /// # let options = terrace::Options::new().create_if_missing(true).env(std::sync::Arc::new(terrace::MemEnv::new()));
    /// # let db = terrace::Db::open("/snapshot.db", options)?;
    /// db.put("apple", "red")?;
    /// let before = db.snapshot();
    /// db.put("apple", "green")?;
    /// assert_eq!(before.get("apple")?.as_deref(), Some(&b"red"[..]));
    /// # drop(before);
    /// # db.close()
    /// # }
    /// ```
    ///
    /// # Errors
    /// Those of [`Db::get_with`](crate::Db::get_with).
    pub fn get(&self, key: impl AsRef<[u8]>) -> Result<Option<Vec<u8>>> {
        self.0.core.get(key.as_ref(), &self.options(), <[u8]>::to_vec)
    }

    /// Returns whether `key` had a value.
    ///
    /// # Errors
    /// Those of [`Db::get_with`](crate::Db::get_with).
    pub fn contains_key(&self, key: impl AsRef<[u8]>) -> Result<bool> {
        Ok(self.0.core.get(key.as_ref(), &self.options(), |_| ())?.is_some())
    }

    /// Returns the values that `keys` had, in their order.
    ///
    /// # Errors
    /// Those of [`Db::get_with`](crate::Db::get_with).
    pub fn multi_get<K: AsRef<[u8]>>(&self, keys: &[K]) -> Result<Vec<Option<Vec<u8>>>> {
        self.0.core.multi_get(keys, &self.options())
    }

    /// Returns a cursor over the database as it was, at no entry: seek it first.
    ///
    /// # Errors
    /// Those of [`Db::get_with`](crate::Db::get_with).
    pub fn cursor(&self) -> Result<Cursor> {
        Cursor::new(&self.0.core, &self.options())
    }

    /// Returns every entry that there was, in the order of keys, from either end.
    ///
    /// # Errors
    /// Those of [`Db::get_with`](crate::Db::get_with).
    pub fn iter(&self) -> Result<Entries> {
        self.range::<&[u8]>(..)
    }

    /// Returns the entries that there were in `range`.
    ///
    /// # Errors
    /// Those of [`Db::get_with`](crate::Db::get_with).
    pub fn range<K: AsRef<[u8]>>(&self, range: impl RangeBounds<K>) -> Result<Entries> {
        Entries::range(&self.0.core, &range, &self.options())
    }

    /// Returns the entries that there were whose keys begin with `prefix`.
    ///
    /// # Errors
    /// Those of [`Db::prefix_with`](crate::Db::prefix_with).
    pub fn prefix(&self, prefix: impl AsRef<[u8]>) -> Result<Entries> {
        Entries::prefix(&self.0.core, prefix.as_ref(), &self.options())
    }

    /// The view to read, where that is not the present one. To be asked for after the present one
    /// was taken.
    pub(in crate::db) fn earlier_view(&self) -> Option<&Arc<View>> {
        self.0.earlier_view.get()
    }

    /// Whether the snapshot is one of the database behind `core`.
    pub(in crate::db) fn belongs_to(&self, core: &Arc<DbImpl>) -> bool {
        Arc::ptr_eq(&self.0.core, core)
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.core.snapshots.release(self.sequence);
        // The last one at its number lets go of the tables that only it kept.
        if self.earlier_view.get().is_some() {
            self.earlier_view = EarlierView::default();
            self.core.purge_later();
        }
    }
}

impl std::fmt::Debug for Snapshot {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Snapshot").field(&self.0.sequence).finish()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use super::*;

    /// A compaction looks at the list with the state lock held, for which a load that keeps
    /// snapshots away waits.
    #[test]
    fn a_closed_gate_for_snapshots_blocks_no_compaction() {
        let list = Arc::new(SnapshotList::default());
        let kept = list.keep_none().expect("there is none");
        let (done, looked) = channel();
        let beside = list.clone();
        std::thread::spawn(move || {
            done.send((beside.all(|| 7), beside.count(), beside.oldest_age(1)))
        });
        let seen = looked.recv_timeout(Duration::from_secs(60)).expect("does not wait");
        assert_eq!(seen, ((Vec::new(), 7), 0, None));
        drop(kept);
        assert_eq!(list.take(|| 3, 0).0, 3);
        assert!(list.keep_none().is_none());
        list.release(3);
        assert!(list.keep_none().is_some());
    }
}
