//! What a scan comes to next within a block, looked at before it comes there.

use super::block_iter::BlockIter;

/// How far ahead of a scan of one block, in one direction, entries have been shown.
pub(super) struct EntriesAhead {
    backward: bool,
    /// At the first entry that was not shown.
    iter: BlockIter,
    /// Where those begin that were shown the last time.
    shown: Vec<usize>,
}

impl EntriesAhead {
    /// For a scan that stands at an entry, which counts as shown on the way forward.
    pub(super) fn new(backward: bool, scan: &BlockIter) -> Self {
        let mut iter = scan.fork();
        if !backward {
            iter.next();
        }
        EntriesAhead { backward, iter, shown: Vec::new() }
    }

    /// Whether the scan goes in this direction, and has not come to what was not shown.
    pub(super) fn is_ahead_of(&self, backward: bool, scan: &BlockIter) -> bool {
        self.backward == backward
            && (!self.iter.valid() || self.is_to_come(scan, self.iter.offset()))
    }

    /// Whether `scan` has not come to the entry that begins at `offset` yet. Backward, it has not come
    /// to the one where it stands.
    fn is_to_come(&self, scan: &BlockIter, offset: usize) -> bool {
        if self.backward { scan.offset() >= offset } else { scan.offset() < offset }
    }

    /// How many entries were shown the last time that `scan` has not come to.
    pub(super) fn left(&self, scan: &BlockIter) -> usize {
        let is_left = |&&offset: &&usize| self.is_to_come(scan, offset);
        self.shown.iter().filter(is_left).count()
    }

    /// Shows the next entries, up to one for which `show` returns false; nothing while `scan` has not
    /// come to more than half of those that were shown the last time.
    pub(super) fn show(&mut self, scan: &BlockIter, show: &mut dyn FnMut(&[u8], &[u8]) -> bool) {
        if self.left(scan) > self.shown.len() / 2 {
            return;
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
