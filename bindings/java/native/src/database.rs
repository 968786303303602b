//! Opening, closing, and single operations of a database.

use std::sync::Arc;

use jni::Env;
use jni::objects::{JByteArray, JByteBuffer, JClass, JLongArray, JObject};
use jni::sys::{jboolean, jint, jlong};
use terrace::{Db, WriteOptions};

use crate::bulk;
use crate::bytes::{self, Packed, Scratch};
use crate::comparator_failure::ComparatorFailure;
use crate::direct;
use crate::failure::{Failure, Result};
use crate::gate::GatedEnv;
use crate::iterator;
use crate::options::{Opening, read_options};
use crate::registry::ReadMostly;
use crate::transaction;

/// The databases that Java holds open.
pub(crate) static DATABASES: ReadMostly<OpenDatabase> = ReadMostly::new("database");

/// An open database.
pub(crate) struct OpenDatabase {
    db: Db,
    pub(crate) env: Arc<GatedEnv>,
    failure: Arc<ComparatorFailure>,
}

impl OpenDatabase {
    /// Runs an operation, which may call the comparator.
    ///
    /// # Errors
    /// `Comparator` if the comparator has failed before or fails now, whatever the operation
    /// returns; those of the operation.
    #[inline]
    pub(crate) fn run<R, E: Into<Failure>>(
        &self,
        operation: impl FnOnce(&Db) -> std::result::Result<R, E>,
    ) -> Result<R> {
        check(&self.failure)?;
        let result = operation(&self.db);
        check(&self.failure)?;
        result.map_err(E::into)
    }
}

/// # Errors
/// `Comparator` if the comparator has failed.
#[inline]
pub(crate) fn check(failure: &ComparatorFailure) -> Result<()> {
    failure.get().map_or(Ok(()), |thrown| Err(Failure::Comparator(thrown.clone())))
}

native! {
    fn open(
        path: jbyte[],
        settings: jlong[],
        comparator: JObject,
        comparator_name: jbyte[],
        logger: JObject,
    ) -> jlong,
}

fn open<'local>(
    env: &mut Env<'local>,
    _: JClass<'local>,
    path: JByteArray<'local>,
    settings: JLongArray<'local>,
    comparator: JObject<'local>,
    comparator_name: JByteArray<'local>,
    logger: JObject<'local>,
) -> Result<jlong> {
    let path = bytes::text(env, &path)?;
    let opening = Opening::read(env, &settings, &comparator, &comparator_name, &logger)?;
    let opened = Db::open(path, opening.options);
    check(&opening.failure)?;
    let db = opened?;
    Ok(DATABASES.insert(OpenDatabase { db, env: opening.env, failure: opening.failure }))
}

native! {
    fn close_database(database: jlong) -> jboolean,
}

/// Closes a database. Returns false if it was closed before.
fn close_database<'local>(
    _: &mut Env<'local>,
    _: JClass<'local>,
    database: jlong,
) -> Result<jboolean> {
    let Some(open) = DATABASES.remove(database) else { return Ok(false) };
    iterator::close_all_of(database);
    transaction::close_all_of(database);
    bulk::close_all_of(database);
    // Closing waits for jobs.
    open.env.end();
    open.db.clone().close().or_else(|error| {
        check(&open.failure)?;
        Err(Failure::from(error))
    })?;
    Ok(true)
}

native! {
    fn get(database: jlong, snapshot: jlong, flags: jint, key: jbyte[]) -> jbyte[],
}

/// The value of a key; null if it has none.
fn get<'local>(
    env: &mut Env<'local>,
    _: JClass<'local>,
    database: jlong,
    snapshot: jlong,
    flags: jint,
    key: JByteArray<'local>,
) -> Result<JByteArray<'local>> {
    let (mut key_bytes, mut value) = (Scratch::key(), Scratch::value());
    let key = key_bytes.read(env, &key)?;
    let found = lookup(database, snapshot, flags, key, &mut value.bytes)?;
    if found { bytes::new_array(env, &value.bytes) } else { Ok(JByteArray::null()) }
}

fn lookup(
    database: jlong,
    snapshot: jlong,
    flags: jint,
    key: &[u8],
    value: &mut Vec<u8>,
) -> Result<bool> {
    DATABASES.with(database, |open| {
        open.run(|db| {
            if snapshot == 0 && flags == 0 {
                return Ok::<_, Failure>(db.get_into(key, value)?);
            }
            Ok(db.get_into_with(key, value, &read_options(snapshot, flags)?)?)
        })
    })
}

