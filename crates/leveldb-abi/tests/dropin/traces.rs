//! Traces that the drop-in writes, read as the lab reads them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use lab_trace::{Call, Operation, Record, Start, Trace};

use crate::libraries::{Libraries, compiled, libraries, succeeded};

/// Runs a program with the drop-in, with traces below `dir`.
fn run(libraries: &Libraries, program: &Path, dir: &Path, more: &[&str]) -> Output {
    let mut run = Command::new(program);
    run.arg(dir.join("data")).args(more).env("LD_LIBRARY_PATH", libraries.ours.join("lib"));
    run.env("TERRACE_TRACE", dir.join("traces"));
    succeeded(run)
}

fn trace_of(dir: &Path, number: u32) -> PathBuf {
    dir.join(format!("traces/data-{number}.trace"))
}

fn text(key: &[u8]) -> String {
    String::from_utf8_lossy(key).into_owned()
}

fn change(operation: Operation<'_>) -> String {
    match operation {
        Operation::Put(put) => format!("put {} {}", text(put.key), put.size),
        Operation::Delete(key) => format!("delete {}", text(key)),
    }
}

/// A record in words; `!` for a write that waits for the disk.
fn line(record: Record<'_>) -> String {
    let line = match record.call {
        Call::Entry(put) => format!("entry {} {}", text(put.key), put.size),
        Call::Write(operation) => change(operation),
        Call::Batch(changes) => {
            format!("batch {}", changes.map(change).collect::<Vec<_>>().join(", "))
        }
        Call::Get(key) => format!("get {}", text(key)),
        Call::Scan(start, steps) => match start {
            Start::First => format!("first {steps}"),
            Start::Last => format!("last {steps}"),
            Start::From(key) => format!("from {} {steps}", text(key)),
            Start::BackFrom(key) => format!("back from {} {steps}", text(key)),
        },
    };
    if record.synchronous { format!("{line}!") } else { line }
}

fn lines(path: &Path) -> Vec<String> {
    let trace = Trace::open(path).expect("a trace");
    trace.records().map(|record| line(record.expect("whole"))).collect()
}

const CALLS: [&str; 8] = [
    "put a 6",
    "delete b!",
    "batch put c 0, delete d!",
    "get missing",
    "from a 1",
    "back from c 1",
    "first 0",
    "last 1",
];

#[test]
fn a_trace_has_every_call_of_either_interface_in_order() {
    let Some(libraries) = libraries() else { return };
    for source in ["traced.c", "traced.cc"] {
        let program = compiled(source, &[]);
        let dir = tempfile::tempdir().unwrap();
        run(libraries, &program, dir.path(), &[]);
        assert_eq!(lines(&trace_of(dir.path(), 1)), CALLS, "{source}");
        let bytes = fs::read(trace_of(dir.path(), 1)).unwrap();
        assert!(
            !bytes.windows(6).any(|part| part == b"secret"),
            "{source}: a value is in the trace"
        );

        // The next open has a file of its own, which begins with what is there.
        run(libraries, &program, dir.path(), &["exit"]);
        let expected = [&["entry a 6", "entry c 0"][..], &CALLS].concat();
        assert_eq!(lines(&trace_of(dir.path(), 2)), expected, "{source}");
    }
}

#[test]
fn a_trace_that_cannot_be_written_is_said_and_harms_nothing() {
    let Some(libraries) = libraries() else { return };
    let program = compiled("traced.c", &[]);
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("traces"), b"a file").unwrap();
    let output = run(libraries, &program, dir.path(), &[]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.starts_with("terrace: no trace from here on: ") && said.lines().count() == 1);
    assert_eq!(fs::read(dir.path().join("traces")).unwrap(), b"a file");
}
