//! The open tables of a database, bounded by `max_open_files`, and by the process's descriptors if
//! those are fewer. A mapped table holds no descriptor: while all are mapped, at least
//! [`MAPPED_TABLES`] stay open, and up to [`MOST_MAPPED`] while their indexes and filters take little
//! memory, because to open one again costs more than its index is worth.
//!
//! A table hangs on its [`FileMeta`], so that a reader of the version finds it by one pointer
//! load; the set only decides which tables stay open, by a clock over those that are.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};

use arc_swap::Guard;

use crate::base::error::{Error, ErrorKind, Result};
use crate::base::fork::Origin;
use crate::base::locks::{Mutex, MutexGuard};
use crate::env::{Env, RandomAccessFile, ReadAccess};
use crate::table::{ReadTotals, Table, TableReadSettings, ask_for_next_file};

use super::file_meta::{Contents, FileMeta};
use super::filename;

/// An open table, pinned without touching a shared reference count where possible.
pub(crate) struct TableRef(Guard<Option<Arc<Table>>>);

impl TableRef {
    pub(crate) fn into_arc(self) -> Arc<Table> {
        Guard::into_inner(self.0).expect("a table reference is made from an open table only")
    }
}

impl std::ops::Deref for TableRef {
    type Target = Arc<Table>;

    fn deref(&self) -> &Arc<Table> {
        self.0.as_ref().expect("a table reference is made from an open table only")
    }
}

/// Descriptors that are left to everything else once the process has run out: a log, a MANIFEST,
/// CURRENT, a directory and a few tables that are being written.
const SPARE_DESCRIPTORS: usize = 6;

/// Mapped tables that stay open, however small `max_open_files` is: LevelDB's default.
const MAPPED_TABLES: usize = 1000;

/// So many stay open while memory holds all tables, and their indexes and filters take no more than
/// `MAPPED_HEAP`: 16 GiB of tables of the default size.
const MOST_MAPPED: usize = 8192;

/// See [`MOST_MAPPED`]. About 60 KB a table of the default size with short values.
const MAPPED_HEAP: usize = 512 << 20;

/// Tables that one call closes, though more are open than may be, so that no reader waits long.
const CLOSED_AT_ONCE: usize = 16;

/// Tables that a database keeps open whatever others of its memory budget have.
const BUDGETED_TABLES: usize = 4;

/// Opens tables and keeps at most `capacity` of them.
pub(crate) struct TableSet {
    env: Arc<dyn Env>,
    dir: PathBuf,
    access: ReadAccess,
    settings: TableReadSettings,
    /// The names that table `n` may have.
    names: fn(u64) -> Vec<String>,
    /// Falls when the process runs out of descriptors.
    capacity: AtomicUsize,
    open: AtomicUsize,
    /// Whether a table was opened that holds a descriptor.
    has_descriptors: AtomicBool,
    /// Of the tables in the ring: indexes and filters.
    heap: AtomicUsize,
    ring: Mutex<VecDeque<Member>>,
    origin: Origin,
}

/// A table that was open when it was put into the ring.
struct Member {
    file: Weak<FileMeta>,
    heap: usize,
}

impl TableSet {
    pub(crate) fn new(
        env: Arc<dyn Env>,
        dir: PathBuf,
        access: ReadAccess,
        settings: TableReadSettings,
        capacity: usize,
    ) -> Self {
        TableSet {
            env,
            dir,
            access,
            settings,
            names: |number| filename::names_of_table(number).to_vec(),
            capacity: AtomicUsize::new(capacity),
            open: AtomicUsize::new(0),
            has_descriptors: AtomicBool::new(false),
            heap: AtomicUsize::new(0),
            ring: Mutex::default(),
            origin: Origin::here(),
        }
    }

    /// A set of tables in the same directory that are not part of the database yet.
    pub(crate) fn of_temporaries(&self, capacity: usize) -> Self {
        TableSet {
            env: self.env.clone(),
            dir: self.dir.clone(),
            access: self.access,
            settings: self.settings.clone(),
            names: |number| vec![filename::temp(number)],
            capacity: AtomicUsize::new(capacity),
            open: AtomicUsize::new(0),
            has_descriptors: AtomicBool::new(false),
            heap: AtomicUsize::new(0),
            ring: Mutex::default(),
            origin: Origin::here(),
        }
    }

    /// The table of `file`, opened if it is not.
    #[inline]
    pub(crate) fn table(&self, file: &Arc<FileMeta>) -> Result<TableRef> {
        let table = file.table.load();
        if let Some(open) = &*table {
            if open.is_outdated() {
                return self.reopen_table(file);
            }
            note_use(file);
            return Ok(TableRef(table));
        }
        self.open_table(file)
    }

    /// Asks the device for what a scan reads first that goes on in the table of `file`, whether
    /// that is open or not. A hint.
    pub(crate) fn prefetch_next(&self, file: &Arc<FileMeta>, backward: bool) {
        if let Some(table) = Self::open_table_of(file) {
            return table.prefetch_next(backward);
        }
        // Not even the last descriptor is worth closing a table for this.
        let mut names = (self.names)(file.number).into_iter();
        let open = |name| self.env.open_random(&self.dir.join(name), self.access_now()).ok();
        if let Some(handle) = names.find_map(open) {
            ask_for_next_file(handle.as_ref(), &self.settings.policy.end_share, backward);
        }
    }

