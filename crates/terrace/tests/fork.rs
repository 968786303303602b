//! A child of a fork and the databases it got from its parent. Alone in its file: a fork copies only one thread, and
//! other tests' threads could hold locks that the child needs.
#![allow(unsafe_code)]

use terrace::{Db, ErrorKind, Options};

#[test]
fn an_inherited_database_is_read_not_written_and_dropped_without_a_trace() {
    let dir = tempfile::tempdir().unwrap();
    let (ours, theirs) = (dir.path().join("ours"), dir.path().join("theirs"));
    let options = || Options::new().create_if_missing(true);
    let db = Db::open(&ours, options()).unwrap();
    db.put("table", "1").unwrap();
    db.flush().unwrap();
    db.put("log", "2").unwrap();

    let mut db = Some(db);
    // SAFETY: the only other threads are the pool's, which wait in the kernel, so no lock is held that the child
    // could need; it ends by `_exit`.
    let child = unsafe { libc::fork() };
    assert!(child >= 0, "fork failed");
    if child == 0 {
        let steps = || {
            let db = db.take()?;
            let reads = db.get("table").ok()?? == b"1" && db.get("log").ok()?? == b"2";
            let refused = |error: terrace::Error| error.kind() == ErrorKind::NotSupported;
            let writes = db.put("child", "3").is_err_and(refused) && db.flush().is_err_and(refused);
            // Its own databases work, background threads included, and change nothing about that.
            let own = Db::open(&theirs, options()).ok()?;
            own.put("k", "v").ok()?;
            own.flush().ok()?;
            own.close().ok()?;
            let busy = Db::open(&ours, options()).is_err_and(|error| error.kind() == ErrorKind::Busy);
            let still = db.put("child", "3").is_err_and(refused);
            drop(db);
            (reads && writes && busy && still).then_some(())
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

    let db = db.unwrap();
    db.put("parent", "4").unwrap();
    db.close().unwrap();
    for (path, keys) in [(&ours, &["log", "parent", "table"][..]), (&theirs, &["k"])] {
        let db = Db::open(path, Options::new()).unwrap();
        let found: Vec<_> = db.iter().unwrap().map(|entry| String::from_utf8(entry.unwrap().0).unwrap()).collect();
        assert_eq!(found, keys);
    }
}
