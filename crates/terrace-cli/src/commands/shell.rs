//! `terrace shell`: the tool's commands on one database that stays open.
//!
//! From a terminal with line editing, completion of command names and a history; from a pipe line
//! by line, without prompts. A script runs to its end even when its output is not read any
//! more.

use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};
use std::time::Instant;

use clap::error::{ContextKind, ErrorKind};
use clap::{Args, CommandFactory, FromArgMatches, Parser, Subcommand};
use rustix::termios::QueueSelector;
use rustyline::error::ReadlineError;
use rustyline::history::DefaultHistory;
use rustyline::{Config, Editor};
use terrace::{Isolation, TransactionOptions};

use crate::advise::AdviseCommand;
use crate::commands::entries::{DeleteArgs, DeleteRangeArgs, GetArgs, PutArgs};
use crate::commands::inspect::InspectArgs;
use crate::commands::keyspace::{
    CreateKeyspaceArgs, DropKeyspaceArgs, ListKeyspacesArgs, StatKeyspaceArgs,
};
use crate::commands::prepared::{
    CommitPreparedArgs, ListPreparedArgs, PrepareArgs, RollbackPreparedArgs,
};
use crate::commands::report::{FilesArgs, StatArgs};
use crate::commands::scan::ScanArgs;
use crate::commands::scope::ScopeArgs;
use crate::commands::transfer::{BatchArgs, DumpArgs, LoadArgs};
use crate::commands::update::{CasArgs, UpdateArgs};
use crate::commands::upkeep::{CheckpointArgs, CompactArgs, VerifyCommand};
use crate::commands::{Run, Session};
use crate::failure::{Failure, Result};
use crate::form::Form;
use crate::opening::{Missing, WriteArgs};
use crate::output::Output;
use crate::signals;
use crate::source::Source;
use crate::text::Notation;
use crate::words;
use complete::Completion;

mod complete;

const PROMPT: &str = "terrace> ";
const TRANSACTION_PROMPT: &str = "terrace*> ";

const HELP: &str = "\
put KEY VALUE            store a value            scan [--prefix P] ...    print entries in order
get KEY                  print a value            dump [FILE], load [FILE] everything out, or in
delete KEY               remove a key             delete-range FROM TO     remove the keys of a range
batch FILE               put and delete lines, atomically
keyspace create|list|stat|drop [NAME]             keyspaces; --keyspace NAME works in one
cas KEY VALUE --if OLD   set a value if it is OLD update KEY --add N       add to a number, or --append
begin [serializable] [locking], commit, rollback
                         what comes between, all of it or nothing, unless others come in between
get-for-update KEY       print a value that must stay as it is until the commit
prepare NAME, prepared list|commit|rollback [NAME]
                         a commit in two phases: durable and locked until it is decided
stat                     levels and counters      files                    the files and their key ranges
compact [--force]        compact tables           inspect FILE ...         look into files
verify                   check everything         advise                   which settings suit
checkpoint DIR           a copy of the database

Ctrl-C ends a scan or a load, and drops a line that is typed. Twice during another command, such as
compact, it ends the session. Tab completes commands, options and paths.

.help [COMMAND]          this, or more about a command
.mode text|hex|base64    how keys and values are written
.json on|off             print JSON
.timer on|off            print how long each command takes
.exit                    leave; so does the end of the input

Quotes hold words with spaces together; \\xNN, \\t, \\n and \\\\ stand for bytes. # begins a comment line.
A TAB that is typed completes; write \\t for one in a key or a value.";

#[derive(Args, Debug)]
pub(crate) struct ShellCommand {
    /// Directory of the database
    db: PathBuf,
    /// Make the database if there is none
    #[arg(long, conflicts_with = "read_only")]
    create: bool,
    /// Change nothing: writing commands fail, and others may read the database meanwhile
    #[arg(long)]
    read_only: bool,
    /// End at the first failure
    #[arg(long)]
    bail: bool,
    #[command(flatten)]
    scope: ScopeArgs,
    #[command(flatten)]
    write: WriteArgs,
}

