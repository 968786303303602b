//! Test suites of other projects, unmodified, on Debian's LevelDB and on the drop-in: the same
//! tests pass.
//!
//! Their sources are what `tools/fetch-clients` fetched. Each suite is compiled against Debian's
//! LevelDB and then run with either library, and where something is compiled at all it is compiled
//! against our headers and library too.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

use crate::libraries::{CRATE, Libraries, libraries, library_used, outcome, skip};

/// The directory with a client's sources.
fn fetched(client: &str) -> Option<PathBuf> {
    let target = env::current_exe().unwrap().ancestors().nth(3).unwrap().to_owned();
    let directory = target.join("clients").join(client);
    if directory.is_dir() {
        return Some(directory);
    }
    skip(&format!("{} is not there; `make peers` fetches it", directory.display()));
    None
}

/// The result of each test.
type Outcomes = BTreeMap<String, String>;

/// Runs a suite with one of the libraries and makes sure that it was that one. `parse` takes name
/// and outcome from a line of its output.
fn run_suite(
    mut suite: Command,
    library: &Path,
    parse: fn(&str) -> Option<(&str, &str)>,
) -> Outcomes {
    let dir = tempfile::tempdir().unwrap();
    suite.env("TMPDIR", dir.path()).current_dir(dir.path());
    suite.env("LD_LIBRARY_PATH", library.parent().unwrap());
    let traced = dir.path().join("loader");
    suite.env("LD_DEBUG", "libs").env("LD_DEBUG_OUTPUT", &traced);
    let (status, output) = outcome(&mut suite);
    assert_eq!(library_used(&traced).as_deref(), Some(library), "{suite:?}\n{output}");
    let outcomes: Outcomes = output
        .lines()
        .filter_map(parse)
        .map(|(name, outcome)| (name.to_owned(), outcome.to_owned()))
        .collect();
    assert!(!outcomes.is_empty(), "{suite:?}: {status}\n{output}");
    outcomes
}

/// Prints the count, which the table in `docs/leveldb-differences.md` states.
fn report(suite: &str, passed: &str, outcomes: &Outcomes) {
    let count = outcomes.values().filter(|outcome| *outcome == passed).count();
    println!("{suite}: {count} of {} passed", outcomes.len());
    assert!(count > 0);
}

#[test]
fn plyvels_own_tests() {
    let (Some(libraries), Some(source)) = (libraries(), fetched("plyvel")) else { return };
    let present = Command::new("/usr/bin/python3").args(["-c", "import plyvel, pytest"]).output();
    if !present.is_ok_and(|output| output.status.success()) {
        return skip("python3-plyvel or python3-pytest is not installed");
    }
    let run = |library: &Path| {
        let mut suite = Command::new("/usr/bin/python3");
        suite
            .args(["-m", "pytest", "-q", "-rA", "--tb=no", "-p", "no:cacheprovider"])
            .arg(source.join("test_plyvel.py"));
        suite.env("PYTHONDONTWRITEBYTECODE", "1");
        run_suite(suite, library, |line| {
            let (outcome, name) = line.split_once(' ')?;
            let name = name.split(" - ").next()?;
            ["PASSED", "FAILED", "ERROR", "SKIPPED"].contains(&outcome).then_some((name, outcome))
        })
    };
    let theirs = run(&libraries.debian);
    report("plyvel on LevelDB", "PASSED", &theirs);
    let ours = run(&libraries.swapped());
    report("plyvel on Terrace", "PASSED", &ours);
    assert_eq!(ours, theirs);
}

/// Builds a suite against one of the libraries, in a directory, and returns the program.
type Build<'a> = &'a dyn Fn(&Against, &Path) -> PathBuf;

/// The files that a client is compiled against.
struct Against {
    /// Debian's are where compilers look anyway.
    headers: Option<PathBuf>,
    libraries: PathBuf,
}

/// Compiled against Debian's LevelDB and run with both, then compiled against ours: the same
/// outcomes three times.
fn compare_compiled(
    libraries: &Libraries,
    name: &str,
    build: Build<'_>,
    test: fn(&Path) -> Command,
    passed: &str,
    parse: fn(&str) -> Option<(&str, &str)>,
) {
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let debian =
        Against { headers: None, libraries: libraries.debian.parent().unwrap().to_owned() };
    let program = build(&debian, &dir.path().join("debian"));
    let theirs = run_suite(test(&program), &libraries.debian, parse);
    report(&format!("{name} on LevelDB"), passed, &theirs);
    let swapped = run_suite(test(&program), &libraries.swapped(), parse);
    report(&format!("{name} on Terrace, library swapped"), passed, &swapped);
    let against = Against {
        headers: Some(libraries.ours.join("include")),
        libraries: libraries.ours.join("lib"),
    };
    let program = build(&against, &dir.path().join("ours"));
    let compiled = run_suite(test(&program), &libraries.ours.join("lib/libleveldb.so.1"), parse);
    report(&format!("{name} compiled against Terrace's headers"), passed, &compiled);
    assert_eq!(swapped, theirs);
    assert_eq!(compiled, theirs);
}

