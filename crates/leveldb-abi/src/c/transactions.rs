//! `terrace/c.h`: transactions.

use std::ffi::{c_char, c_int, c_void};
use std::ptr;
use std::time::Duration;

use terrace::{Error, ErrorKind, Isolation, Result, Transaction, TransactionOptions};

use super::database::{Database, write_options};
use super::error::{report, reporting, required};
use super::options::CWriteOptions;
use crate::guard::{export, guarded};
use crate::memory::{address, argument, copied, hand_out, key_range, release, store};

/// `terrace_transaction_serializable` and `terrace_transaction_locking`.
const SERIALIZABLE: c_int = 1;
const LOCKING: c_int = 2;

/// The results of `terrace_transaction_commit` and `terrace_transaction_prepare`.
const COMMITTED: c_int = 0;
const RUN_AGAIN: c_int = 1;
const FAILED: c_int = 2;

/// A program's function that looks at an entry and says whether to go on.
type Visitor = extern "C-unwind" fn(*mut c_void, *const c_char, usize, *const c_char, usize) -> u8;

/// `terrace_transaction_t`.
#[derive(Debug)]
pub struct CTransaction(Option<Transaction>);

impl CTransaction {
    fn get(&mut self) -> Result<&mut Transaction> {
        self.0.as_mut().ok_or_else(|| Error::invalid_argument("the transaction has ended"))
    }
}

/// The transaction that a caller must have passed.
///
/// # Safety
/// `transaction` is null or leads to a transaction that nobody else uses until the call returns.
unsafe fn transaction<'a>(transaction: *mut CTransaction) -> Result<&'a mut Transaction> {
    // SAFETY: guaranteed by the caller.
    let found = unsafe { transaction.as_mut() };
    found.ok_or_else(|| Error::invalid_argument("transaction is null"))?.get()
}

/// A value for the caller, or null.
///
/// # Safety
/// `length` is null or may be written.
unsafe fn hand_out_value(value: Option<Vec<u8>>, length: *mut usize) -> Result<*mut c_char> {
    let Some(value) = value else { return Ok(ptr::null_mut()) };
    let copy = copied(&value)?;
    // SAFETY: guaranteed by the caller.
    unsafe { store(length, value.len()) };
    Ok(copy)
}

/// Ends a transaction by `commit`, which takes it, or says why it cannot.
///
/// # Safety
/// `transaction` is null or leads to a transaction that nobody else uses until the call returns;
/// `errptr` is null or leads to null or a C string from `malloc`.
unsafe fn end(
    transaction: *mut CTransaction,
    errptr: *mut *mut c_char,
    commit: impl FnOnce(&mut Option<Transaction>) -> Result<()>,
) -> c_int {
    let committed = guarded(|| {
        // SAFETY: guaranteed by the caller.
        let found = unsafe { transaction.as_mut() };
        let found = found.ok_or_else(|| Error::invalid_argument("transaction is null"))?;
        found.get()?;
        commit(&mut found.0)
    });
    let Err(error) = committed else { return COMMITTED };
    // SAFETY: guaranteed by the caller.
    unsafe { report(errptr, &error) };
    match error.kind() {
        ErrorKind::Conflict | ErrorKind::Deadlock => RUN_AGAIN,
        _ => FAILED,
    }
}

