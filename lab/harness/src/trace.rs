//! `lab trace`: records a program's calls, shows what a trace holds, replays it.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::Duration;

use lab_harness::notice::notice;
use lab_harness::overview::thousands;
use lab_harness::suite::{self, Suite};
use lab_trace::{Call, Operation, Start, Trace};

use crate::arguments::{RunOptions, TraceCommand};
use crate::output::print;
use crate::start;

/// What a replay runs, but for the trace.
const SUITE: &str = include_str!("trace.toml");
/// Where the drop-in writes its traces.
const VARIABLE: &str = "TERRACE_TRACE";

pub(crate) fn run(lab: &Path, command: &TraceCommand) -> Result<ExitCode, String> {
    match command {
        TraceCommand::Record { out, library, command } => {
            let built = || lab.join("../out/lib/libleveldb.so.1d");
            record(out, &library.clone().unwrap_or_else(built), command)
        }
        TraceCommand::Show { traces } => {
            traces.iter().try_for_each(|path| show(path))?;
            Ok(ExitCode::SUCCESS)
        }
        TraceCommand::Replay { trace, options } => replay(lab, trace, options),
    }
}

fn record(out: &Path, library: &Path, command: &[OsString]) -> Result<ExitCode, String> {
    let library = library.canonicalize().map_err(|error| {
        format!("{}: {error}; `make dropin` builds the drop-in", library.display())
    })?;
    let problem = |error: std::io::Error| format!("{}: {error}", out.display());
    fs::create_dir_all(out).map_err(problem)?;
    let out = out.canonicalize().map_err(problem)?;
    let before = traces_in(&out)?;
    let (program, arguments) = command.split_first().ok_or("there is no command")?;
    let ended = Command::new(program)
        .args(arguments)
        .env("LD_PRELOAD", &library)
        .env(VARIABLE, &out)
        .status()
        .map_err(|error| format!("{}: {error}", Path::new(program).display()))?;
    let new: Vec<_> = traces_in(&out)?.into_iter().filter(|path| !before.contains(path)).collect();
    if new.is_empty() {
        let why = if ended.success() { ": is LevelDB linked into it statically?" } else { "" };
        let program = Path::new(program).display();
        return Err(format!(
            "{program} ended with {ended}, and opened no database by the drop-in{why}"
        ));
    }
    new.iter().try_for_each(|path| show(path))?;
    if ended.success() {
        return Ok(ExitCode::SUCCESS);
    }
    notice(&format!("lab: the program ended with {ended}"));
    // As a shell would: the program's own status, or a failure.
    let status = ended.code().and_then(|code| u8::try_from(code).ok());
    Ok(status.filter(|&status| status != 0).map_or(ExitCode::FAILURE, ExitCode::from))
}

fn traces_in(dir: &Path) -> Result<Vec<PathBuf>, String> {
    let problem = |error: std::io::Error| format!("{}: {error}", dir.display());
    let mut paths = Vec::new();
    for entry in fs::read_dir(dir).map_err(problem)? {
        let path = entry.map_err(problem)?.path();
        if path.extension().is_some_and(|extension| extension == "trace") {
            paths.push(path);
        }
    }
    paths.sort();
    Ok(paths)
}

fn show(path: &Path) -> Result<(), String> {
    let contents = Contents::of(&Trace::open(path)?);
    print(&format!("{}: {}\n", path.display(), contents.words().join("; ")))
}

fn replay(lab: &Path, path: &Path, options: &RunOptions) -> Result<ExitCode, String> {
    let path = path.canonicalize().map_err(|error| format!("{}: {error}", path.display()))?;
    let contents = Contents::of(&Trace::open(&path)?);
    if contents.operations == 0 {
        return Err(format!("{}: there is no operation in this trace", path.display()));
    }
    start::run_suite(lab, &suite_of(&path, &contents)?, options)
}

fn suite_of(path: &Path, contents: &Contents) -> Result<Suite, String> {
    let mut suite = suite::parse("trace", SUITE)?;
    let name = path.file_stem().unwrap_or_default().to_string_lossy();
    suite.title = format!("{}: {name}", suite.title);
    suite.num = contents.operations;
    suite.short.num = contents.operations;
    suite.notes.push(format!("In the trace: {}.", contents.words().join("; ")));
    let place = path.to_str().ok_or_else(|| format!("{}: not UTF-8", path.display()))?;
    suite.settings.insert("trace".to_owned(), place.into());
    // For the look at the space that there is.
    let size = i64::try_from(contents.mean_value()).unwrap_or(i64::MAX).clamp(1, 16 << 20);
    suite.settings.insert("value_size".to_owned(), size.into());
    Ok(suite)
}

/// What a trace holds.
#[derive(Default)]
struct Contents {
    operations: u64,
    /// By their kind.
    counts: BTreeMap<&'static str, u64>,
    entries: u64,
    batches: u64,
    synchronous: u64,
    writes: u64,
    steps: u64,
    backwards_from_keys: u64,
    micros: u64,
    values: u64,
    value_bytes: u64,
}

impl Contents {
    fn of(trace: &Trace) -> Self {
        let mut contents = Contents::default();
        for record in trace.records().flatten() {
            contents.operations += record.call.operations();
            contents.micros = contents.micros.saturating_add(record.micros);
            contents.synchronous += u64::from(record.synchronous);
            match record.call {
                Call::Entry(put) => {
                    contents.entries += 1;
                    contents.add_value(put.size);
                }
                Call::Write(operation) => {
                    contents.writes += 1;
                    contents.change(operation);
                }
                Call::Batch(changes) => {
                    contents.writes += 1;
                    contents.batches += 1;
                    changes.for_each(|operation| contents.change(operation));
                }
                Call::Get(_) => contents.count("gets"),
                Call::Scan(start, steps) => {
                    contents.count("scans");
                    contents.steps = contents.steps.saturating_add(steps);
                    let backwards = matches!(start, Start::BackFrom(_));
                    contents.backwards_from_keys += u64::from(backwards);
                }
            }
        }
        contents
    }

    fn change(&mut self, operation: Operation<'_>) {
        match operation {
            Operation::Put(put) => {
                self.count("puts");
                self.add_value(put.size);
            }
            Operation::Delete(_) => self.count("deletions"),
        }
    }

    fn count(&mut self, kind: &'static str) {
        *self.counts.entry(kind).or_default() += 1;
    }

    fn add_value(&mut self, size: usize) {
        self.values += 1;
        self.value_bytes += size as u64;
    }

    fn mean_value(&self) -> u64 {
        self.value_bytes.checked_div(self.values).unwrap_or(0)
    }

    fn words(&self) -> Vec<String> {
        let number = |n: u64| thousands(n as f64);
        let seconds = Duration::from_micros(self.micros).as_secs_f64();
        let mut words = vec![format!("{} operations in {seconds:.1} s", number(self.operations))];
        words.extend(self.counts.iter().map(|(kind, count)| format!("{} {kind}", number(*count))));
        let mut add = |count: u64, text: String| {
            if count > 0 {
                words.push(text);
            }
        };
        add(
            self.batches,
            format!("{} of {} writes are batches", number(self.batches), number(self.writes)),
        );
        add(self.synchronous, format!("{} writes waited for the disk", number(self.synchronous)));
        add(self.steps, format!("{} steps of scans", number(self.steps)));
        add(
            self.backwards_from_keys,
            format!("{} scans go backwards from a key", number(self.backwards_from_keys)),
        );
        add(self.values, format!("values of {} bytes on average", number(self.mean_value())));
        add(self.entries, format!("{} entries were there before", number(self.entries)));
        words
    }
}
