//! A node of the tree, and how one writer changes it under readers that never wait.
//!
//! A node has slots, each with the abbreviated key and a pointer: to a record in a leaf, to a child
//! elsewhere. Which slots are in use, and in what order, is its [`State`], one word.
//!
//! 1. A node covers the keys from its lower bound on, up to the lower bound of the next node on its
//!    level. The lower bound never changes; a split moves upper entries into a new next node, so
//!    that a reader that comes to a node too late finds them to the right.
//! 2. A slot is written while it is not in use, and then taken into use by storing the state with
//!    Release. What a pointer leads to is complete before that.
//! 3. A slot that was in use is written again only after [`Node::retire`] has raised the version. A
//!    reader loads version and state, reads slots, and then finds the version the same: what it has
//!    read belongs to that state. Else it tries again; the writer then has made progress, so that a
//!    writer that stands still stops no reader.
//! 4. Every pointer ever stored in a slot stays good, so that even a reader that is about to try
//!    again may follow it.
//! 5. The keys of a node share their first `skip` bytes with its lower bound's key. Abbreviated
//!    keys are what follows.
//! 6. A node is *confined* if `skip` is no more than its two bounds have in common: then every key
//!    between the bounds shares these bytes too and need not be asked for them. Otherwise a key has
//!    to be compared with the lower bound.
//! 7. A node has at least one entry. The first child of an inner node covers all keys before the
//!    second's lower bound, whatever its own says.

#![allow(unsafe_code)]

use std::ptr::{self, NonNull};

use super::atomics::{AtomicPtr, AtomicU64, Ordering, fence};
use super::record::{Bound, Record};
use super::state::{State, WIDTH};
use crate::base::abbreviated_keys::common_prefix;
use crate::base::internal_key::InternalOrder;

/// The tag of a lower bound that comes before every entry of its user key.
pub(super) const BEFORE_ALL: u64 = u64::MAX;

/// The abbreviated key of slots not in use. Only a hint: any abbreviated key may be there.
const UNUSED: u64 = u64::MAX;

/// The step of a version; below it is the mark of a confined node.
const VERSION_STEP: u64 = 2;
const CONFINED: u64 = 1;

#[repr(C, align(64))]
pub(super) struct Node {
    state: AtomicU64,
    version: AtomicU64,
    abbreviated_keys: [AtomicU64; WIDTH],
    slots: [AtomicPtr<u8>; WIDTH],
    next: AtomicPtr<Node>,
    pub(super) shape: Shape,
}

#[cfg(not(all(test, loom)))]
const _: () = assert!(size_of::<Node>() == 256);

/// The words of a node that a reader loads before it reads slots.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Snapshot {
    pub(super) state: State,
    version: u64,
}

impl Snapshot {
    #[inline]
    fn is_confined(self) -> bool {
        self.version & CONFINED != 0
    }

    /// Whether a slot that is in use in both holds the same entry in both.
    #[inline]
    pub(super) fn is_same_version(self, other: Snapshot) -> bool {
        self.version == other.version
    }
}

/// An entry on its way into a node.
#[derive(Clone, Copy)]
pub(super) struct Entry {
    pub(super) abbreviated: u64,
    pub(super) pointer: *mut u8,
}

/// The bytes that abbreviated keys leave out, and whether the node is confined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Prefix {
    pub(super) skip: usize,
    pub(super) confined: bool,
}

/// The eight bytes of a user key that follow the first `skip`, as a number, padded with zeros.
/// Among keys that share these first bytes, unequal abbreviated keys are in the bytewise order of
/// the keys. Other orders have no use for abbreviated keys: there all are zero.
#[inline]
pub(super) fn abbreviate(order: &InternalOrder, user_key: &[u8], skip: usize) -> u64 {
    if !order.keys.is_bytewise() {
        return 0;
    }
    if let Some(window) = user_key.get(skip..).and_then(|rest| rest.first_chunk::<8>()) {
        return u64::from_be_bytes(*window);
    }
    let rest = user_key.get(skip..).unwrap_or(&[]);
    match user_key.last_chunk::<8>() {
        _ if rest.is_empty() => 0,
        Some(last) => u64::from_be_bytes(*last) << (64 - 8 * rest.len()),
        None => {
            rest.iter().rev().fold(0, |abbreviated, &byte| abbreviated >> 8 | u64::from(byte) << 56)
        }
    }
}