export! {
    /// Begins a transaction.
    fn terrace_transaction_begin(
        db: *mut Database, flags: c_int, lock_timeout_micros: u64, errptr: *mut *mut c_char,
    ) -> *mut CTransaction {
        reporting(errptr, || {
            let db = required(db, "db")?.db();
            if flags & !(SERIALIZABLE | LOCKING) != 0 {
                let message = format!("no transaction has the flags {flags}");
                return Err(Error::invalid_argument(message));
            }
            let isolation = match flags & SERIALIZABLE {
                0 => Isolation::Snapshot,
                _ => Isolation::Serializable,
            };
            let mut options = TransactionOptions::new().isolation(isolation).locking(flags & LOCKING != 0);
            if lock_timeout_micros > 0 {
                options = options.lock_timeout(Duration::from_micros(lock_timeout_micros));
            }
            Ok(hand_out(CTransaction(Some(db.transaction_with(options)))))
        })
    }

    /// Ends a transaction, without its writes unless it was committed.
    fn terrace_transaction_destroy(transaction: *mut CTransaction) {
        drop(release(transaction));
    }

    /// The value that the transaction sees.
    fn terrace_transaction_get(
        txn: *mut CTransaction, key: *const c_char, keylen: usize, vallen: *mut usize,
        errptr: *mut *mut c_char,
    ) -> *mut c_char {
        store(vallen, 0);
        reporting(errptr, || {
            let value = transaction(txn)?.get(argument(key, keylen, "key")?)?;
            hand_out_value(value, vallen)
        })
    }

    /// The same of a key that nobody else may write until the commit.
    fn terrace_transaction_get_for_update(
        txn: *mut CTransaction, key: *const c_char, keylen: usize, vallen: *mut usize,
        errptr: *mut *mut c_char,
    ) -> *mut c_char {
        store(vallen, 0);
        reporting(errptr, || {
            let value = transaction(txn)?.get_for_update(argument(key, keylen, "key")?)?;
            hand_out_value(value, vallen)
        })
    }

    /// Hands the entries of a range to a function.
    fn terrace_transaction_scan(
        txn: *mut CTransaction, start_key: *const c_char, start_key_len: usize,
        limit_key: *const c_char, limit_key_len: usize, state: *mut c_void,
        visit: Option<Visitor>,
        errptr: *mut *mut c_char,
    ) {
        reporting(errptr, || {
            let Some(visit) = visit else { return Err(Error::invalid_argument("visit is null")) };
            let range = key_range((start_key, start_key_len), (limit_key, limit_key_len))?;
            for entry in transaction(txn)?.range::<&[u8]>(range) {
                let (key, value) = entry?;
                if visit(state, address(&key), key.len(), address(&value), value.len()) == 0 {
                    break;
                }
            }
            Ok(())
        })
    }

    /// Sets a key, as part of the transaction.
    fn terrace_transaction_put(
        txn: *mut CTransaction, key: *const c_char, keylen: usize, val: *const c_char, vallen: usize,
        errptr: *mut *mut c_char,
    ) {
        reporting(errptr, || {
            let (key, value) = (argument(key, keylen, "key")?, argument(val, vallen, "value")?);
            transaction(txn)?.put(key, value);
            Ok(())
        })
    }

    /// Removes a key, as part of the transaction.
    fn terrace_transaction_delete(
        txn: *mut CTransaction, key: *const c_char, keylen: usize, errptr: *mut *mut c_char,
    ) {
        reporting(errptr, || {
            transaction(txn)?.delete(argument(key, keylen, "key")?);
            Ok(())
        })
    }

    /// Takes note of the writes so far.
    fn terrace_transaction_set_savepoint(txn: *mut CTransaction, errptr: *mut *mut c_char) {
        reporting(errptr, || {
            transaction(txn)?.set_savepoint();
            Ok(())
        })
    }

    /// Undoes the writes since the last savepoint.
    fn terrace_transaction_rollback_to_savepoint(txn: *mut CTransaction, errptr: *mut *mut c_char) {
        reporting(errptr, || transaction(txn)?.rollback_to_savepoint())
    }

    /// Applies all writes at once, or says why not.
    fn terrace_transaction_commit(
        txn: *mut CTransaction, options: *const CWriteOptions, errptr: *mut *mut c_char,
    ) -> c_int {
        let options = write_options(options);
        end(txn, errptr, |txn| txn.take().map_or(Ok(()), |txn| txn.commit_with(options)))
    }

    /// Makes the transaction durable and keeps its keys locked, or says why not.
    fn terrace_transaction_prepare(
        txn: *mut CTransaction, name: *const c_char, namelen: usize, errptr: *mut *mut c_char,
    ) -> c_int {
        end(txn, errptr, |txn| {
            let name = argument(name, namelen, "name")?;
            txn.take().map_or(Ok(()), |taken| taken.prepare(name)).map_err(|failed| {
                let error = failed.error().clone();
                *txn = failed.into_transaction();
                error
            })
        })
    }
}
