//! One file, taken apart: `inspect`. A file for each kind of file.

mod log;
mod manifest;
mod table;

use std::fs::File;
use std::io::Read;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use serde_json::{Value, json};
use terrace::Options;
use terrace::inspect::{self, Damage, FileKind};

use crate::directory::FileType;
use crate::failure::{Failure, Result};
use crate::form::{Form, FormArgs};
use crate::output::Output;
use crate::text::to_json;

/// A longer file is no CURRENT.
const LONGEST_CURRENT: u64 = 4 << 10;

#[derive(Args, Debug)]
#[command(
    mut_arg("hex", |hex| hex.help("Print keys and values as pairs of hexadecimal digits")),
    mut_arg("base64", |base64| base64.help("Print keys and values as base64"))
)]
pub(crate) struct InspectArgs {
    /// Tables (.ldb, .sst), logs (.log), value files (.vlog), MANIFESTs or CURRENT
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// The kind of the file, instead of the one that its name or contents show
    #[arg(long, value_name = "KIND")]
    kind: Option<KindName>,
    /// Show every key
    #[arg(long)]
    keys: bool,
    /// Show every key and value
    #[arg(long)]
    values: bool,
    /// Show the summary at the end alone
    #[arg(long, conflicts_with_all = ["keys", "values"])]
    summary: bool,
    #[command(flatten)]
    form: FormArgs,
}

#[derive(ValueEnum, Clone, Copy, Debug)]
enum KindName {
    Table,
    Log,
    Values,
    Manifest,
}

impl InspectArgs {
    /// Goes on behind a file that cannot be read; the status is the worst of all.
    pub(crate) fn run(&self, usual: Form, out: &mut Output) -> Result<()> {
        if let [file] = self.files.as_slice() {
            return self.run_on(file, usual, out).map_err(Failure::of_check);
        }
        let form = self.form.over(usual);
        let mut status = 0;
        for file in &self.files {
            match form.json {
                true => out.json(&json!({ "file": file.to_string_lossy() }))?,
                false => out.line(format!("{}:", file.display()))?,
            }
            match self.run_on(file, usual, out).map_err(Failure::of_check) {
                Ok(()) => {}
                Err(Failure::ClosedPipe) => return Err(Failure::ClosedPipe),
                Err(failure) => {
                    let message = failure.to_string();
                    if form.json && !message.is_empty() {
                        out.json(&json!({ "error": message }))?;
                    }
                    out.flush()?;
                    failure.report();
                    status = status.max(failure.status());
                }
            }
        }
        if status == 0 { Ok(()) } else { Err(Failure::Reported(status)) }
    }

    fn run_on(&self, named: &Path, usual: Form, out: &mut Output) -> Result<()> {
        // The library opens no symbolic links; a user who names one means its target.
        let file = named.canonicalize().map_err(|e| Failure::io("open", named, &e))?;
        let path = named.display();
        if file.is_dir() {
            return Err(Failure::other(format!(
                "{path} is a directory; `terrace files` lists the files in it"
            )));
        }
        if self.kind.is_none() && file.file_name().is_some_and(|name| name == "CURRENT") {
            return current(&file, self.form.over(usual), out);
        }
        let kind = match self.kind {
            Some(KindName::Table) => FileKind::Table,
            Some(KindName::Log | KindName::Values) => FileKind::Log,
            Some(KindName::Manifest) => FileKind::Manifest,
            None => inspect::kind(&file, &Options::new())?.ok_or_else(|| {
                let hint = "tell which with --kind if it is one of them";
                Failure::other(format!(
                    "{path} looks like none of table, log, value file and MANIFEST; {hint}"
                ))
            })?,
        };
        let mut printer =
            Printer { args: self, file, form: self.form.over(usual), out, failure: None };
        let damages = match kind {
            FileKind::Table => printer.table(),
            FileKind::Log => printer.log(),
            FileKind::Manifest => printer.manifest(),
        }?;
        if damages == 0 { Ok(()) } else { Err(Failure::Damage) }
    }
}

