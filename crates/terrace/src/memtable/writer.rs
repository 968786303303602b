//! The writer of a tree.
//!
//! The writer alone changes nodes, so it reads them as they are: no snapshot of its own can grow
//! old.

#![allow(unsafe_code)]

use std::ptr;
use std::ptr::NonNull;
use std::sync::Arc;

use super::arena::{Allocator, Arena, ChunkPool};
use super::node::{BEFORE_ALL, Entry, Node, Prefix, Shape, abbreviate};
use super::record::{Bound, Record, compare_keys};
use super::state::{MAX_SKIP, WIDTH};
use super::tree::Tree;
use crate::base::abbreviated_keys::common_prefix;
use crate::base::internal_key::InternalOrder;

/// Two abbreviated keys that agree in this many of their upper bits have too little left to tell
/// keys apart by.
const POOR_ABBREVIATION_BITS: u32 = 32;

/// Abbreviated keys are worth computing anew if less than this many of their bytes are still the
/// same in all keys.
const GOOD_ABBREVIATION: usize = 5;

/// A node on the way from the root to a leaf, and the position at which a new next sibling of the
/// child goes; in the leaf, at which the new entry goes. Splits on the way keep it so: one entry
/// may split a node more than once.
#[derive(Clone, Copy)]
struct Step {
    node: NonNull<Node>,
    at: usize,
}

/// A position behind all entries.
const END: usize = usize::MAX;

pub(super) struct TreeWriter {
    tree: Arc<Tree>,
    records: Allocator,
    nodes: Allocator,
    /// The way to the entry being added, by level, the leaf first. Empty if it goes behind the
    /// last.
    path: Vec<Step>,
    /// The last node of each level. Entries that come in order are added there without a search.
    spine: Vec<NonNull<Node>>,
    /// The last entry.
    last: Option<Record>,
}

// SAFETY: the pointers lead into the tree's arena, and the tree may be sent.
unsafe impl Send for TreeWriter {}

impl TreeWriter {
    pub(super) fn new(order: InternalOrder, pool: Arc<ChunkPool>) -> Self {
        let arena = Arc::new(Arena::new(pool));
        let records = Allocator::new(Arc::clone(&arena), 8);
        let nodes = Allocator::new(Arc::clone(&arena), align_of::<Node>());
        let tree = Arc::new(Tree::new(order, arena));
        TreeWriter { tree, records, nodes, path: Vec::new(), spine: Vec::new(), last: None }
    }

    pub(super) fn tree(&self) -> &Arc<Tree> {
        &self.tree
    }

    /// Adds an entry. Both lengths fit in 32 bits.
    pub(super) fn insert(&mut self, user_key: &[u8], tag: u64, value: &[u8]) {
        assert!(u32::try_from(user_key.len()).is_ok() && u32::try_from(value.len()).is_ok());
        let record = Record::at(self.records.allocate(Record::size(user_key, value)));
        // SAFETY: the piece is large enough, and not shared yet.
        unsafe { record.write(user_key, tag, value) };
        let target = Bound { user_key, tag };
        let Some(last) = self.last else {
            self.last = Some(record);
            self.plant(record, user_key);
            return;
        };
        // SAFETY: written by an earlier call.
        let last = unsafe { last.bound() };
        self.path.clear();
        if last.is_before(&self.tree.order, &target) {
            self.last = Some(record);
            let shared = common_prefix(last.user_key, user_key);
            // SAFETY: the last leaf, and a record, of the same arena.
            if unsafe {
                self.spine[0].as_ref().append(&self.tree.order, user_key, shared, record.pointer())
            } {
                return;
            }
        } else {
            self.descend(&target);
        }
        self.add(0, target, record.pointer());
    }

    /// The first entry: a tree of one leaf.
    fn plant(&mut self, record: Record, user_key: &[u8]) {
        let order = &self.tree.order;
        let shape = Shape { level: 0, leftmost: true, low: record, low_tag: BEFORE_ALL };
        let prefix = prefix_of_edge(order, user_key, user_key);
        let entry = Entry {
            abbreviated: abbreviate(order, user_key, prefix.skip),
            pointer: record.pointer(),
        };
        self.grow(shape, prefix, &[entry]);
    }

    /// Makes a node the root.
    fn grow(&mut self, shape: Shape, prefix: Prefix, entries: &[Entry]) -> NonNull<Node> {
        let root = create(&mut self.nodes, shape, prefix, entries, None);
        self.spine.push(root);
        // SAFETY: complete, and in the tree's arena.
        unsafe { self.tree.set_root(root) };
        root
    }

    /// Finds the way to where `target` goes.
    fn descend(&mut self, target: &Bound<'_>) {
        let order = &self.tree.order;
        let Some(mut node) = self.tree.root() else { return };
        loop {
            let snapshot = node.snapshot();
            let at = node.locate(order, snapshot, target);
            self.path.push(Step { node: NonNull::from(node), at });
            if node.shape.level == 0 {
                break;
            }
            node = node.child(snapshot.state.slot(at - 1));
            node.prefetch();
        }
        self.path.reverse();
    }

