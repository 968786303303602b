//! Databases whose tables point at values that no database can have, checksums and all.

use std::fs::{self, File};
use std::path::Path;
use std::sync::Arc;

use terrace::{
    CompactOptions, Compression, CreateOptions, Db, Env, ErrorKind, MemEnv, Options, abi, repair,
    verify,
};

use crate::database::AsBytes;

/// The numbers of the files.
const LOG: u64 = 3;
const TABLE: u64 = 4;
const VALUES: u64 = 6;
const MANIFEST: u64 = 7;
const NEXT: u64 = 9;
/// Bytes of a block of a log, and of a fragment's header.
const BLOCK: u64 = 32_768;
const HEADER: u64 = 7;

/// A database of one table, all of whose entries point at the first value of a sparse value file.
#[derive(Clone, Copy)]
struct Hostile {
    entries: u64,
    /// Of the value.
    length: u64,
    /// Of values in the value file, and those of them that the table uses, as the MANIFEST says.
    value_bytes: u64,
    used: u64,
}

impl Hostile {
    /// What is consistent.
    fn new(entries: u64, length: u64) -> Self {
        Hostile { entries, length, value_bytes: length, used: length * entries }
    }

    /// Of the value file: the value, which is the rest of a record from behind its header on.
    fn size(&self) -> u64 {
        let in_blocks = self.length / (BLOCK - HEADER) * BLOCK + self.length % (BLOCK - HEADER);
        HEADER + in_blocks + HEADER
    }

    fn write(&self, dir: &Path) {
        let key = |number: u64| format!("key{number:05}").into_bytes();
        let table = self.table(&key);
        let file = |prefix: &str, number: u64, suffix: &str| {
            dir.join(format!("{prefix}{number:06}{suffix}"))
        };
        fs::write(file("", TABLE, ".ldb"), &table).expect("writes");
        fs::write(file("", LOG, ".log"), []).expect("writes");
        let values = File::create(file("", VALUES, ".vlog")).expect("creates");
        values.set_len(self.size()).expect("a sparse file");
        let name = prefixed(b"terrace.extended.leveldb.BytewiseComparator");
        let (first, last) =
            (prefixed(&pointing(&key(0))), prefixed(&pointing(&key(self.entries - 1))));
        let edit = [
            numbers(&[2, LOG, 9, 0, 3, NEXT, 4, 1]),
            numbers(&[7, 2, TABLE, table.len() as u64]),
            [first, last].concat(),
            numbers(&[0x5401, VALUES, self.size(), self.value_bytes]),
            numbers(&[0x5402, TABLE, 1, VALUES, self.used]),
            [numbers(&[1]), name.clone()].concat(),
        ];
        let records = [record(&[numbers(&[9, 0, 1]), name].concat()), record(&edit.concat())];
        fs::write(file("MANIFEST-", MANIFEST, ""), records.concat()).expect("writes");
        fs::write(dir.join("CURRENT"), format!("MANIFEST-{MANIFEST:06}\n")).expect("writes");
    }

    fn table(&self, key: &dyn Fn(u64) -> Vec<u8>) -> Vec<u8> {
        let env = MemEnv::new();
        let file = env.create(Path::new("/table"), CreateOptions::default()).expect("creates");
        let options = Options::new().compression(Compression::None).table_filter_bits(0);
        let options = options.comparator(Arc::new(AsBytes));
        let mut builder = abi::PlainTableBuilder::new(file, &options);
        // Of zeros, unless they are too many to be counted.
        let checksum = match self.length {
            ..=0x10_0000 => masked(&vec![0; self.length as usize]),
            _ => 0,
        };
        let pointer = [numbers(&[VALUES, HEADER, self.length]), checksum.to_le_bytes().to_vec()];
        for number in 0..self.entries {
            builder.add(&pointing(&key(number)), &pointer.concat()).expect("adds");
        }
        builder.finish().expect("finishes");
        env.read("/table").expect("there")
    }
}

/// The internal key of an entry with a pointer.
fn pointing(user: &[u8]) -> Vec<u8> {
    [user, &(1_u64 << 8 | 2).to_le_bytes()].concat()
}

fn numbers(numbers: &[u64]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for &number in numbers {
        let mut rest = number;
        while rest >= 0x80 {
            bytes.push(rest as u8 | 0x80);
            rest >>= 7;
        }
        bytes.push(rest as u8);
    }
    bytes
}

