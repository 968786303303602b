//! One simulated file: what readers see, what is certainly on disk, and what may be.
//!
//! # Invariants
//! 1. Bytes of the last page beyond a content's length are zero, so that growing a file exposes zeros.
//! 2. A page index is in `dirty` if and only if a write touched the page since a sync that covered it succeeded.
//! 3. A page index is in `dropped` if a sync failed after the page was written and nothing wrote it since: the
//!    system believes the page clean, so that no later sync makes it durable.

use std::collections::BTreeSet;
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
            buffer[done..done + step].copy_from_slice(&self.pages[at / PAGE][within..within + step]);
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
    /// What a reader sees now.
    pub(super) current: Content,
    /// What the last successful syncs made durable.
    pub(super) durable: Content,
    /// The least and the greatest length since the last sync, the durable length included.
    pub(super) min_len: usize,
    pub(super) max_len: usize,
    pub(super) dirty: BTreeSet<usize>,
    dropped: BTreeSet<usize>,
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

    pub(super) fn sync(&mut self) {
        let mut durable = self.current.clone();
        for &page in &self.dropped {
            durable.replace_page(page, self.durable.pages.get(page));
        }
        self.durable = durable;
        self.min_len = self.current.len();
        self.max_len = self.current.len();
        self.dirty.clear();
    }

    /// A sync that failed: its pages may or may not have reached the disk, and no later sync writes them again.
    pub(super) fn fail_sync(&mut self) {
        self.dropped.extend(std::mem::take(&mut self.dirty));
    }

    /// Whether no byte has ever been on its way to the disk for certain: no sync has had to do with it.
    pub(super) fn is_unsynced(&self) -> bool {
        self.durable.len() == 0 && self.dropped.is_empty()
    }

    /// Makes zeros of all bytes, of which none has reached the disk.
    pub(super) fn wipe(&mut self) {
        let len = self.current.len();
        *self = File::default();
        self.set_len(len);
    }

    /// Pages that may or may not have reached the disk.
    pub(super) fn undecided(&self) -> impl Iterator<Item = usize> + '_ {
        self.dirty.union(&self.dropped).copied()
    }

    /// A file of which every byte is durable.
    pub(super) fn settled(content: Content) -> File {
        let len = content.len();
        File { current: content.clone(), durable: content, min_len: len, max_len: len, ..File::default() }
    }

    pub(super) fn is_settled(&self) -> bool {
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
        file.fail_sync();
        file.write(2 * PAGE, b"later");
        file.sync();
        let durable = file.durable.to_vec();
        assert_eq!(&durable[..10], b"synced\0\0\0\0");
        assert_eq!(&durable[2 * PAGE..], b"later");
        assert_eq!(&file.current.to_vec()[..10], b"syncedlost");
        assert!(!file.is_settled());
    }
}
