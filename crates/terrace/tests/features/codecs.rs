//! Tables with LZ4 or zstd, which LevelDB does not read: what makes a database extended, and what
//! makes it plain again.

use std::path::Path;
use std::sync::Arc;

use terrace::{
    CompactOptions, Compression, Db, Env, ErrorKind, KeyspaceOptions, MemEnv, Options, TableWriter,
    repair, verify,
};

const EXTENDED: &[u8] = b"terrace.extended.leveldb.BytewiseComparator";

fn options(env: &Arc<MemEnv>, compression: Compression) -> Options {
    Options::new()
        .create_if_missing(true)
        .env(env.clone())
        .write_buffer_size(64 << 10)
        .compression(compression)
}

fn open(env: &Arc<MemEnv>, compression: Compression) -> Db {
    Db::open("/db", options(env, compression)).expect("opens")
}

/// Those that this build writes and LevelDB does not read.
fn codecs() -> Vec<Compression> {
    let mut all = vec![Compression::Lz4];
    if cfg!(feature = "zstd") {
        all.push(Compression::Zstd);
    }
    all
}

fn key(number: usize) -> String {
    format!("key{number:05}")
}

fn value(number: usize) -> Vec<u8> {
    format!("value {number}, ").repeat(10).into_bytes()
}

fn fill(db: &Db, numbers: std::ops::Range<usize>) {
    numbers.for_each(|number| db.put(key(number), value(number)).expect("puts"));
    db.flush().expect("flushes");
}

fn check(db: &Db, count: usize) {
    let entries: Vec<_> = db.iter().expect("scans").map(|entry| entry.expect("reads")).collect();
    assert!(entries.len() == count);
    for (number, (found, value_of_it)) in entries.iter().enumerate() {
        assert_eq!((&found[..], value_of_it), (key(number).as_bytes(), &value(number)));
        assert_eq!(db.get(found).expect("reads").as_ref(), Some(value_of_it));
    }
    let report = db.verify().expect("checks");
    assert!(report.is_clean(), "{report:?}");
}

fn rewrite(db: &Db) {
    db.compact_range_with::<&[u8]>(.., CompactOptions::new().force(true)).expect("compacts");
    db.wait_idle().expect("waits");
}

fn is_extended(env: &MemEnv, directory: &str) -> bool {
    let current = env.read(Path::new(directory).join("CURRENT")).expect("CURRENT");
    let name = String::from_utf8(current).expect("text");
    let manifest = env.read(Path::new(directory).join(name.trim_end())).expect("a MANIFEST");
    manifest.windows(EXTENDED.len()).any(|window| window == EXTENDED)
}

#[test]
fn a_database_is_extended_while_it_has_such_a_table() {
    for codec in codecs() {
        let env = Arc::new(MemEnv::new());
        let db = open(&env, Compression::Snappy);
        fill(&db, 0..1000);
        assert!(!is_extended(&env, "/db") && !db.stats().is_extended);
        db.close().expect("closes");
        let db = open(&env, codec);
        assert!(!is_extended(&env, "/db"), "{codec:?}: nothing is written yet");
        fill(&db, 1000..2000);
        assert!(is_extended(&env, "/db") && db.stats().is_extended);
        rewrite(&db);
        check(&db, 2000);
        db.checkpoint("/copy").expect("copies");
        db.close().expect("closes");
        assert!(is_extended(&env, "/db") && is_extended(&env, "/copy"));
        for path in ["/db", "/copy"] {
            let report = verify(path, &options(&env, Compression::Snappy)).expect("checks");
            assert!(report.is_clean(), "{report:?}");
        }
        // Whatever the setting, it is read; and what is written next has the present one.
        let db = open(&env, Compression::Snappy);
        check(&db, 2000);
        fill(&db, 2000..2100);
        assert!(db.stats().is_extended);
        rewrite(&db);
        check(&db, 2100);
        assert!(!db.stats().is_extended);
        db.close().expect("closes");
        assert!(!is_extended(&env, "/db"), "{codec:?}: it is plain again");
    }
}