/// A line of the shell, taken apart.
#[derive(Parser, Debug)]
#[command(multicall = true, disable_help_subcommand = true, subcommand_value_name = "COMMAND")]
struct Line {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand, Debug)]
enum Verb {
    /// Store a value under a key
    Put(PutArgs),
    /// Print the value of a key
    Get(GetArgs),
    /// Remove a key
    Delete(DeleteArgs),
    /// Remove every key of a range, all of them or none
    DeleteRange(DeleteRangeArgs),
    /// Print entries in the order of their keys
    Scan(ScanArgs),
    /// Read entries from a file
    Load(LoadArgs),
    /// Write all entries to a file or standard output
    Dump(DumpArgs),
    /// Apply put and delete lines from a file, all of them or none
    Batch(BatchArgs),
    /// Set a value, or remove it, if it is the expected one
    Cas(CasArgs),
    /// Add to a number or append to a value, in one step, and print the new value
    Update(UpdateArgs),
    /// Begin a transaction: put, delete and batch take effect when it is committed, all together
    Begin {
        /// Its isolation, and whether get-for-update locks; neither, if not given
        modes: Vec<TransactionMode>,
    },
    /// Print a value that others must not write until the transaction is committed
    GetForUpdate(GetArgs),
    /// Do what has been written since begin, or nothing if others have written one of its keys
    Commit,
    /// Forget what has been written since begin
    Rollback,
    /// Make what has been written since begin durable and keep its keys locked until it is decided
    Prepare(PrepareArgs),
    /// List, commit and roll back prepared transactions
    #[command(subcommand)]
    Prepared(PreparedVerb),
    /// Create, list and drop keyspaces, and count their entries
    #[command(subcommand)]
    Keyspace(KeyspaceVerb),
    /// Show levels, sizes and counters
    Stat(StatArgs),
    /// List the files of the database
    Files(FilesArgs),
    /// Show what is in a table, a log, a value file, a MANIFEST or CURRENT
    Inspect(InspectArgs),
    /// Compact tables until deleted and overwritten entries are gone
    Compact(CompactArgs),
    /// Make a copy of the database as it is now
    Checkpoint(CheckpointArgs),
    /// Check every checksum, the order of all keys, the levels and the MANIFEST
    Verify {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Say which settings suit the database, and why
    Advise {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    #[command(name = ".help", alias = "help")]
    Help { command: Option<String> },
    #[command(name = ".mode")]
    Mode { notation: Mode },
    #[command(name = ".json")]
    Json { switch: Switch },
    #[command(name = ".timer")]
    Timer { switch: Switch },
    #[command(name = ".exit", alias = ".quit", alias = "exit", alias = "quit")]
    Exit,
}

#[derive(Subcommand, Debug)]
enum KeyspaceVerb {
    /// Make a keyspace
    Create(CreateKeyspaceArgs),
    /// List the names of the keyspaces
    List(ListKeyspacesArgs),
    /// Count the entries of a keyspace
    Stat(StatKeyspaceArgs),
    /// Remove a keyspace with all that is in it
    Drop(DropKeyspaceArgs),
}

#[derive(Subcommand, Debug)]
enum PreparedVerb {
    /// List the prepared transactions
    List(ListPreparedArgs),
    /// Commit a prepared transaction
    Commit(CommitPreparedArgs),
    /// Forget a prepared transaction
    Rollback(RollbackPreparedArgs),
}

impl Verb {
    fn reads_standard_input(&self) -> bool {
        match self {
            Verb::Put(command) => command.reads_standard_input(),
            Verb::Load(command) => command.reads_standard_input(),
            Verb::Batch(command) => command.reads_standard_input(),
            _ => false,
        }
    }
}

#[derive(clap::ValueEnum, Clone, Copy, Debug)]
enum Mode {
    Text,
    Hex,
    Base64,
}

#[derive(clap::ValueEnum, Clone, Copy, Debug)]
enum Switch {
    On,
    Off,
}

#[derive(clap::ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
enum TransactionMode {
    /// All that it reads, ranges too, must read the same at the commit
    Serializable,
    /// get-for-update locks the key
    Locking,
}

fn transaction_options(modes: &[TransactionMode]) -> TransactionOptions {
    let isolation = match modes.contains(&TransactionMode::Serializable) {
        true => Isolation::Serializable,
        false => Isolation::Snapshot,
    };
    let is_locking = modes.contains(&TransactionMode::Locking);
    TransactionOptions::new().isolation(isolation).locking(is_locking)
}

/// Whether the shell goes on.
#[derive(PartialEq, Eq)]
enum Next {
    Continue,
    Exit,
}

impl ShellCommand {
    pub(crate) fn run(&self, out: &mut Output) -> Result<()> {
        let open = || {
            if self.read_only {
                return self.write.open_read_only(&self.db);
            }
            self.write.open_for_many_writes(&self.db, Missing::create_if(self.create))
        };
        let mut session =
            Session::new(&self.db, Form::default(), &open).with_value_log(self.write.value_log());
        session.set_keyspace(&self.scope.names);
        session.scope(&ScopeArgs::default())?;
        session.db()?;
        let mut shell = Shell { session, is_timed: false, status: 0 };
        let is_script = !io::stdin().is_terminal();
        let result = match !is_script && out.is_terminal() {
            true => shell.interact(out),
            false => shell.read_lines(out, self.bail, is_script),
        };
        let result = match result {
            // The end of a session, which may have met failures before.
            Err(Failure::ClosedPipe) => Ok(()),
            result => result,
        };
        let closed = shell.session.close();
        result.and(closed)?;
        if shell.status == 0 { Ok(()) } else { Err(Failure::Reported(shell.status)) }
    }
}

struct Shell<'a> {
    session: Session<'a>,
    is_timed: bool,
    status: u8,
}

impl Shell<'_> {
    fn interact(&mut self, out: &mut Output) -> Result<()> {
        let history = history_path();
        let mut editor = start_editor(history.as_deref())?;
        signals::interrupt_commands();
        out.line(format!("{}; .help for help", self.session.path().display()))?;
        loop {
            out.flush()?;
            let prompt = if self.session.has_transaction() { TRANSACTION_PROMPT } else { PROMPT };
            match editor.readline(prompt) {
                Ok(lines) => {
                    if self.run_pasted(&lines, out)? == Next::Exit {
                        break;
                    }
                }
                Err(ReadlineError::Interrupted) => {}
                Err(ReadlineError::Eof) => break,
                Err(ReadlineError::Io(error)) if error.kind() == io::ErrorKind::InvalidData => {
                    Failure::other(
                        "this is not UTF-8, and what was typed is dropped; write other bytes as \\xNN",
                    )
                    .report();
                    // The rest of the line could be another command. The editor holds some of
                    // it, and the history, which goes on.
                    save_history(&mut editor, history.as_deref());
                    editor = start_editor(history.as_deref())?;
                    let _ = rustix::termios::tcflush(io::stdin(), QueueSelector::IFlush);
                }
                Err(error) => return Err(editing_failed(&error)),
            }
        }
        save_history(&mut editor, history.as_deref());
        Ok(())
    }

