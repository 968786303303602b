//! A child of a fork and the databases it got from its parent. Alone in its file: a fork copies
//! only one thread, and other tests' threads could hold locks that the child needs.
#![allow(unsafe_code)]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use terrace::{Db, ErrorKind, Options};

/// Every file with its bytes, but for zeros at the end: a log has such ahead of its next record, as
/// many as are ready. LOCK is left out: a process that closes it gives a POSIX lock up.
fn image(dir: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let contents = |path: &PathBuf| {
        let mut bytes = fs::read(path).unwrap();
        bytes.truncate(bytes.iter().rposition(|&byte| byte != 0).map_or(0, |last| last + 1));
        bytes
    };
    let paths = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    let paths = paths.filter(|path| !path.ends_with("LOCK"));
    paths.map(|path| (path.clone(), contents(&path))).collect()
}

#[test]
fn an_inherited_database_is_read_not_written_and_dropped_without_a_trace() {
    let dir = tempfile::tempdir().unwrap();
    let (ours, theirs) = (dir.path().join("ours"), dir.path().join("theirs"));
    let options = || Options::new().create_if_missing(true).prepared_transactions(true);
    let db = Db::open(&ours, options()).unwrap();
    // Two runs, which many reads and no writes would have compacted.
    for value in ["0", "1"] {
        db.put("table", value).unwrap();
        db.flush().unwrap();
    }
    db.wait_idle().unwrap();
    db.put("log", "2").unwrap();
    let mut transaction = db.transaction();
    transaction.put("held", "5");
    transaction.prepare("pay").unwrap();
    let files = db.files();
    let levels = files.iter().map(|file| file.level).collect::<std::collections::BTreeSet<_>>();
    assert!(levels.len() > 1 || files.len() > 1, "{files:?}");
    let before = image(&ours);

    let mut db = Some(db);
    // SAFETY: the only other threads are the pool's, which wait in the kernel, so no lock is held
    // that the child could need; it ends by `_exit`.
    let child = unsafe { libc::fork() };
    assert!(child >= 0, "fork failed");
    if child == 0 {
        // Should it wait for a lock that no thread here holds. SAFETY: a signal to this process,
        // which ends it.
        unsafe { libc::alarm(100) };
        let steps = || {
            let db = db.take()?;
            let reads = db.get("table").ok()?? == b"1" && db.get("log").ok()?? == b"2";
            let mut cursor = db.cursor().ok()?;
            for _ in 0..20_000 {
                db.get("table").ok()??;
                cursor.seek("table");
                cursor.valid().then_some(())?;
            }
            drop(cursor);
            // Work that is due is counted at once.
            let rests = db.stats().running_compactions == 0 && db.files() == files;
            let refused = |error: terrace::Error| error.kind() == ErrorKind::NotSupported;
            let writes = db.put("child", "3").is_err_and(refused) && db.flush().is_err_and(refused);
            let decides =
                [db.commit_prepared("pay"), db.rollback_prepared("pay"), db.put("held", "3")];
            let writes = writes && decides.into_iter().all(|decided| decided.is_err_and(refused));
            let writes = writes && db.prepared_transactions().is_err_and(refused);
            // Its own databases work, background threads included, and change nothing about that.
            let own = Db::open(&theirs, options()).ok()?;
            own.put("k", "v").ok()?;
            own.flush().ok()?;
            own.close().ok()?;
            let busy =
                Db::open(&ours, options()).is_err_and(|error| error.kind() == ErrorKind::Busy);
            let still = db.put("child", "3").is_err_and(refused);
            drop(db);
            (reads && rests && writes && busy && still).then_some(())
        };
        let mut steps = steps;
        let code = if steps().is_some() { 0 } else { 1 };
        // SAFETY: ends the child without running anything of the parent's.
        unsafe { libc::_exit(code) };
    }
    let mut status = 0;
    // SAFETY: `status` outlives the call.
    assert_eq!(unsafe { libc::waitpid(child, &mut status, 0) }, child);
    assert!(libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 0, "status {status:#x}");

    assert!(image(&ours) == before, "the child changed the files");
    let db = db.unwrap();
    db.put("parent", "4").unwrap();
    db.commit_prepared("pay").unwrap();
    db.close().unwrap();
    for (path, keys) in [(&ours, &["held", "log", "parent", "table"][..]), (&theirs, &["k"])] {
        let db = Db::open(path, Options::new()).unwrap();
        let found: Vec<_> =
            db.iter().unwrap().map(|entry| String::from_utf8(entry.unwrap().0).unwrap()).collect();
        assert_eq!(found, keys);
    }
}
