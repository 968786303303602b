//! `man`: the manual, made of the same words as `--help`.
//!
//! What `--help` prints at its end is text: paragraphs, of which one may begin with `Exit status`
//! and the last with `Examples:`. Lines that begin with two blanks are a table or an example, and
//! keep their breaks.

use std::fs;
use std::io;
use std::path::PathBuf;

use clap::{Args, Command};
use clap_mangen::Man;

use crate::failure::{Failure, Result};
use crate::output::Output;

const VERSION: &str = env!("CARGO_PKG_VERSION");

#[derive(Args, Debug)]
pub(crate) struct ManArgs {
    /// A directory for all pages, made if it is missing; without one the page of the tool goes to
    /// standard output
    dir: Option<PathBuf>,
}

impl ManArgs {
    pub(crate) fn run(&self, tool: Command, out: &mut Output) -> Result<()> {
        let mut tool = tool.disable_help_subcommand(true);
        tool.build();
        let statuses = exit_status(&Sections::of(&tool));
        let Some(dir) = &self.dir else {
            let page = page(&tool, &statuses)
                .map_err(|error| Failure::other(format!("cannot make the page: {error}")))?;
            return out.bytes(&page);
        };
        fs::create_dir_all(dir).map_err(|error| Failure::io("create", dir, &error))?;
        let mut commands = vec![&tool];
        while let Some(command) = commands.pop() {
            commands.extend(command.get_subcommands().filter(|command| !command.is_hide_set()));
            let path = dir.join(format!("{}.1", name_of(command)));
            page(command, &statuses)
                .and_then(|page| fs::write(&path, page))
                .map_err(|error| Failure::io("write", &path, &error))?;
        }
        Ok(())
    }
}

/// `terrace-scan`
fn name_of(command: &Command) -> &str {
    command.get_display_name().unwrap_or_else(|| command.get_name())
}

/// What a command's help says at its end.
#[derive(Default)]
struct Sections {
    description: Vec<String>,
    exit_status: Vec<String>,
    examples: Vec<String>,
}

impl Sections {
    fn of(command: &Command) -> Self {
        let text = command.get_after_help().map(ToString::to_string).unwrap_or_default();
        let mut sections = Sections::default();
        for paragraph in text.split("\n\n") {
            if let Some(examples) = paragraph.strip_prefix("Examples:\n") {
                sections.examples.push(examples.to_owned());
            } else if let Some(rest) = paragraph.strip_prefix("Exit status") {
                sections.exit_status.push(rest.trim_start_matches([':', ' ']).to_owned());
            } else if !paragraph.is_empty() {
                sections.description.push(paragraph.to_owned());
            }
        }
        sections
    }
}

fn exit_status(of_the_tool: &Sections) -> String {
    of_the_tool.exit_status.join("\n")
}

fn page(command: &Command, statuses: &str) -> io::Result<Vec<u8>> {
    let name = name_of(command);
    let man = Man::new(command.clone());
    let sections = Sections::of(command);
    let mut page = Vec::new();
    // Quotes that a shell understands, also where the page is typeset.
    page.extend(b".ie \\n(.g .ds Aq \\(aq\n.el .ds Aq '\n");
    // Without a date, which would be that of the build.
    page.extend(format!(".TH {name} 1 \"\" \"{name} {VERSION}\" Terrace\n").as_bytes());
    man.render_name_section(&mut page)?;
    man.render_synopsis_section(&mut page)?;
    man.render_description_section(&mut page)?;
    paragraphs(&sections.description, true, &mut page);
    if command.get_arguments().any(|argument| !argument.is_hide_set()) {
        man.render_options_section(&mut page)?;
    }
    if command.get_subcommands().any(|command| !command.is_hide_set()) {
        man.render_subcommands_section(&mut page)?;
    }
    page.extend(b".SH \"EXIT STATUS\"\n");
    match name == "terrace" || sections.exit_status.is_empty() {
        true => paragraphs(&[statuses.to_owned()], false, &mut page),
        false => {
            paragraphs(&sections.exit_status, false, &mut page);
            let usual = format!("As of every command: {statuses}");
            paragraphs(&[usual], true, &mut page);
        }
    }
    if !sections.examples.is_empty() {
        page.extend(b".SH EXAMPLES\n");
        paragraphs(&sections.examples, false, &mut page);
    }
    if command.get_version().is_some() {
        man.render_version_section(&mut page)?;
    }
    Ok(page)
}

/// Paragraphs of text, which is filled, and of lines that begin with two blanks, which are not.
fn paragraphs(paragraphs: &[String], begin_new: bool, page: &mut Vec<u8>) {
    for (n, paragraph) in paragraphs.iter().enumerate() {
        if n > 0 || begin_new {
            page.extend(b".PP\n");
        }
        let mut is_filled = true;
        for line in paragraph.lines() {
            let is_text = !line.starts_with("  ");
            match (is_filled, is_text) {
                (true, false) => page.extend(b".RS 2\n.nf\n"),
                (false, true) => page.extend(b".fi\n.RE\n"),
                _ => {}
            }
            is_filled = is_text;
            let line = if is_text { line } else { &line[2..] };
            page.extend(escaped(line).as_bytes());
            page.push(b'\n');
        }
        if !is_filled {
            page.extend(b".fi\n.RE\n");
        }
    }
}

/// A line as it is, for roff: a reader copies examples from the page.
fn escaped(line: &str) -> String {
    let mut escaped = String::with_capacity(line.len() + 16);
    if line.starts_with(['.', '\'']) {
        escaped.push_str("\\&");
    }
    for character in line.chars() {
        match character {
            '\\' => escaped.push_str("\\e"),
            '-' => escaped.push_str("\\-"),
            '\'' => escaped.push_str("\\*(Aq"),
            '`' => escaped.push_str("\\(ga"),
            '^' => escaped.push_str("\\(ha"),
            '~' => escaped.push_str("\\(ti"),
            other => escaped.push(other),
        }
    }
    escaped
}
