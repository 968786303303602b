//! Batches, which Java builds in LevelDB's form and hands over whole.

use jni::Env;
use jni::objects::{JByteArray, JClass};
use jni::sys::{jboolean, jint, jlong};
use terrace::{Error, WriteBatch, WriteOptions};

use crate::bytes::Scratch;
use crate::database::DATABASES;
use crate::failure::Result;

native! {
    fn write(database: jlong, batch: jbyte[], length: jint, sync: jboolean),
}

/// Applies a batch: the first `length` bytes of the array.
fn write<'local>(
    env: &mut Env<'local>,
    _: JClass<'local>,
    database: jlong,
    batch: JByteArray<'local>,
    length: jint,
    sync: jboolean,
) -> Result<()> {
    let batch = read(env, &batch, length)?;
    DATABASES.with(database, |open| open.run(|db| db.write_with(&batch, WriteOptions { sync })))
}

/// A batch of the first `length` bytes of an array.
///
/// # Errors
/// `Corruption` if it is none.
pub(crate) fn read(env: &Env<'_>, array: &JByteArray<'_>, length: jint) -> Result<WriteBatch> {
    let length =
        usize::try_from(length).map_err(|_| Error::invalid_argument("a length below 0"))?;
    let mut scratch = Scratch::value();
    scratch.bytes.clear();
    scratch.read_prefix(env, array, length)?;
    // The batch takes the buffer; the next one of this thread gets another.
    Ok(WriteBatch::from_bytes(std::mem::take(&mut scratch.bytes))?)
}
