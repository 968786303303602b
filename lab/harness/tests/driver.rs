//! The drivers of engine programs in C++ and in Go, tested on an ordered map in the engine's place.

mod common;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;
use std::{env, fs};

use lab_harness::selftest::Digests;
use serde_json::Value;

fn engines() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../engines")
}

fn build(command: &mut Command) {
    let output = command.output().expect("the compiler starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// The program in C++, built once; `None` where there is no compiler.
fn in_cpp() -> Option<&'static Path> {
    static PROGRAM: OnceLock<Option<PathBuf>> = OnceLock::new();
    PROGRAM
        .get_or_init(|| {
            let compiler = env::var("CXX").unwrap_or_else(|_| "c++".to_owned());
            if Command::new(&compiler).arg("--version").output().is_err() {
                assert!(
                    env::var_os("CI").is_none(),
                    "under CI, there is no C++ compiler ({compiler})"
                );
                eprintln!("SKIPPED: there is no C++ compiler ({compiler})");
                return None;
            }
            let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join("reference");
            build(
                Command::new(compiler)
                    .args(["-std=c++20", "-O2", "-Wall", "-Wextra", "-Werror", "-pthread", "-o"])
                    .arg(&program)
                    .arg(engines().join("reference/bench.cc")),
            );
            Some(program)
        })
        .as_deref()
}

/// The program in Go, built once; `None` where there is no Go. It needs no module but its own.
fn in_go() -> Option<&'static Path> {
    static PROGRAM: OnceLock<Option<PathBuf>> = OnceLock::new();
    PROGRAM
        .get_or_init(|| {
            if !common::has_go() {
                return None;
            }
            let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join("reference-go");
            let mut go = Command::new("go");
            go.current_dir(engines().join("go")).env("GOPROXY", "off");
            build(go.args(["build", "-buildvcs=false", "-o"]).arg(&program).arg("./reference"));
            Some(program)
        })
        .as_deref()
}

fn programs() -> impl Iterator<Item = &'static Path> {
    in_cpp().into_iter().chain(in_go())
}

fn run(program: &Path, db: &Path, arguments: &[&str]) -> Output {
    Command::new(program)
        .arg(format!("--db={}", db.display()))
        .args(arguments)
        .output()
        .expect("the program starts")
}

fn lines(output: &Output) -> Vec<Value> {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8_lossy(&output.stdout);
    text.lines().map(|line| serde_json::from_str(line).expect(line)).collect()
}

#[test]
fn the_self_test_equals_the_model() {
    for program in programs() {
        let dir = tempfile::tempdir().expect("a directory");
        for seed in [0, 301, 999_999_999_999] {
            let seed_flag = format!("--seed={seed}");
            let lines =
                lines(&run(program, dir.path(), &["--benchmarks=selftest", "--json", &seed_flag]));
            let digest = lines[0]["digest"].as_str().expect("a digest");
            assert_eq!(digest, Digests::of(seed).exact, "seed {seed}");
            assert_eq!(lines[0]["ops"], 20_000);
        }
    }
}

#[test]
fn requests_to_the_device_are_reported_where_they_are_counted() {
    for program in programs() {
        let dir = tempfile::tempdir().expect("a directory");
        let io_stat = dir.path().join("io.stat");
        fs::write(&io_stat, "259:0 rbytes=8192 wbytes=4096 rios=2 wios=1 dbytes=0 dios=0\n")
            .expect("written");
        let fields = |io_stat: &Path| {
            let output = Command::new(program)
                .arg(format!("--db={}", dir.path().join("db").display()))
                .args(["--benchmarks=fillseq", "--num=100", "--json"])
                .env("LAB_IO_STAT", io_stat)
                .output()
                .expect("the program starts");
            let line = lines(&output).remove(0);
            ["device_reads", "device_writes", "device_bytes_written"].map(|name| line[name].clone())
        };
        // Nothing was counted meanwhile.
        assert_eq!(fields(&io_stat), [Value::from(0), Value::from(0), Value::from(0)]);
        assert_eq!(fields(&dir.path().join("none")), [Value::Null, Value::Null, Value::Null]);
    }
}

#[test]
fn every_operation_is_done_by_some_thread() {
    for program in programs() {
        let dir = tempfile::tempdir().expect("a directory");
        let benchmarks = "--benchmarks=fillseq,readseq,readrandom,fillseqbatch,readreverse,fillsync,fill100K,deleteseq,readseq";
        let counts = [10_007, 10_007, 10_007, 10_007, 10_007, 100, 10, 10_007, 0];
        for threads in ["--threads=1", "--threads=3"] {
            let lines =
                lines(&run(program, dir.path(), &["--num=10007", benchmarks, threads, "--json"]));
            let done: Vec<u64> =
                lines.iter().map(|line| line["ops"].as_u64().expect("ops")).collect();
            // After fill100K there are ten entries, all of them deleted by deleteseq.
            assert_eq!(done, counts, "{threads}");
            assert_eq!(lines[2]["found"], 10_007);
        }
    }
}

