//! Tables that no builder makes, checksums and all: wrong kinds and orders of keys, blocks of
//! no compression that is known, and tables whose end is gone.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use terrace::{
    Compression, CreateOptions, Db, Env, ErrorKind, MemEnv, Options, abi, repair, verify,
};
use terrace_testkit::rng::Rng;

use crate::database::AsBytes;

type Contents = BTreeMap<Vec<u8>, Vec<u8>>;

fn options() -> Options {
    Options::new().create_if_missing(true).compression(Compression::None).table_filter_bits(0)
}

/// A database of one table with `count` entries.
fn database(dir: &Path, count: usize, options: Options) -> Contents {
    let mut rng = Rng::new(7);
    let model: Contents =
        (0..count).map(|n| (format!("key{n:05}").into_bytes(), rng.bytes(1000))).collect();
    let db = Db::open(dir, options).expect("creates");
    model.iter().for_each(|(key, value)| db.put(key, value).expect("puts"));
    db.flush().expect("flushes");
    db.close().expect("closes");
    model
}

fn table(dir: &Path) -> PathBuf {
    let mut names = fs::read_dir(dir).expect("lists").map(|entry| entry.expect("lists").path());
    names.find(|path| path.extension().is_some_and(|ending| ending == "ldb")).expect("a table")
}

fn internal(user: &str, sequence: u64, kind: u8) -> Vec<u8> {
    [user.as_bytes(), &(sequence << 8 | u64::from(kind)).to_le_bytes()].concat()
}

/// A table of these keys, which ascend as bytes; the last has a value of `padding` bytes.
fn forged(keys: &[Vec<u8>], padding: usize) -> Vec<u8> {
    let env = MemEnv::new();
    let file = env.create(Path::new("/table"), CreateOptions::default()).expect("creates");
    let mut builder = abi::PlainTableBuilder::new(file, &options().comparator(Arc::new(AsBytes)));
    for (at, key) in keys.iter().enumerate() {
        let value = if at + 1 == keys.len() { vec![b'.'; padding] } else { b"planted".to_vec() };
        builder.add(key, &value).expect("adds");
    }
    builder.finish().expect("finishes");
    env.read("/table").expect("there")
}

/// Puts a table of these keys in the place of a database's only one, of the same size if it has
/// keys.
fn plant(dir: &Path, keys: &[Vec<u8>]) {
    let path = table(dir);
    let size = fs::metadata(&path).expect("there").len() as usize;
    let missing = size.saturating_sub(forged(keys, 0).len());
    let fitting = (missing.saturating_sub(8)..=missing).map(|padding| forged(keys, padding));
    let bytes = fitting
        .into_iter()
        .max_by_key(|bytes| bytes.len() * usize::from(bytes.len() <= size))
        .expect("one");
    assert!(bytes.len() == size || keys.is_empty(), "{} instead of {size} bytes", bytes.len());
    fs::write(&path, bytes).expect("writes");
}

/// The values that can be read, by key; and how many reads of the others fail.
fn found(dir: &Path, keys: &[&str]) -> (Vec<String>, usize) {
    let db = Db::open(dir, options()).expect("opens");
    let (mut values, mut errors) = (Vec::new(), 0);
    for key in keys {
        match db.get(key) {
            Ok(Some(_)) => values.push((*key).to_owned()),
            Ok(None) => {}
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::Corruption, "{error}");
                errors += 1;
            }
        }
    }
    (values, errors)
}

#[test]
fn an_unknown_kind_of_entry_is_damage() {
    let dir = tempfile::tempdir().expect("a directory");
    database(dir.path(), 4, options());
    plant(
        dir.path(),
        &[internal("key00000", 1, 1), internal("key00001", 2, 9), internal("key00002", 3, 1)],
    );
    let db = Db::open(dir.path(), options()).expect("opens");
    let forward: Vec<_> = db.iter().expect("iterates").collect();
    assert!(forward.len() == 2 && forward[0].is_ok(), "{forward:?}");
    let error = forward[1].as_ref().expect_err("damage");
    assert_eq!(error.kind(), ErrorKind::Corruption, "{error}");
    let backward: Vec<_> = db.iter().expect("iterates").rev().collect();
    assert!(
        backward
            .iter()
            .any(|entry| entry.as_ref().is_err_and(|error| error.kind() == ErrorKind::Corruption))
    );
    assert!(backward.len() <= 2, "{backward:?}");
    drop(db);
    let report = verify(dir.path(), &options()).expect("checks");
    assert!(
        report.problems.iter().any(|problem| problem.message.contains("of an unknown kind")),
        "{report:#?}"
    );
    let report = repair(dir.path(), &options()).expect("repairs");
    assert!(report.entries == 2 && !report.problems.is_empty(), "{report:#?}");
    assert_eq!(
        found(dir.path(), &["key00000", "key00001", "key00002"]).0,
        ["key00000", "key00002"]
    );
    assert!(verify(dir.path(), &options()).expect("checks").is_clean());
}

