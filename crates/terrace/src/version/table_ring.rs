//! Which tables of a set are open, which filters stay of those that were closed, and in which order
//! they go.
//!
//! Any thread may call anything. In a child of a fork the lock may be held for ever; then tables that
//! are open stay so.
//!
//! # Invariants
//! 1. With the lock held, a file is among the open ones if and only if it has its table, and among
//!    the closed ones if and only if it has its filter.
//! 2. The numbers beside the lock are those of what stands in it, or of what has just left it.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Weak};

use arc_swap::Guard;

use crate::base::fork::Origin;
use crate::base::locks::{Mutex, MutexGuard};
use crate::table::Table;

use super::file_meta::FileMeta;
use super::kept_filter::KeptFilter;

/// See the [module](self).
#[derive(Default)]
pub(super) struct TableRing {
    /// How many tables are open, and the memory of their indexes and filters.
    open: AtomicUsize,
    heap: AtomicUsize,
    /// The memory of the filters of closed tables.
    filters: AtomicUsize,
    members: Mutex<Members>,
    origin: Origin,
}

#[derive(Default)]
struct Members {
    /// In the order of a clock.
    open: VecDeque<Member>,
    /// The same, after the order in which they were closed.
    closed: VecDeque<Member>,
}

/// A file, and the memory that what it has of its table takes.
struct Member {
    file: Weak<FileMeta>,
    heap: usize,
}

impl Member {
    fn new(file: &Arc<FileMeta>, heap: usize) -> Self {
        Member { file: Arc::downgrade(file), heap }
    }

    fn is_of(&self, file: &Arc<FileMeta>) -> bool {
        std::ptr::eq(self.file.as_ptr(), Arc::as_ptr(file))
    }

    fn is_there(&self) -> bool {
        self.file.strong_count() > 0
    }
}

impl TableRing {
    /// How many tables are open.
    pub(super) fn open(&self) -> usize {
        self.open.load(Ordering::Relaxed)
    }

    /// The memory of open tables and of filters.
    pub(super) fn heap(&self) -> usize {
        self.heap.load(Ordering::Relaxed) + self.filter_heap()
    }

    /// The memory of the filters of closed tables.
    pub(super) fn filter_heap(&self) -> usize {
        self.filters.load(Ordering::Relaxed)
    }

