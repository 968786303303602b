//! Tells a process from its forks, at the price of one load.
//!
//! Any thread may call. The mark is one page of memory that the kernel clears in a child
//! (`MADV_WIPEONFORK`); where the kernel cannot do that, the process id is compared instead.
//!
//! # Invariants
//! 1. [`generation`] never changes within one process.
//! 2. A process's generation is greater than that of every ancestor whose memory it inherited, so a
//!    value that was remembered before a fork never equals the child's.
#![allow(unsafe_code)]

use std::ptr::NonNull;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous, munmap};

use super::advice;

/// The last generation given out in this process or an ancestor of it: ordinary memory, which a
/// fork copies.
static LAST: AtomicU64 = AtomicU64::new(0);

static MARK: OnceLock<Mark> = OnceLock::new();

enum Mark {
    /// The generation, in a page that reads as zero in a child.
    WipeOnFork(&'static AtomicU64),
    /// The generation, and in the lower half the id of the process that set it: one word, so that
    /// both change at once.
    Process(AtomicU64),
}

/// A number that identifies this process among itself and its ancestors. Never zero.
#[inline]
pub(crate) fn generation() -> u64 {
    let mark = MARK.get_or_init(Mark::new);
    match mark {
        Mark::WipeOnFork(word) => match word.load(Ordering::Relaxed) {
            0 => begin(word),
            generation => generation,
        },
        Mark::Process(word) => of_process(word, std::process::id()),
    }
}

/// Gives the process its generation. When threads race, all of them get the first one's.
#[cold]
fn begin(word: &AtomicU64) -> u64 {
    let next = LAST.fetch_add(1, Ordering::Relaxed) + 1;
    match word.compare_exchange(0, next, Ordering::Relaxed, Ordering::Relaxed) {
        Ok(_) => next,
        Err(current) => current,
    }
}

/// The generation of `process`, which is the upper half of `word` once this process has set it.
fn of_process(word: &AtomicU64, process: u32) -> u64 {
    let mut current = word.load(Ordering::Relaxed);
    while current as u32 != process {
        let next = LAST.fetch_add(1, Ordering::Relaxed) + 1;
        let packed = (next << 32) | u64::from(process);
        current = match word.compare_exchange(current, packed, Ordering::Relaxed, Ordering::Relaxed)
        {
            Ok(_) => packed,
            Err(theirs) => theirs,
        };
    }
    current >> 32
}

/// The process in which something was made. Locks of a process's ancestors may be held by threads
/// that did not come along.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Origin(u64);

impl Origin {
    /// This process.
    pub(crate) fn here() -> Self {
        Origin(generation())
    }

    /// Whether that was in an ancestor of this process.
    #[inline]
    pub(crate) fn is_ancestor(self) -> bool {
        self.0 != generation()
    }
}

impl Default for Origin {
    fn default() -> Self {
        Origin::here()
    }
}

impl Mark {
    fn new() -> Mark {
        match wiped_page() {
            Some(word) => Mark::WipeOnFork(word),
            None => Mark::Process(AtomicU64::new(0)),
        }
    }
}

/// A word that is zero now, and zero again in every child.
fn wiped_page() -> Option<&'static AtomicU64> {
    // The kernel rounds up to whole pages.
    let size = size_of::<AtomicU64>();
    // SAFETY: a null hint lets the kernel choose the place, so no existing mapping is touched.
    let page = unsafe {
        mmap_anonymous(
            std::ptr::null_mut(),
            size,
            ProtFlags::READ | ProtFlags::WRITE,
            MapFlags::PRIVATE,
        )
        .ok()?
    };
    // SAFETY: the range is exactly the mapping just made, which no other code knows of.
    if !unsafe { advice::clear_in_children(page.cast(), size) } {
        // SAFETY: as above; nothing refers to the page.
        let _ = unsafe { munmap(page, size) };
        return None;
    }
    let word = NonNull::new(page.cast::<AtomicU64>())?;
    // SAFETY: the page is readable, writable, aligned, at least eight bytes long, zeroed (a valid
    // AtomicU64), never unmapped from here on, and reached only through this shared reference. The
    // kernel clears it between instructions of a new process only.
    Some(unsafe { word.as_ref() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fork_differs_from_its_parent_and_from_itself_never() {
        let here = generation();
        assert_ne!(here, 0);
        assert_eq!(here, generation());
        // SAFETY: the child calls only async-signal-safe functions (atomics and _exit).
        let child = unsafe { libc::fork() };
        assert!(child >= 0, "fork failed");
        if child == 0 {
            let there = generation();
            let fine = there > here && there == generation();
            // SAFETY: ends the child without running anything of the parent's.
            unsafe { libc::_exit(if fine { 0 } else { 1 }) };
        }
        let mut status = 0;
        // SAFETY: `status` outlives the call; `child` is a child of this process.
        assert_eq!(unsafe { libc::waitpid(child, &mut status, 0) }, child);
        assert!(libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 0);
        assert_eq!(here, generation());
    }

    #[test]
    fn the_fallback_counts_too() {
        let mark = AtomicU64::new(0);
        let first = begin(&mark);
        assert_eq!(first, begin(&mark));
        let word = AtomicU64::new(0);
        let parent = of_process(&word, 7);
        assert_eq!(parent, of_process(&word, 7));
        // Threads of the child that come at once get the same.
        let children: Vec<_> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..4).map(|_| scope.spawn(|| of_process(&word, 8))).collect();
            threads.into_iter().map(|thread| thread.join().expect("no panic")).collect()
        });
        assert!(
            children.iter().all(|&child| child == children[0] && child > parent),
            "{children:?}"
        );
    }
}
