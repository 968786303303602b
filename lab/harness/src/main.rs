//! Runs storage engines side by side, each in its own process, and reports how they compare.
//!
//! `plan` says what is run under which settings, `engine` finds, builds and runs the engine programs, `results` keeps
//! the measurements, `report` prints and writes them, `machine` says where they were taken. What an engine program
//! does is specified in `lab/WORKLOADS.md`.

mod engine;
mod machine;
mod plan;
mod results;
mod table;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;
use std::{fs, io};

use clap::Parser;

use engine::{Engine, Task};
use machine::Machine;
use plan::{CONFIGURATIONS, Configuration, SECTIONS, Section};
use results::Results;
use table::Report;

/// Compares Terrace with the real LevelDB, workload by workload.
///
/// Each section of the plan runs in fresh processes, the engines taking turns round by round, and the report gives
/// medians and their ratio. Where LevelDB is not installed Terrace runs alone, and the report says so.
#[derive(Debug, Parser)]
#[command(name = "lab", version)]
struct Arguments {
    /// The program `terrace`.
    #[arg(long, value_name = "PROGRAM")]
    terrace: PathBuf,
    /// Where the report, the raw data and the databases go.
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// Where the databases go; a directory on the file system to measure. Default: DB in the output directory.
    #[arg(long, value_name = "DIR")]
    db: Option<PathBuf>,
    /// Entries.
    #[arg(long, default_value_t = 1_000_000)]
    num: u64,
    /// Rounds; a figure is the median of all of them.
    #[arg(long, default_value_t = 5)]
    rounds: u32,
    /// The first seed; every round has its own.
    #[arg(long, default_value_t = 301)]
    seed: u64,
    /// Only these configurations, by name: 4MB, default, 128MB.
    #[arg(long, value_delimiter = ',', value_name = "NAMES")]
    configurations: Vec<String>,
    /// Only these sections of the plan, by name.
    #[arg(long, value_delimiter = ',', value_name = "NAMES")]
    sections: Vec<String>,
    /// End with status 1 if any ratio is below 1.
    #[arg(long)]
    strict: bool,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    match run(&arguments) {
        Ok(report) if arguments.strict && report.below_one() > 0 => ExitCode::FAILURE,
        Ok(_) => ExitCode::SUCCESS,
        Err(problem) => {
            eprintln!("lab: {problem}");
            ExitCode::from(2)
        }
    }
}

fn run(arguments: &Arguments) -> Result<Report, String> {
    let configurations = select(&CONFIGURATIONS, &arguments.configurations, |c: &Configuration| c.name)?;
    let sections = select(&SECTIONS, &arguments.sections, |s: &Section| s.name)?;
    let work = arguments.db.clone().unwrap_or_else(|| arguments.out.join("DB"));
    for dir in [&arguments.out, &work] {
        fs::create_dir_all(dir).map_err(|e| format!("{}: {e}", dir.display()))?;
    }
    let terrace = Engine::terrace(&arguments.terrace)?;
    let (engines, missing) = match Engine::leveldb(&arguments.out) {
        Ok(leveldb) => (vec![terrace, leveldb], None),
        Err(reason) => {
            eprintln!("lab: running Terrace ALONE: {reason}");
            (vec![terrace], Some(format!("LevelDB was not run: {reason}")))
        }
    };

    machine::touch_memory();
    let began = Instant::now();
    let mut results = Results::default();
    for round in 0..arguments.rounds {
        for configuration in &configurations {
            for section in &sections {
                // The engines take turns at going first.
                let mut order: Vec<&Engine> = engines.iter().collect();
                if round % 2 == 1 {
                    order.reverse();
                }
                for engine in order {
                    let dir = work.join(engine.name());
                    remove(&dir)?;
                    let task = Task {
                        benchmarks: section.benchmarks(),
                        memory: configuration.memory(section.kind),
                        num: arguments.num,
                        reads: section.reads(arguments.num),
                        seed: arguments.seed + u64::from(round),
                        db: &dir,
                    };
                    let start = Instant::now();
                    let measurements = engine.run(&task)?;
                    results.add(configuration.name, section, round, measurements);
                    remove(&dir)?;
                    eprintln!(
                        "round {} of {}  {:8} {:10} {:8} {:6.1} s",
                        round + 1,
                        arguments.rounds,
                        configuration.name,
                        section.name,
                        engine.name(),
                        start.elapsed().as_secs_f64()
                    );
                }
            }
        }
    }

    let report = Report {
        machine: Machine::here(&work),
        engines: engines.iter().map(Engine::description).collect(),
        missing,
        num: arguments.num,
        rounds: arguments.rounds,
        seconds: began.elapsed().as_secs_f64(),
        results,
    };
    report.write(&arguments.out)?;
    print!("{}", report.text());
    println!("\nwritten to {}", arguments.out.display());
    Ok(report)
}

/// The members of the plan with the given names, or all of them.
fn select<'a, T>(all: &'a [T], names: &[String], name_of: impl Fn(&T) -> &str) -> Result<Vec<&'a T>, String> {
    if let Some(unknown) = names.iter().find(|name| !all.iter().any(|one| name_of(one) == name.as_str())) {
        let known: Vec<&str> = all.iter().map(&name_of).collect();
        return Err(format!("there is no {unknown:?} in the plan, only {}", known.join(", ")));
    }
    Ok(all.iter().filter(|one| names.is_empty() || names.iter().any(|name| name == name_of(one))).collect())
}

fn remove(dir: &Path) -> Result<(), String> {
    match fs::remove_dir_all(dir) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => Err(format!("{}: {e}", dir.display())),
        _ => Ok(()),
    }
}
