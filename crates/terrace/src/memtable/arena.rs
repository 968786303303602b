//! Memory that is handed out piece by piece and given back all at once.
//!
//! An [`Allocator`] hands out pieces of an [`Arena`]; any thread may hold on to the arena. What an
//! arena leaves behind goes to a [`ChunkPool`], from which the next arena takes it: the system's
//! first touch of a page costs more than all that is done with it here.
//!
//! 1. A piece is never moved, reused or freed before the arena is dropped.
//! 2. Pieces do not overlap: an allocator hands out its own chunks only, and each piece once.
//! 3. A piece starts out uninitialised. Its owner writes it before showing it to another
//!    thread.
//! 4. A chunk belongs to one arena or to the pool, never to both.

#![allow(unsafe_code)]

use std::alloc::{self, Layout};
use std::mem;
use std::ptr::{self, NonNull};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use crate::base::advice;
use crate::base::locks::plain::Mutex;
use crate::base::memory_account::{Charge, MemoryAccount, MemoryUse};
use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous, munmap};

/// Chunks start on a cache line of their own.
const CHUNK_ALIGNMENT: usize = 64;

/// Chunks are a sixteenth of the capacity, within these bounds.
const MIN_CHUNK: usize = 4 << 10;
const MAX_CHUNK: usize = 1 << 20;
/// Under a memory budget, where writers reserve a chunk for each write: less.
const MAX_COUNTED_CHUNK: usize = 64 << 10;
/// Of a memory budget a chunk is such a part at most.
const CHUNKS_IN_BUDGET: usize = 2048;

/// The first chunk of an allocator is such a part of a full one, and each next one is twice as
/// large as the one before: a database with few writes takes little memory, and there may be
/// hundreds.
const FIRST_PART: usize = 16;

/// Chunks from this size on are the system's own, and populated if they are full ones or hold one
/// piece. An allocator, which has other
/// pieces beside them, would keep their memory when they go: tens of megabytes after a queue of
/// memtables.
const MAPPED_FROM: usize = 64 << 10;
/// Chunks of this size on are worth a job of a background thread.
const PREPARED_FROM: usize = 1 << 20;
/// Where pages are larger the system refuses to populate.
const PAGE: usize = 4 << 10;

/// No pool keeps more than this.
const MAX_POOL: usize = 64 << 20;
/// Arenas up to this capacity leave enough for two more, since mostly more than one memtable is on
/// its way to a table.
const SMALL: usize = 8 << 20;

/// One allocation of the system.
struct Chunk {
    start: NonNull<u8>,
    layout: Layout,
    /// With a memory budget.
    #[expect(dead_code, reason = "its drop counts")]
    charge: Option<Charge>,
}

// SAFETY: a chunk owns its memory, like a `Box<[MaybeUninit<u8>]>`, and gives no access to it.
unsafe impl Send for Chunk {}

impl Chunk {
    /// Memory of the system's, with its pages already there if all of it will be used.
    fn new(size: usize, populated: bool, account: Option<&Arc<MemoryAccount>>) -> Self {
        let layout = Layout::from_size_align(size, CHUNK_ALIGNMENT)
            .expect("an entry of less than half the address space");
        let start = match size {
            ..MAPPED_FROM => {
                // SAFETY: the size is not zero: it is at least a chunk's or a rounded-up piece's.
                unsafe { alloc::alloc(layout) }
            }
            MAPPED_FROM.. => map(size).unwrap_or(ptr::null_mut()),
        };
        let start = NonNull::new(start).unwrap_or_else(|| alloc::handle_alloc_error(layout));
        if size >= MAPPED_FROM && populated {
            populate(start, size);
        }
        let charge = account.map(|account| account.charge(MemoryUse::Memtables, size));
        Chunk { start, layout, charge }
    }
}

/// Fresh pages, which begin at a page and so at a cache line.
fn map(size: usize) -> Option<*mut u8> {
    let (rights, flags) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE);
    // SAFETY: where the system likes, so that nothing that is there is replaced.
    unsafe { mmap_anonymous(ptr::null_mut(), size, rights, flags) }.ok().map(|start| start.cast())
}

/// Has the system provide the pages of fresh memory at once, which costs less than one by one at
/// the first touch.
fn populate(start: NonNull<u8>, size: usize) {
    let first = start.as_ptr().align_offset(PAGE);
    let length = size.saturating_sub(first) / PAGE * PAGE;
    if length > 0 {
        // SAFETY: whole pages of an allocation that no other code knows of. Whether it works makes
        // no difference to what they hold.
        unsafe { advice::populate(start.as_ptr().add(first), length) };
    }
}

