//! The atomics of the tree: the standard library's, or loom's where every interleaving is tried.

#[cfg(not(all(test, loom)))]
pub(super) use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering, fence};

#[cfg(all(test, loom))]
pub(super) use self::explored::{AtomicPtr, AtomicU64, Ordering, fence, is_writer};

/// Loom's atomics, but for loads by the writer of what it alone stores. Loom remembers one access of each atomic: a
/// load by the writer would hide the reader's from its next store, and their other order would never be tried.
#[cfg(all(test, loom))]
#[allow(unsafe_code)]
mod explored {
    use std::cell::Cell;

    pub(in crate::memtable) use loom::sync::atomic::{Ordering, fence};

    loom::thread_local! {
        static WRITER: Cell<bool> = Cell::new(false);
    }

    /// Says that the thread is the writer.
    pub(in crate::memtable) fn is_writer() {
        WRITER.with(|writer| writer.set(true));
    }

    pub(in crate::memtable) struct AtomicU64(loom::sync::atomic::AtomicU64);

    impl AtomicU64 {
        pub(in crate::memtable) fn new(value: u64) -> Self {
            AtomicU64(loom::sync::atomic::AtomicU64::new(value))
        }

        pub(in crate::memtable) fn load(&self, ordering: Ordering) -> u64 {
            if WRITER.with(Cell::get) {
                // SAFETY: nobody else stores.
                return unsafe { self.0.unsync_load() };
            }
            self.0.load(ordering)
        }

        pub(in crate::memtable) fn store(&self, value: u64, ordering: Ordering) {
            self.0.store(value, ordering);
        }
    }

    pub(in crate::memtable) struct AtomicPtr<T>(loom::sync::atomic::AtomicPtr<T>);

    impl<T> AtomicPtr<T> {
        pub(in crate::memtable) fn new(value: *mut T) -> Self {
            AtomicPtr(loom::sync::atomic::AtomicPtr::new(value))
        }

        pub(in crate::memtable) fn load(&self, ordering: Ordering) -> *mut T {
            if WRITER.with(Cell::get) {
                // SAFETY: nobody else stores.
                return unsafe { self.0.unsync_load() };
            }
            self.0.load(ordering)
        }

        pub(in crate::memtable) fn store(&self, value: *mut T, ordering: Ordering) {
            self.0.store(value, ordering);
        }
    }
}
