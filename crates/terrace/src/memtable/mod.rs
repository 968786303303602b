//! The memtable: the newest writes, in memory and in order.
//!
//! A [`MemTableWriter`] adds entries; it is one of a kind for its table, and may move between
//! threads. Any number of threads read the [`MemTable`] meanwhile, without locks.
//!
//! 1. An entry, once added, stays where it is, unchanged, until the table is dropped.
//! 2. A reader who has learnt of an insertion (from the writer, or at second hand)
//!    sees the entry. Others see it in full or not at all.
//! 3. Entries are in the order of internal keys. Entries of equal internal key, which only damaged
//!    logs lead to, are all kept, the latest first.

mod arena;
mod atomics;
mod node;
mod record;
mod state;
mod tree;
mod writer;

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use self::arena::ChunkPool;
use self::tree::{Tree, TreeIter};
use self::writer::TreeWriter;
use crate::base::internal_key::{EntryKind, InternalOrder, SequenceNumber, pack_tag, split};
use crate::base::memory_account::MemoryAccount;

/// The entries, for readers.
pub(crate) struct MemTable {
    tree: Arc<Tree>,
    len: AtomicUsize,
    deletions: AtomicUsize,
}

impl MemTable {
    /// An empty table and its writer. `capacity_hint` is the number of bytes it may
    /// grow to; it decides how memory is allocated only.
    pub(crate) fn new(
        order: InternalOrder,
        capacity_hint: usize,
    ) -> (MemTableWriter, Arc<MemTable>) {
        Self::with_pool(order, Arc::new(ChunkPool::new(capacity_hint)))
    }

    /// The same, counted by `account` if there is one.
    pub(crate) fn within(
        order: InternalOrder,
        capacity_hint: usize,
        account: Option<&Arc<MemoryAccount>>,
    ) -> (MemTableWriter, Arc<MemTable>) {
        match account {
            Some(account) => {
                let pool = ChunkPool::counted(capacity_hint, Arc::clone(account));
                Self::with_pool(order, Arc::new(pool))
            }
            None => Self::new(order, capacity_hint),
        }
    }

    /// The bytes of memory that a table of `capacity_hint`, counted by `account`, takes more, at
    /// most, when `count` entries are added to it whose keys and values take `bytes`.
    pub(crate) fn most_growth(
        capacity_hint: usize,
        account: &MemoryAccount,
        bytes: usize,
        count: usize,
    ) -> usize {
        arena::most_growth(capacity_hint, account, bytes, count)
    }

    /// The bytes of a table that `count` entries take, with keys and values of `bytes`.
    pub(crate) fn growth(bytes: usize, count: usize) -> usize {
        arena::growth(bytes, count)
    }

    fn with_pool(order: InternalOrder, pool: Arc<ChunkPool>) -> (MemTableWriter, Arc<MemTable>) {
        let writer = TreeWriter::new(order, pool);
        let table = Arc::new(MemTable {
            tree: Arc::clone(writer.tree()),
            len: AtomicUsize::new(0),
            deletions: AtomicUsize::new(0),
        });
        (MemTableWriter { writer, table: Arc::clone(&table) }, table)
    }

    /// The tag and value of the newest entry of `user_key` whose sequence number is not above
    /// `sequence`.
    pub(crate) fn get(&self, user_key: &[u8], sequence: SequenceNumber) -> Option<(u64, &[u8])> {
        self.tree.get(user_key, sequence)
    }

    /// An iterator over all entries, those added later included; it keeps them alive. It starts out
    /// invalid.
    pub(crate) fn iter(self: &Arc<Self>) -> MemTableIter {
        MemTableIter { position: TreeIter::new(Arc::clone(&self.tree)) }
    }

    /// The bytes that entries and bookkeeping take. Memory reserved for further entries is not
    /// counted.
    pub(crate) fn memory_usage(&self) -> usize {
        self.tree.arena().memory_usage()
    }

    /// The same with the memory reserved for further entries.
    pub(crate) fn reserved_memory(&self) -> usize {
        self.tree.arena().reserved()
    }

    /// The number of entries.
    pub(crate) fn len(&self) -> usize {
        self.len.load(Ordering::Relaxed)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The number of entries that are deletions.
    pub(crate) fn deletions(&self) -> usize {
        self.deletions.load(Ordering::Relaxed)
    }
}

impl fmt::Debug for MemTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemTable")
            .field("len", &self.len())
            .field("memory_usage", &self.memory_usage())
            .finish()
    }
}

/// The writer of a table.
pub(crate) struct MemTableWriter {
    writer: TreeWriter,
    table: Arc<MemTable>,
}

impl MemTableWriter {
    /// The table being written.
    pub(crate) fn table(&self) -> &Arc<MemTable> {
        &self.table
    }

    /// An empty table that grows as large as this one, in memory that this one's predecessors have
    /// left.
    pub(crate) fn successor(&self) -> (MemTableWriter, Arc<MemTable>) {
        let tree = &self.table.tree;
        MemTable::with_pool(tree.order.clone(), Arc::clone(tree.arena().pool()))
    }

    /// Work to be done soon, on any other thread, so that the table finds the memory it will
    /// need next.
    #[inline]
    pub(crate) fn preparation(&self) -> Option<impl FnOnce() + Send + use<>> {
        let pool = self.table.tree.arena().pool();
        pool.is_wanting().then(|| {
            let pool = Arc::clone(pool);
            move || pool.prepare()
        })
    }

    /// Adds an entry. Key and value are each shorter than 4 GiB: a batch that holds them has been
    /// checked for that.
    pub(crate) fn insert(
        &mut self,
        sequence: SequenceNumber,
        kind: EntryKind,
        user_key: &[u8],
        value: &[u8],
    ) {
        self.writer.insert(user_key, pack_tag(sequence, kind), value);
        // The writer alone changes these: no read-modify-write is needed.
        self.table.len.store(self.table.len() + 1, Ordering::Relaxed);
        if kind == EntryKind::Deletion {
            self.table.deletions.store(self.table.deletions() + 1, Ordering::Relaxed);
        }
    }
}

impl fmt::Debug for MemTableWriter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("MemTableWriter").field(&self.table).finish()
    }
}

/// A position in a table, which it keeps alive.
///
/// Off either end, and before the first seek, it is invalid: keys and values are then empty, and
/// moving does nothing.
pub(crate) struct MemTableIter {
    position: TreeIter,
}

impl MemTableIter {
    #[inline]
    pub(crate) fn valid(&self) -> bool {
        self.position.valid()
    }

    pub(crate) fn seek_to_first(&mut self) {
        self.position.seek_to_first();
    }

    pub(crate) fn seek_to_last(&mut self) {
        self.position.seek_to_last();
    }

    /// Moves to the first entry whose internal key is not before `internal_key`.
    pub(crate) fn seek(&mut self, internal_key: &[u8]) {
        let (user_key, tag) = split(internal_key).unwrap_or((&[], 0));
        self.position.seek(user_key, tag);
    }

    #[inline]
    pub(crate) fn next(&mut self) {
        self.position.next();
    }

    pub(crate) fn prev(&mut self) {
        self.position.prev();
    }

    /// The internal key.
    #[inline]
    pub(crate) fn key(&self) -> &[u8] {
        self.position.key()
    }

    #[inline]
    pub(crate) fn value(&self) -> &[u8] {
        self.position.value()
    }
}

impl fmt::Debug for MemTableIter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemTableIter").field("valid", &self.valid()).finish()
    }
}

#[cfg(all(test, not(loom)))]
mod check;
#[cfg(all(test, loom))]
mod interleavings;
#[cfg(all(test, not(loom)))]
mod tests;
