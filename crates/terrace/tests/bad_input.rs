//! Wrong arguments and damaged files: a clear error each or a right answer, nothing lost, no panic, no hang.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use terrace::{Db, Env, Error, ErrorKind, MemEnv, Options, PosixEnv, destroy, repair, verify};
use terrace_testkit::campaign::{campaign, panics};
use terrace_testkit::driver::{Driver, read_all, read_all_ways};
use terrace_testkit::history::History;
use terrace_testkit::model::{Change, ReverseComparator};
use terrace_testkit::option_set::OptionSet;
use terrace_testkit::rng::Rng;
use terrace_testkit::scale::scaled;
use terrace_testkit::script::{Action, Script};
use terrace_testkit::simfs::{LogKind, PowerLoss, SimFs};
use terrace_testkit::watchdog::Watchdog;

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
    expect_error(Db::open(&path, Options::new()), &[ErrorKind::InvalidArgument, ErrorKind::NotFound], &["none"]);
    expect_error(
        Db::open(&path, Options::new().read_only(true).create_if_missing(true)),
        &[ErrorKind::InvalidArgument, ErrorKind::NotFound],
        &["none"],
    );
    assert!(!path.exists());
    let db = Db::open(path.join("deeper"), Options::new().create_if_missing(true)).expect("parents are created");
    db.close().expect("close");
    expect_error(
        Db::open(path.join("deeper"), Options::new().error_if_exists(true)),
        &[ErrorKind::InvalidArgument],
        &["deeper"],
    );
}

#[test]
fn a_file_instead_of_a_directory_is_left_alone() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("file");
    fs::write(&path, "precious").expect("write");
    for options in [Options::new(), Options::new().create_if_missing(true), Options::new().read_only(true)] {
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
        (base().compression_per_level(vec![terrace::Compression::None; 8]), "compression_per_level"),
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
    // Zeros that nobody reads take no memory.
    let huge = vec![0u8; 1 << 32];
    let before = fs.operations();
    expect_error(db.put(&huge, "v"), &[ErrorKind::InvalidArgument], &[]);
    expect_error(db.put("k", &huge), &[ErrorKind::InvalidArgument], &[]);
    expect_error(db.delete(&huge), &[ErrorKind::InvalidArgument], &[]);
    assert_eq!(fs.operations(), before);
    db.put("b", "2").expect("the database goes on");
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
    for bad in ["", "\n", manifest.as_str(), "MANIFEST-\n", "MANIFEST-x\n", "MANIFEST-999999\n", "000001.log\n", &evil]
    {
        fs.set_contents(current, bad.as_bytes());
        expect_error(Db::open("/db", options()), &[ErrorKind::Corruption], &["CURRENT"]);
        assert_eq!(own(), names, "after CURRENT = {bad:?}");
    }
    fs.set_contents(current, &good);
    let db = Db::open("/db", options()).expect("open");
    assert_eq!(db.get("a").expect("get").as_deref(), Some(&b"1"[..]));
}

/// A database with every kind of file: two tables, a log with synced and unsynced writes, a MANIFEST of several edits.
fn specimen(settings: &OptionSet) -> (SimFs, History) {
    let put = |n: usize, size| Change::Put(format!("key{:03}", n % 50).into_bytes(), Rng::new(n as u64).bytes(size));
    let mut actions: Vec<Action> = (0..60).map(|n| Action::Write(vec![put(n, 150)], false)).collect();
    actions.push(Action::Flush);
    actions.extend((30..70).map(|n| Action::Write(vec![put(n, 150), Change::Delete(vec![b'd', n as u8])], false)));
    actions.push(Action::Flush);
    actions.push(Action::WaitIdle);
    actions.extend((100..130).map(|n| Action::Write(vec![put(n, 80)], n % 4 == 0)));
    let fs = SimFs::new();
    fs.set_log_kind(if settings.mapped_log { LogKind::Prepared } else { LogKind::Plain });
    let mut driver = Driver::new(&fs, Path::new("/db"), settings, History::new());
    driver.play(&Script { name: "specimen".to_owned(), actions }).expect("a healthy file system");
    // The disk as the death of the process leaves it: the log is not closed.
    (fs.power_loss(PowerLoss::PROCESS_ONLY), driver.finish().expect("close"))
}

