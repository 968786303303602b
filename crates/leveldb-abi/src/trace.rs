//! Traces: LevelDB's calls on a database, written to a file that the lab replays on any engine
//! (`lab trace replay`). `lab/WORKLOADS.md` specifies the format.
//!
//! `$TERRACE_TRACE` names the directory for them; every open of a database makes a file of its own
//! there. A trace has the keys, but of values only their lengths. What goes wrong with a trace is
//! said once on standard error and is never an error of the program that is traced.
//!
//! # Invariants
//! 1. A file is a whole number of records but for its end: a program that is killed leaves a trace
//!    that lacks the last second.
//! 2. A child of a fork writes nothing to its parent's trace.

use std::env;
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::process;
use std::sync::{Arc, Mutex, MutexGuard, Once, PoisonError, Weak};
use std::time::{Duration, Instant};

use terrace::{Db, Operation, ReadOptions, Result, WriteBatch};

/// The directory for traces, for programs that know nothing of Terrace.
const VARIABLE: &str = "TERRACE_TRACE";
/// The beginning of a trace.
const MAGIC: &[u8] = b"terrace trace 1\n";
/// So many bytes are collected before they are written.
const BUFFER: usize = 64 << 10;
/// Collected bytes are written after this time, with the next call.
const DELAY: Duration = Duration::from_secs(1);
/// A trace has no larger values: one that is larger is recorded as this.
const LARGEST_VALUE: u64 = 64 << 20;
/// Added to the kind of a write that waits for the disk.
const SYNC: u8 = 0x80;

/// The kind of a record.
#[derive(Clone, Copy)]
#[repr(u8)]
enum Kind {
    /// An entry that was there when the database was opened.
    Entry = 1,
    Put = 2,
    Delete = 3,
    Batch = 4,
    Get = 5,
    Scan = 6,
}

/// Where a scan begins, and which way it goes.
#[derive(Clone)]
enum Start {
    First,
    Last,
    From(Vec<u8>),
    BackFrom(Vec<u8>),
}

/// The trace of one open database.
pub(crate) struct Trace {
    path: PathBuf,
    /// The process that writes. In a child of a fork the lock may be held for ever.
    process: u32,
    output: Mutex<Output>,
}

struct Output {
    /// Absent once a write has failed.
    file: Option<File>,
    buffer: Vec<u8>,
    /// When the last record was added.
    last: Instant,
    written: Instant,
}

impl Trace {
    /// The trace of a database that has just been opened, if `$TERRACE_TRACE` asks for one. It
    /// begins with the keys that the database has.
    pub(crate) fn of(db: &Db, path: &Path) -> Option<Arc<Trace>> {
        let dir = env::var_os(VARIABLE).filter(|dir| !dir.is_empty() && !is_privileged())?;
        let begun = Trace::create(Path::new(&dir), path)
            .and_then(|trace| trace.add_entries(db).map(|()| trace));
        match begun {
            Ok(trace) => Some(trace),
            Err(problem) => {
                warn(Path::new(&dir), &problem.to_string());
                None
            }
        }
    }

