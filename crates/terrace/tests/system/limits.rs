//! Little space, few descriptors, no right to write: clear errors, nothing lost, no panic, and no
//! restart needed.

use std::env;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use terrace::{
    Db, ErrorKind, Event, EventListener, Options, PosixEnv, ReadAccess, WriteBatch, WriteOptions,
};
use terrace_testkit::campaign::campaign;
use terrace_testkit::driver::read_all;
use terrace_testkit::ops::{Generator, Shape};
use terrace_testkit::option_set::OptionSet;
use terrace_testkit::rng::Rng;
use terrace_testkit::runner::Runner;
use terrace_testkit::scale::scaled;
use terrace_testkit::simfs::{Fault, FaultPlan, LogKind, OpKind, SimFs};
use terrace_testkit::skip::skip;
use terrace_testkit::watchdog::Watchdog;

const DB: &str = "/data/db";

fn key(n: usize) -> String {
    format!("key{n:06}")
}

/// Writes until the database refuses. Returns how many puts were acknowledged.
fn fill(db: &Db, from: usize, sync: bool) -> usize {
    for n in from.. {
        let mut batch = WriteBatch::new();
        batch.put(key(n), vec![b'v'; 1000]);
        let options = if sync { WriteOptions::sync() } else { WriteOptions::new() };
        if let Err(error) = db.write_with(&batch, options) {
            assert!(error.is_out_of_space(), "the reason is told: {error}");
            return n;
        }
    }
    unreachable!("the disk never fills up")
}

fn assert_holds(db: &Db, acknowledged: usize) {
    for n in 0..acknowledged {
        assert!(db.get(key(n)).expect("reads go on").is_some(), "{} of {acknowledged}", key(n));
    }
}

#[test]
fn a_full_disk_refuses_writes_goes_on_reading_and_heals() {
    let _watchdog = Watchdog::new(Duration::from_secs(120), "full disk");
    campaign("a_full_disk_refuses_writes_goes_on_reading_and_heals", scaled(10), |seed| {
        let mut rng = Rng::new(seed);
        let (capacity, sync) =
            *rng.pick(&[(30_000, true), (300_000, false), (300_000, true), (1_000_000, false)]);
        let reuse_logs = rng.one_in(2);
        let fs = SimFs::new();
        fs.set_capacity(Some(capacity));
        let settings = OptionSet { reuse_logs, snappy: false, ..OptionSet::default() };
        let db = Db::open(DB, settings.options(fs.env())).expect("open");
        let acknowledged = fill(&db, 0, sync);
        assert!(acknowledged > 5, "{acknowledged}");
        assert_holds(&db, acknowledged);
        // Full it stays, whatever background work frees: refusing again and again, reading all the
        // same.
        fs.set_capacity(Some(0));
        for _ in 0..20 {
            assert!(db.put("more", vec![0; 100_000]).is_err());
        }
        assert_holds(&db, acknowledged);

        // Freed space is enough; no reopen is needed.
        fs.set_capacity(Some(capacity * 4));
        wait_until("writing again", || db.put("healed", "yes").is_ok());
        let more = fill(&db, acknowledged, sync);
        assert!(more > acknowledged + 5, "{more}");
        assert_holds(&db, more);
        let _ = db.close();

        // A full disk can be opened, for reading at least.
        fs.set_capacity(Some(0));
        let db = Db::open(DB, settings.options(fs.env()).read_only(true)).expect("open read-only");
        assert_holds(&db, more);
        assert_eq!(db.put("a", "b").expect_err("read-only").kind(), ErrorKind::NotSupported);
        db.close().expect("close");
        let db = Db::open(DB, settings.options(fs.env())).expect("a full disk opens");
        assert_holds(&db, more);
        assert!(db.put("more", "x").is_err());
        fs.set_capacity(None);
        wait_until("writing after opening full", || db.put("more", "x").is_ok());
        db.close().expect("close");

        let db = Db::open(DB, settings.options(fs.env())).expect("open");
        assert_holds(&db, more);
        assert_eq!(db.get("healed").expect("get").as_deref(), Some(&b"yes"[..]));
        assert_eq!(db.get("more").expect("get").as_deref(), Some(&b"x"[..]));
        Ok(())
    });
}

