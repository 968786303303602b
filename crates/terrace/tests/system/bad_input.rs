//! Wrong arguments and unsafe names: a clear error each, nothing lost, no panic, no hang.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use terrace::{
    Db, Env, Error, ErrorKind, MemEnv, Options, PosixEnv, WriteBatch, WriteOptions, abi, destroy,
    repair, verify,
};
use terrace_testkit::driver::read_all;
use terrace_testkit::model::ReverseComparator;
use terrace_testkit::simfs::SimFs;

#[track_caller]
fn expect_error<T>(outcome: terrace::Result<T>, kinds: &[ErrorKind], words: &[&str]) -> Error {
    let error = outcome.err().expect("an error");
    assert!(kinds.contains(&error.kind()), "kind of: {error}");
    for word in words {
        assert!(error.to_string().contains(word), "{word:?} in: {error}");
    }
    error
}

#[test]
fn a_missing_directory_is_named_and_not_created() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("none");
    expect_error(
        Db::open(&path, Options::new()),
        &[ErrorKind::InvalidArgument, ErrorKind::NotFound],
        &["none"],
    );
    expect_error(
        Db::open(&path, Options::new().read_only(true).create_if_missing(true)),
        &[ErrorKind::InvalidArgument, ErrorKind::NotFound],
        &["none"],
    );
    assert!(!path.exists());
    let db = Db::open(path.join("deeper"), Options::new().create_if_missing(true))
        .expect("parents are created");
    db.close().expect("close");
    expect_error(
        Db::open(path.join("deeper"), Options::new().error_if_exists(true)),
        &[ErrorKind::InvalidArgument],
        &["deeper"],
    );
}

#[test]
fn an_empty_path_is_not_the_working_directory() {
    for options in [Options::new().create_if_missing(true), Options::new().read_only(true)] {
        expect_error(Db::open("", options), &[ErrorKind::InvalidArgument], &["empty"]);
    }
    assert!(!Path::new("CURRENT").exists());
    let options = Options::new();
    expect_error(destroy("", &options), &[ErrorKind::InvalidArgument], &["empty"]);
    expect_error(repair("", &options), &[ErrorKind::InvalidArgument], &["empty"]);
}

#[test]
fn a_file_instead_of_a_directory_is_left_alone() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("file");
    fs::write(&path, "precious").expect("write");
    for options in
        [Options::new(), Options::new().create_if_missing(true), Options::new().read_only(true)]
    {
        expect_error(
            Db::open(&path, options),
            &[ErrorKind::Io, ErrorKind::InvalidArgument, ErrorKind::NotFound],
            &["file"],
        );
        let _ = repair(&path, &Options::new());
        let _ = destroy(&path, &Options::new());
    }
    assert_eq!(fs::read(&path).expect("read"), b"precious");
}

#[test]
fn a_foreign_comparator_is_refused_by_name() {
    let env: Arc<dyn Env> = Arc::new(MemEnv::new());
    let options = || Options::new().env(env.clone()).create_if_missing(true);
    let db = Db::open("/db", options()).expect("open");
    db.put("a", "1").expect("put");
    db.close().expect("close");
    for read_only in [false, true] {
        let foreign = options().comparator(Arc::new(ReverseComparator)).read_only(read_only);
        let names = ["terrace.test.ReverseBytewise", "leveldb.BytewiseComparator"];
        expect_error(Db::open("/db", foreign), &[ErrorKind::InvalidArgument], &names);
    }
    let db = Db::open("/db", options()).expect("open");
    assert_eq!(db.get("a").expect("get").as_deref(), Some(&b"1"[..]));
}

