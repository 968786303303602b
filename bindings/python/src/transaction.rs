//! The class `Transaction`.

use std::sync::{Arc, Mutex, PoisonError};

use pyo3::exceptions::PyKeyError;
use pyo3::prelude::*;
use pyo3::sync::MutexExt;
use pyo3::types::PyDict;
use terrace::ErrorKind;

use crate::bytes::{Bytes, to_python};
use crate::errors;
use crate::handle::{Handle, refuse_within_comparator};
use crate::protocol;
use crate::transaction_iterator::TransactionIterator;
use crate::write::write_options;

/// Reads and writes that belong together: it reads the database as it was when the transaction
/// began, with its own writes on top, and `commit` applies these at once.
///
/// `commit` raises `ConflictError`, and nothing has happened, if a key that the transaction writes
/// or has read with `get_for_update` was written by anybody since it began. As a context manager it
/// commits in the end, and rolls back after an exception.
#[pyclass(frozen, weakref, module = "terrace")]
pub(crate) struct Transaction {
    handle: Arc<Handle>,
    sync: Option<bool>,
    /// `None` once it has ended.
    transaction: Mutex<Option<terrace::Transaction>>,
}

impl Transaction {
    pub(crate) fn begin(
        py: Python<'_>,
        handle: &Arc<Handle>,
        sync: Option<bool>,
    ) -> PyResult<Self> {
        let transaction = handle.run(py, |db| Ok(db.transaction()))?;
        Ok(Transaction { handle: handle.clone(), sync, transaction: Mutex::new(Some(transaction)) })
    }

    pub(crate) fn handle(&self) -> &Handle {
        &self.handle
    }

    /// Does `work` with the transaction, without the GIL.
    pub(crate) fn run<T: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&mut terrace::Transaction) -> terrace::Result<T> + Send,
    ) -> PyResult<T> {
        self.handle.check(py)?;
        let mut guard =
            self.transaction.lock_py_attached(py).unwrap_or_else(PoisonError::into_inner);
        let transaction = guard.as_mut().ok_or_else(|| errors::closed("the transaction"))?;
        self.handle.detached(py, || work(transaction))
    }

    fn take(&self, py: Python<'_>) -> PyResult<Option<terrace::Transaction>> {
        refuse_within_comparator()?;
        Ok(self.transaction.lock_py_attached(py).unwrap_or_else(PoisonError::into_inner).take())
    }

    fn is_active(&self, py: Python<'_>) -> PyResult<bool> {
        refuse_within_comparator()?;
        let guard = self.transaction.lock_py_attached(py).unwrap_or_else(PoisonError::into_inner);
        Ok(guard.is_some())
    }

    /// Commits, and tells whether there was no conflict.
    fn try_commit(&self, py: Python<'_>) -> PyResult<Result<(), terrace::Error>> {
        self.handle.check(py)?;
        let transaction = self.take(py)?.ok_or_else(|| errors::closed("the transaction"))?;
        let options = write_options(self.sync);
        self.handle.detached(py, || match transaction.commit_with(options) {
            Err(error) if error.kind() == ErrorKind::Conflict => Ok(Err(error)),
            committed => committed.map(Ok),
        })
    }
}

