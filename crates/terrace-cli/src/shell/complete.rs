//! What Tab completes in the shell: commands, their options, the words of settings, and paths.

use clap::CommandFactory;
use rustyline::Helper;
use rustyline::completion::{Completer, FilenameCompleter, Pair};

use super::Line;

/// Commands whose arguments are paths.
const TAKE_PATHS: [&str; 5] = ["load", "dump", "batch", "inspect", "checkpoint"];

/// Completes a line of the shell.
pub(super) struct Completion(FilenameCompleter);

impl Completion {
    pub(super) fn new() -> Self {
        Completion(FilenameCompleter::new())
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
            let line = Line::command();
            return Ok((
                start,
                matching(line.get_subcommands().map(|command| command.get_name().to_owned()), word),
            ));
        };
        let line = Line::command();
        let Some(command) = line.find_subcommand(verb) else { return Ok((position, Vec::new())) };
        if word.starts_with('-') {
            let options = command.get_arguments().filter_map(|argument| argument.get_long());
            return Ok((start, matching(options.map(|name| format!("--{name}")), word)));
        }
        let names_path = before.trim_end().ends_with("--value-file");
        if names_path || TAKE_PATHS.contains(&verb) {
            return self.0.complete_path(typed, position);
        }
        let words: Vec<String> = match verb {
            ".help" => {
                line.get_subcommands().map(|command| command.get_name().to_owned()).collect()
            }
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
