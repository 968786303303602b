//! Children of a process whose other threads are in the middle of reads and transactions. Alone in
//! their file: a fork copies only one thread, and other tests' threads could hold locks that the
//! children need.
#![allow(unsafe_code)]

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError, mpsc};
use std::time::Duration;

use terrace::{
    BlockCache, Db, ErrorKind, Isolation, KeyspaceOptions, Options, PutOptions, ReadAccess,
    ReadOptions, TransactionOptions, abi,
};

const KEYS: usize = 4000;
const FORKS: usize = 200;

/// Held by each test, for the same reason.
static ALONE: Mutex<()> = Mutex::new(());

fn key(index: usize) -> String {
    format!("key{:06}", index % KEYS)
}

/// Read with `pread` through a cache that holds a hundredth, from twice as many tables as may hold a
/// descriptor: nearly every get evicts a block, and every second one closes a descriptor.
fn options() -> Options {
    Options::new()
        .create_if_missing(true)
        .read_access(ReadAccess::Pread)
        .max_open_files(74)
        .block_cache(Some(BlockCache::new(64 << 10)))
}

fn filled(dir: &Path) -> Db {
    let db = Db::open(dir, options()).unwrap();
    // Bytes that no compression shortens.
    let mut state = 1u64;
    for index in 0..KEYS {
        let mut value = vec![0; 2000];
        for byte in &mut value {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            *byte = (state >> 56) as u8;
        }
        db.put(key(index), value).unwrap();
        if index % 30 == 29 {
            db.flush().unwrap();
        }
    }
    db.flush().unwrap();
    db.wait_idle().unwrap();
    assert!(db.files().len() > 128, "{} tables", db.files().len());
    db
}

/// The memory of this process that is in use, in bytes.
fn resident() -> usize {
    let statm = fs::read_to_string("/proc/self/statm").unwrap();
    statm.split(' ').nth(1).unwrap().parse::<usize>().unwrap() * 4096
}

/// Runs `work` in a child, which is ended after a while should it wait for something that is not
/// there.
fn in_child(work: impl FnOnce() -> bool) -> i32 {
    // SAFETY: the child uses what the parent's other threads do not hold, which is what is tested
    // here.
    let child = unsafe { libc::fork() };
    assert!(child >= 0, "fork failed");
    if child == 0 {
        // SAFETY: a signal to this process, which ends it.
        unsafe { libc::alarm(60) };
        let code = if work() { 0 } else { 1 };
        // SAFETY: ends the child without running anything of the parent's.
        unsafe { libc::_exit(code) };
    }
    let mut status = 0;
    // SAFETY: `status` outlives the call.
    assert_eq!(unsafe { libc::waitpid(child, &mut status, 0) }, child);
    status
}

#[test]
fn children_read_values_that_expire() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let dir = tempfile::tempdir().unwrap();
    let db = Db::open(dir.path(), options()).unwrap();
    let sessions = db.create_keyspace("s", KeyspaceOptions::new().expiry(true)).unwrap();
    sessions.put_with("key", "v", PutOptions::new().ttl(Duration::from_secs(3600))).unwrap();
    let kept = db.snapshot();
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        // Clock and times of readers are locked most of the time, and the registry of keyspaces.
        for _ in 0..3 {
            scope.spawn(|| {
                while !done.load(Ordering::Relaxed) {
                    assert!(sessions.get("key").unwrap().is_some());
                    assert_eq!(sessions.iter().unwrap().count(), 1);
                    db.keyspace("s").unwrap();
                }
            });
        }
        let mut kept = Some(kept);
        let failure = (0..FORKS)
            .map(|_| {
                in_child(|| {
                    let again = db.keyspace("s").unwrap();
                    drop(kept.take());
                    again.get("key").unwrap().is_some()
                        && sessions.get("key").unwrap().is_some()
                        && sessions.iter().unwrap().count() == 1
                        && db.snapshot().get("!s!key").unwrap().is_some()
                })
            })
            .find(|status| *status != 0);
        done.store(true, Ordering::Relaxed);
        assert_eq!(failure, None, "the status of a child");
    });
}

/// A child does what its parent's compactions do: a table that was not open at the fork is removed.
/// That is no damage, neither to the child.
#[test]
fn a_table_that_the_parent_has_removed_is_not_damage() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let dir = tempfile::tempdir().unwrap();
    filled(dir.path()).close().unwrap();
    // Without threads in the background, which would open tables when they like.
    let db = Db::open(dir.path(), options().read_only(true)).unwrap();
    let status = in_child(|| {
        for entry in fs::read_dir(dir.path()).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_some_and(|extension| extension == "ldb") {
                fs::remove_file(path).unwrap();
            }
        }
        let error = db.get(key(1)).unwrap_err();
        error.kind() == ErrorKind::NotSupported && error.message().contains("fork")
    });
    assert_eq!(status, 0, "the status of the child");
    assert_eq!(db.get(key(1)).unwrap_err().kind(), ErrorKind::Corruption, "here they are missing");
}