#[test]
fn a_full_disk_keeps_nothing_of_a_failed_write_and_collects_no_logs() {
    let _watchdog = Watchdog::new(Duration::from_secs(120), "full disk");
    for (mapped_log, sync) in [(false, false), (true, false), (false, true), (true, true)] {
        let fs = SimFs::new();
        fs.set_log_kind(if mapped_log { LogKind::Prepared } else { LogKind::Plain });
        let settings = OptionSet { snappy: false, mapped_log, ..OptionSet::default() };
        let open = || Db::open(DB, settings.options(fs.env())).expect("opens");
        let db = open();
        let acknowledged = 10;
        for n in 0..acknowledged {
            let options = if sync { WriteOptions::sync() } else { WriteOptions::new() };
            db.put_with(key(n), vec![b'v'; 1000], options).expect("puts");
        }
        let used = fs.used();
        fs.set_capacity(Some(used + 2_000_000));
        assert!(db.put("large", vec![b'v'; 5_000_000]).expect_err("no room").is_out_of_space());
        assert!(
            fs.used() <= used + 10_000,
            "{} bytes more than {used}",
            fs.used().saturating_sub(used)
        );
        // Now there is no room for anything, least of all for a MANIFEST.
        fs.set_capacity(Some(0));
        let _ = db.put("small", "");
        assert!(db.close().expect_err("what could not be flushed").is_out_of_space());
        let names = fs.names(Path::new(DB));
        for _ in 0..5 {
            let db = open();
            assert_holds(&db, acknowledged);
            let _ = db.close();
        }
        let logs = |names: &[String]| names.iter().filter(|name| name.ends_with(".log")).count();
        let after = fs.names(Path::new(DB));
        assert!(logs(&after) <= logs(&names).max(2), "{names:?}, then {after:?}");
        fs.set_capacity(None);
        let db = open();
        assert_holds(&db, acknowledged);
        assert_eq!(db.get("large").expect("gets"), None);
        db.put("healed", "").expect("puts");
        db.close().expect("closes");
    }
}

/// Polls until the condition holds; a watchdog ends the wait otherwise.
fn wait_until(what: &str, mut ready: impl FnMut() -> bool) {
    let _watchdog = Watchdog::new(Duration::from_secs(30), what);
    while !ready() {
        std::thread::yield_now();
    }
}

#[test]
fn a_database_that_may_not_be_written_opens_read_only_and_stays_as_it_is() {
    let fs = SimFs::new();
    let settings = OptionSet::default();
    let db = Db::open(DB, settings.options(fs.env())).expect("open");
    for n in 0..200 {
        db.put(key(n), vec![b'v'; 1000]).expect("put");
        if n == 100 {
            db.flush().expect("flush");
        }
    }
    db.close().expect("close");
    let image = |fs: &SimFs| -> Vec<_> {
        let dir = Path::new(DB);
        fs.names(dir).into_iter().map(|name| (fs.contents(&dir.join(&name)), name)).collect()
    };
    let before = image(&fs);
    let kinds = vec![
        OpKind::Create,
        OpKind::Append,
        OpKind::Rename,
        OpKind::Remove,
        OpKind::CreateDir,
        OpKind::SyncDir,
    ];
    fs.set_faults(Some(FaultPlan { kinds, ..FaultPlan::at(0, Fault::Access, true) }));
    let db = Db::open(DB, settings.options(fs.env()).read_only(true)).expect("open read-only");
    assert_eq!(read_all(&db).expect("read").len(), 200);
    assert_eq!(db.put("a", "b").expect_err("read-only").kind(), ErrorKind::NotSupported);
    assert_eq!(db.delete("a").expect_err("read-only").kind(), ErrorKind::NotSupported);
    let other = Db::open(DB, settings.options(fs.env()).read_only(true)).expect("a second reader");
    other.close().expect("close");
    db.close().expect("close");
    assert_eq!(fs.injected(), 0, "a read-only database tried to change something");
    match Db::open(DB, settings.options(fs.env())) {
        Err(error) => assert!(error.to_string().contains("denied"), "{error}"),
        Ok(db) => assert!(db.put("a", "b").is_err()),
    }
    assert!(image(&fs) == before, "nothing changed");
}

/// The part of a test that runs in a process of its own, under a limit.
fn child(role: &str) -> Option<PathBuf> {
    (env::var("TERRACE_LIMITS_CHILD").ok()? == role)
        .then(|| PathBuf::from(env::var("TERRACE_LIMITS_DB").expect("a path")))
}