#[test]
fn a_missing_file_is_an_error_that_names_it_and_never_a_fresh_database() {
    let (fs, _) = specimen(&OptionSet::default());
    let dir = Path::new("/db");
    for name in fs.names(dir).iter().filter(|name| *name != "LOCK" && !name.starts_with("LOG")) {
        let fs = fs.power_loss(PowerLoss::PROCESS_ONLY);
        fs.env().remove(&dir.join(name)).expect("remove");
        let open = Db::open(dir, OptionSet::default().options(fs.env()));
        expect_error(open, &[ErrorKind::Corruption], &[name]);
    }
    // Nothing but a table tells that there was a database.
    let fs = SimFs::new();
    let options = || OptionSet::default().options(fs.env());
    let db = Db::open(dir, options()).expect("open");
    db.put("a", "1").expect("put");
    db.flush().expect("flush");
    db.close().expect("close");
    for name in fs.names(dir).iter().filter(|name| !name.ends_with(".ldb")) {
        fs.env().remove(&dir.join(name)).expect("remove");
    }
    expect_error(Db::open(dir, options()), &[ErrorKind::Corruption], &["CURRENT"]);
}

#[test]
fn a_flipped_bit_in_a_manifest_is_an_error() {
    let settings = OptionSet::default();
    let (pristine, _) = specimen(&settings);
    let dir = Path::new("/db");
    let name = pristine.names(dir).into_iter().find(|name| name.starts_with("MANIFEST")).expect("a MANIFEST");
    let path = dir.join(&name);
    let bytes = pristine.contents(&path).expect("a file");
    // The second half holds the last record, which may be torn.
    for bit in 0..bytes.len() / 2 * 8 {
        let fs = pristine.power_loss(PowerLoss::PROCESS_ONLY);
        let mut new = bytes.clone();
        new[bit / 8] ^= 1 << (bit % 8);
        fs.set_contents(&path, &new);
        expect_error(Db::open(dir, settings.options(fs.env())), &[ErrorKind::Corruption], &[&name]);
    }
}

/// What is done to a file.
struct Damage {
    what: String,
    /// Whether whole records may be gone, with the marks behind them that would tell.
    large: bool,
    /// The file's new bytes; none if it is gone.
    bytes: Option<Vec<u8>>,
    /// Whether its bytes are there under another number.
    renamed: bool,
}

fn damaged(bytes: &[u8], rng: &mut Rng) -> Damage {
    const SECTOR: usize = 512;
    let mut new = bytes.to_vec();
    let at = rng.below(bytes.len());
    let sector = at / SECTOR * SECTOR;
    let (what, large) = match rng.below(22) {
        0..12 => {
            let bit = rng.below(8);
            if let Some(byte) = new.get_mut(at) {
                *byte ^= 1 << bit;
            }
            (format!("bit {bit} of byte {at} flipped"), false)
        }
        12..16 => {
            new.truncate(at);
            (format!("cut off at {at}"), true)
        }
        16 => {
            let other = rng.below(bytes.len()) / SECTOR * SECTOR;
            let len = (bytes.len() - other.max(sector)).min(SECTOR);
            new[sector..sector + len].copy_from_slice(&bytes[other..other + len]);
            (format!("sector at {other} copied to {sector}"), true)
        }
        17 => {
            let len = (bytes.len() - sector).min(SECTOR);
            new[sector..sector + len].fill(0);
            (format!("sector at {sector} zeroed"), true)
        }
        18 => {
            let extra = rng.between(1, 600);
            new.extend(rng.bytes(extra));
            (format!("{extra} bytes appended"), false)
        }
        19 => {
            let other = rng.below(bytes.len()) / SECTOR * SECTOR;
            let len = (bytes.len() - other.max(sector)).min(SECTOR);
            for offset in 0..len {
                new.swap(sector + offset, other + offset);
            }
            if new != bytes {
                (format!("sectors at {sector} and {other} swapped"), true)
            } else {
                new.truncate(at);
                (format!("cut off at {at}"), true)
            }
        }
        20 => return Damage { what: "renamed".to_owned(), large: true, bytes: None, renamed: true },
        _ => return Damage { what: "removed".to_owned(), large: true, bytes: None, renamed: false },
    };
    Damage { what, large, bytes: Some(new), renamed: false }
}

