//! The first phase of a commit in two: a transaction is prepared, or refused and given back.

use std::fmt;

use crate::base::error::{Error, ErrorKind};

use crate::db::transaction::prepared::{self, Terms};
use crate::db::transaction::prepared_record::PreparedRecord;
use crate::db::transaction::{Transaction, TransactionOptions};

impl Transaction {
    /// Prepares the transaction for a commit in two phases. On return it is durable, and its keys
    /// are locked until [`Db::commit_prepared`](crate::Db::commit_prepared) or
    /// [`Db::rollback_prepared`](crate::Db::rollback_prepared) decides under its `name`, of 0 to
    /// 1,024 bytes. Other writers of these keys wait for that: 10 seconds, or as long as their
    /// [`lock_timeout`](crate::TransactionOptions::lock_timeout) says, and fail with
    /// [`TimedOut`](crate::ErrorKind::TimedOut) then. Nothing that they write can make the commit
    /// fail. After the end of the process, or a loss of power, the next open with
    /// [`Options::prepared_transactions`](crate::Options::prepared_transactions) locks the keys
    /// again.
    ///
    /// Its writes are not visible before it is committed. LevelDB and programs that open the
    /// database without that option see an entry in the reserved keyspace, and obey no locks. What
    /// they write is found at the next open, and such a transaction can only be rolled back.
    ///
    /// Locks that are not held yet are waited for as long as the transaction waits for locks; an
    /// optimistic one for 1 second each. A prepared transaction is kept in memory, as one that is
    /// not prepared is.
    ///
    /// # Errors
    /// With the transaction, as it was, in
    /// [`PrepareError::into_transaction`], where nothing has been done yet:
    /// - `InvalidArgument` if the name is in use or too long, if the database was opened without the
    ///   option or read-only, if a key is one of those of prepared transactions, and if writes and keys
    ///   are too large for one value of an entry;
    /// - `NotSupported` for a [`Serializable`](crate::Isolation::Serializable) transaction, because
    ///   ranges have no locks, and under a custom comparator;
    /// - `Closed`.
    ///
    /// So it can be prepared under another name, or committed. The error becomes an [`Error`] by
    /// `?`, which drops the transaction: a rollback.
    ///
    /// Without it, those of [`commit_with`](Self::commit_with), and `TimedOut` or `InvalidArgument` if
    /// another thread prepares under the name at that moment. The transaction is rolled back then, with one
    /// exception: after `Io` it may be prepared all the same, in
    /// [`Db::prepared_transactions`](crate::Db::prepared_transactions) at once or after the next
    /// open. Roll it back by its name, or decide it as any other.
    ///
    /// # Example
    /// ```
    /// # use terrace::*;
    /// # let options = Options::new().create_if_missing(true);
    /// # let options = options.env(std::sync::Arc::new(MemEnv::new()));
    /// let db = Db::open("/db", options.prepared_transactions(true))?;
    /// let mut transaction = db.transaction();
    /// transaction.put("account", "90");
    /// transaction.prepare("transfer 7")?;
    /// assert_eq!(db.get("account")?, None);
    /// // ... the other databases of the transfer are prepared as well ...
    /// db.commit_prepared("transfer 7")?;
    /// assert_eq!(db.get("account")?.as_deref(), Some(&b"90"[..]));
    /// # Ok::<_, terrace::Error>(())
    /// ```
    pub fn prepare(mut self, name: impl AsRef<[u8]>) -> Result<(), PrepareError> {
        let name = name.as_ref();
        if let Some(failure) = self.failure.take() {
            return Err(failure.into());
        }
        let record = match self.prepared_record(name) {
            Ok(record) => record,
            Err(error) => return Err(PrepareError::with_transaction(error, self)),
        };
        let locks = self.locks.take();
        let checked = self.checked_keys(locks.as_ref()).into_iter().map(<[u8]>::to_vec).collect();
        let manager = &self.core.writes.control.locks;
        let owner = || manager.owner(manager.next_age(), TransactionOptions::new().lock_timeout);
        let locks = locks.unwrap_or_else(owner);
        let since = self.snapshot.sequence();
        // The snapshot is retained until then.
        Ok(prepared::prepare(&self.core, name, Terms { record, checked, since, locks })?)
    }

    /// What is recorded of the transaction if it may be prepared as `name`. Changes nothing.
    fn prepared_record(&self, name: &[u8]) -> Result<PreparedRecord, Error> {
        if self.reads.is_some() {
            return Err(Error::not_supported("a serializable transaction cannot be prepared"));
        }
        prepared::check(&self.core, name)?;
        let mut relied_on = self.relied_on.clone();
        relied_on.extend(self.locks.iter().flat_map(|locks| locks.keys()));
        relied_on.retain(|key| self.writes.get(key).is_none());
        PreparedRecord::new(self.batch(), relied_on.into_iter().collect())
    }
}

/// The error of [`Transaction::prepare`]. It has the transaction where nothing has been done yet:
/// the name is in use, say.
///
/// [`Transaction::prepare`] takes the transaction, since it has ended when it is prepared; a failure
/// that leaves it as it was gives it back, as `FromUtf8Error` of the standard library gives back the
/// bytes. `?` makes an [`Error`] of it, which drops the transaction.
///
/// As long as it has the transaction it keeps its locks and its snapshot: where `?` makes a
/// `Box<dyn Error>` of it, until that is dropped.
///
/// ```
/// # use terrace::*;
/// # let options = Options::new().create_if_missing(true).prepared_transactions(true);
/// # let db = Db::open("/db", options.env(std::sync::Arc::new(MemEnv::new())))?;
/// # db.transaction().prepare("transfer 7")?;
/// let mut transaction = db.transaction();
/// transaction.put("account", "90");
/// if let Err(error) = transaction.prepare("transfer 7") {
///     assert_eq!(error.kind(), ErrorKind::InvalidArgument); // there is one of that name
///     let transaction = error.into_transaction().expect("as it was");
///     transaction.prepare("transfer 8")?;
/// }
/// # Ok::<_, terrace::Error>(())
/// ```
pub struct PrepareError {
    error: Error,
    transaction: Option<Box<Transaction>>,
}

impl PrepareError {
    pub(super) fn with_transaction(error: Error, transaction: Transaction) -> Self {
        PrepareError { error, transaction: Some(Box::new(transaction)) }
    }

    /// The kind of the error.
    pub fn kind(&self) -> ErrorKind {
        self.error.kind()
    }

    /// The error itself.
    pub fn error(&self) -> &Error {
        &self.error
    }

    /// The transaction, as it was before; none if it was rolled back.
    pub fn into_transaction(self) -> Option<Transaction> {
        self.transaction.map(|transaction| *transaction)
    }
}

impl From<Error> for PrepareError {
    fn from(error: Error) -> Self {
        PrepareError { error, transaction: None }
    }
}

impl From<PrepareError> for Error {
    /// The transaction is rolled back.
    fn from(error: PrepareError) -> Self {
        error.error
    }
}

impl fmt::Display for PrepareError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.error.fmt(f)
    }
}

impl fmt::Debug for PrepareError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PrepareError")
            .field("error", &self.error)
            .field("transaction", &self.transaction)
            .finish()
    }
}

impl std::error::Error for PrepareError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.error.source()
    }
}
