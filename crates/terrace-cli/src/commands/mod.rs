//! The commands, a file for each family. Those that work on an open database run in a [`Session`], so that the shell
//! can run them one after the other on the same one.

pub(crate) mod entries;
pub(crate) mod inspect;
pub(crate) mod report;
pub(crate) mod scan;
pub(crate) mod transfer;
pub(crate) mod upkeep;

use std::cell::OnceCell;
use std::path::Path;

use terrace::Db;

use crate::args::Form;
use crate::failure::Result;
use crate::output::Output;

/// A command on an open database.
pub(crate) trait Run {
    fn run(&self, session: &Session<'_>, out: &mut Output) -> Result<()>;
}

/// A database, opened when a command first needs it: a command whose arguments are wrong leaves no trace, not even a
/// new and empty database.
pub(crate) struct Session<'a> {
    path: &'a Path,
    form: Form,
    open: &'a dyn Fn() -> Result<Db>,
    db: OnceCell<Db>,
}

impl<'a> Session<'a> {
    pub(crate) fn new(path: &'a Path, form: Form, open: &'a dyn Fn() -> Result<Db>) -> Self {
        Session { path, form, open, db: OnceCell::new() }
    }

    /// The database's directory.
    pub(crate) fn path(&self) -> &Path {
        self.path
    }

    /// The form of input and output where a command's own options do not say.
    pub(crate) fn form(&self) -> Form {
        self.form
    }

    pub(crate) fn set_form(&mut self, form: Form) {
        self.form = form;
    }

    pub(crate) fn db(&self) -> Result<&Db> {
        if let Some(db) = self.db.get() {
            return Ok(db);
        }
        let db = (self.open)()?;
        Ok(self.db.get_or_init(|| db))
    }

    /// Closes the database if it was opened, and reports what closing reports.
    pub(crate) fn close(self) -> Result<()> {
        match self.db.into_inner() {
            Some(db) => Ok(db.close()?),
            None => Ok(()),
        }
    }
}