fn in_child(test: &str, command: &mut Command, db: &Path) -> Option<bool> {
    command.env("TERRACE_LIMITS_CHILD", test).env("TERRACE_LIMITS_DB", db);
    match command.output() {
        Ok(output) => {
            let said = String::from_utf8_lossy(&output.stdout);
            println!("{said}{}", String::from_utf8_lossy(&output.stderr));
            // A name that no test has is no success.
            Some(output.status.success() && said.contains(" 1 passed"))
        }
        Err(error) => {
            skip("right", format_args!("{test}: {error}"));
            None
        }
    }
}

/// Mapped tables take no descriptors. Tables read by `pread` do: a compaction and a cursor may
/// together need more than there are, which is an error that says so and no more than that.
#[test]
fn sixteen_descriptors_are_enough() {
    const TEST: &str = "limits::sixteen_descriptors_are_enough";
    const TABLES: usize = 40;
    let options = |access| {
        let settings = OptionSet { seek_compaction: false, ..OptionSet::default() };
        settings.options(PosixEnv::shared()).read_access(access)
    };
    let whole = |db: &Db| {
        read_all(db).map(|entries| assert!(entries.len() >= TABLES * 10, "{}", entries.len()))
    };
    if let Some(path) = child(TEST) {
        for access in [ReadAccess::Mapped, ReadAccess::Pread] {
            let accept = |outcome: terrace::Result<()>| match outcome {
                Err(error) if access == ReadAccess::Pread => {
                    assert!(error.is_out_of_descriptors(), "{error}")
                }
                outcome => outcome.expect("descriptors to spare"),
            };
            let db = Db::open(&path, options(access)).expect("open");
            for round in 0..3 {
                accept(whole(&db));
                for n in 0..TABLES * 10 {
                    accept(db.get(key(n)).map(|found| assert!(found.is_some())));
                }
                accept(db.put(format!("new{round}"), "value"));
                accept(db.flush());
            }
            accept(db.compact_range::<&[u8]>(..));
            accept(whole(&db));
            accept(db.close());
        }
        return;
    }
    campaign(TEST, scaled(10), |_| {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("db");
        let db = Db::open(&path, options(ReadAccess::Mapped)).expect("open");
        for table in 0..TABLES {
            for n in 0..10 {
                db.put(key(n * TABLES + table), vec![b'v'; 300]).expect("put");
            }
            db.flush().expect("flush");
        }
        db.close().expect("close");
        let mut command = Command::new("sh");
        let program = env::current_exe().expect("this program");
        command
            .arg("-c")
            .arg(format!("ulimit -n 16 && exec \"$0\" --exact {TEST} --test-threads=1"))
            .arg(program);
        assert_eq!(in_child(TEST, &mut command, &path), Some(true));
        let db = Db::open(&path, options(ReadAccess::Mapped)).expect("open");
        whole(&db).expect("read");
        assert!(db.get("new2").expect("get").is_some());
        db.close().map_err(|error| error.to_string())
    });
}

/// Small memtables that wait to be flushed hold a log each, and the flush needs a descriptor, too.
#[test]
fn twelve_descriptors_are_enough_for_small_memtables() {
    const TEST: &str = "limits::twelve_descriptors_are_enough_for_small_memtables";
    const ENTRIES: usize = 20_000;
    if let Some(path) = child(TEST) {
        let options = Options::new().create_if_missing(true).write_buffer_size(64 << 10);
        let db = Db::open(&path, options).expect("open");
        for n in 0..ENTRIES {
            let number = n * 7919 % ENTRIES;
            let sync = if n % 1000 == 0 { WriteOptions::sync() } else { WriteOptions::new() };
            db.put_with(key(number), Rng::new(n as u64).bytes(200), sync).expect("put");
        }
        db.compact_range::<&[u8]>(..).expect("compact");
        assert_eq!(read_all(&db).expect("read").len(), ENTRIES);
        db.close().expect("close");
        return;
    }
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("db");
    let mut command = Command::new("sh");
    command
        .arg("-c")
        .arg(format!("ulimit -n 12 && exec \"$0\" --exact {TEST} --test-threads=1"))
        .arg(env::current_exe().expect("this program"));
    assert_eq!(in_child(TEST, &mut command, &path), Some(true));
    let db = Db::open(&path, Options::new()).expect("open");
    assert_eq!(read_all(&db).expect("read").len(), ENTRIES);
}