#[test]
fn levels_have_compressions_of_their_own() {
    let env = Arc::new(MemEnv::new());
    let levels = vec![Compression::None, Compression::Snappy, Compression::Lz4];
    let settings = options(&env, Compression::Snappy).compression_per_level(levels);
    let db = Db::open("/db", settings).expect("opens");
    fill(&db, 0..300);
    assert!(!db.stats().is_extended, "{:?}", db.files());
    rewrite(&db);
    assert!(db.files().iter().all(|file| file.level >= 2), "{:?}", db.files());
    assert!(db.stats().is_extended);
    check(&db, 300);
    db.close().expect("closes");
}

/// A keyspace's settings outlive every option: none could make such a database plain again.
#[test]
fn keyspaces_have_snappy_or_nothing() {
    let env = Arc::new(MemEnv::new());
    let db = open(&env, Compression::Snappy);
    for codec in [Compression::Lz4, Compression::Zstd] {
        let options = KeyspaceOptions::new().compression(codec);
        let error = db.create_keyspace("images", options).expect_err("refused");
        assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");
        assert!(error.to_string().contains("none or snappy"), "{error}");
    }
    db.close().expect("closes");
    // Its own compression beside the database's, in one table.
    let db = open(&env, Compression::Lz4);
    let options = KeyspaceOptions::new().compression(Compression::Snappy);
    let images = db.create_keyspace("images", options).expect("a keyspace");
    (0..500).for_each(|number| images.put(key(number), value(number)).expect("puts"));
    fill(&db, 0..500);
    rewrite(&db);
    assert!(db.verify().expect("checks").is_clean());
    assert_eq!(images.iter().expect("scans").count(), 500);
    assert!(db.stats().is_extended);
    db.close().expect("closes");
    let db = open(&env, Compression::Snappy);
    rewrite(&db);
    assert!(!db.stats().is_extended);
}

#[test]
fn a_table_that_is_ingested_makes_a_database_extended() {
    let env = Arc::new(MemEnv::new());
    let db = open(&env, Compression::Snappy);
    let mut writer =
        TableWriter::create("/table.ldb", &options(&env, Compression::Lz4)).expect("a table");
    (0..500).for_each(|number| writer.put(key(number), value(number)).expect("puts"));
    writer.finish().expect("a table");
    db.ingest(&["/table.ldb"]).expect("ingests");
    assert!(is_extended(&env, "/db"));
    check(&db, 500);
}

fn masked(bytes: &[u8]) -> [u8; 4] {
    crc32c::crc32c(bytes).rotate_right(15).wrapping_add(0xa282_ead8).to_le_bytes()
}

/// The table's own properties are believed only as far as its blocks agree.
#[test]
fn a_table_that_lies_about_its_blocks_is_not_ingested() {
    let env = Arc::new(MemEnv::new());
    let db = open(&env, Compression::Snappy);
    let path = Path::new("/table.ldb");
    let mut writer = TableWriter::create(path, &options(&env, Compression::Lz4)).expect("a table");
    (0..500).for_each(|number| writer.put(key(number), value(number)).expect("puts"));
    writer.finish().expect("a table");
    let table = env.read(path).expect("reads");
    for (bits, kind, text) in [
        (0, ErrorKind::Corruption, "blocks have lz4, the properties say none"),
        (9, ErrorKind::NotSupported, "a compression of a later version"),
    ] {
        env.write(path, name_codecs(&table, bits));
        let error = db.ingest(&[path]).expect_err("refused");
        assert!(error.kind() == kind && error.to_string().contains(text), "{error}");
    }
    assert!(!is_extended(&env, "/db") && db.iter().expect("scans").next().is_none());
}

/// Has the properties of a table with LZ4 name other compressions.
fn name_codecs(table: &[u8], bits: u8) -> Vec<u8> {
    let mut bytes = table.to_vec();
    // The properties end with "never expired", the compressions, and "not compressed".
    let end = [&[255; 9][..], &[1, 1, 0]].concat();
    let end = bytes.windows(end.len()).rposition(|window| window == end).expect("properties") + 11;
    let is_begin = |begin: &usize| masked(&bytes[*begin..=end]) == bytes[end + 1..end + 5];
    let begin = (end - 100..end).find(is_begin).expect("a block");
    bytes[end - 1] = bits;
    let checksum = masked(&bytes[begin..=end]);
    bytes[end + 1..end + 5].copy_from_slice(&checksum);
    bytes
}

