//! The real LevelDB as a test partner: a small C++ program, compiled on first use, that runs in a
//! process of its own.
//!
//! [`Peer::find`] compiles `peer.cc` once into the target directory. Where there is no compiler or
//! no LevelDB it panics under `CI` and otherwise says SKIPPED and returns `None`.

use std::ffi::OsString;
use std::fmt;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::OnceLock;
use std::{env, fs, process};

use crate::skip::skip;
use crate::workload::{Digest, Workload};

const SOURCE: &str = include_str!("peer.cc");
const FLAGS: [&str; 3] = ["-std=c++17", "-O2", "-Wall"];
const LIBRARIES: [&str; 2] = ["-lleveldb", "-pthread"];

/// The compiled program.
#[derive(Clone, Debug)]
pub struct Peer {
    program: PathBuf,
}

/// How LevelDB opens a database. [`PeerOptions::default`] is LevelDB's default with paranoid checks
/// on.
#[derive(Clone, Debug)]
pub struct PeerOptions {
    /// Create the database if it is missing.
    pub create: bool,
    /// `paranoid_checks`.
    pub paranoid: bool,
    /// Compress with snappy.
    pub snappy: bool,
    /// Bits per key of the bloom filter; 0 for none.
    pub bloom: u32,
    /// `block_size`.
    pub block_size: usize,
    /// `block_restart_interval`.
    pub restart_interval: usize,
    /// `write_buffer_size`.
    pub write_buffer: usize,
    /// `max_file_size`.
    pub max_file_size: usize,
    /// `reuse_logs`.
    pub reuse_logs: bool,
    /// The comparator [`ReverseComparator`](crate::model::ReverseComparator).
    pub reverse: bool,
}

impl Default for PeerOptions {
    fn default() -> Self {
        PeerOptions {
            create: true,
            paranoid: true,
            snappy: true,
            bloom: 0,
            block_size: 4096,
            restart_interval: 16,
            write_buffer: 4 << 20,
            max_file_size: 2 << 20,
            reuse_logs: false,
            reverse: false,
        }
    }
}

impl PeerOptions {
    fn arguments(&self) -> Vec<String> {
        vec![
            format!("--create={}", u8::from(self.create)),
            format!("--paranoid={}", u8::from(self.paranoid)),
            format!("--snappy={}", u8::from(self.snappy)),
            format!("--bloom={}", self.bloom),
            format!("--block_size={}", self.block_size),
            format!("--restart_interval={}", self.restart_interval),
            format!("--write_buffer={}", self.write_buffer),
            format!("--max_file_size={}", self.max_file_size),
            format!("--reuse_logs={}", u8::from(self.reuse_logs)),
            format!("--comparator={}", if self.reverse { "reverse" } else { "bytewise" }),
        ]
    }
}

/// A run of operations that LevelDB does.
#[derive(Clone, Debug)]
pub struct Fill {
    /// The history.
    pub workload: Workload,
    /// The first operation.
    pub from: u64,
    /// The operation to stop before.
    pub to: u64,
    /// Up to this many operations in one write.
    pub batch: u64,
    /// Every how many writes one is synchronous; 0 for none.
    pub sync_every: u64,
    /// End with SIGKILL instead of closing the database.
    pub kill: bool,
}

/// LevelDB's error for a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PeerError(pub String);

impl fmt::Display for PeerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "LevelDB: {}", self.0)
    }
}

impl std::error::Error for PeerError {}

/// The result of asking LevelDB.
pub type PeerResult<T> = Result<T, PeerError>;

/// A process in which LevelDB holds a database open. Dropping it closes the database.
#[derive(Debug)]
pub struct HeldOpen {
    child: Child,
}

impl Drop for HeldOpen {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        let _ = self.child.wait();
    }
}

impl Peer {
    /// The peer, compiled if need be; `None`, loudly, where that cannot be done.
    ///
    /// # Panics
    /// Under `CI`, where a missing LevelDB is a failure, and wherever LevelDB is there but
    /// `peer.cc` does not compile.
    pub fn find() -> Option<Peer> {
        static FOUND: OnceLock<Result<PathBuf, String>> = OnceLock::new();
        match FOUND.get_or_init(compile) {
            Ok(program) => Some(Peer { program: program.clone() }),
            Err(reason) => {
                let advice = "run tools/install-peers, or: apt-get install g++ libleveldb-dev";
                skip("leveldb", format_args!("{reason}; {advice}"));
                None
            }
        }
    }

    /// Does a run of operations. The peer must end as `fill.kill` says.
    pub fn fill(&self, db: &Path, options: &PeerOptions, fill: &Fill) -> PeerResult<()> {
        let mut arguments = options.arguments();
        arguments.push(format!("--seed={}", fill.workload.seed()));
        arguments.push(format!("--from={}", fill.from));
        arguments.push(format!("--to={}", fill.to));
        arguments.push(format!("--batch={}", fill.batch));
        arguments.push(format!("--sync_every={}", fill.sync_every));
        arguments.push(format!("--kill={}", u8::from(fill.kill)));
        let output = self.run("fill", db, &arguments);
        let said = text(&output);
        if said != format!("filled {} {}", fill.from, fill.to) {
            return Err(refusal(&output));
        }
        assert_eq!(
            output.status.success(),
            !fill.kill,
            "the peer ended unexpectedly: {}",
            output.status
        );
        Ok(())
    }

