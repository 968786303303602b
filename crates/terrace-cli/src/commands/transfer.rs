//! Many entries in and out: `load`, `dump`, `batch`.

use std::io::{self, IsTerminal, Write};
use std::path::PathBuf;

use clap::Args;
use serde_json::json;
use terrace::{Db, WriteBatch};

use super::load_check::{LoadCheck, refuse_whole_dump};
use super::scope::{Scope, ScopeArgs};
use super::{Run, Session};
use crate::failure::{Failure, Result};
use crate::form::{Form, FormArgs};
use crate::interchange::{EntryReader, EntryWriter, Format};
use crate::output::Output;
use crate::output::columns::counted;
use crate::own_entries;
use crate::progress::Progress;
use crate::range::RangeArgs;
use crate::signals;
use crate::source::Source;
use crate::text::Notation;
use crate::words;

/// Entries between two steps of the progress bar.
const PROGRESS_STRIDE: u64 = 1 << 10;

#[derive(Args, Debug)]
#[command(mut_arg(
    "json",
    |json| json.help("The input is JSON, one object a line; so is what is printed")
))]
pub(crate) struct LoadArgs {
    /// The input; standard input if missing or -
    file: Option<PathBuf>,
    /// The input's format: key TAB value (text, the default), one JSON object a line (json, also
    /// --json), or Berkeley DB's db_dump (bdb)
    #[arg(long, value_name = "FORMAT")]
    format: Option<Format>,
    #[command(flatten)]
    scope: ScopeArgs,
    #[command(flatten)]
    form: FormArgs,
}

#[derive(Args, Debug)]
#[command(mut_arg("json", |json| json.help("The same as --format json")))]
pub(crate) struct DumpArgs {
    /// The output; a file that exists is replaced when the dump is complete; standard output if
    /// missing or -
    file: Option<PathBuf>,
    /// The output's format: key TAB value (text, the default), one JSON object a line (json, also
    /// --json), or Berkeley DB's db_dump (bdb)
    #[arg(long, value_name = "FORMAT")]
    format: Option<Format>,
    /// With --format bdb: printable characters as they are, instead of hexadecimal digits
    /// throughout
    #[arg(long)]
    printable: bool,
    #[command(flatten)]
    range: RangeArgs,
    #[command(flatten)]
    scope: ScopeArgs,
    #[command(flatten)]
    form: FormArgs,
}

#[derive(Args, Debug)]
#[command(mut_arg(
    "json",
    |json| json.help("Print JSON; the input is put and delete lines all the same")
))]
pub(crate) struct BatchArgs {
    /// The input; standard input if missing or -
    file: Option<PathBuf>,
    #[command(flatten)]
    scope: ScopeArgs,
    #[command(flatten)]
    form: FormArgs,
}

/// The format that was asked for, or else the usual one of the form.
fn format_of(asked: Option<Format>, form: Form) -> Format {
    asked.unwrap_or(if form.json { Format::Json } else { Format::Text })
}

impl LoadArgs {
    pub(crate) fn reads_standard_input(&self) -> bool {
        Source::is_standard_input(self.file.as_deref())
    }
}

impl Run for LoadArgs {
    fn run(&self, session: &Session<'_>, out: &mut Output) -> Result<()> {
        let form = self.form.over(session.form());
        session.refuse_transaction()?;
        let source = Source::open(self.file.as_deref())?;
        let is_typed = self.reads_standard_input() && io::stdin().is_terminal();
        let progress = if is_typed {
            // Not worth failing over.
            let _ = writeln!(
                io::stderr(),
                "terrace: reads entries from standard input, until Ctrl-D at the start of a line"
            );
            Progress::hidden()
        } else {
            Progress::bytes("loading", source.size())
        };
        let mut reader = EntryReader::new(source, format_of(self.format, form), form.notation)?;
        // Before a database is made for it: an input that is wrong from the start leaves none.
        let first = reader.read()?;
        let mut taken = Taken::default();
        let db = session.db_without_transaction()?;
        let scope = session.scope(&self.scope)?;
        let _registered = signals::remove_temporary_files_at_signal(session.path());
        match load(db, &scope, first, &mut reader, progress, &mut taken) {
            Ok(()) => {
                let names = ["entry", "entries"];
                report_written(out, form, "loaded", names, taken.entries, taken.bytes)?;
                match session.value_log() {
                    Some(threshold) if taken.largest >= threshold && !form.json => {
                        report_values_in_tables(session, threshold, out)
                    }
                    _ => Ok(()),
                }
            }
            Err(Failure::Other(message)) if taken.entries > 0 => {
                let entries = counted(taken.entries, "entry", "entries");
                Err(Failure::Other(format!("{message} ({entries} before it loaded)")))
            }
            Err(failure) => Err(failure),
        }
    }
}

