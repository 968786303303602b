//! Failures: each has a clear message, a status that says so, and nothing lost.

mod common;

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use std::{fs, io};

use common::{CELLS, Lab, failed_in_part, refused, stderr, stdout, succeeded, write_program};
use lab_harness::run::Status;
use terrace_testkit::skip::skip;

#[test]
fn an_unknown_name_is_refused_with_the_known_ones() {
    let lab = Lab::with(&["fast"]);
    refused(&lab.lab(&["run", "huge"]), &["\"huge\"", "tiny"]);
    refused(&lab.run(&["--engines", "oracle"]), &["\"oracle\"", "terrace, fake-fast"]);
    refused(&lab.run(&["--sections", "deletes"]), &["\"deletes\"", "writes, reads, fills"]);
    refused(&lab.run(&["--reps", "0"]), &["--reps"]);
    refused(&lab.run(&["--time-limit=-1"]), &["--time-limit"]);
    refused(&lab.lab(&["report", "/nonexistent"]), &["/nonexistent", "there is no run here"]);
    assert!(lab.trace().is_empty(), "nothing was run");
}

#[test]
fn no_space_is_found_before_anything_is_run() {
    let lab = Lab::new();
    refused(&lab.run(&["--num", "1000000000000"]), &["no space", "wants up to"]);
    assert!(lab.trace().is_empty());
}

#[test]
fn not_enough_memory_is_found_before_anything_is_run() {
    let lab = Lab::new();
    let path = lab.dir().join("suites/tiny.toml");
    let suite = fs::read_to_string(&path).expect("read");
    fs::write(&path, suite.replace("1 MiB", "4096 GiB")).expect("write");
    refused(&lab.run(&[]), &["not enough memory", "are available"]);
}

#[test]
fn a_trace_that_cannot_be_read_is_named_before_anything_is_run() {
    let lab = Lab::new();
    let path = lab.root().join("some.trace");
    let trace = path.display().to_string();
    for (bytes, what) in [
        (&b"terrace trace 1\n\x09\x00"[..], "broken at byte 18: there is no such kind"),
        (b"terrace trace 2\n", "not a trace of version 1"),
        (b"terrace trace 1\n\x05\x00\x07mis", "there is no operation in this trace"),
    ] {
        fs::write(&path, bytes).expect("write");
        refused(&lab.lab(&["trace", "replay", &trace]), &[&trace, what]);
    }
    fs::remove_file(&path).expect("remove");
    for command in ["replay", "show"] {
        refused(&lab.lab(&["trace", command, &trace]), &[&trace, "No such file"]);
    }
    assert!(lab.trace().is_empty(), "nothing was run");
}

#[test]
fn what_cannot_be_recorded_is_said() {
    let lab = Lab::new();
    let library = lab.root().join("libleveldb.so.1");
    let (library, out) = (library.display().to_string(), lab.root().join("traces"));
    let out = out.display().to_string();
    let record = ["trace", "record", "--library", &library, "--out", &out, "--"];
    refused(&lab.lab(&[&record[..], &["true"]].concat()), &[&library, "make dropin"]);
    // Any library that a program can be started with.
    fs::write(&library, b"").expect("write");
    refused(&lab.lab(&[&record[..], &["true"]].concat()), &["true", "opened no database"]);
    refused(&lab.lab(&[&record[..], &["/nonexistent"]].concat()), &["/nonexistent"]);
}

#[test]
fn a_directory_that_cannot_be_written_is_named() {
    let lab = Lab::new();
    let file = lab.root().join("file");
    fs::write(&file, "mine").expect("write");
    let below = file.join("run").display().to_string();
    refused(&lab.lab(&["run", "tiny", "--out", &below]), &[&below]);
    refused(&lab.run(&["--db", &below]), &[&below]);
    // Where even root may not write.
    refused(&lab.lab(&["run", "tiny", "--out", "/proc/self"]), &["/proc/self"]);
    assert_eq!(fs::read_to_string(&file).expect("read"), "mine");
    assert!(lab.trace().is_empty());
}

#[test]
fn a_missing_library_is_a_column_with_a_reason() {
    let lab = Lab::new();
    lab.engine(
        "fake",
        "sources = ['a.cc']\nprobe = 'no/such/header.h'\npackages = ['libnosuch-dev']\nvariants = ['x']",
    );
    lab.engine("gone", "missing = 'not available'");
    lab.engine("broken", "sources = ['a.cc']");
    fs::write(lab.dir().join("engines/broken/a.cc"), "int main() { return nothing; }")
        .expect("write");
    succeeded(&lab.run(&["--reps", "1"]));
    let (run, measurements) = lab.results();
    assert_eq!(measurements.iter().count(), CELLS * 4);
    let (status, reason) = lab.cell("x", "reads", 2);
    assert_eq!(status, Status::Missing);
    assert!(reason.contains("apt-get install libnosuch-dev"), "{reason}");
    let missing =
        |id: &str| run.engine(id).and_then(|engine| engine.missing.clone()).unwrap_or_default();
    assert_eq!(missing("gone"), "not available");
    assert!(
        missing("broken").contains("does not build") && missing("broken").contains("nothing"),
        "{}",
        missing("broken")
    );
    assert!(run.complete);
}

