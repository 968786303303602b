//! New orders and payments after TPC-C with redb: the step `orders` of `tools/transactions`.
//!
//! The tables, sizes, random numbers, threads and checks are those of `orders` in
//! `tools/transactions_bench/bench.cc`. redb has one writer at a time: a transaction waits in
//! `begin_write`, and none has to be run again. There is one table of byte strings.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use lab_driver::{Failure, Result};
use redb::{Database, Durability, ReadableDatabase, ReadableTable, TableDefinition};

#[path = "../backend.rs"]
mod backend;

use backend::UnsyncedBackend;

const TABLE: TableDefinition<'static, &[u8], &[u8]> = TableDefinition::new("orders");
const USAGE: &str = "redb-orders none|unsynced FILE SECONDS [THREADS]";

const WAREHOUSES: u32 = 4;
const DISTRICTS: u32 = 10;
const CUSTOMERS: u32 = 300;
const ITEMS: u32 = 1000;

/// What a commit promises.
#[derive(Clone, Copy)]
enum Commits {
    /// `Durability::None`: in the memory of the process.
    None,
    /// `Durability::Immediate` over a file that is not synced: reached the operating system, as
    /// the commits of Terrace and RocksDB in `bench.cc` do.
    Unsynced,
}

impl Commits {
    fn name(self) -> &'static str {
        match self {
            Commits::None => "redb",
            Commits::Unsynced => "redb-unsynced",
        }
    }

    fn promise(self) -> &'static str {
        match self {
            Commits::None => {
                "Durability::None: a commit stays in the memory of the process, unlike Terrace's and RocksDB's"
            }
            Commits::Unsynced => {
                "Durability::Immediate over a backend whose syncs do nothing: a commit reaches the operating system"
            }
        }
    }

    fn durability(self) -> Durability {
        match self {
            Commits::None => Durability::None,
            Commits::Unsynced => Durability::Immediate,
        }
    }
}

struct Arguments {
    commits: Commits,
    file: PathBuf,
    seconds: u32,
    threads: u32,
}

struct Orders {
    db: Database,
    commits: Commits,
}

/// The counts and times of one thread, or of all.
#[derive(Default)]
struct Done {
    ordered: u64,
    paid: u64,
    micros: Vec<f64>,
}

/// The generator of `bench.cc`.
#[derive(Clone)]
struct Random {
    state: u64,
}

impl Random {
    fn below(&mut self, bound: u32) -> u32 {
        self.state = self
            .state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (((self.state >> 33) * u64::from(bound)) >> 31) as u32
    }
}

type Table<'a> = redb::Table<'a, &'static [u8], &'static [u8]>;

fn main() -> ExitCode {
    match arguments().and_then(|arguments| run(&arguments)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("redb-orders: {failure}");
            ExitCode::FAILURE
        }
    }
}

fn arguments() -> Result<Arguments> {
    let mut given = std::env::args().skip(1);
    let commits = match given.next().as_deref() {
        Some("none") => Commits::None,
        Some("unsynced") => Commits::Unsynced,
        _ => return Err(Failure::usage(USAGE)),
    };
    let file = given.next().ok_or_else(|| Failure::usage(USAGE))?.into();
    let mut number = |default: Option<u32>| match given.next() {
        Some(text) => text.parse().ok().filter(|number| *number > 0),
        None => default,
    };
    let seconds = number(None).ok_or_else(|| Failure::usage(USAGE))?;
    let threads = number(Some(4)).ok_or_else(|| Failure::usage(USAGE))?;
    Ok(Arguments { commits, file, seconds, threads })
}

/// redb has an error type for every step.
fn failed(error: impl Display) -> Failure {
    Failure::new(error)
}

fn run(arguments: &Arguments) -> Result<()> {
    let name = arguments.commits.name();
    println!("{name} {}: {}", env!("LAB_ENGINE_VERSION"), arguments.commits.promise());
    let orders = Orders::create(arguments)?;
    let done = orders.work(arguments)?;
    orders.check(&done)?;
    let (ordered, paid) = (done.ordered, done.paid);
    println!(
        "{name} orders: {} threads: {:.0} transactions/s ({ordered} orders, {paid} payments, 0 run again)",
        arguments.threads,
        (ordered + paid) as f64 / f64::from(arguments.seconds),
    );
    print_times(name, done.micros);
    Ok(())
}

