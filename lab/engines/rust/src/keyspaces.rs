//! Many keyspaces in one database: the programs of `tools/many-keyspaces`.
//!
//! One thread writes the same entries in the same order, round robin, into many keyspaces or, with
//! `--one`, into one. [`run`] prints the rate of the puts, memory and table files in one line, and
//! then compares every keyspace with what was written. `tools/many_keyspaces/bench.cc` does the
//! same with RocksDB.
//!
//! A second thread ends the program at the limit of time or memory and prints how far it got: a
//! call to an engine may take longer than the limit.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{self, ExitCode};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use clap::Parser;

use crate::data::Random;
use crate::resources::{count_files, peak_memory_bytes, resident_memory_bytes};
use crate::{Failure, Result, Visit, parent};

/// Exit status at a limit.
const LIMIT_REACHED: i32 = 4;
const WATCH_INTERVAL: Duration = Duration::from_millis(100);
const VALUE_SIZE: usize = 100;
/// Half of a value compresses.
const RANDOM_BYTES: usize = 50;
const MEGABYTE: f64 = (1 << 20) as f64;

/// A database with keyspaces.
pub trait Keyspaces: Sized {
    /// The handle of a keyspace.
    type Keyspace;

    /// The engine's name in results.
    const NAME: &'static str;

    /// Creates the database in a directory that exists.
    fn open(directory: &Path) -> Result<Self>;

    /// Creates a keyspace.
    fn create(&self, name: &str) -> Result<Self::Keyspace>;

    /// Sets a key to a value, without a sync.
    fn put(keyspace: &Self::Keyspace, key: &[u8], value: &[u8]) -> Result<()>;

    /// Flushes all memtables and waits until background work has ended.
    fn flush(&self, keyspaces: &[Self::Keyspace]) -> Result<()>;

    /// Shows all entries of a keyspace in order until `visit` breaks.
    fn scan(keyspace: &Self::Keyspace, visit: impl FnMut(&[u8], &[u8]) -> Visit) -> Result<()>;

    /// Returns whether a file of the database is a table.
    fn is_table(path: &Path) -> bool;

    /// Closes the database.
    fn close(self) -> Result<()>;
}

#[derive(Parser, Clone, Debug)]
#[command(disable_version_flag = true)]
struct Arguments {
    /// Directory of the database, which must be empty
    #[arg(long)]
    db: PathBuf,
    /// Keyspaces
    #[arg(long, default_value_t = 10_000, value_parser = clap::value_parser!(u64).range(1..=99_999))]
    keyspaces: u64,
    /// Entries of each keyspace
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u64).range(1..=99_999_999))]
    entries: u64,
    /// Write all entries into one keyspace
    #[arg(long)]
    one: bool,
    /// Seconds after which the program ends
    #[arg(long, default_value_t = 600)]
    seconds: u64,
    /// Megabytes of resident memory at which the program ends
    #[arg(long, default_value_t = 4096)]
    megabytes: u64,
}

#[derive(Default)]
struct Progress {
    created: AtomicU64,
    written: AtomicU64,
    /// When the first entry was written, in nanoseconds from the start.
    began_writing: AtomicU64,
    finished: Mutex<bool>,
}

struct Measured {
    creating: Duration,
    writing: Duration,
    flushing: Duration,
    /// Resident bytes and tables after the last put.
    unflushed: (u64, u64),
    resident: u64,
    peak: u64,
    tables: u64,
}

/// The whole program: exit status 0 if all was written and read back, 2 for a wrong command line,
/// 3 for a failure of the engine or a wrong entry, 4 at a limit.
pub fn run<K: Keyspaces>() -> ExitCode {
    parent::end_with_parent();
    let arguments = Arguments::parse();
    match measure_and_verify::<K>(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("{} keyspaces: {failure}", K::NAME);
            failure.exit_code()
        }
    }
}

fn measure_and_verify<K: Keyspaces>(arguments: &Arguments) -> Result<()> {
    let progress = Arc::new(Progress::default());
    watch::<K>(arguments.clone(), progress.clone());
    let database = K::open(&arguments.db)?;
    let (keyspaces, measured) = measure(&database, arguments, &progress)?;
    *progress.finished.lock().unwrap_or_else(PoisonError::into_inner) = true;
    verify::<K>(&keyspaces, arguments)?;
    drop(keyspaces);
    database.close()?;
    println!("{}", report::<K>(arguments, &measured));
    Ok(())
}