    /// Runs a line, or the several lines of something pasted. An interrupt ends all of them.
    fn run_pasted(&mut self, lines: &str, out: &mut Output) -> Result<Next> {
        for line in lines.split(['\n', '\r']) {
            signals::forget_interrupt();
            match self.run_line(line, out) {
                Ok(Next::Continue) => {}
                Ok(Next::Exit) => return Ok(Next::Exit),
                Err(Failure::ClosedPipe) => return Err(Failure::ClosedPipe),
                // A person has seen it; the status of the session is about the session.
                Err(failure) => {
                    out.flush()?;
                    failure.report();
                    if matches!(failure, Failure::Interrupted) {
                        break;
                    }
                }
            }
        }
        signals::forget_interrupt();
        Ok(Next::Continue)
    }

    fn read_lines(&mut self, out: &mut Output, bail: bool, is_script: bool) -> Result<()> {
        if is_script {
            out.discard_when_closed();
        }
        let mut source = Source::open(None)?;
        loop {
            if !source.has_next_line() {
                // A program at the other end may wait for the output before it writes a line.
                flush(out, is_script)?;
            }
            if !source.advance()? {
                break;
            }
            let line = String::from_utf8(source.line().to_vec());
            let result = match line {
                Ok(line) => self.run_line(&line, out),
                Err(_) => Err(Failure::other("not UTF-8; write other bytes as \\xNN")),
            };
            match result {
                Ok(Next::Continue) => {}
                Ok(Next::Exit) => return Ok(()),
                // It ends this command, as it does outside of the shell. The script may have more
                // to write.
                Err(Failure::ClosedPipe) if is_script => {}
                Err(Failure::ClosedPipe) => return Err(Failure::ClosedPipe),
                Err(failure) => {
                    self.status = self.status.max(failure.status());
                    flush(out, is_script)?;
                    // A command whose output has said what it found has no message.
                    if !failure.to_string().is_empty() {
                        source.mistake(failure).report();
                    }
                    if bail {
                        return Ok(());
                    }
                }
            }
        }
        Ok(())
    }