/// LevelDB would open such a database and fail where it comes to the table.
#[test]
fn a_table_with_lz4_in_a_plain_database_is_found_and_rewritten() {
    let env = Arc::new(MemEnv::new());
    let table_of = |directory: &str, compression| {
        let db = Db::open(directory, options(&env, compression)).expect("opens");
        fill(&db, 0..300);
        let number = db.files().first().expect("a table").number;
        db.close().expect("closes");
        format!("{directory}/{number:06}.ldb")
    };
    let (lz4, plain) = (table_of("/lz4", Compression::Lz4), table_of("/db", Compression::Snappy));
    env.write(&plain, env.read(&lz4).expect("reads"));
    let report = verify("/db", &options(&env, Compression::Snappy)).expect("checks");
    let text = "has lz4, which LevelDB does not read, and the MANIFEST does not say so";
    assert!(report.problems.iter().any(|problem| problem.message == text), "{report:?}");
    repair("/db", &options(&env, Compression::Snappy)).expect("repairs");
    assert!(!is_extended(&env, "/db"));
    let db = open(&env, Compression::Snappy);
    assert!(!db.stats().is_extended);
    check(&db, 300);
}

/// What cannot be read is no damage, so nothing may be dropped.
#[test]
fn a_compression_of_a_later_version_is_not_supported() {
    let env = Arc::new(MemEnv::new());
    let db = open(&env, Compression::Lz4);
    fill(&db, 0..300);
    db.close().expect("closes");
    let name = String::from_utf8(env.read(Path::new("/db/CURRENT")).expect("reads")).expect("text");
    let path = Path::new("/db").join(name.trim_end());
    let mut bytes = env.read(&path).expect("reads");
    let mut at = 0;
    while at + 7 < bytes.len() {
        let end = at + 7 + usize::from(u16::from_le_bytes([bytes[at + 4], bytes[at + 5]]));
        let tag = bytes[at..end].windows(3).position(|window| window == [0x83, 0xa8, 0x01]);
        if let Some(tag) = tag {
            assert_eq!(bytes[at + tag + 4], 1, "LZ4, behind a number of one byte");
            bytes[at + tag + 4] = 8;
            let checksum = masked(&bytes[at + 6..end]);
            bytes[at..at + 4].copy_from_slice(&checksum);
        }
        at = end;
    }
    env.write(&path, bytes);
    let settings = options(&env, Compression::Snappy);
    let errors = [
        Db::open("/db", settings.clone()).map(drop).expect_err("refused"),
        repair("/db", &settings).map(drop).expect_err("refused"),
        verify("/db", &settings).map(drop).expect_err("refused"),
    ];
    for error in errors {
        assert_eq!(error.kind(), ErrorKind::NotSupported, "{error}");
        assert!(error.to_string().contains("a compression of a later version"), "{error}");
    }
    // Nor where the MANIFEST is damaged before that, or lost, and a table's properties say so.
    let refused = |what: &str| {
        let before: Vec<_> = image(&env);
        let error = repair("/db", &settings).map(drop).expect_err(what);
        assert_eq!(error.kind(), ErrorKind::NotSupported, "{what}: {error}");
        assert!(image(&env) == before, "{what}");
    };
    let mut damaged = env.read(&path).expect("reads");
    damaged[8] ^= 1;
    env.write(&path, damaged);
    refused("a damaged MANIFEST");
    env.remove(&path).expect("removes");
    let mut names = env.list(Path::new("/db")).expect("lists");
    names.retain(|name| name.ends_with(".ldb"));
    let table = Path::new("/db").join(names.first().expect("a table"));
    env.write(&table, name_codecs(&env.read(&table).expect("reads"), 9));
    refused("no MANIFEST");
}

/// What a repair must leave as it is when it refuses: tables, logs and MANIFESTs.
fn image(env: &MemEnv) -> Vec<(String, Vec<u8>)> {
    let mut names = env.list(Path::new("/db")).expect("lists");
    names.retain(|name| !name.starts_with("LOG"));
    names.sort();
    let read = |name: String| {
        let bytes = env.read(Path::new("/db").join(&name)).unwrap_or_default();
        (name, bytes)
    };
    names.into_iter().map(read).collect()
}