/// Where so much data is written, overwritten, read and compacted, in a process that may have 64
/// MiB. Of a thread's stack all counts, touched or not, so the process limits its stacks, too.
#[test]
fn sixty_four_mebibytes_are_enough() {
    const TEST: &str = "limits::sixty_four_mebibytes_are_enough";
    const ENTRIES: usize = 25_000;
    if let Some(path) = child(TEST) {
        let db = Db::open(&path, Options::new().create_if_missing(true)).expect("open");
        let value = |n: usize| Rng::new(n as u64).bytes(4_000);
        for n in 0..ENTRIES {
            db.put(key(n * 7919 % ENTRIES), value(n)).expect("put");
        }
        for n in (0..ENTRIES).step_by(9) {
            assert_eq!(db.get(key(n * 7919 % ENTRIES)).expect("get"), Some(value(n)));
        }
        db.compact_range::<&[u8]>(..).expect("compact");
        let read = db
            .iter()
            .expect("read")
            .try_fold(0, |count, entry| entry.map(|_| count + 1))
            .expect("read");
        assert_eq!(read, ENTRIES);
        db.close().expect("close");
        return;
    }
    campaign(TEST, scaled(10), |_| {
        let dir = tempfile::tempdir().expect("a directory");
        let mut command = Command::new("sh");
        let program = env::current_exe().expect("this program");
        command
            .arg("-c")
            .arg(format!(
                "ulimit -d 65536 && ulimit -s 2048 && exec \"$0\" --exact {TEST} --test-threads=1"
            ))
            .arg(program);
        assert_eq!(in_child(TEST, &mut command, &dir.path().join("db")), Some(true));
        Ok(())
    });
}

/// No decision depends on the wall clock: it may stand still, jump ahead by centuries and go back
/// to the beginning.
#[test]
fn the_clock_may_jump() {
    campaign("the_clock_may_jump", scaled(10), |seed| {
        let mut rng = Rng::new(seed);
        let fs = SimFs::new();
        let settings = OptionSet::random(&mut rng);
        let ops = Generator::new(rng.next_u64(), Shape::random(&mut rng)).ops(150);
        let mut runner = Runner::open(Path::new(DB), fs.env(), settings)?;
        for op in &ops {
            fs.set_wall_clock(Duration::from_secs(*rng.pick(&[
                0,
                1,
                1_000_000_000,
                u64::from(u32::MAX) * 1000,
            ])));
            runner.run(op).map_err(|error| format!("{op:?}: {error}"))?;
        }
        runner.check_all()?;
        runner.close()
    });
}

/// However often an open is tried: the owner of the database keeps it, in this process and in
/// others.
#[test]
fn there_is_one_writer() {
    const TEST: &str = "limits::there_is_one_writer";
    if let Some(path) = child(TEST) {
        for options in [Options::new(), Options::new().read_only(true)] {
            let error = Db::open(&path, options).expect_err("another process has it");
            assert_eq!(error.kind(), ErrorKind::Busy, "{error}");
        }
        return;
    }
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("db");
    campaign(TEST, scaled(10), |seed| {
        let db = Db::open(&path, Options::new().create_if_missing(true))
            .map_err(|error| error.to_string())?;
        let error = Db::open(&path, Options::new()).expect_err("this process has it");
        assert_eq!(error.kind(), ErrorKind::Busy, "{error}");
        let mut command = Command::new(env::current_exe().expect("this program"));
        command.args(["--exact", TEST, "--test-threads=1"]);
        assert_eq!(in_child(TEST, &mut command, &path), Some(true));
        db.put(seed.to_string(), "1").map_err(|error| error.to_string())?;
        db.close().map_err(|error| error.to_string())
    });
}

#[test]
fn a_cursor_reads_on_in_files_that_compactions_have_replaced() {
    const ENTRIES: usize = 5_000;
    let _watchdog = Watchdog::new(Duration::from_secs(120), "a cursor and compactions");
    let dir = tempfile::tempdir().expect("a directory");
    let settings = OptionSet { snappy: false, ..OptionSet::default() };
    let db = Db::open(dir.path().join("db"), settings.options(PosixEnv::shared())).expect("open");
    let fill = |value: u8| {
        for n in 0..ENTRIES {
            db.put(key(n), vec![value; 1000]).expect("a put");
        }
        db.compact_range::<&[u8]>(..).expect("a compaction of everything");
        // What it replaced is removed a moment after it returns.
        db.wait_idle().expect("rest");
    };
    fill(b'1');
    let tables = || -> Vec<PathBuf> {
        let files = fs::read_dir(dir.path().join("db"))
            .expect("the directory")
            .map(|file| file.expect("a file").path());
        files.filter(|path| path.extension().is_some_and(|extension| extension == "ldb")).collect()
    };
    let held = tables();
    let mut entries = db.iter().expect("a cursor");
    assert_eq!(entries.next().expect("an entry").expect("the first").0, key(0).as_bytes());
    fill(b'2');
    fill(b'3');
    // Closed meanwhile, as few descriptors may demand, they can be opened again.
    assert!(held.iter().all(|table| table.exists()), "a cursor's tables are gone");
    for n in 1..ENTRIES {
        let (found, value) = entries.next().expect("an entry").expect("what the cursor began with");
        assert_eq!((found, value), (key(n).into_bytes(), vec![b'1'; 1000]));
    }
    assert!(entries.next().is_none());
    // Nothing else removes them in a database at rest.
    drop(entries);
    db.wait_idle().expect("rest");
    assert!(
        held.iter().all(|table| !table.exists()),
        "tables that only the cursor kept are still there"
    );
}

