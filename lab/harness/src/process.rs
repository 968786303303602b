//! One run of an engine program: started in a process group of its own, read line by line, ended
//! when it takes too long.

use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use crate::interrupt::{self, Running};
use crate::run::{DriverResult, Interval};

/// How often a wait looks for an interrupt.
const GLANCE: Duration = Duration::from_millis(100);
/// How often it is looked whether a program that has closed its output has ended.
const SHORT: Duration = Duration::from_millis(1);
/// The part of an engine's last output that is read.
const LAST_WORDS: u64 = 4096;

/// How a run ended.
#[derive(Clone, Debug, PartialEq)]
pub enum End {
    /// Every benchmark was reported.
    Complete,
    /// The program failed at the first benchmark that has no result.
    Failed(String),
    /// It was killed at the first benchmark that has no result, because it took more memory than it
    /// may.
    OutOfMemory(String),
    /// It was killed because it took too long over the first benchmark that has no result.
    Timeout(String),
    /// Every benchmark was reported, but the program failed afterwards, or never came to its end:
    /// while it closed the database, which is no benchmark's fault and nothing to be read from.
    NotClosed(String),
    /// The user wants to end.
    Interrupted,
}

/// The result of a run.
#[derive(Debug)]
pub struct Outcome {
    /// The reports of the first benchmarks, with the intervals of each.
    pub results: Vec<(DriverResult, Vec<Interval>)>,
    /// How it ended.
    pub end: End,
}

/// Runs `command`, which ends with the thread that calls this, for `benchmarks`; `limits` has the
/// time after which each is given up. What the program says on standard error is added to the file
/// `log`. `at` is told the place of the benchmark that begins.
///
/// # Errors
/// Only if `log` cannot be written. A program that cannot be started is an outcome.
pub fn run(
    mut command: Command,
    benchmarks: &[&str],
    limits: &[Option<Duration>],
    log: &Path,
    at: &mut dyn FnMut(usize),
) -> Result<Outcome, String> {
    let mut log_file = open_log(log)?;
    let begun = log_file.seek(SeekFrom::End(0)).unwrap_or(0);
    writeln!(log_file, "== {command:?}").map_err(|e| format!("{}: {e}", log.display()))?;
    let stderr = log_file.try_clone().map_err(|e| format!("{}: {e}", log.display()))?;
    // It notices by this that its parent has ended.
    command.env("LAB_PARENT", std::process::id().to_string());
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(stderr).process_group(0);
    let mut child = match command.spawn() {
        Ok(child) => child,
        Err(e) => {
            let reason = format!("{} does not start: {e}", command.get_program().to_string_lossy());
            return Ok(Outcome { results: Vec::new(), end: End::Failed(reason) });
        }
    };
    let running = Running::new(child.id());
    let lines = read_lines(&mut child);
    let mut reading = Reading { benchmarks, results: Vec::new(), series: Vec::new() };
    let mut end = reading.follow(&lines, limits, at);
    if end.is_some() {
        running.kill();
    }
    let (status, hung) = wait(&mut child, &running, limits.last().copied().flatten());
    // Processes that the program itself started and left behind.
    running.kill();
    drop(running);
    if interrupt::requested() {
        end = Some(End::Interrupted);
    }
    let end = end.unwrap_or_else(|| match hung {
        Some(seconds) => reading.overdue(seconds),
        None => reading.ended(status, log, begun),
    });
    Ok(Outcome { results: reading.results, end })
}

/// Waits for a program that has closed its output, or was killed; after how many seconds it had to
/// be killed here.
fn wait(
    child: &mut Child,
    running: &Running,
    limit: Option<Duration>,
) -> (std::io::Result<ExitStatus>, Option<Duration>) {
    let began = Instant::now();
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return (Ok(status), None),
            Ok(None) => {}
            Err(e) => return (Err(e), None),
        }
        if limit.is_some_and(|limit| began.elapsed() > limit) {
            running.kill();
            return (child.wait(), Some(began.elapsed()));
        }
        thread::sleep(SHORT);
    }
}

struct Reading<'a> {
    benchmarks: &'a [&'a str],
    results: Vec<(DriverResult, Vec<Interval>)>,
    /// Of the benchmark that is running.
    series: Vec<Interval>,
}

