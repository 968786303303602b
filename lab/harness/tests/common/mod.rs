//! A lab in a directory of its own, with engines that only pretend.

#![allow(dead_code, reason = "every test program uses a part of it")]

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use lab_harness::run::{Directory, Measurement, Measurements, Run, Status};
use lab_harness::selftest::Digests;
use tempfile::TempDir;

pub(crate) const SEED: u64 = 301;

/// Writes a script that can be run at once. A process of its own does it: a file that this process
/// has open for writing, and with it for a moment every child that another test starts, cannot be
/// run (ETXTBSY).
pub(crate) fn write_program(path: &Path, script: &str) {
    let mut command = Command::new("sh");
    command.args(["-c", "cat >\"$0\" && chmod 755 \"$0\""]).arg(path).stdin(Stdio::piped());
    let mut shell = command.spawn().expect("sh");
    let mut input = shell.stdin.take().expect("a pipe");
    input.write_all(script.as_bytes()).expect("write");
    drop(input);
    assert!(shell.wait().expect("sh").success(), "{}", path.display());
}

/// A program that speaks the protocol of `lab/WORKLOADS.md`. What it does wrong, its variant says.
const SCRIPT: &str = r#"#!/bin/sh
variant=plain
for argument in "$@"; do
    case $argument in
    --variant=*) variant=${argument#--variant=} ;;
    --benchmarks=*) benchmarks=$(echo "${argument#--benchmarks=}" | tr , ' ') ;;
    --db=*) db=${argument#--db=} ;;
    --describe)
        echo '{"engine":"fake","title":"Fake","version":"1.0","variants":[],"asynchronous":"a","synchronous":"s",'
        echo '"settings":"none","limits":[],"unsupported":{}}'
        exit 0 ;;
    esac
done
echo "$variant $benchmarks" >>TRACE
for benchmark in $benchmarks; do
    rate=1000
    more=
    case $variant in fast) rate=2000 ;; esac
    case $benchmark in readrandom) more=',"found":7' ;; esac
    if [ "$benchmark" = selftest ] && [ "$variant" = untested ]; then
        echo '{"benchmark":"selftest","engine":"fake","unsupported":"it would rather not"}'
        continue
    fi
    if [ "$benchmark" = selftest ]; then
        digest=DIGEST
        [ "$variant" = wrong ] && digest=0000000000000000
        echo "{\"benchmark\":\"selftest\",\"engine\":\"fake\",\"ops\":1,\"seconds\":1,\"ops_per_sec\":1,\"digest\":\"$digest\"}"
        continue
    fi
    mkdir -p "$db"
    case $variant-$benchmark in
    crash-overwrite) echo "the tree is on fire" >&2; exit 3 ;;
    crashread-readseq) exit 3 ;;
    killed-overwrite) kill -9 $$ ;;
    hungry-overwrite) head -c 400M /dev/zero | tail -c 399M >"$db/zeros" || exit 3 ;;
    hang-overwrite) sleep 600 & wait ;;
    slow-*) sleep 600 & wait ;;
    uneven-readseq) echo >>"$db/passes"; rate=$(($(wc -l <"$db/passes") % 3 * 1000 + 500)) ;;
    junk-overwrite) echo "hello"; exit 0 ;;
    silent-overwrite) exit 0 ;;
    short-fillrandom | shorter-fillrand*) more=',"truncated":true' ;;
    single-fillrandom) [ -e "$db/again" ] || more=',"truncated":true'; touch "$db/again" ;;
    single-fillrandbatch) exit 3 ;;
    noisy-overwrite) rate=$(($(grep -c '^noisy.*overwrite' TRACE) % 3 * 1000 + 500)) ;;
    full-overwrite)
        for part in 1 2 3 4 5 6 7; do fallocate -l 100M "$db/fill$part" || exit 3; done ;;
    forgetful-readrandom) more=',"found":6' ;;
    late-readwhilewriting) more=',"writer_ops_per_sec":500' ;;
    *-readwhilewriting) more=',"writer_ops_per_sec":999' ;;
    hangtimed-readpareto) sleep 600 & wait ;;
    cannot-readseq) echo '{"benchmark":"readseq","engine":"fake","unsupported":"it keeps no order"}'; continue ;;
    esac
    echo "{\"series\":\"$benchmark\",\"second\":1,\"ops\":10,\"mean_us\":1}"
    seconds=$(awk "BEGIN { print 10 / $rate }")
    case $variant-$benchmark in lying-overwrite) rate=$((rate * 2)) ;; esac
    echo "{\"benchmark\":\"$benchmark\",\"engine\":\"fake\",\"ops\":10,\"seconds\":$seconds,\"ops_per_sec\":$rate,\"bytes_written\":7$more}"
done
case $variant-$benchmarks in
badclose-overwrite* | badclose-readseq) echo "the disk is gone" >&2; exit 3 ;;
hangclose-overwrite*) sleep 600 & wait ;;
esac
"#;

const SUITE: &str = r#"
title = "Tiny"
source = "nowhere"
num = 1000
rounds = 2
time_limit = 1
short = { num = 100, rounds = 1, time_limit = 1 }

