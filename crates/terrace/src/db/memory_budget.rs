//! One bound for the memory of several databases.
//!
//! Eighths of the budget: memtables have four at most, two of which are floors, the part of each
//! database that no other can take; open tables have two; blocks have one in any case and all that
//! is left of six; one is a reserve for what is not counted, the buffers of flushes and
//! compactions above all.
//!
//! # Invariants
//! 1. A writer reserves what its write may add to a memtable before it takes a lock of the engine,
//!    and waits, if it has to, without one; locks on keys it may hold. Reads, flushes and
//!    compactions never wait.
//! 2. A writer waits for flushes of its own database only, and for those of what was written when
//!    it began to wait. It goes on if there is nothing to flush, and fails if a flush does, or the
//!    switch before it. A database within its floor, or with a suspect log, which the write itself
//!    leaves, does not wait for a flush. One that goes beyond the bound waits a moment, once, for
//!    what was evicted while others were reading, [`LONGEST_GRACE`] looks at most.
//! 3. A writer that finds no room counts nothing, and wakes nobody.
//! 4. Members are visited under the lock of the list. A member leaves the list when it begins to
//!    close, so no visitor has hold of a database that is closed.

use std::fmt;
use std::ptr;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use crate::base::error::{Error, Result};
use crate::base::internal_key::SequenceNumber;
use crate::base::locks::plain::Mutex;
use crate::base::memory_account::{Charge, MemoryAccount, MemoryUse};
use crate::cache::GracePeriod;
use crate::table::BlockCache;

/// The least floor of a database.
const LEAST_FLOOR: usize = 64 << 10;
/// Smaller memtables are not worth a flush.
pub(in crate::db) const LEAST_FLUSH: usize = 16 << 10;
/// So many bytes are written between two requests for flushes that nobody waits for.
const REQUEST_EVERY: usize = 64 << 10;
/// A waiter looks again after this time: what a member can do may have changed.
const LONGEST_WAIT: Duration = Duration::from_millis(10);
/// Shorter sleeps cost more than they delay; longer ones would be stalls.
const SHORTEST_SLEEP_NANOS: u64 = 300_000;
const LONGEST_SLEEP_NANOS: u64 = 20_000_000;
/// So often a writer looks whether evicted blocks have been dropped, and so long it sleeps between:
/// a reader needs them for a few instructions, unless the processor leaves its thread, or it reads
/// many keys at once.
const LONGEST_GRACE: usize = 100;
const GRACE_LOOKS_EVERY: Duration = Duration::from_millis(1);
/// How fast flushes are taken to be before one was measured: low for any disk in use.
const FIRST_SPEED: u64 = 50_000_000;
/// A flush of so many bytes weighs as much as all the earlier ones: small ones say little of speed.
const FLUSH_WEIGHT: f64 = (4 << 20) as f64;

/// The bytes of a member's memtables.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::db) struct MemtableBytes {
    /// Of the one that is written to.
    pub(in crate::db) active: usize,
    /// Of those that wait for a flush or are being flushed.
    pub(in crate::db) immutable: usize,
    /// Memory of all of them.
    pub(in crate::db) reserved: usize,
    /// Whether a flush of the active one was requested.
    pub(in crate::db) is_requested: bool,
}

/// A database that shares a budget. Called without any lock of the engine held.
pub(in crate::db) trait Member: Send + Sync {
    fn memtable_bytes(&self) -> MemtableBytes;
    /// Whether its memtables can be flushed for others: not after a failure, not with a suspect
    /// log, and not while the database closes.
    fn can_flush(&self) -> bool;
    /// Requests a flush of the active memtable, and does not wait.
    fn request_flush(self: Arc<Self>);
    fn cache(&self) -> &BlockCache;
}

/// A database that wants to write.
pub(in crate::db) trait Writer: Member {
    /// Whether the next write, which leaves a suspect log, flushes everything before anything else.
    fn is_log_suspect(&self) -> bool;
    /// The last sequence number in use.
    fn written(&self) -> SequenceNumber;
    /// Whether everything up to this sequence number is in tables.
    fn is_flushed(&self, written: SequenceNumber) -> bool;
    /// Fails if this database can make no room by a flush. A failure that may have gone by is put
    /// to another attempt, `first` alone.
    fn check_flushes(&self, first: bool) -> Result<()>;
    /// Sleeps, or waits for `wait` to return, and counts it as a stall.
    fn stall(&self, wait: impl FnOnce());
    fn sleep(&self, duration: Duration);
}