#[test]
fn a_second_opening_in_the_same_process_is_busy_again_and_again() {
    let dir = tempfile::tempdir().expect("a directory");
    for env in [PosixEnv::shared(), Arc::new(MemEnv::new()) as Arc<dyn Env>, SimFs::new().env()] {
        let path = dir.path().join("db");
        let options = || Options::new().env(env.clone()).create_if_missing(true);
        let db = Db::open(&path, options()).expect("open");
        db.put("a", "1").expect("put");
        for _ in 0..3 {
            expect_error(Db::open(&path, options()), &[ErrorKind::Busy], &["LOCK"]);
        }
        expect_error(repair(&path, &options()), &[ErrorKind::Busy], &["LOCK"]);
        expect_error(destroy(&path, &options()), &[ErrorKind::Busy], &["LOCK"]);
        db.put("b", "2").expect("put");
        db.close().expect("close");
        let db = Db::open(&path, options()).expect("open");
        assert_eq!(read_all(&db).expect("read").len(), 2);
    }
}

#[test]
fn bad_options_are_named_with_their_range_before_anything_is_made() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("db");
    let base = || Options::new().create_if_missing(true);
    let bad = [
        (base().background_threads(0), "background_threads"),
        (base().background_threads(65), "background_threads"),
        (base().max_manifest_size(1), "max_manifest_size"),
        (base().max_manifest_size(u64::MAX), "max_manifest_size"),
        (base().file_mode(0o100), "file_mode"),
        (base().file_mode(0o7777), "file_mode"),
        (base().dir_mode(0), "dir_mode"),
        (
            base().compression_per_level(vec![terrace::Compression::None; 8]),
            "compression_per_level",
        ),
    ];
    for (options, name) in bad {
        expect_error(Db::open(&path, options), &[ErrorKind::InvalidArgument], &[name, " to "]);
        assert!(!path.exists());
    }
}

#[test]
fn inputs_of_four_gibibytes_are_refused_before_any_io() {
    let fs = SimFs::new();
    let db = Db::open("/db", Options::new().env(fs.env()).create_if_missing(true)).expect("open");
    db.put("a", "1").expect("put");
    db.wait_idle().expect("idle");
    // Zeros that are not read take no memory.
    let huge = vec![0u8; 1 << 32];
    let before = fs.operations();
    expect_error(db.put(&huge, "v"), &[ErrorKind::InvalidArgument], &[]);
    expect_error(db.put("k", &huge), &[ErrorKind::InvalidArgument], &[]);
    expect_error(db.delete(&huge), &[ErrorKind::InvalidArgument], &[]);
    // Batches hold these, but no table: the flush of them would fail for ever.
    for size in [4_286_578_680, (1 << 32) - (1 << 20), (1 << 32) - 65] {
        let large = &huge[..size - 1];
        expect_error(db.put("k", large), &[ErrorKind::InvalidArgument], &["8 MiB below 4 GiB"]);
        expect_error(db.put(large, "v"), &[ErrorKind::InvalidArgument], &["8 MiB below 4 GiB"]);
        expect_error(
            db.delete(&huge[..size]),
            &[ErrorKind::InvalidArgument],
            &["8 MiB below 4 GiB"],
        );
        let mut batch = WriteBatch::new();
        batch.put("k", large);
        assert!(batch.is_empty());
        expect_error(
            db.write_with(&batch, WriteOptions::new()),
            &[ErrorKind::InvalidArgument],
            &["8 MiB below 4 GiB"],
        );
        // As a foreign program may have put it together: header, kind, the key "\0", and the value.
        let mut foreign = vec![0u8; 12 + 3 + 5 + large.len()];
        (foreign[8], foreign[12], foreign[13]) = (1, 1, 1);
        for at in 0..5 {
            foreign[15 + at] =
                (large.len() >> (7 * at)) as u8 & 0x7f | if at < 4 { 0x80 } else { 0 };
        }
        let written = abi::write(&db, &foreign, WriteOptions::new());
        expect_error(written, &[ErrorKind::InvalidArgument], &["8 MiB below 4 GiB"]);
    }
    assert_eq!(fs.operations(), before);
    db.put("b", "2").expect("the database goes on");
    db.flush().expect("flush");
    assert_eq!(read_all(&db).expect("read").len(), 2);
}

