//! The commands, a file for each family. Those that work on an open database run in a [`Session`],
//! so that the shell can run them one after the other on the same one.

pub(crate) mod completions;
pub(crate) mod convert;
pub(crate) mod entries;
pub(crate) mod inspect;
pub(crate) mod keyspace;
pub(crate) mod lifetime;
mod load_check;
pub(crate) mod man;
pub(crate) mod prepared;
pub(crate) mod report;
pub(crate) mod scan;
pub(crate) mod scope;
pub(crate) mod shell;
pub(crate) mod transfer;
pub(crate) mod update;
pub(crate) mod upkeep;

use std::cell::{OnceCell, RefCell};
use std::path::Path;
use std::time::Duration;

use terrace::{
    Db, Error, ErrorKind, Keyspace, MergeOperator, ReadOptions, Transaction, TransactionOptions,
    WriteBatch, WriteOptions,
};

use self::scope::{Scope, ScopeArgs};
use crate::failure::{Failure, Result};
use crate::form::Form;
use crate::opening::Opened;
use crate::output::Output;
use crate::range::KeyRange;
use crate::signals;

/// A command on an open database.
pub(crate) trait Run {
    fn run(&self, session: &Session<'_>, out: &mut Output) -> Result<()>;
}

fn no_transaction() -> Failure {
    Failure::other("there is no transaction; begin one first")
}

/// A database, opened when a command first needs it: a command whose arguments are wrong leaves no
/// trace, not even a new and empty database.
pub(crate) struct Session<'a> {
    path: &'a Path,
    form: Form,
    open: &'a dyn Fn() -> Result<Opened>,
    db: OnceCell<Opened>,
    /// The size from which on values go to value files, if they do.
    value_log: Option<usize>,
    /// The keyspace of commands that name none.
    keyspace: Vec<String>,
    /// The shell's open transaction. Reads see it, and writes go there.
    transaction: RefCell<Option<Transaction>>,
}