/// A bound for the memory of any number of databases of this process together: give clones of it
/// to [`Options::memory_budget`](crate::Options::memory_budget).
///
/// Memtables, indexes and filters of tables, cached blocks and blocks that readers hold
/// count. Writers are slowed down and wait before the bound is exceeded, the largest memtable is
/// flushed first, and caches shrink; reads never wait. Not counted are code and bookkeeping of a
/// database (about 100 KiB), what iterators and batches of the program hold, mapped files, bulk
/// loads, and buffers of flushes and compactions, for which an eighth is left free.
///
/// A writer waits for flushes of its own database only, and never for those of others, but for the
/// background threads that databases share. Before it goes beyond the bound it waits about a tenth
/// of a second at most, once, for threads that are reading while blocks are evicted. So these can
/// exceed the bound:
/// - the 64 KiB of memtable and the four open tables that each database has in any case;
/// - a batch that does not fit when everything else that its database wrote is in tables;
/// - what cannot be given back: memtables whose flush fails or hangs, memtables and blocks that
///   iterators, snapshots and pinned values hold, and those of a closed database until the last
///   clone of it is dropped;
/// - logs that a read-only open replays, and a block cache of the program's own.
///
/// Whatever is held counts, and slows writers down meanwhile.
///
/// A budget of 0 is the smallest one, not none.
///
/// Any thread may call anything. A child of a fork cannot use the budget of its parent.
///
/// # Example
/// ```
/// use terrace::{Db, MemoryBudget, Options};
/// # use std::sync::Arc;
/// # let env = Arc::new(terrace::MemEnv::new());
///
/// let budget = MemoryBudget::new(64 << 20);
/// let options = Options::new().create_if_missing(true).memory_budget(Some(budget.clone()));
/// # let options = options.env(env);
/// let orders = Db::open("/orders", options.clone())?;
/// let users = Db::open("/users", options)?;
/// orders.put("1", "two apples")?;
/// users.put("ann", "admin")?;
/// assert!(budget.used() <= budget.limit());
/// # Ok::<_, terrace::Error>(())
/// ```
#[derive(Clone)]
pub struct MemoryBudget(Arc<Shared>);

struct Shared {
    account: Arc<MemoryAccount>,
    cache: BlockCache,
    members: Mutex<Vec<Weak<dyn Member>>>,
    count: AtomicUsize,
    /// Bytes of memtable a second that flushes get through.
    speed: AtomicU64,
    /// Nanoseconds that writers still have to wait for what they have written.
    owed_nanos: AtomicU64,
    /// Bytes written since flushes were last requested.
    unrequested: AtomicUsize,
    /// How often caches were shrunk, and how often that was when a writer last waited for readers.
    evictions: AtomicUsize,
    awaited_evictions: AtomicUsize,
}

impl MemoryBudget {
    /// A budget of so many bytes. A useful one has at least 256 KiB for each database.
    pub fn new(bytes: usize) -> Self {
        let account = Arc::new(MemoryAccount::new(bytes));
        let cache = BlockCache::new(account.eighths(6));
        MemoryBudget(Arc::new(Shared {
            account,
            cache,
            members: Mutex::new(Vec::new()),
            count: AtomicUsize::new(0),
            speed: AtomicU64::new(FIRST_SPEED),
            owed_nanos: AtomicU64::new(0),
            unrequested: AtomicUsize::new(0),
            evictions: AtomicUsize::new(0),
            awaited_evictions: AtomicUsize::new(0),
        }))
    }

    /// The bound, in bytes.
    pub fn limit(&self) -> usize {
        self.0.account.limit()
    }

    /// Bytes that count now, with those that are reserved for writes under way.
    ///
    /// ```
    /// # use terrace::*;
    /// # let options = Options::new().create_if_missing(true);
    /// # let options = options.env(std::sync::Arc::new(MemEnv::new()));
    /// let budget = MemoryBudget::new(64 << 20);
    /// let db = Db::open("/db", options.memory_budget(Some(budget.clone())))?;
    /// db.put("apple", "red")?;
    /// let parts = budget.memtable_bytes() + budget.table_bytes() + budget.block_bytes();
    /// println!("{} of {} bytes, {parts} of them in use", budget.used(), budget.limit());
    /// # db.close()?;
    /// # Ok::<_, terrace::Error>(())
    /// ```
    pub fn used(&self) -> usize {
        self.0.account.used()
    }

    /// Of [`used`](Self::used) the bytes of memtables.
    pub fn memtable_bytes(&self) -> usize {
        self.0.account.used_for(MemoryUse::Memtables)
    }

    /// Of [`used`](Self::used) the bytes of indexes and filters of tables.
    pub fn table_bytes(&self) -> usize {
        self.0.account.used_for(MemoryUse::Tables)
    }