/// The size of chunks that an account counts, in an arena that grows to about `capacity` bytes.
fn counted_chunk(capacity: usize, account: &MemoryAccount) -> usize {
    let most = (account.limit() / CHUNKS_IN_BUDGET).clamp(MIN_CHUNK, MAX_COUNTED_CHUNK);
    (capacity / 16).clamp(MIN_CHUNK, most).next_multiple_of(CHUNK_ALIGNMENT)
}

/// The bytes that an entry takes besides its key and value, its part of the tree included.
const ENTRY_OVERHEAD: usize = 96;

/// The bytes by which an arena of counted chunks grows at most when `count` entries are added,
/// with keys and values of `bytes`: an allocator of records and one of nodes each begin a chunk.
pub(super) fn most_growth(
    capacity: usize,
    account: &MemoryAccount,
    bytes: usize,
    count: usize,
) -> usize {
    growth(bytes, count).saturating_add(2 * counted_chunk(capacity, account))
}

/// The bytes that `count` entries take, with keys and values of `bytes`, without the rest of the
/// chunks that they begin.
pub(super) fn growth(bytes: usize, count: usize) -> usize {
    bytes.saturating_add(count.saturating_mul(ENTRY_OVERHEAD))
}

impl Drop for Chunk {
    fn drop(&mut self) {
        let (start, size) = (self.start.as_ptr(), self.layout.size());
        if size < MAPPED_FROM {
            // SAFETY: allocated in `new` with this layout; by invariant 1 no code uses it any
            // longer.
            unsafe { alloc::dealloc(start, self.layout) }
        } else {
            // SAFETY: mapped in `new` with this size; likewise. It cannot fail for a whole mapping,
            // but for want of memory for the system's own records; then it stays.
            let _ = unsafe { munmap(start.cast(), size) };
        }
    }
}

/// Chunks of dropped arenas, as many bytes as one full arena has, or two small ones. They go when
/// the last arena and allocator have gone.
pub(super) struct ChunkPool {
    chunk_size: usize,
    /// The bytes that are kept at most.
    limit: usize,
    /// Those that were used last are at the end.
    chunks: Mutex<Vec<Chunk>>,
    /// Whether fresh chunks are in use, so that the next one will have to be fresh, too.
    is_wanting: AtomicBool,
    /// Counts the chunks.
    account: Option<Arc<MemoryAccount>>,
}

impl ChunkPool {
    /// A pool for arenas that grow to about `capacity` bytes.
    pub(super) fn new(capacity: usize) -> Self {
        let chunk_size =
            (capacity / 16).clamp(MIN_CHUNK, MAX_CHUNK).next_multiple_of(CHUNK_ALIGNMENT);
        let limit =
            capacity.max(2 * capacity.min(SMALL)).min(MAX_POOL).next_multiple_of(chunk_size);
        ChunkPool {
            chunk_size,
            limit,
            chunks: Mutex::new(Vec::new()),
            is_wanting: AtomicBool::new(false),
            account: None,
        }
    }

    /// The same for arenas whose chunks `account` counts: it keeps nothing.
    pub(super) fn counted(capacity: usize, account: Arc<MemoryAccount>) -> Self {
        let chunk_size = counted_chunk(capacity, &account);
        ChunkPool { chunk_size, limit: 0, account: Some(account), ..ChunkPool::new(0) }
    }

    /// Whether [`prepare`](Self::prepare) should be called. True once for each chunk.
    #[inline]
    pub(super) fn is_wanting(&self) -> bool {
        self.is_wanting.load(Ordering::Relaxed) && self.is_wanting.swap(false, Ordering::Relaxed)
    }

    /// Gets the next chunk from the system, unless there is one. On any thread: the system takes
    /// its time.
    pub(super) fn prepare(&self) {
        let is_one = |chunk: &Chunk| chunk.layout.size() == self.chunk_size;
        if !self.chunks.lock().iter().any(is_one) {
            let chunk = Chunk::new(self.chunk_size, true, self.account.as_ref());
            self.chunks.lock().push(chunk);
        }
    }

    /// The size of the first chunk of an allocator.
    fn first_chunk(&self) -> usize {
        let size = (self.chunk_size / FIRST_PART).max(MIN_CHUNK);
        size.next_multiple_of(CHUNK_ALIGNMENT).min(self.chunk_size)
    }

    /// A chunk of `size` bytes, or a quarter more, with its pages if it is fresh and `populated`.
    fn take(&self, size: usize, populated: bool) -> Chunk {
        let mut chunks = self.chunks.lock();
        let fits = |chunk: &Chunk| (size..=size + size / 4).contains(&chunk.layout.size());
        let recycled = chunks.iter().rposition(fits).map(|at| chunks.remove(at));
        let is_next_full = size == self.chunk_size || size == self.chunk_size / 2;
        if self.chunk_size >= PREPARED_FROM && is_next_full && chunks.is_empty() {
            self.is_wanting.store(true, Ordering::Relaxed);
        }
        drop(chunks);
        recycled.unwrap_or_else(|| Chunk::new(size, populated, self.account.as_ref()))
    }