    /// The table of `file`, if it is open.
    #[inline]
    pub(crate) fn open_table_of(file: &Arc<FileMeta>) -> Option<TableRef> {
        Some(file.table.load()).filter(|table| table.is_some()).map(TableRef)
    }

    /// The table of `file`, if it is open and need not be opened once more, for a look-up.
    pub(crate) fn usable_table_of(file: &Arc<FileMeta>) -> Option<TableRef> {
        let table = Self::open_table_of(file).filter(|table| !table.is_outdated())?;
        note_use(file);
        Some(table)
    }

    /// Reads tables with `pread` from now on if all of them, `bytes` together, are too large for
    /// the memory that there is.
    pub(crate) fn weigh(&self, bytes: u64) {
        self.settings.policy.weigh(bytes, || self.env.available_memory());
    }

    /// Whether the tables were found too large for the memory that there is.
    pub(crate) fn exceed_memory(&self) -> bool {
        self.settings.policy.exceeds_memory()
    }

    /// How tables are read.
    pub(crate) fn read_settings(&self) -> &TableReadSettings {
        &self.settings
    }

    /// How look-ups in tables went.
    pub(crate) fn read_totals(&self) -> ReadTotals {
        self.settings.counters.totals()
    }

    /// Tables open now, and the memory that they take: indexes and filters, not blocks.
    pub(crate) fn open_tables(&self) -> (usize, usize) {
        let Some(ring) = self.lock_ring() else { return (0, 0) };
        let files = ring.iter().filter_map(|member| member.file.upgrade());
        let open = files.filter_map(|file| file.table.load_full());
        open.fold((0, 0), |(count, bytes), table| (count + 1, bytes + table.memory_usage()))
    }

    /// Opens a table once more, after mappings were given up.
    #[cold]
    fn reopen_table(&self, file: &Arc<FileMeta>) -> Result<TableRef> {
        let table = self.read_table(file)?;
        // If the table was closed in between, it stays closed, as the ring knows.
        let previous = file.table.load();
        if previous.is_some() {
            file.table.compare_and_swap(&*previous, Some(table.clone()));
        }
        self.close_excess();
        Ok(TableRef(Guard::from_inner(Some(table))))
    }

    #[cold]
    fn open_table(&self, file: &Arc<FileMeta>) -> Result<TableRef> {
        let table = self.read_table(file)?;
        // Two threads may open the same table at once: the first one's stays.
        let previous = file.table.compare_and_swap(&None::<Arc<Table>>, Some(table.clone()));
        if previous.is_some() {
            return Ok(TableRef(previous));
        }
        file.recently_used.store(true, Ordering::Relaxed);
        let Some(mut ring) = self.lock_ring() else {
            return Ok(TableRef(Guard::from_inner(Some(table))));
        };
        let heap = table.memory_usage();
        // With the ring locked, so that who closes the table finds it counted.
        self.heap.fetch_add(heap, Ordering::Relaxed);
        self.open.fetch_add(1, Ordering::Relaxed);
        ring.push_back(Member { file: Arc::downgrade(file), heap });
        drop(ring);
        self.close_excess();
        Ok(TableRef(Guard::from_inner(Some(table))))
    }

    /// Whether one more table may be open that nobody has asked for yet: without another being
    /// closed, and while tables take less than half of their part of a memory budget.
    pub(crate) fn have_room(&self) -> bool {
        let account = self.settings.account.as_ref();
        !self.are_too_many(self.open.load(Ordering::Relaxed) + 1)
            && account.is_none_or(|account| account.has_few_tables())
    }

    /// Whether lookups of so many keys, each of which holds a few tables, keep few of those open
    /// that may be.
    pub(crate) fn can_spare(&self, keys: usize) -> bool {
        self.settings.account.is_none() && 4 * keys <= self.guaranteed()
    }

    /// Counts tables no longer that went with the last version that had them.
    pub(crate) fn forget_gone(&self) {
        let Some(mut ring) = self.lock_ring() else { return };
        let before = ring.len();
        ring.retain(|member| {
            let is_there = member.file.strong_count() > 0;
            if !is_there {
                self.heap.fetch_sub(member.heap, Ordering::Relaxed);
            }
            is_there
        });
        self.open.fetch_sub(before - ring.len(), Ordering::Relaxed);
    }

    /// How many tables may be open at least.
    fn guaranteed(&self) -> usize {
        let capacity = self.capacity.load(Ordering::Relaxed);
        match self.has_descriptors.load(Ordering::Relaxed) {
            true => capacity,
            false => capacity.max(MAPPED_TABLES),
        }
    }

    /// Whether fewer than `open` tables may be open.
    fn are_too_many(&self, open: usize) -> bool {
        let may_be_more = || {
            !self.has_descriptors.load(Ordering::Relaxed)
                && open <= MOST_MAPPED
                && self.heap.load(Ordering::Relaxed) <= MAPPED_HEAP
                && !self.exceed_memory()
        };
        open > self.guaranteed() && !may_be_more()
    }

