//! The command `lab`.

#![warn(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "they panic where the output is closed; see `notice`, `output`"
)]

mod arguments;
mod finished;
mod list;
mod output;
mod start;
mod trace;

use std::process::ExitCode;

use clap::Parser;
use lab_harness::notice::notice;

use arguments::{Arguments, Command};

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let lab = arguments.lab_dir();
    let outcome = match &arguments.command {
        Command::Run { suite, options } => start::run(&lab, suite, options),
        Command::Trace(command) => trace::run(&lab, command),
        Command::List => list::list(&lab),
        Command::Describe { engines } => list::describe(&lab, engines),
        Command::Report { dirs, out } => finished::report(dirs, out.as_deref()),
        Command::Summary { dirs, benchmarks } => finished::summary(dirs, benchmarks),
        Command::Compare { before, after, json } => finished::compare(before, after, *json),
    };
    outcome.unwrap_or_else(|problem| {
        notice(&format!("lab: {problem}"));
        ExitCode::from(2)
    })
}