    /// Keeps `chunks`, first those for many pieces, and of those kept before what still fits. The
    /// rest is freed after the lock.
    fn give(&self, mut chunks: Vec<Chunk>) {
        chunks.sort_by_key(|chunk| chunk.layout.size() == self.chunk_size);
        let mut kept = self.chunks.lock();
        kept.append(&mut chunks);
        let mut room = self.limit;
        let fitting = kept.iter().rev().take_while(|chunk| {
            let fits = chunk.layout.size() <= room;
            room -= chunk.layout.size().min(room);
            fits
        });
        let surplus = kept.len() - fitting.count();
        chunks.extend(kept.drain(..surplus));
    }
}

/// The memory that its [`Allocator`]s have handed out.
pub(super) struct Arena {
    pool: Arc<ChunkPool>,
    chunks: Mutex<Vec<Chunk>>,
    used: AtomicUsize,
    reserved: AtomicUsize,
}

impl Arena {
    pub(super) fn new(pool: Arc<ChunkPool>) -> Self {
        let (used, reserved) = (AtomicUsize::new(0), AtomicUsize::new(0));
        Arena { pool, chunks: Mutex::new(Vec::new()), used, reserved }
    }

    pub(super) fn pool(&self) -> &Arc<ChunkPool> {
        &self.pool
    }

    /// The bytes handed out.
    pub(super) fn memory_usage(&self) -> usize {
        self.used.load(Ordering::Relaxed)
    }

    /// The bytes of all its chunks.
    pub(super) fn reserved(&self) -> usize {
        self.reserved.load(Ordering::Relaxed)
    }

    fn add(&self, chunk: Chunk) -> NonNull<u8> {
        let start = chunk.start;
        self.reserved.fetch_add(chunk.layout.size(), Ordering::Relaxed);
        self.chunks.lock().push(chunk);
        start
    }
}

impl Drop for Arena {
    fn drop(&mut self) {
        self.pool.give(mem::take(self.chunks.get_mut()));
    }
}

/// Hands out memory of an arena, in pieces aligned alike.
pub(super) struct Allocator {
    arena: Arc<Arena>,
    alignment: usize,
    next: NonNull<u8>,
    remaining: usize,
    /// The size of the next chunk.
    chunk_size: usize,
}

// SAFETY: `next` points into the arena, which is shared and lives as long as the allocator.
unsafe impl Send for Allocator {}

impl Allocator {
    /// An allocator of pieces aligned to `alignment` (a power of two, at most that of chunks).
    pub(super) fn new(arena: Arc<Arena>, alignment: usize) -> Self {
        assert!(alignment.is_power_of_two() && alignment <= CHUNK_ALIGNMENT);
        let chunk_size = arena.pool.first_chunk();
        Allocator { arena, alignment, next: NonNull::dangling(), remaining: 0, chunk_size }
    }

    /// A piece of `size` bytes, uninitialised and aligned. It is the caller's alone, and valid
    /// until the arena is dropped.
    #[inline]
    pub(super) fn allocate(&mut self, size: usize) -> NonNull<u8> {
        let size = size.next_multiple_of(self.alignment);
        // The arena's allocators belong to one writer: no read-modify-write is needed.
        let used = self.arena.used.load(Ordering::Relaxed);
        self.arena.used.store(used + size, Ordering::Relaxed);
        if size > self.remaining {
            return self.allocate_slow(size);
        }
        let piece = self.next;
        // SAFETY: `size` bytes remain in the chunk after `next`.
        self.next = unsafe { piece.add(size) };
        self.remaining -= size;
        piece
    }

