//! Entries: `put`, `get`, `delete`, `delete-range`.

use std::ffi::OsString;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use clap::{ArgGroup, Args};
use serde_json::json;
use terrace::WriteBatch;

use super::lifetime::LifetimeArgs;
use super::scope::ScopeArgs;
use super::{Run, Session};
use crate::failure::{Failure, Result};
use crate::form::{FormArgs, NotationArgs};
use crate::output::Output;
use crate::own_entries;
use crate::range::{KeyRange, RangeArgs, decode_argument};
use crate::source;
use crate::text::to_json;

#[derive(Args, Debug)]
pub(crate) struct PutArgs {
    /// The key
    key: OsString,
    /// The value
    #[arg(required_unless_present = "value_file", conflicts_with = "value_file")]
    value: Option<OsString>,
    /// Take the value from this file, byte for byte; - is standard input
    #[arg(long, value_name = "FILE")]
    value_file: Option<PathBuf>,
    #[command(flatten)]
    lifetime: LifetimeArgs,
    #[command(flatten)]
    scope: ScopeArgs,
    #[command(flatten)]
    notation: NotationArgs,
}

#[derive(Args, Debug)]
pub(crate) struct GetArgs {
    /// The key
    key: OsString,
    /// Print the value's bytes as they are, without a newline
    #[arg(long, conflicts_with = "json")]
    raw: bool,
    #[command(flatten)]
    scope: ScopeArgs,
    #[command(flatten)]
    form: FormArgs,
}

#[derive(Args, Debug)]
pub(crate) struct DeleteArgs {
    /// The key
    key: OsString,
    #[command(flatten)]
    scope: ScopeArgs,
    #[command(flatten)]
    notation: NotationArgs,
}

#[derive(Args, Debug)]
#[command(group(
    ArgGroup::new("keys").args(["begin", "from", "to", "prefix"]).required(true).multiple(true)
))]
pub(crate) struct DeleteRangeArgs {
    /// Begin at this key, or at the first one after it
    #[arg(value_name = "FROM", requires = "end", conflicts_with_all = ["from", "to", "prefix"])]
    begin: Option<OsString>,
    /// End before this key: it is not part of the range
    #[arg(value_name = "TO")]
    end: Option<OsString>,
    #[command(flatten)]
    range: RangeArgs,
    /// Also where Terrace's own entries are in the range: keyspaces lose their settings
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    scope: ScopeArgs,
    #[command(flatten)]
    notation: NotationArgs,
}

/// No value is as large; the engine's own limit is a little lower.
const VALUE_LIMIT: u64 = 1 << 32;

impl PutArgs {
    pub(crate) fn reads_standard_input(&self) -> bool {
        self.value_file.as_deref() == Some(Path::new("-"))
    }
}

impl Run for PutArgs {
    fn run(&self, session: &Session<'_>, _: &mut Output) -> Result<()> {
        let notation = self.notation.over(session.form());
        let key = decode_argument("KEY", &self.key, notation)?;
        let value = match (&self.value, &self.value_file) {
            (Some(value), _) => decode_argument("VALUE", value, notation)?,
            (None, Some(path)) => read_whole(path)?,
            (None, None) => return Err(Failure::other("VALUE or --value-file is missing")),
        };
        let mut batch = WriteBatch::new();
        let (key, value) = session.scope(&self.scope)?.entry(&key, &value, self.lifetime.ttl)?;
        own_entries::refuse(&key)?;
        batch.put(key, value);
        session.write(&batch)
    }
}