#[test]
fn a_directory_without_write_permission_is_a_clear_error() {
    const TEST: &str = "limits::a_directory_without_write_permission_is_a_clear_error";
    if let Some(path) = child(TEST) {
        let db = Db::open(&path, Options::new().read_only(true)).expect("open read-only");
        assert_eq!(read_all(&db).expect("read").len(), 1);
        db.close().expect("close");
        match Db::open(&path, Options::new()) {
            Err(error) => assert!(error.to_string().contains("denied"), "{error}"),
            Ok(db) => assert!(db.put("a", "b").is_err()),
        }
        let error = Db::open(path.join("new"), Options::new().create_if_missing(true))
            .expect_err("may not be created");
        assert!(error.to_string().contains("denied"), "{error}");
        return;
    }
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("db");
    let db = Db::open(&path, Options::new().create_if_missing(true)).expect("open");
    db.put("a", "1").expect("put");
    db.close().expect("close");
    // A copy of this program, where a user without rights can reach it.
    let program = dir.path().join("program");
    fs::copy(env::current_exe().expect("this program"), &program).expect("copy");
    for path in [dir.path(), &path] {
        fs::set_permissions(path, fs::Permissions::from_mode(0o555)).expect("chmod");
    }
    let mut command = Command::new(&program);
    command.args(["--exact", TEST, "--test-threads=1"]);
    const NOBODY: u32 = 65534;
    if fs::metadata("/proc/self").is_ok_and(|proc| std::os::unix::fs::MetadataExt::uid(&proc) == 0)
    {
        command.uid(NOBODY).gid(NOBODY);
    }
    if let Some(success) = in_child(TEST, &mut command, &path) {
        assert!(success);
    }
    for path in [dir.path(), &path] {
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).expect("chmod");
    }
}

/// Looks at the database when it is told of an error, and when that is over.
#[derive(Default)]
struct Looks {
    db: Mutex<Option<Db>>,
    seen: Mutex<Vec<(bool, u64)>>,
}

impl EventListener for Looks {
    fn on_event(&self, event: &Event) {
        let is_error = matches!(event, Event::BackgroundError { .. });
        if let (true, Some(db)) = (
            is_error || matches!(event, Event::BackgroundErrorCleared),
            &*self.db.lock().expect("no panic"),
        ) {
            self.seen.lock().expect("no panic").push((is_error, db.stats().sequence));
        }
    }
}

#[test]
fn a_listener_may_look_at_the_database_that_tells_it_of_an_error() {
    let _watchdog = Watchdog::new(Duration::from_secs(120), "a listener that looks");
    let (fs, listener) = (SimFs::new(), Arc::new(Looks::default()));
    let options =
        Options::new().create_if_missing(true).env(fs.env()).listener(Some(listener.clone()));
    let db = Db::open("/db", options).expect("opens");
    *listener.db.lock().expect("no panic") = Some(db.clone());
    db.put("key", "value").expect("puts");
    let kinds = vec![OpKind::Sync];
    fs.set_faults(Some(FaultPlan {
        kinds,
        suffix: ".ldb".into(),
        ..FaultPlan::at(0, Fault::Io, false)
    }));
    db.flush().expect_err("the table cannot be synced");
    fs.set_faults(None);
    db.put("key", "later").expect("puts");
    db.flush().expect("flushes, this time");
    listener.db.lock().expect("no panic").take();
    db.close().expect("closes");
    let seen = listener.seen.lock().expect("no panic").clone();
    // The second put has the flush tried again, which may be over before the put is.
    assert!(
        matches!(seen[..], [(true, 1), (false, 1 | 2)]),
        "each before whoever waits for it: {seen:?}"
    );
}