impl<'a> Session<'a> {
    pub(crate) fn new(path: &'a Path, form: Form, open: &'a dyn Fn() -> Result<Opened>) -> Self {
        Session {
            path,
            form,
            open,
            db: OnceCell::new(),
            value_log: None,
            keyspace: Vec::new(),
            transaction: RefCell::new(None),
        }
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

    /// The same where values of this size go to value files.
    pub(crate) fn with_value_log(mut self, value_log: Option<usize>) -> Self {
        self.value_log = value_log;
        self
    }

    /// The size from which on values go to value files, if they do.
    pub(crate) fn value_log(&self) -> Option<usize> {
        self.value_log
    }

    /// Has commands that name no keyspace work in this one.
    pub(crate) fn set_keyspace(&mut self, names: &[String]) {
        self.keyspace = names.to_vec();
    }

    /// Where the keys of a command with these options are.
    pub(crate) fn scope(&self, args: &ScopeArgs) -> Result<Scope> {
        let names = if args.names.is_empty() { &self.keyspace } else { &args.names };
        match names.is_empty() {
            true => Ok(Scope::default()),
            false => Scope::of(self.db()?, names).map_err(|missing| self.unless_whole(missing)),
        }
    }

    /// The keyspace that names lead to, each within the one before; none without names.
    pub(crate) fn find_keyspace(&self, names: &[String]) -> Result<Option<Keyspace>> {
        scope::find(self.db()?, names).map_err(|missing| self.unless_whole(missing))
    }

    pub(crate) fn db(&self) -> Result<&Db> {
        if let Some(opened) = self.db.get() {
            return Ok(&opened.db);
        }
        let opened = (self.open)()?;
        Ok(&self.db.get_or_init(|| opened).db)
    }

    /// Fails if recovery left writes out of the database, of which `what` was made or printed.
    pub(crate) fn require_whole(&self, what: &str) -> Result<()> {
        match self.lacks_writes() {
            true => Err(Failure::Incomplete(format!(
                "{what} is incomplete: it lacks what was left out of the log"
            ))),
            false => Ok(()),
        }
    }

    /// `failure`, and no answer if recovery left writes out of the database: what is missing may be
    /// among them.
    pub(crate) fn unless_whole(&self, failure: Failure) -> Failure {
        match failure {
            Failure::Missing(message) if self.lacks_writes() => {
                Failure::Other(format!("{message} (what was left out of the log is not known)"))
            }
            other => other,
        }
    }

    /// Whether recovery left writes out of the database.
    fn lacks_writes(&self) -> bool {
        self.db.get().is_some_and(|opened| opened.lacks_writes)
    }

    /// The value of a key.
    pub(crate) fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>> {
        match &*self.transaction.borrow() {
            Some(transaction) => Ok(transaction.get(key)?),
            None => Ok(self.db()?.get(key)?),
        }
    }

    /// The value of a key that the transaction rests on.
    pub(crate) fn get_for_update(&self, key: &[u8]) -> Result<Option<Vec<u8>>> {
        match &mut *self.transaction.borrow_mut() {
            Some(transaction) => Ok(transaction.get_for_update(key)?),
            None => Err(no_transaction()),
        }
    }

    /// Sets a key of `scope` to `new` if its value is `expected`, durably, or as part of the
    /// transaction. Returns whether it was.
    pub(crate) fn compare_and_swap(
        &self,
        (scope, key): (&Scope, &[u8]),
        expected: Option<&[u8]>,
        new: Option<&[u8]>,
        ttl: Option<Duration>,
    ) -> Result<bool> {
        let options = scope.put_options(ttl)?.sync(true);
        let mut transaction = self.transaction.borrow_mut();
        let Some(transaction) = &mut *transaction else {
            return Ok(match scope.keyspace() {
                Some(keyspace) => keyspace.compare_and_swap_with(key, expected, new, options)?,
                None => {
                    self.db()?.compare_and_swap_with(key, expected, new, WriteOptions::sync())?
                }
            });
        };
        let full = scope.key(key);
        let is_expected = transaction.get_for_update(&full)?.as_deref() == expected;
        if is_expected {
            match new {
                Some(value) => {
                    let (full, stored) = scope.entry(key, value, ttl)?;
                    transaction.put(full, stored);
                }
                None => transaction.delete(full),
            }
        }
        Ok(is_expected)
    }

    /// Sets a key of `scope` to what `operator` makes of its value, durably, or as part of the
    /// transaction. Returns the new value.
    pub(crate) fn merge(
        &self,
        (scope, key): (&Scope, &[u8]),
        operand: &[u8],
        operator: &dyn MergeOperator,
        ttl: Option<Duration>,
    ) -> Result<Vec<u8>> {
        let options = scope.put_options(ttl)?.sync(true);
        let mut transaction = self.transaction.borrow_mut();
        let Some(transaction) = &mut *transaction else {
            return Ok(match scope.keyspace() {
                Some(keyspace) => keyspace.merge_with(key, operand, operator, options)?,
                None => self.db()?.merge_with(key, operand, operator, WriteOptions::sync())?,
            });
        };
        let value = transaction.get_for_update(scope.key(key))?;
        let value = operator.merge(key, value.as_deref(), operand)?;
        let (full, stored) = scope.entry(key, &value, ttl)?;
        transaction.put(full, stored);
        Ok(value)
    }

    /// Does a batch, durably, or as part of the transaction.
    pub(crate) fn write(&self, batch: &WriteBatch) -> Result<()> {
        match &mut *self.transaction.borrow_mut() {
            Some(transaction) => Ok(transaction.apply(batch)?),
            None => Ok(self.db()?.write_with(batch, WriteOptions::sync())?),
        }
    }

    /// Deletes every key of the range, durably, or as part of the transaction.
    pub(crate) fn delete_range(&self, range: &KeyRange) -> Result<()> {
        match &mut *self.transaction.borrow_mut() {
            Some(transaction) => Ok(transaction.delete_range(range.bounds())?),
            None => Ok(self.db()?.delete_range_with(range.bounds(), WriteOptions::sync())?),
        }
    }

    /// Calls `visit` with every entry of the range, last to first if `reverse`, until it returns
    /// false.
    pub(crate) fn for_each(
        &self,
        range: &KeyRange,
        reverse: bool,
        mut visit: impl FnMut(&[u8], &[u8]) -> Result<bool>,
    ) -> Result<()> {
        let visit = |key: &[u8], value: &[u8]| {
            signals::check()?;
            visit(key, value)
        };
        match &*self.transaction.borrow() {
            Some(transaction) => range.for_each_in_transaction(transaction, reverse, visit),
            None => range.for_each(self.db()?, ReadOptions::new(), reverse, visit),
        }
    }

    /// Calls `visit` with every entry of the range as it is stored, times of expiry included: what
    /// a load makes the same database of.
    pub(crate) fn for_each_stored(
        &self,
        range: &KeyRange,
        mut visit: impl FnMut(&[u8], &[u8]) -> Result<bool>,
    ) -> Result<()> {
        let as_stored = ReadOptions::new().stored_values(true);
        range.for_each(self.db_without_transaction()?, as_stored, false, |key, value| {
            signals::check()?;
            visit(key, value)
        })
    }

    /// The database, for what cannot be part of a transaction.
    pub(crate) fn db_without_transaction(&self) -> Result<&Db> {
        self.refuse_transaction()?;
        self.db()
    }

    /// Fails while there is a transaction.
    pub(crate) fn refuse_transaction(&self) -> Result<()> {
        match self.has_transaction() {
            true => Err(Failure::other(
                "this cannot be part of a transaction: commit or rollback first",
            )),
            false => Ok(()),
        }
    }

    pub(crate) fn begin(&self, options: TransactionOptions) -> Result<()> {
        let transaction = self.db_without_transaction()?.transaction_with(options);
        self.transaction.replace(Some(transaction));
        Ok(())
    }

    pub(crate) fn has_transaction(&self) -> bool {
        self.transaction.borrow().is_some()
    }

    /// Closes the database for a command that opens it in its own way. What comes next opens it
    /// again.
    pub(crate) fn release(&mut self) -> Result<()> {
        self.refuse_transaction()?;
        self.db.take().map_or(Ok(()), |opened| Ok(opened.db.close()?))
    }

    /// Ends the transaction and does its writes, durably.
    pub(crate) fn commit(&self) -> Result<()> {
        Ok(self.take_transaction()?.commit_with(WriteOptions::sync())?)
    }

    /// Ends the transaction, which waits under `name` for its decision. It is rolled back if that
    /// fails: what a script writes next must not come into it.
    pub(crate) fn prepare(&self, name: &[u8]) -> Result<()> {
        let prepared = self.take_transaction()?.prepare(name).map_err(Error::from);
        let explained = |error: Error| match error.kind() {
            ErrorKind::Io => error.context("it may be prepared all the same, see `prepared list`"),
            _ => error.context("not prepared, but rolled back"),
        };
        prepared.map_err(|error| explained(error).into())
    }

    pub(crate) fn rollback(&self) -> Result<()> {
        self.take_transaction()?.rollback();
        Ok(())
    }

    fn take_transaction(&self) -> Result<Transaction> {
        self.transaction.take().ok_or_else(no_transaction)
    }

    /// Closes the database if it was opened, and reports what closing reports, and a transaction
    /// that is not committed.
    pub(crate) fn close(self) -> Result<()> {
        let unfinished =
            self.transaction.into_inner().filter(|transaction| !transaction.is_empty());
        if let Some(opened) = self.db.into_inner() {
            opened.db.close()?;
        }
        match unfinished {
            None => Ok(()),
            Some(_) => {
                Err(Failure::other("the transaction was not committed: its writes are undone"))
            }
        }
    }
}