    /// Where the path goes at a level: if it is empty, along the end.
    fn step(&self, level: usize) -> Option<Step> {
        if self.path.is_empty() {
            return self.spine.get(level).map(|&node| Step { node, at: END });
        }
        self.path.get(level).copied()
    }

    /// Adds an entry of `level` where the path leads, splitting nodes as need be.
    fn add(&mut self, level: usize, key: Bound<'_>, pointer: *mut u8) {
        loop {
            let Some(Step { node: place, at }) = self.step(level) else {
                let root = self.add_root(key, pointer);
                if let Some(node) = root.filter(|_| !self.path.is_empty()) {
                    self.path.push(Step { node, at: 1 });
                }
                return;
            };
            // SAFETY: a node of the tree, which lives as long as the arena; nothing below frees it.
            let node: &Node = unsafe { place.as_ref() };
            let order = &self.tree.order;
            let state = node.state();
            let (count, skip) = (state.count(), state.skip());
            let at = at.min(count);
            // Most nodes are confined, and their lower bound is far away.
            let shared = if node.is_confined() {
                skip
            } else {
                common_prefix(key.user_key, node.low_bound().user_key).min(skip)
            };
            let fits = shared == skip;
            if !fits && 2 * count <= WIDTH {
                let skip = shared;
                node.change_prefix(order, Prefix { skip, confined: skip == 0 });
                continue;
            }
            if fits && count < WIDTH {
                let entry = Entry { abbreviated: abbreviate(order, key.user_key, skip), pointer };
                // SAFETY: the caller gives a complete record or node of this arena, as the level
                // demands.
                unsafe { node.put(at, entry) };
                return;
            }
            if at == count && (!fits || node.next().is_none()) {
                self.extend(level, node, key, pointer);
                return;
            }
            let kept = count / 2;
            let right = self.split(node, kept);
            if self.spine[level] == place {
                self.spine[level] = right;
            }
            // SAFETY: just created.
            let low = unsafe { right.as_ref() }.low_bound();
            // A newer entry of the user key that the right node begins with belongs there, though
            // it comes before.
            let goes_right = at > kept || (at == kept && low.is_before(&self.tree.order, &key));
            if goes_right {
                self.path[level] = Step { node: right, at: at - kept };
            }
            self.add(level + 1, low, right.as_ptr().cast());
            // Should the right node be split once more, for the sake of prefixes, its next sibling
            // goes behind it.
            if goes_right {
                self.path[level + 1].at += 1;
            }
        }
    }

    /// Puts a root above the root, whose new next sibling begins at `key`.
    fn add_root(&mut self, key: Bound<'_>, pointer: *mut u8) -> Option<NonNull<Node>> {
        let order = &self.tree.order;
        let old = self.tree.root()?;
        let shape = Shape { level: old.shape.level + 1, ..old.shape };
        let prefix = prefix_of_edge(order, old.low_bound().user_key, key.user_key);
        let old = Entry { abbreviated: 0, pointer: ptr::from_ref(old).cast_mut().cast() };
        let new = Entry { abbreviated: abbreviate(order, key.user_key, prefix.skip), pointer };
        Some(self.grow(shape, prefix, &[old, new]))
    }

    /// Adds an entry behind the last of a node, in a next node of its own: at the end of a level,
    /// so that entries in order fill nodes, and elsewhere if it shares too little with the others.
    fn extend(&mut self, level: usize, node: &Node, key: Bound<'_>, pointer: *mut u8) {
        let order = &self.tree.order;
        let state = node.state();
        let before = node.bound(state.slot(state.count() - 1)).user_key;
        let next = node.next();
        let prefix = match next.filter(|_| order.keys.is_bytewise()) {
            Some(next) => {
                let skip = common_prefix(key.user_key, next.low_bound().user_key).min(MAX_SKIP);
                Prefix { skip, confined: true }
            }
            None => prefix_of_edge(order, before, key.user_key),
        };
        let shape = if level == 0 {
            let is_new_key = compare_keys(order, before, key.user_key).is_ne();
            let low_tag = if is_new_key { BEFORE_ALL } else { key.tag };
            // SAFETY: what is added to a leaf is a record.
            let low = Record::at(unsafe { NonNull::new_unchecked(pointer) });
            Shape { level: 0, leftmost: false, low, low_tag }
        } else {
            // SAFETY: what is added to an inner node is a node.
            let child = unsafe { &*pointer.cast::<Node>() };
            Shape { level: node.shape.level, ..child.shape }
        };
        let entry = Entry { abbreviated: abbreviate(order, key.user_key, prefix.skip), pointer };
        let right = create(&mut self.nodes, shape, prefix, &[entry], next.map(NonNull::from));
        // SAFETY: complete, and of the same arena.
        unsafe { node.split_off(state.count(), right) };
        if !node.is_confined() && !node.shape.leftmost {
            let shared = common_prefix(node.low_bound().user_key, key.user_key);
            if shared >= state.skip() {
                node.confine();
            }
        }
        if next.is_none() {
            self.spine[level] = right;
        }
        if let Some(step) = self.path.get_mut(level) {
            *step = Step { node: right, at: 0 };
        }
        // SAFETY: just created.
        let low = unsafe { right.as_ref() }.low_bound();
        self.add(level + 1, low, right.as_ptr().cast());
    }

