//! The engine programs: found, built where they need building, and run.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::{env, fs};

use crate::plan::Memory;
use crate::results::Measurement;

const LEVELDB_SOURCE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../engines/leveldb/bench.cc");

/// A program that runs benchmarks.
#[derive(Debug)]
pub(crate) struct Engine {
    name: &'static str,
    program: PathBuf,
    /// What stands before the flags.
    command: &'static [&'static str],
    version: String,
}

/// One run of an engine program.
#[derive(Debug)]
pub(crate) struct Task<'a> {
    pub(crate) benchmarks: Vec<&'static str>,
    pub(crate) memory: Memory,
    pub(crate) num: u64,
    pub(crate) reads: u64,
    pub(crate) seed: u64,
    pub(crate) db: &'a Path,
}

impl Engine {
    /// Terrace, through its command.
    pub(crate) fn terrace(program: &Path) -> Result<Engine, String> {
        let program = program.canonicalize().map_err(|e| format!("{}: {e}", program.display()))?;
        let version = first_line(Command::new(&program).arg("--version"))?;
        Ok(Engine { name: "terrace", program, command: &["bench"], version })
    }

    /// The real LevelDB, through a program built into `dir`. The error says why it cannot be had.
    pub(crate) fn leveldb(dir: &Path) -> Result<Engine, String> {
        let compiler = env::var("CXX").unwrap_or_else(|_| "c++".to_owned());
        let probe = ["-E", "-x", "c++", "-include", "leveldb/db.h", "/dev/null"];
        let probed = Command::new(&compiler).args(probe).stdin(Stdio::null()).output();
        match probed {
            Err(_) => return Err(format!("there is no C++ compiler ({compiler}); apt-get install g++")),
            Ok(output) if !output.status.success() => {
                return Err("LevelDB is not installed; apt-get install libleveldb-dev".to_owned());
            }
            Ok(_) => {}
        }
        let program = dir.join("leveldb-bench");
        let output = Command::new(&compiler)
            .args(["-std=c++17", "-O2", "-Wall"])
            .arg(LEVELDB_SOURCE)
            .arg("-o")
            .arg(&program)
            .args(["-lleveldb", "-pthread"])
            .output()
            .map_err(|e| format!("{compiler}: {e}"))?;
        if !output.status.success() {
            return Err(format!("{LEVELDB_SOURCE} does not compile:\n{}", String::from_utf8_lossy(&output.stderr)));
        }
        let program = fs::canonicalize(&program).map_err(|e| format!("{}: {e}", program.display()))?;
        let version = first_line(Command::new(&program).arg("--version"))?;
        Ok(Engine { name: "leveldb", program, command: &[], version })
    }

    pub(crate) fn name(&self) -> &'static str {
        self.name
    }

    /// Name and version.
    pub(crate) fn description(&self) -> String {
        self.version.clone()
    }

    /// Runs the benchmarks of a task and returns a measurement for each, in order.
    pub(crate) fn run(&self, task: &Task<'_>) -> Result<Vec<Measurement>, String> {
        let output = Command::new(&self.program)
            .args(self.command)
            .arg(format!("--benchmarks={}", task.benchmarks.join(",")))
            .arg(format!("--num={}", task.num))
            .arg(format!("--reads={}", task.reads))
            .arg(format!("--seed={}", task.seed))
            .arg(format!("--write_buffer_size={}", task.memory.write_buffer))
            .arg(format!("--cache_size={}", task.memory.cache))
            .arg(format!("--db={}", task.db.display()))
            .arg("--json")
            .stdin(Stdio::null())
            .output()
            .map_err(|e| format!("{}: {e}", self.program.display()))?;
        let problem = |what: &str| {
            format!("{} {what} (benchmarks {}):\n{}", self.name, task.benchmarks.join(","), stderr(&output))
        };
        if !output.status.success() {
            return Err(problem(&format!("ended with {}", output.status)));
        }
        let text = String::from_utf8_lossy(&output.stdout);
        let measurements: Vec<Measurement> = text
            .lines()
            .map(serde_json::from_str)
            .collect::<Result<_, _>>()
            .map_err(|e| problem(&format!("printed what is no measurement: {e}")))?;
        if !measurements.iter().map(|m| m.benchmark.as_str()).eq(task.benchmarks.iter().copied()) {
            return Err(problem("did not report every benchmark"));
        }
        Ok(measurements)
    }
}

fn stderr(output: &std::process::Output) -> String {
    String::from_utf8_lossy(&output.stderr).trim_end().to_owned()
}

fn first_line(command: &mut Command) -> Result<String, String> {
    let output = command.stdin(Stdio::null()).output().map_err(|e| format!("{command:?}: {e}"))?;
    let text = String::from_utf8_lossy(&output.stdout);
    match text.lines().next() {
        Some(line) if output.status.success() => Ok(line.to_owned()),
        _ => Err(format!("{command:?} ended with {}: {}", output.status, stderr(&output))),
    }
}
