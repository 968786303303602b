//! The contents of a tree node, in one word.

/// The slots of a node. Thirteen slot numbers of four bits leave room for a count and a skip, and
/// make a node four cache lines.
#[cfg(not(all(test, loom)))]
pub(super) const WIDTH: usize = 13;
#[cfg(all(test, loom))]
pub(super) const WIDTH: usize = 4;

/// The longest prefix that a node can skip.
pub(super) const MAX_SKIP: usize = 255;

const SLOT_BITS: usize = 4;
const COUNT_SHIFT: usize = 52;
const SKIP_SHIFT: usize = 56;
const EVERY_SLOT: u64 = (1 << COUNT_SHIFT) - 1;

/// The slots in use, in the order of their entries, and how many bytes of the keys their
/// abbreviated keys leave out.
///
/// The lowest 52 bits hold all slot numbers: the used slots in order, then the unused. Above them
/// are the number of used slots and the skip. As it is one word, a reader sees all of a change or
/// nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct State(u64);

/// A mask of the lowest `slots` slot numbers.
#[inline]
fn mask(slots: usize) -> u64 {
    (1 << (SLOT_BITS * slots)) - 1
}

impl State {
    /// The first `count` slots, in their own order.
    pub(super) fn new(count: usize, skip: usize) -> Self {
        debug_assert!(count <= WIDTH && skip <= MAX_SKIP);
        let order = 0x000c_ba98_7654_3210;
        State(order | (count as u64) << COUNT_SHIFT | (skip as u64) << SKIP_SHIFT)
    }

    #[inline]
    pub(super) fn from_word(word: u64) -> Self {
        State(word)
    }

    #[inline]
    pub(super) fn word(self) -> u64 {
        self.0
    }

    /// The number of slots in use.
    #[inline]
    pub(super) fn count(self) -> usize {
        (self.0 >> COUNT_SHIFT) as usize & 0xf
    }

    /// The number of bytes that all keys share and abbreviated keys leave out.
    #[inline]
    pub(super) fn skip(self) -> usize {
        (self.0 >> SKIP_SHIFT) as usize
    }

    /// The number of the slot at position `at`; from [`State::count`] on, of an unused slot.
    #[inline]
    pub(super) fn slot(self, at: usize) -> usize {
        (self.0 >> (SLOT_BITS * at)) as usize & 0xf
    }

    /// The position of a slot in use.
    pub(super) fn position(self, slot: usize) -> Option<usize> {
        (0..self.count()).find(|&at| self.slot(at) == slot)
    }

    fn with_slots(self, slots: u64, count: usize) -> Self {
        State(slots | (count as u64) << COUNT_SHIFT | (self.skip() as u64) << SKIP_SHIFT)
    }

    /// Takes the first unused slot into use, at position `at`.
    #[inline]
    pub(super) fn insert(self, at: usize) -> Self {
        let count = self.count();
        debug_assert!(at <= count && count < WIDTH);
        let slots = self.0 & EVERY_SLOT;
        let before = slots & mask(at);
        let after = slots & mask(count) & !mask(at);
        let unused = slots & !mask(count + 1);
        let slot = self.slot(count) as u64;
        self.with_slots(before | slot << (SLOT_BITS * at) | after << SLOT_BITS | unused, count + 1)
    }

    /// Takes the first unused slot into use, behind the others.
    #[inline]
    pub(super) fn append(self) -> Self {
        debug_assert!(self.count() < WIDTH);
        State(self.0 + (1 << COUNT_SHIFT))
    }

    /// Keeps the first `count` positions only.
    pub(super) fn truncate(self, count: usize) -> Self {
        debug_assert!(count <= self.count());
        self.with_slots(self.0 & EVERY_SLOT, count)
    }

    /// As many positions in other slots, all of which were unused, under another skip.
    pub(super) fn relocate(self, skip: usize) -> Self {
        let count = self.count();
        debug_assert!(2 * count <= WIDTH && skip <= MAX_SKIP);
        let slots = self.0 & EVERY_SLOT;
        let used = slots & mask(count);
        let fresh = slots >> (SLOT_BITS * count) & mask(count);
        let rest = slots & !mask(2 * count);
        State(
            fresh
                | used << (SLOT_BITS * count)
                | rest
                | (count as u64) << COUNT_SHIFT
                | (skip as u64) << SKIP_SHIFT,
        )
    }
}

#[cfg(test)]
mod tests {
    #[cfg(not(all(test, loom)))]
    use super::*;

    #[cfg(not(loom))]
    fn slots(state: State) -> Vec<usize> {
        (0..state.count()).map(|at| state.slot(at)).collect()
    }

    #[cfg(not(all(test, loom)))]
    #[test]
    fn changes_keep_every_slot_once() {
        let mut state = State::new(0, 3);
        let mut expected = Vec::new();
        for n in 0..200usize {
            let before = slots(state);
            if state.count() == WIDTH {
                state = state.truncate(WIDTH / 2);
                expected.truncate(WIDTH / 2);
                state = state.relocate(n);
                assert!(slots(state).iter().all(|slot| !before[..WIDTH / 2].contains(slot)));
                expected = slots(state);
            }
            let at = n * 7 % (state.count() + 1);
            let skip = state.skip();
            state =
                if at == state.count() && n % 2 == 0 { state.append() } else { state.insert(at) };
            expected.insert(at, state.slot(at));
            assert_eq!((slots(state), state.skip()), (expected.clone(), skip));
            let mut every: Vec<_> = (0..WIDTH).map(|at| state.slot(at)).collect();
            every.sort_unstable();
            assert!(every.iter().copied().eq(0..WIDTH));
        }
    }
}
