//! Keyspaces: `keyspace create`, `list`, `stat`, `drop`.

use std::time::Duration;

use clap::Args;
use serde_json::{Value, json};
use terrace::{Compression, Keyspace, KeyspaceOptions};

use super::{Run, Session};
use crate::failure::{Failure, Result};
use crate::number::parse_seconds;
use crate::output::Output;
use crate::output::columns::{counted, size};
use crate::own_entries;
use crate::progress::Progress;
use crate::range::KeyRange;

/// Entries between two steps of a progress bar.
const PROGRESS_STEP: u64 = 1 << 12;

#[derive(Args, Debug)]
pub(crate) struct CreateKeyspaceArgs {
    /// Its name; after another name, that of one within that keyspace
    #[arg(value_name = "NAME", required = true)]
    names: Vec<String>,
    /// Entries may expire: put --ttl SECONDS
    #[arg(long)]
    expiry: bool,
    /// Entries that are put without a time expire after so many seconds
    #[arg(
        long,
        value_name = "SECONDS",
        requires = "expiry",
        value_parser = parse_seconds,
        allow_negative_numbers = true
    )]
    ttl: Option<Duration>,
    /// How its blocks are compressed, whatever the database says: none or snappy
    #[arg(long, value_name = "HOW")]
    own_compression: Option<String>,
    /// Bytes of its blocks before compression, whatever the database says
    #[arg(long, value_name = "BYTES", allow_negative_numbers = true)]
    own_block_size: Option<usize>,
    /// Bits for each of its keys in the filters of tables, whatever the database says
    #[arg(long, value_name = "BITS", allow_negative_numbers = true)]
    own_filter_bits: Option<usize>,
}

impl CreateKeyspaceArgs {
    fn options(&self) -> Result<KeyspaceOptions> {
        let mut options = KeyspaceOptions::new().expiry(self.expiry).default_ttl(self.ttl);
        if let Some(how) = &self.own_compression {
            options = options.compression(match how.as_str() {
                "none" => Compression::None,
                "snappy" => Compression::Snappy,
                _ => {
                    return Err(Failure::other(format!("--own-compression {how}: none or snappy")));
                }
            });
        }
        if let Some(bytes) = self.own_block_size {
            options = options.block_size(bytes);
        }
        if let Some(bits) = self.own_filter_bits {
            options = options.filter_bits(bits);
        }
        Ok(options)
    }
}

impl Run for CreateKeyspaceArgs {
    fn run(&self, session: &Session<'_>, _: &mut Output) -> Result<()> {
        let Some((name, parents)) = self.names.split_last() else { return Ok(()) };
        let options = self.options()?;
        let db = session.db_without_transaction()?;
        match session.find_keyspace(parents)? {
            Some(parent) => parent.create_keyspace(name, options)?,
            None => db.create_keyspace(name, options)?,
        };
        Ok(())
    }
}

#[derive(Args, Debug)]
pub(crate) struct ListKeyspacesArgs {
    /// List those within this keyspace
    #[arg(value_name = "NAME")]
    names: Vec<String>,
    /// Print JSON, one object a line
    #[arg(long)]
    json: bool,
}

impl Run for ListKeyspacesArgs {
    fn run(&self, session: &Session<'_>, out: &mut Output) -> Result<()> {
        let db = session.db()?;
        let names = match session.find_keyspace(&self.names)? {
            Some(parent) => parent.keyspaces()?,
            None => db.keyspaces()?,
        };
        let is_json = self.json || session.form().json;
        names.iter().try_for_each(|name| match is_json {
            true => out.json(&json!({ "name": name })),
            false => out.line(name),
        })?;
        out.flush()?;
        session.require_whole("the list")
    }
}

