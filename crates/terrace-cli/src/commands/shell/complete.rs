//! Tab completion in the shell: commands, their options, the words of settings, and paths.

use clap::Command;
use rustyline::Helper;
use rustyline::completion::{Completer, FilenameCompleter, Pair};

/// Commands whose arguments are paths.
const TAKE_PATHS: [&str; 5] = ["load", "dump", "batch", "inspect", "checkpoint"];

/// Completes a line of the shell.
pub(super) struct Completion {
    shell: Command,
    files: FilenameCompleter,
}

impl Completion {
    /// `shell` has the commands of the shell.
    pub(super) fn new(shell: Command) -> Self {
        Completion { shell, files: FilenameCompleter::new() }
    }

    fn commands(&self) -> impl Iterator<Item = String> {
        self.shell.get_subcommands().map(|command| command.get_name().to_owned())
    }
}

impl Completer for Completion {
    type Candidate = Pair;

    fn complete(
        &self,
        line: &str,
        position: usize,
        _: &rustyline::Context<'_>,
    ) -> rustyline::Result<(usize, Vec<Pair>)> {
        let typed = &line[..position];
        let start = typed.rfind(' ').map_or(0, |blank| blank + 1);
        let (before, word) = typed.split_at(start);
        let Some(verb) = before.split_whitespace().next() else {
            return Ok((start, matching(self.commands(), word)));
        };
        let Some(command) = self.shell.find_subcommand(verb) else {
            return Ok((position, Vec::new()));
        };
        if word.starts_with('-') {
            let options = command.get_arguments().filter_map(|argument| argument.get_long());
            return Ok((start, matching(options.map(|name| format!("--{name}")), word)));
        }
        let names_path = before.trim_end().ends_with("--value-file");
        if names_path || TAKE_PATHS.contains(&verb) {
            return self.files.complete_path(typed, position);
        }
        let words: Vec<String> = match verb {
            ".help" => self.commands().collect(),
            _ => command
                .get_positionals()
                .flat_map(clap::Arg::get_possible_values)
                .map(|v| v.get_name().to_owned())
                .collect(),
        };
        Ok((start, matching(words.into_iter(), word)))
    }
}

fn matching(words: impl Iterator<Item = String>, typed: &str) -> Vec<Pair> {
    let fitting = words.filter(|word| word.starts_with(typed));
    fitting.map(|word| Pair { replacement: format!("{word} "), display: word }).collect()
}

impl rustyline::highlight::Highlighter for Completion {}
impl rustyline::hint::Hinter for Completion {
    type Hint = String;
}
impl rustyline::validate::Validator for Completion {}
impl Helper for Completion {}