#[test]
fn the_rust_crates_own_tests() {
    let (Some(libraries), Some(source)) = (libraries(), fetched("rust")) else { return };
    // The crate's build script would compile a LevelDB of its own; a section for its `links` name
    // replaces the script.
    let host = Command::new("rustc").arg("-vV").output().expect("rustc runs");
    let host = String::from_utf8(host.stdout).unwrap();
    let host = host
        .lines()
        .find_map(|line| line.strip_prefix("host: "))
        .expect("rustc names its host")
        .to_owned();
    let build = |against: &Against, directory: &Path| {
        fs::create_dir_all(directory).unwrap();
        let configuration = directory.join("config.toml");
        let text = format!(
            "[source.crates-io]\nreplace-with = \"fetched\"\n[source.fetched]\ndirectory = {:?}\n\
             [target.{host}.leveldb]\nrustc-link-lib = [\"dylib=leveldb\"]\nrustc-link-search = [{:?}]\n",
            source.join("crates"),
            format!("native={}", against.libraries.display()),
        );
        fs::write(&configuration, text).unwrap();
        let mut cargo = Command::new(env::var_os("CARGO").unwrap_or("cargo".into()));
        cargo.args([
            "test",
            "--no-run",
            "--quiet",
            "--offline",
            "--message-format=json",
            "--test",
            "tests",
            "--config",
        ]);
        cargo.arg(&configuration).arg("--manifest-path").arg(source.join("leveldb/Cargo.toml"));
        cargo.arg("--target-dir").arg(directory.join("target"));
        for variable in ["RUSTFLAGS", "CARGO_ENCODED_RUSTFLAGS", "CARGO_BUILD_TARGET"] {
            cargo.env_remove(variable);
        }
        let (status, output) = outcome(&mut cargo);
        assert!(status.success(), "{cargo:?}\n{output}");
        let mut program = output
            .lines()
            .filter_map(|line| line.split_once("\"executable\":\""))
            .map(|(_, rest)| rest);
        PathBuf::from(
            program.next_back().and_then(|rest| rest.split('"').next()).expect("a test program"),
        )
    };
    let test = |program: &Path| Command::new(program);
    compare_compiled(libraries, "crate leveldb", &build, test, "ok", |line| {
        line.strip_prefix("test ")?.split_once(" ... ")
    });
}

#[test]
fn a_go_clients_own_tests() {
    let (Some(libraries), Some(source)) = (libraries(), fetched("go_module")) else { return };
    if Command::new("go").arg("version").output().is_err() {
        return skip("there is no go");
    }
    let build = |against: &Against, directory: &Path| {
        fs::create_dir_all(directory).unwrap();
        let program = directory.join("levigo.test");
        let mut go = Command::new("go");
        go.args(["test", "-c", "-o"]).arg(&program).arg("github.com/jmhodges/levigo");
        go.current_dir(Path::new(CRATE).join("tests/clients"));
        go.env("GOMODCACHE", source.join("modules"))
            .env("GOFLAGS", "-mod=readonly")
            .env("GOPROXY", "off");
        go.env("GOCACHE", source.join("cache")).env("GOWORK", "off").env("CGO_ENABLED", "1");
        let mut linker = OsString::from("-L");
        linker.push(&against.libraries);
        go.env("CGO_LDFLAGS", linker);
        if let Some(headers) = &against.headers {
            let mut compiler = OsString::from("-I");
            compiler.push(headers);
            go.env("CGO_CFLAGS", compiler);
        }
        let (status, output) = outcome(&mut go);
        assert!(status.success(), "{go:?}\n{output}");
        program
    };
    let test = |program: &Path| {
        let mut suite = Command::new(program);
        suite.arg("-test.v");
        suite
    };
    compare_compiled(libraries, "levigo", &build, test, "PASS", |line| {
        let (outcome, rest) = line.trim_start().strip_prefix("--- ")?.split_once(": ")?;
        Some((rest.split(' ').next()?, outcome))
    });
}