/// The keys that a driver chooses show in what it finds, where a third of them are missing, and in
/// how many entries are there at the end.
#[test]
fn both_drivers_do_the_same_operations() {
    let (Some(cpp), Some(go)) = (in_cpp(), in_go()) else { return };
    let benchmarks = "--benchmarks=fillrandom,readrandom,readhit,readmissing,readhot,multireadrandom,seekrandom,\
        overwrite,readseq,ycsba,ycsbb,ycsbc,ycsbf,readwriterandom,readseq,deleterandom,\
        readreverse,ycsbd,ycsbe,readseq,deleterange,readseq,fillrandbatch,readseq,fill100Krandom,\
        readseq,queue,readseq";
    for flags in [
        ["--num=20000", "--value_size_max=300"],
        ["--num=12345", "--seed=7"],
        ["--num=20000", "--threads=2"],
    ] {
        let of = |program: &Path| -> Vec<(Value, Value, Value)> {
            let dir = tempfile::tempdir().expect("a directory");
            let all = [&flags[..], &[benchmarks, "--json"]].concat();
            let result = |line: &Value| {
                (line["benchmark"].clone(), line["ops"].clone(), line["found"].clone())
            };
            lines(&run(program, dir.path(), &all)).iter().map(result).collect()
        };
        let (mut cpp, mut go) = (of(cpp), of(go));
        if flags.contains(&"--threads=2") {
            // Which thread reads what the other writes is chance, and what is left of a queue.
            let is_certain = |line: &(Value, Value, Value)| {
                !["ycsba", "ycsbb", "ycsbf", "readwriterandom", "ycsbd"]
                    .iter()
                    .any(|name| line.0 == *name)
            };
            for lines in [&mut cpp, &mut go] {
                lines.pop();
                lines.retain(is_certain);
            }
        }
        assert_eq!(go, cpp, "{flags:?}");
    }
}

#[test]
fn levels_are_those_that_a_benchmark_begins_with() {
    let Some(program) = in_cpp() else { return };
    let dir = tempfile::tempdir().expect("a directory");
    let flags = ["--num=300", "--json", "--benchmarks=fillseq,readseq,deleteseq,readseq"];
    let lines = lines(&run(program, dir.path(), &flags));
    assert!(lines[0].get("levels").is_none(), "{}", lines[0]);
    let levels = |at: usize| lines[at]["levels"].to_string();
    assert_eq!(
        [levels(1), levels(2), levels(3)],
        ["[[0,0],[1,300]]", "[[0,0],[1,300]]", "[[0,0],[1,0]]"]
    );
}

/// Whatever order puts them there: batches are how a database is made that takes too long otherwise.
#[test]
fn all_keys_of_readhit_exist() {
    for program in programs() {
        let dir = tempfile::tempdir().expect("a directory");
        let benchmarks =
            "--benchmarks=fillrandom,readhit,readrandom,fillrandbatch,readhit,readrandom";
        let flags = ["--num=5000", "--reads=3000", "--seed=7", "--batch=70", "--json", benchmarks];
        let lines = lines(&run(program, dir.path(), &flags));
        assert_eq!([&lines[1]["found"], &lines[4]["found"]], [3000, 3000]);
        let found = lines[2]["found"].as_u64().expect("a number");
        assert!(found > 1700 && found < 2100, "{found}");
        assert_eq!(lines[5]["found"], found);
    }
}

/// What an engine does not have is said in the place of a result.
#[test]
fn keyspaces_hold_what_was_put_in_them() {
    for program in programs() {
        let dir = tempfile::tempdir().expect("a directory");
        let flags = [
            "--benchmarks=createkeyspaces,fillkeyspaces,readkeyspaces,fillexpiring",
            "--keyspaces=30",
            "--num=3000",
            "--threads=2",
            "--json",
        ];
        let lines = lines(&run(program, dir.path(), &flags));
        assert!(lines[3]["unsupported"].is_string());
        if lines[0]["unsupported"].is_string() {
            assert_eq!(Some(program), in_go());
            continue;
        }
        assert_eq!([&lines[0]["ops"], &lines[1]["ops"]], [30, 3000]);
        // A hundred keys in each, drawn a hundred times: 63 of them are there.
        let found = lines[2]["found"].as_u64().expect("a number");
        assert!(found > 1700 && found < 2100, "{found}");
    }
}

#[test]
fn a_timed_benchmark_reports_every_interval_and_a_limit_cuts_others_short() {
    for program in programs() {
        let dir = tempfile::tempdir().expect("a directory");
        let timed = [
            "--num=1000",
            "--benchmarks=fillseq,mixedpareto",
            "--duration=0.4",
            "--interval=0.1",
            "--json",
        ];
        let lines_of_timed = lines(&run(program, dir.path(), &timed));
        let seconds: Vec<f64> =
            lines_of_timed.iter().filter_map(|line| line["second"].as_f64()).collect();
        // More of them if the machine was in the last operation's way.
        assert!(seconds.starts_with(&[0.1, 0.2, 0.3, 0.4]), "{seconds:?}");
        let total = &lines_of_timed[lines_of_timed.len() - 1];
        let within: u64 = lines_of_timed
            .iter()
            .filter_map(|line| line["series"].is_string().then(|| line["ops"].as_u64())?)
            .sum();
        assert!(within <= total["ops"].as_u64().expect("ops"));
        assert!(total.get("truncated").is_none());

        let cut = lines(&run(
            program,
            dir.path(),
            &["--num=900000000", "--benchmarks=overwrite", "--time_limit=0.05", "--json"],
        ));
        assert_eq!(cut[0]["truncated"], true);
    }
}