#[test]
fn entries_out_of_order_are_found_and_put_in_order() {
    let dir = tempfile::tempdir().expect("a directory");
    database(dir.path(), 4, options());
    // Of one key the newer version comes first; as bytes the older one does.
    let keys = [
        internal("key00000", 1, 1),
        internal("key00000", 2, 1),
        internal("key00001", 3, 0),
        internal("key00001", 4, 1),
    ];
    plant(dir.path(), &keys);
    let report = verify(dir.path(), &options()).expect("checks");
    assert!(
        report
            .problems
            .iter()
            .any(|problem| problem.message.contains("not after the key before it")),
        "{report:#?}"
    );
    let report = repair(dir.path(), &options()).expect("repairs");
    assert_eq!(report.entries, 4, "{report:#?}");
    assert!(verify(dir.path(), &options()).expect("checks").is_clean());
    assert_eq!(
        found(dir.path(), &["key00000", "key00001"]),
        (vec!["key00000".to_owned(), "key00001".to_owned()], 0)
    );
}

#[test]
fn an_empty_or_foreign_table_is_damage() {
    for keys in [&[][..], &[b"short".to_vec()]] {
        let dir = tempfile::tempdir().expect("a directory");
        database(dir.path(), 4, options());
        plant(dir.path(), keys);
        let report = verify(dir.path(), &options()).expect("checks");
        assert!(!report.problems.is_empty());
        let outcome = found(dir.path(), &["key00000", "key00003", "zebra"]);
        assert_eq!(outcome.0, Vec::<String>::new());
        let report = repair(dir.path(), &options()).expect("repairs");
        assert_eq!(report.entries, 0, "{report:#?}");
        assert!(verify(dir.path(), &options()).expect("checks").is_clean());
    }
}

/// The table without its last bytes, where index and footer are.
fn cut_off(path: &Path) -> Vec<u8> {
    let bytes = fs::read(path).expect("reads");
    bytes[..bytes.len() - 30].to_vec()
}

fn repaired(dir: &Path, options: &Options) -> Contents {
    let report = repair(dir, options).expect("repairs");
    assert!(!report.problems.is_empty(), "{report:#?}");
    assert!(verify(dir, options).expect("checks").is_clean());
    let db = Db::open(dir, options.clone()).expect("opens");
    db.iter().expect("iterates").map(|entry| entry.expect("reads")).collect()
}

#[test]
fn a_long_table_without_its_end_is_found_again() {
    let dir = tempfile::tempdir().expect("a directory");
    let options = options().max_file_size(16 << 20);
    let model = database(dir.path(), 3000, options.clone());
    let path = table(dir.path());
    fs::write(&path, cut_off(&path)).expect("writes");
    // Small tables now: what is found becomes several.
    let options = options.max_file_size(1 << 20);
    assert!(repaired(dir.path(), &options) == model);
    let db = Db::open(dir.path(), options).expect("opens");
    assert!(db.files().len() >= 3, "{:?}", db.files());
}

#[test]
fn a_block_of_an_unknown_compression_costs_its_entries() {
    let dir = tempfile::tempdir().expect("a directory");
    let model = database(dir.path(), 30, options());
    let path = table(dir.path());
    let mut bytes = cut_off(&path);
    // The first block ends where its checksum stands.
    let masked = |bytes: &[u8]| {
        crc32c::crc32c(bytes).rotate_right(15).wrapping_add(0xa282_ead8).to_le_bytes()
    };
    let end = (1..bytes.len())
        .find(|&end| bytes[end + 1..end + 5] == masked(&bytes[..=end]))
        .expect("a block");
    bytes[end] = 9;
    let checksum = masked(&bytes[..=end]);
    bytes[end + 1..end + 5].copy_from_slice(&checksum);
    fs::write(&path, bytes).expect("writes");
    let left = repaired(dir.path(), &options());
    let lost = model.len() - left.len();
    assert!((1..=6).contains(&lost), "{lost} entries of a block of four kilobytes");
    assert!(left.iter().all(|(key, value)| model.get(key) == Some(value)));
    assert!(left.contains_key(&b"key00029"[..]) && !left.contains_key(&b"key00000"[..]));
}

#[test]
fn a_search_through_hostile_bytes_ends() {
    let dir = tempfile::tempdir().expect("a directory");
    database(dir.path(), 4, options());
    // At every other byte something could begin that looks like a block.
    fs::write(table(dir.path()), [0, 16].repeat(30_000)).expect("writes");
    assert!(repaired(dir.path(), &options()).is_empty());
}

#[test]
fn logs_larger_than_memory_become_several_tables() {
    let dir = tempfile::tempdir().expect("a directory");
    let db = Db::open(dir.path(), options()).expect("creates");
    let value = |n: usize| vec![n as u8; 100_000];
    db.put("a", "1").expect("puts");
    // All versions of one key stay in one table, however large.
    (0..30).for_each(|n| db.put("k", value(n)).expect("puts"));
    db.put("z", "1").expect("puts");
    db.close().expect("closes");
    fs::remove_file(dir.path().join("CURRENT")).expect("removes");
    for buffer in [64 << 10, 16 << 20] {
        let options = options().write_buffer_size(buffer).max_file_size(1 << 20);
        let report = repair(dir.path(), &options).expect("repairs");
        assert!(verify(dir.path(), &options).expect("checks").is_clean(), "{report:#?}");
        let db = Db::open(dir.path(), options.read_only(true)).expect("opens");
        assert_eq!(db.iter().expect("iterates").count(), 3);
        assert!(db.get("k").expect("gets") == Some(value(29)));
        drop(db);
        fs::remove_file(dir.path().join("CURRENT")).expect("removes");
    }
}
