//! The open tables of a database, bounded by the memory of their indexes and filters, because to
//! open one again costs more than its index is worth: as many as `max_open_files`, and while they
//! take little memory up to [`MOST_MAPPED`], or [`MOST_UNMAPPED`] where they are read with `pread`.
//!
//! A mapped table holds no descriptor. How many of the others hold one, [`TableFiles`] bounds.
//!
//! A table hangs on its [`FileMeta`], so that a reader of the version finds it by one pointer
//! load; the set only decides which tables stay open, by a clock over those that are. Of a table that
//! is closed the filter may stay, so that lookups open few tables that do not have their key.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use arc_swap::Guard;

use crate::base::error::{Error, Result};
use crate::env::{Env, RandomAccessFile, ReadAccess};
use crate::table::{
    Ahead, CacheLoan, EndShare, MOST_HEAP, ReadTotals, Table, TableReadSettings, ask_for_end,
    ask_for_next_file,
};

use super::file_meta::{Contents, FileMeta};
use super::filename;
use super::kept_filter::KeptFilter;
use super::table_files::{Opened, SPARE_DESCRIPTORS, TableFiles, open_first, retry_sparing};
use super::table_ring::TableRing;

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

/// Mapped tables that stay open, however small `max_open_files` is: LevelDB's default.
const MAPPED_TABLES: usize = 1000;

/// So many stay open while memory holds all tables, and their indexes and filters take no more than
/// [`MOST_HEAP`]: at least 16 GiB, in tables of 2 MiB, and an eighth of the mappings that Linux
/// allows a process.
const MOST_MAPPED: usize = 8192;

/// So many stay open that are read with `pread`, which take heap and nothing else that is scarce.
const MOST_UNMAPPED: usize = 65_536;

/// So many stay open at least where the tables exceed memory.
const FEW_TABLES: usize = 64;

/// Tables that one call closes, though more are open than may be, so that no reader waits long.
const CLOSED_AT_ONCE: usize = 16;

/// Tables that a database keeps open whatever others of its memory budget have.
const BUDGETED_TABLES: usize = 4;

/// Where the memory of a table that is opened comes from.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Room {
    /// From others that are closed, if there is none left: what a scan or a compaction reads is
    /// likely not read again soon.
    Own,
    /// Before that, from the cache.
    Borrowed,
}

