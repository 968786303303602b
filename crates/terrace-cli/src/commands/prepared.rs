//! Prepared transactions: `prepared list`, `commit`, `rollback`, and the shell's `prepare`.

use std::ffi::OsString;

use clap::Args;
use serde_json::json;

use super::{Run, Session};
use crate::failure::{Failure, Result};
use crate::form::{FormArgs, NotationArgs};
use crate::output::Output;
use crate::range::decode_argument;
use crate::text::to_json;

#[derive(Args, Debug)]
#[command(
    mut_arg("hex", |hex| hex.help("Print names as pairs of hexadecimal digits")),
    mut_arg("base64", |base64| base64.help("Print names as base64"))
)]
pub(crate) struct ListPreparedArgs {
    #[command(flatten)]
    form: FormArgs,
}

impl Run for ListPreparedArgs {
    fn run(&self, session: &Session<'_>, out: &mut Output) -> Result<()> {
        let form = self.form.over(session.form());
        let list = session.db()?.prepared_transactions()?;
        list.into_iter().try_for_each(|prepared| {
            if form.json {
                return out.json(&json!({
                    "name": to_json(form.notation, &prepared.name),
                    "writes": prepared.writes,
                    "overtaken": prepared.is_overtaken,
                }));
            }
            let state = if prepared.is_overtaken { "overtaken" } else { "prepared" };
            out.line(format!(
                "{}\t{}\t{state}",
                form.notation.encode(&prepared.name),
                prepared.writes
            ))
        })?;
        out.flush()?;
        session.require_whole("the list")
    }
}

/// The name of a prepared transaction.
#[derive(Args, Debug)]
#[command(
    mut_arg("hex", |hex| hex.help("The name is pairs of hexadecimal digits")),
    mut_arg("base64", |base64| base64.help("The name is base64"))
)]
struct NameArgs {
    /// The name under which the transaction is prepared
    name: OsString,
    #[command(flatten)]
    notation: NotationArgs,
}

impl NameArgs {
    fn decode(&self, session: &Session<'_>) -> Result<Vec<u8>> {
        decode_argument("NAME", &self.name, self.notation.over(session.form()))
    }
}

#[derive(Args, Debug)]
pub(crate) struct CommitPreparedArgs {
    #[command(flatten)]
    name: NameArgs,
}

impl Run for CommitPreparedArgs {
    fn run(&self, session: &Session<'_>, _: &mut Output) -> Result<()> {
        let name = self.name.decode(session)?;
        decided(session, session.db_without_transaction()?.commit_prepared(name))
    }
}

#[derive(Args, Debug)]
pub(crate) struct RollbackPreparedArgs {
    #[command(flatten)]
    name: NameArgs,
}

impl Run for RollbackPreparedArgs {
    fn run(&self, session: &Session<'_>, _: &mut Output) -> Result<()> {
        let name = self.name.decode(session)?;
        decided(session, session.db_without_transaction()?.rollback_prepared(name))
    }
}

/// Fails as for a key that is not there if there is no transaction of that name.
fn decided(session: &Session<'_>, decided: terrace::Result<()>) -> Result<()> {
    decided.map_err(|error| session.unless_whole(Failure::of_missing(error)))
}

#[derive(Args, Debug)]
pub(crate) struct PrepareArgs {
    #[command(flatten)]
    name: NameArgs,
}

impl Run for PrepareArgs {
    fn run(&self, session: &Session<'_>, _: &mut Output) -> Result<()> {
        let name = self.name.decode(session)?;
        session.prepare(&name)
    }
}