#[test]
fn children_drop_the_transactions_that_they_inherit() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let dir = tempfile::tempdir().unwrap();
    let db = Db::open(dir.path(), options()).unwrap();
    let locking = TransactionOptions::new().locking(true);
    let serializable = TransactionOptions::new().isolation(Isolation::Serializable);
    let mut inherited = db.transaction_with(locking);
    inherited.get_for_update("inherited").unwrap();
    let mut inherited = Some((inherited, db.transaction_with(serializable)));
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        // Lock table and conflict set are locked most of the time.
        for thread in 0..3 {
            let (db, done) = (&db, &done);
            scope.spawn(move || {
                while !done.load(Ordering::Relaxed) {
                    let mut transaction = db.transaction_with(locking);
                    for index in 0..100 {
                        transaction.get_for_update(key(thread * 100 + index)).unwrap();
                    }
                    drop(transaction);
                    (0..100).for_each(|_| drop(db.transaction_with(serializable)));
                }
            });
        }
        let children = (0..FORKS).map(|_| {
            in_child(|| {
                drop(inherited.take());
                drop(db.transaction_with(serializable));
                true
            })
        });
        let failure = children.enumerate().find(|(_, status)| *status != 0);
        done.store(true, Ordering::Relaxed);
        assert_eq!(failure, None, "a child and its status");
    });
    drop(inherited);
}

#[test]
fn children_of_a_busy_process_read_and_free_what_they_evict() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let dir = tempfile::tempdir().unwrap();
    let db = filled(&dir.path().join("inherited"));
    filled(&dir.path().join("own")).close().unwrap();
    let done = AtomicBool::new(false);
    let (pinned, is_pinned) = mpsc::channel();
    let (unpin, may_unpin) = mpsc::channel::<()>();
    std::thread::scope(|scope| {
        // One that keeps a value for as long as all of this takes.
        let holder = &db;
        scope.spawn(move || {
            let hold = |_: &[u8]| {
                pinned.send(()).unwrap();
                let _ = may_unpin.recv();
            };
            abi::get_with(holder, key(7).as_bytes(), &ReadOptions::new(), hold)
                .unwrap()
                .expect("a key");
        });
        is_pinned.recv().unwrap();
        for thread in 1..4 {
            let (db, done) = (&db, &done);
            scope.spawn(move || {
                let mut index = thread;
                while !done.load(Ordering::Relaxed) {
                    index += 7919 * thread;
                    assert!(db.get(key(index)).unwrap().is_some());
                }
            });
        }
        // Statistics take the locks of the state and of the cache.
        let (asked, done_asking) = (&db, &done);
        scope.spawn(move || {
            while !done_asking.load(Ordering::Relaxed) {
                assert!(asked.stats().open_tables > 0);
            }
        });
        let mut failures = Vec::new();
        for fork in 0..FORKS {
            let status = in_child(|| {
                // Its own databases, too, with threads of their own beside the memory of those that
                // are not here.
                if fork % 8 == 0 {
                    let own = Db::open(dir.path().join("child"), options()).unwrap();
                    for value in 0..4 {
                        own.put("k", [value]).unwrap();
                        own.flush().unwrap();
                    }
                    own.wait_idle().unwrap();
                    own.close().unwrap();
                }
                db.stats();
                assert!(db.property("leveldb.stats").is_some());
                (0..50).all(|index| db.get(key(fork * 31 + index * 997)).unwrap().is_some())
            });
            if status != 0 {
                failures.push((fork, status));
                break;
            }
        }
        let freed = in_child(|| {
            let own = Db::open(dir.path().join("own"), options()).unwrap();
            let read = |range: std::ops::Range<usize>| {
                range.for_each(|index| assert!(own.get(key(index * 7919)).unwrap().is_some()));
            };
            read(0..1000);
            let before = resident();
            read(1000..40_000);
            let grown = resident().saturating_sub(before);
            if grown > 16 << 20 {
                eprintln!("grown by {grown} bytes");
            }
            grown <= 16 << 20
        });
        done.store(true, Ordering::Relaxed);
        drop(unpin);
        assert!(failures.is_empty(), "a child that reads: {failures:?}");
        assert_eq!(freed, 0, "a child that evicts");
    });
}

/// A fork copies descriptors before memory: where another thread recycles one in between, it is
/// another file in the child than its memory says.
#[cfg(target_os = "linux")]
#[test]
fn a_child_neither_reads_nor_closes_descriptors_that_its_parent_opened() {
    use std::os::fd::AsRawFd;

    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let dir = tempfile::tempdir().unwrap();
    let db = filled(dir.path());
    (0..KEYS).for_each(|index| assert!(db.get(key(index)).unwrap().is_some()));
    let mut db = Some(db);
    let status = in_child(|| {
        let descriptors = || fs::read_dir("/proc/self/fd").unwrap().map(|entry| entry.unwrap());
        let other = fs::File::open("/dev/null").unwrap();
        let mut recycled = Vec::new();
        for entry in descriptors() {
            let target = fs::read_link(entry.path()).unwrap_or_default();
            if target.extension().is_some_and(|extension| extension == "ldb") {
                let number = entry.file_name().to_str().unwrap().parse().unwrap();
                // SAFETY: both are open, and nothing else uses the second one, a table's.
                assert!(unsafe { libc::dup2(other.as_raw_fd(), number) } == number);
                recycled.push(number);
            }
        }
        let reads = (0..KEYS).all(|index| db.as_ref().unwrap().get(key(index)).unwrap().is_some());
        drop(db.take());
        // SAFETY: asks for flags only.
        let is_open = |number: &i32| unsafe { libc::fcntl(*number, libc::F_GETFD) } >= 0;
        reads && recycled.len() > 32 && recycled.iter().all(is_open)
    });
    assert_eq!(status, 0);
    assert!(db.unwrap().get(key(7)).unwrap().is_some());
}
