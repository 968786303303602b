//! Runs an engine program of the lab as the harness does: right results first, then every benchmark
//! in small.
//!
//! Each engine's package has this file as its test.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use lab_harness::selftest::Digests;
use serde_json::Value;

const PROGRAM: &str = env!(concat!("CARGO_BIN_EXE_", env!("CARGO_PKG_NAME")));
const BENCHMARKS: &str = "fillseq,fillrandom,overwrite,fillseqbatch,fillrandbatch,fillsync,fill100K,fill100Krandom,fillseq,\
    readseq,readreverse,readrandom,readmissing,readhot,seekrandom,readwhilewriting,ycsba,ycsbb,ycsbc,ycsbd,ycsbe,ycsbf,\
    readwriterandom,deleterandom,deleteseq,fillseqsync,bulkload,cold,readseq,waitcompact,compact,readrandom,readpareto,\
    mixedpareto,writepareto,queue,fillseq,mixgraph,fillseq,deleterange,readrandom,fillseq,multireadrandom,selftest";

fn run(db: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(PROGRAM);
    command.arg(format!("--db={}", db.display())).args(arguments);
    command.output().expect("the program runs")
}

fn lines(output: &Output) -> Vec<Value> {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = std::str::from_utf8(&output.stdout).expect("text");
    text.lines().map(|line| serde_json::from_str(line).expect("a line of JSON")).collect()
}

fn variants() -> Vec<String> {
    let description = &lines(&run(Path::new("unused"), &["--describe"]))[0];
    let variants = description["variants"].as_array().expect("variants");
    variants.iter().map(|variant| variant["name"].as_str().expect("a name").to_owned()).collect()
}

#[test]
fn every_variant_equals_the_model() {
    for variant in variants() {
        for seed in [301, 302] {
            let directory = tempfile::tempdir().expect("a directory");
            let flags =
                [format!("--variant={variant}"), format!("--seed={seed}"), "--json".to_owned()];
            let flags: Vec<&str> =
                flags.iter().map(String::as_str).chain(["--benchmarks=selftest"]).collect();
            let line = &lines(&run(directory.path(), &flags))[0];
            assert_eq!(
                line["digest"],
                Digests::of(seed).exact.as_str(),
                "'{variant}', seed {seed}"
            );
            assert_eq!(line["ops"], 20_000);
        }
    }
}

/// Three entries, then eleven operations, after which three entries are there.
#[test]
fn a_trace_is_replayed() {
    let trace = concat!(env!("CARGO_MANIFEST_DIR"), "/../../trace/sample.trace");
    for variant in variants() {
        let directory = tempfile::tempdir().expect("a directory");
        let flags = [format!("--variant={variant}"), format!("--trace={trace}")];
        let replay = |benchmarks: &str, num: &str| {
            let rest = ["--json", benchmarks, num];
            let flags: Vec<&str> = flags.iter().map(String::as_str).chain(rest).collect();
            lines(&run(directory.path(), &flags))
        };
        let all = replay("--benchmarks=replay,readseq,replay", "--num=100");
        for line in [&all[0], &all[2]] {
            assert_eq!((&line["ops"], &line["found"]), (&11.into(), &8.into()), "'{variant}'");
        }
        assert_eq!(all[1]["ops"], 3, "'{variant}'");
        // The batch is whole or not there.
        assert_eq!(replay("--benchmarks=replay", "--num=4")[0]["ops"], 5, "'{variant}'");
    }
}

#[test]
fn all_keys_of_readhit_exist() {
    let directory = tempfile::tempdir().expect("a directory");
    let flags = [
        "--num=3000",
        "--reads=2000",
        "--json",
        "--benchmarks=fillrandom,readhit,readrandom,fillrandbatch,readhit,readrandom",
    ];
    let lines = lines(&run(directory.path(), &flags));
    assert_eq!([&lines[1]["found"], &lines[4]["found"]], [2000, 2000]);
    assert!(lines[2]["found"].as_u64() < Some(1500), "{}", lines[2]);
    assert_eq!(lines[2]["found"], lines[5]["found"]);
}