/// Reads a value. Ends at the size that no value may have, whatever the input is.
fn read_whole(path: &Path) -> Result<Vec<u8>> {
    let bytes = if path == Path::new("-") {
        source::require_standard_input()?;
        read_value(io::stdin().lock())
            .map_err(|e| Failure::other(format!("cannot read standard input: {e}")))?
    } else {
        let file = std::fs::File::open(path).map_err(|e| Failure::io("open", path, &e))?;
        let metadata = file.metadata().map_err(|e| Failure::io("open", path, &e))?;
        if metadata.is_dir() {
            return Err(Failure::other(format!("{} is a directory", path.display())));
        }
        if metadata.len() >= VALUE_LIMIT {
            return Err(too_large(path));
        }
        read_value(file).map_err(|e| Failure::io("read", path, &e))?
    };
    if bytes.len() as u64 >= VALUE_LIMIT {
        return Err(too_large(path));
    }
    Ok(bytes)
}

fn too_large(path: &Path) -> Failure {
    Failure::other(format!("{} is too large for a value: 4 GiB or more", path.display()))
}

fn read_value(input: impl Read) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    input.take(VALUE_LIMIT).read_to_end(&mut bytes)?;
    Ok(bytes)
}

impl GetArgs {
    /// Prints the value of a key that the transaction of the shell rests on.
    pub(crate) fn run_for_update(&self, session: &Session<'_>, out: &mut Output) -> Result<()> {
        self.print(session, out, |key| session.get_for_update(key))
    }

    fn print(
        &self,
        session: &Session<'_>,
        out: &mut Output,
        get: impl FnOnce(&[u8]) -> Result<Option<Vec<u8>>>,
    ) -> Result<()> {
        let form = self.form.over(session.form());
        let key = decode_argument("KEY", &self.key, form.notation)?;
        let value = get(&session.scope(&self.scope)?.key(&key))?;
        if form.json && !self.raw {
            let shown = value.as_ref().map(|value| to_json(form.notation, value));
            out.json(&json!({ "key": to_json(form.notation, &key), "value": shown }))?;
        }
        let Some(value) = value else {
            let message = format!("no entry for the key {}", form.notation.in_message(&key));
            return Err(session.unless_whole(Failure::Missing(message)));
        };
        match (self.raw, form.json) {
            (true, _) => out.bytes(&value),
            (false, true) => Ok(()),
            (false, false) => out.line(form.notation.encode(&value)),
        }
    }
}

impl Run for GetArgs {
    fn run(&self, session: &Session<'_>, out: &mut Output) -> Result<()> {
        self.print(session, out, |key| session.get(key))
    }
}

impl Run for DeleteArgs {
    fn run(&self, session: &Session<'_>, _: &mut Output) -> Result<()> {
        let notation = self.notation.over(session.form());
        let key = decode_argument("KEY", &self.key, notation)?;
        let mut batch = WriteBatch::new();
        let key = session.scope(&self.scope)?.key(&key);
        own_entries::refuse(&key)?;
        batch.delete(key);
        session.write(&batch)
    }
}

impl Run for DeleteRangeArgs {
    fn run(&self, session: &Session<'_>, _: &mut Output) -> Result<()> {
        let notation = self.notation.over(session.form());
        let range = match &self.begin {
            None => self.range.range(notation)?,
            Some(_) => {
                let (from, to) = (self.begin.clone(), self.end.clone());
                RangeArgs { from, to, prefix: None }.range(notation)?
            }
        };
        let range = session.scope(&self.scope)?.range(range);
        if !self.force && has_own_entries(session, &range)? {
            return Err(Failure::other(
                "the range holds Terrace's own entries, !$terrace!..., on which keyspaces rest: \
                 narrow it, or remove them too with --force",
            ));
        }
        session.delete_range(&range)?;
        // A range delete spares them where the range begins before.
        match own_entries::within(&range) {
            Some(own) if self.force => session.delete_range(&own),
            _ => Ok(()),
        }
    }
}

fn has_own_entries(session: &Session<'_>, range: &KeyRange) -> Result<bool> {
    let Some(own) = own_entries::within(range) else { return Ok(false) };
    let mut has = false;
    session.for_each(&own, false, |_, _| {
        has = true;
        Ok(false)
    })?;
    Ok(has)
}
