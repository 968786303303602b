//! What a scan comes to next within a block, looked at before it comes there.

use super::block_iter::BlockIter;

/// How far ahead of a scan entries have been shown.
pub(super) struct EntriesAhead {
    /// The number of the block.
    at: usize,
    backward: bool,
    /// Where the first entry began that was shown, and the next one that will be.
    from: usize,
    iter: BlockIter,
    /// Where those begin that were shown the last time.
    shown: Vec<usize>,
}

impl EntriesAhead {
    /// For a scan that stands at an entry of block `at`, which counts as shown on the way forward.
    pub(super) fn new(at: usize, backward: bool, scan: &BlockIter) -> Self {
        let mut iter = scan.fork();
        if !backward {
            iter.next();
        }
        EntriesAhead { at, backward, from: scan.offset(), iter, shown: Vec::new() }
    }

    /// Whether this is ahead of a scan of block `at` in this direction, and not far away.
    pub(super) fn is_ahead_of(&self, at: usize, backward: bool, scan: &BlockIter) -> bool {
        let (from, to) = (self.from, self.iter.offset());
        let scan = scan.offset();
        let is_within =
            if backward { scan <= from && scan >= to } else { scan >= from && scan < to };
        (self.at, self.backward) == (at, backward) && (is_within || !self.iter.valid())
    }

    /// How many entries were shown the last time that `scan` has not come to.
    pub(super) fn left(&self, scan: &BlockIter) -> usize {
        let is_left = |&&shown: &&usize| {
            if self.backward { shown < scan.offset() } else { shown > scan.offset() }
        };
        self.shown.iter().filter(is_left).count()
    }

    /// Shows the next entries, up to one for which `show` returns false; nothing before `scan` has
    /// come to the second half of those that were shown the last time.
    pub(super) fn show(&mut self, scan: &BlockIter, show: &mut dyn FnMut(&[u8], &[u8]) -> bool) {
        if let Some(&middle) = self.shown.get(self.shown.len() / 2) {
            let is_before =
                if self.backward { scan.offset() > middle } else { scan.offset() < middle };
            if is_before {
                return;
            }
        }
        self.shown.clear();
        while self.iter.valid() {
            self.shown.push(self.iter.offset());
            let goes_on = show(self.iter.key(), self.iter.value());
            if self.backward {
                self.iter.prev()
            } else {
                self.iter.next()
            }
            if !goes_on {
                break;
            }
        }
    }
}