native! {
    fn get_direct(
        database: jlong,
        snapshot: jlong,
        flags: jint,
        key: JByteBuffer,
        key_offset: jint,
        key_length: jint,
        value: JByteBuffer,
        value_offset: jint,
        value_length: jint,
    ) -> jint,
}

/// Copies the value of a key, as much of it as fits. Returns its length, or -1 if it has none.
#[expect(clippy::too_many_arguments, reason = "two buffers with their bounds")]
fn get_direct<'local>(
    env: &mut Env<'local>,
    _: JClass<'local>,
    database: jlong,
    snapshot: jlong,
    flags: jint,
    key: JByteBuffer<'local>,
    key_offset: jint,
    key_length: jint,
    value: JByteBuffer<'local>,
    value_offset: jint,
    value_length: jint,
) -> Result<jint> {
    let (mut key_bytes, mut found) = (Scratch::key(), Scratch::value());
    direct::read(env, &key, key_offset, key_length, &mut key_bytes.bytes)?;
    if !lookup(database, snapshot, flags, &key_bytes.bytes, &mut found.bytes)? {
        return Ok(-1);
    }
    direct::write(env, &value, value_offset, value_length, &found.bytes)?;
    Ok(jint::try_from(found.bytes.len()).unwrap_or(jint::MAX))
}

native! {
    fn multi_get(
        database: jlong,
        snapshot: jlong,
        flags: jint,
        keys: jbyte[],
        length: jint,
    ) -> jbyte[][],
}

/// The values of packed keys, in their order, null for a key without one.
fn multi_get<'local>(
    env: &mut Env<'local>,
    _: JClass<'local>,
    database: jlong,
    snapshot: jlong,
    flags: jint,
    keys: JByteArray<'local>,
    length: jint,
) -> Result<jni::objects::JObjectArray<'local, JByteArray<'local>>> {
    let mut packed = Scratch::key();
    let length = usize::try_from(length).unwrap_or_default();
    let keys: Vec<&[u8]> =
        Packed(packed.read_prefix(env, &keys, length)?).collect::<terrace::Result<_>>()?;
    let values = DATABASES.with(database, |open| {
        let options = read_options(snapshot, flags)?;
        open.run(|db| db.multi_get_with(&keys, &options))
    })?;
    let array = env.new_object_type_array::<JByteArray<'_>>(values.len(), JByteArray::null())?;
    for (at, value) in values.iter().enumerate() {
        let Some(value) = value else { continue };
        let element = bytes::new_array(env, value)?;
        array.set_element(env, at, &element)?;
        env.delete_local_ref(element);
    }
    Ok(array)
}

native! {
    fn put(database: jlong, key: jbyte[], value: jbyte[], sync: jboolean),
}

/// Sets a key; removes it if the value is null.
fn put<'local>(
    env: &mut Env<'local>,
    _: JClass<'local>,
    database: jlong,
    key: JByteArray<'local>,
    value: JByteArray<'local>,
    sync: jboolean,
) -> Result<()> {
    let (mut key_bytes, mut value_bytes) = (Scratch::key(), Scratch::value());
    let key = key_bytes.read(env, &key)?;
    let value = if value.is_null() { None } else { Some(value_bytes.read(env, &value)?) };
    set(database, key, value, sync)
}

fn set(database: jlong, key: &[u8], value: Option<&[u8]>, sync: bool) -> Result<()> {
    DATABASES.with(database, |open| {
        let options = WriteOptions { sync };
        open.run(|db| match value {
            Some(value) => db.put_with(key, value, options),
            None => db.delete_with(key, options),
        })
    })
}

native! {
    fn put_direct(
        database: jlong,
        key: JByteBuffer,
        key_offset: jint,
        key_length: jint,
        value: JByteBuffer,
        value_offset: jint,
        value_length: jint,
        sync: jboolean,
    ),
}

/// Sets a key; removes it if the value's buffer is null.
#[expect(clippy::too_many_arguments, reason = "two buffers with their bounds")]
fn put_direct<'local>(
    env: &mut Env<'local>,
    _: JClass<'local>,
    database: jlong,
    key: JByteBuffer<'local>,
    key_offset: jint,
    key_length: jint,
    value: JByteBuffer<'local>,
    value_offset: jint,
    value_length: jint,
    sync: jboolean,
) -> Result<()> {
    let (mut key_bytes, mut value_bytes) = (Scratch::key(), Scratch::value());
    direct::read(env, &key, key_offset, key_length, &mut key_bytes.bytes)?;
    if value.is_null() {
        return set(database, &key_bytes.bytes, None, sync);
    }
    direct::read(env, &value, value_offset, value_length, &mut value_bytes.bytes)?;
    set(database, &key_bytes.bytes, Some(&value_bytes.bytes), sync)
}
