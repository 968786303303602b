//! The snapshots of a database, as LevelDB's `SnapshotList` and `SnapshotImpl`.
//!
//! Any thread.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use crate::base::fork::Origin;
use crate::base::internal_key::SequenceNumber;
use crate::base::locks::Mutex;

use crate::db::view::View;
use crate::db::view::catalogue::ReadTime;

/// The sequence numbers of live snapshots. In a child of a fork, where nothing is compacted, none
/// is entered or removed: a thread that is not there may hold a lock.
#[derive(Default)]
pub(in crate::db) struct SnapshotList {
    /// Held while a snapshot is taken, and while a load or a range delete keeps snapshots from
    /// being taken, which may last: across I/O and with other locks taken in between. So nothing
    /// else waits for it; compactions look at the list with the state lock held.
    gate: Mutex<()>,
    live: Mutex<BTreeMap<SequenceNumber, Live>>,
    origin: Origin,
}

/// The snapshots at a sequence number.
struct Live {
    count: usize,
    /// When the first of them was taken.
    taken: u64,
    /// Of those that have none yet.
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
        if self.origin.is_ancestor() {
            return (present(), EarlierView::default());
        }
        let _gate = self.gate.lock();
        let mut live = self.live.lock();
        let sequence = present();
        let first = || Live { count: 0, taken: now_micros, earlier_view: Arc::default() };
        let snapshots = live.entry(sequence).or_insert_with(first);
        snapshots.count += 1;
        // Those that are told to read an earlier view came before this one.
        if snapshots.earlier_view.get().is_some() {
            snapshots.earlier_view = Arc::default();
        }
        (sequence, snapshots.earlier_view.clone())
    }

    fn release(&self, sequence: SequenceNumber) {
        if self.origin.is_ancestor() {
            return;
        }
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

/// The database of a snapshot.
pub(in crate::db) trait SnapshotOwner: Send + Sync {
    /// Has files removed that only a snapshot kept, on a background thread.
    fn purge_later(self: Arc<Self>);
}

/// A live sequence number of a list.
pub(crate) struct SnapshotImpl {
    list: Arc<SnapshotList>,
    sequence: SequenceNumber,
    earlier_view: EarlierView,
    /// When it was taken, if any values expire.
    read_time: Option<ReadTime>,
    /// The last one: fields are dropped in this order.
    owner: Arc<dyn SnapshotOwner>,
}

impl SnapshotImpl {
    /// See [`SnapshotList::take`].
    pub(in crate::db) fn take(
        list: &Arc<SnapshotList>,
        present: impl FnOnce() -> SequenceNumber,
        now_micros: u64,
        read_time: impl FnOnce() -> Option<ReadTime>,
        owner: Arc<dyn SnapshotOwner>,
    ) -> Self {
        let (sequence, earlier_view) = list.take(present, now_micros);
        SnapshotImpl { list: list.clone(), sequence, earlier_view, read_time: read_time(), owner }
    }

    pub(in crate::db) fn sequence(&self) -> SequenceNumber {
        self.sequence
    }

    /// The time that it sees values of which some expire.
    pub(in crate::db) fn read_time(&self) -> Option<&ReadTime> {
        self.read_time.as_ref()
    }

    /// The view to read, where that is not the present one. To be asked for after the present one
    /// was taken.
    pub(in crate::db) fn earlier_view(&self) -> Option<&Arc<View>> {
        self.earlier_view.get()
    }

    /// Whether the snapshot is one of the database with this list.
    pub(in crate::db) fn belongs_to(&self, list: &Arc<SnapshotList>) -> bool {
        Arc::ptr_eq(&self.list, list)
    }
}

impl Drop for SnapshotImpl {
    fn drop(&mut self) {
        self.list.release(self.sequence);
        // The last one at its number lets go of the tables that only it kept.
        if self.earlier_view.get().is_some() {
            self.earlier_view = EarlierView::default();
            self.owner.clone().purge_later();
        }
    }
}

impl fmt::Debug for SnapshotImpl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Snapshot").field(&self.sequence).finish()
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