#[derive(Args, Debug)]
pub(crate) struct StatKeyspaceArgs {
    /// Its name; after another name, that of one within that keyspace
    #[arg(value_name = "NAME", required = true)]
    names: Vec<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl Run for StatKeyspaceArgs {
    fn run(&self, session: &Session<'_>, out: &mut Output) -> Result<()> {
        let Some(keyspace) = session.find_keyspace(&self.names)? else {
            return Ok(());
        };
        let (mut count, mut bytes) = (0_u64, 0_u64);
        let progress = Progress::spinner("counting");
        let range = KeyRange::of_prefix(&keyspace.key(""));
        session.for_each(&range, false, |key, value| {
            count += 1;
            bytes += (key.len() + value.len()) as u64;
            if count.is_multiple_of(PROGRESS_STEP) {
                progress.set(count);
            }
            Ok(true)
        })?;
        drop(progress);
        let (within, on_disk) = (keyspace.keyspaces()?, keyspace.approximate_size()?);
        let settings = settings(session, &keyspace)?;
        let shown = |(name, value): &(String, String)| match (name.as_str(), value.as_str()) {
            (name, "") => name.to_owned(),
            ("ttl", value) => format!("ttl {value} ms"),
            (name, value) => format!("{name} {value}"),
        };
        if self.json || session.form().json {
            out.json(&json!({
                "entries": count,
                "bytes": bytes,
                "table_bytes": on_disk,
                "settings": settings_as_json(&settings),
                "keyspaces": within,
            }))?;
        } else {
            let entries = counted(count, "entry", "entries");
            out.line(format!("{entries}, {} of keys and values", size(bytes)))?;
            out.line(format!("about {} in tables", size(on_disk)))?;
            if !settings.is_empty() {
                let settings: Vec<_> = settings.iter().map(shown).collect();
                out.line(format!("settings: {}", settings.join(", ")))?;
            }
            if !within.is_empty() {
                out.line(format!("keyspaces within: {}", within.join(" ")))?;
            }
        }
        out.flush()?;
        session.require_whole("the count")
    }
}

/// The settings with which it was created, names and values, as its entry in the catalogue has them
/// (`docs/format.md`); none if it has no entry.
fn settings(session: &Session<'_>, keyspace: &Keyspace) -> Result<Vec<(String, String)>> {
    let key = [own_entries::PREFIX, b"keyspace", &keyspace.key("")].concat();
    let entry = session.get(&key)?.unwrap_or_default();
    let lines = String::from_utf8_lossy(&entry).into_owned();
    let settings = lines.lines().skip(1).map(|line| line.split_once(' ').unwrap_or((line, "")));
    Ok(settings.map(|(name, value)| (name.to_owned(), value.to_owned())).collect())
}

/// `{"expiry": true, "ttl_ms": 3600000, "compression": "none"}`
fn settings_as_json(settings: &[(String, String)]) -> Value {
    let settings = settings.iter().map(|(name, value)| {
        let name = if name == "ttl" { "ttl_ms" } else { name };
        let value = match (value.as_str(), value.parse::<u64>()) {
            ("", _) => true.into(),
            (_, Ok(number)) => number.into(),
            (text, Err(_)) => text.into(),
        };
        (name.to_owned(), value)
    });
    Value::Object(settings.collect())
}

#[derive(Args, Debug)]
pub(crate) struct DropKeyspaceArgs {
    /// Its name; after another name, that of one within that keyspace
    #[arg(value_name = "NAME", required = true)]
    names: Vec<String>,
}

impl Run for DropKeyspaceArgs {
    fn run(&self, session: &Session<'_>, _: &mut Output) -> Result<()> {
        let Some((name, parents)) = self.names.split_last() else { return Ok(()) };
        let db = session.db_without_transaction()?;
        let parent = session.find_keyspace(parents)?;
        let dropped = match &parent {
            Some(parent) => parent.drop_keyspace(name)?,
            None => db.drop_keyspace(name)?,
        };
        if !dropped {
            // The error that names it.
            session.find_keyspace(&self.names)?;
        }
        Ok(())
    }
}
