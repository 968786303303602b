//! One simulated file: what readers see, what is certainly on disk, and what may be.
//!
//! # Invariants
//! 1. Bytes of the last page beyond a content's length are zero, so that growing a file exposes
//!    zeros.
//! 2. A page index is in `dirty` if and only if a write touched the page since a sync that covered
//!    it succeeded.
//! 3. A page index is in `dropped` if a sync failed after the page was written and nothing wrote it
//!    since: the system believes the page clean, so that no later sync makes it durable.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The unit in which a system writes files back.
pub(super) const PAGE: usize = 4096;
/// The unit that a disk writes as a whole.
pub(super) const SECTOR: usize = 512;

type Page = [u8; PAGE];

/// Bytes in shared pages: cloning copies pointers, writing copies the pages it changes.
#[derive(Clone, Default)]
pub(super) struct Content {
    pages: Vec<Arc<Page>>,
    len: usize,
}

impl Content {
    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn write(&mut self, offset: usize, mut data: &[u8]) {
        let end = offset + data.len();
        if end > self.len {
            self.set_len(end);
        }
        let mut at = offset;
        while !data.is_empty() {
            let within = at % PAGE;
            let n = data.len().min(PAGE - within);
            let page = Arc::make_mut(&mut self.pages[at / PAGE]);
            page[within..within + n].copy_from_slice(&data[..n]);
            data = &data[n..];
            at += n;
        }
    }

    pub(super) fn set_len(&mut self, len: usize) {
        if len < self.len {
            self.pages.truncate(len.div_ceil(PAGE));
            if !len.is_multiple_of(PAGE)
                && let Some(page) = self.pages.last_mut()
            {
                Arc::make_mut(page)[len % PAGE..].fill(0);
            }
        } else {
            let zero = Arc::new([0; PAGE]);
            self.pages.resize(len.div_ceil(PAGE), zero);
        }
        self.len = len;
    }

    pub(super) fn read(&self, offset: usize, buffer: &mut [u8]) -> usize {
        if offset >= self.len {
            return 0;
        }
        let n = buffer.len().min(self.len - offset);
        let mut done = 0;
        while done < n {
            let at = offset + done;
            let within = at % PAGE;
            let step = (n - done).min(PAGE - within);
            buffer[done..done + step]
                .copy_from_slice(&self.pages[at / PAGE][within..within + step]);
            done += step;
        }
        n
    }

    pub(super) fn to_vec(&self) -> Vec<u8> {
        let mut bytes = vec![0; self.len];
        self.read(0, &mut bytes);
        bytes
    }

    /// The bytes of one sector, zeros beyond the end.
    pub(super) fn sector(&self, index: usize) -> &[u8] {
        const ZERO: [u8; SECTOR] = [0; SECTOR];
        let per_page = PAGE / SECTOR;
        let within = index % per_page * SECTOR;
        self.pages.get(index / per_page).map_or(&ZERO[..], |page| &page[within..within + SECTOR])
    }

    fn replace_page(&mut self, index: usize, page: Option<&Arc<Page>>) {
        if let Some(slot) = self.pages.get_mut(index) {
            *slot = page.cloned().unwrap_or_else(|| Arc::new([0; PAGE]));
        }
    }
}

/// A file. Cloning it is cheap.
#[derive(Clone, Default)]
pub(super) struct File {
    /// The content that a reader sees now.
    pub(super) current: Content,
    /// The content that the last successful syncs made durable.
    pub(super) durable: Content,
    /// The least and the greatest length since the last sync, the durable length included.
    pub(super) min_len: usize,
    pub(super) max_len: usize,
    pub(super) dirty: BTreeSet<usize>,
    dropped: BTreeSet<usize>,
    /// Syncs under way, by number: what each makes durable.
    syncing: BTreeMap<u64, Syncing>,
}

/// The content of a file when a sync began.
#[derive(Clone)]
struct Syncing {
    content: Content,
    dirty: BTreeSet<usize>,
}

/// How a sync ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SyncEnd {
    /// The content of its beginning is durable.
    Done,
    /// Its pages may or may not have reached the disk, and no later sync writes them again.
    Failed,
    /// As [`SyncEnd::Failed`], and the system shows again what is on the disk.
    Reverted,
}

impl File {
    pub(super) fn write(&mut self, offset: usize, data: &[u8]) {
        if data.is_empty() {
            return;
        }
        for page in offset / PAGE..=(offset + data.len() - 1) / PAGE {
            self.dirty.insert(page);
            self.dropped.remove(&page);
        }
        self.current.write(offset, data);
        self.max_len = self.max_len.max(self.current.len());
    }

    pub(super) fn set_len(&mut self, len: usize) {
        self.current.set_len(len);
        self.min_len = self.min_len.min(len);
        self.max_len = self.max_len.max(len);
    }

    /// A sync that does all at once.
    #[cfg(test)]
    pub(super) fn sync(&mut self) {
        self.begin_sync(0);
        self.end_sync(0, SyncEnd::Done);
    }

    /// The sync `number` begins: what is written from here on is none of its business.
    pub(super) fn begin_sync(&mut self, number: u64) {
        self.syncing
            .insert(number, Syncing { content: self.current.clone(), dirty: self.dirty.clone() });
    }