fn print_times(name: &str, mut micros: Vec<f64>) {
    micros.sort_by(f64::total_cmp);
    let Some(most) = micros.last() else { return };
    let at = |part: f64| micros[((micros.len() - 1) as f64 * part) as usize];
    let (median, p99) = (at(0.5), at(0.99));
    let count = micros.len();
    println!(
        "{name} transactions: {count}, median {median:.1} us, p99 {p99:.1} us, most {most:.1} us"
    );
}

impl Orders {
    /// Creates the database with the rows that transactions update, in one durable commit.
    fn create(arguments: &Arguments) -> Result<Self> {
        let builder = Database::builder();
        let (db, unsynced) = match arguments.commits {
            Commits::None => (builder.create(&arguments.file), None),
            Commits::Unsynced => {
                let backend = UnsyncedBackend::open(&arguments.file)?;
                (builder.create_with_backend(backend.clone()), Some(backend))
            }
        };
        let orders = Orders { db: db.map_err(failed)?, commits: arguments.commits };
        orders.transact(Durability::Immediate, |table| {
            for (key, size) in rows() {
                put(table, &key, 0, size)?;
            }
            Ok(())
        })?;
        unsynced.map_or(Ok(()), |backend| backend.sync())?;
        Ok(orders)
    }

    fn transact(
        &self,
        durability: Durability,
        body: impl FnOnce(&mut Table<'_>) -> Result<()>,
    ) -> Result<()> {
        let mut transaction = self.db.begin_write().map_err(failed)?;
        transaction.set_durability(durability).map_err(failed)?;
        {
            let mut table = transaction.open_table(TABLE).map_err(failed)?;
            body(&mut table)?;
        }
        transaction.commit().map_err(failed)
    }

    /// Runs all threads for as long as was asked.
    fn work(&self, arguments: &Arguments) -> Result<Done> {
        let stop = AtomicBool::new(false);
        thread::scope(|scope| {
            let stop = &stop;
            let running: Vec<_> = (0..arguments.threads)
                .map(|thread| scope.spawn(move || self.work_of(thread, stop)))
                .collect();
            thread::sleep(Duration::from_secs(u64::from(arguments.seconds)));
            stop.store(true, Ordering::Relaxed);
            let mut all = Done::default();
            for thread in running {
                let own = thread.join().map_err(|_| Failure::new("a thread panicked"))??;
                all.ordered += own.ordered;
                all.paid += own.paid;
                all.micros.extend(own.micros);
            }
            Ok(all)
        })
    }

    fn work_of(&self, thread: u32, stop: &AtomicBool) -> Result<Done> {
        let mut random = Random { state: u64::from(thread) + 1 };
        let mut done = Done::default();
        let mut count = 0u64;
        while !stop.load(Ordering::Relaxed) {
            let pays = random.below(2) == 0;
            let inside = Random { state: random.state ^ (count << 20) };
            let start = Instant::now();
            self.transact(self.commits.durability(), |table| match pays {
                true => payment(table, inside, count << 8 | u64::from(thread)),
                false => new_order(table, inside),
            })?;
            done.micros.push(start.elapsed().as_secs_f64() * 1e6);
            *(if pays { &mut done.paid } else { &mut done.ordered }) += 1;
            count += 1;
        }
        Ok(done)
    }

    /// Fails unless no order and no payment was lost.
    fn check(&self, done: &Done) -> Result<()> {
        let table = self.db.begin_read().map_err(failed)?.open_table(TABLE).map_err(failed)?;
        let read = |key: String| -> Result<i64> {
            let found = table.get(key.as_bytes()).map_err(failed)?;
            Ok(found.map_or(0, |value| number_of(value.value())))
        };
        let (mut next, mut in_warehouses, mut in_districts) = (0, 0, 0);
        for warehouse in 0..WAREHOUSES {
            in_warehouses += read(row("warehouse", [warehouse, 0, 0, 0]))?;
            for district in 0..DISTRICTS {
                next += read(row("district-next", [warehouse, district, 0, 0]))?;
                in_districts += read(row("district", [warehouse, district, 0, 0]))?;
            }
        }
        match next == done.ordered as i64 && in_warehouses == in_districts {
            true => Ok(()),
            false => Err(Failure::new("the books do not balance")),
        }
    }
}

/// The rows that are there at the beginning, with their sizes.
fn rows() -> BTreeMap<String, usize> {
    let mut rows = BTreeMap::new();
    for warehouse in 0..WAREHOUSES {
        rows.insert(row("warehouse", [warehouse, 0, 0, 0]), 90);
        for item in 0..ITEMS {
            rows.insert(row("stock", [warehouse, 0, item, 0]), 300);
        }
        for district in 0..DISTRICTS {
            rows.insert(row("district", [warehouse, district, 0, 0]), 95);
            for customer in 0..CUSTOMERS {
                rows.insert(row("customer", [warehouse, district, customer, 0]), 600);
            }
        }
    }
    rows
}

fn new_order(table: &mut Table<'_>, mut random: Random) -> Result<()> {
    let (warehouse, district) = (random.below(WAREHOUSES), random.below(DISTRICTS));
    let order = add(table, &row("district-next", [warehouse, district, 0, 0]), 1)? as u32;
    let mut lines: Vec<u32> = (0..5 + random.below(11)).map(|_| random.below(ITEMS)).collect();
    lines.sort_unstable();
    for (line, item) in lines.iter().enumerate() {
        add(table, &row("stock", [warehouse, 0, *item, 0]), -1)?;
        let key = row("line", [warehouse, district, order, line as u32]);
        put(table, &key, i64::from(*item), 54)?;
    }
    let customer = row("customer", [warehouse, district, random.below(CUSTOMERS), 0]);
    let found = table.get(customer.as_bytes()).map_err(failed)?;
    std::hint::black_box(found.map(|value| value.value().to_vec()));
    put(table, &row("order", [warehouse, district, order, 0]), lines.len() as i64, 24)
}

fn payment(table: &mut Table<'_>, mut random: Random, id: u64) -> Result<()> {
    let (warehouse, district) = (random.below(WAREHOUSES), random.below(DISTRICTS));
    let amount = i64::from(1 + random.below(5000));
    add(table, &row("warehouse", [warehouse, 0, 0, 0]), amount)?;
    add(table, &row("district", [warehouse, district, 0, 0]), amount)?;
    let customer = row("customer", [warehouse, district, random.below(CUSTOMERS), 0]);
    add(table, &customer, -amount)?;
    let history = row("history", [warehouse, district, id as u32, (id >> 32) as u32]);
    put(table, &history, amount, 46)
}

/// Adds to the number at the beginning of a row, and returns it as it was.
fn add(table: &mut Table<'_>, key: &str, by: i64) -> Result<i64> {
    let (before, size) = match table.get(key.as_bytes()).map_err(failed)? {
        Some(value) => (number_of(value.value()), value.value().len()),
        None => (0, 0),
    };
    put(table, key, before + by, size.max(8))?;
    Ok(before)
}

fn put(table: &mut Table<'_>, key: &str, number: i64, size: usize) -> Result<()> {
    let mut value = vec![b'x'; size];
    value[..8].copy_from_slice(&number.to_le_bytes());
    table.insert(key.as_bytes(), &value[..]).map(drop).map_err(failed)
}

fn number_of(value: &[u8]) -> i64 {
    value.first_chunk().map_or(0, |bytes| i64::from_le_bytes(*bytes))
}

fn row(table: &str, [a, b, c, d]: [u32; 4]) -> String {
    format!("{table}/{a:04}/{b:04}/{c:08}/{d:02}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_books_balance_and_a_lost_order_is_found() {
        for commits in [Commits::None, Commits::Unsynced] {
            let directory = tempfile::tempdir().expect("a directory");
            let file = directory.path().join("orders.redb");
            let arguments = Arguments { commits, file, seconds: 1, threads: 2 };
            let orders = Orders::create(&arguments).expect("created");
            let mut done = orders.work(&arguments).expect("no failure");
            assert!(done.ordered > 0 && done.paid > 0);
            orders.check(&done).expect("the books balance");
            done.ordered += 1;
            assert!(orders.check(&done).is_err());
        }
    }

    /// What `row` and `below` of `bench.cc` give.
    #[test]
    fn rows_and_random_numbers_are_those_of_the_other_engines() {
        assert_eq!(row("line", [1, 2, 3, 4]), "line/0001/0002/00000003/04");
        assert_eq!(rows().len(), 16_044);
        let mut random = Random { state: 1 };
        assert_eq!([random.below(4), random.below(10), random.below(5000)], [1, 5, 3241]);
    }
}