fn prefixed(bytes: &[u8]) -> Vec<u8> {
    [numbers(&[bytes.len() as u64]), bytes.to_vec()].concat()
}

fn masked(bytes: &[u8]) -> u32 {
    crc32c::crc32c(bytes).rotate_right(15).wrapping_add(0xa282_ead8)
}

/// A record of a log, of one fragment.
fn record(payload: &[u8]) -> Vec<u8> {
    let sum = masked(&[&[1], payload].concat()).to_le_bytes();
    let length = u16::try_from(payload.len()).expect("short").to_le_bytes();
    [&sum[..], &length, &[1], payload].concat()
}

fn open(dir: &Path) -> terrace::Result<Db> {
    Db::open(dir, Options::new().value_log(Some(100)))
}

/// A value of that length cannot have been written, and no memory for it is asked for.
#[test]
fn a_pointer_to_more_than_a_value_can_be_is_damage() {
    let dir = tempfile::tempdir().expect("a directory");
    Hostile::new(1, 1 << 40).write(dir.path());
    let db = open(dir.path()).expect("opens");
    let error = db.get("key00000").expect_err("is too long");
    assert_eq!(error.kind(), ErrorKind::Corruption, "{error}");
    let error = db.iter().expect("scans").next().expect("an entry").expect_err("is too long");
    assert_eq!(error.kind(), ErrorKind::Corruption, "{error}");
    let error = db.compact_range::<&[u8]>(..).and_then(|()| db.wait_idle());
    assert!(error.is_ok() || error.is_err_and(|error| error.kind() == ErrorKind::Corruption));
    drop(db);
    let problems = verify(dir.path(), &Options::new()).expect("checks").problems;
    assert!(problems.iter().any(|problem| problem.message.contains("key00000")), "{problems:?}");
    repair(dir.path(), &Options::new()).expect("repairs");
    assert_eq!(open(dir.path()).expect("opens").get("key00000").expect("reads"), None);
}

/// What the MANIFEST says of the use of a value file decides what garbage collection copies.
#[test]
fn a_table_that_uses_more_of_a_value_file_than_there_is_is_refused() {
    let shared = Hostile::new(256, 1 << 20);
    let cases = [
        ("tables use", shared),
        ("are said to hold", Hostile { value_bytes: shared.used, ..shared }),
    ];
    for (told, hostile) in cases {
        let dir = tempfile::tempdir().expect("a directory");
        hostile.write(dir.path());
        let error = open(dir.path()).map(drop).expect_err("cannot be");
        assert_eq!(error.kind(), ErrorKind::Corruption, "{error}");
        assert!(error.to_string().contains(told), "{error}");
        let problems = verify(dir.path(), &Options::new()).expect("checks").problems;
        assert!(problems.iter().any(|problem| problem.message.contains(told)), "{problems:?}");
        // There is one value, and one entry may have it.
        let report = repair(dir.path(), &Options::new()).expect("repairs");
        let left_out =
            |problem: &terrace::Problem| problem.message.starts_with("255 entries are lost");
        assert!(report.problems.iter().any(left_out), "{report:?}");
        let db = open(dir.path()).expect("opens");
        assert_eq!(db.get("key00000").expect("reads"), Some(vec![0; 1 << 20]));
        assert_eq!(db.iter().expect("scans").count(), 1);
        assert!(db.verify().expect("checks").problems.is_empty());
    }
}

/// Of each entry a copy would be made.
#[test]
fn a_compaction_copies_no_more_values_than_the_manifest_says_are_used() {
    let dir = tempfile::tempdir().expect("a directory");
    Hostile { used: 1 << 18, ..Hostile::new(256, 1 << 20) }.write(dir.path());
    let db = open(dir.path()).expect("opens");
    let options = CompactOptions::new().force(true);
    let error = db.compact_range_with::<&[u8]>(.., options).expect_err("is refused");
    assert_eq!(error.kind(), ErrorKind::Corruption, "{error}");
    assert!(error.to_string().contains("than the MANIFEST says"), "{error}");
    drop(db);
    let size = |name: std::io::Result<fs::DirEntry>| {
        let name = name.expect("lists");
        let is_new = name.file_name().to_str().is_some_and(|name| !name.starts_with("000006"));
        name.metadata().map_or(0, |found| if is_new { found.len() } else { 0 })
    };
    let bytes: u64 = fs::read_dir(dir.path()).expect("lists").map(size).sum();
    assert!(bytes < 1 << 20, "{bytes} bytes beside the hostile file");
}