    /// Compares every entry with the state after the first `to` operations, forwards, backwards and
    /// by `Get`.
    pub fn verify(
        &self,
        db: &Path,
        options: &PeerOptions,
        workload: Workload,
        to: u64,
    ) -> PeerResult<PeerDigest> {
        let mut arguments = options.arguments();
        arguments.push(format!("--seed={}", workload.seed()));
        arguments.push(format!("--to={to}"));
        PeerDigest::parse(&self.answer("verify", db, &arguments)?)
    }

    /// Reads every entry forwards and backwards.
    pub fn digest(&self, db: &Path, options: &PeerOptions) -> PeerResult<PeerDigest> {
        PeerDigest::parse(&self.answer("digest", db, &options.arguments())?)
    }

    /// Every entry, in order.
    pub fn entries(&self, db: &Path, options: &PeerOptions) -> PeerResult<Vec<(Vec<u8>, Vec<u8>)>> {
        let output = self.run("entries", db, &options.arguments());
        if !output.status.success() {
            return Err(refusal(&output));
        }
        let mut rest = output.stdout.as_slice();
        let mut entries = Vec::new();
        while let Some((lengths, data)) = rest.split_first_chunk::<8>() {
            let length = |at: usize| {
                u32::from_le_bytes(lengths[at..at + 4].try_into().expect("four bytes")) as usize
            };
            let (key, data) = data.split_at(length(0));
            let (value, data) = data.split_at(length(4));
            entries.push((key.to_vec(), value.to_vec()));
            rest = data;
        }
        assert!(rest.is_empty(), "the peer's list of entries ends early");
        Ok(entries)
    }

    /// The value of one key.
    pub fn get(&self, db: &Path, options: &PeerOptions, key: &[u8]) -> PeerResult<Option<Vec<u8>>> {
        let mut arguments = options.arguments();
        arguments.push(format!("--key={}", hex(key)));
        let answer = self.answer("get", db, &arguments)?;
        Ok(answer.strip_prefix("value").map(|digits| unhex(digits.trim())))
    }

    /// Stores one entry.
    pub fn put(
        &self,
        db: &Path,
        options: &PeerOptions,
        key: &[u8],
        value: &[u8],
    ) -> PeerResult<()> {
        self.answer("put", db, &entry(options, key, value)).map(drop)
    }

    /// Removes a key.
    pub fn delete(&self, db: &Path, options: &PeerOptions, key: &[u8]) -> PeerResult<()> {
        let mut arguments = options.arguments();
        arguments.push(format!("--key={}", hex(key)));
        self.answer("delete", db, &arguments).map(drop)
    }

    /// Begins a compaction of the whole range, and dies before that comes to its edit, with an entry
    /// that was put synchronously meanwhile.
    pub fn die_compacting(
        &self,
        db: &Path,
        options: &PeerOptions,
        key: &[u8],
        value: &[u8],
    ) -> PeerResult<()> {
        let output = self.run("die-compacting", db, &entry(options, key, value));
        if text(&output) == "done" { Ok(()) } else { Err(refusal(&output)) }
    }

    /// Does a command without arguments of its own: `compact`, `open`, `repair` or `destroy`.
    pub fn simple(&self, command: &str, db: &Path, options: &PeerOptions) -> PeerResult<()> {
        self.answer(command, db, &options.arguments()).map(drop)
    }

    /// Puts `versions` of the keys "a", "b" and "c", each of 20,000 bytes that begin with the key
    /// and 16 digits, and compacts while snapshots hold all of them, so that a key's versions are
    /// in several tables of one level. Every tenth version of "b" is deleted again.
    pub fn split(&self, db: &Path, options: &PeerOptions, versions: u64) -> PeerResult<()> {
        let mut arguments = options.arguments();
        arguments.push(format!("--to={versions}"));
        self.answer("split", db, &arguments).map(drop)
    }

    /// One of LevelDB's property strings.
    pub fn property(&self, db: &Path, options: &PeerOptions, name: &str) -> PeerResult<String> {
        let mut arguments = options.arguments();
        arguments.push(format!("--property={name}"));
        self.answer("property", db, &arguments)
    }

    /// Opens the database in a process that holds it open until the returned value is dropped.
    pub fn hold_open(&self, db: &Path, options: &PeerOptions) -> PeerResult<HeldOpen> {
        let mut child = Command::new(&self.program)
            .arg("lock")
            .arg(db)
            .args(options.arguments())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the peer starts");
        let mut line = String::new();
        BufReader::new(child.stdout.take().expect("a piped output"))
            .read_line(&mut line)
            .expect("a line of text");
        let held = HeldOpen { child };
        if line.trim_end() == "locked" {
            Ok(held)
        } else {
            Err(PeerError(line.trim_end().to_owned()))
        }
    }

