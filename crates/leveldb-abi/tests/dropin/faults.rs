//! LevelDB's known faults through its own interface: one program, compiled against Debian's
//! headers, shows each of them with LevelDB and shows that Terrace does not have it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::{env, fs};

use crate::libraries::{CRATE, Libraries, libraries, skip, skip_for_rights, succeeded};

/// The program, compiled once.
fn program() -> &'static Path {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(|| {
        let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join("faults");
        let sources = fs::read_dir(Path::new(CRATE).join("tests/programs/faults")).unwrap();
        let sources = sources
            .map(|entry| entry.unwrap().path())
            .filter(|path| path.extension() == Some("cc".as_ref()));
        let mut compile = Command::new("g++");
        compile
            .args(["-std=c++17", "-O1", "-g", "-Wall", "-Wextra", "-Werror", "-o"])
            .arg(&program)
            .args(sources);
        compile.args(["-lleveldb", "-pthread"]);
        succeeded(compile);
        program
    })
}

/// The program's verdict on a fault: whether the library holds, and what was seen.
fn verdict(mut run: Command, dir: &Path, library: &Path, timeout: &str) -> (String, String) {
    run.arg(dir).env("LD_LIBRARY_PATH", library.parent().unwrap()).env("FAULTS_TIMEOUT", timeout);
    let printed = String::from_utf8(succeeded(run).stdout).unwrap();
    let (kind, seen) = printed.trim_end().split_once('\n').expect("two lines");
    (kind.to_owned(), seen.to_owned())
}

/// Runs the program for one fault with each library: LevelDB has it, and Terrace has not.
fn compare(libraries: &Libraries, fault: &str, command: impl Fn(&Path) -> Command) {
    let both = [
        ("LevelDB", libraries.debian.clone(), "fails", "5"),
        ("Terrace", libraries.swapped(), "holds", "120"),
    ];
    for (name, library, expected, timeout) in both {
        let dir = tempfile::tempdir().unwrap();
        let mut run = command(dir.path());
        run.arg(program()).arg(fault);
        let (kind, seen) = verdict(run, dir.path(), &library, timeout);
        println!("{fault}: {name} {kind}: {seen}");
        if kind == "skipped" {
            skip_for_rights(&seen);
        } else {
            assert_eq!(kind, expected, "{fault} with {name}: {seen}");
        }
    }
}

fn fault(name: &str) {
    if let Some(libraries) = libraries() {
        // `env` runs what follows it.
        compare(libraries, name, |_| Command::new("env"));
    }
}

/// With a small file system to itself, in a mount namespace that ends with the program.
fn fault_of_a_small_disk(name: &str) {
    let Some(libraries) = libraries() else { return };
    let on_small_disk = |dir: &Path| {
        let mut run = Command::new("unshare");
        run.args(["--mount", "--propagation", "private", "sh", "-c"]);
        run.arg("mount -t tmpfs -o size=16m none \"$0\" && exec \"$@\"").arg(dir);
        run
    };
    let dir = tempfile::tempdir().unwrap();
    let mut probe = on_small_disk(dir.path());
    probe.arg("true");
    if !probe.output().is_ok_and(|output| output.status.success()) {
        return skip_for_rights("mounting a small file system needs root");
    }
    compare(libraries, name, on_small_disk);
}

macro_rules! faults {
    ($run:ident: $($test:ident = $name:literal;)*) => {
        $(#[test]
        fn $test() {
            $run($name);
        })*
    };
}

faults! { fault:
    failed_append = "failed-append";
    prefix_across_logs = "prefix-across-logs";
    flipped_bit_in_log = "flipped-bit-in-log";
    malformed_batch = "malformed-batch";
    repair_of_healthy = "repair-of-healthy";
    repair_of_damaged_log = "repair-of-damaged-log";
    flipped_bit_in_table = "flipped-bit-in-table";
    key_split_across_files = "key-split-across-files";
    background_error = "background-error";
    manifest_growth = "manifest-growth";
    space_of_deleted = "space-of-deleted";
    crawl_over_deleted = "crawl-over-deleted";
    reads_that_write = "reads-that-write";
    second_open = "second-open";
    forked_child = "forked-child";
    hostile_current = "hostile-current";
    stall_of_another = "stall-of-another";
}

faults! { fault_of_a_small_disk:
    full_disk = "full-disk";
}

/// Takes 4 GiB of memory and most of a minute with LevelDB, and so at full size only.
#[test]
fn huge_value() {
    if env::var("TERRACE_TEST_SCALE")
        .is_ok_and(|scale| scale.parse().is_ok_and(|scale: f64| scale >= 1.0))
    {
        fault("huge-value");
    }
}

/// The calls of a process, in the order in which they ended.
#[derive(Debug)]
enum Call {
    Created(PathBuf),
    Renamed(PathBuf),
    Removed(PathBuf),
    Synced(PathBuf),
    Acknowledged,
}