#[pymethods]
impl Transaction {
    /// Returns the value of `key`, or `default`.
    #[pyo3(signature = (key, default=None))]
    fn get<'py>(
        &self,
        py: Python<'py>,
        key: Bytes<'py>,
        default: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        let key = key.as_slice();
        let value = self.run(py, |transaction| transaction.get(key))?;
        let value = value.map(|value| to_python(py, &value)).transpose()?;
        Ok(value.map(Bound::into_any).or(default))
    }

    /// Returns the value of `key`, or `default`. `commit` fails if anybody else writes the key.
    #[pyo3(signature = (key, default=None))]
    fn get_for_update<'py>(
        &self,
        py: Python<'py>,
        key: Bytes<'py>,
        default: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        let key = key.as_slice();
        let value = self.run(py, |transaction| transaction.get_for_update(key))?;
        let value = value.map(|value| to_python(py, &value)).transpose()?;
        Ok(value.map(Bound::into_any).or(default))
    }

    /// Sets `key` to `value`.
    fn put(&self, py: Python<'_>, key: Bytes<'_>, value: Bytes<'_>) -> PyResult<()> {
        let (key, value) = (key.as_slice(), value.as_slice());
        self.run(py, |transaction| {
            transaction.put(key, value);
            Ok(())
        })
    }

    /// Removes `key`. Removing an absent key is no error, but it is a write.
    fn delete(&self, py: Python<'_>, key: Bytes<'_>) -> PyResult<()> {
        let key = key.as_slice();
        self.run(py, |transaction| {
            transaction.delete(key);
            Ok(())
        })
    }

    fn __getitem__<'py>(&self, py: Python<'py>, key: Bytes<'py>) -> PyResult<Bound<'py, PyAny>> {
        let shown = key.as_slice().to_vec();
        self.get(py, key, None)?.ok_or_else(|| PyKeyError::new_err(shown))
    }

    fn __setitem__(&self, py: Python<'_>, key: Bytes<'_>, value: Bytes<'_>) -> PyResult<()> {
        self.put(py, key, value)
    }

    fn __delitem__(&self, py: Python<'_>, key: Bytes<'_>) -> PyResult<()> {
        if !self.__contains__(py, Bytes::Copied(key.as_slice().to_vec()))? {
            return Err(PyKeyError::new_err(key.as_slice().to_vec()));
        }
        self.delete(py, key)
    }

    fn __contains__(&self, py: Python<'_>, key: Bytes<'_>) -> PyResult<bool> {
        let key = key.as_slice();
        self.run(py, |transaction| transaction.contains_key(key))
    }

    /// The number of keys that the transaction writes.
    fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
        self.run(py, |transaction| Ok(transaction.len()))
    }

    /// A transaction is true even if it writes nothing.
    fn __bool__(&self) -> bool {
        true
    }

    fn __iter__(slf: Bound<'_, Self>) -> PyResult<TransactionIterator> {
        TransactionIterator::open(slf, None)
    }

    /// Returns an iterator over what the transaction sees; for the keywords see `DB.iterator`.
    ///
    /// Keys that the transaction writes meanwhile, ahead of the iterator, may be seen or not.
    #[pyo3(
        signature = (**options),
        text_signature = "($self, *, reverse=False, start=None, stop=None, include_start=True, \
            include_stop=False, prefix=None, include_key=True, include_value=True)"
    )]
    fn iterator(
        slf: Bound<'_, Self>,
        options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<TransactionIterator> {
        TransactionIterator::open(slf, options)
    }

    /// Takes note of the writes so far, for `rollback_to_savepoint`.
    fn set_savepoint(&self, py: Python<'_>) -> PyResult<()> {
        self.run(py, |transaction| {
            transaction.set_savepoint();
            Ok(())
        })
    }

    /// Undoes every write since the last savepoint, and forgets it. Raises `Error` if there is
    /// none.
    fn rollback_to_savepoint(&self, py: Python<'_>) -> PyResult<()> {
        self.run(py, |transaction| transaction.rollback_to_savepoint())
    }

    /// Applies all writes at once, and ends the transaction. Raises `ConflictError` if others have
    /// written one of its keys; nothing has happened then.
    fn commit(&self, py: Python<'_>) -> PyResult<()> {
        self.try_commit(py)?.map_err(|error| errors::to_python(py, &error))
    }

    /// Ends the transaction without a trace. Nothing happens if it has ended.
    fn rollback(&self, py: Python<'_>) -> PyResult<()> {
        let transaction = self.take(py)?;
        self.handle.release(transaction);
        Ok(())
    }

    fn __enter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    #[pyo3(signature = (exc_type=None, _exc_value=None, _traceback=None))]
    fn __exit__(
        &self,
        py: Python<'_>,
        exc_type: Option<&Bound<'_, PyAny>>,
        _exc_value: Option<&Bound<'_, PyAny>>,
        _traceback: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        // It may have been ended within.
        if exc_type.is_some() || !self.is_active(py)? { self.rollback(py) } else { self.commit(py) }
    }

    fn __reduce__(&self) -> PyResult<()> {
        protocol::refuse_pickle("Transaction")
    }
}

impl Drop for Transaction {
    fn drop(&mut self) {
        let transaction = self.transaction.get_mut().unwrap_or_else(PoisonError::into_inner).take();
        self.handle.release(transaction);
    }
}

/// See `DB.transact`.
pub(crate) fn transact<'py>(
    py: Python<'py>,
    handle: &Arc<Handle>,
    work: &Bound<'py, PyAny>,
    retries: Option<u64>,
    sync: Option<bool>,
) -> PyResult<Bound<'py, PyAny>> {
    let mut left = retries;
    loop {
        let transaction = Bound::new(py, Transaction::begin(py, handle, sync)?)?;
        let result = work.call1((&transaction,));
        let transaction = transaction.get();
        let result = match result {
            Ok(result) => result,
            Err(exception) => {
                transaction.rollback(py)?;
                return Err(exception);
            }
        };
        match transaction.try_commit(py)? {
            Ok(()) => return Ok(result),
            Err(error) if left == Some(0) => return Err(errors::to_python(py, &error)),
            Err(_) => left = left.map(|left| left - 1),
        }
        // So that an interrupt ends even a loop that never gets through.
        py.check_signals()?;
    }
}
