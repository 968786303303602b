//! The shape of the public interface: short forms, reads of snapshots, bounds, errors of callers.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use terrace::{
    BulkLoad, CompactOptions, Comparator, Compression, Cursor, Db, Entries, Error, ErrorKind,
    MemEnv, Options, ReadOptions, Snapshot, Stats, TransactOptions, Transaction, WriteBatch,
    WriteOptions,
};
use terrace_testkit::watchdog::Watchdog;

fn open() -> Db {
    let options = Options::new().create_if_missing(true).env(Arc::new(MemEnv::new()));
    Db::open("/api.db", options).expect("opens")
}

fn text((key, value): (Vec<u8>, Vec<u8>)) -> String {
    format!("{}={}", String::from_utf8_lossy(&key), String::from_utf8_lossy(&value))
}

fn all(entries: Entries) -> Vec<String> {
    entries.map(|entry| text(entry.expect("reads"))).collect()
}

#[test]
fn handles_cross_threads() {
    fn is_send_and_sync<T: Send + Sync>() {}
    fn is_send<T: Send>() {}
    is_send_and_sync::<Db>();
    is_send_and_sync::<Snapshot>();
    is_send_and_sync::<Options>();
    is_send_and_sync::<ReadOptions>();
    is_send_and_sync::<WriteBatch>();
    is_send_and_sync::<Error>();
    is_send_and_sync::<Stats>();
    is_send::<Cursor>();
    is_send::<Entries>();
    is_send::<Transaction>();
    is_send::<BulkLoad>();
}

#[test]
fn the_first_and_the_last_entry() {
    let db = open();
    assert_eq!((db.first().expect("reads"), db.last().expect("reads")), (None, None));
    for key in ["b", "a", "c"] {
        db.put(key, "1").expect("puts");
    }
    db.delete("a").expect("deletes");
    assert_eq!(db.first().expect("reads").map(text).as_deref(), Some("b=1"));
    assert_eq!(db.last().expect("reads").map(text).as_deref(), Some("c=1"));
    db.sync().expect("syncs");
    db.close().expect("closes");
}

#[test]
fn a_snapshot_reads_by_itself_and_after_the_handle() {
    let db = open();
    db.put("a1", "1").expect("puts");
    db.put("b1", "1").expect("puts");
    let before = db.snapshot();
    db.put("a1", "2").expect("puts");
    db.put("a2", "2").expect("puts");
    assert_eq!(before.get("a1").expect("reads").as_deref(), Some(&b"1"[..]));
    assert!(!before.contains_key("a2").expect("reads"));
    let values = before.multi_get(&["b1", "a2"]).expect("reads");
    assert_eq!(values, [Some(b"1".to_vec()), None]);
    assert_eq!(all(before.iter().expect("reads")), ["a1=1", "b1=1"]);
    assert_eq!(all(before.range("a2"..).expect("reads")), ["b1=1"]);
    assert_eq!(all(before.prefix("a").expect("reads")), ["a1=1"]);
    let mut cursor = before.cursor().expect("reads");
    cursor.seek_to_last();
    assert_eq!(cursor.key(), b"b1");
    drop(cursor);
    db.close().expect("closes");
    let closed = before.get("a1").expect_err("closed");
    assert_eq!(closed.kind(), ErrorKind::Closed);
}

