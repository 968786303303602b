//! How transactions read, lock and commit.

use std::time::Duration;

use crate::db::options::WriteOptions;

/// How far a transaction is isolated from others.
///
/// ```
/// # use terrace::*;
/// # let options = Options::new().env(std::sync::Arc::new(MemEnv::new()));
/// # let db = Db::open("/db", options.create_if_missing(true))?;
/// # db.put("on call: Ada", "")?;
/// # db.put("on call: Grace", "")?;
/// let serializable = TransactionOptions::new().isolation(Isolation::Serializable);
/// let leave = |name: &str| -> Result<Transaction> {
///     let mut transaction = db.transaction_with(serializable);
///     if transaction.prefix("on call: ")?.count() > 1 {
///         transaction.delete(format!("on call: {name}"));
///     }
///     Ok(transaction)
/// };
/// let (ada, grace) = (leave("Ada")?, leave("Grace")?);
/// ada.commit()?;
/// // Somebody stays: with `Isolation::Snapshot` both would be off.
/// assert_eq!(grace.commit().unwrap_err().kind(), ErrorKind::Conflict);
/// # Ok::<_, terrace::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Isolation {
    /// The transaction reads one moment, and commits if no other has written what it writes or has
    /// read for update since. Two transactions that each read what the other one writes may both
    /// commit (write skew), and keys that appear in a range it has read are not noticed.
    #[default]
    Snapshot,
    /// The transaction commits only if everything it has read, ranges and keys that were not there
    /// included, would read the same at its commit: all serializable transactions could as well
    /// have run one after the other, each at the moment of its commit. Needs memory while it is
    /// active for the keys that others write meanwhile, at most about 16 MiB for a database; a
    /// transaction that is older than what fits conflicts.
    Serializable,
}

/// How [`Db::transaction_with`](crate::Db::transaction_with) begins a transaction.
///
/// ```
/// use std::time::Duration;
/// use terrace::{Isolation, TransactionOptions};
///
/// let options = TransactionOptions::new()
///     .isolation(Isolation::Serializable)
///     .locking(true)
///     .lock_timeout(Duration::from_millis(500));
/// # let _ = options;
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub struct TransactionOptions {
    pub(in crate::db) isolation: Isolation,
    pub(in crate::db) locking: bool,
    pub(in crate::db) lock_timeout: Duration,
}

impl Default for TransactionOptions {
    fn default() -> Self {
        TransactionOptions {
            isolation: Isolation::Snapshot,
            locking: false,
            lock_timeout: Duration::from_secs(1),
        }
    }
}

impl TransactionOptions {
    /// Optimistic, with snapshot isolation.
    pub fn new() -> Self {
        Self::default()
    }

    /// How far the transaction is isolated from others. Default: [`Isolation::Snapshot`].
    ///
    /// ```
    /// # use terrace::*;
    /// # let options = Options::new().env(std::sync::Arc::new(MemEnv::new()));
    /// # let db = Db::open("/db", options.create_if_missing(true))?;
    /// let options = TransactionOptions::new().isolation(Isolation::Serializable);
    /// let transaction = db.transaction_with(options); // its reads hold when it commits
    /// transaction.commit()?;
    /// # Ok::<_, terrace::Error>(())
    /// ```
    pub fn isolation(mut self, isolation: Isolation) -> Self {
        self.isolation = isolation;
        self
    }

    /// Whether [`get_for_update`](crate::Transaction::get_for_update) locks the key until the
    /// transaction ends. Default: false.
    ///
    /// ```
    /// # use terrace::*;
    /// # let options = Options::new().env(std::sync::Arc::new(MemEnv::new()));
    /// # let db = Db::open("/db", options.create_if_missing(true))?;
    /// let locking = TransactionOptions::new().locking(true);
    /// let mut transaction = db.transaction_with(locking);
    /// transaction.get_for_update("apples")?; // other writers of the key wait from here on
    /// transaction.put("apples", "2");
    /// transaction.commit()?;
    /// # Ok::<_, terrace::Error>(())
    /// ```
    pub fn locking(mut self, locking: bool) -> Self {
        self.locking = locking;
        self
    }

    /// How long the transaction waits for a lock; [`Duration::MAX`] stands for any time. Default: 1
    /// second.
    ///
    /// ```
    /// # use terrace::*;
    /// # let options = Options::new().env(std::sync::Arc::new(MemEnv::new()));
    /// # let db = Db::open("/db", options.create_if_missing(true))?;
    /// let patient = TransactionOptions::new().locking(true);
    /// let hasty = patient.lock_timeout(std::time::Duration::ZERO);
    /// let (mut first, mut second) = (db.transaction_with(patient), db.transaction_with(hasty));
    /// first.get_for_update("apples")?;
    /// let error = second.get_for_update("apples").unwrap_err();
    /// assert_eq!(error.kind(), ErrorKind::TimedOut);
    /// # Ok::<_, terrace::Error>(())
    /// ```
    pub fn lock_timeout(mut self, timeout: Duration) -> Self {
        self.lock_timeout = timeout;
        self
    }
}

/// How [`Db::transact_with`](crate::Db::transact_with) commits, and how often it tries.
///
/// ```
/// # use terrace::*;
/// let options = TransactOptions::new()
///     .transaction_options(TransactionOptions::new().isolation(Isolation::Serializable))
///     .write_options(WriteOptions::sync())
///     .retry_limit(100);
/// # let _ = options;
/// # Ok::<_, terrace::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
#[must_use]
pub struct TransactOptions {
    pub(in crate::db) transaction: TransactionOptions,
    pub(in crate::db) write: WriteOptions,
    pub(in crate::db) retries: u64,
}

impl Default for TransactOptions {
    fn default() -> Self {
        TransactOptions {
            transaction: TransactionOptions::new(),
            write: WriteOptions::new(),
            retries: u64::MAX,
        }
    }
}

impl TransactOptions {
    /// Commits without a sync, and retries without limit.
    pub fn new() -> Self {
        Self::default()
    }

    /// The kind of transaction. Default: [`TransactionOptions::new`].
    ///
    /// ```
    /// # use terrace::*;
    /// let locking = TransactionOptions::new().locking(true);
    /// let options = TransactOptions::new().transaction_options(locking);
    /// ```
    pub fn transaction_options(mut self, options: TransactionOptions) -> Self {
        self.transaction = options;
        self
    }

    /// How durably the transaction commits. Default: [`WriteOptions::new`].
    ///
    /// ```
    /// # use terrace::*;
    /// let options = TransactOptions::new().write_options(WriteOptions::sync());
    /// ```
    pub fn write_options(mut self, options: WriteOptions) -> Self {
        self.write = options;
        self
    }

    /// How often a transaction that conflicts or meets a deadlock is run again. Default: without
    /// limit.
    ///
    /// ```
    /// # use terrace::*;
    /// let options = TransactOptions::new().retry_limit(3); // then `Conflict`
    /// ```
    pub fn retry_limit(mut self, retries: u64) -> Self {
        self.retries = retries;
        self
    }
}