fn measure<K: Keyspaces>(
    database: &K,
    arguments: &Arguments,
    progress: &Progress,
) -> Result<(Vec<K::Keyspace>, Measured)> {
    let start = Instant::now();
    let mut keyspaces = Vec::new();
    for number in 0..if arguments.one { 1 } else { arguments.keyspaces } {
        keyspaces.push(database.create(&name_of(number))?);
        progress.created.fetch_add(1, Ordering::Relaxed);
    }
    let creating = start.elapsed();
    progress.began_writing.store(creating.as_nanos() as u64, Ordering::Relaxed);
    let mut key = String::new();
    for entry in 0..arguments.entries {
        for number in 0..arguments.keyspaces {
            set_key(&mut key, arguments.one, number, entry);
            let keyspace = &keyspaces[if arguments.one { 0 } else { number as usize }];
            K::put(keyspace, key.as_bytes(), &value_of(number, entry))?;
            progress.written.fetch_add(1, Ordering::Relaxed);
        }
    }
    let writing = start.elapsed() - creating;
    let tables = || count_files(&arguments.db, K::is_table);
    let unflushed = (resident_memory_bytes(), tables());
    let before_flush = start.elapsed();
    database.flush(&keyspaces)?;
    let flushing = start.elapsed() - before_flush;
    let (resident, peak) = (resident_memory_bytes(), peak_memory_bytes());
    let measured =
        Measured { creating, writing, flushing, unflushed, resident, peak, tables: tables() };
    Ok((keyspaces, measured))
}

/// Compares all entries with what was written.
fn verify<K: Keyspaces>(keyspaces: &[K::Keyspace], arguments: &Arguments) -> Result<()> {
    let mut expected_key = String::new();
    let mut read = 0;
    for (index, keyspace) in keyspaces.iter().enumerate() {
        let first = index as u64 * arguments.entries;
        let count = if arguments.one { arguments.keyspaces } else { 1 } * arguments.entries;
        let mut wrong = None;
        read = first;
        K::scan(keyspace, |key, value| {
            let (number, entry) = (read / arguments.entries, read % arguments.entries);
            set_key(&mut expected_key, arguments.one, number, entry);
            read += 1;
            let is_right = read <= first + count
                && key == expected_key.as_bytes()
                && value == value_of(number, entry);
            if is_right {
                return Visit::Continue(());
            }
            wrong = Some(format!("keyspace {index}: not as written: {}", key.escape_ascii()));
            Visit::Break(())
        })?;
        if let Some(wrong) = wrong {
            return Err(Failure::new(wrong));
        }
        if read != first + count {
            let found = read - first;
            return Err(Failure::new(format!("keyspace {index}: {found} entries of {count}")));
        }
    }
    match read == arguments.keyspaces * arguments.entries {
        true => Ok(()),
        false => Err(Failure::new(format!("read {read} entries"))),
    }
}

/// Ends the program at a limit, until the work is finished.
fn watch<K: Keyspaces>(arguments: Arguments, progress: Arc<Progress>) {
    let start = Instant::now();
    thread::spawn(move || {
        loop {
            thread::sleep(WATCH_INTERVAL);
            let finished = progress.finished.lock().unwrap_or_else(PoisonError::into_inner);
            if *finished {
                return;
            }
            let late = start.elapsed().as_secs() >= arguments.seconds;
            let large = resident_memory_bytes() >> 20 >= arguments.megabytes;
            if late || large {
                let limit = if late {
                    format!("{} s", arguments.seconds)
                } else {
                    format!("{} MB", arguments.megabytes)
                };
                println!("{}", report_at_limit::<K>(&arguments, &progress, start, &limit));
                process::exit(LIMIT_REACHED);
            }
        }
    });
}

fn report<K: Keyspaces>(arguments: &Arguments, measured: &Measured) -> String {
    let entries = arguments.keyspaces * arguments.entries;
    let rate = entries as f64 / measured.writing.as_secs_f64();
    let (resident, tables) = measured.unflushed;
    format!(
        "{}: keyspaces {}, entries {entries}, entries/s {rate:.0}, peak MB {:.1}, resident MB {:.1}, tables {}; \
         seconds: create {:.1}, write {:.1}, flush {:.1}; before the flush: resident MB {:.1}, tables {tables}",
        K::NAME,
        if arguments.one { 1 } else { arguments.keyspaces },
        measured.peak as f64 / MEGABYTE,
        measured.resident as f64 / MEGABYTE,
        measured.tables,
        measured.creating.as_secs_f64(),
        measured.writing.as_secs_f64(),
        measured.flushing.as_secs_f64(),
        resident as f64 / MEGABYTE,
    )
}

