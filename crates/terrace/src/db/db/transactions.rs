//! Transactions of a [`Db`].

use crate::base::error::{Error, ErrorKind};

use crate::db::db::Db;
use crate::db::transaction::{
    PreparedTransaction, TransactOptions, Transaction, TransactionOptions, prepared,
};

/// Transactions. See [`Transaction`].
impl Db {
    /// Begins a transaction. Others neither wait for it nor see any of its writes before it is
    /// committed.
    ///
    /// ```
    /// # use terrace::*;
    /// # let options = Options::new().env(std::sync::Arc::new(MemEnv::new()));
    /// # let db = Db::open("/db", options.create_if_missing(true))?;
    /// # db.put("apples", "3")?;
    /// let mut transaction = db.transaction();
    /// if transaction.get_for_update("apples")?.as_deref() == Some(b"3") {
    ///     transaction.put("apples", "2");
    /// }
    /// transaction.commit()?; // or `Conflict`, if the apples have changed meanwhile
    /// # Ok::<_, terrace::Error>(())
    /// ```
    pub fn transaction(&self) -> Transaction {
        self.transaction_with(TransactionOptions::new())
    }

    /// Begins a transaction that reads and locks as `options` say.
    ///
    /// ```
    /// use terrace::{Isolation, TransactionOptions};
    /// # fn main() -> terrace::Result<()> {
    /// # let options = terrace::Options::new().env(std::sync::Arc::new(terrace::MemEnv::new()));
    /// # let db = terrace::Db::open("/rooms.db", options.create_if_missing(true))?;
    ///
    /// let serializable = TransactionOptions::new().isolation(Isolation::Serializable);
    /// let mut mine = db.transaction_with(serializable);
    /// let is_free = mine.prefix("room 7/monday/")?.next().is_none();
    /// assert!(is_free);
    /// mine.put("room 7/monday/10:00", "me");
    /// // Another writer is quicker, with a key that was not there.
    /// db.put("room 7/monday/10:30", "other")?;
    /// assert_eq!(mine.commit().unwrap_err().kind(), terrace::ErrorKind::Conflict);
    /// # db.close()
    /// # }
    /// ```
    pub fn transaction_with(&self, options: TransactionOptions) -> Transaction {
        let core = self.core();
        Transaction::new(core, options, core.writes.control.locks.next_age())
    }

    /// Runs `work` in a transaction and commits it; runs it again, on the database as it is then,
    /// for as long as it [conflicts](ErrorKind::Conflict) with other writes or has to give way in a
    /// [deadlock](ErrorKind::Deadlock) (see [`Transaction`]).
    ///
    /// Of several transactions in a deadlock the one gives way that was begun last, counted from
    /// the first attempt: each comes to be the oldest at some time, and goes on then.
    ///
    /// ```
    /// # fn main() -> terrace::Result<()> {
    /// # let options = terrace::Options::new().env(std::sync::Arc::new(terrace::MemEnv::new()));
    /// # let db = terrace::Db::open("/stock.db", options.create_if_missing(true))?;
    /// # db.put("apples", "3")?;
    /// let number = |value: Option<Vec<u8>>| -> Option<u32> {
    ///     String::from_utf8(value?).ok()?.parse().ok()
    /// };
    /// let sold = db.transact(|transaction| -> terrace::Result<bool> {
    ///     let left = number(transaction.get("apples")?).unwrap_or(0);
    ///     if left > 0 {
    ///         transaction.put("apples", (left - 1).to_string());
    ///     }
    ///     Ok(left > 0)
    /// })?;
    /// assert!(sold);
    /// # assert_eq!(number(db.get("apples")?), Some(2));
    /// # db.close()
    /// # }
    /// ```
    ///
    /// # Errors
    /// An error of `work`, of whatever type, ends the transaction without a trace, unless that was
    /// due to run again; else those of [`Transaction::commit`], but for conflicts and deadlocks.
    pub fn transact<T, E: From<Error>>(
        &self,
        work: impl FnMut(&mut Transaction) -> Result<T, E>,
    ) -> Result<T, E> {
        self.transact_with(TransactOptions::new(), work)
    }