impl Reading<'_> {
    /// Reads until the program closes its output: `None`. Or until it has to be killed: why.
    fn follow(
        &mut self,
        lines: &Receiver<String>,
        limits: &[Option<Duration>],
        at: &mut dyn FnMut(usize),
    ) -> Option<End> {
        at(0);
        let mut began = Instant::now();
        loop {
            match lines.recv_timeout(GLANCE) {
                Ok(line) => match self.line(&line) {
                    Ok(true) => {
                        began = Instant::now();
                        at(self.results.len());
                    }
                    Ok(false) => {}
                    Err(problem) => return Some(End::Failed(problem)),
                },
                Err(RecvTimeoutError::Disconnected) => return None,
                Err(RecvTimeoutError::Timeout) => {}
            }
            if interrupt::requested() {
                return Some(End::Interrupted);
            }
            let place = self.results.len();
            // After the last result the program has as much time to end.
            let limit = limits.get(place).or(limits.last()).copied().flatten();
            if limit.is_some_and(|limit| began.elapsed() > limit) {
                return Some(self.overdue(began.elapsed()));
            }
        }
    }

    /// It was killed after so long.
    fn overdue(&self, after: Duration) -> End {
        let seconds = after.as_secs_f64();
        match self.benchmarks.get(self.results.len()) {
            Some(name) => End::Timeout(format!("killed after {seconds:.0} s of {name}")),
            None => End::NotClosed(format!("killed after {seconds:.0} s of closing the database")),
        }
    }

    /// Takes in a line of output; whether it ended a benchmark.
    fn line(&mut self, line: &str) -> Result<bool, String> {
        if line.trim().is_empty() {
            return Ok(false);
        }
        let strange = |e: &dyn std::fmt::Display| {
            let start: String = line.chars().take(60).collect();
            format!("printed what is not a result ({e}): {start}")
        };
        let value: serde_json::Value = serde_json::from_str(line).map_err(|e| strange(&e))?;
        if value.get("series").is_some() {
            self.series.push(serde_json::from_value(value).map_err(|e| strange(&e))?);
            return Ok(false);
        }
        let result: DriverResult = serde_json::from_value(value).map_err(|e| strange(&e))?;
        let expected = self.benchmarks.get(self.results.len());
        if expected.is_none_or(|expected| *expected != result.benchmark) {
            return Err(format!("reported {:?} where {expected:?} was due", result.benchmark));
        }
        if result.unsupported.is_none()
            && let Some(problem) = result.contradiction()
        {
            return Err(problem);
        }
        self.results.push((result, std::mem::take(&mut self.series)));
        Ok(true)
    }

    /// The meaning of the program's own exit.
    fn ended(&self, status: std::io::Result<ExitStatus>, log: &Path, begun: u64) -> End {
        let complete = self.results.len() == self.benchmarks.len();
        match status {
            Ok(status) if status.success() && complete => End::Complete,
            Ok(status) if status.success() => End::Failed("ended without a result".to_owned()),
            Ok(status) => {
                let how = match (status.code(), status.signal()) {
                    (Some(code), _) => format!("ended with status {code}"),
                    (None, Some(signal)) => {
                        format!("killed by signal {signal}{}", signal_name(signal))
                    }
                    (None, None) => format!("{status}"),
                };
                let reason = match last_words(log, begun) {
                    Some(words) => format!("{how}: {words}"),
                    None => how,
                };
                if complete {
                    End::NotClosed(format!("after all results it {reason}"))
                } else {
                    End::Failed(reason)
                }
            }
            Err(e) => End::Failed(e.to_string()),
        }
    }
}

fn signal_name(signal: i32) -> &'static str {
    match signal {
        4 => " (SIGILL)",
        6 => " (SIGABRT)",
        7 => " (SIGBUS)",
        8 => " (SIGFPE)",
        9 => " (SIGKILL; by someone, or for want of memory)",
        11 => " (SIGSEGV)",
        15 => " (SIGTERM)",
        _ => "",
    }
}

fn open_log(path: &Path) -> Result<File, String> {
    OpenOptions::new()
        .create(true)
        .append(true)
        .open(path)
        .map_err(|e| format!("{}: {e}", path.display()))
}

/// Lines of the program's output, read by a thread that ends with the program.
fn read_lines(child: &mut Child) -> Receiver<String> {
    let (sender, receiver) = mpsc::channel();
    if let Some(stdout) = child.stdout.take() {
        thread::spawn(move || {
            for line in BufReader::new(stdout).split(b'\n').map_while(Result::ok) {
                if sender.send(String::from_utf8_lossy(&line).into_owned()).is_err() {
                    return;
                }
            }
        });
    }
    receiver
}

/// The last line that the program wrote to the log since `begun`, where the command line stands
/// first.
fn last_words(log: &Path, begun: u64) -> Option<String> {
    let mut file = File::open(log).ok()?;
    let length = file.metadata().ok()?.len();
    file.seek(SeekFrom::Start(begun.max(length.saturating_sub(LAST_WORDS)))).ok()?;
    let mut bytes = Vec::new();
    file.take(LAST_WORDS).read_to_end(&mut bytes).ok()?;
    let text = String::from_utf8_lossy(&bytes);
    text.lines()
        .rfind(|line| !line.trim().is_empty() && !line.starts_with("== "))
        .map(|line| line.trim().to_owned())
}