fn report_at_limit<K: Keyspaces>(
    arguments: &Arguments,
    progress: &Progress,
    start: Instant,
    limit: &str,
) -> String {
    let written = progress.written.load(Ordering::Relaxed);
    let created = progress.created.load(Ordering::Relaxed);
    let mut line = format!(
        "{}: ended at the limit of {limit}: {created} of {} keyspaces created, {written} of {} entries written",
        K::NAME,
        if arguments.one { 1 } else { arguments.keyspaces },
        arguments.keyspaces * arguments.entries,
    );
    if written == arguments.keyspaces * arguments.entries {
        line.push_str(", the flush not finished");
    } else if written > 0 {
        let began = Duration::from_nanos(progress.began_writing.load(Ordering::Relaxed));
        let rate = written as f64 / start.elapsed().saturating_sub(began).as_secs_f64();
        let _ = write!(line, ", entries/s {rate:.0}");
    }
    let (peak, resident) = (peak_memory_bytes(), resident_memory_bytes());
    let tables = count_files(&arguments.db, K::is_table);
    let _ = write!(
        line,
        ", peak MB {:.1}, resident MB {:.1}, tables {tables}",
        peak as f64 / MEGABYTE,
        resident as f64 / MEGABYTE,
    );
    line
}

fn name_of(keyspace: u64) -> String {
    format!("k{keyspace:05}")
}

/// The one keyspace has the same keys behind the names of the many.
fn set_key(key: &mut String, one: bool, keyspace: u64, entry: u64) {
    key.clear();
    let _ = match one {
        true => write!(key, "k{keyspace:05}/{entry:08}"),
        false => write!(key, "{entry:08}"),
    };
}

fn value_of(keyspace: u64, entry: u64) -> [u8; VALUE_SIZE] {
    let mut value = [b'v'; VALUE_SIZE];
    let mut random = Random::stream(0, keyspace, entry);
    for piece in value[..RANDOM_BYTES].chunks_mut(size_of::<u64>()) {
        piece.copy_from_slice(&random.next().to_le_bytes()[..piece.len()]);
    }
    value
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::collections::BTreeMap;

    use super::*;

    type Map = RefCell<BTreeMap<Vec<u8>, Vec<u8>>>;

    /// An engine of maps.
    struct Maps;

    impl Keyspaces for Maps {
        type Keyspace = Map;
        const NAME: &'static str = "maps";

        fn open(_: &Path) -> Result<Self> {
            Ok(Maps)
        }
        fn create(&self, _: &str) -> Result<Map> {
            Ok(Map::default())
        }
        fn put(keyspace: &Map, key: &[u8], value: &[u8]) -> Result<()> {
            keyspace.borrow_mut().insert(key.to_vec(), value.to_vec());
            Ok(())
        }
        fn flush(&self, _: &[Map]) -> Result<()> {
            Ok(())
        }
        fn scan(keyspace: &Map, mut visit: impl FnMut(&[u8], &[u8]) -> Visit) -> Result<()> {
            let _ = keyspace.borrow().iter().try_for_each(|(key, value)| visit(key, value));
            Ok(())
        }
        fn is_table(_: &Path) -> bool {
            false
        }
        fn close(self) -> Result<()> {
            Ok(())
        }
    }

    #[test]
    fn verification_finds_a_missing_a_changed_and_an_additional_entry() {
        let key = |one| if one { &b"k00002/00000003"[..] } else { b"00000003" };
        for one in [false, true] {
            let mut arguments = Arguments::parse_from(["maps", "--db=unused", "--keyspaces=4"]);
            (arguments.one, arguments.entries) = (one, 5);
            let (keyspaces, _) = measure(&Maps, &arguments, &Progress::default()).expect("written");
            assert_eq!(keyspaces.len(), if one { 1 } else { 4 });
            assert!(verify::<Maps>(&keyspaces, &arguments).is_ok());
            let changed = &keyspaces[if one { 0 } else { 2 }];
            let value = changed.borrow_mut().remove(key(one)).expect("an entry");
            assert!(verify::<Maps>(&keyspaces, &arguments).is_err());
            changed.borrow_mut().insert(key(one).to_vec(), b"another".to_vec());
            assert!(verify::<Maps>(&keyspaces, &arguments).is_err());
            changed.borrow_mut().insert(key(one).to_vec(), value);
            assert!(verify::<Maps>(&keyspaces, &arguments).is_ok());
            changed.borrow_mut().insert(b"z".to_vec(), Vec::new());
            assert!(verify::<Maps>(&keyspaces, &arguments).is_err());
        }
    }
}