    fn run(&self, command: &str, db: &Path, arguments: &[String]) -> Output {
        let output = Command::new(&self.program)
            .arg(command)
            .arg(db)
            .args(arguments)
            .stdin(Stdio::null())
            .output()
            .expect("the peer starts");
        assert_ne!(
            output.status.code(),
            Some(2),
            "{command}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        output
    }

    fn answer(&self, command: &str, db: &Path, arguments: &[String]) -> PeerResult<String> {
        let output = self.run(command, db, arguments);
        if output.status.success() { Ok(text(&output)) } else { Err(refusal(&output)) }
    }
}

/// The arguments of a command that takes an entry.
fn entry(options: &PeerOptions, key: &[u8], value: &[u8]) -> Vec<String> {
    let mut arguments = options.arguments();
    arguments.push(format!("--key={}", hex(key)));
    arguments.push(format!("--value={}", hex(value)));
    arguments
}

/// The digest that LevelDB's side computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PeerDigest {
    count: u64,
    hash: u64,
}

impl PeerDigest {
    fn parse(line: &str) -> PeerResult<Self> {
        let mut words = line.split(' ').skip(1);
        let count = words.next().and_then(|word| word.parse().ok());
        let hash = words.next().and_then(|word| u64::from_str_radix(word, 16).ok());
        match (count, hash) {
            (Some(count), Some(hash)) => Ok(PeerDigest { count, hash }),
            _ => Err(PeerError(format!("not a digest: {line}"))),
        }
    }

    /// The entries that were read.
    pub fn count(&self) -> u64 {
        self.count
    }
}

impl PartialEq<Digest> for PeerDigest {
    fn eq(&self, other: &Digest) -> bool {
        self.count == other.count() && self.hash == other.hash()
    }
}

fn compile() -> Result<PathBuf, String> {
    let compiler = env::var_os("CXX").unwrap_or_else(|| OsString::from("c++"));
    let shown = compiler.to_string_lossy().into_owned();
    if Command::new(&compiler).arg("--version").output().is_err() {
        return Err(format!("there is no C++ compiler ({shown})"));
    }
    let probe = Command::new(&compiler)
        .args(["-E", "-x", "c++", "-include", "leveldb/db.h", "/dev/null"])
        .stdin(Stdio::null())
        .output()
        .map_err(|e| format!("{shown}: {e}"))?;
    if !probe.status.success() {
        return Err("LevelDB's headers (leveldb/db.h) are not installed".to_owned());
    }
    let dir = build_dir();
    fs::create_dir_all(&dir).map_err(|e| format!("{}: {e}", dir.display()))?;
    let mut fingerprint = Digest::default();
    fingerprint.add(SOURCE.as_bytes(), FLAGS.join(" ").as_bytes());
    let program = dir.join(format!("leveldb-peer-{:016x}", fingerprint.hash()));
    if program.is_file() {
        return Ok(program);
    }
    // Several test programs may compile at once; each renames a complete file into
    // place.
    let unique = format!("{}-{}", program.display(), process::id());
    let source = format!("{unique}.cc");
    let fresh = format!("{unique}.new");
    fs::write(&source, SOURCE).map_err(|e| format!("{source}: {e}"))?;
    let output = Command::new(&compiler)
        .args(FLAGS)
        .arg(&source)
        .args(["-o", &fresh])
        .args(LIBRARIES)
        .output()
        .map_err(|e| format!("{shown}: {e}"))?;
    assert!(
        output.status.success(),
        "peer.cc does not compile:\n{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let _ = fs::remove_file(&source);
    fs::rename(&fresh, &program).map_err(|e| format!("{fresh}: {e}"))?;
    Ok(program)
}

/// `target/tmp`, found from the running test program in `target/PROFILE/deps`.
fn build_dir() -> PathBuf {
    let program = env::current_exe().unwrap_or_default();
    match program.ancestors().find(|dir| dir.file_name().is_some_and(|name| name == "deps")) {
        Some(deps) => deps.parent().and_then(Path::parent).unwrap_or(deps).join("tmp"),
        None => env::temp_dir(),
    }
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).trim_end().to_owned()
}

fn refusal(output: &Output) -> PeerError {
    let said = text(output);
    match said.strip_prefix("error ") {
        Some(reason) => PeerError(reason.to_owned()),
        None => PeerError(format!(
            "{}: {said} {}",
            output.status,
            String::from_utf8_lossy(&output.stderr).trim_end()
        )),
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn unhex(digits: &str) -> Vec<u8> {
    let digit = |byte: u8| char::from(byte).to_digit(16).expect("a hexadecimal digit") as u8;
    digits.as_bytes().chunks_exact(2).map(|pair| digit(pair[0]) << 4 | digit(pair[1])).collect()
}