    /// Of [`used`](Self::used) the bytes of blocks, cached ones and those that readers hold.
    pub fn block_bytes(&self) -> usize {
        self.0.account.used_for(MemoryUse::Blocks)
    }

    pub(in crate::db) fn account(&self) -> &Arc<MemoryAccount> {
        &self.0.account
    }

    /// The cache of the databases that have none of their own.
    pub(in crate::db) fn cache(&self) -> &BlockCache {
        &self.0.cache
    }

    /// The size of a memtable: several have to fit.
    pub(in crate::db) fn write_buffer_size(&self, wanted: usize) -> usize {
        wanted.min(self.0.account.eighths(1))
    }

    pub(in crate::db) fn check_own(&self) -> Result<()> {
        if self.0.account.is_inherited() {
            return Err(Error::not_supported(
                "the memory budget is that of a process from which this one was forked",
            ));
        }
        Ok(())
    }

    pub(in crate::db) fn join(&self, member: Weak<dyn Member>) {
        let mut members = self.0.members.lock();
        members.push(member);
        self.count(&members);
    }

    /// Ends a membership. No other thread has hold of the member by the budget afterwards.
    pub(in crate::db) fn leave(&self, member: &Weak<dyn Member>) {
        let mut members = self.0.members.lock();
        members.retain(|other| !Weak::ptr_eq(other, member));
        self.count(&members);
    }

    /// Counts the members and their caches. The caller holds the lock of the list.
    fn count(&self, members: &[Weak<dyn Member>]) {
        self.0.count.store(members.len(), Ordering::Relaxed);
        let present = members.iter().filter_map(Weak::upgrade);
        let mut caches: Vec<_> = present.map(|member| member.cache().address()).collect();
        caches.sort_unstable();
        caches.dedup();
        self.0.account.set_caches(caches.len());
    }

    /// Takes note of a flush.
    pub(in crate::db) fn record_flush(&self, bytes: usize, micros: u64) {
        let measured = bytes as f64 * 1e6 / micros.max(1) as f64;
        let speed = self.0.speed.load(Ordering::Relaxed) as f64;
        let weight = bytes as f64 / (bytes as f64 + FLUSH_WEIGHT);
        let speed = speed + weight * (measured - speed);
        self.0.speed.store((speed as u64).max(1 << 16), Ordering::Relaxed);
    }

    /// Reserves `most` bytes of memtables for a write of `writer` that takes `bytes` of them, until
    /// the charge is dropped. Waits if there is no room.
    ///
    /// # Errors
    /// Whatever keeps the database from flushing.
    pub(in crate::db) fn admit(
        &self,
        writer: &impl Writer,
        bytes: usize,
        most: usize,
    ) -> Result<Charge> {
        if let Some(charge) = self.reserve(most, self.comfortable()) {
            return Ok(charge);
        }
        if self.has_room(most) {
            self.slow_down(writer, bytes, most);
            if let Some(charge) = self.reserve(most, self.common()) {
                return Ok(charge);
            }
        }
        self.wait_for_room(writer, most)
    }

    /// Reserves `bytes` if no more than `memtables` bytes of memtables are there then, and the
    /// reserve for what is not counted stays free.
    fn reserve(&self, bytes: usize, memtables: usize) -> Option<Charge> {
        self.0.account.try_reserve(bytes, memtables, self.0.account.eighths(7))
    }

    /// Reserves `bytes` whether there is room or not.
    fn reserve_at_once(&self, writer: &impl Writer, bytes: usize) -> Charge {
        let charge = self.0.account.reserve(bytes);
        if self.excess(0) > 0 {
            self.shrink_caches();
        }
        if self.is_exceeded() {
            self.wait_for_readers(writer);
        }
        charge
    }

    fn is_exceeded(&self) -> bool {
        self.used() > self.limit()
    }

    /// Waits until what was evicted is dropped that others were reading, and no longer than a moment.
    /// What is there for other reasons is not waited for.
    #[cold]
    fn wait_for_readers(&self, writer: &impl Writer) {
        let evictions = self.0.evictions.load(Ordering::Relaxed);
        if evictions == self.0.awaited_evictions.load(Ordering::Relaxed) {
            return;
        }
        let grace = GracePeriod::begin();
        for _ in 0..LONGEST_GRACE {
            if grace.is_over() {
                break;
            }
            if !self.is_exceeded() {
                return;
            }
            writer.stall(|| writer.sleep(GRACE_LOOKS_EVERY));
        }
        self.0.awaited_evictions.store(evictions, Ordering::Relaxed);
    }

    /// Bytes of memtables up to which writers are left alone.
    fn comfortable(&self) -> usize {
        self.0.account.eighths(1)
    }