    /// A large piece gets a chunk to itself, so that the rest of the current one is not lost.
    #[cold]
    fn allocate_slow(&mut self, size: usize) -> NonNull<u8> {
        let full = self.arena.pool.chunk_size;
        while self.chunk_size < full && size > self.chunk_size / 4 {
            self.chunk_size = (2 * self.chunk_size).min(full);
        }
        let chunk_size = self.chunk_size;
        if size > chunk_size / 4 {
            return self.arena.add(self.arena.pool.take(size, true));
        }
        self.chunk_size = (2 * chunk_size).min(full);
        let piece = self.arena.add(self.arena.pool.take(chunk_size, chunk_size == full));
        // SAFETY: the chunk has `chunk_size` bytes, and `size` is at most a quarter of it.
        self.next = unsafe { piece.add(size) };
        self.remaining = chunk_size - size;
        piece
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_aligned_apart_and_counted() {
        let arena = Arc::new(Arena::new(Arc::new(ChunkPool::new(0))));
        let mut allocator = Allocator::new(Arc::clone(&arena), 8);
        let mut pieces = Vec::new();
        for size in (1..300).chain([5000, 1, 100_000, 7]) {
            let piece = allocator.allocate(size);
            assert_eq!(piece.as_ptr() as usize % 8, 0);
            // SAFETY: the piece has `size` bytes and no other code uses them.
            unsafe { piece.as_ptr().write_bytes(size as u8, size) };
            pieces.push((piece, size));
        }
        for &(piece, size) in &pieces {
            // SAFETY: written above, and the arena is alive.
            let bytes = unsafe { std::slice::from_raw_parts(piece.as_ptr(), size) };
            assert!(bytes.iter().all(|&byte| byte == size as u8));
        }
        let asked: usize = pieces.iter().map(|&(_, size)| size.next_multiple_of(8)).sum();
        assert_eq!(arena.memory_usage(), asked);
    }

    #[test]
    fn an_arena_takes_memory_by_what_it_holds() {
        let pool = Arc::new(ChunkPool::new(4 << 20));
        let sizes_after = |bytes: usize| {
            let arena = Arc::new(Arena::new(Arc::clone(&pool)));
            let mut allocator = Allocator::new(Arc::clone(&arena), 8);
            (0..bytes / 128).for_each(|_| _ = allocator.allocate(128));
            let chunks = arena.chunks.lock();
            chunks.iter().map(|chunk| chunk.layout.size() >> 10).collect::<Vec<_>>()
        };
        assert_eq!(sizes_after(128), [16]);
        assert_eq!(sizes_after(100 << 10), [16, 32, 64]);
        let full = sizes_after(4 << 20);
        assert_eq!(full[..5], [16, 32, 64, 128, 256]);
        assert!(full[5..].iter().all(|&size| size == 256));
        assert_eq!(sizes_after(4 << 20), full, "out of the pool");
    }

    #[test]
    fn the_next_arena_gets_what_the_last_left() {
        // Room for two chunks.
        let pool = Arc::new(ChunkPool::new(MIN_CHUNK));
        let chunks_after = |pieces: usize| {
            let mut allocator = Allocator::new(Arc::new(Arena::new(Arc::clone(&pool))), 8);
            let first = allocator.allocate(MIN_CHUNK / 4);
            (1..pieces).for_each(|_| _ = allocator.allocate(MIN_CHUNK / 4));
            allocator.allocate(2 * MIN_CHUNK);
            drop(allocator);
            (first, pool.chunks.lock().len())
        };
        let (first, kept) = chunks_after(1);
        assert_eq!(kept, 1);
        assert_eq!(chunks_after(40), (first, 2));
    }

    #[test]
    fn the_next_chunk_is_asked_for_until_there_are_old_ones() {
        let pool = Arc::new(ChunkPool::new(32 << 20));
        let mut allocator = Allocator::new(Arc::new(Arena::new(Arc::clone(&pool))), 8);
        assert!(!pool.is_wanting());
        for _ in 0..3 {
            allocator.allocate(MAX_CHUNK / 4);
            assert!(pool.is_wanting() && !pool.is_wanting());
            pool.prepare();
            pool.prepare();
            assert_eq!(pool.chunks.lock().len(), 1);
            (1..4).for_each(|_| _ = allocator.allocate(MAX_CHUNK / 4));
            assert!(!pool.is_wanting(), "in the middle of a chunk");
        }
        drop(allocator);
        assert_eq!(pool.chunks.lock().len(), 4);
        let mut allocator = Allocator::new(Arc::new(Arena::new(Arc::clone(&pool))), 8);
        allocator.allocate(8);
        assert!(!pool.is_wanting());
    }

    #[test]
    fn large_pieces_are_handed_on_too() {
        // Room for a megabyte.
        let pool = Arc::new(ChunkPool::new(512 << 10));
        let pieces_of = |size: usize| {
            let mut allocator = Allocator::new(Arc::new(Arena::new(Arc::clone(&pool))), 8);
            let mut pieces: Vec<_> = (0..20).map(|_| allocator.allocate(size)).collect();
            drop(allocator);
            pieces.sort();
            pieces
        };
        let kept = || pool.chunks.lock().iter().map(|chunk| chunk.layout.size()).sum::<usize>();
        let (first, second) = (pieces_of(100_000), pieces_of(90_000));
        assert!(
            first.iter().filter(|piece| second.contains(piece)).count() >= 10,
            "those that the pool kept"
        );
        assert_eq!(kept(), 1_000_000);
        // Chunks in use now are kept in place of those used earlier.
        pieces_of(30_000);
        assert!(
            kept() <= 1 << 20
                && pool.chunks.lock().iter().filter(|chunk| chunk.layout.size() == 30_000).count()
                    == 20
        );
    }
}