#[test]
fn every_benchmark_does_what_it_says() {
    const NUM: u64 = 3000;
    for variant in variants() {
        let directory = tempfile::tempdir().expect("a directory");
        let variant = format!("--variant={variant}");
        let flags =
            ["--num=3000", "--threads=2", "--duration=0.2", "--json", &variant, "--interval=0.1"];
        let mut arguments = flags.to_vec();
        let benchmarks = format!("--benchmarks={BENCHMARKS}");
        arguments.push(&benchmarks);
        let lines = lines(&run(directory.path(), &arguments));
        assert!(lines.iter().any(|line| line["series"] == "readpareto"), "{variant}: no series");
        let results: Vec<&Value> = lines.iter().filter(|line| line["series"].is_null()).collect();
        let names: Vec<&str> =
            results.iter().map(|line| line["benchmark"].as_str().expect("a name")).collect();
        assert_eq!(names, BENCHMARKS.split(',').collect::<Vec<_>>());
        let result = |name: &str, nth: usize| {
            *results.iter().filter(|line| line["benchmark"] == name).nth(nth).expect("a result")
        };
        for line in &results {
            assert!(
                line["ops"].as_u64() > Some(0) && line["seconds"].as_f64() > Some(0.0),
                "{line}"
            );
            assert!(
                line["peak_memory_bytes"].as_u64() > Some(1 << 20) && line["truncated"].is_null(),
                "{line}"
            );
        }
        // Two threads each scan half as many entries as there are.
        assert_eq!([&result("readseq", 0)["ops"], &result("readreverse", 0)["ops"]], [NUM, NUM]);
        assert_eq!(
            [&result("readrandom", 0)["found"], &result("readmissing", 0)["found"]],
            [NUM, 0]
        );
        assert_eq!([&result("seekrandom", 0)["found"], &result("ycsbc", 0)["found"]], [NUM, NUM]);
        assert_eq!([&result("bulkload", 0)["ops"], &result("readseq", 1)["ops"]], [NUM, NUM]);
        assert_eq!(result("readrandom", 1)["found"], NUM);
        // Thirty ranges of a hundred keys, which overlap.
        let left = result("readrandom", 2)["found"].as_u64().expect("a number");
        assert!(
            result("deleterange", 0)["ops"] == NUM / 100 && left > 300 && left < 1800,
            "{left}"
        );
        assert_eq!(result("multireadrandom", 0)["found"], NUM);
        // A thousand entries of each thread are put before any is taken out.
        assert_eq!(result("queue", 0)["found"], NUM - 2000);
        assert!(result("readwhilewriting", 0)["writer_ops_per_sec"].as_f64() > Some(0.0));
        assert!(result("cold", 0)["disk_bytes"].as_u64() > Some(NUM * 50));
    }
}

#[test]
fn a_writer_beside_readers_puts_at_least_once() {
    let directory = tempfile::tempdir().expect("a directory");
    let short = ["readwhilewriting"; 1000].join(",");
    let benchmarks = format!("--benchmarks=fillseq,{short}");
    let lines = lines(&run(
        directory.path(),
        &[&benchmarks, "--num=10", "--reads=2", "--threads=2", "--json"],
    ));
    for line in lines.iter().skip(1) {
        assert!(line["writer_ops_per_sec"].as_f64() > Some(0.0), "{line}");
    }
}

#[test]
fn an_open_loop_keeps_its_rate() {
    let directory = tempfile::tempdir().expect("a directory");
    let flags =
        ["--benchmarks=fillseq,mixgraph", "--num=400", "--rate=2000", "--threads=2", "--json"];
    let lines = lines(&run(directory.path(), &flags));
    // Nothing begins before it is due: the last of 400 operations after 399 / 2,000 seconds.
    for line in lines {
        assert!(line["ops"] == 400 && line["seconds"].as_f64() >= Some(0.1995), "{line}");
    }
}

