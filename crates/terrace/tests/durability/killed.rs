//! Logs of killed processes, of LevelDB and of Terrace: writes that were under way,
//! never acknowledged, and nothing that hides another. Whether a write is missing shows in the
//! sequence numbers.

use std::fs;
use std::path::{Path, PathBuf};

use terrace::{Db, Options};

fn options() -> Options {
    Options::new().create_if_missing(true)
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap().map(|entry| entry.unwrap()) {
        if entry.file_type().unwrap().is_file() {
            fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
        }
    }
}

fn newest_log(dir: &Path) -> PathBuf {
    let files = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    files.filter(|path| path.extension() == Some("log".as_ref())).max().unwrap()
}

/// Opens a database with and without `paranoid_checks` and looks which of the keys are there.
fn found(dir: &Path, keys: &[&str]) -> Vec<bool> {
    let found = [false, true].map(|paranoid| {
        let copied = dir.with_extension(if paranoid { "paranoid" } else { "default" });
        copy(dir, &copied);
        let db =
            Db::open(&copied, options().paranoid_checks(paranoid)).expect("nothing is missing");
        let found: Vec<bool> = keys.iter().map(|key| db.get(key).unwrap().is_some()).collect();
        drop(db);
        assert!(!copied.join("lost").exists(), "nothing was damaged");
        found
    });
    assert_eq!(found[0], found[1]);
    found[0].clone()
}

/// A process dies in a write; the next dies while it recovers, after it has begun a log.
#[test]
fn a_torn_log_with_a_later_one() {
    let dir = tempfile::tempdir().unwrap();
    let [live, killed, hole] = ["live", "killed", "hole"].map(|name| dir.path().join(name));
    let db = Db::open(&live, options()).unwrap();
    for key in ["a", "b", "c"] {
        db.put(key, "value").unwrap();
    }
    copy(&live, &killed);
    db.flush().unwrap();
    db.put("d", "value").unwrap();
    let later = newest_log(&live);
    // Twice the length of a record from the end of what is written is inside the record of "c".
    let log = newest_log(&killed);
    let bytes = fs::read(&log).unwrap();
    let end = bytes.iter().rposition(|&byte| byte != 0).unwrap();
    fs::write(&log, &bytes[..end - 5]).unwrap();
    copy(&killed, &hole);
    fs::write(killed.join(later.file_name().unwrap()), "").unwrap();
    assert_eq!(found(&killed, &["a", "b", "c"]), [true, true, false]);
    // With what was written after "c" in the later log, "c" is missing. It was not synced, so
    // nothing behind it was.
    fs::copy(&later, hole.join(later.file_name().unwrap())).unwrap();
    for paranoid in [true, false] {
        let copied = hole.with_extension(if paranoid { "paranoid" } else { "default" });
        copy(&hole, &copied);
        let db = Db::open(&copied, options().paranoid_checks(paranoid))
            .expect("nothing durable is missing");
        assert!(db.get("b").unwrap().is_some());
        assert_eq!(db.get("d").unwrap(), None, "what follows the hole is cut off");
        drop(db);
        assert!(copied.join("lost").exists(), "what was cut off is kept");
    }
}

/// LevelDB writes the fragments of a record one by one. It dies between two; the next one continues
/// the log with `reuse_logs`, as LevelDB does.
#[test]
fn a_record_without_its_end_before_others() {
    let dir = tempfile::tempdir().unwrap();
    let [long, short] = ["long", "short"].map(|name| dir.path().join(name));
    for (path, second) in [(&long, vec![1; 40_000]), (&short, vec![1; 10])] {
        let db = Db::open(path, options()).unwrap();
        db.put("a", "value").unwrap();
        db.put("second", second).unwrap();
        db.close().unwrap();
    }
    let (log, other) = (newest_log(&long), fs::read(newest_log(&short)).unwrap());
    let first_record = 7 + usize::from(u16::from_le_bytes([other[4], other[5]]));
    let mut bytes = fs::read(&log).unwrap();
    bytes.truncate(32 << 10);
    bytes.extend(&other[first_record..]);
    fs::write(&log, bytes).unwrap();
    assert_eq!(found(&long, &["a", "second"]), [true, true]);
}