/// Without a MANIFEST a repair merges all tables; with one it keeps those that are sound.
#[test]
fn a_repair_says_what_its_tables_are() {
    for (without_manifest, compression) in
        [(true, Compression::Lz4), (true, Compression::Snappy), (false, Compression::Snappy)]
    {
        let env = Arc::new(MemEnv::new());
        let db = open(&env, Compression::Lz4);
        fill(&db, 0..1000);
        fill(&db, 0..500);
        db.close().expect("closes");
        let names = env.list(Path::new("/db")).expect("lists");
        let is_lost = |name: &String| match without_manifest {
            true => name.starts_with("MANIFEST") || name == "CURRENT",
            false => name.ends_with(".log"),
        };
        for name in names.iter().filter(|name| is_lost(name)) {
            env.remove(&Path::new("/db").join(name)).expect("removes");
        }
        repair("/db", &options(&env, compression)).expect("repairs");
        let case = (without_manifest, compression);
        let has_lz4 = !without_manifest || compression == Compression::Lz4;
        assert_eq!(is_extended(&env, "/db"), has_lz4, "{case:?}");
        let db = open(&env, Compression::Snappy);
        assert_eq!(db.stats().is_extended, has_lz4, "{case:?}");
        check(&db, 1000);
        rewrite(&db);
        db.close().expect("closes");
        assert!(!is_extended(&env, "/db"), "{case:?}");
    }
}

#[test]
fn zstd_is_refused_where_it_is_not_built_in() {
    let env = Arc::new(MemEnv::new());
    let settings = options(&env, Compression::Zstd);
    let opened = Db::open("/db", settings);
    assert_eq!(opened.is_ok(), codecs().contains(&Compression::Zstd));
    match opened {
        Ok(db) => {
            fill(&db, 0..100);
            check(&db, 100);
        }
        Err(error) => {
            assert!(error.kind() == ErrorKind::NotSupported, "{error}");
            assert!(error.to_string().contains("feature zstd"), "{error}");
            let written = TableWriter::create("/t.ldb", &options(&env, Compression::Zstd));
            assert!(written.is_err_and(|error| error.kind() == ErrorKind::NotSupported));
        }
    }
    // Where it is not the setting of any level, and where nothing is written, it does not matter.
    let env = Arc::new(MemEnv::new());
    let settings = options(&env, Compression::Zstd);
    let levels = settings.clone().compression_per_level(vec![Compression::Snappy]);
    let db = Db::open("/db", levels).expect("opens");
    fill(&db, 0..100);
    db.close().expect("closes");
    let db = Db::open("/db", settings.clone().read_only(true)).expect("opens");
    check(&db, 100);
    drop(db);
    assert!(verify("/db", &settings).expect("checks").is_clean());
}

/// What is written is read, however well it is compressed.
#[test]
fn a_value_of_nothing_but_zeros() {
    for codec in codecs() {
        let env = Arc::new(MemEnv::new());
        let db = open(&env, codec);
        let value = vec![0; 70 << 20];
        db.put("image", &value).expect("puts");
        db.put("other", "1").expect("puts");
        db.flush().expect("flushes");
        rewrite(&db);
        assert!(db.get("image").expect("reads").as_ref() == Some(&value), "{codec:?}");
        assert!(db.verify().expect("checks").is_clean());
    }
}

/// A table without its end, and with a damaged block: the blocks behind that are found.
#[test]
fn blocks_are_found_without_an_index() {
    for codec in codecs() {
        let env = Arc::new(MemEnv::new());
        let db = open(&env, codec);
        (0..5000).for_each(|number| db.put(key(number), value(number)).expect("puts"));
        rewrite(&db);
        db.close().expect("closes");
        let mut names = env.list(Path::new("/db")).expect("lists");
        names.retain(|name| name.ends_with(".ldb"));
        let path = Path::new("/db").join(names.first().expect("a table"));
        let mut bytes = env.read(&path).expect("reads");
        bytes.truncate(bytes.len() - 200);
        bytes[2000] ^= 1;
        env.write(&path, bytes);
        let report = repair("/db", &options(&env, Compression::Snappy)).expect("repairs");
        assert!(!report.problems.is_empty());
        let db = open(&env, Compression::Snappy);
        let left = db.iter().expect("scans").count();
        assert!((4700..5000).contains(&left), "{codec:?}: {left} of 5000 entries, in {names:?}");
    }
}