#[test]
fn damage_in_any_file_is_an_error_that_names_it_or_harmless() {
    let watchdog = Watchdog::new(Duration::from_secs(60), "damage");
    let specimens = [false, true].map(|mapped_log| {
        let settings = OptionSet { mapped_log, bloom_bits: 10, ..OptionSet::default() };
        let (fs, history) = specimen(&settings);
        (settings, fs, history)
    });
    let dir = Path::new("/db");
    let before = panics();
    let (mut errors, mut harmless, mut cut) = (0u64, 0u64, 0u64);
    campaign("damage_in_any_file", scaled(15_000), |seed| {
        let mut rng = Rng::new(seed);
        let (settings, pristine, history) = rng.pick(&specimens);
        let names = pristine.names(dir);
        for kind in [".log", ".ldb", "MANIFEST", "CURRENT", "LOCK"] {
            assert!(names.iter().any(|name| name.contains(kind)), "{kind} in {names:?}");
        }
        let expected = history.state(history.writes().len()).entries();
        let durable = history.required(usize::MAX);
        let fs = pristine.power_loss(PowerLoss::PROCESS_ONLY);
        let name = rng.pick(&names).clone();
        let path = dir.join(&name);
        let bytes = fs.contents(&path).expect("a file");
        let damage = damaged(&bytes, &mut rng);
        match &damage.bytes {
            Some(new) => fs.set_contents(&path, new),
            None => fs.env().remove(&path).map_err(|error| error.to_string())?,
        }
        if damage.renamed {
            let number: String = name.chars().filter(char::is_ascii_digit).collect();
            let renamed = if number.is_empty() { "000123.old".to_owned() } else { name.replace(&number, "000123") };
            fs.set_contents(&dir.join(renamed), &bytes);
        }
        watchdog.feed(format!("damage: seed {seed}, {} in {name}", damage.what));
        let fail = |what: String| Err(format!("{name} of {} bytes, {}: {what}", bytes.len(), damage.what));
        let options = || settings.options(fs.env());
        let scratch = fs.power_loss(PowerLoss::PROCESS_ONLY);
        let on_scratch = || settings.options(scratch.env());
        match verify(dir, &on_scratch()) {
            Ok(_) => {}
            Err(error) if names_a_file(&error) => {}
            Err(error) => return fail(format!("verify: the error names no file: {error}")),
        }
        match repair(dir, &on_scratch()) {
            Ok(_) => {
                let db =
                    Db::open(dir, on_scratch()).map_err(|error| format!("{}: after repair: {error}", damage.what))?;
                read_all_ways(&db).map_err(|error| format!("{}: after repair: {error}", damage.what))?;
            }
            Err(error) if names_a_file(&error) => {}
            Err(error) => return fail(format!("repair: the error names no file: {error}")),
        }
        let db = match Db::open(dir, options()) {
            Ok(db) => db,
            Err(error) if names_a_file(&error) => {
                errors += 1;
                return Ok(());
            }
            Err(error) => return fail(format!("the error names no file: {error}")),
        };
        // Keys one by one: each right, or an error.
        let mut refused = 0;
        for (key, value) in &expected {
            match db.get(key) {
                Ok(found) if found.as_ref() == Some(value) => {}
                Ok(_) if name.ends_with(".log") || name.starts_with("MANIFEST") => {}
                Ok(found) => return fail(format!("get {key:?} is wrong: {:?}", found.map(|v| v.len()))),
                Err(error) if names_a_file(&error) => refused += 1,
                Err(error) => return fail(format!("get names no file: {error}")),
            }
        }
        match read_all_ways(&db) {
            Ok(found) if found == expected => harmless += 1,
            Ok(found) => {
                // Where an end with its marks is gone, a log or MANIFEST may look like that of an older database, but
                // never like that of one that never was. And no single bit makes durable data go unnoticed.
                let required = if damage.large { 0 } else { durable };
                if let Err(error) = history.check(&found, required, history.writes().len()) {
                    return fail(error);
                }
                if !name.ends_with(".log") && !name.starts_with("MANIFEST") {
                    return fail("a wrong answer without an error".to_owned());
                }
                cut += 1;
            }
            Err(error) if names_a_file(&Error::corruption(error.as_str())) => errors += 1,
            Err(error) => return fail(format!("names no file ({refused} keys refused): {error}")),
        }
        let _ = db.compact_range(None, None);
        let _ = db.close();
        Ok(())
    });
    assert_eq!(panics(), before);
    println!("damage_in_any_file: {errors} errors, {harmless} harmless, {cut} cut to a prefix");
}

/// Whether a message names a file of the database, there or not.
fn names_a_file(error: &Error) -> bool {
    let text = error.to_string();
    ["CURRENT", "LOCK", "MANIFEST-", ".log", ".ldb"].iter().any(|part| text.contains(part))
}