[[section]]
id = "writes"
title = "Writes"
description = "d"
chart = "bars"
settings = { cache_size = "1 MiB" }
[[section.group]]
cells = [
  "fillrandom",
  "overwrite",
  { benchmark = "readseq", section = "reads" },
  { benchmark = "readrandom", section = "reads", sweep = { name = "threads", values = [1, 2] } },
]

[[section]]
id = "reads"
title = "Reads"
description = "d"
chart = "threads"

[[section]]
id = "fills"
title = "Fills"
description = "d"
chart = "series"
[[section.group]]
cells = ["fillseq"]
"#;

/// Cells of the suite `tiny`.
pub(crate) const CELLS: usize = 6;

pub(crate) struct Lab {
    root: TempDir,
}

impl Lab {
    /// A lab with the suite `tiny` and an engine `terrace` that has no faults.
    pub(crate) fn new() -> Lab {
        let lab = Lab { root: tempfile::tempdir().expect("a directory") };
        fs::create_dir_all(lab.dir().join("suites")).expect("create");
        fs::write(lab.dir().join("suites/tiny.toml"), SUITE).expect("write");
        lab.engine("terrace", "script = 'fake.sh'");
        lab
    }

    /// A lab with an engine `fake` of these variants as well.
    pub(crate) fn with(variants: &[&str]) -> Lab {
        let lab = Lab::new();
        lab.engine("fake", &format!("script = 'fake.sh'\nvariants = {variants:?}"));
        lab
    }

    pub(crate) fn engine(&self, name: &str, manifest: &str) {
        let dir = self.dir().join("engines").join(name);
        fs::create_dir_all(&dir).expect("create");
        fs::write(dir.join("engine.toml"), manifest).expect("write");
        let trace = self.root.path().join("trace");
        let script = SCRIPT
            .replace("DIGEST", &Digests::of(SEED).exact)
            .replace("TRACE", &trace.display().to_string())
            .replace("variant=plain", &format!("variant={name}"));
        write_program(&dir.join("fake.sh"), &script);
    }

    pub(crate) fn root(&self) -> &Path {
        self.root.path()
    }

    pub(crate) fn dir(&self) -> PathBuf {
        self.root.path().join("lab")
    }

    pub(crate) fn out(&self) -> PathBuf {
        self.root.path().join("run")
    }

    pub(crate) fn out_text(&self) -> String {
        self.out().display().to_string()
    }

    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_lab"));
        command.arg("--lab").arg(self.dir()).args(arguments);
        command
    }

    pub(crate) fn lab(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().expect("lab runs")
    }

    /// `lab run tiny --out OUT` and more.
    pub(crate) fn run(&self, arguments: &[&str]) -> Output {
        let out = self.out_text();
        let mut all = vec!["run", "tiny", "--grace", "1", "--out", &out];
        all.extend(arguments);
        self.lab(&all)
    }

    /// The calls of engine programs, in order: variant and benchmarks.
    pub(crate) fn trace(&self) -> Vec<String> {
        let text = fs::read_to_string(self.root.path().join("trace")).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    pub(crate) fn results(&self) -> (Run, Measurements) {
        Directory::new(&self.out()).read().expect("a run")
    }

    /// The status and reason of a cell of `fake-VARIANT` in the first round.
    pub(crate) fn cell(&self, variant: &str, section: &str, cell: usize) -> (Status, String) {
        let measurement = self.measurement(variant, section, cell);
        (measurement.status, measurement.reason.unwrap_or_default())
    }

    pub(crate) fn measurement(&self, variant: &str, section: &str, cell: usize) -> Measurement {
        let (_, measurements) = self.results();
        let engine = format!("fake-{variant}");
        measurements
            .get(section, cell, &engine, 0)
            .unwrap_or_else(|| panic!("{engine} in {section} {cell}"))
            .clone()
    }
}

/// Whether the lab's programs in Go can be built; says so if not, and fails under CI.
pub(crate) fn has_go() -> bool {
    const LEAST: u32 = 25;
    let output = Command::new("go").args(["env", "GOVERSION"]).current_dir("/").output();
    let version = output.map(|output| stdout(&output)).unwrap_or_default();
    let minor = version.trim().split('.').nth(1).and_then(|minor| minor.parse::<u32>().ok());
    let has = minor.is_some_and(|minor| minor >= LEAST);
    assert!(has || std::env::var_os("CI").is_none(), "under CI, there is no Go 1.{LEAST}");
    if !has {
        eprintln!("SKIPPED: there is no Go 1.{LEAST}");
    }
    has
}

pub(crate) fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

pub(crate) fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[track_caller]
pub(crate) fn succeeded(output: &Output) {
    assert!(output.status.success(), "{}\n{}", stdout(output), stderr(output));
}

/// Asserts that a run came to its end, and that something in it failed.
#[track_caller]
pub(crate) fn failed_in_part(output: &Output) {
    let (text, problem) = (stdout(output), stderr(output));
    assert_eq!(output.status.code(), Some(1), "{text}\n{problem}");
    assert!(text.contains("\nreport: "), "{text}");
}

/// Asserts that a command failed and says all of `words`.
#[track_caller]
pub(crate) fn refused(output: &Output, words: &[&str]) {
    let text = stderr(output);
    assert!(!output.status.success(), "{text}");
    for word in words {
        assert!(text.contains(word), "{word:?} is not in: {text}");
    }
}