    fn run_line(&mut self, line: &str, out: &mut Output) -> Result<Next> {
        if line.trim_start().starts_with('#') {
            return Ok(Next::Continue);
        }
        let words = words::split(line).map_err(Failure::Other)?;
        if words.is_empty() {
            return Ok(Next::Continue);
        }
        let matches = match Line::command().try_get_matches_from(words) {
            Ok(matches) => matches,
            Err(error) => return explain(&error, out),
        };
        let line =
            Line::from_arg_matches(&matches).map_err(|error| Failure::other(error.to_string()))?;
        let started = Instant::now();
        let next = self.run_verb(line.verb, out)?;
        if self.is_timed {
            out.line(format!("{:.3} ms", started.elapsed().as_secs_f64() * 1e3))?;
        }
        Ok(next)
    }

    fn run_verb(&mut self, verb: Verb, out: &mut Output) -> Result<Next> {
        let form = self.session.form();
        if verb.reads_standard_input() {
            return Err(Failure::other(
                "name a FILE: standard input holds the shell's own commands",
            ));
        }
        if matches!(verb, Verb::Verify { .. } | Verb::Advise { .. }) {
            self.session.release()?;
        }
        let session = &self.session;
        match verb {
            Verb::Verify { json } => {
                VerifyCommand::on(session.path().into(), json || form.json).run(out)?
            }
            Verb::Advise { json } => {
                AdviseCommand::on(session.path().into(), json || form.json).run(out)?
            }
            Verb::Put(command) => command.run(session, out)?,
            Verb::Get(command) => command.run(session, out)?,
            Verb::Delete(command) => command.run(session, out)?,
            Verb::DeleteRange(command) => command.run(session, out)?,
            Verb::Scan(command) => command.run(session, out)?,
            Verb::Load(command) => command.run(session, out)?,
            Verb::Dump(command) => command.run(session, out)?,
            Verb::Batch(command) => command.run(session, out)?,
            Verb::Cas(command) => command.run(session, out)?,
            Verb::Update(command) => command.run(session, out)?,
            Verb::Begin { modes } => session.begin(transaction_options(&modes))?,
            Verb::GetForUpdate(command) => command.run_for_update(session, out)?,
            Verb::Commit => session.commit()?,
            Verb::Rollback => session.rollback()?,
            Verb::Prepare(command) => command.run(session, out)?,
            Verb::Prepared(PreparedVerb::List(command)) => command.run(session, out)?,
            Verb::Prepared(PreparedVerb::Commit(command)) => command.run(session, out)?,
            Verb::Prepared(PreparedVerb::Rollback(command)) => command.run(session, out)?,
            Verb::Keyspace(KeyspaceVerb::Create(command)) => command.run(session, out)?,
            Verb::Keyspace(KeyspaceVerb::List(command)) => command.run(session, out)?,
            Verb::Keyspace(KeyspaceVerb::Stat(command)) => command.run(session, out)?,
            Verb::Keyspace(KeyspaceVerb::Drop(command)) => command.run(session, out)?,
            Verb::Stat(command) => command.run(session, out)?,
            Verb::Files(command) => command.run(session, out)?,
            Verb::Inspect(command) => command.run(form, out)?,
            Verb::Compact(command) => command.run(session, out)?,
            Verb::Checkpoint(command) => command.run(session, out)?,
            Verb::Help { command } => print_help(command.as_deref(), out)?,
            Verb::Mode { notation } => {
                let notation = match notation {
                    Mode::Text => Notation::Text,
                    Mode::Hex => Notation::Hex,
                    Mode::Base64 => Notation::Base64,
                };
                self.session.set_form(Form { notation, ..form });
            }
            Verb::Json { switch } => {
                self.session.set_form(Form { json: matches!(switch, Switch::On), ..form })
            }
            Verb::Timer { switch } => self.is_timed = matches!(switch, Switch::On),
            Verb::Exit => return Ok(Next::Exit),
        }
        Ok(Next::Continue)
    }
}