/// What an engine does not have it says in the place of a result.
#[test]
fn keyspaces_hold_what_was_put_and_entries_expire() {
    let directory = tempfile::tempdir().expect("a directory");
    let flags = [
        "--benchmarks=createkeyspaces,fillkeyspaces,readkeyspaces,cold,readkeyspaces,fillexpiring",
        "--keyspaces=30",
        "--num=3000",
        "--threads=2",
        "--duration=0.2",
        "--json",
    ];
    let lines = lines(&run(directory.path(), &flags));
    let has_keyspaces = lines[0]["unsupported"].is_null();
    if has_keyspaces {
        assert_eq!([&lines[0]["ops"], &lines[1]["ops"]], [30, 3000]);
        // A hundred keys in each, drawn a hundred times: 63 of them are there.
        let found = lines[2]["found"].as_u64().expect("a number");
        assert!(found > 1700 && found < 2100, "{found}");
        assert_eq!(lines[4]["found"], found);
    }
    for (at, line) in lines.iter().enumerate().filter(|(at, _)| *at != 3) {
        let is_missing = !line["unsupported"].is_null();
        assert!(if at < 5 { is_missing != has_keyspaces } else { is_missing || line["ops"] != 0 });
    }
}

/// Work put off includes what lies in a write buffer: it would otherwise be no debt, and be read
/// from memory.
#[test]
fn waitcompact_flushes_what_lies_in_memory() {
    const NUM: u64 = 20_000;
    // redb has no write buffer.
    if env!("CARGO_PKG_NAME") == "lab-redb" {
        return;
    }
    for variant in variants() {
        let directory = tempfile::tempdir().expect("a directory");
        let variant = format!("--variant={variant}");
        let flags = [
            "--benchmarks=fillseq,waitcompact",
            "--write_buffer_size=67108864",
            "--json",
            "--num=20000",
        ];
        let lines = lines(&run(directory.path(), &[&flags[..], &[&variant]].concat()));
        let written = lines[1]["bytes_written"].as_u64().expect("bytes");
        let data = NUM * (16 + 100);
        assert!(written > data * 3 / 10, "{variant}: waitcompact wrote {written} bytes of {data}");
    }
}

#[test]
fn a_wrong_command_line_is_refused_in_one_line() {
    let directory = tempfile::tempdir().expect("a directory");
    for wrong in [
        "--benchmarks=fillseqq",
        "--num=0",
        "--variant=none-such",
        "--key_size=2",
        "--frobnicate",
        "--num=x",
    ] {
        let output = run(directory.path(), &[wrong]);
        let complaint = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(
            (output.status.code(), complaint.lines().count()),
            (Some(2), 1),
            "{wrong}: {complaint}"
        );
    }
    // Somebody's directory is not emptied.
    let letter = directory.path().join("letter");
    std::fs::write(&letter, "dear").expect("written");
    let output = run(directory.path(), &["--benchmarks=fillseq", "--num=10"]);
    assert_eq!(output.status.code(), Some(3));
    assert!(letter.is_file());
}

/// The contents of every file below a directory.
fn contents(directory: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut files = BTreeMap::new();
    for entry in directory.read_dir().expect("a directory") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            files.append(&mut contents(&path));
        } else {
            let bytes = std::fs::read(&path).expect("a file");
            files.insert(path, bytes);
        }
    }
    files
}

#[test]
fn a_database_that_no_benchmark_made_is_refused_and_untouched() {
    let directory = tempfile::tempdir().expect("a directory");
    let fill = ["--benchmarks=fillseq", "--num=1000", "--json"];
    lines(&run(directory.path(), &fill));
    // A benchmark empties its own directory.
    lines(&run(directory.path(), &fill));
    // Without the mark it is a database as any program makes it.
    let mark = directory.path().join("LAB-BENCHMARK");
    std::fs::remove_file(&mark).expect("a mark");
    let before = contents(directory.path());
    let output = run(directory.path(), &fill);
    let complaint = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.code() == Some(3) && complaint.contains("LAB-BENCHMARK"), "{complaint}");
    assert!(contents(directory.path()) == before, "it was touched");
    // It may be read, and is not emptied.
    assert_eq!(
        lines(&run(directory.path(), &["--benchmarks=readseq", "--num=1000", "--json"]))[0]["ops"],
        1000
    );
    assert!(!mark.exists());
}

#[test]
fn a_time_limit_ends_a_benchmark_early() {
    let directory = tempfile::tempdir().expect("a directory");
    let line = &lines(&run(
        directory.path(),
        &["--benchmarks=fillsync", "--num=1000000000", "--time_limit=0.2", "--json"],
    ))[0];
    assert_eq!(line["truncated"], true);
}
