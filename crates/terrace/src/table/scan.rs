//! Reads a table from front to back, past all caches and on behind damage: to check it, and to save
//! what can be saved.

use std::cmp::Ordering;
use std::mem;
use std::sync::Arc;

use crate::base::error::{Error, ErrorKind, Result};

use super::block_iter::BlockIter;
use super::compression::Codecs;
use super::table::Table;

/// An item of a scan, in the order of the file.
pub(crate) enum ScanItem<'a> {
    /// A data block of `size` bytes whose checksum is right, with the compressions beyond LevelDB's
    /// that it has. Its entries follow; `entries` shows those that can be read before.
    Block { size: u64, codecs: Codecs, entries: BlockEntries<'a> },
    /// An entry of the block at `offset`. `fault` says why a look-up would not find it, if one
    /// would not.
    Entry { offset: u64, key: &'a [u8], value: &'a [u8], fault: Option<&'static str> },
    /// The block at some offset, or the rest of it, cannot be read. Its keys, of the table's order,
    /// were after the one (from the beginning, if it is empty) and up to the other.
    Damage { error: Error, after: &'a [u8], up_to: &'a [u8] },
}

/// The entries of a block.
pub(crate) struct BlockEntries<'a>(&'a BlockIter);

impl BlockEntries<'_> {
    /// Shows key and value of each that can be read to `show`.
    pub(crate) fn show(&self, mut show: impl FnMut(&[u8], &[u8])) {
        let mut iter = self.0.fork();
        iter.seek_to_first();
        while iter.valid() {
            show(iter.key(), iter.value());
            iter.next();
        }
    }
}

impl Table {
    /// Shows every data block and entry to `visit`, whose error ends the scan.
    pub(crate) fn scan(&self, visit: &mut dyn FnMut(ScanItem<'_>) -> Result<()>) -> Result<()> {
        let (index, order) = (self.index(), self.order());
        let mut iter = BlockIter::new(order.tag_size());
        let mut separator = Vec::new();
        for (at, handle) in index.handles().enumerate() {
            let before = mem::replace(&mut separator, index.separator(at, order));
            let (after, up_to) = (&before[..], &separator[..]);
            let loaded = match self.load(handle) {
                // What goes away by itself is no damage.
                Err(error) if error.kind() == ErrorKind::Io => self.load(handle),
                loaded => loaded,
            };
            let codecs = match loaded {
                Ok((block, codecs)) => {
                    iter.set_block(Some(Arc::new(block)));
                    codecs
                }
                Err(error) => {
                    visit(ScanItem::Damage { error, after, up_to })?;
                    continue;
                }
            };
            let entries = BlockEntries(&iter);
            visit(ScanItem::Block { size: handle.size, codecs, entries })?;
            iter.seek_to_first();
            while iter.valid() {
                let key = iter.key();
                let misplaced = order.compare(key, up_to) == Ordering::Greater
                    || (at > 0 && order.compare(key, after) != Ordering::Greater);
                let fault = if misplaced {
                    Some("the index leads elsewhere")
                } else if !self.filters_allow(handle, key) {
                    Some("the filter denies it")
                } else {
                    None
                };
                visit(ScanItem::Entry { offset: handle.offset, key, value: iter.value(), fault })?;
                iter.next();
            }
            if let Some(damage) = iter.damage() {
                visit(ScanItem::Damage { error: self.damaged(handle, damage), after, up_to })?;
            }
        }
        Ok(())
    }
}
