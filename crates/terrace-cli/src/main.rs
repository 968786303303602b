//! The command `terrace`: look into, change, check and measure a Terrace or LevelDB database.
//!
//! One process, one command, one database. Standard output carries data and nothing else; messages
//! and progress go to standard error. The exit status is 0, 1 (the answer is no) or 2 (an error), as
//! `failure` says.

mod advise;
mod args;
mod bench;
mod commands;
mod directory;
mod failure;
mod form;
mod help;
mod interchange;
mod number;
mod opening;
mod output;
mod own_entries;
mod progress;
mod range;
mod recovery;
mod signals;
mod source;
mod text;
mod words;

use std::io::{self, Write};
use std::process::ExitCode;

use clap::error::ErrorKind;

use failure::Failure;

fn main() -> ExitCode {
    signals::survive_file_size_limit();
    let cli = match args::Cli::parsed() {
        Ok(cli) => cli,
        Err(error) => return explain(&error),
    };
    let mut out = output::Output::stdout();
    let result = cli.run(&mut out).and_then(|()| out.flush());
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            failure.report();
            ExitCode::from(failure.status())
        }
    }
}

/// Help that was asked for goes to standard output. A mistake is reported as every other failure
/// is, with what the parser has to say about it.
fn explain(error: &clap::Error) -> ExitCode {
    if error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        // Help for who did not know what to write; there is no mistake to name.
        let _ = error.print();
        return ExitCode::from(failure::STATUS_ERROR);
    }
    let failure = if error.use_stderr() {
        let text = error.to_string();
        Failure::Usage(text.strip_prefix("error: ").unwrap_or(&text).trim_end().to_owned())
    } else {
        match error.print().and_then(|()| io::stdout().flush()) {
            Ok(()) => return ExitCode::SUCCESS,
            Err(error) => Failure::of_output("standard output", &error),
        }
    };
    failure.report();
    ExitCode::from(failure.status())
}