    pub(super) fn end_sync(&mut self, number: u64, end: SyncEnd) {
        let Some(Syncing { content, mut dirty }) = self.syncing.remove(&number) else { return };
        // What another sync has cleaned meanwhile is clean.
        dirty.retain(|page| self.dirty.contains(page));
        let unchanged =
            |page: &usize| match (self.current.pages.get(*page), content.pages.get(*page)) {
                (Some(now), Some(then)) => Arc::ptr_eq(now, then),
                (now, then) => now.is_none() && then.is_none(),
            };
        let clean: Vec<usize> = dirty.iter().copied().filter(unchanged).collect();
        if end == SyncEnd::Done {
            self.min_len = content.len.min(self.current.len());
            self.max_len = content.len.max(self.current.len());
            let before = std::mem::replace(&mut self.durable, content);
            for &page in &self.dropped {
                self.durable.replace_page(page, before.pages.get(page));
            }
            // Syncs that began earlier have nothing left to do.
            self.syncing.retain(|other, _| *other > number);
        }
        for page in clean {
            self.dirty.remove(&page);
            if end != SyncEnd::Done {
                self.dropped.insert(page);
            }
            if end == SyncEnd::Reverted {
                self.current.replace_page(page, self.durable.pages.get(page));
            }
        }
    }

    /// The system writes dirty pages back by itself: they are on the disk from now on.
    pub(super) fn write_back(&mut self, pages: &[usize]) {
        for &page in pages.iter().filter(|page| self.dirty.contains(page)) {
            let end = ((page + 1) * PAGE).min(self.current.len());
            if end > self.durable.len() {
                self.durable.set_len(end);
            }
            let written = self.current.pages.get(page);
            self.durable.replace_page(page, written);
            self.syncing
                .values_mut()
                .for_each(|syncing| syncing.content.replace_page(page, written));
        }
        self.dirty.retain(|page| !pages.contains(page));
    }

    /// Whether no byte has ever been on its way to the disk for certain: no sync has had to do with
    /// it, nor has the system written a page back.
    pub(super) fn is_unsynced(&self) -> bool {
        self.durable.len() == 0 && self.dropped.is_empty() && self.syncing.is_empty()
    }

    /// Makes zeros of all bytes, of which none has reached the disk.
    pub(super) fn zero_out(&mut self) {
        let len = self.current.len();
        *self = File::default();
        self.set_len(len);
    }

    /// Pages that may or may not have reached the disk.
    pub(super) fn undecided(&self) -> impl Iterator<Item = usize> + '_ {
        self.dirty.union(&self.dropped).copied()
    }

    /// A file of which every byte is durable.
    pub(super) fn all_durable(content: Content) -> File {
        let len = content.len();
        File {
            current: content.clone(),
            durable: content,
            min_len: len,
            max_len: len,
            ..File::default()
        }
    }

    pub(super) fn is_durable(&self) -> bool {
        self.dirty.is_empty() && self.dropped.is_empty() && self.min_len == self.max_len
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contents_share_pages_and_read_back() {
        let mut a = Content::default();
        a.write(0, &[1; 5000]);
        let b = a.clone();
        a.write(4999, &[2; 10]);
        a.set_len(4500);
        a.set_len(9000);
        assert_eq!(b.to_vec(), [1; 5000]);
        let mut expected = vec![1; 4500];
        expected.resize(9000, 0);
        assert_eq!(a.to_vec(), expected);
        assert_eq!(a.sector(100), [0; SECTOR]);
    }

    #[test]
    fn a_failed_sync_is_not_healed_by_the_next() {
        let mut file = File::default();
        file.write(0, b"synced");
        file.sync();
        file.write(6, b"lost");
        file.begin_sync(1);
        file.end_sync(1, SyncEnd::Failed);
        file.write(2 * PAGE, b"later");
        file.sync();
        let durable = file.durable.to_vec();
        assert_eq!(&durable[..10], b"synced\0\0\0\0");
        assert_eq!(&durable[2 * PAGE..], b"later");
        assert_eq!(&file.current.to_vec()[..10], b"syncedlost");
        assert!(!file.is_durable());
    }

    #[test]
    fn a_sync_that_takes_time_is_for_what_was_there_when_it_began() {
        let mut file = File::default();
        file.write(0, b"before");
        file.begin_sync(1);
        file.write(6, b"during");
        file.write(2 * PAGE, b"behind");
        assert!(!file.is_unsynced());
        file.end_sync(1, SyncEnd::Done);
        assert_eq!(file.durable.to_vec(), b"before");
        assert_eq!(file.undecided().collect::<Vec<_>>(), [0, 2]);
        file.sync();
        assert_eq!(file.durable.to_vec(), file.current.to_vec());
        assert!(file.is_durable());
    }

    #[test]
    fn the_system_may_write_back_by_itself_and_may_show_old_bytes_again() {
        let mut file = File::default();
        file.write(0, &[1; 3 * PAGE]);
        file.write_back(&[1]);
        assert!(!file.is_unsynced() && file.min_len == 0);
        let durable = file.durable.to_vec();
        assert_eq!((durable[0], durable[PAGE], durable.len()), (0, 1, 2 * PAGE));
        file.sync();
        file.write(0, &[2; 10]);
        file.begin_sync(1);
        file.end_sync(1, SyncEnd::Reverted);
        assert_eq!(file.current.to_vec(), [1; 3 * PAGE]);
    }
}
