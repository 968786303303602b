//! Where the data blocks of a table are.
//!
//! A builder writes them contiguously, so that where each begins says everything. Where they are not
//! contiguous, each block has its handle.

use super::format::{BlockHandle, TRAILER_SIZE};
use super::offsets::Offsets;

/// See the [module](self).
#[derive(Default)]
pub(super) struct BlockPlaces {
    /// Where each begins, and where the last one ends with its trailer, if they are contiguous.
    begins: Offsets,
    /// Of all blocks, or of none.
    handles: Box<[BlockHandle]>,
}

impl BlockPlaces {
    /// Of blocks that do not overlap, in the order of the file.
    pub(super) fn new(handles: &[BlockHandle]) -> Self {
        if handles.windows(2).any(|pair| pair[0].end() != pair[1].offset) {
            return BlockPlaces { handles: handles.into(), ..Self::default() };
        }
        let begins = handles.iter().map(|handle| handle.offset);
        let begins: Vec<_> = begins.chain(handles.last().map(|last| last.end())).collect();
        BlockPlaces { begins: Offsets::new(&begins), ..Self::default() }
    }

    /// The number of blocks.
    pub(super) fn len(&self) -> usize {
        self.begins.len().saturating_sub(1) + self.handles.len()
    }

    #[inline]
    pub(super) fn get(&self, at: usize) -> Option<BlockHandle> {
        let Some(end) = at.checked_add(1).and_then(|next| self.begins.get(next)) else {
            return self.handles.get(at).copied();
        };
        let offset = self.begins.get(at)?;
        Some(BlockHandle { offset, size: end - offset - TRAILER_SIZE as u64 })
    }

    pub(super) fn memory_usage(&self) -> usize {
        self.begins.memory_usage() + size_of_val(&*self.handles)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn handles_come_back_whether_or_not_blocks_are_contiguous() {
        let handles = |pairs: &[(u64, u64)]| -> Vec<_> {
            pairs.iter().map(|&(offset, size)| BlockHandle { offset, size }).collect()
        };
        let far = u64::from(u32::MAX);
        for (handles, contiguous) in [
            (handles(&[]), true),
            (handles(&[(7, 0)]), true),
            (handles(&[(0, 10), (15, 0), (20, 1000)]), true),
            (handles(&[(0, 10), (16, 0), (21, 1000)]), false),
            (handles(&[(0, far), (far + 5, 1)]), true),
        ] {
            let places = BlockPlaces::new(&handles);
            assert_eq!(places.handles.is_empty(), contiguous, "{handles:?}");
            let back: Vec<_> = (0..places.len()).filter_map(|at| places.get(at)).collect();
            assert_eq!(back, handles);
            assert_eq!((places.get(handles.len()), places.get(usize::MAX)), (None, None));
        }
    }
}