    fn exceed_budget(&self) -> bool {
        self.settings.account.as_ref().is_some_and(|account| account.has_too_many_tables())
    }

    /// Closes tables while more are open than may be: one, but for when mappings were given up, which
    /// leaves many that hold no descriptor. Those go bit by bit.
    fn close_excess(&self) {
        for _ in 0..CLOSED_AT_ONCE {
            if !self.are_too_many(self.open.load(Ordering::Relaxed)) || !self.evict_one() {
                break;
            }
        }
        while self.exceed_budget()
            && self.open.load(Ordering::Relaxed) > BUDGETED_TABLES
            && self.evict_one()
        {}
    }

    /// The ring, which in a child of a fork may stay locked for ever; then tables that are opened
    /// stay open.
    fn lock_ring(&self) -> Option<MutexGuard<'_, VecDeque<Member>>> {
        if self.origin.is_ancestor() { self.ring.try_lock() } else { Some(self.ring.lock()) }
    }

    fn read_table(&self, file: &Arc<FileMeta>) -> Result<Arc<Table>> {
        let (mut handle, mut name) = self.open_file(file.number)?;
        if handle.mapped().is_none()
            && !matches!(self.access_now(), ReadAccess::Pread)
            && !self.has_descriptors.load(Ordering::Relaxed)
            && self.open.load(Ordering::Relaxed) > MAPPED_TABLES
            && self.evict_one()
        {
            // There are no more mappings for the process: this set has many.
            (handle, name) = self.open_file(file.number)?;
        }
        let display = self.dir.join(&name).display().to_string();
        if handle.size() != file.size {
            return Err(Error::corruption(format!(
                "{display}: is {} bytes long, the MANIFEST says {}",
                handle.size(),
                file.size
            )));
        }
        if handle.mapped().is_none() && !self.has_descriptors.load(Ordering::Relaxed) {
            self.has_descriptors.store(true, Ordering::Relaxed);
        }
        let table = Arc::new(Table::open(handle, display, self.settings.clone())?);
        if let Some(properties) = table.properties() {
            file.learn(Contents::from(properties));
        }
        Ok(table)
    }

    fn access_now(&self) -> ReadAccess {
        if self.settings.policy.is_unmapped() { ReadAccess::Pread } else { self.access }
    }

    /// Opens the file of table `number` under its present or its old name.
    pub(crate) fn open_file(&self, number: u64) -> Result<(Arc<dyn RandomAccessFile>, String)> {
        let access = self.access_now();
        let mut last = None;
        for name in (self.names)(number) {
            let path = self.dir.join(&name);
            let mut result = self.env.open_random(&path, access);
            if result.as_ref().is_err_and(Error::is_out_of_descriptors) && self.spare_descriptors()
            {
                result = self.env.open_random(&path, access);
            }
            match result {
                Ok(file) => return Ok((file, name)),
                Err(error) if error.kind() == ErrorKind::NotFound => {
                    last.get_or_insert(error);
                }
                Err(error) => return Err(error),
            }
        }
        if self.origin.is_ancestor() {
            return Err(Error::not_supported(
                "the parent of this fork has removed a table since: open the database here",
            ));
        }
        let missing = last.map_or_else(String::new, |error| error.message().to_owned());
        Err(Error::corruption(format!("a table that the MANIFEST names is missing: {missing}")))
    }

    /// Closes tables, and keeps fewer from now on, because the process has run out of descriptors.
    /// Whether there was one to close. A table that an iterator holds stays open until it lets go.
    pub(crate) fn spare_descriptors(&self) -> bool {
        let keep = self.open.load(Ordering::Relaxed).saturating_sub(SPARE_DESCRIPTORS).max(1);
        self.capacity.fetch_min(keep, Ordering::Relaxed);
        let mut closed = self.evict_one();
        while self.open.load(Ordering::Relaxed) > keep && self.evict_one() {
            closed = true;
        }
        closed
    }

    /// Closes one table that was not used lately. Whether there was one.
    fn evict_one(&self) -> bool {
        let Some(mut ring) = self.lock_ring() else { return false };
        // Twice round: the first may only clear marks.
        for _ in 0..2 * ring.len() {
            let Some(member) = ring.pop_front() else { break };
            let file = member.file.upgrade();
            if file.as_ref().is_some_and(|file| file.recently_used.swap(false, Ordering::Relaxed)) {
                ring.push_back(member);
                continue;
            }
            drop(ring);
            // Without a file its table closed with its version.
            if let Some(file) = file {
                file.table.store(None);
            }
            self.open.fetch_sub(1, Ordering::Relaxed);
            self.heap.fetch_sub(member.heap, Ordering::Relaxed);
            return true;
        }
        false
    }
}

/// Has the clock pass over the table of `file` once.
#[inline]
fn note_use(file: &FileMeta) {
    if !file.recently_used.load(Ordering::Relaxed) {
        file.recently_used.store(true, Ordering::Relaxed);
    }
}