    /// Does what [`transact`](Self::transact) does, as durably and as often as `options` say.
    ///
    /// ```
    /// # use terrace::*;
    /// # let options = Options::new().env(std::sync::Arc::new(MemEnv::new()));
    /// # let db = Db::open("/db", options.create_if_missing(true))?;
    /// let options = TransactOptions::new().write_options(WriteOptions::sync()).retry_limit(10);
    /// db.transact_with(options, |transaction| -> Result<()> {
    ///     if transaction.get_for_update("leader")?.is_none() {
    ///         transaction.put("leader", "me");
    ///     }
    ///     Ok(())
    /// })?;
    /// assert_eq!(db.get("leader")?.as_deref(), Some(&b"me"[..]));
    /// # Ok::<_, terrace::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`transact`](Self::transact); [`Conflict`](ErrorKind::Conflict) when the
    /// [limit of retries](TransactOptions::retry_limit) is reached.
    pub fn transact_with<T, E: From<Error>>(
        &self,
        options: TransactOptions,
        mut work: impl FnMut(&mut Transaction) -> Result<T, E>,
    ) -> Result<T, E> {
        let core = self.core();
        let mut age = core.writes.control.locks.next_age();
        let mut retries = 0;
        loop {
            let mut transaction = Transaction::new(core, options.transaction, age);
            let outcome = match work(&mut transaction) {
                Ok(result) => transaction.commit_with(options.write).map(|()| result),
                // What it says of a transaction that cannot be committed is beside the point.
                Err(error) => match transaction.failure() {
                    Some(failure) => Err(failure),
                    None => return Err(error),
                },
            };
            let again =
                |error: &Error| matches!(error.kind(), ErrorKind::Conflict | ErrorKind::Deadlock);
            match outcome {
                Err(error) if again(&error) && retries < options.retries => {
                    retries += 1;
                    age = age.again();
                }
                outcome => return Ok(outcome?),
            }
        }
    }

    /// The transactions that are [prepared](Transaction::prepare) and not decided, in the order of
    /// their names. One whose decision met an error of a sync is listed until the same decision
    /// succeeds. Any thread.
    ///
    /// ```
    /// # use terrace::*;
    /// # let options = Options::new().create_if_missing(true);
    /// # let options = options.env(std::sync::Arc::new(MemEnv::new()));
    /// let options = options.prepared_transactions(true);
    /// let db = Db::open("/db", options.clone())?;
    /// let mut transaction = db.transaction();
    /// transaction.put("account", "90");
    /// transaction.prepare("transfer 7")?;
    /// drop(db); // or the process is killed
    /// let db = Db::open("/db", options)?;
    /// for prepared in db.prepared_transactions()? {
    ///     // The coordinator knows whether the others were prepared as well.
    ///     match prepared.is_overtaken {
    ///         false => db.commit_prepared(prepared.name)?,
    ///         true => db.rollback_prepared(prepared.name)?,
    ///     }
    /// }
    /// assert_eq!(db.get("account")?.as_deref(), Some(&b"90"[..]));
    /// # Ok::<_, terrace::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`InvalidArgument`](crate::ErrorKind::InvalidArgument) if the database was opened without
    /// [`Options::prepared_transactions`](crate::Options::prepared_transactions), which looks for
    /// them; [`NotSupported`](crate::ErrorKind::NotSupported) in a child of a fork;
    /// [`Closed`](crate::ErrorKind::Closed).
    pub fn prepared_transactions(&self) -> Result<Vec<PreparedTransaction>, Error> {
        prepared::list(self.core())
    }

    /// Commits the transaction that was [prepared](Transaction::prepare) as `name`. On return the
    /// commit is durable. Any thread; if another thread decides the same transaction, waits for the
    /// outcome.
    ///
    /// ```
    /// # use terrace::*;
    /// # let options = Options::new().create_if_missing(true).prepared_transactions(true);
    /// # let db = Db::open("/db", options.env(std::sync::Arc::new(MemEnv::new())))?;
    /// let mut transaction = db.transaction();
    /// transaction.put("account", "90");
    /// transaction.prepare("transfer 7")?;
    /// db.commit_prepared("transfer 7")?;
    /// assert_eq!(db.get("account")?.as_deref(), Some(&b"90"[..]));
    /// # Ok::<_, terrace::Error>(())
    /// ```
    ///
    /// # Errors
    /// `InvalidArgument` without the option
    /// [`prepared_transactions`](crate::Options::prepared_transactions); `NotFound` if there is
    /// none, or it was decided before. [`Conflict`](ErrorKind::Conflict) if
    /// it is [overtaken](PreparedTransaction::is_overtaken). Else those of
    /// [`write_with`](Self::write_with); the transaction stays listed then, and the call can be
    /// repeated. If it was the sync that failed, the commit is visible, and a rollback fails with
    /// `InvalidArgument`.
    pub fn commit_prepared(&self, name: impl AsRef<[u8]>) -> Result<(), Error> {
        prepared::decide(self.core(), name.as_ref(), true)
    }

    /// Forgets the transaction that was [prepared](Transaction::prepare) as `name`. On return that
    /// is durable. Any thread.
    ///
    /// ```
    /// # use terrace::*;
    /// # let options = Options::new().create_if_missing(true).prepared_transactions(true);
    /// # let db = Db::open("/db", options.env(std::sync::Arc::new(MemEnv::new())))?;
    /// let mut transaction = db.transaction();
    /// transaction.put("account", "90");
    /// transaction.prepare("transfer 7")?;
    /// db.rollback_prepared("transfer 7")?;
    /// assert_eq!(db.get("account")?, None);
    /// # Ok::<_, terrace::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`commit_prepared`](Self::commit_prepared), except `Conflict`.
    pub fn rollback_prepared(&self, name: impl AsRef<[u8]>) -> Result<(), Error> {
        prepared::decide(self.core(), name.as_ref(), false)
    }
}