/// The immutable part of a node.
#[derive(Clone, Copy)]
pub(super) struct Shape {
    /// Zero for leaves.
    pub(super) level: u32,
    /// Whether this is the first node of its level: its lower bound is none, only a key to share a
    /// prefix with.
    pub(super) leftmost: bool,
    /// The lower bound: a key, by a record that has it, and a tag.
    pub(super) low: Record,
    pub(super) low_tag: u64,
}

impl Node {
    /// Writes a node at `place`. The targets of `shape` and the entries are complete, and live as
    /// long as the node.
    ///
    /// # Safety
    /// `place` has room for a node, is aligned for one, and belongs to the caller; it outlives all
    /// use of the node. The entries' pointers are as the level demands, to records or nodes that
    /// live as long as the node.
    pub(super) unsafe fn create(
        place: NonNull<u8>,
        shape: Shape,
        prefix: Prefix,
        entries: &[Entry],
        next: Option<NonNull<Node>>,
    ) -> NonNull<Node> {
        let abbreviated = |at: usize| entries.get(at).map_or(UNUSED, |entry| entry.abbreviated);
        let pointer = |at: usize| entries.get(at).map_or(ptr::null_mut(), |entry| entry.pointer);
        let node = Node {
            state: AtomicU64::new(State::new(entries.len(), prefix.skip).word()),
            version: AtomicU64::new(if prefix.confined { CONFINED } else { 0 }),
            shape,
            abbreviated_keys: std::array::from_fn(|at| AtomicU64::new(abbreviated(at))),
            slots: std::array::from_fn(|at| AtomicPtr::new(pointer(at))),
            next: AtomicPtr::new(next.map_or(ptr::null_mut(), NonNull::as_ptr)),
        };
        let place = place.cast::<Node>();
        // SAFETY: the caller gives the room.
        unsafe { place.write(node) };
        place
    }

    /// A snapshot to read the node by: see invariant 3.
    #[inline]
    pub(super) fn snapshot(&self) -> Snapshot {
        let version = self.version.load(Ordering::Acquire);
        Snapshot { state: State::from_word(self.state.load(Ordering::Acquire)), version }
    }

    /// Whether all that was read by `snapshot` belongs together.
    #[inline]
    pub(super) fn is_current(&self, snapshot: Snapshot) -> bool {
        fence(Ordering::Acquire);
        self.version.load(Ordering::Relaxed) == snapshot.version
    }