    /// Bytes of memtables up to which databases beyond their floors may write.
    fn common(&self) -> usize {
        self.0.account.eighths(2)
    }

    /// The bytes that every database has for its memtables, whatever others do.
    fn floor(&self) -> usize {
        let count = self.0.count.load(Ordering::Relaxed).max(1);
        (self.0.account.eighths(2) / count).max(LEAST_FLOOR)
    }

    /// Bytes beyond what writers leave free, with `more` of them.
    fn excess(&self, more: usize) -> usize {
        let account = &self.0.account;
        account.used().saturating_add(more).saturating_sub(account.eighths(7))
    }

    fn has_room(&self, bytes: usize) -> bool {
        if self.excess(bytes) > 0 {
            self.shrink_caches();
        }
        self.memtables_with(bytes) <= self.common() && self.excess(bytes) == 0
    }

    fn memtables_with(&self, more: usize) -> usize {
        self.0.account.used_for(MemoryUse::Memtables).saturating_add(more)
    }

    /// Has caches give back what memtables need, down to their part.
    fn shrink_caches(&self) {
        let account = &self.0.account;
        let bound = |cache: &BlockCache| account.cache_bound(cache.used(), 0);
        let mut has_evicted = self.0.cache.shrink(bound(&self.0.cache));
        if self.excess(0) > 0 {
            self.visit(|member| has_evicted |= member.cache().shrink(bound(member.cache())));
        }
        if has_evicted {
            self.0.evictions.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn visit(&self, mut visit: impl FnMut(&Arc<dyn Member>)) {
        let members = self.0.members.lock();
        members.iter().filter_map(Weak::upgrade).for_each(|member| visit(&member));
    }

    /// Delays a writer in proportion to what memtables have beyond the comfortable, so that flushes
    /// keep up: half way as fast as they are.
    fn slow_down(&self, writer: &impl Writer, bytes: usize, most: usize) {
        let shared = &self.0;
        if shared.unrequested.fetch_add(bytes, Ordering::Relaxed) >= REQUEST_EVERY {
            shared.unrequested.store(0, Ordering::Relaxed);
            self.request_flushes(None::<&dyn Member>);
        }
        let (from, to) = (self.comfortable(), self.common());
        let beyond = self.memtables_with(most).saturating_sub(from);
        let pressure = beyond as f64 / (to - from).max(1) as f64;
        let speed = shared.speed.load(Ordering::Relaxed) as f64;
        let price = (2e9 * pressure.min(1.0) * bytes as f64 / speed) as u64;
        let owed = shared.owed_nanos.fetch_add(price, Ordering::Relaxed) + price;
        if owed >= SHORTEST_SLEEP_NANOS {
            let owed = shared.owed_nanos.swap(0, Ordering::Relaxed).min(LONGEST_SLEEP_NANOS);
            writer.stall(|| writer.sleep(Duration::from_nanos(owed)));
        }
    }

    /// Waits for room, or for all that the database itself has in memtables now to be flushed.
    #[cold]
    fn wait_for_room(&self, writer: &impl Writer, most: usize) -> Result<Charge> {
        let written = writer.written();
        let mut is_first = true;
        loop {
            if self.has_room(most)
                && let Some(charge) = self.reserve(most, self.common())
            {
                return Ok(charge);
            }
            let own = writer.memtable_bytes();
            if own.reserved.saturating_add(most) <= self.floor() || writer.is_log_suspect() {
                return Ok(self.reserve_at_once(writer, most));
            }
            writer.check_flushes(is_first)?;
            is_first = false;
            let has_flush = own.immutable > 0 || own.active >= LEAST_FLUSH;
            if !has_flush || writer.is_flushed(written) {
                return Ok(self.reserve_at_once(writer, most));
            }
            self.request_flushes(Some(writer));
            writer.stall(|| self.0.account.wait(LONGEST_WAIT));
        }
    }

    /// Requests flushes, of the writer's own memtable in any case and then of the largest ones,
    /// until they give back what is beyond the comfortable.
    fn request_flushes(&self, writer: Option<&(impl Member + ?Sized)>) {
        let memtables = self.memtables_with(0);
        let wanted = memtables.saturating_sub(self.comfortable()).max(self.excess(0)).max(1);
        let mut awaited = 0;
        let mut largest = Vec::new();
        let members = self.0.members.lock();
        for member in members.iter().filter_map(Weak::upgrade).filter(|member| member.can_flush()) {
            let bytes = member.memtable_bytes();
            awaited += bytes.immutable;
            if bytes.active < LEAST_FLUSH {
                continue;
            }
            let is_own = writer.is_some_and(|writer| ptr::addr_eq(writer, Arc::as_ptr(&member)));
            if bytes.is_requested || is_own {
                awaited += bytes.active;
                // Another attempt, if a writer was in the way.
                member.request_flush();
            } else {
                largest.push((bytes.active, member));
            }
        }
        largest.sort_unstable_by_key(|(bytes, _)| *bytes);
        while awaited < wanted
            && let Some((bytes, member)) = largest.pop()
        {
            member.request_flush();
            awaited += bytes;
        }
        drop(largest);
    }
}

impl fmt::Debug for MemoryBudget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryBudget")
            .field("limit", &self.limit())
            .field("memtables", &self.memtable_bytes())
            .field("tables", &self.table_bytes())
            .field("blocks", &self.block_bytes())
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::thread;

    use super::*;
    use crate::cache::{SlotCache, Weighted, pin};

    const LIMIT: usize = 8 << 20;

    /// A database with empty memtables.
    struct Empty<F> {
        cache: BlockCache,
        stalls: AtomicUsize,
        on_stall: F,
    }

    impl<F: Fn() + Send + Sync> Member for Empty<F> {
        fn memtable_bytes(&self) -> MemtableBytes {
            MemtableBytes::default()
        }

        fn can_flush(&self) -> bool {
            true
        }

        fn request_flush(self: Arc<Self>) {}

        fn cache(&self) -> &BlockCache {
            &self.cache
        }
    }

    impl<F: Fn() + Send + Sync> Writer for Empty<F> {
        fn is_log_suspect(&self) -> bool {
            false
        }

        fn written(&self) -> SequenceNumber {
            0
        }

        fn is_flushed(&self, _: SequenceNumber) -> bool {
            true
        }

        fn check_flushes(&self, _: bool) -> Result<()> {
            Ok(())
        }

        fn stall(&self, wait: impl FnOnce()) {
            self.stalls.fetch_add(1, Ordering::SeqCst);
            (self.on_stall)();
            wait();
        }

        fn sleep(&self, duration: Duration) {
            thread::sleep(duration);
        }
    }

    struct Counted(#[expect(dead_code, reason = "dropped with this")] Charge);

    impl Weighted for Counted {
        fn weight(&self) -> usize {
            LIMIT
        }
    }

    /// Evicts a whole budget beside a thread that is pinned, writes twice, and returns what was used
    /// after the first write, and how often each waited. The thread lets go when the first waits, if
    /// it `lets_go`.
    fn write_beside_a_reader(lets_go: bool) -> (usize, [usize; 2]) {
        let budget = MemoryBudget::new(LIMIT);
        let slots = SlotCache::new(LIMIT).slots(1);
        let block = budget.account().charge(MemoryUse::Blocks, LIMIT);
        let (unpin, unpinned) = mpsc::channel();
        let (pinned, is_pinned) = mpsc::channel();
        let reader = thread::spawn(move || {
            let _pin = pin();
            pinned.send(()).expect("is awaited");
            unpinned.recv().expect("is told");
        });
        is_pinned.recv().expect("starts");
        slots.insert(0, Arc::new(Counted(block)), None);
        drop(slots);
        budget.0.evictions.fetch_add(1, Ordering::Relaxed);
        assert_eq!(budget.used(), LIMIT);
        let let_go = || {
            // From the second time on nobody listens.
            let _ = unpin.send(());
        };
        let writer = Empty {
            cache: BlockCache::new(0),
            stalls: AtomicUsize::new(0),
            on_stall: || {
                if lets_go {
                    let_go();
                }
            },
        };
        let write = || {
            let before = writer.stalls.load(Ordering::SeqCst);
            let _charge = budget.admit(&writer, 100, 100).expect("is admitted");
            (budget.used(), writer.stalls.load(Ordering::SeqCst) - before)
        };
        let (used, first) = write();
        let (_, second) = write();
        let_go();
        reader.join().expect("ends");
        (used, [first, second])
    }

    #[test]
    fn a_writer_waits_for_evicted_blocks_that_a_reader_is_about_to_let_go_of() {
        // Pins of other tests' threads can outlast the wait: one attempt has to do.
        let seen = (0..100).map(|_| write_beside_a_reader(true)).find(|(used, _)| *used == 100);
        assert!(seen.is_some_and(|(_, [first, _])| first > 0), "{seen:?}");
    }

    #[test]
    fn a_reader_that_never_lets_go_holds_up_one_write_for_a_moment() {
        assert_eq!(write_beside_a_reader(false), (LIMIT + 100, [LONGEST_GRACE, 0]));
    }
}