/// Every movement within every pair of bounds, against a map.
#[test]
fn bounds_hide_what_is_beyond_them() {
    let db = open();
    let keys: Vec<String> = (10..30).step_by(2).map(|number| number.to_string()).collect();
    for (at, key) in keys.iter().enumerate() {
        db.put(key, key).expect("puts");
        if at == 4 {
            db.flush().expect("flushes");
        }
    }
    let model: BTreeMap<String, ()> = keys.into_iter().map(|key| (key, ())).collect();
    let edges = || (9..32).map(|number| format!("{number:02}")).map(Some).chain([None]);
    for lower in edges() {
        for upper in edges() {
            let mut options = ReadOptions::new();
            if let Some(lower) = &lower {
                options = options.lower_bound(lower.as_bytes());
            }
            if let Some(upper) = &upper {
                options = options.upper_bound(upper.as_bytes());
            }
            let is_inside = |key: &String| {
                lower.as_ref().is_none_or(|lower| key >= lower)
                    && upper.as_ref().is_none_or(|upper| key < upper)
            };
            let inside: Vec<&String> = model.keys().filter(|key| is_inside(key)).collect();
            let mut cursor = db.cursor_with(&options).expect("reads");
            let shown = |cursor: &Cursor| {
                assert_eq!(cursor.valid(), cursor.entry().is_some());
                cursor.valid().then(|| String::from_utf8_lossy(cursor.key()).into_owned())
            };
            cursor.seek_to_first();
            for key in &inside {
                assert_eq!(shown(&cursor).as_ref(), Some(*key), "{options:?}");
                cursor.next();
            }
            assert_eq!(shown(&cursor), None, "{options:?}");
            cursor.next();
            assert_eq!((shown(&cursor), cursor.key()), (None, &b""[..]));
            cursor.seek_to_last();
            for key in inside.iter().rev() {
                assert_eq!(shown(&cursor).as_ref(), Some(*key), "{options:?}");
                cursor.prev();
            }
            assert_eq!(shown(&cursor), None, "{options:?}");
            for target in 9..32 {
                let target = format!("{target:02}");
                cursor.seek(&target);
                let expected = inside.iter().find(|key| ***key >= target).copied();
                assert_eq!(shown(&cursor).as_ref(), expected, "{options:?} {target}");
                cursor.seek_for_prev(&target);
                let expected = inside.iter().rfind(|key| ***key <= target).copied();
                assert_eq!(shown(&cursor).as_ref(), expected, "{options:?} {target}");
            }
            let forward = db.iter_with(&options).expect("reads").count();
            let backward = db.range_with("14"..="20", &options).expect("reads").rev().count();
            let narrow = inside.iter().filter(|key| ("14"..="20").contains(&key.as_str()));
            assert_eq!((forward, backward), (inside.len(), narrow.count()), "{options:?}");
        }
    }
}

/// An order in which keys of different bytes are equal.
struct IgnoringCase;

impl Comparator for IgnoringCase {
    fn name(&self) -> &str {
        "test.IgnoringCase"
    }

    fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        a.to_ascii_lowercase().cmp(&b.to_ascii_lowercase())
    }
}

/// Compares under a lock, as Python's interpreter does.
struct Locking(Arc<Mutex<()>>);

impl Comparator for Locking {
    fn name(&self) -> &str {
        "test.Locking"
    }

    fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        let _held = self.0.lock().expect("no panic");
        a.cmp(b)
    }
}

/// The program may hold the lock when it closes the database.
#[test]
fn an_open_leaves_nothing_behind_that_compares() {
    let _watchdog = Watchdog::new(Duration::from_secs(120), "a close under the comparator's lock");
    for round in 0..20 {
        let (lock, env) = (Arc::new(Mutex::new(())), Arc::new(MemEnv::new()));
        let open = || {
            let options = Options::new().create_if_missing(true).env(env.clone());
            Db::open("/db", options.comparator(Arc::new(Locking(lock.clone())))).unwrap()
        };
        let db = open();
        for number in 0..30_000_u32 {
            db.put(number.to_be_bytes(), "value").unwrap();
        }
        // Half of them would be compacted at once, to be rid of the deletions.
        for number in 0..30_000_u32 * (round % 2) {
            db.delete(number.to_be_bytes()).unwrap();
        }
        db.close().unwrap();
        let db = open();
        // By the open itself: another thread would not have done it in every round.
        assert_eq!(db.stats().immutable_memtables, 0, "round {round}");
        let held = lock.lock().unwrap();
        db.close().unwrap();
        drop(held);
    }
}

#[test]
fn bounds_go_by_the_comparator() {
    let options = Options::new().create_if_missing(true).env(Arc::new(MemEnv::new()));
    let db = Db::open("/order.db", options.comparator(Arc::new(IgnoringCase))).expect("opens");
    for key in ["a", "B", "c"] {
        db.put(key, "1").expect("puts");
    }
    let mut cursor = db.cursor_with(&ReadOptions::new().upper_bound("C")).expect("reads");
    cursor.seek_to_last();
    assert_eq!(cursor.key(), b"B");
    cursor.seek_for_prev("d");
    assert_eq!(cursor.key(), b"B");
    drop(cursor);
    let inside = ReadOptions::new().lower_bound("b").upper_bound("C");
    assert_eq!(all(db.iter_with(&inside).expect("reads")), ["B=1"]);
}

