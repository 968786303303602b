//! Transactions.

use std::ops::Bound;
use std::sync::{Mutex, PoisonError};

use jni::Env;
use jni::objects::{JByteArray, JClass};
use jni::sys::{jboolean, jint, jlong};
use terrace::{Error, Transaction, WriteOptions};

use crate::bytes::{self, Scratch};
use crate::database::DATABASES;
use crate::failure::{Failure, Result};
use crate::registry::Registry;

/// The transactions that Java holds, each with the number of its database; taken out by the commit.
static TRANSACTIONS: Registry<(jlong, Mutex<Option<Transaction>>)> = Registry::new("transaction");

/// Runs `work` with an open transaction of an open database.
fn with<R>(number: jlong, work: impl FnOnce(&mut Option<Transaction>) -> Result<R>) -> Result<R> {
    let held = TRANSACTIONS.get(number)?;
    let (database, transaction) = &*held;
    DATABASES.with(*database, |open| {
        open.run(|_| {
            let mut transaction = transaction.lock().unwrap_or_else(PoisonError::into_inner);
            work(&mut transaction)
        })
    })
}

/// The transaction, unless it was committed.
fn live(transaction: &mut Option<Transaction>) -> terrace::Result<&mut Transaction> {
    transaction.as_mut().ok_or_else(|| Error::closed("the transaction is over"))
}

/// Drops the transactions of a database that is closed: nobody can use them any more.
pub(crate) fn close_all_of(database: jlong) {
    TRANSACTIONS.remove_where(|(of, _)| *of == database);
}

native! {
    fn transaction(database: jlong) -> jlong,
}

fn transaction<'local>(_: &mut Env<'local>, _: JClass<'local>, database: jlong) -> Result<jlong> {
    DATABASES.with(database, |open| {
        let transaction = open.run(|db| Ok::<_, Failure>(db.transaction()))?;
        Ok(TRANSACTIONS.insert((database, Mutex::new(Some(transaction)))))
    })
}

native! {
    fn close_transaction(transaction: jlong) -> jboolean,
}

/// Rolls a transaction back, unless it was committed.
fn close_transaction<'local>(
    _: &mut Env<'local>,
    _: JClass<'local>,
    transaction: jlong,
) -> Result<jboolean> {
    Ok(TRANSACTIONS.remove(transaction).is_some())
}

native! {
    fn transaction_get(
        transaction: jlong,
        key: jbyte[],
        for_update: jboolean,
    ) -> jbyte[],
}

fn transaction_get<'local>(
    env: &mut Env<'local>,
    _: JClass<'local>,
    transaction: jlong,
    key: JByteArray<'local>,
    for_update: jboolean,
) -> Result<JByteArray<'local>> {
    let mut scratch = Scratch::key();
    let key = scratch.read(env, &key)?;
    let value = with(transaction, |transaction| {
        let transaction = live(transaction)?;
        Ok(if for_update { transaction.get_for_update(key)? } else { transaction.get(key)? })
    })?;
    match value {
        Some(value) => bytes::new_array(env, &value),
        None => Ok(JByteArray::null()),
    }
}

native! {
    fn transaction_put(transaction: jlong, key: jbyte[], value: jbyte[]),
}

/// Sets a key; removes it if the value is null.
fn transaction_put<'local>(
    env: &mut Env<'local>,
    _: JClass<'local>,
    transaction: jlong,
    key: JByteArray<'local>,
    value: JByteArray<'local>,
) -> Result<()> {
    let (mut key_bytes, mut value_bytes) = (Scratch::key(), Scratch::value());
    let key = key_bytes.read(env, &key)?;
    let value = if value.is_null() { None } else { Some(value_bytes.read(env, &value)?) };
    with(transaction, |transaction| {
        let transaction = live(transaction)?;
        match value {
            Some(value) => transaction.put(key, value),
            None => transaction.delete(key),
        }
        Ok(())
    })
}

native! {
    fn transaction_range(
        transaction: jlong,
        from: jbyte[],
        after: jboolean,
        to: jbyte[],
        bytes: jint,
    ) -> jbyte[][],
}

/// The entries that the transaction sees, up to the one with which they have so many `bytes`, from
/// `from` or behind it to before `to`, null for no bound: a key, its value, the next key, and so on.
fn transaction_range<'local>(
    env: &mut Env<'local>,
    _: JClass<'local>,
    transaction: jlong,
    from: JByteArray<'local>,
    after: jboolean,
    to: JByteArray<'local>,
    bytes: jint,
) -> Result<jni::objects::JObjectArray<'local, JByteArray<'local>>> {
    let from = match bytes::optional(env, &from)? {
        None => Bound::Unbounded,
        Some(key) if after => Bound::Excluded(key),
        Some(key) => Bound::Included(key),
    };
    let to = bytes::optional(env, &to)?.map_or(Bound::Unbounded, Bound::Excluded);
    let most = usize::try_from(bytes).unwrap_or_default();
    let found = with(transaction, |transaction| {
        let mut found = Vec::new();
        let mut size = 0;
        for entry in live(transaction)?.range::<Vec<u8>>((from, to)) {
            let (key, value) = entry?;
            size += key.len() + value.len();
            found.push((key, value));
            if size >= most {
                break;
            }
        }
        Ok(found)
    })?;
    let array = env.new_object_type_array::<JByteArray<'_>>(2 * found.len(), JByteArray::null())?;
    for (at, (key, value)) in found.iter().enumerate() {
        for (place, part) in [(2 * at, key), (2 * at + 1, value)] {
            let element = bytes::new_array(env, part)?;
            array.set_element(env, place, &element)?;
            env.delete_local_ref(element);
        }
    }
    Ok(array)
}

native! {
    fn transaction_savepoint(transaction: jlong, back: jboolean),
}

/// Sets a savepoint, or goes back to the last one.
fn transaction_savepoint<'local>(
    _: &mut Env<'local>,
    _: JClass<'local>,
    transaction: jlong,
    back: jboolean,
) -> Result<()> {
    with(transaction, |transaction| {
        let transaction = live(transaction)?;
        if back {
            transaction.rollback_to_savepoint()?;
        } else {
            transaction.set_savepoint();
        }
        Ok(())
    })
}

native! {
    fn commit(transaction: jlong, sync: jboolean),
}

/// Commits a transaction, which is over then, whatever the outcome.
fn commit<'local>(
    _: &mut Env<'local>,
    _: JClass<'local>,
    transaction: jlong,
    sync: jboolean,
) -> Result<()> {
    with(transaction, |transaction| {
        live(transaction)?;
        match transaction.take() {
            Some(transaction) => Ok(transaction.commit_with(WriteOptions { sync })?),
            None => Ok(()),
        }
    })
}