/// A key and its value.
type Entry = (Vec<u8>, Vec<u8>);

/// The part of the input that has been read.
#[derive(Default)]
struct Taken {
    entries: u64,
    bytes: u64,
    /// The size of the largest value.
    largest: usize,
}

/// Loads the input to its end or to the first mistake in it: what precedes a mistake comes into the
/// database too. Nothing does where an entry of Terrace's own does not fit.
fn load(
    db: &Db,
    scope: &Scope,
    first: Option<Entry>,
    reader: &mut EntryReader,
    progress: Progress,
    taken: &mut Taken,
) -> Result<()> {
    let mut load = db.bulk_load()?;
    let mut own_entries = LoadCheck::default();
    let mut next = Ok(first);
    let end = loop {
        signals::check()?;
        match next {
            Ok(Some((key, value))) => {
                let checked = match scope.is_everything() {
                    true => own_entries.check(db, &key, &value),
                    false => refuse_whole_dump(&key, &value).map(|()| true),
                };
                match checked {
                    Ok(true) => {}
                    Ok(false) => {
                        next = reader.read();
                        continue;
                    }
                    Err(failure) => {
                        *taken = Taken::default();
                        let what = format_args!("{failure}; nothing was loaded");
                        return Err(reader.source().mistake(what));
                    }
                }
                let (stored_key, stored) = scope.entry(&key, &value, None)?;
                load.put(stored_key, stored)
                    .map_err(|error| error.context("nothing was loaded"))?;
                taken.entries += 1;
                taken.bytes += (key.len() + value.len()) as u64;
                taken.largest = taken.largest.max(value.len());
                if taken.entries.is_multiple_of(PROGRESS_STRIDE) {
                    progress.set(reader.source().bytes_read());
                }
                next = reader.read();
            }
            Ok(None) => break Ok(()),
            Err(failure) => break Err(failure),
        }
    };
    drop(progress);
    let _spinner = Progress::spinner("putting the tables in place");
    load.finish()?;
    end
}

/// A load writes tables, whatever the size of values.
fn report_values_in_tables(
    session: &Session<'_>,
    threshold: usize,
    out: &mut Output,
) -> Result<()> {
    let path = session.path().display();
    out.line(format!(
        "values of {threshold} bytes and more are in tables until a compaction moves them; \
         `terrace convert {path} --to extended --value-log {threshold}` moves all of them"
    ))
}

fn report_written(
    out: &mut Output,
    form: Form,
    verb: &str,
    [one, many]: [&str; 2],
    count: u64,
    bytes: u64,
) -> Result<()> {
    if form.json {
        return out.json(&json!({ many: count, "bytes": bytes }));
    }
    let bytes = counted(bytes, "byte", "bytes");
    out.line(format!("{verb} {}, {bytes} of keys and values", counted(count, one, many)))
}

