//! The entries in order: a B+tree for one writer and any number of readers, which take no lock and
//! never wait.
//!
//! Readers come from above, node by node, each read by a snapshot; see `node` for what holds there.
//! Between two nodes nothing is held: a child may have been split since its parent was read. Then
//! the reader comes out too far left, never too far right, notices in the leaf, and goes on to the
//! right.
//!
//! 1. Nodes and records are added by the one [`TreeWriter`](super::writer::TreeWriter); none is
//!    moved or freed before the tree is dropped.
//! 2. An entry is in the tree as soon as its leaf names it. Parents only shorten the way.

#![allow(unsafe_code)]

use std::cmp;
use std::ptr::{self, NonNull};
use std::sync::Arc;

use super::arena::Arena;
use super::atomics::{AtomicPtr, Ordering};
use super::node::{Node, Snapshot};
use super::record::{Bound, Record, compare_keys};
use crate::base::internal_key::{InternalOrder, KIND_FOR_SEEK, SequenceNumber, pack_tag};

/// The tree, for readers.
pub(super) struct Tree {
    pub(super) order: InternalOrder,
    /// Null as long as there is no entry.
    root: AtomicPtr<Node>,
    arena: Arc<Arena>,
}

// SAFETY: nodes are made of atomics, and of what is written before they are published; records are
// written before they are published. Both live as long as the arena, which the tree keeps.
unsafe impl Send for Tree {}
// SAFETY: as above.
unsafe impl Sync for Tree {}

/// An entry found, and where.
#[derive(Clone, Copy)]
pub(super) struct Place {
    node: NonNull<Node>,
    snapshot: Snapshot,
    at: usize,
    record: Record,
}

impl Place {
    fn new(node: &Node, snapshot: Snapshot, at: usize, record: Record) -> Self {
        Place { node: NonNull::from(node), snapshot, at, record }
    }
}

impl Tree {
    pub(super) fn new(order: InternalOrder, arena: Arc<Arena>) -> Self {
        Tree { order, root: AtomicPtr::new(ptr::null_mut()), arena }
    }

    pub(super) fn arena(&self) -> &Arena {
        &self.arena
    }

    /// # Safety
    /// The node is complete, and lies in the tree's arena.
    pub(super) unsafe fn set_root(&self, root: NonNull<Node>) {
        self.root.store(root.as_ptr(), Ordering::Release);
    }

    #[inline]
    pub(super) fn root(&self) -> Option<&Node> {
        // SAFETY: null, or complete when stored with Release, and as long-lived as the arena.
        unsafe { self.root.load(Ordering::Acquire).as_ref() }
    }

    /// The newest entry of `user_key` up to `sequence`: its tag and value.
    #[inline]
    pub(super) fn get(&self, user_key: &[u8], sequence: SequenceNumber) -> Option<(u64, &[u8])> {
        let target = Bound { user_key, tag: pack_tag(sequence, KIND_FOR_SEEK) };
        let (place, is_same_key) = self.find(self.root()?, &target)?;
        // SAFETY: found in the tree.
        is_same_key.then(|| unsafe { (place.record.tag(), place.record.value()) })
    }

    /// The first entry not before `target`, and whether it has the same user key. `from` is a node
    /// that does not begin after `target`.
    #[inline]
    fn find(&self, from: &Node, target: &Bound<'_>) -> Option<(Place, bool)> {
        let mut node = from;
        loop {
            let snapshot = node.snapshot();
            let at = node.locate(&self.order, snapshot, target);
            if node.shape.level > 0 {
                let child = node.child(snapshot.state.slot(at - 1));
                if node.is_current(snapshot) {
                    child.prefetch();
                    node = child;
                }
                continue;
            }
            if at == snapshot.state.count() {
                if node.is_current(snapshot) {
                    let next = node.next()?;
                    if !next.low_bound().is_before(&self.order, target) {
                        let place = self.first_of(next);
                        // SAFETY: found in the tree.
                        let key = unsafe { place.record.user_key() };
                        return Some((
                            place,
                            compare_keys(&self.order, key, target.user_key).is_eq(),
                        ));
                    }
                    node = next;
                }
                continue;
            }
            let record = node.record(snapshot.state.slot(at));
            if !node.is_current(snapshot) {
                continue;
            }
            // SAFETY: found in the tree.
            match compare_keys(&self.order, unsafe { record.user_key() }, target.user_key) {
                // A split that the way here did not know of: the target is to the right.
                cmp::Ordering::Less => node = node.next()?,
                order => return Some((Place::new(node, snapshot, at, record), order.is_eq())),
            }
        }
    }

    /// The last entry before `target`.
    fn find_before(&self, target: &Bound<'_>) -> Option<Place> {
        let mut target = *target;
        let mut node = self.root()?;
        loop {
            let snapshot = node.snapshot();
            let at = node.locate(&self.order, snapshot, &target);
            if let Some(next) = node.next()
                && next.low_bound().is_before(&self.order, &target)
            {
                node = next;
                continue;
            }
            if node.shape.level > 0 {
                let child = node.child(snapshot.state.slot(at - 1));
                if node.is_current(snapshot) {
                    node = child;
                }
                continue;
            }
            if at > 0 {
                let record = node.record(snapshot.state.slot(at - 1));
                if node.is_current(snapshot) {
                    return Some(Place::new(node, snapshot, at - 1, record));
                }
            } else if node.is_current(snapshot) {
                if node.shape.leftmost {
                    return None;
                }
                // The target is the first entry of its user key, and the node begins just before
                // it.
                target = node.low_bound();
                node = self.root()?;
            }
        }
    }

