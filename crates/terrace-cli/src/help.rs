//! Texts of help, made ready for terminals of any width.
//!
//! Their source is broken into lines for editors. The parser breaks lines that are too long for the
//! terminal and joins none, so that such a text would be broken again in the middle of its lines.

use clap::Command;

/// Joins the lines of every paragraph behind the options of `command` and of its subcommands. A
/// line that begins with a space, an example or a row of a list, stays a line.
pub(crate) fn joined(command: Command) -> Command {
    let command = command.mut_subcommands(joined);
    match command.get_after_help() {
        Some(text) => {
            let text = joined_lines(&text.to_string());
            command.after_help(text)
        }
        None => command,
    }
}

fn joined_lines(text: &str) -> String {
    let is_prose = |line: &str| !line.is_empty() && !line.starts_with(' ');
    let mut joined = String::with_capacity(text.len());
    let mut previous = "";
    for line in text.lines() {
        if !joined.is_empty() {
            joined.push(if is_prose(previous) && is_prose(line) { ' ' } else { '\n' });
        }
        joined.push_str(line);
        previous = line;
    }
    joined
}
