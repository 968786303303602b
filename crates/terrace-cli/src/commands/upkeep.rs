//! Care for a whole database: `verify`, `repair`, `compact`, `destroy`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args;
use serde_json::json;

use super::{Run, Session};
use crate::args::FormArgs;
use crate::columns::size;
use crate::failure::{Failure, Result};
use crate::opening::require_database;
use crate::output::Output;
use crate::progress::Progress;
use crate::range::decode_argument;

#[derive(Args, Debug)]
pub(crate) struct CompactArgs {
    /// Begin at this key
    #[arg(long, value_name = "KEY")]
    from: Option<OsString>,
    /// End after this key
    #[arg(long, value_name = "KEY")]
    to: Option<OsString>,
    #[command(flatten)]
    form: FormArgs,
}

impl Run for CompactArgs {
    fn run(&self, session: &Session<'_>, out: &mut Output) -> Result<()> {
        let form = self.form.over(session.form());
        let bound =
            |name: &str, key: Option<&OsString>| key.map(|key| decode_argument(name, key, form.notation)).transpose();
        let from = bound("--from", self.from.as_ref())?;
        let to = bound("--to", self.to.as_ref())?;
        let db = session.db()?;
        let table_bytes = || db.files().iter().map(|file| file.size).sum::<u64>();
        let progress = Progress::spinner("compacting");
        let before = table_bytes();
        db.compact_range(from.as_deref(), to.as_deref())?;
        drop(progress);
        let after = table_bytes();
        if form.json {
            return out.json(&json!({ "table_bytes_before": before, "table_bytes_after": after }));
        }
        out.line(format!("tables held {}, now hold {}", size(before), size(after)))
    }
}

#[derive(Args, Debug)]
pub(crate) struct DestroyCommand {
    /// Directory of the database
    db: PathBuf,
    /// Yes, remove all of it
    #[arg(long)]
    yes: bool,
}

impl DestroyCommand {
    pub(crate) fn run(&self, out: &mut Output) -> Result<()> {
        require_database(&self.db)?;
        if !self.yes {
            let path = self.db.display();
            return Err(Failure::other(format!("this would remove the database {path}; add --yes to do it")));
        }
        terrace::destroy(&self.db, &terrace::Options::new())?;
        if self.db.exists() {
            let path = self.db.display();
            out.line(format!("the directory {path} stays: it holds files that are not the database's"))?;
        }
        Ok(())
    }
}
