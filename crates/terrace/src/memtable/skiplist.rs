//! A skip list with the entries inside its nodes: one writer, any number of readers, no locks.
//!
//! A node is, in one piece of the arena: its links, the topmost first; the head of its key; the record. A pointer to
//! a node points at the head of its key, behind the links, so that links and key are found without its height.
//!
//! 1. Only the [`SkipListWriter`] adds nodes, and nobody removes or moves them.
//! 2. A node is written in full before it is linked, and linked with Release; every link is followed with Acquire.
//!    Only the links change afterwards.
//! 3. Nodes are in the order of internal keys on every level. Of two equal internal keys the later one is first.
//! 4. The nodes of a level are all in the level below; a reader may see a node in a lower level only.

#![allow(unsafe_code)]

use std::ptr::{self, NonNull};
use std::sync::Arc;
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};

use super::arena::{Allocator, Arena};
use super::record::{HEAD_SIZE, Head, Record, Target};
use crate::base::internal_key::{InternalOrder, KIND_FOR_SEEK, SequenceNumber, pack_tag};

/// With one node in four reaching the next level, enough for sixteen million nodes.
const MAX_HEIGHT: usize = 12;

const LINK_SIZE: usize = size_of::<Link>();

type Link = AtomicPtr<u8>;

/// A pointer to a linked node, or to the start of the list, which has links alone.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Node(NonNull<u8>);

impl Node {
    /// # Safety
    /// The node has a level `level`, its links have been written, and the arena outlives `'a`.
    #[inline]
    unsafe fn link<'a>(self, level: usize) -> &'a Link {
        // SAFETY: the links lie before the node, the lowest nearest; they are aligned like the node.
        unsafe { self.0.sub((level + 1) * LINK_SIZE).cast::<Link>().as_ref() }
    }

    /// # Safety
    /// As for [`Node::link`].
    #[inline]
    unsafe fn next(self, level: usize) -> Option<Node> {
        // SAFETY: by the caller's word.
        NonNull::new(unsafe { self.link(level) }.load(Ordering::Acquire)).map(Node)
    }

    /// # Safety
    /// The node has been written, is not the start, and the arena is alive.
    #[inline]
    unsafe fn head(self) -> Head {
        // SAFETY: by the caller's word; nothing writes it any more. The place is aligned to 8 only.
        unsafe { self.0.cast::<Head>().read_unaligned() }
    }

    /// The record of a node that is not the start.
    #[inline]
    fn record(self) -> Record {
        // SAFETY: every node but the start has a head and a record behind its pointer.
        Record::at(unsafe { self.0.add(HEAD_SIZE) })
    }
}

/// The list, for readers.
pub(super) struct SkipList {
    order: InternalOrder,
    start: Node,
    /// The levels in use. A hint: unused levels are empty.
    height: AtomicUsize,
    arena: Arc<Arena>,
}

// SAFETY: nodes are shared by the rules of the module: written before they are published, changed by atomics only,
// alive as long as the arena, which the list keeps.
unsafe impl Send for SkipList {}
// SAFETY: as above.
unsafe impl Sync for SkipList {}

impl SkipList {
    pub(super) fn memory_usage(&self) -> usize {
        self.arena.memory_usage()
    }

    /// Whether `target` comes after `node`.
    ///
    /// # Safety
    /// The node was found by following this list's links, and is not the start.
    #[inline]
    unsafe fn is_after(&self, target: &Target<'_>, node: Node) -> bool {
        // SAFETY: a linked node has been written (2) and lives as long as this list.
        unsafe {
            let head = node.head();
            if head != target.head {
                return head < target.head;
            }
            target.is_after_equal_head(&self.order, node.record())
        }
    }

    /// The last node before `target` on every level, or the start; `visit` is told for each level used. Answers with
    /// the lowest level's, and the node after it.
    #[inline]
    fn search(&self, target: &Target<'_>, mut visit: impl FnMut(usize, Node)) -> (Node, Option<Node>) {
        let mut level = self.height.load(Ordering::Relaxed) - 1;
        let mut node = self.start;
        // The node known not to be before the target: it need not be compared again a level below.
        let mut bound = None;
        loop {
            // SAFETY: `node` is the start, which has all levels, or was reached on this level or one above.
            let next = unsafe { node.next(level) };
            if level > 0 {
                // SAFETY: the node has the level below too.
                prefetch(unsafe { node.link(level - 1) }.load(Ordering::Relaxed));
            }
            if let Some(next) = next
                && Some(next) != bound
                // SAFETY: just reached through a link.
                && unsafe { self.is_after(target, next) }
            {
                node = next;
                continue;
            }
            visit(level, node);
            if level == 0 {
                return (node, next);
            }
            bound = next;
            level -= 1;
        }
    }

    /// The newest entry of `user_key` up to `sequence`: its tag and value.
    pub(super) fn get(&self, user_key: &[u8], sequence: SequenceNumber) -> Option<(u64, &[u8])> {
        let target = Target::new(&self.order, user_key, pack_tag(sequence, KIND_FOR_SEEK));
        let node = self.search(&target, |_, _| ()).1?;
        // SAFETY: a linked node has been written (2) and lives as long as this list.
        unsafe {
            let record = node.record();
            self.order.keys.compare(record.user_key(), user_key).is_eq().then(|| (record.tag(), record.value()))
        }
    }

    fn first(&self) -> Option<Node> {
        // SAFETY: the start has all levels.
        unsafe { self.start.next(0) }
    }

    fn last(&self) -> Option<Node> {
        let mut node = self.start;
        for level in (0..self.height.load(Ordering::Relaxed)).rev() {
            // SAFETY: `node` is the start, or was reached on this level or one above.
            while let Some(next) = unsafe { node.next(level) } {
                node = next;
            }
        }
        (node != self.start).then_some(node)
    }
}