#[test]
fn an_open_loop_keeps_its_rate() {
    let Some(program) = in_cpp() else { return };
    let dir = tempfile::tempdir().expect("a directory");
    for threads in ["--threads=1", "--threads=3"] {
        let flags = [
            "--num=400",
            "--benchmarks=fillseq,ycsba,mixedpareto",
            "--rate=2000",
            "--duration=0.2",
            "--json",
            threads,
        ];
        let lines = lines(&run(program, dir.path(), &flags));
        let of = |at: usize, key: &str| lines[at][key].as_f64().expect("a number");
        // Nothing begins before it is due: the last of 400 operations after 399 / 2,000 seconds.
        for at in [0, 1] {
            assert!(of(at, "ops") == 400.0 && of(at, "seconds") >= 0.1995, "{}", lines[at]);
        }
        assert!(of(2, "ops") <= 1.0 + 2000.0 * of(2, "seconds"), "{}", lines[2]);
    }
    // A scan is no single operation: at one a second it would be cut short. A batch is one.
    for threads in ["--threads=1", "--threads=3"] {
        let benchmarks = "--benchmarks=fillseqbatch,readseq";
        let flags = ["--num=400", benchmarks, "--rate=1", "--time_limit=60", "--json", threads];
        let scan = &lines(&run(program, dir.path(), &flags))[1];
        assert!(scan["ops"] == 400 && scan["truncated"].is_null(), "{scan}");
    }
    let flags =
        ["--num=400000000", "--benchmarks=overwrite", "--rate=100", "--time_limit=0.1", "--json"];
    let cut = lines(&run(program, dir.path(), &flags));
    assert!(cut[0]["truncated"] == true && cut[0]["ops"].as_u64() < Some(100), "{}", cut[0]);
}

#[test]
fn a_trace_is_replayed_and_a_broken_one_is_named() {
    let Some(program) = in_cpp() else { return };
    let dir = tempfile::tempdir().expect("a directory");
    let db = dir.path().join("db");
    let sample = engines().join("../trace/sample.trace");
    let replay = |trace: &Path, benchmarks| {
        run(program, &db, &[&format!("--trace={}", trace.display()), "--json", benchmarks])
    };
    let lines = lines(&replay(&sample, "--benchmarks=replay,readseq"));
    assert_eq!((&lines[0]["ops"], &lines[0]["found"]), (&11.into(), &8.into()));
    assert_eq!(lines[1]["ops"], 3);

    let broken = dir.path().join("broken.trace");
    let whole = fs::read(&sample).expect("the sample");
    for (bytes, what) in [
        ([&whole[..], &[9, 0]].concat(), "no such kind of record"),
        (b"something else".to_vec(), "not a trace of version 1"),
        ([&whole[..16], &[2, 0, 0, 0xff, 0xff, 0xff, 0xff, 1]].concat(), "more than 64 MiB"),
    ] {
        fs::write(&broken, bytes).expect("write");
        let output = replay(&broken, "--benchmarks=replay");
        let problem = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{what}");
        assert!(problem.contains(what) && problem.contains("broken.trace"), "{problem}");
    }
    let output = run(program, &db, &["--benchmarks=replay"]);
    assert_eq!(output.status.code(), Some(2));
    // What the end of the file cuts off is dropped: the deletion of c is half there.
    let end = whole.windows(3).position(|part| part == [3, 1, b'c']).expect("a deletion") + 2;
    fs::write(&broken, &whole[..end]).expect("write");
    let cut = self::lines(&replay(&broken, "--benchmarks=replay"));
    assert_eq!(cut[0]["ops"], 3);
}

#[test]
fn wrong_use_and_foreign_directories_are_refused() {
    for program in programs() {
        let dir = tempfile::tempdir().expect("a directory");
        for wrong in [
            "--num=1x",
            "--num=0",
            "--benchmarks=nothing",
            "--frobnicate=1",
            "--key_size=2",
            "--variant=other",
        ] {
            let output = run(program, dir.path(), &[wrong]);
            assert_eq!(output.status.code(), Some(2), "{wrong}");
            assert_eq!(String::from_utf8_lossy(&output.stderr).lines().count(), 1, "{wrong}");
        }
        let precious = dir.path().join("precious");
        fs::write(&precious, "not a benchmark's").expect("write");
        let output = run(program, dir.path(), &["--benchmarks=fillseq"]);
        assert_eq!(output.status.code(), Some(3));
        assert_eq!(fs::read_to_string(precious).expect("read"), "not a benchmark's");
    }
}