    fn lock(&self) -> Option<MutexGuard<'_, Members>> {
        if self.origin.is_ancestor() { self.members.try_lock() } else { Some(self.members.lock()) }
    }

    /// Makes `table` the open one of `file`, unless it has one, which is returned then.
    pub(super) fn enter(&self, file: &Arc<FileMeta>, table: &Arc<Table>) -> Option<Arc<Table>> {
        let members = self.lock();
        let previous = file.table.compare_and_swap(&None::<Arc<Table>>, Some(table.clone()));
        if previous.is_some() {
            return Guard::into_inner(previous);
        }
        file.recently_used.store(true, Ordering::Relaxed);
        let mut members = members?;
        if file.filter.swap(None).is_some()
            && let Some(at) = members.closed.iter().position(|member| member.is_of(file))
        {
            let filter = members.closed.remove(at).map_or(0, |member| member.heap);
            self.filters.fetch_sub(filter, Ordering::Relaxed);
        }
        let heap = table.memory_usage();
        self.heap.fetch_add(heap, Ordering::Relaxed);
        self.open.fetch_add(1, Ordering::Relaxed);
        members.open.push_back(Member::new(file, heap));
        None
    }

    /// Takes note that the open table of `file` has other memory than before.
    pub(super) fn count_again(&self, file: &Arc<FileMeta>, heap: usize) {
        let Some(mut members) = self.lock() else { return };
        if let Some(member) = members.open.iter_mut().find(|member| member.is_of(file)) {
            self.heap.fetch_add(heap, Ordering::Relaxed);
            self.heap.fetch_sub(member.heap, Ordering::Relaxed);
            member.heap = heap;
        }
    }

    /// Closes one table that was not used lately, and keeps of it what `keep` returns. Whether there
    /// was one.
    pub(super) fn close_one(&self, keep: impl Fn(&Table) -> Option<KeptFilter>) -> bool {
        // Twice round: the first may only clear marks.
        self.close_among(usize::MAX, keep)
    }

    /// Has the clock go on by one table, and closes that if it was not used for a round.
    pub(super) fn close_if_unused(&self, keep: impl Fn(&Table) -> Option<KeptFilter>) -> bool {
        self.close_among(1, keep)
    }

    /// [`close_one`](Self::close_one), of the `most` next ones.
    fn close_among(&self, most: usize, keep: impl Fn(&Table) -> Option<KeptFilter>) -> bool {
        // What may be the last reference to a file is dropped without the lock.
        let mut passed = Vec::new();
        let Some(mut members) = self.lock() else { return false };
        for _ in 0..most.min(2 * members.open.len()) {
            let Some(member) = members.open.pop_front() else { break };
            let file = member.file.upgrade();
            if file.as_ref().is_some_and(|file| file.recently_used.swap(false, Ordering::Relaxed)) {
                members.open.push_back(member);
                passed.push(file);
                continue;
            }
            // Without a file its table closed with its version.
            let table = file.as_ref().and_then(|file| file.table.load_full());
            if let (Some(file), Some(table)) = (&file, &table) {
                // Before the table goes, so that a lookup finds one of the two.
                if let Some(filter) = keep(table) {
                    let heap = filter.memory_usage();
                    self.filters.fetch_add(heap, Ordering::Relaxed);
                    file.filter.store(Some(Arc::new(filter)));
                    members.closed.push_back(Member::new(file, heap));
                }
                file.table.store(None);
            }
            self.open.fetch_sub(1, Ordering::Relaxed);
            self.heap.fetch_sub(member.heap, Ordering::Relaxed);
            // What the table has is freed without the lock.
            drop(members);
            return true;
        }
        false
    }

    /// Gives up a filter that spared no lookup anything lately, of the table that has been closed
    /// longest. Whether there was one.
    pub(super) fn drop_filter(&self) -> bool {
        let mut passed = Vec::new();
        let Some(mut members) = self.lock() else { return false };
        // Twice round: the first may only clear marks.
        for _ in 0..2 * members.closed.len() {
            let Some(member) = members.closed.pop_front() else { break };
            let file = member.file.upgrade();
            let filter = file.as_ref().and_then(|file| file.filter.load_full());
            if filter.as_ref().is_some_and(|filter| filter.take_useful()) {
                members.closed.push_back(member);
                passed.push(file);
                continue;
            }
            self.filters.fetch_sub(member.heap, Ordering::Relaxed);
            // Without a file its filter went with its version.
            if let Some(file) = &file {
                file.filter.store(None);
            }
            drop(members);
            return true;
        }
        false
    }

    /// Counts tables no longer that went with the last version that had them.
    pub(super) fn forget_gone(&self) {
        let Some(mut members) = self.lock() else { return };
        let Members { open, closed } = &mut *members;
        let retain = |members: &mut VecDeque<Member>, heap: &AtomicUsize| {
            members.retain(|member| {
                let is_there = member.is_there();
                if !is_there {
                    heap.fetch_sub(member.heap, Ordering::Relaxed);
                }
                is_there
            });
        };
        let before = open.len();
        retain(open, &self.heap);
        self.open.fetch_sub(before - open.len(), Ordering::Relaxed);
        retain(closed, &self.filters);
    }

    /// Tables open now, and the memory that they and the filters of others take.
    pub(super) fn totals(&self) -> (usize, usize) {
        let Some(members) = self.lock() else { return (0, 0) };
        let files: Vec<_> =
            members.open.iter().filter_map(|member| member.file.upgrade()).collect();
        let closed = members.closed.iter().filter(|member| member.is_there());
        let filters = closed.map(|member| member.heap).sum();
        drop(members);
        let open = files.iter().filter_map(|file| file.table.load_full());
        open.fold((0, filters), |(count, bytes), table| (count + 1, bytes + table.memory_usage()))
    }
}