/// The successful calls that `strace -f -y` recorded.
fn calls(trace: &str) -> Vec<Call> {
    let mut pending: BTreeMap<&str, String> = BTreeMap::new();
    let mut calls = Vec::new();
    for line in trace.lines() {
        let Some((thread, rest)) = line.split_once(char::is_whitespace) else { continue };
        let rest = rest.trim_start();
        if let Some(begun) = rest.strip_suffix(" <unfinished ...>") {
            pending.insert(thread, begun.to_owned());
            continue;
        }
        let call = match rest.split_once(" resumed>") {
            Some((_, end)) => pending.remove(thread).unwrap_or_default() + end,
            None => rest.to_owned(),
        };
        if call.contains("= -1") {
            continue;
        }
        // Paths are quoted; those of descriptors stand in angle brackets behind them.
        let quoted: Vec<&str> = call.split('"').skip(1).step_by(2).collect();
        let descriptor = || {
            PathBuf::from(
                call.split('<').nth(1).and_then(|rest| rest.split('>').next()).unwrap_or(""),
            )
        };
        // A name may be relative to a directory that is open.
        let last = || descriptor_relative(&call, quoted.last().copied().unwrap_or(""));
        calls.push(match call.split('(').next().unwrap_or("") {
            "open" | "openat" | "creat" if call.contains("O_CREAT") => Call::Created(last()),
            "rename" | "renameat" | "renameat2" => Call::Renamed(last()),
            "unlink" | "unlinkat" => Call::Removed(last()),
            "fsync" | "fdatasync" => Call::Synced(descriptor()),
            "write" if call.starts_with("write(2<") && call.contains("acknowledged") => {
                Call::Acknowledged
            }
            _ => continue,
        });
    }
    calls
}

fn descriptor_relative(call: &str, path: &str) -> PathBuf {
    let directory = call.rsplit('<').next().and_then(|rest| rest.split('>').next()).unwrap_or("");
    Path::new(directory).join(path)
}

/// The part of the calls that a power failure leaves to chance.
fn unordered(calls: &[Call], db: &Path) -> BTreeSet<&'static str> {
    let name = |path: &Path| {
        path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
    };
    let mut found = BTreeSet::new();
    // Names that are not durable yet. A synced put syncs its log; another log may wait to be used.
    let (mut current, mut logs, mut used) = (false, BTreeSet::new(), false);
    // Until a new CURRENT is durable the one before serves, if there is one.
    let mut has_current = false;
    for call in calls {
        match call {
            Call::Created(path) if name(path).ends_with(".log") => {
                logs.insert(path);
            }
            Call::Renamed(path) if name(path) == "CURRENT" => current = true,
            Call::Synced(path) if path == db => {
                has_current |= current;
                (current, used) = (false, false);
                logs.clear();
            }
            Call::Synced(path) if logs.contains(path) => used = true,
            Call::Removed(path) if name(path).starts_with("MANIFEST-") && current => {
                found.insert(
                    "the old MANIFEST is removed before the directory is synced that has the new \
                              CURRENT",
                );
            }
            Call::Acknowledged if current && !has_current => {
                found.insert(
                    "a synced put is acknowledged before the database has a durable CURRENT",
                );
            }
            Call::Acknowledged if used => {
                found.insert("a synced put is acknowledged before its log's name is durable");
            }
            _ => {}
        }
    }
    found
}

#[test]
fn order_of_durability() {
    let Some(libraries) = libraries() else { return };
    if Command::new("strace").arg("-V").output().is_err() {
        return skip("there is no strace");
    }
    let found = |library: &Path| {
        let dir = tempfile::tempdir().unwrap();
        let root = fs::canonicalize(dir.path()).unwrap();
        let trace = root.join("trace");
        let mut run = Command::new("strace");
        run.args(["-f", "-y", "-s", "100", "-e"]);
        run.arg("trace=open,openat,creat,rename,renameat,renameat2,unlink,unlinkat,fsync,fdatasync,write");
        run.arg("-E").arg(format!("LD_LIBRARY_PATH={}", library.parent().unwrap().display()));
        run.arg("-o").arg(&trace).arg(program()).arg("order-of-durability").arg(&root);
        let output = run.output().unwrap();
        if !output.status.success() {
            skip_for_rights("strace cannot trace here");
            return None;
        }
        let calls = calls(&fs::read_to_string(trace).unwrap());
        let acknowledged = calls.iter().filter(|call| matches!(call, Call::Acknowledged)).count();
        assert_eq!(acknowledged, 4, "{calls:#?}");
        assert!(
            calls
                .iter()
                .any(|call| matches!(call, Call::Renamed(path) if path.ends_with("db/CURRENT")))
        );
        Some(unordered(&calls, &root.join("db")))
    };
    let (Some(theirs), Some(ours)) = (found(&libraries.debian), found(&libraries.swapped())) else {
        return;
    };
    println!("order-of-durability: LevelDB fails: {theirs:#?}");
    assert!(!theirs.is_empty());
    assert!(ours.is_empty(), "{ours:#?}");
}

/// The table of what the two libraries do has a row for each fault.
#[test]
fn the_table_of_faults_is_complete() {
    if libraries().is_none() {
        return;
    }
    let names = String::from_utf8(succeeded(Command::new(program())).stdout).unwrap();
    let page =
        fs::read_to_string(Path::new(CRATE).join("../../docs/leveldb-differences.md")).unwrap();
    let missing: Vec<&str> =
        names.lines().filter(|name| !page.contains(&format!("| `{name}` |"))).collect();
    assert!(missing.is_empty(), "docs/leveldb-differences.md: {missing:?}");
}