    /// Moves the entries of a node from position `kept` on to a new next node.
    fn split(&mut self, node: &Node, kept: usize) -> NonNull<Node> {
        let order = &self.tree.order;
        let state = node.state();
        let count = state.count();
        let (before, first, last) = (state.slot(kept - 1), state.slot(kept), state.slot(count - 1));
        let shape = if node.shape.level > 0 {
            Shape { level: node.shape.level, ..node.child(first).shape }
        } else {
            let is_new_key = node.abbreviated(before) != node.abbreviated(first)
                || compare_keys(order, node.bound(before).user_key, node.bound(first).user_key)
                    .is_ne();
            let low = node.record(first);
            let low_tag = if is_new_key { BEFORE_ALL } else { node.bound(first).tag };
            Shape { level: 0, leftmost: false, low, low_tag }
        };
        let old = Prefix { skip: state.skip(), confined: node.is_confined() };
        let of_right = if is_good(old, node.abbreviated(first), node.abbreviated(last)) {
            old
        } else {
            let keys = [first, first, last].map(|slot| node.bound(slot).user_key);
            let end = node.next().map(|next| next.low_bound().user_key);
            choose_prefix(order, old, keys, true, end)
        };
        let mut entries = [Entry { abbreviated: 0, pointer: ptr::null_mut() }; WIDTH];
        for (at, entry) in (kept..count).zip(&mut entries) {
            *entry = node.entry(order, state.slot(at), of_right.skip);
        }
        let next = node.next().map(NonNull::from);
        let right = create(&mut self.nodes, shape, of_right, &entries[..count - kept], next);
        // SAFETY: complete, and of the same arena.
        unsafe { node.split_off(kept, right) };

        let start = state.slot(usize::from(node.shape.level > 0));
        if !is_good(old, node.abbreviated(start), node.abbreviated(before)) {
            let keys = [
                node.low_bound().user_key,
                node.bound(start).user_key,
                node.bound(before).user_key,
            ];
            // SAFETY: just created.
            let end = unsafe { right.as_ref() }.low_bound().user_key;
            let new = choose_prefix(order, old, keys, !node.shape.leftmost, Some(end));
            if new.skip != old.skip {
                node.change_prefix(order, new);
            } else if new.confined && !old.confined {
                node.confine();
            }
        }
        right
    }
}

fn create(
    nodes: &mut Allocator,
    shape: Shape,
    prefix: Prefix,
    entries: &[Entry],
    next: Option<NonNull<Node>>,
) -> NonNull<Node> {
    let place = nodes.allocate(size_of::<Node>());
    // SAFETY: the piece has the size and, by the allocator, the alignment of a node. Entries are
    // records or nodes of the same arena.
    unsafe { Node::create(place, shape, prefix, entries, next) }
}

/// Whether abbreviated keys tell the keys between these two apart, and no key needs to be asked for
/// its prefix.
fn is_good(prefix: Prefix, first: u64, last: u64) -> bool {
    prefix.confined && (first ^ last).leading_zeros() < POOR_ABBREVIATION_BITS
}

/// The prefix of a node at the end of its level that is to hold keys like these two. Abbreviated
/// keys reach at least to the end of the key.
fn prefix_of_edge(order: &InternalOrder, a: &[u8], b: &[u8]) -> Prefix {
    if !order.keys.is_bytewise() {
        return Prefix { skip: 0, confined: true };
    }
    let skip = common_prefix(a, b).min(b.len().saturating_sub(8)).min(MAX_SKIP);
    Prefix { skip, confined: skip == 0 }
}

/// A longer prefix for a node, if there is one: better what its bounds share, unless what its keys
/// share is so much longer that abbreviated keys would be of no use. `keys` are the lower bound
/// (`low_is_bound`: a true one), the first and the last; `end` is the next node's lower bound.
fn choose_prefix(
    order: &InternalOrder,
    old: Prefix,
    [low, first, last]: [&[u8]; 3],
    low_is_bound: bool,
    end: Option<&[u8]>,
) -> Prefix {
    if !order.keys.is_bytewise() {
        return old;
    }
    let of_bounds = end.filter(|_| low_is_bound).map(|end| common_prefix(low, end).min(MAX_SKIP));
    let of_keys = common_prefix(low, first).min(common_prefix(low, last));
    let of_keys = of_keys.min(first.len().saturating_sub(8)).min(MAX_SKIP);
    match of_bounds.filter(|&skip| skip >= old.skip) {
        Some(skip) if of_keys < skip + GOOD_ABBREVIATION => Prefix { skip, confined: true },
        _ if of_keys > old.skip => Prefix { skip: of_keys, confined: false },
        Some(skip) => Prefix { skip, confined: true },
        None => old,
    }
}