    /// Where the node's keys begin.
    #[inline]
    pub(super) fn low_bound(&self) -> Bound<'_> {
        // SAFETY: complete before the node, and as long-lived.
        Bound { user_key: unsafe { self.shape.low.user_key() }, tag: self.shape.low_tag }
    }

    #[inline]
    pub(super) fn next(&self) -> Option<&Node> {
        // SAFETY: a node is complete before it is linked, with Release, and lives as long as this
        // one.
        unsafe { self.next.load(Ordering::Acquire).as_ref() }
    }

    /// The pointer in a slot that is, or was, in use.
    #[inline]
    fn pointer(&self, slot: usize) -> NonNull<u8> {
        let pointer = self.slots[slot].load(Ordering::Acquire);
        debug_assert!(!pointer.is_null());
        // SAFETY: a slot has a pointer before a state that names it is stored with Release (2), and
        // for ever after (4).
        unsafe { NonNull::new_unchecked(pointer) }
    }

    /// The child in a slot of an inner node.
    #[inline]
    pub(super) fn child(&self, slot: usize) -> &Node {
        debug_assert!(self.shape.level > 0);
        // SAFETY: inner nodes point at nodes, complete (2) and as long-lived as this one.
        unsafe { self.pointer(slot).cast::<Node>().as_ref() }
    }

    /// The record in a slot of a leaf.
    #[inline]
    pub(super) fn record(&self, slot: usize) -> Record {
        debug_assert!(self.shape.level == 0);
        Record::at(self.pointer(slot))
    }

    /// The place of a slot's entry in the order: of a child, its lower bound.
    #[inline]
    pub(super) fn bound(&self, slot: usize) -> Bound<'_> {
        if self.shape.level > 0 {
            return self.child(slot).low_bound();
        }
        // SAFETY: complete before it came into the slot, and as long-lived as the node.
        unsafe { self.record(slot).bound() }
    }

    /// The number of entries before `target`, which does not come before the node's own lower
    /// bound.
    ///
    /// For an inner node at least one, so that the last of them is the child to go to. To be
    /// believed only if the snapshot is current afterwards. If `target` belongs to the right of the
    /// node, because of a split that the way here did not know of, the result may be any.
    #[inline]
    pub(super) fn locate(
        &self,
        order: &InternalOrder,
        snapshot: Snapshot,
        target: &Bound<'_>,
    ) -> usize {
        let state = snapshot.state;
        let (count, skip) = (state.count(), state.skip());
        let first = usize::from(self.shape.level > 0);
        if !snapshot.is_confined() {
            let low = self.low_bound().user_key;
            let shared = common_prefix(target.user_key, low);
            if shared < skip {
                return if target.user_key.get(shared) < low.get(shared) { first } else { count };
            }
        }
        let abbreviated = abbreviate(order, target.user_key, skip);
        let abbreviated_at =
            |at: usize| self.abbreviated_keys[state.slot(at)].load(Ordering::Relaxed);
        // Counting needs no order and no branches. Slots not in use mostly hold the greatest
        // abbreviated key and do not count; as that is no promise, the result is checked.
        let mut before = 0;
        for slot in &self.abbreviated_keys {
            before = one_by_one(before + usize::from(slot.load(Ordering::Relaxed) < abbreviated));
        }
        let mut at = before.max(first).min(count);
        if !((at == first || abbreviated_at(at - 1) < abbreviated)
            && (at == count || abbreviated_at(at) >= abbreviated))
        {
            at = (first..count).find(|&at| abbreviated_at(at) >= abbreviated).unwrap_or(count);
        }
        if at == count || abbreviated_at(at) != abbreviated {
            return at;
        }
        let mut end = at + 1;
        while end < count && abbreviated_at(end) == abbreviated {
            end += 1;
        }
        while at < end {
            let middle = at.midpoint(end);
            if self.bound(state.slot(middle)).is_before(order, target) {
                at = middle + 1;
            } else {
                end = middle;
            }
        }
        at
    }

    /// Asks for the rest of a node of which the first cache line is about to be read.
    #[inline]
    pub(super) fn prefetch(&self) {
        let start = ptr::from_ref(self).cast::<u8>();
        for line in 1..4 {
            prefetch(start.wrapping_add(64 * line));
        }
    }
}

/// The writer's operations. Only one thread at a time may call these.
impl Node {
    #[inline]
    pub(super) fn state(&self) -> State {
        State::from_word(self.state.load(Ordering::Relaxed))
    }

    #[inline]
    pub(super) fn is_confined(&self) -> bool {
        self.version.load(Ordering::Relaxed) & CONFINED != 0
    }

    pub(super) fn abbreviated(&self, slot: usize) -> u64 {
        self.abbreviated_keys[slot].load(Ordering::Relaxed)
    }

    /// An entry of a slot in use, with an abbreviated key by `skip`.
    pub(super) fn entry(&self, order: &InternalOrder, slot: usize, skip: usize) -> Entry {
        let abbreviated = if skip == self.state().skip() {
            self.abbreviated(slot)
        } else {
            abbreviate(order, self.bound(slot).user_key, skip)
        };
        Entry { abbreviated, pointer: self.pointer(slot).as_ptr() }
    }

    /// Puts an entry at position `at`; there is an unused slot.
    ///
    /// # Safety
    /// The pointer is as the level demands, to a complete record or node that lives as long as this
    /// node.
    #[inline]
    pub(super) unsafe fn put(&self, at: usize, entry: Entry) {
        let state = self.state();
        let slot = state.slot(state.count());
        self.abbreviated_keys[slot].store(entry.abbreviated, Ordering::Relaxed);
        self.slots[slot].store(entry.pointer, Ordering::Release);
        self.state.store(state.insert(at).word(), Ordering::Release);
    }

