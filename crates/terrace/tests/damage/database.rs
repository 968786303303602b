//! Databases to damage, and ways to do it.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use terrace::{Comparator, Compression, Db, Options, WriteBatch, WriteOptions};
use terrace_testkit::rng::Rng;

/// The contents of a database.
pub(crate) type Contents = BTreeMap<Vec<u8>, Vec<u8>>;

/// Small tables and blocks, so that there are many of them.
pub(crate) fn options() -> Options {
    Options::new()
        .create_if_missing(true)
        .write_buffer_size(512 << 10)
        .max_file_size(1 << 20)
        .block_size(1 << 10)
        .compression(Compression::None)
}

/// Everything that can be seen.
pub(crate) fn contents(dir: &Path, options: Options) -> Contents {
    let db = Db::open(dir, options.create_if_missing(false)).expect("opens");
    contents_of(&db)
}

pub(crate) fn contents_of(db: &Db) -> Contents {
    db.iter().expect("iterates").map(|entry| entry.expect("reads")).collect()
}

/// Writes a history with overwrites and deletes, some of it in deep levels, some in level 0, some
/// in the log only.
pub(crate) fn build(dir: &Path, options: Options, seed: u64) -> Contents {
    let mut rng = Rng::new(seed);
    let mut model = Contents::new();
    let db = Db::open(dir, options).expect("creates");
    for phase in 0..4 {
        let mut kept = Vec::new();
        for number in 0..1500u64 {
            let key = format!("key{:05}", rng.below(2000)).into_bytes();
            let mut batch = WriteBatch::new();
            if rng.one_in(4) {
                batch.delete(&key);
                model.remove(&key);
            } else {
                let mut value = format!("{phase}.{number}:").into_bytes();
                let length = rng.below(120);
                value.extend(rng.bytes(length));
                batch.put(&key, &value);
                model.insert(key, value);
            }
            let sync = number % 200 == 199;
            db.write_with(&batch, WriteOptions { sync }).expect("writes");
            if number % 700 == 0 {
                kept.push(db.snapshot());
            }
        }
        match phase {
            0 => db.compact_range::<&[u8]>(..).expect("compacts"),
            1 | 2 => db.flush().expect("flushes"),
            _ => {}
        }
    }
    db.wait_idle().expect("rests");
    db.close().expect("closes");
    model
}

/// The names of a database's files with this ending, sorted.
pub(crate) fn names(dir: &Path, suffix: &str) -> Vec<String> {
    let mut names: Vec<_> = fs::read_dir(dir)
        .expect("lists")
        .map(|entry| entry.expect("lists").file_name().into_string().expect("a name"))
        .filter(|name| name.ends_with(suffix))
        .collect();
    names.sort();
    names
}

/// The installed MANIFEST.
pub(crate) fn manifest(dir: &Path) -> String {
    fs::read_to_string(dir.join("CURRENT")).expect("reads").trim_end().to_owned()
}

/// Flips one bit.
pub(crate) fn flip(dir: &Path, name: &str, offset: usize) {
    let path = dir.join(name);
    let mut bytes = fs::read(&path).expect("reads");
    bytes[offset] ^= 4;
    fs::write(&path, bytes).expect("writes");
}

/// Bytes in their order, whose separators are not shortened: a tag must not be cut off.
pub(crate) struct AsBytes;

impl Comparator for AsBytes {
    fn name(&self) -> &str {
        "as bytes"
    }

    fn compare(&self, a: &[u8], b: &[u8]) -> std::cmp::Ordering {
        a.cmp(b)
    }
}