impl Run for DumpArgs {
    fn run(&self, session: &Session<'_>, out: &mut Output) -> Result<()> {
        let form = self.form.over(session.form());
        let range = self.range.range(form.notation)?;
        if self.form.json && self.format.is_some_and(|format| format != Format::Json) {
            return Err(Failure::other("--json is --format json: say one of --json and --format"));
        }
        let format = format_of(self.format, form);
        let scope = session.scope(&self.scope)?;
        let mut file = match self.file.as_deref().filter(|path| !Output::is_standard_output(path)) {
            Some(path) => Some(Output::file(path)?),
            None => None,
        };
        let to = file.as_mut().unwrap_or(&mut *out);
        let progress =
            if to.is_terminal() { Progress::hidden() } else { Progress::bytes("dumping", None) };
        let mut writer = EntryWriter::new(to, format, form.notation, self.printable)?;
        let mut bytes = 0;
        let (range, is_everything) = (scope.range(range), scope.is_everything());
        let leaves_out = is_everything && !own_entries::is_asked_for(&range);
        let mut left_out = 0;
        let write = |key: &[u8], value: &[u8]| {
            if leaves_out && own_entries::is_prepared_transaction(key) {
                // It waits for its decision here, and must not wait in a copy too.
                left_out += 1;
                return Ok(true);
            }
            let key = scope.within(key);
            bytes += (key.len() + value.len()) as u64;
            progress.set(bytes);
            writer.write(to, key, value).map(|()| true)
        };
        match is_everything && !session.has_transaction() {
            true => session.for_each_stored(&range, write)?,
            false => session.for_each(&range, false, write)?,
        }
        writer.finish(to)?;
        if left_out > 0 {
            let transactions = counted(left_out, "prepared transaction", "prepared transactions");
            // Where standard error is closed it is not said.
            let _ = writeln!(
                io::stderr(),
                "terrace: {transactions} left out; see `terrace prepared list`"
            );
        }
        match file {
            Some(file) => file.finish()?,
            None => out.flush()?,
        }
        session.require_whole("the dump")
    }
}

impl BatchArgs {
    pub(crate) fn reads_standard_input(&self) -> bool {
        Source::is_standard_input(self.file.as_deref())
    }
}

impl Run for BatchArgs {
    fn run(&self, session: &Session<'_>, out: &mut Output) -> Result<()> {
        let form = self.form.over(session.form());
        let mut source = Source::open(self.file.as_deref())?;
        let scope = session.scope(&self.scope)?;
        let mut batch = WriteBatch::new();
        let mut bytes = 0;
        while source.advance()? {
            bytes += add_operation(&mut batch, &scope, source.line(), form.notation)
                .map_err(|e| source.mistake(e))?;
        }
        session.write(&batch)?;
        report_written(out, form, "applied", ["operation", "operations"], batch.len() as u64, bytes)
    }
}

/// Adds the operation that `line` describes, if it describes one, and returns the bytes of its key
/// and value.
fn add_operation(
    batch: &mut WriteBatch,
    scope: &Scope,
    line: &[u8],
    notation: Notation,
) -> std::result::Result<u64, String> {
    if line.is_empty() || line.starts_with(b"#") {
        return Ok(0);
    }
    let fields: Vec<Vec<u8>> = if line.contains(&b'\t') {
        line.split(|&byte| byte == b'\t').map(<[u8]>::to_vec).collect()
    } else {
        let line =
            std::str::from_utf8(line).map_err(|_| "not UTF-8; write other bytes as \\xNN")?;
        words::split(line)?.into_iter().map(String::into_bytes).collect()
    };
    let decode =
        |name: &str, written: &[u8]| notation.decode(written).map_err(|e| format!("{name}: {e}"));
    match fields.iter().map(Vec::as_slice).collect::<Vec<_>>().as_slice() {
        [] => Ok(0),
        [b"put", key, value] => {
            let (key, value) = (decode("key", key)?, decode("value", value)?);
            let (stored_key, stored) =
                scope.entry(&key, &value, None).map_err(|failure| failure.to_string())?;
            own_entries::refuse(&stored_key).map_err(|failure| failure.to_string())?;
            batch.put(stored_key, stored);
            Ok((key.len() + value.len()) as u64)
        }
        [b"delete", key] => {
            let key = decode("key", key)?;
            let stored_key = scope.key(&key);
            own_entries::refuse(&stored_key).map_err(|failure| failure.to_string())?;
            batch.delete(stored_key);
            Ok(key.len() as u64)
        }
        [b"put", rest @ ..] => {
            Err(format!("put takes a key and a value, here {} after it", number_of_words(rest)))
        }
        [b"delete", rest @ ..] => {
            Err(format!("delete takes a key, here {} after it", number_of_words(rest)))
        }
        [other, ..] => {
            Err(format!("must be put or delete, is {}", Notation::Text.in_message(other)))
        }
    }
}

/// `is 1 word`, `are 3 words`
fn number_of_words(words: &[&[u8]]) -> String {
    let verb = if words.len() == 1 { "is" } else { "are" };
    format!("{verb} {}", counted(words.len() as u64, "word", "words"))
}