    /// A new file named after the database: `name-1.trace`, and so on.
    fn create(dir: &Path, database: &Path) -> io::Result<Arc<Trace>> {
        fs::create_dir_all(dir)?;
        let name = database.file_name().unwrap_or("database".as_ref()).to_string_lossy();
        let mut number = 1_u32;
        let (path, file) = loop {
            let path = dir.join(format!("{name}-{number}.trace"));
            // Keys are in it: for nobody else, whatever the database's own files allow.
            match File::options().append(true).create_new(true).mode(0o600).open(&path) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => number += 1,
                opened => break opened.map(|file| (path, file))?,
            }
        };
        let now = Instant::now();
        let output = Output { file: Some(file), buffer: MAGIC.to_vec(), last: now, written: now };
        let trace = Arc::new(Trace { path, process: process::id(), output: Mutex::new(output) });
        at_exit::write(&trace);
        Ok(trace)
    }

    fn add_entries(&self, db: &Db) -> io::Result<()> {
        let failed = |error: terrace::Error| io::Error::other(error.to_string());
        let options = ReadOptions::new().fill_cache(false).stored_values(true);
        let mut cursor = db.cursor_with(&options).map_err(failed)?;
        cursor.seek_to_first();
        while let Some((key, value)) = cursor.entry() {
            self.add(Kind::Entry, 0, |record| {
                put_bytes(record, key);
                put_size(record, value);
            });
            cursor.next();
        }
        cursor.status().map_err(failed)?;
        self.output().last = Instant::now();
        Ok(())
    }

    pub(crate) fn put(&self, key: &[u8], value: &[u8], sync: bool) {
        self.add(Kind::Put, sync_bit(sync), |record| {
            put_bytes(record, key);
            put_size(record, value);
        });
    }

    pub(crate) fn delete(&self, key: &[u8], sync: bool) {
        self.add(Kind::Delete, sync_bit(sync), |record| put_bytes(record, key));
    }

    pub(crate) fn batch(&self, batch: &WriteBatch, sync: bool) {
        self.add(Kind::Batch, sync_bit(sync), |record| {
            put_number(record, batch.len() as u64);
            // A batch that was written has nothing that cannot be read.
            for operation in batch.iter().flatten() {
                match operation {
                    Operation::Put { key, value } => {
                        record.push(Kind::Put as u8);
                        put_bytes(record, key);
                        put_size(record, value);
                    }
                    Operation::Delete { key } => {
                        record.push(Kind::Delete as u8);
                        put_bytes(record, key);
                    }
                }
            }
        });
    }

    /// The same for a batch in LevelDB's bytes, whose write reports what is wrong with it.
    pub(crate) fn batch_of_bytes(&self, bytes: &[u8], sync: bool) {
        if let Ok(batch) = WriteBatch::from_bytes(bytes.to_vec()) {
            self.batch(&batch, sync);
        }
    }

    pub(crate) fn get(&self, key: &[u8]) {
        self.add(Kind::Get, 0, |record| put_bytes(record, key));
    }

    fn scan(&self, start: &Start, steps: u64) {
        self.add(Kind::Scan, 0, |record| {
            match start {
                Start::First => record.push(0),
                Start::Last => record.push(1),
                Start::From(key) => {
                    record.push(2);
                    put_bytes(record, key);
                }
                Start::BackFrom(key) => {
                    record.push(3);
                    put_bytes(record, key);
                }
            }
            put_number(record, steps);
        });
    }

    /// Writes what is collected, and says what went wrong with it or with a write before.
    pub(crate) fn finish(&self) {
        if self.is_own() {
            self.write(&mut self.output());
        }
    }

    fn is_own(&self) -> bool {
        self.process == process::id()
    }

    fn output(&self) -> MutexGuard<'_, Output> {
        self.output.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a record: its kind, the microseconds since the one before, and the rest.
    fn add(&self, kind: Kind, bits: u8, rest: impl FnOnce(&mut Vec<u8>)) {
        if !self.is_own() {
            return;
        }
        let mut output = self.output();
        let now = Instant::now();
        let micros = match kind {
            Kind::Entry => 0,
            _ => now.saturating_duration_since(output.last).as_micros() as u64,
        };
        // By whole microseconds, so that what is cut off does not add up.
        output.last += Duration::from_micros(micros);
        output.buffer.push(kind as u8 | bits);
        put_number(&mut output.buffer, micros);
        rest(&mut output.buffer);
        let due = now.saturating_duration_since(output.written) >= DELAY;
        if output.buffer.len() >= BUFFER || due {
            output.written = now;
            self.write(&mut output);
        }
    }

    fn write(&self, output: &mut Output) {
        if let Some(file) = output.file.as_mut()
            && let Err(error) = file.write_all(&output.buffer)
        {
            warn(&self.path, &error.to_string());
            output.file = None;
        }
        output.buffer.clear();
    }
}

impl Drop for Trace {
    fn drop(&mut self) {
        self.finish();
    }
}

/// What an iterator does, as scans: each from where it was placed, as far as it went one way.
#[expect(missing_debug_implementations, reason = "an opaque handle")]
pub struct TracedScans {
    trace: Arc<Trace>,
    /// The scan that goes on, and its steps.
    current: Option<(Start, u64)>,
}

