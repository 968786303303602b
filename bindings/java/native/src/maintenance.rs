//! Compactions, flushes, checkpoints, repair, and caches that databases share.

use std::ops::Bound;
use std::sync::Arc;
use std::time::Duration;

use jni::Env;
use jni::objects::{JByteArray, JClass, JLongArray, JObject};
use jni::sys::{jboolean, jlong};
use terrace::{BlockCache, Db, Error};

use crate::bytes::{self, Packed};
use crate::database::{DATABASES, OpenDatabase, check};
use crate::failure::{Failure, Result};
use crate::options::Opening;
use crate::registry::Registry;

/// The caches that Java holds.
pub(crate) static CACHES: Registry<BlockCache> = Registry::new("cache");

/// The database, held for an operation that may take long.
fn held(database: jlong) -> Result<Arc<OpenDatabase>> {
    DATABASES.with(database, |open| Ok::<_, Failure>(open.clone()))
}

native! {
    fn cache(bytes: jlong) -> jlong,
}

fn cache<'local>(_: &mut Env<'local>, _: JClass<'local>, bytes: jlong) -> Result<jlong> {
    let bytes = usize::try_from(bytes)
        .map_err(|_| Error::invalid_argument(format!("a cache of {bytes} bytes")))?;
    Ok(CACHES.insert(BlockCache::new(bytes)))
}

native! {
    fn close_cache(cache: jlong) -> jboolean,
}

fn close_cache<'local>(_: &mut Env<'local>, _: JClass<'local>, cache: jlong) -> Result<jboolean> {
    Ok(CACHES.remove(cache).is_some())
}

native! {
    fn flush(database: jlong),
}

fn flush<'local>(_: &mut Env<'local>, _: JClass<'local>, database: jlong) -> Result<()> {
    held(database)?.run(Db::flush)
}

native! {
    fn sync(database: jlong),
}

fn sync<'local>(_: &mut Env<'local>, _: JClass<'local>, database: jlong) -> Result<()> {
    held(database)?.run(Db::sync)
}

native! {
    fn wait_idle(database: jlong),
}

fn wait_idle<'local>(_: &mut Env<'local>, _: JClass<'local>, database: jlong) -> Result<()> {
    held(database)?.run(Db::wait_idle)
}

native! {
    fn compact_range(database: jlong, from: jbyte[], to: jbyte[]),
}

fn compact_range<'local>(
    env: &mut Env<'local>,
    _: JClass<'local>,
    database: jlong,
    from: JByteArray<'local>,
    to: JByteArray<'local>,
) -> Result<()> {
    let from = bytes::optional(env, &from)?.map_or(Bound::Unbounded, Bound::Included);
    let to = bytes::optional(env, &to)?.map_or(Bound::Unbounded, Bound::Included);
    let open = held(database)?;
    open.run(|db| open.env.foreground(|| db.compact_range::<Vec<u8>>((from, to))))
}

native! {
    fn delete_range(database: jlong, from: jbyte[], to: jbyte[]),
}

/// Removes the keys from `from` to before `to`, null for no bound.
fn delete_range<'local>(
    env: &mut Env<'local>,
    _: JClass<'local>,
    database: jlong,
    from: JByteArray<'local>,
    to: JByteArray<'local>,
) -> Result<()> {
    let from = bytes::optional(env, &from)?.map_or(Bound::Unbounded, Bound::Included);
    let to = bytes::optional(env, &to)?.map_or(Bound::Unbounded, Bound::Excluded);
    let open = held(database)?;
    open.run(|db| open.env.foreground(|| db.delete_range::<Vec<u8>>((from, to))))
}

native! {
    fn suspend(database: jlong, millis: jlong) -> jboolean,
}

/// Suspends background work. Returns whether the jobs that were running have ended, waiting for
/// them at most so many milliseconds.
fn suspend<'local>(
    _: &mut Env<'local>,
    _: JClass<'local>,
    database: jlong,
    millis: jlong,
) -> Result<jboolean> {
    let open = held(database)?;
    Ok(open.env.suspend(Duration::from_millis(u64::try_from(millis).unwrap_or_default())))
}

native! {
    fn resume(database: jlong),
}

fn resume<'local>(_: &mut Env<'local>, _: JClass<'local>, database: jlong) -> Result<()> {
    held(database)?.env.resume();
    Ok(())
}

native! {
    fn approximate_sizes(database: jlong, ranges: jbyte[]) -> jlong[],
}

/// Sizes of packed ranges: a first key, the key behind the last one, and so on.
fn approximate_sizes<'local>(
    env: &mut Env<'local>,
    _: JClass<'local>,
    database: jlong,
    ranges: JByteArray<'local>,
) -> Result<JLongArray<'local>> {
    let packed = env.convert_byte_array(&ranges)?;
    let keys: Vec<&[u8]> = Packed(&packed).collect::<terrace::Result<_>>()?;
    let (pairs, _) = keys.as_chunks::<2>();
    let ranges: Vec<(&[u8], &[u8])> = pairs.iter().map(|[from, to]| (*from, *to)).collect();
    let sizes = held(database)?.run(|db| db.approximate_sizes(&ranges))?;
    let sizes: Vec<jlong> = sizes.into_iter().map(|size| size as jlong).collect();
    let array = env.new_long_array(sizes.len())?;
    array.set_region(env, 0, &sizes)?;
    Ok(array)
}

native! {
    fn checkpoint(database: jlong, path: jbyte[]),
}

fn checkpoint<'local>(
    env: &mut Env<'local>,
    _: JClass<'local>,
    database: jlong,
    path: JByteArray<'local>,
) -> Result<()> {
    let path = bytes::text(env, &path)?;
    held(database)?.run(|db| db.checkpoint(path).map(drop))
}

native! {
    fn destroy(path: jbyte[]),
}

fn destroy<'local>(
    env: &mut Env<'local>,
    _: JClass<'local>,
    path: JByteArray<'local>,
) -> Result<()> {
    let path = bytes::text(env, &path)?;
    Ok(terrace::destroy(path, &terrace::Options::new())?)
}

native! {
    fn repair(
        path: jbyte[],
        settings: jlong[],
        comparator: JObject,
        comparator_name: jbyte[],
        logger: JObject,
    ),
}

fn repair<'local>(
    env: &mut Env<'local>,
    _: JClass<'local>,
    path: JByteArray<'local>,
    settings: JLongArray<'local>,
    comparator: JObject<'local>,
    comparator_name: JByteArray<'local>,
    logger: JObject<'local>,
) -> Result<()> {
    let path = bytes::text(env, &path)?;
    let opening = Opening::read(env, &settings, &comparator, &comparator_name, &logger)?;
    let repaired = terrace::repair(path, &opening.options);
    check(&opening.failure)?;
    repaired?;
    Ok(())
}
