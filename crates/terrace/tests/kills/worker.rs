//! The process that writes and is killed.

use std::env;
use std::io::{ErrorKind, Read, Write};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio, exit};

use terrace::{Db, Options, WriteBatch, WriteOptions};
use terrace_testkit::rng::mix;
use terrace_testkit::workload::{Digest, Operation, Workload};

use crate::image::spawn;
use crate::shutdowns;

const PATH: &str = "TERRACE_KILLS_DB";
const SEED: &str = "TERRACE_KILLS_SEED";

/// Set in a process that only looks at what is there. It ends before a file system is unmounted,
/// with all that a database may keep mapped for a while after it was closed.
const LOOK: &str = "TERRACE_KILLS_LOOK";

/// Set in a process whose file system shuts down.
const SHUTDOWN: &str = "TERRACE_KILLS_SHUTDOWN";

/// A message of a worker: a byte, and a number.
const OPENING: u8 = b'o';
const OPENED: u8 = b'd';
const WRITTEN: u8 = b'a';
const SYNCED: u8 = b's';
const FAILED: u8 = b'e';

/// The result of a worker that has ended. Numbers are of operations from the first on.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Acknowledged {
    pub(crate) opened: bool,
    pub(crate) all: u64,
    pub(crate) synced: u64,
    /// So many were there when it last said anything: at its open also what a worker before it
    /// wrote and could not acknowledge any more. One more may be there.
    pub(crate) there: u64,
}

impl Acknowledged {
    pub(crate) fn max(self, other: Acknowledged) -> Acknowledged {
        Acknowledged {
            opened: self.opened || other.opened,
            all: self.all.max(other.all),
            synced: self.synced.max(other.synced),
            there: self.there.max(other.there),
        }
    }
}

/// How the database of `seed` is opened, by everybody.
pub(crate) fn options(seed: u64) -> Options {
    Options::new()
        .create_if_missing(true)
        .write_buffer_size(64 << 10)
        .mapped_log(mix(seed).is_multiple_of(2))
        .reuse_logs(mix(seed).is_multiple_of(3))
        .value_log(value_log(seed))
}

/// The bytes from which on values lie in value files, in half of the databases.
pub(crate) fn value_log(seed: u64) -> Option<usize> {
    [None, None, Some(1), Some(100)][mix(seed ^ 0x7a1) as usize % 4]
}

/// In a worker: writes until it is killed or fails. Returns in every other process.
pub(crate) fn run_if_asked() {
    let (Some(path), Ok(seed)) = (env::var_os(PATH), env::var(SEED)) else { return };
    let seed = seed.parse().expect("a number");
    if env::var_os(LOOK).is_some() {
        match examine(Path::new(&path), seed) {
            Ok(Found { operations, count, hash }) => {
                [operations, count, hash].map(|number| say(OPENED, number))
            }
            Err(error) => panic!("{error}"),
        };
        exit(0);
    }
    say(OPENING, 0);
    let result = match env::var_os(SHUTDOWN) {
        Some(_) => Db::open(&path, shutdowns::options(seed)).and_then(|db| {
            say(OPENED, 0);
            shutdowns::write_until_error(&db, seed, |number| say(WRITTEN, number))
        }),
        None => write(Path::new(&path), seed),
    };
    if result.is_err() {
        // The file system is gone, or so it should be: the test knows.
        say(FAILED, 0);
    }
    exit(0);
}

fn write(path: &Path, seed: u64) -> terrace::Result<()> {
    let db = Db::open(path, options(seed))?;
    let workload = Workload::new(seed);
    let mut number = db.stats().sequence;
    say(OPENED, number);
    loop {
        let mut batch = WriteBatch::new();
        match workload.operation(number) {
            Operation::Put { key, value } => batch.put(key, value),
            Operation::Delete { key } => batch.delete(key),
        }
        let sync = mix(seed ^ number).is_multiple_of(11);
        db.write_with(&batch, WriteOptions { sync })?;
        number += 1;
        say(if sync { SYNCED } else { WRITTEN }, number);
    }
}

/// The contents of a database.
pub(crate) struct Found {
    pub(crate) operations: u64,
    /// Of its digest.
    pub(crate) count: u64,
    pub(crate) hash: u64,
}

fn examine(path: &Path, seed: u64) -> terrace::Result<Found> {
    let db = Db::open(path, options(seed))?;
    let mut digest = Digest::default();
    for entry in db.iter()? {
        let (key, value) = entry?;
        digest.add(&key, &value);
    }
    let operations = db.stats().sequence;
    db.close()?;
    Ok(Found { operations, count: digest.count(), hash: digest.hash() })
}