/// Opens tables and keeps as many of them as [the module](self) says.
pub(crate) struct TableSet {
    env: Arc<dyn Env>,
    /// Those of the tables that are not mapped.
    files: Arc<TableFiles>,
    dir: PathBuf,
    access: ReadAccess,
    settings: TableReadSettings,
    /// The names that table `n` may have.
    names: fn(u64) -> Vec<String>,
    /// Tables that stay open, whatever memory they take.
    capacity: usize,
    /// Whether more do.
    keeps_more: bool,
    /// Whether a table was opened that is not mapped.
    has_unmapped: AtomicBool,
    ring: TableRing,
    /// Of the cache's capacity, what tables take that exceed memory beyond their part of it.
    loan: Option<CacheLoan>,
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
            files: TableFiles::new(env.clone(), capacity),
            loan: settings.cache.loan(),
            env,
            dir,
            access,
            settings,
            names: |number| filename::names_of_table(number).to_vec(),
            capacity,
            keeps_more: true,
            has_unmapped: AtomicBool::new(false),
            ring: TableRing::default(),
        }
    }

    /// For tables that are read once: nothing is gained by keeping more than `capacity` open.
    pub(crate) fn read_once(self) -> Self {
        TableSet { keeps_more: false, ..self }
    }

    /// A set of tables in the same directory that are not part of the database yet, to be read
    /// once.
    pub(crate) fn of_temporaries(&self, capacity: usize) -> Self {
        TableSet {
            names: |number| vec![filename::temp(number)],
            keeps_more: false,
            ..TableSet::new(
                self.env.clone(),
                self.dir.clone(),
                self.access,
                self.settings.clone(),
                capacity,
            )
        }
    }

    /// The table of `file`, opened if it is not.
    #[inline]
    pub(crate) fn table(&self, file: &Arc<FileMeta>) -> Result<TableRef> {
        self.opened(file, file.table.load(), Room::Own)
    }

    /// [`table`](Self::table), for a seek, which is worth more than blocks in the cache.
    #[inline]
    pub(crate) fn table_to_seek(&self, file: &Arc<FileMeta>) -> Result<TableRef> {
        self.opened(file, file.table.load(), Room::Borrowed)
    }

    /// The table of `file`, opened if it is not, for a lookup of a key with this hash. `None` if it
    /// is closed, and its filter knows that it does not have the key. Without `fill_cache` the cache
    /// lends nothing for it.
    #[inline]
    pub(crate) fn table_to_search(
        &self,
        file: &Arc<FileMeta>,
        hash: u64,
        fill_cache: bool,
    ) -> Result<Option<TableRef>> {
        let table = file.table.load();
        if table.is_none() && self.spares(file, hash) {
            return Ok(None);
        }
        let room = if fill_cache { Room::Borrowed } else { Room::Own };
        self.opened(file, table, room).map(Some)
    }

    /// The table of `file`, which has `table` now, opened if there is none.
    #[inline]
    fn opened(
        &self,
        file: &Arc<FileMeta>,
        table: Guard<Option<Arc<Table>>>,
        room: Room,
    ) -> Result<TableRef> {
        match &*table {
            Some(open) if !open.is_outdated() => {
                note_use(file);
                Ok(TableRef(table))
            }
            Some(_) => self.reopen_table(file),
            None => self.open_table(file, room),
        }
    }

    /// Whether the filter of the table of `file`, which is closed, spares it a lookup of a key with
    /// this hash.
    #[cold]
    pub(crate) fn spares(&self, file: &FileMeta, hash: u64) -> bool {
        let spares = file.filter.load().as_ref().is_some_and(|kept| kept.rejects(hash));
        if spares {
            self.settings.counters.count_spared();
        }
        spares
    }

    /// Asks the device for what a scan reads first that goes on in the table of `file`, whether
    /// that is open or not, and returns how far that is. A hint.
    pub(crate) fn prefetch_next(&self, file: &Arc<FileMeta>, ahead: Ahead) -> Option<u64> {
        match Self::open_table_of(file) {
            Some(table) => table.prefetch_next(ahead),
            None => self.hint(file, |file, share| ask_for_next_file(file, share, ahead))?,
        }
    }

    /// Asks the device for what opening the table of `file` reads. A hint. False where asking is of
    /// no use for any table.
    pub(crate) fn prefetch_opening(&self, file: &Arc<FileMeta>) -> bool {
        let is_open = Self::open_table_of(file).is_some_and(|table| !table.is_outdated());
        let ask = |file: &dyn RandomAccessFile, share: &EndShare| {
            ask_for_end(file, share);
            file.reads_in_background()
        };
        is_open || self.access_now() == ReadAccess::Pread && self.hint(file, ask).unwrap_or(true)
    }

    /// Gives `hint` the file of a table that is not open. Not even the last descriptor of the
    /// process is worth closing others for that.
    fn hint<T>(
        &self,
        file: &FileMeta,
        hint: impl FnOnce(&dyn RandomAccessFile, &EndShare) -> T,
    ) -> Option<T> {
        let open = |path: &Path| self.files.open(path, self.access_now());
        let (Opened { file, .. }, _) = &open_first(self.paths(file.number), open).ok()?;
        Some(hint(file.as_ref(), &self.settings.policy.end_share))
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
        let cache_bytes = self.settings.cache.most_bytes();
        self.settings.policy.weigh(bytes, cache_bytes, || self.env.available_memory());
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
        self.ring.totals()
    }

    /// Opens a table once more, after mappings were given up.
    #[cold]
    fn reopen_table(&self, file: &Arc<FileMeta>) -> Result<TableRef> {
        let table = self.read_table(file)?;
        // If the table was closed in between, it stays closed, as the ring knows.
        let previous = file.table.load();
        if previous.is_some() {
            file.table.compare_and_swap(&*previous, Some(table.clone()));
            // An index or a filter in a mapping takes no memory.
            self.ring.count_again(file, table.memory_usage());
        }
        self.close_excess();
        Ok(TableRef(Guard::from_inner(Some(table))))
    }

    #[cold]
    fn open_table(&self, file: &Arc<FileMeta>, room: Room) -> Result<TableRef> {
        let table = self.read_table(file)?;
        // Two threads may open the same table at once: the first one's stays.
        if let Some(first) = self.ring.enter(file, &table) {
            return Ok(TableRef(Guard::from_inner(Some(first))));
        }
        if room == Room::Borrowed {
            self.borrow();
        }
        self.close_excess();
        Ok(TableRef(Guard::from_inner(Some(table))))
    }

    /// Whether one more table may be open that nobody has asked for yet: without another being
    /// closed, and while tables take less than half of their part of a memory budget.
    pub(crate) fn have_room(&self) -> bool {
        let account = self.settings.account.as_ref();
        let (open, heap) = (self.ring.open(), self.ring.heap());
        !self.are_too_many(open + 1, heap + heap / open.max(1), 0)
            && account.is_none_or(|account| account.has_few_tables())
    }

    /// Bytes that tables may take that nobody has asked for yet.
    pub(crate) fn room_ahead(&self) -> usize {
        let quarter = self.env.available_memory().map_or(u64::MAX, |available| available / 4);
        usize::try_from(quarter).unwrap_or(usize::MAX).min(self.settings.policy.most_heap() / 2)
    }

    /// Whether lookups of so many keys, each of which holds a few tables, keep few of those open
    /// that may be, and have the device read for few of those that may hold a descriptor.
    pub(crate) fn can_spare(&self, keys: usize) -> bool {
        let most = match self.has_unmapped.load(Ordering::Relaxed) {
            true => self.files.capacity(),
            false => self.guaranteed(),
        };
        self.settings.account.is_none() && 4 * keys <= most
    }

    /// Counts tables no longer that went with the last version that had them.
    pub(crate) fn forget_gone(&self) {
        self.ring.forget_gone();
        self.give_back();
    }

    /// How many tables may be open at least.
    fn guaranteed(&self) -> usize {
        match self.has_unmapped.load(Ordering::Relaxed) {
            // Their indexes and filters alone might exceed the memory.
            true if self.exceed_memory() => self.capacity.min(FEW_TABLES),
            true => self.capacity,
            false => self.capacity.max(MAPPED_TABLES),
        }
    }

    /// How many tables may be open while they take no more memory than the second number.
    fn most(&self) -> (usize, usize) {
        if self.access_now() == ReadAccess::Pread {
            return (MOST_UNMAPPED, self.settings.policy.most_heap());
        }
        if self.has_unmapped.load(Ordering::Relaxed) {
            return (MOST_MAPPED, self.settings.policy.most_heap());
        }
        (if self.exceed_memory() { 0 } else { MOST_MAPPED }, MOST_HEAP)
    }

    /// Whether fewer than `open` tables may be open, which take `heap` bytes with what filters take,
    /// `lent` of them borrowed.
    fn are_too_many(&self, open: usize, heap: usize, lent: usize) -> bool {
        let are_small = || {
            let (count, most) = self.most();
            self.keeps_more && open <= count && heap <= most + lent
        };
        open > self.guaranteed() && !are_small()
    }

    fn exceed_budget(&self) -> bool {
        self.settings.account.as_ref().is_some_and(|account| account.has_too_many_tables())
    }

    /// Borrows from the cache what tables take beyond their part of the memory, where they exceed it:
    /// a block in the cache is of no use while its table is closed.
    fn borrow(&self) {
        if let Some(loan) = &self.loan {
            loan.adjust(self.wanted());
        }
    }

    /// Gives back to the cache what tables take no longer.
    fn give_back(&self) {
        if let Some(loan) = &self.loan {
            loan.lower(self.wanted());
        }
    }

    /// The bytes that tables want to borrow from the cache.
    fn wanted(&self) -> usize {
        let (count, heap) = self.most();
        if !self.keeps_more
            || count == 0
            || !self.exceed_memory()
            || self.settings.account.is_some()
        {
            return 0;
        }
        let wanted = self.ring.heap().saturating_sub(heap);
        withheld_for(wanted.min(self.settings.policy.most_borrowed()))
    }

    /// What tables may take beyond their part of the memory.
    fn lent(&self) -> usize {
        self.loan.as_ref().map_or(0, |loan| loan.bytes() / 3 * 2)
    }

    /// Closes tables while more are open than may be: few, but for when mappings were given up,
    /// which may leave many too many. Those go bit by bit.
    fn close_excess(&self) {
        self.give_back();
        for _ in 0..CLOSED_AT_ONCE {
            if !self.are_too_many(self.ring.open(), self.ring.heap(), self.lent())
                || !self.evict_one()
            {
                break;
            }
        }
        // What may not be closed leaves less to filters.
        while self.ring.open() <= self.guaranteed()
            && self.ring.heap() > self.most().1 + self.lent()
            && self.ring.drop_filter()
        {}
        while self.exceed_budget()
            && (self.ring.open() > BUDGETED_TABLES && self.evict_one() || self.ring.drop_filter())
        {
        }
    }

    fn read_table(&self, file: &Arc<FileMeta>) -> Result<Arc<Table>> {
        let open = || self.open_named(file.number, |path, access| self.files.open(path, access));
        let (mut opened, mut path) = open()?;
        if opened.file.mapped().is_none()
            && self.access_now() != ReadAccess::Pread
            && !self.has_unmapped.load(Ordering::Relaxed)
            && self.ring.open() > MAPPED_TABLES
            && self.evict_one()
        {
            // There are no more mappings for the process: this set has many.
            (opened, path) = open()?;
        }
        let (display, size) = (path.display().to_string(), opened.file.size());
        if size != file.size {
            return Err(Error::corruption(format!(
                "{display}: is {size} bytes long, the MANIFEST says {}",
                file.size
            )));
        }
        if opened.file.mapped().is_none() && !self.has_unmapped.load(Ordering::Relaxed) {
            self.has_unmapped.store(true, Ordering::Relaxed);
        }
        let readable = self.files.readable(opened, self.paths(file.number).collect());
        let filter = file.filter.load().as_ref().and_then(|kept| kept.share());
        let table = Table::open_with(readable, display, self.settings.clone(), filter)?;
        let table = Arc::new(table);
        if let Some(properties) = table.properties() {
            file.learn(Contents::from(properties));
        }
        Ok(table)
    }

    fn access_now(&self) -> ReadAccess {
        if self.settings.policy.is_unmapped() { ReadAccess::Pread } else { self.access }
    }

    /// Where table `number` may be.
    fn paths(&self, number: u64) -> impl Iterator<Item = PathBuf> {
        (self.names)(number).into_iter().map(|name| self.dir.join(name))
    }

    /// Opens the file of table `number`, and says which of its names it has. It holds its
    /// descriptor, if it has one, until it is dropped.
    pub(crate) fn open_file(&self, number: u64) -> Result<(Arc<dyn RandomAccessFile>, String)> {
        let (file, path) =
            self.open_named(number, |path, access| self.env.open_random(path, access))?;
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        Ok((file, name))
    }

    fn open_named<T>(
        &self,
        number: u64,
        open: impl Fn(&Path, ReadAccess) -> Result<T>,
    ) -> Result<(T, PathBuf)> {
        let access = self.access_now();
        let spare = || self.spare_descriptors();
        open_first(self.paths(number), |path| retry_sparing(|| open(path, access), spare))
            .map_err(|error| self.files.explain(error))
    }

    /// Closes descriptors of tables, and keeps fewer from now on, because the process has run out.
    /// Whether there was one to close. One that is being read stays open until the read is done.
    pub(crate) fn spare_descriptors(&self) -> bool {
        if self.has_unmapped.load(Ordering::Relaxed) {
            return self.files.spare();
        }
        // The mapped files of a program's environment may hold some.
        (0..SPARE_DESCRIPTORS).filter(|_| self.evict_one()).count() > 0
    }

    /// Closes one table that was not used lately, but for its filter. Whether there was one.
    fn evict_one(&self) -> bool {
        let closed = self.ring.close_one(|table| self.filter_to_keep(table));
        self.drop_excess_filters();
        closed
    }

    /// Closes tables that are not used, one after the other, while tables borrow from the cache.
    /// For each of the sampled reads.
    pub(crate) fn return_unused(&self) {
        if self.lent() > 0
            && self.ring.open() > self.guaranteed()
            && self.ring.close_if_unused(|table| self.filter_to_keep(table))
        {
            self.drop_excess_filters();
            self.give_back();
        }
    }

    fn filter_to_keep(&self, table: &Table) -> Option<KeptFilter> {
        let keeps = self.most_of_filters() > 0;
        keeps.then(|| KeptFilter::of(table, self.settings.account.as_ref())).flatten()
    }

    fn drop_excess_filters(&self) {
        while self.ring.filter_heap() > self.most_of_filters() && self.ring.drop_filter() {}
    }

    /// The memory that the filters of closed tables may take: half of what tables may.
    fn most_of_filters(&self) -> usize {
        if !self.keeps_more {
            return 0;
        }
        let half = self.most().1 / 2;
        self.settings.account.as_ref().map_or(half, |account| half.min(account.eighths(1)))
    }
}

/// What a cache lends so that tables may take `bytes` more: half as much again stays free for the
/// page cache and the program's own pages, which are short as well then.
fn withheld_for(bytes: usize) -> usize {
    bytes.div_ceil(2).saturating_mul(3)
}

/// Has the clock pass over the table of `file` once.
#[inline]
fn note_use(file: &FileMeta) {
    if !file.recently_used.load(Ordering::Relaxed) {
        file.recently_used.store(true, Ordering::Relaxed);
    }
}
