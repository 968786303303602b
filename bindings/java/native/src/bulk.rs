//! Bulk loads: many entries past the log, visible at one moment.

use std::sync::{Mutex, PoisonError};

use jni::Env;
use jni::objects::{JByteArray, JClass};
use jni::sys::{jboolean, jint, jlong};
use terrace::{BulkLoad, Db, Error};

use crate::bytes::{Packed, Scratch};
use crate::database::DATABASES;
use crate::failure::{Failure, Result};
use crate::registry::Registry;

/// The loads that Java holds, each with the number of its database; taken out by the end.
static LOADS: Registry<(jlong, Mutex<Option<BulkLoad>>)> = Registry::new("bulk load");

/// Drops the loads of a database that is closed: nobody can use them any more.
pub(crate) fn close_all_of(database: jlong) {
    LOADS.remove_where(|(of, _)| *of == database);
}

native! {
    fn bulk_load(database: jlong) -> jlong,
}

fn bulk_load<'local>(_: &mut Env<'local>, _: JClass<'local>, database: jlong) -> Result<jlong> {
    DATABASES.with(database, |open| {
        let load = open.run(Db::bulk_load)?;
        Ok(LOADS.insert((database, Mutex::new(Some(load)))))
    })
}

native! {
    fn bulk_load_put(load: jlong, entries: jbyte[], length: jint),
}

/// Adds packed entries: a key, its value, the next key, and so on.
fn bulk_load_put<'local>(
    env: &mut Env<'local>,
    _: JClass<'local>,
    load: jlong,
    entries: JByteArray<'local>,
    length: jint,
) -> Result<()> {
    let held = LOADS.get(load)?;
    let length = usize::try_from(length).unwrap_or_default();
    let mut scratch = Scratch::value();
    let mut pieces = Packed(scratch.read_prefix(env, &entries, length)?);
    DATABASES.with(held.0, |open| {
        open.run(|_| {
            let mut load = held.1.lock().unwrap_or_else(PoisonError::into_inner);
            let load = load.as_mut().ok_or_else(|| Error::closed("the bulk load is over"))?;
            while let Some(key) = pieces.next() {
                let value = pieces.next().ok_or_else(|| Error::invalid_argument("a key alone"))?;
                load.put(key?, value?)?;
            }
            Ok::<_, Failure>(())
        })
    })
}

native! {
    fn finish_bulk_load(load: jlong) -> jlong,
}

/// Ends a load: all entries become visible. Returns their number, each key counted once.
fn finish_bulk_load<'local>(_: &mut Env<'local>, _: JClass<'local>, load: jlong) -> Result<jlong> {
    let held = LOADS.get(load)?;
    DATABASES.with(held.0, |open| {
        let report = open.run(|_| {
            let load = held.1.lock().unwrap_or_else(PoisonError::into_inner).take();
            let load = load.ok_or_else(|| Error::closed("the bulk load is over"))?;
            open.env.foreground(|| load.finish())
        })?;
        Ok::<_, Failure>(jlong::try_from(report.entries).unwrap_or(jlong::MAX))
    })
}

native! {
    fn close_bulk_load(load: jlong) -> jboolean,
}

/// Gives up a load that was not finished.
fn close_bulk_load<'local>(
    _: &mut Env<'local>,
    _: JClass<'local>,
    load: jlong,
) -> Result<jboolean> {
    Ok(LOADS.remove(load).is_some())
}
