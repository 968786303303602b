//! The atomics of the tree: the standard library's, or loom's where every interleaving is tried.

#[cfg(not(all(test, loom)))]
pub(super) use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering, fence};

#[cfg(all(test, loom))]
pub(super) use self::explored::{AtomicPtr, AtomicU64, Ordering, fence, in_model, is_writer};

/// Loom's atomics within [`in_model`], the standard library's elsewhere: where shuttle explores a
/// whole database, its memtables are as they are.
///
/// The writer's loads of what it alone stores are not loom's either. Loom remembers one access of
/// each atomic: a load by the writer would hide the reader's from its next store, and their other
/// order would never be tried.
#[cfg(all(test, loom))]
#[allow(unsafe_code)]
mod explored {
    use std::cell::Cell;
    pub(in crate::memtable) use std::sync::atomic::Ordering;
    use std::sync::atomic::{self, AtomicPtr as PlainPtr, AtomicU64 as PlainU64};

    use loom::sync::atomic::{AtomicPtr as LoomPtr, AtomicU64 as LoomU64};

    thread_local!(static IN_MODEL: Cell<bool> = const { Cell::new(false) });

    loom::thread_local! {
        static WRITER: Cell<bool> = Cell::new(false);
    }

    /// Runs a model of loom's. All of its threads are this one.
    pub(in crate::memtable) fn in_model(model: impl FnOnce()) {
        IN_MODEL.set(true);
        model();
        IN_MODEL.set(false);
    }

    /// Says that the thread is the writer.
    pub(in crate::memtable) fn is_writer() {
        WRITER.with(|writer| writer.set(true));
    }

    pub(in crate::memtable) fn fence(ordering: Ordering) {
        if IN_MODEL.get() { loom::sync::atomic::fence(ordering) } else { atomic::fence(ordering) }
    }

    pub(in crate::memtable) enum AtomicU64 {
        Explored(LoomU64),
        Plain(PlainU64),
    }

    impl AtomicU64 {
        pub(in crate::memtable) fn new(value: u64) -> Self {
            if IN_MODEL.get() {
                Self::Explored(LoomU64::new(value))
            } else {
                Self::Plain(PlainU64::new(value))
            }
        }

        pub(in crate::memtable) fn load(&self, ordering: Ordering) -> u64 {
            match self {
                // SAFETY: no other thread stores.
                Self::Explored(word) if WRITER.with(Cell::get) => unsafe { word.unsync_load() },
                Self::Explored(word) => word.load(ordering),
                Self::Plain(word) => word.load(ordering),
            }
        }

        pub(in crate::memtable) fn store(&self, value: u64, ordering: Ordering) {
            match self {
                Self::Explored(word) => word.store(value, ordering),
                Self::Plain(word) => word.store(value, ordering),
            }
        }
    }

    pub(in crate::memtable) enum AtomicPtr<T> {
        Explored(LoomPtr<T>),
        Plain(PlainPtr<T>),
    }

    impl<T> AtomicPtr<T> {
        pub(in crate::memtable) fn new(value: *mut T) -> Self {
            if IN_MODEL.get() {
                Self::Explored(LoomPtr::new(value))
            } else {
                Self::Plain(PlainPtr::new(value))
            }
        }

        pub(in crate::memtable) fn load(&self, ordering: Ordering) -> *mut T {
            match self {
                // SAFETY: no other thread stores.
                Self::Explored(pointer) if WRITER.with(Cell::get) => unsafe {
                    pointer.unsync_load()
                },
                Self::Explored(pointer) => pointer.load(ordering),
                Self::Plain(pointer) => pointer.load(ordering),
            }
        }

        pub(in crate::memtable) fn store(&self, value: *mut T, ordering: Ordering) {
            match self {
                Self::Explored(pointer) => pointer.store(value, ordering),
                Self::Plain(pointer) => pointer.store(value, ordering),
            }
        }
    }
}