    fn first_of(&self, leaf: &Node) -> Place {
        loop {
            let snapshot = leaf.snapshot();
            let record = leaf.record(snapshot.state.slot(0));
            if leaf.is_current(snapshot) {
                return Place::new(leaf, snapshot, 0, record);
            }
        }
    }

    fn first(&self) -> Option<Place> {
        let mut node = self.root()?;
        while node.shape.level > 0 {
            // The first child of the first nodes never changes: whatever slot it is in, it is this
            // one.
            let snapshot = node.snapshot();
            let child = node.child(snapshot.state.slot(0));
            if node.is_current(snapshot) {
                node = child;
            }
        }
        Some(self.first_of(node))
    }

    fn last(&self) -> Option<Place> {
        let mut node = self.root()?;
        loop {
            let snapshot = node.snapshot();
            if let Some(next) = node.next() {
                node = next;
                continue;
            }
            let at = snapshot.state.count() - 1;
            let slot = snapshot.state.slot(at);
            if node.shape.level > 0 {
                let child = node.child(slot);
                if node.is_current(snapshot) {
                    node = child;
                }
                continue;
            }
            let record = node.record(slot);
            if node.is_current(snapshot) {
                return Some(Place::new(node, snapshot, at, record));
            }
        }
    }
}

/// A position in a tree, which it keeps alive.
pub(super) struct TreeIter {
    tree: Arc<Tree>,
    place: Option<Place>,
}

// SAFETY: the place belongs to the tree, which may be sent and shared.
unsafe impl Send for TreeIter {}
// SAFETY: as above.
unsafe impl Sync for TreeIter {}

impl TreeIter {
    pub(super) fn new(tree: Arc<Tree>) -> Self {
        TreeIter { tree, place: None }
    }

    #[inline]
    pub(super) fn valid(&self) -> bool {
        self.place.is_some()
    }

    pub(super) fn seek_to_first(&mut self) {
        self.place = self.tree.first();
    }

    pub(super) fn seek_to_last(&mut self) {
        self.place = self.tree.last();
    }

    pub(super) fn seek(&mut self, user_key: &[u8], tag: u64) {
        let tree = &*self.tree;
        let target = Bound { user_key, tag };
        self.place = tree.root().and_then(|root| tree.find(root, &target)).map(|(place, _)| place);
    }

    /// The node of a place as it is now, and where the place's entry is in it: nowhere if it went
    /// to other nodes or slots.
    #[inline]
    fn revisit(&self, place: &Place) -> (&Node, Snapshot, Option<usize>) {
        // SAFETY: found in the tree, which the iterator keeps.
        let node = unsafe { place.node.as_ref() };
        let snapshot = node.snapshot();
        if snapshot == place.snapshot {
            return (node, snapshot, Some(place.at));
        }
        let slot = place.snapshot.state.slot(place.at);
        let at = if snapshot.is_same_version(place.snapshot) {
            snapshot.state.position(slot)
        } else {
            None
        };
        (node, snapshot, at)
    }

    #[inline]
    pub(super) fn next(&mut self) {
        let Some(mut place) = self.place else { return };
        self.place = loop {
            // SAFETY: found in the tree.
            let here = unsafe { place.record.bound() };
            let (node, snapshot, at) = self.revisit(&place);
            let tree = &*self.tree;
            let Some(at) = at else {
                match tree.root().and_then(|root| tree.find(root, &here)) {
                    Some((found, _)) => place = found,
                    None => break None,
                }
                continue;
            };
            if at + 1 < snapshot.state.count() {
                let record = node.record(snapshot.state.slot(at + 1));
                if node.is_current(snapshot) {
                    break Some(Place::new(node, snapshot, at + 1, record));
                }
                continue;
            }
            let Some(next) = node.next() else { break None };
            if here.is_before(&tree.order, &next.low_bound()) {
                break Some(tree.first_of(next));
            }
            // The node is being split, and this entry is among those that went to the right.
            match tree.find(next, &here) {
                Some((found, _)) if found.record == place.record => place = found,
                found => break found.map(|(place, _)| place),
            }
        };
    }

    #[inline]
    pub(super) fn prev(&mut self) {
        let Some(place) = self.place else { return };
        if let (node, snapshot, Some(at @ 1..)) = self.revisit(&place) {
            let record = node.record(snapshot.state.slot(at - 1));
            if node.is_current(snapshot) {
                self.place = Some(Place::new(node, snapshot, at - 1, record));
                return;
            }
        }
        // SAFETY: found in the tree.
        let here = unsafe { place.record.bound() };
        self.place = self.tree.find_before(&here);
    }

    /// The internal key, or nothing.
    #[inline]
    pub(super) fn key(&self) -> &[u8] {
        // SAFETY: found in the tree, which this iterator keeps.
        self.place.map_or(&[], |place| unsafe { place.record.internal_key() })
    }

    /// The value, or nothing.
    #[inline]
    pub(super) fn value(&self) -> &[u8] {
        // SAFETY: found in the tree, which this iterator keeps.
        self.place.map_or(&[], |place| unsafe { place.record.value() })
    }
}