impl TracedScans {
    pub(crate) fn new(trace: &Arc<Trace>) -> Self {
        TracedScans { trace: trace.clone(), current: None }
    }

    pub(crate) fn seek_to_first(&mut self) {
        self.begin(Start::First);
    }

    pub(crate) fn seek_to_last(&mut self) {
        self.begin(Start::Last);
    }

    pub(crate) fn seek(&mut self, key: &[u8]) {
        self.begin(Start::From(key.to_vec()));
    }

    /// A step from where the iterator is; `key` is that of its entry.
    pub(crate) fn step(&mut self, backwards: bool, key: &[u8]) {
        match &mut self.current {
            Some((Start::First | Start::From(_), steps)) if !backwards => *steps += 1,
            Some((Start::Last | Start::BackFrom(_), steps)) if backwards => *steps += 1,
            // It turns round.
            _ => {
                let key = key.to_vec();
                self.begin(if backwards { Start::BackFrom(key) } else { Start::From(key) });
                self.current.iter_mut().for_each(|(_, steps)| *steps += 1);
            }
        }
    }

    fn begin(&mut self, start: Start) {
        self.end();
        self.current = Some((start, 0));
    }

    fn end(&mut self) {
        if let Some((start, steps)) = self.current.take() {
            self.trace.scan(&start, steps);
        }
    }
}

impl Drop for TracedScans {
    fn drop(&mut self) {
        self.end();
    }
}

/// Whether the process has rights that its user has not: then the user says nothing about files.
#[expect(unsafe_code, reason = "a call to the system")]
fn is_privileged() -> bool {
    // SAFETY: these always succeed and touch no memory.
    unsafe { libc::geteuid() != libc::getuid() || libc::getegid() != libc::getgid() }
}

fn sync_bit(sync: bool) -> u8 {
    if sync { SYNC } else { 0 }
}

/// The size of a value, as far as a trace can have it.
fn put_size(record: &mut Vec<u8>, value: &[u8]) {
    put_number(record, (value.len() as u64).min(LARGEST_VALUE));
}

fn put_bytes(record: &mut Vec<u8>, bytes: &[u8]) {
    put_number(record, bytes.len() as u64);
    record.extend_from_slice(bytes);
}

/// LEB128, as LevelDB has it.
fn put_number(record: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        record.push(number as u8 | 0x80);
        number >>= 7;
    }
    record.push(number as u8);
}

/// Says what is wrong with a trace. The program's own output may be closed, which does not matter.
fn warn(path: &Path, problem: &str) {
    let _ = writeln!(io::stderr(), "terrace: no trace from here on: {}: {problem}", path.display());
}

/// Programs that end without closing their databases.
mod at_exit {
    use super::*;

    static TRACES: Mutex<Vec<Weak<Trace>>> = Mutex::new(Vec::new());
    static INSTALLED: Once = Once::new();

    /// Writes what a trace has collected when the process ends. In a child of a fork the list may
    /// be locked for ever; it then ends without that.
    pub(super) fn write(trace: &Arc<Trace>) {
        let Ok(mut traces) = TRACES.try_lock() else { return };
        traces.retain(|trace| trace.strong_count() > 0);
        traces.push(Arc::downgrade(trace));
        INSTALLED.call_once(install);
    }

    #[expect(unsafe_code, reason = "a call to the system")]
    fn install() {
        // SAFETY: the function takes nothing, does not unwind, and is there until the process ends.
        unsafe { libc::atexit(write_all) };
    }

    extern "C" fn write_all() {
        // Other threads may still be at work; what they hold is not waited for.
        let Ok(traces) = TRACES.try_lock() else { return };
        for trace in traces.iter().filter_map(Weak::upgrade) {
            if trace.is_own()
                && let Ok(mut output) = trace.output.try_lock()
            {
                trace.write(&mut output);
            }
        }
    }
}

/// Closes a database, after which its trace is complete.
pub(crate) fn close(db: Db, trace: Option<Arc<Trace>>) -> Result<()> {
    let closed = db.close();
    if let Some(trace) = trace {
        trace.finish();
    }
    closed
}