/// Writes the output out. A script goes on when nobody reads it.
fn flush(out: &mut Output, is_script: bool) -> Result<()> {
    match out.flush() {
        Err(Failure::ClosedPipe) if is_script => Ok(()),
        flushed => flushed,
    }
}

type LineEditor = Editor<Completion, DefaultHistory>;

fn start_editor(history: Option<&Path>) -> Result<LineEditor> {
    let config = Config::builder().auto_add_history(true).build();
    let mut editor = LineEditor::with_config(config).map_err(|error| editing_failed(&error))?;
    editor.set_helper(Some(Completion::new(Line::command())));
    if let Some(path) = history {
        // A first session has no history yet.
        let _ = editor.load_history(path);
    }
    Ok(editor)
}

fn save_history(editor: &mut LineEditor, history: Option<&Path>) {
    if let Some(path) = history {
        // Not worth failing over.
        let _ = editor.save_history(path);
    }
}

fn editing_failed(error: &ReadlineError) -> Failure {
    Failure::other(format!("line editing: {error}"))
}

fn print_help(command: Option<&str>, out: &mut Output) -> Result<()> {
    let Some(name) = command else { return out.lines(HELP) };
    let mut line = Line::command();
    match line.find_subcommand_mut(name) {
        Some(command) => out.lines(command.render_help().to_string().trim_end()),
        None => Err(Failure::other(format!("no command {name}; .help lists them"))),
    }
}

/// The parser's message: help that was asked for goes to the output, a mistake is a failure.
fn explain(error: &clap::Error, out: &mut Output) -> Result<Next> {
    let text = error.to_string();
    match error.kind() {
        ErrorKind::DisplayHelp => out.lines(text.trim_end()).map(|()| Next::Continue),
        ErrorKind::InvalidSubcommand => {
            let name = error
                .get(ContextKind::InvalidSubcommand)
                .map(ToString::to_string)
                .unwrap_or_default();
            Err(Failure::other(format!("no command {name}; .help lists the commands")))
        }
        _ => {
            // A message of several lines, then tips and usage, each after an empty line: one line
            // of it all.
            let parts = text
                .split("\n\n")
                .filter(|part| !part.trim_start().starts_with("For more information"));
            let parts: Vec<_> =
                parts.map(|part| part.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
            Err(Failure::other(parts.join("; ").trim_start_matches("error: ")))
        }
    }
}

/// The file that keeps the lines of earlier sessions: `$TERRACE_HISTORY`, none if that is empty,
/// `~/.terrace_history` if it is not set.
fn history_path() -> Option<PathBuf> {
    match std::env::var_os("TERRACE_HISTORY") {
        Some(path) if path.is_empty() => None,
        Some(path) => Some(path.into()),
        None => Some(PathBuf::from(std::env::var_os("HOME")?).join(".terrace_history")),
    }
}