/// Prints the line of the file that names the present MANIFEST.
fn current(file: &Path, form: Form, out: &mut Output) -> Result<()> {
    let mut bytes = Vec::new();
    File::open(file)
        .and_then(|opened| opened.take(LONGEST_CURRENT).read_to_end(&mut bytes))
        .map_err(|e| Failure::io("read", file, &e))?;
    let line = bytes.strip_suffix(b"\n").unwrap_or(&bytes);
    let name = std::str::from_utf8(line).unwrap_or_default();
    let is_sound = bytes.ends_with(b"\n") && FileType::of(name) == FileType::Manifest;
    if form.json {
        out.json(&json!({ "current": {
            "line": to_json(form.notation, line),
            "damages": u64::from(!is_sound),
        }}))?;
    } else {
        out.line(form.notation.encode(line))?;
        if !is_sound {
            out.line("DAMAGE at 0: not the name of a MANIFEST and a newline")?;
        }
    }
    if is_sound { Ok(()) } else { Err(Failure::Damage) }
}

/// Prints the pieces of a file as inspection meets them.
struct Printer<'a> {
    args: &'a InspectArgs,
    file: PathBuf,
    form: Form,
    out: &'a mut Output,
    /// Why printing stopped, if it did.
    failure: Option<Failure>,
}

impl Printer<'_> {
    fn operation(
        &mut self,
        effect: &str,
        sequence: u64,
        key: &[u8],
        value: Option<&[u8]>,
    ) -> Result<()> {
        let shown_value = value.filter(|_| self.args.values);
        let value_size = value.map(<[u8]>::len);
        if self.form.json {
            let mut object = json!({ "sequence": sequence, "effect": effect, "key": self.json(key), "value_size": value_size });
            if let Some(value) = shown_value {
                object["value"] = self.json(value);
            }
            return self.out.json(&json!({ "entry": object }));
        }
        let key = self.show(key);
        let rest = match (shown_value.map(|value| self.show(value)), value_size) {
            (Some(value), _) => format!("\t{value}"),
            (None, Some(bytes)) => format!("\t({bytes} bytes)"),
            (None, None) => String::new(),
        };
        self.line(format!("  {sequence}\t{effect}\t{key}{rest}"))
    }

    fn damage(&mut self, damage: &Damage) -> Result<()> {
        if self.form.json {
            return self.out.json(
                &json!({ "damage": { "offset": damage.offset, "message": damage.message } }),
            );
        }
        self.line(format!("DAMAGE at {}: {}", damage.offset, damage.message))
    }

    fn sequences(&mut self, sequences: Option<(u64, u64)>) -> Result<()> {
        match sequences {
            Some((first, last)) => self.line(format!("  sequences  {first} .. {last}")),
            None => Ok(()),
        }
    }

    fn torn(&mut self, torn: bool) -> Result<()> {
        if torn {
            self.line("  the end of the file cuts a record off: its writer died")
        } else {
            Ok(())
        }
    }

    fn verdict(&mut self, damages: u64) -> Result<u64> {
        match damages {
            0 => self.line("  no damage")?,
            1 => self.line("  damaged in 1 place")?,
            count => self.line(format!("  damaged in {count} places"))?,
        }
        Ok(damages)
    }

    fn shows_keys(&self) -> bool {
        self.args.keys || self.args.values
    }

    fn show(&self, bytes: &[u8]) -> String {
        self.form.notation.encode(bytes)
    }

    fn json(&self, bytes: &[u8]) -> Value {
        to_json(self.form.notation, bytes)
    }

    fn line(&mut self, line: impl AsRef<str>) -> Result<()> {
        self.out.line(line)
    }

    fn go_on(&mut self, printed: Result<()>) -> ControlFlow<()> {
        match printed {
            Ok(()) => ControlFlow::Continue(()),
            Err(failure) => {
                self.failure = Some(failure);
                ControlFlow::Break(())
            }
        }
    }

    /// The summary, unless printing failed on the way to it.
    fn unless_failed<T>(&mut self, summary: terrace::Result<T>) -> Result<T> {
        match self.failure.take() {
            Some(failure) => Err(failure),
            None => Ok(summary?),
        }
    }
}