#[test]
fn a_program_in_go_is_built_once_or_says_what_it_lacks() {
    let lab = Lab::new();
    lab.engine("gopher", "go = '.'\nasked_for = true");
    let dir = lab.dir().join("engines/gopher");
    let lacks = |go: &str| {
        let output = lab.command(&["describe", "gopher"]).env("GO", go).output().expect("lab runs");
        succeeded(&output);
        stdout(&output)
    };
    assert!(lacks("go").contains("there is no go.mod"));
    fs::write(dir.join("go.mod"), "module gopher\n\ngo 1.18\n").expect("write");
    let without = lacks("/no/such/go");
    assert!(without.contains("there is no Go") && without.contains("golang-go"), "{without}");
    let old = lab.root().join("old-go");
    write_program(&old, "#!/bin/sh\necho go1.17\n");
    assert!(lacks(&old.display().to_string()).contains("too old, its module wants Go 1.18"));
    // The run goes on without it.
    let run = lab.command(&["run", "tiny", "--engines", "terrace,gopher", "--reps", "1", "--out"]);
    let output = { run }.arg(lab.out()).env("GO", "/no/such/go").output().expect("lab runs");
    failed_in_part(&output);
    let (run, _) = lab.results();
    let missing = run.engine("gopher").and_then(|engine| engine.missing.clone());
    assert!(missing.is_some_and(|reason| reason.contains("there is no Go")));

    if !common::has_go() {
        return;
    }
    let program = |words: &str| {
        let text = format!("package main\n\nfunc main() {{ {words} }}\n");
        fs::write(dir.join("main.go"), text).expect("write");
    };
    program("return nothing");
    assert!(lacks("go").contains("nothing"), "the compiler's message");
    program(r#"println("{}")"#);
    // It prints where no description is looked for.
    assert!(lacks("go").contains("not a description"));
    let built = lab.root().join("out/lab/engines/gopher");
    let time = |path: &Path| fs::metadata(path).and_then(|file| file.modified()).expect("built");
    let first = time(&built);
    lacks("go");
    assert_eq!(time(&built), first, "built again without a change");
    program(r#"print("{}")"#);
    lacks("go");
    assert_ne!(time(&built), first, "not built again after a change");
}

#[test]
fn an_engine_that_wants_more_memory_than_its_cell_has_cannot_do_it() {
    let lab = Lab::with(&["hungry", "plain"]);
    let suite = lab.dir().join("suites/tiny.toml");
    let text = fs::read_to_string(&suite).expect("a suite");
    let limited = r#"{ benchmark = "overwrite", settings = { memory_limit = "64 MiB" } }"#;
    fs::write(&suite, text.replace("\"overwrite\"", limited)).expect("write");
    let output = lab.run(&["--reps", "1"]);
    let (status, reason) = lab.cell("plain", "writes", 1);
    if reason.contains("cannot limit memory") {
        return skip("right", reason);
    }
    assert_eq!(status, Status::Ok, "{reason}");
    succeeded(&output);
    let (status, reason) = lab.cell("hungry", "writes", 1);
    assert_eq!(status, Status::Unsupported, "{reason}");
    assert!(reason.contains("more than the 64 MiB of memory of this cell"), "{reason}");
    assert_eq!(lab.cell("hungry", "writes", 0).0, Status::Ok);
    assert_eq!(lab.cell("hungry", "fills", 0).0, Status::Ok);
}

#[test]
fn an_engine_that_fails_is_a_cell_that_says_so() {
    let lab = Lab::with(&["crash", "killed", "junk", "silent", "lying", "crashread", "cannot"]);
    failed_in_part(&lab.run(&["--reps", "1"]));
    let failed = |variant, words: &str| {
        let (status, reason) = lab.cell(variant, "writes", 1);
        assert_eq!(status, Status::Failed, "{variant}");
        assert!(reason.contains(words), "{variant}: {reason}");
        // Cells that read that database have no figure either, for the same reason; another
        // database is not concerned.
        let (status, reason) = lab.cell(variant, "reads", 1);
        assert_eq!(status, Status::Failed, "{variant}");
        assert!(reason.contains("overwrite") && reason.contains(words), "{variant}: {reason}");
        assert_eq!(lab.cell(variant, "writes", 0).0, Status::Ok, "{variant}");
        assert_eq!(lab.cell(variant, "fills", 0).0, Status::Ok, "{variant}");
    };
    failed("crash", "ended with status 3: the tree is on fire");
    failed("killed", "killed by signal 9");
    failed("junk", "printed what is not a result");
    failed("silent", "ended without a result");
    failed("lying", "reported 2000 operations a second for overwrite, but 10 in 0.01 s");
    // A reader that fails leaves the database as it was.
    assert_eq!(lab.cell("crashread", "reads", 0).0, Status::Failed);
    assert_eq!(lab.cell("crashread", "reads", 1).0, Status::Ok);
    assert_eq!(
        lab.cell("cannot", "reads", 0),
        (Status::Unsupported, "it keeps no order".to_owned())
    );
    assert_eq!(lab.cell("cannot", "reads", 1).0, Status::Ok);
    assert!(lab.results().0.complete);

    // Only what failed is tried again.
    let calls = lab.trace().len();
    failed_in_part(&lab.run(&["--resume"]));
    let again = lab.trace().split_off(calls);
    assert!(
        again.iter().all(|call| !["terrace", "cannot"].iter().any(|fine| call.starts_with(fine)))
    );
    assert!(again.iter().any(|call| call.starts_with("crash ")), "{again:?}");
}

#[test]
fn writes_that_are_cut_short_are_repeated_in_batches_for_readers() {
    let lab = Lab::with(&["short", "shorter", "single"]);
    succeeded(&lab.run(&["--reps", "1"]));
    for variant in ["short", "shorter"] {
        let refilled = format!("{variant} fillrandbatch waitcompact");
        assert_eq!(
            lab.trace().iter().filter(|call| **call == refilled).count(),
            1,
            "{:?}",
            lab.trace()
        );
        assert_eq!(lab.cell(variant, "writes", 0).0, Status::Truncated);
    }
    let (status, reason) = lab.cell("short", "reads", 2);
    assert!(status == Status::Ok && reason.contains("random writes in batches"), "{reason}");
    assert!(lab.measurement("short", "reads", 2).is_comparable());

    // Batches that fail are no way; then it is written as it was before.
    let (status, reason) = lab.cell("single", "reads", 2);
    assert!(status == Status::Ok && reason.contains("random writes of"), "{reason}");

    // A database that batches do not complete either is read, but the figure is marked and compared
    // with nothing.
    let (status, reason) = lab.cell("shorter", "reads", 2);
    assert!(status == Status::Truncated && reason.contains("not complete"), "{reason}");
    let read = lab.measurement("shorter", "reads", 2);
    assert!(read.is_measured() && !read.is_comparable());
    let (run, measurements) = lab.results();
    assert!(measurements.rate(run.figure, "reads", 2, "fake-short").is_some());
    assert!(measurements.rate(run.figure, "reads", 2, "fake-shorter").is_none());
    assert!(run.complete);
}

#[test]
fn a_database_for_other_cells_has_its_time_under_a_budget_too() {
    let lab = Lab::with(&["short"]);
    succeeded(&lab.run(&["--reps", "1", "--time-limit", "10", "--budget", "1"]));
    let log = fs::read_to_string(lab.out().join("logs/fake-short.txt")).expect("a log");
    let limit = |benchmarks: &str| -> f64 {
        let line = log
            .lines()
            .find(|line| line.contains(&format!("--benchmarks={benchmarks}")))
            .expect("a command");
        let (_, rest) = line.split_once("--time_limit=").expect("a limit");
        rest.split('"').next().and_then(|seconds| seconds.parse().ok()).expect("seconds")
    };
    // Of a minute two fifths are set apart; writes that are measured have what is left, divided.
    assert!(limit("fillrandbatch") > 20.0 && limit("fillrandom") <= 10.0, "{log}");
}

#[test]
fn a_writer_that_does_not_keep_its_pace_is_said_beside_its_readers() {
    let lab = Lab::with(&["late"]);
    let suite = lab.dir().join("suites/tiny.toml");
    let text = fs::read_to_string(&suite).expect("a suite");
    let paced = r#"{ benchmark = "readwhilewriting", section = "reads", sweep = { name = "write_rate", values = [1000] } }"#;
    let readers = r#"{ benchmark = "readseq", section = "reads" }"#;
    fs::write(&suite, text.replace(readers, paced)).expect("write");
    succeeded(&lab.run(&["--reps", "1"]));
    assert_eq!(
        lab.cell("late", "reads", 0),
        (Status::Ok, "the writer did 500 of 1000 operations a second".to_owned())
    );
    let (_, measurements) = lab.results();
    let of_terrace = measurements.of("reads", 0, "terrace");
    assert!(of_terrace[0].status == Status::Ok && of_terrace[0].reason.is_none());
}

#[test]
fn an_engine_that_hangs_is_killed() {
    let lab = Lab::with(&["hang"]);
    let began = Instant::now();
    succeeded(&lab.run(&["--reps", "1", "--time-limit", "2"]));
    assert!(began.elapsed() < Duration::from_secs(300));
    let (status, reason) = lab.cell("hang", "writes", 1);
    assert!(status == Status::Timeout && reason.contains("killed after"), "{reason}");
    assert_eq!(lab.cell("hang", "fills", 0).0, Status::Ok);
}

#[test]
fn a_database_that_is_not_closed_is_not_read_from() {
    let lab = Lab::with(&["badclose", "hangclose"]);
    failed_in_part(&lab.run(&["--reps", "1", "--time-limit", "2"]));
    for (variant, words) in
        [("badclose", "status 3: the disk is gone"), ("hangclose", "killed after")]
    {
        // An earlier measurement is a figure, with the fault beside it.
        let (status, reason) = lab.cell(variant, "writes", 1);
        assert!(
            status == Status::Ok && reason.contains("not closed") && reason.contains(words),
            "{variant}: {reason}"
        );
        assert_eq!(lab.cell(variant, "writes", 0), (Status::Ok, String::new()), "{variant}");
        // Every reader of it has the same reason, none is taken for the one that hung.
        for cell in 0..3 {
            let (status, reason) = lab.cell(variant, "reads", cell);
            let said = reason.contains("not closed after overwrite") && reason.contains(words);
            assert!(status == Status::Failed && said, "{variant} {cell}: {reason}");
        }
        assert_eq!(lab.cell(variant, "fills", 0), (Status::Ok, String::new()), "{variant}");
    }
}

#[test]
fn a_program_that_only_reads_and_fails_afterwards_leaves_the_database_as_it_was() {
    let lab = Lab::new();
    lab.engine("fake", "script = 'fake.sh'\nvariants = ['badclose']");
    let suites = lab.dir().join("suites");
    let tiny = fs::read_to_string(suites.join("tiny.toml")).expect("a suite");
    fs::write(suites.join("readers.toml"), tiny.replace("  \"overwrite\",\n", "")).expect("write");
    succeeded(&lab.lab(&["run", "readers", "--reps", "1", "--out", &lab.out_text()]));
    let (status, reason) = lab.cell("badclose", "reads", 0);
    assert!(status == Status::Ok && reason.contains("not closed"), "{reason}");
    assert_eq!(lab.cell("badclose", "reads", 1), (Status::Ok, String::new()));
}

#[test]
fn what_has_a_duration_is_killed_without_a_time_limit_too() {
    let lab = Lab::with(&["hangtimed"]);
    let suites = lab.dir().join("suites");
    let tiny = fs::read_to_string(suites.join("tiny.toml")).expect("a suite");
    let timed = tiny.replace("time_limit = 1\nshort", "time_limit = 0\nduration = 0.1\nshort");
    fs::write(suites.join("timed.toml"), timed.replace("\"overwrite\"", "\"readpareto\""))
        .expect("write");
    let out = lab.out_text();
    succeeded(&lab.lab(&["run", "timed", "--reps", "1", "--grace", "1", "--out", &out]));
    let (status, reason) = lab.cell("hangtimed", "writes", 1);
    assert!(status == Status::Timeout && reason.contains("readpareto"), "{reason}");
    assert_eq!(lab.cell("hangtimed", "reads", 0).0, Status::Ok);
}

#[test]
fn a_wrong_result_disqualifies() {
    let lab = Lab::with(&["wrong", "fast"]);
    let output = lab.run(&["--reps", "1"]);
    failed_in_part(&output);
    assert!(stderr(&output).contains("fake-wrong is DISQUALIFIED"), "{}", stderr(&output));
    let (status, reason) = lab.cell("wrong", "writes", 0);
    assert!(status == Status::Disqualified && reason.contains("0000000000000000"), "{reason}");
    assert!(lab.trace().iter().all(|call| !call.starts_with("wrong ") || call == "wrong selftest"));
    assert_eq!(lab.cell("fast", "writes", 0).0, Status::Ok);
}

#[test]
fn a_self_test_cannot_be_declined() {
    let lab = Lab::with(&["untested", "fast"]);
    failed_in_part(&lab.run(&["--reps", "1"]));
    let (status, reason) = lab.cell("untested", "writes", 0);
    assert!(status != Status::Ok && reason.contains("it would rather not"), "{status:?} {reason}");
    assert!(
        lab.trace()
            .iter()
            .all(|call| !call.starts_with("untested ") || call == "untested selftest")
    );
    assert_eq!(lab.cell("fast", "writes", 0).0, Status::Ok);
}

#[test]
fn an_engine_toml_with_an_error_is_a_column_with_a_reason() {
    let lab = Lab::with(&["fast"]);
    lab.engine("unknown", "script = 'fake.sh'\nvarients = ['x']");
    lab.engine("cut", "script = 'fake");
    lab.engine("nothing", "title = 'Nothing'");
    succeeded(&lab.run(&["--reps", "1"]));
    let (run, _) = lab.results();
    let missing =
        |id: &str| run.engine(id).and_then(|engine| engine.missing.clone()).unwrap_or_default();
    assert!(missing("unknown").contains("unknown field `varients`"), "{}", missing("unknown"));
    assert!(missing("cut").contains("TOML parse error"), "{}", missing("cut"));
    assert!(missing("nothing").contains("exactly one of"), "{}", missing("nothing"));
    assert_eq!(lab.cell("fast", "writes", 0).0, Status::Ok);
    let output =
        lab.run(&["--engines", "cut", "--out", &lab.root().join("asked").display().to_string()]);
    assert!(!output.status.success() && stderr(&output).contains("TOML parse error"), "{output:?}");
}

#[test]
fn a_script_without_its_engine_is_listed_with_the_reason() {
    let lab = Lab::with(&["fast"]);
    lab.engine("absent", "script = 'absent.sh'");
    let program = lab.dir().join("engines/absent/absent.sh");
    write_program(&program, "#!/bin/sh\necho 'there is no interpreter' >&2\nexit 1\n");
    let list = lab.lab(&["list"]);
    succeeded(&list);
    let text = stdout(&list);
    let line = text.lines().find(|line| line.contains("absent")).unwrap_or_default();
    assert!(line.contains("there is no interpreter"), "{text}");
}

#[test]
fn an_engine_that_finds_other_counts_has_no_figure() {
    let lab = Lab::with(&["fast", "forgetful", "short"]);
    failed_in_part(&lab.run(&["--reps", "1"]));
    for cell in [1, 2] {
        let (status, reason) = lab.cell("forgetful", "reads", cell);
        assert!(
            status == Status::Failed && reason.contains("found 6") && reason.contains("found 7"),
            "{reason}"
        );
        assert!(lab.measurement("forgetful", "reads", cell).result.is_none());
        assert_eq!(lab.cell("fast", "reads", cell).0, Status::Ok);
    }
    assert_eq!(lab.cell("forgetful", "reads", 0).0, Status::Ok);
    // Of a database that was written in another way nothing is known.
    assert_eq!(lab.cell("short", "reads", 1).0, Status::Ok);
    assert!(lab.results().0.complete);
}

#[test]
fn earlier_results_are_never_overwritten() {
    let lab = Lab::new();
    succeeded(&lab.run(&["--reps", "1"]));
    let path = lab.out().join("measurements.jsonl");
    let before = fs::read(&path).expect("read");
    refused(&lab.run(&[]), &["there is a run here already", "--resume"]);
    refused(&lab.run(&["--resume", "--num", "7"]), &["1000 entries"]);
    refused(&lab.run(&["--resume", "--sections", "fills"]), &["--sections"]);
    assert_eq!(fs::read(&path).expect("read"), before);

    // A broken line in the middle names itself, and the file stays as it is.
    let mut lines: Vec<String> =
        String::from_utf8(before).expect("text").lines().map(str::to_owned).collect();
    lines[2] = lines[2].replace("\"status\"", "\"state\"");
    let broken = lines.join("\n") + "\n";
    fs::write(&path, &broken).expect("write");
    for arguments in [vec!["--resume"], vec!["--resume", "--reps", "2"]] {
        refused(&lab.run(&arguments), &["measurements.jsonl, line 3"]);
    }
    refused(&lab.lab(&["report", &lab.out_text()]), &["measurements.jsonl, line 3"]);
    assert_eq!(fs::read_to_string(&path).expect("read"), broken);

    for (text, words) in [("", "not a run"), ("{}", "no schema"), (r#"{"schema":9}"#, "schema 9")] {
        fs::write(lab.out().join("run.json"), text).expect("write");
        refused(&lab.run(&["--resume"]), &["run.json", words]);
    }
    refused(
        &lab.lab(&["run", "tiny", "--resume", "--out", "/nonexistent"]),
        &["/nonexistent", "no run here"],
    );
}

#[test]
fn files_that_were_cut_off_are_named_and_left_as_they_are() {
    let lab = Lab::new();
    succeeded(&lab.run(&["--reps", "1"]));
    let (run, measurements) = (lab.out().join("run.json"), lab.out().join("measurements.jsonl"));
    let whole = fs::read(&run).expect("read");
    let out = lab.out_text();
    let all: [&[&str]; 3] = [&["report", &out], &["summary", &out], &["compare", &out, &out]];
    fs::write(&run, &whole[..whole.len() / 2]).expect("write");
    for command in all {
        refused(&lab.lab(command), &["run.json", "not a run", "EOF"]);
    }
    refused(&lab.run(&["--resume"]), &["run.json", "not a run"]);
    assert_eq!(fs::read(&run).expect("read").len(), whole.len() / 2);
    fs::write(&run, whole).expect("write");

    // What is not text, in the middle; the end of a line that an interrupted run left is dropped.
    let lines = fs::read(&measurements).expect("read");
    let mut broken = lines.clone();
    broken[40] = 0xff;
    fs::write(&measurements, &broken).expect("write");
    for command in all {
        refused(&lab.lab(command), &["measurements.jsonl, line 1"]);
    }
    assert_eq!(fs::read(&measurements).expect("read"), broken);
    fs::write(&measurements, &lines[..lines.len() - 9]).expect("write");
    succeeded(&lab.lab(&["report", &out]));
    assert_eq!(lab.results().1.iter().count(), CELLS - 1);
    succeeded(&lab.run(&["--resume"]));
    assert_eq!(lab.results().1.iter().count(), CELLS);

    // Without measurements there is nothing to report, which is not a report without figures.
    fs::remove_file(&measurements).expect("remove");
    for command in all {
        refused(&lab.lab(command), &[&out, "nothing was measured here", "measurements.jsonl"]);
    }
}

#[test]
fn a_suite_with_an_error_is_named_and_hinders_no_other() {
    let lab = Lab::new();
    let suites = lab.dir().join("suites");
    let tiny = fs::read_to_string(suites.join("tiny.toml")).expect("a suite");
    for (name, text, words) in [
        ("cut", tiny[..tiny.len() / 2].to_owned(), "TOML parse error at line"),
        ("field", tiny.replace("rounds = 2", "rouns = 2"), "unknown field `rouns`"),
        ("benchmark", tiny.replace("\"overwrite\"", "\"overwhelm\""), "overwhelm"),
        ("empty", String::new(), "missing field"),
    ] {
        let path = suites.join(format!("{name}.toml"));
        fs::write(&path, text).expect("write");
        let file = format!("{name}.toml");
        refused(&lab.lab(&["run", name, "--out", &lab.out_text()]), &[&file, words]);
        assert!(!lab.out().exists(), "{name}");
        let list = lab.lab(&["list"]);
        refused(&list, &[&file, words]);
        let text = stdout(&list);
        assert!(text.contains(&format!("{name}: CANNOT BE RUN")), "{text}");
        assert!(text.contains("tiny: Tiny") && text.contains("can be run"), "{text}");
        succeeded(&lab.lab(&["run", "tiny", "--reps", "1", "--out", &lab.out_text()]));
        fs::remove_dir_all(lab.out()).expect("remove");
        fs::remove_file(path).expect("remove");
    }
}

#[test]
fn a_missing_compiler_and_an_offline_registry_are_columns_with_reasons() {
    let lab = Lab::new();
    lab.engine("compiled", "sources = ['a.cc']");
    fs::write(lab.dir().join("engines/compiled/a.cc"), "int main() {}").expect("write");
    lab.engine("crated", "cargo = 'lab-crated'");
    // A registry that cannot be reached, as Cargo says it.
    let cargo = lab.root().join("cargo");
    let script = "#!/bin/sh\necho 'warning: spurious network error (3 tries remaining)' >&2\n\
        echo 'error: failed to download from `https://index.crates.io/config.json`' >&2\n\
        printf '\\nCaused by:\\n  [6] Could not resolve hostname\\n' >&2\nexit 101\n";
    write_program(&cargo, script);
    let out = lab.out_text();
    let mut command = lab.command(&["run", "tiny", "--reps", "1", "--out", &out]);
    command.env("CXX", "/no/such/compiler").env("CARGO", &cargo);
    let output = command.output().expect("lab runs");
    succeeded(&output);
    let (run, measurements) = lab.results();
    let missing = |id: &str| run.engine(id).and_then(|e| e.missing.clone()).unwrap_or_default();
    let said = missing("compiled");
    assert!(said.contains("no C++ compiler (/no/such/compiler") && said.contains("CXX"), "{said}");
    let said = missing("crated");
    assert!(said.contains("failed to download from `https://index.crates.io"), "{said}");
    assert!(said.contains("config.json`: [6] Could not resolve hostname (all of it:"), "{said}");
    let errors = said.split("all of it: ").nth(1).and_then(|rest| rest.strip_suffix(')'));
    let errors = fs::read_to_string(errors.expect("where all of it is")).expect("a file");
    assert!(errors.contains("Could not resolve hostname"), "{errors}");
    for id in ["compiled", "crated"] {
        assert!(stderr(&output).contains(&format!("{id}: NOT RUN: ")), "{}", stderr(&output));
        assert_eq!(measurements.get("reads", 0, id, 0).expect("a cell").status, Status::Missing);
    }
    assert!(run.complete && measurements.iter().filter(|m| m.engine == "terrace").count() == CELLS);

    // Nobody that can be run is an error.
    let mut command = lab.command(&["run", "tiny", "--engines", "compiled", "--out", "none"]);
    let output = command.current_dir(lab.root()).env("CXX", "/no/such/compiler").output();
    refused(&output.expect("lab runs"), &["none of the engines can be run"]);
}

/// A file system of its own, in memory; `None`, said on standard error, without the right to it.
struct Mounted(std::path::PathBuf);

impl Mounted {
    fn new(dir: std::path::PathBuf, size: &str) -> Option<Mounted> {
        fs::create_dir_all(&dir).expect("create");
        let option = format!("size={size}");
        let mount =
            Command::new("mount").args(["-t", "tmpfs", "-o", &option, "lab"]).arg(&dir).output();
        if mount.is_ok_and(|output| output.status.success()) {
            return Some(Mounted(dir));
        }
        skip("mount", "there is no right to mount a file system");
        None
    }

    fn grow(&self, size: &str) {
        let option = format!("remount,size={size}");
        succeeded(
            &Command::new("mount").args(["-o", &option]).arg(&self.0).output().expect("mount"),
        );
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).output();
    }
}

#[test]
fn a_full_disk_under_the_results_loses_nothing() {
    let lab = Lab::with(&["fast"]);
    let Some(mounted) = Mounted::new(lab.root().join("small"), "160k") else { return };
    let out = mounted.0.join("run");
    let (out_text, db) = (out.display().to_string(), lab.root().join("db").display().to_string());
    let command =
        ["run", "tiny", "--reps", "400", "--budget", "10", "--out", &out_text, "--db", &db];
    let output = lab.lab(&command);
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    let said = stderr(&output);
    // Whichever file is the first that does not fit.
    for words in [": No space left on device", "what was measured is in", "--resume"] {
        assert!(said.contains(words), "{words}: {said}");
    }
    let kept = lab_harness::run::Directory::new(&out).read().expect("what was measured");
    let count = kept.1.iter().count();
    assert!(count > CELLS && !kept.0.complete, "{count}");

    // With room it goes on where it was.
    mounted.grow("64m");
    let calls = lab.trace().len();
    let more = ["run", "tiny", "--resume", "--budget", "0.02", "--out", &out_text, "--db", &db];
    succeeded(&lab.lab(&more));
    assert!(lab.trace().len() > calls);
    let (_, measurements) = lab_harness::run::Directory::new(&out).read().expect("a run");
    assert!(measurements.iter().count() > count && out.join("report.html").exists());
    let again: Vec<_> = measurements.iter().take(count).collect();
    assert!(kept.1.iter().zip(again).all(|(before, now)| before == now));
}

#[test]
fn a_full_disk_under_the_databases_is_a_cell_that_says_so() {
    let lab = Lab::with(&["full"]);
    let Some(mounted) = Mounted::new(lab.root().join("small"), "600m") else { return };
    let db = mounted.0.join("db").display().to_string();
    failed_in_part(&lab.run(&["--reps", "1", "--db", &db]));
    let (status, reason) = lab.cell("full", "writes", 1);
    assert!(status == Status::Failed && reason.contains("No space left on device"), "{reason}");
    // The room is there again for what comes next.
    assert_eq!(lab.cell("full", "fills", 0).0, Status::Ok);
    let (run, measurements) = lab.results();
    assert!(run.complete && measurements.iter().filter(|m| m.status == Status::Ok).count() > CELLS);
}

#[test]
fn runs_of_two_machines_are_not_taken_for_one() {
    let lab = Lab::new();
    succeeded(&lab.run(&["--reps", "1"]));
    let first = lab.out_text();
    let second = lab.root().join("second").display().to_string();
    succeeded(&lab.lab(&["run", "tiny", "--reps", "1", "--out", &second]));
    let directory = lab_harness::run::Directory::new(second.as_ref());
    let mut run = directory.read_run().expect("a run");
    run.machine.cpu = "Another".to_owned();
    directory.write_run(&run).expect("written");
    let before = fs::read(lab.root().join("second/measurements.jsonl")).expect("read");

    let pooled = lab.root().join("pooled").display().to_string();
    let both = ["report", &first, &second, "--out", &pooled];
    refused(&lab.lab(&both), &["two machines", "then Another", "lab compare"]);
    assert!(!lab.root().join("pooled").exists());
    refused(&lab.lab(&["summary", &first, &second]), &["two machines"]);
    let compared = lab.lab(&["compare", &first, &second]);
    succeeded(&compared);
    assert!(stdout(&compared).contains("THE MACHINES DIFFER"));
    let resume = ["run", "tiny", "--resume", "--reps", "2", "--out", &second];
    refused(&lab.lab(&resume), &["another machine", "Another, then"]);
    assert_eq!(fs::read(lab.root().join("second/measurements.jsonl")).expect("read"), before);
    assert_eq!(directory.read_run().expect("a run"), run);

    // Another suite may be of another machine; the page says so.
    run.suite = "other".to_owned();
    directory.write_run(&run).expect("written");
    let output = lab.lab(&both);
    succeeded(&output);
    assert!(stderr(&output).contains("different machines"), "{}", stderr(&output));
    let page = fs::read_to_string(lab.root().join("pooled/report.html")).expect("a page");
    assert!(page.contains("The suites on this page were measured on different machines"));

    // A newer system, and other costs, are worth a note.
    run.suite = "tiny".to_owned();
    run.machine.cpu = lab.results().0.machine.cpu;
    run.machine.kernel = "Linux 1.0".to_owned();
    // Nine times those of the first run; what was measured for this one does not matter.
    run.machine.costs = lab
        .results()
        .0
        .machine
        .costs
        .map(|costs| lab_harness::run::Costs { memory_ns: costs.memory_ns * 9.0, ..costs });
    directory.write_run(&run).expect("written");
    let summary = lab.lab(&["report", &first, &second, "--out", &pooled]);
    succeeded(&summary);
    let text = stdout(&summary);
    assert!(text.contains("then Linux 1.0") && text.contains("load from memory"), "{text}");
}

#[test]
fn an_interrupt_keeps_what_was_measured() {
    let lab = Lab::with(&["slow"]);
    let out = lab.out_text();
    let command = ["run", "tiny", "--reps", "1", "--time-limit", "0", "--out", &out];
    let child = lab
        .command(&command)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("lab runs");
    wait_for_slow(&lab);
    interrupt(&child);
    let output = child.wait_with_output().expect("lab ends");
    assert_eq!(output.status.code(), Some(130), "{}", stderr(&output));
    assert!(stderr(&output).contains("what was measured is kept"), "{}", stderr(&output));
    let (run, measurements) = lab.results();
    assert!(!run.complete);
    assert_eq!(measurements.iter().filter(|m| m.engine == "terrace").count(), CELLS - 1);
    assert_eq!(measurements.iter().filter(|m| m.engine == "fake-slow").count(), 0);

    // It goes on, with an engine that is well now.
    lab.engine("fake", "script = 'fake.sh'\nvariants = ['slow']");
    let script = lab.dir().join("engines/fake/fake.sh");
    let text = fs::read_to_string(&script).expect("read");
    fs::write(&script, text.replace("slow-*)", "never-*)")).expect("write");
    succeeded(&lab.run(&["--resume"]));
    assert!(lab.results().0.complete);
    assert_eq!(lab.results().1.iter().count(), CELLS * 2);
}

/// Waits until the engine `fake-slow` is being measured.
fn wait_for_slow(lab: &Lab) {
    let deadline = Instant::now() + Duration::from_secs(120);
    while !lab.trace().iter().any(|call| call.starts_with("slow fillrandom")) {
        assert!(Instant::now() < deadline, "the slow engine is never run");
        std::thread::yield_now();
    }
}

fn interrupt(child: &Child) {
    let pid = rustix::process::Pid::from_child(child);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).expect("a signal");
}

#[test]
fn an_interrupt_that_ends_the_reader_first_keeps_what_was_measured() {
    let lab = Lab::with(&["slow"]);
    let out = lab.out_text();
    let mut command =
        lab.command(&["run", "tiny", "--reps", "1", "--time-limit", "0", "--out", &out]);
    // As `lab run 2>&1 | tee log` has it.
    let (reader, writer) = io::pipe().expect("a pipe");
    command.stdout(writer.try_clone().expect("a descriptor")).stderr(writer);
    let mut child = command.spawn().expect("lab runs");
    wait_for_slow(&lab);
    drop(reader);
    interrupt(&child);
    assert_eq!(child.wait().expect("lab ends").code(), Some(130));
    let (run, measurements) = lab.results();
    assert!(!run.complete && measurements.iter().any(|m| m.engine == "terrace"));
    assert!(lab.out().join("report.html").exists());
}

#[test]
fn standard_error_may_be_closed() {
    let lab = Lab::new();
    let status = |suite| {
        let (reader, writer) = io::pipe().expect("a pipe");
        drop(reader);
        let out = lab.out_text();
        let mut command = lab.command(&["run", suite, "--reps", "1", "--out", &out]);
        command.stdout(Stdio::null()).stderr(writer).status().expect("lab runs").code()
    };
    assert_eq!(status("huge"), Some(2), "there is no such suite");
    assert_eq!(status("tiny"), Some(0));
    assert!(lab.results().0.complete);
    assert!(lab.out().join("report.html").exists());
}

#[test]
fn an_engine_ends_with_a_lab_that_is_killed() {
    if Command::new("c++").arg("--version").output().is_err() {
        assert!(std::env::var_os("CI").is_none(), "under CI, there is no C++ compiler");
        eprintln!("SKIPPED: there is no C++ compiler");
        return;
    }
    let lab = Lab::new();
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../engines/reference/bench.cc");
    lab.engine("real", &format!("sources = [{source:?}]"));
    let suite = r#"
title = "Long"
source = "nowhere"
num = 1000
rounds = 1
time_limit = 0
duration = 100000
short = { num = 1, rounds = 1, time_limit = 1 }
[[section]]
id = "reads"
title = "Reads"
description = "d"
chart = "bars"
[[section.group]]
prepare = ["fillseq"]
cells = ["readpareto"]
"#;
    fs::write(lab.dir().join("suites/long.toml"), suite).expect("write");
    let out = lab.out_text();
    let command = ["run", "long", "--engines", "real", "--out", &out];
    let mut child = lab
        .command(&command)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("lab runs");
    let engine = loop {
        if let Some(engine) = child_with(child.id(), "readpareto") {
            break engine;
        }
        assert!(child.try_wait().expect("a state").is_none(), "lab ended by itself");
        std::thread::yield_now();
    };
    child.kill().expect("a signal");
    child.wait().expect("lab ends");
    let deadline = Instant::now() + Duration::from_secs(120);
    while alive(engine) {
        assert!(Instant::now() < deadline, "the engine goes on without the lab");
        std::thread::yield_now();
    }
}

/// The process that `parent` has started and that has `word` on its command line.
fn child_with(parent: u32, word: &str) -> Option<u32> {
    let children = fs::read_to_string(format!("/proc/{parent}/task/{parent}/children")).ok()?;
    children.split_whitespace().filter_map(|pid| pid.parse().ok()).find(|pid: &u32| {
        let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&line).contains(word)
    })
}

/// Whether a process runs; one that has ended and is not reaped does not.
fn alive(pid: u32) -> bool {
    let state = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    state.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with(['Z', 'X']))
}

#[test]
fn time_that_is_used_up_is_said() {
    let lab = Lab::new();
    succeeded(&lab.run(&["--reps", "1", "--budget", "0"]));
    let (run, measurements) = lab.results();
    assert!(!run.complete);
    assert!(measurements.iter().all(|m| m.status == Status::Skipped && m.reason.is_some()));
    succeeded(&lab.run(&["--resume"]));
    assert!(lab.results().1.iter().all(|m| m.status == Status::Ok));
}
