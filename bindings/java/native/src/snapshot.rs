//! Snapshots.

use jni::Env;
use jni::objects::JClass;
use jni::sys::{jboolean, jlong};
use terrace::Snapshot;

use crate::database::DATABASES;
use crate::failure::{Failure, Result};
use crate::registry::Registry;

/// The snapshots that Java holds.
pub(crate) static SNAPSHOTS: Registry<Snapshot> = Registry::new("snapshot");

native! {
    fn snapshot(database: jlong) -> jlong,
}

fn snapshot<'local>(_: &mut Env<'local>, _: JClass<'local>, database: jlong) -> Result<jlong> {
    // Numbered only once nothing fails any more: a number that Java never gets is kept for good.
    let snapshot =
        DATABASES.with(database, |open| open.run(|db| Ok::<_, Failure>(db.snapshot())))?;
    Ok(SNAPSHOTS.insert(snapshot))
}

native! {
    fn close_snapshot(snapshot: jlong) -> jboolean,
}

fn close_snapshot<'local>(
    _: &mut Env<'local>,
    _: JClass<'local>,
    snapshot: jlong,
) -> Result<jboolean> {
    Ok(SNAPSHOTS.remove(snapshot).is_some())
}
