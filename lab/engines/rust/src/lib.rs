//! Shared by the lab's engine programs in Rust: everything of `lab/WORKLOADS.md` but the engine.
//!
//! An engine program implements [`Engine`] and calls [`run`]. Every call to the engine is a generic
//! one, compiled for that engine: it costs what the engine's own call costs.
//!
//! `args` reads the command line, `data` makes keys and values, `benchmark` names the workloads,
//! `work` is what a thread does, `runner` starts the threads and takes the time, `meter` and
//! `resources` count, `directory` keeps what is not a benchmark's, `output` prints, `parent` ends
//! the program with the harness; `selftest` shows whether an engine is right. One thread runs a
//! program; the threads of a benchmark share the engine and nothing else. [`keyspaces`] is a
//! program of its own.

mod args;
mod benchmark;
mod data;
mod directory;
mod engine;
mod failure;
pub mod keyspaces;
mod meter;
mod outcome;
mod output;
mod parent;
mod replay;
mod resources;
mod runner;
mod selftest;
mod work;

pub use args::Settings;
pub use engine::{
    Description, Durability, Engine, Operation, Operations, Session, Start, Variant, Visit,
};
pub use failure::{Failure, Result};

use std::process::ExitCode;

use runner::Runner;

/// The whole program: exit status 0 if every benchmark was run, 2 for a wrong command line, 3 for a
/// failure of the engine.
pub fn run<E: Engine>() -> ExitCode {
    parent::end_with_parent();
    match try_run::<E>() {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("lab-{}: {failure}", E::NAME);
            failure.exit_code()
        }
    }
}

fn try_run<E: Engine>() -> Result<()> {
    let settings = args::parse()?;
    let Some(description) = E::describe(&settings.variant) else {
        return Err(Failure::usage(format!(
            "there is no variant '{}'; --describe lists them",
            settings.variant
        )));
    };
    if settings.describe {
        return output::print_json(&description);
    }
    if settings.version {
        return output::print_line(&format!("{} {}", E::NAME, description.version));
    }
    let benchmarks =
        settings.benchmarks.iter().map(|name| benchmark::find(name)).collect::<Result<Vec<_>>>()?;
    if settings.db().as_os_str().is_empty() {
        return Err(Failure::usage("--db=DIR is missing"));
    }
    let mut runner = Runner::<E>::new(&settings);
    for benchmark in benchmarks {
        let reason = description.unsupported.get(benchmark.name).copied();
        match reason.or_else(|| benchmark.kind.missing::<E>()) {
            Some(reason) => output::print_unsupported(benchmark.name, E::NAME, reason)?,
            None => output::print_outcome(&runner.run(benchmark)?, E::NAME, settings.json)?,
        }
    }
    runner.close()
}