#[test]
fn unsafe_names_in_current_are_refused() {
    let fs = SimFs::new();
    let options = || Options::new().env(fs.env()).create_if_missing(true);
    let db = Db::open("/db", options()).expect("open");
    db.put("a", "1").expect("put");
    db.close().expect("close");
    let current = Path::new("/db/CURRENT");
    let good = fs.contents(current).expect("CURRENT");
    let manifest = String::from_utf8_lossy(&good).trim().to_owned();
    let own = || -> Vec<String> {
        let names = fs.names(Path::new("/db")).into_iter();
        names.filter(|name| !name.starts_with("LOG")).collect()
    };
    let names = own();
    let evil = format!("../db/{manifest}\n");
    for bad in [
        "",
        "\n",
        manifest.as_str(),
        "MANIFEST-\n",
        "MANIFEST-x\n",
        "MANIFEST-999999\n",
        "000001.log\n",
        &evil,
    ] {
        fs.set_contents(current, bad.as_bytes());
        expect_error(Db::open("/db", options()), &[ErrorKind::Corruption], &["CURRENT"]);
        assert_eq!(own(), names, "after CURRENT = {bad:?}");
    }
    fs.set_contents(current, &good);
    let db = Db::open("/db", options()).expect("open");
    assert_eq!(db.get("a").expect("get").as_deref(), Some(&b"1"[..]));
}

/// Files with names of the database's own and numbers that it cannot have assigned do not
/// use its numbers up.
#[test]
fn files_with_impossible_numbers_are_strangers() {
    let fs = SimFs::new();
    let options = || Options::new().env(fs.env()).create_if_missing(true);
    Db::open("/db", options()).expect("creates").close().expect("closes");
    let strangers = [
        "9300000000000000000.ldb",
        "18446744073709551615.log",
        "4611686018427387904.dbtmp",
        "MANIFEST-9999999999999999",
        // The greatest number that there may be, and a user's note named after a day.
        "9223372036854775807.log",
        "20261121093000.log",
        // As many digits as no name is made with.
        "7.ldb",
        "999.log",
        "MANIFEST-2",
    ];
    let put_back = || {
        strangers
            .iter()
            .for_each(|name| fs.set_contents(&Path::new("/db").join(name), b"somebody's"))
    };
    put_back();
    for round in 0..3 {
        let report = verify("/db", &options()).expect("checks");
        assert!(report.is_clean(), "{report:?}");
        let report = repair("/db", &options()).expect("repairs");
        assert!(report.problems.is_empty() && report.moved.is_empty(), "{report:?}");
        let db = Db::open("/db", options()).expect("opens");
        db.put_with(format!("key{round}"), "1", WriteOptions::sync()).expect("puts");
        db.flush().expect("flushes");
        assert_eq!(read_all(&db).expect("reads").len(), round + 1);
        assert!(db.verify().expect("checks").is_clean());
        db.close().expect("closes");
    }
    // Where a MANIFEST does not tell which numbers there are, they are no table's and no log's
    // either.
    fs.set_contents(Path::new("/db/CURRENT"), b"nothing");
    let manifest =
        fs.names(Path::new("/db")).into_iter().find(|name| name.starts_with("MANIFEST-0"));
    fs.set_contents(&Path::new("/db").join(manifest.expect("a MANIFEST")), b"nothing");
    repair("/db", &options()).expect("repairs");
    let db = Db::open("/db", options()).expect("opens");
    assert_eq!(read_all(&db).expect("reads").len(), 3);
    db.close().expect("closes");
    assert!(
        strangers.iter().all(|name| fs.contents(&Path::new("/db").join(name)).is_some()),
        "somebody's files are gone"
    );
    fs.set_contents(Path::new("/db/CURRENT"), b"MANIFEST-18446744073709551615\n");
    expect_error(Db::open("/db", options()), &[ErrorKind::Corruption], &["CURRENT"]);
}