/// Has another process open the database, read all of it and close it.
pub(crate) fn look(test: &str, path: &Path, seed: u64) -> Result<Found, String> {
    let looking = spawn(command(test, path, seed).env(LOOK, "1"));
    let output = looking.and_then(Child::wait_with_output).map_err(|error| error.to_string())?;
    let numbers: Vec<_> =
        output.stderr.chunks(9).filter_map(|message| message[1..].first_chunk::<8>()).collect();
    match numbers.as_slice() {
        [operations, count, hash] if output.status.success() => {
            let [operations, count, hash] =
                [operations, count, hash].map(|number| u64::from_le_bytes(**number));
            Ok(Found { operations, count, hash })
        }
        _ => Err(format!("cannot be read: {}", String::from_utf8_lossy(&output.stderr))),
    }
}

fn command(test: &str, path: &Path, seed: u64) -> Command {
    let mut command = Command::new(env::current_exe().expect("this program"));
    command.args(["--exact", test, "--test-threads=1"]).env(PATH, path).env(SEED, seed.to_string());
    command.stdout(Stdio::null()).stderr(Stdio::piped());
    command
}

/// Standard error, because the test harness writes to standard output.
fn say(what: u8, number: u64) {
    let mut message = [what; 9];
    message[1..].copy_from_slice(&number.to_le_bytes());
    if std::io::stderr().write_all(&message).is_err() {
        exit(1);
    }
}

/// A running worker.
pub(crate) struct Worker {
    child: Child,
    known: Acknowledged,
    failed: bool,
}

impl Worker {
    /// Starts one that writes to `path`; `test` is the test that called.
    pub(crate) fn start(test: &str, path: &Path, seed: u64) -> Worker {
        let child = spawn(&mut command(test, path, seed)).expect("a process");
        Worker { child, known: Acknowledged::default(), failed: false }
    }

    /// Starts one whose file system will be shut down.
    pub(crate) fn start_for_shutdown(test: &str, path: &Path, seed: u64) -> Worker {
        let child = spawn(command(test, path, seed).env(SHUTDOWN, "1")).expect("a process");
        Worker { child, known: Acknowledged::default(), failed: false }
    }

    /// Waits until the worker ends by itself.
    pub(crate) fn wait_for_end(&mut self) -> Result<ExitStatus, String> {
        while self.hear()? {}
        self.child.wait().map_err(|error| error.to_string())
    }

    /// Takes in what the worker says next. False when it says nothing more.
    fn hear(&mut self) -> Result<bool, String> {
        let mut message = [0; 9];
        let pipe = self.child.stderr.as_mut().expect("a pipe");
        match pipe.read_exact(&mut message) {
            Ok(()) => {}
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => return Ok(false),
            Err(error) => return Err(error.to_string()),
        }
        let number = u64::from_le_bytes(message[1..].try_into().expect("eight bytes"));
        self.known.there = self.known.there.max(number);
        match message[0] {
            OPENING => {}
            OPENED => self.known.opened = true,
            WRITTEN => self.known.all = number,
            SYNCED => (self.known.all, self.known.synced) = (number, number),
            FAILED => self.failed = true,
            _ => {
                let mut rest = String::new();
                let _ = pipe.read_to_string(&mut rest);
                return Err(format!("the worker says {}{rest}", String::from_utf8_lossy(&message)));
            }
        }
        Ok(true)
    }

    /// Waits until the worker has opened the database and so many writes were acknowledged.
    pub(crate) fn wait_for(&mut self, writes: u64) -> Result<(), String> {
        while !self.known.opened {
            if !self.hear()? || self.failed {
                return Err("the worker cannot open the database".to_owned());
            }
        }
        for _ in 0..writes {
            if !self.hear()? || self.failed {
                return Err("the worker cannot write".to_owned());
            }
        }
        Ok(())
    }

    /// All that it has acknowledged by now.
    pub(crate) fn acknowledged_by_now(&mut self) -> Result<Acknowledged, String> {
        let pipe = self.child.stderr.as_ref().expect("a pipe");
        let said = rustix::io::ioctl_fionread(pipe).map_err(|error| error.to_string())?;
        // Whole messages: a pipe takes so few bytes at once.
        for _ in 0..said / 9 {
            self.hear()?;
        }
        Ok(self.known)
    }

    /// Kills the worker after so many acknowledged writes; returns all acknowledged ones.
    pub(crate) fn kill_after(&mut self, writes: u64) -> Result<Acknowledged, String> {
        if !self.known.opened {
            self.wait_for(writes)?;
        }
        self.kill()
    }

    /// Kills the worker soon after it has begun to open the database.
    pub(crate) fn kill_while_it_opens(&mut self, spins: usize) -> Result<Acknowledged, String> {
        self.hear()?;
        for _ in 0..spins {
            std::hint::spin_loop();
        }
        self.kill()
    }

    fn kill(&mut self) -> Result<Acknowledged, String> {
        self.child.kill().map_err(|error| error.to_string())?;
        // What is in the pipe was acknowledged before.
        while self.hear()? {}
        self.child.wait().map_err(|error| error.to_string())?;
        Ok(self.known)
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