#[test]
fn entries_are_lent_from_both_ends() {
    let db = open();
    for key in ["a", "b", "c"] {
        db.put(key, key).expect("puts");
    }
    let mut entries = db.iter().expect("reads");
    assert_eq!(entries.next_ref().expect("reads"), Some((&b"a"[..], &b"a"[..])));
    assert_eq!(entries.next_back_ref().expect("reads"), Some((&b"c"[..], &b"c"[..])));
    assert_eq!(entries.next().expect("one").map(text).expect("reads"), "b=b");
    assert_eq!(entries.next_ref().expect("reads"), None);
    assert_eq!(entries.next_back_ref().expect("reads"), None);
}

/// An error of an application.
#[derive(Debug)]
enum Trouble {
    Store(Error),
    OutOfStock,
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

impl From<Error> for Trouble {
    fn from(error: Error) -> Self {
        Trouble::Store(error)
    }
}

#[test]
fn transactions_end_with_errors_of_the_caller_and_retry_as_often_as_they_may() {
    let db = open();
    let refused: Result<(), Trouble> = db.transact(|transaction| {
        transaction.put("apples", "0");
        match transaction.get("pears")? {
            Some(_) => Ok(()),
            None => Err(Trouble::OutOfStock),
        }
    });
    assert!(matches!(refused, Err(Trouble::OutOfStock)));
    assert_eq!(db.get("apples").expect("reads"), None);

    for limit in [0, 3] {
        let mut runs = 0;
        let options = TransactOptions::new().retry_limit(limit).write_options(WriteOptions::sync());
        let conflict = db.transact_with(options, |transaction| -> Result<(), Trouble> {
            runs += 1;
            transaction.put("apples", "1");
            db.put("apples", "others")?;
            Ok(())
        });
        let Err(Trouble::Store(error)) = conflict else { panic!("{conflict:?}") };
        assert_eq!((error.kind(), runs), (ErrorKind::Conflict, limit + 1));
    }
}

#[test]
fn errors_are_told_once_and_become_those_of_io() {
    let missing = Db::open("/nowhere/at/all", Options::new()).expect_err("no database");
    assert!(std::error::Error::source(&missing).is_none());
    let kind = |error: Error| std::io::Error::from(error).kind();
    assert_eq!(kind(missing), std::io::ErrorKind::InvalidInput);
    assert_eq!(kind(Error::corruption("x")), std::io::ErrorKind::InvalidData);
    let system = std::io::Error::from_raw_os_error(libc::ENOSPC);
    let full = Error::io("write", std::path::Path::new("x"), system);
    assert_eq!(kind(full), std::io::ErrorKind::StorageFull);
    let options = format!("{:?}", Options::new().read_only(true));
    assert!(options.contains("read_only: true") && options.contains("BytewiseComparator"));
}

/// Overwritten entries count until a compaction meets them, entries of other keys do not.
#[test]
fn space_amplification_tells_of_what_is_obsolete() {
    let options = Options::new().create_if_missing(true).env(Arc::new(MemEnv::new()));
    let db = Db::open("/db", options.compression(Compression::None)).expect("creates");
    let write = |first: u32| {
        for key in first..first + 1_000 {
            db.put(key.to_be_bytes(), [7; 100]).expect("puts");
        }
        db.flush().expect("flushes");
        let stats = db.stats();
        let bytes = stats.levels.iter().map(|level| level.bytes).sum::<u64>();
        assert_eq!(stats.space_amplification, bytes as f64 / stats.live_bytes as f64);
        stats
    };
    assert_eq!(db.stats().space_amplification, 1.0, "of nothing");
    let one = write(0);
    assert_eq!(one.space_amplification, 1.0);
    let two = write(5_000);
    assert!(two.space_amplification == 1.0 && two.live_bytes > one.live_bytes * 19 / 10);
    let three = write(0);
    assert_eq!(three.live_bytes, two.live_bytes);
    assert!((1.45..1.55).contains(&three.space_amplification), "{three:?}");
    db.compact_range_with::<&[u8]>(.., CompactOptions::new().force(true)).expect("compacts");
    let compacted = db.stats();
    assert_eq!(compacted.space_amplification, 1.0);
    assert!(compacted.live_bytes.abs_diff(two.live_bytes) < two.live_bytes / 50);
}