    /// Puts an entry behind the last, if its key shares enough with the last's and there is an
    /// unused slot.
    ///
    /// # Safety
    /// As for [`Node::put`].
    #[inline]
    pub(super) unsafe fn append(
        &self,
        order: &InternalOrder,
        user_key: &[u8],
        shared: usize,
        pointer: *mut u8,
    ) -> bool {
        let state = self.state();
        if state.count() == WIDTH || shared < state.skip() {
            return false;
        }
        let slot = state.slot(state.count());
        self.abbreviated_keys[slot]
            .store(abbreviate(order, user_key, state.skip()), Ordering::Relaxed);
        self.slots[slot].store(pointer, Ordering::Release);
        self.state.store(state.append().word(), Ordering::Release);
        true
    }

    /// Gives the entries from position `count` on to `next`, which has them already and is the new
    /// next node.
    ///
    /// # Safety
    /// `next` is complete and lives as long as this node.
    pub(super) unsafe fn split_off(&self, count: usize, next: NonNull<Node>) {
        // In this order: a reader that misses an entry here finds the node that has it.
        self.next.store(next.as_ptr(), Ordering::Release);
        let state = self.state();
        if count < state.count() {
            self.state.store(state.truncate(count).word(), Ordering::Release);
            self.retire(self.is_confined());
        }
    }

    /// Computes the abbreviated keys anew, by other prefixes. At most half the slots are in use.
    pub(super) fn change_prefix(&self, order: &InternalOrder, prefix: Prefix) {
        let old = self.state();
        let new = old.relocate(prefix.skip);
        for at in 0..old.count() {
            let entry = self.entry(order, old.slot(at), prefix.skip);
            self.abbreviated_keys[new.slot(at)].store(entry.abbreviated, Ordering::Relaxed);
            self.slots[new.slot(at)].store(entry.pointer, Ordering::Release);
        }
        if self.is_confined() && !prefix.confined {
            // First: the old skip without the promise is right, the new one with it is not, and
            // a reader of the new one will notice that this has changed.
            let version = self.version.load(Ordering::Relaxed);
            self.version.store((version + VERSION_STEP) & !CONFINED, Ordering::Release);
        }
        self.state.store(new.word(), Ordering::Release);
        self.retire(prefix.confined);
    }

    /// Says that the skip is confined.
    pub(super) fn confine(&self) {
        let version = self.version.load(Ordering::Relaxed);
        self.version.store((version + VERSION_STEP) | CONFINED, Ordering::Release);
    }

    /// Makes slots that went out of use fit for use again: a reader of them by an older state
    /// will notice.
    fn retire(&self, confined: bool) {
        let version = (self.version.load(Ordering::Relaxed) | CONFINED) + VERSION_STEP;
        let version = if confined { version } else { version & !CONFINED };
        self.version.store(version, Ordering::Release);
        // With the reader's fence: a reader of a value that is written to a slot from here on reads
        // the new version too.
        fence(Ordering::Release);
        let state = self.state();
        for at in state.count()..WIDTH {
            self.abbreviated_keys[state.slot(at)].store(UNUSED, Ordering::Relaxed);
        }
    }
}

/// Its argument, of which the compiler knows nothing. Without this it makes vectors out of a sum of
/// comparisons, one element at a time, where a compare and an add with carry each are twice as
/// fast.
#[inline(always)]
fn one_by_one(sum: usize) -> usize {
    #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
    let sum = {
        let mut sum = sum;
        // SAFETY: no instruction at all.
        unsafe {
            std::arch::asm!(
                "/* {0} */", inout(reg) sum, options(pure, nomem, nostack, preserves_flags)
            );
        }
        sum
    };
    sum
}

/// Asks for the cache line at `place`, which may be anything.
#[inline]
pub(super) fn prefetch(place: *const u8) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch has no effect that a program could see, whatever the address. SSE is part
    // of x86-64.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(place.cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = place;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn abbreviated_keys_order_keys_behind_the_skip() {
        let order = InternalOrder::default();
        assert_eq!(abbreviate(&order, b"0123456789", 2), u64::from_be_bytes(*b"23456789"));
        assert_eq!(abbreviate(&order, b"0123456789", 8), u64::from_be_bytes(*b"89\0\0\0\0\0\0"));
        assert_eq!(abbreviate(&order, b"01234567", 8), 0);
        assert_eq!(abbreviate(&order, b"01234", 2), u64::from_be_bytes(*b"234\0\0\0\0\0"));
        assert_eq!(abbreviate(&order, b"01", 3), 0);
        assert_eq!(abbreviate(&order, b"", 0), 0);
    }
}