/// A position in a list, which it keeps alive.
pub(super) struct SkipListIter {
    list: Arc<SkipList>,
    node: Option<Node>,
}

// SAFETY: the node belongs to the list, which may be sent and shared.
unsafe impl Send for SkipListIter {}
// SAFETY: as above.
unsafe impl Sync for SkipListIter {}

impl SkipListIter {
    pub(super) fn new(list: Arc<SkipList>) -> Self {
        SkipListIter { list, node: None }
    }

    pub(super) fn valid(&self) -> bool {
        self.node.is_some()
    }

    pub(super) fn seek_to_first(&mut self) {
        self.node = self.list.first();
    }

    pub(super) fn seek_to_last(&mut self) {
        self.node = self.list.last();
    }

    pub(super) fn seek(&mut self, user_key: &[u8], tag: u64) {
        self.node = self.list.search(&Target::new(&self.list.order, user_key, tag), |_, _| ()).1;
    }

    pub(super) fn next(&mut self) {
        // SAFETY: found in the list; every node has the lowest level.
        self.node = self.node.and_then(|node| unsafe { node.next(0) });
    }

    pub(super) fn prev(&mut self) {
        let Some(node) = self.node else { return };
        // SAFETY: found in the list, which this iterator keeps.
        let target =
            unsafe { Target { head: node.head(), user_key: node.record().user_key(), tag: node.record().tag() } };
        let (before, _) = self.list.search(&target, |_, _| ());
        self.node = (before != self.list.start).then_some(before);
    }

    /// The internal key, or nothing.
    pub(super) fn key(&self) -> &[u8] {
        // SAFETY: found in the list, which this iterator keeps.
        self.node.map_or(&[], |node| unsafe { node.record().internal_key() })
    }

    pub(super) fn value(&self) -> &[u8] {
        // SAFETY: found in the list, which this iterator keeps.
        self.node.map_or(&[], |node| unsafe { node.record().value() })
    }
}

/// The one who adds to a list.
pub(super) struct SkipListWriter {
    list: Arc<SkipList>,
    allocator: Allocator,
    /// The last node of each level: keys that come in order are appended without a search.
    tails: [Node; MAX_HEIGHT],
    random: u64,
}

// SAFETY: the nodes belong to the list, which may be sent.
unsafe impl Send for SkipListWriter {}

impl SkipListWriter {
    pub(super) fn new(order: InternalOrder, capacity_hint: usize) -> Self {
        let mut allocator = Allocator::new(capacity_hint);
        let links = allocator.allocate(MAX_HEIGHT * LINK_SIZE);
        for level in 0..MAX_HEIGHT {
            // SAFETY: the piece has room for that many links, and is aligned for them.
            unsafe { links.cast::<Link>().add(level).write(Link::new(ptr::null_mut())) };
        }
        // SAFETY: the end of the piece.
        let start = Node(unsafe { links.add(MAX_HEIGHT * LINK_SIZE) });
        let arena = Arc::clone(allocator.arena());
        let list = Arc::new(SkipList { order, start, height: AtomicUsize::new(1), arena });
        SkipListWriter { list, allocator, tails: [start; MAX_HEIGHT], random: 0x9e37_79b9_7f4a_7c15 }
    }

    pub(super) fn list(&self) -> &Arc<SkipList> {
        &self.list
    }

    /// Adds an entry. Both lengths fit in 32 bits.
    pub(super) fn insert(&mut self, user_key: &[u8], tag: u64, value: &[u8]) {
        assert!(u32::try_from(user_key.len()).is_ok() && u32::try_from(value.len()).is_ok());
        let height = self.random_height();
        let list = &*self.list;
        let target = Target::new(&list.order, user_key, tag);
        let mut before = self.tails;
        let last = self.tails[0];
        // SAFETY: a tail that is not the start is a linked node.
        let appends = last != list.start && unsafe { list.is_after(&target, last) };
        if !appends {
            before = [list.start; MAX_HEIGHT];
            list.search(&target, |level, node| before[level] = node);
        }
        let links_size = height * LINK_SIZE;
        let piece = self.allocator.allocate(links_size + HEAD_SIZE + Record::size(user_key, value));
        // SAFETY: the piece is large enough for the links, the head and the record, and aligned; it is not shared yet.
        let node = unsafe {
            let node = Node(piece.add(links_size));
            node.0.cast::<Head>().write_unaligned(target.head);
            node.record().write(user_key, tag, value);
            for (level, before) in before.iter().enumerate().take(height) {
                // The writer alone changes links: it need not synchronise with itself.
                let next = before.link(level).load(Ordering::Relaxed);
                node.0.sub((level + 1) * LINK_SIZE).cast::<Link>().write(Link::new(next));
            }
            node
        };
        if height > list.height.load(Ordering::Relaxed) {
            list.height.store(height, Ordering::Relaxed);
        }
        for (level, before) in before.iter().enumerate().take(height) {
            // SAFETY: `before` has this level: it was reached on it, or is the start.
            unsafe { before.link(level) }.store(node.0.as_ptr(), Ordering::Release);
            if self.tails[level] == *before {
                self.tails[level] = node;
            }
        }
    }

    /// One node in four is higher than one, of these one in four higher than two, and so on.
    fn random_height(&mut self) -> usize {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        (1 + self.random.trailing_zeros() as usize / 2).min(MAX_HEIGHT)
    }
}

/// Asks for the cache line at `place`, which may be anything.
#[inline]
fn prefetch(place: *const u8) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch has no effect that a program could see, whatever the address. SSE is part of x86-64.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(place.cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = place;
}
