//! Writes that wait for nobody.

use std::cmp::Ordering;
use std::sync::{Arc, Mutex};

use terrace::{
    Comparator, Db, ErrorKind, MemEnv, MemoryBudget, Options, TransactionOptions, WriteBatch,
};

fn options() -> Options {
    Options::new().create_if_missing(true).env(Arc::new(MemEnv::new()))
}

fn put(key: &str, value: &[u8]) -> WriteBatch {
    let mut batch = WriteBatch::new();
    batch.put(key, value);
    batch
}

#[test]
fn a_write_that_need_not_wait_is_made_as_a_whole() {
    let options = options();
    let db = Db::open("/db", options.clone()).unwrap();
    db.put("old", "value").unwrap();
    let mut batch = put("new", b"value");
    batch.delete("old");
    assert!(db.try_write(&batch).unwrap());
    assert!(db.try_write(&WriteBatch::new()).unwrap(), "nothing to do");
    let entries = |db: &Db| db.iter().unwrap().map(Result::unwrap).collect::<Vec<_>>();
    assert_eq!(entries(&db), [(b"new".to_vec(), b"value".to_vec())]);
    db.clone().close().unwrap();
    assert_eq!(db.try_write(&batch).unwrap_err().kind(), ErrorKind::Closed);
    let db = Db::open("/db", options.clone().read_only(true)).unwrap();
    assert_eq!(entries(&db).len(), 1, "it was in the log");
    assert_eq!(db.try_write(&batch).unwrap_err().kind(), ErrorKind::NotSupported);
}

/// Bytewise, and tries to write in the middle of a comparison once it has a database.
#[derive(Default)]
struct Interrupting {
    db: Mutex<Option<Db>>,
    tried: Mutex<Option<bool>>,
}

impl Comparator for Interrupting {
    fn name(&self) -> &str {
        "interrupting"
    }

    fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        if let Some(db) = self.db.lock().unwrap().take() {
            let written = db.try_write(&put("other", b"value")).unwrap();
            *self.tried.lock().unwrap() = Some(written);
        }
        a.cmp(b)
    }
}

#[test]
fn nothing_is_written_beside_another_writer() {
    let comparator = Arc::new(Interrupting::default());
    let db = Db::open("/db", options().comparator(comparator.clone())).unwrap();
    db.put("first", "value").unwrap();
    *comparator.db.lock().unwrap() = Some(db.clone());
    // The comparison is that of a write, for which the other one would have to wait.
    db.put("second", "value").unwrap();
    assert_eq!(*comparator.tried.lock().unwrap(), Some(false));
    assert_eq!(db.get("other").unwrap(), None);
    assert!(db.try_write(&put("other", b"value")).unwrap());
}

#[test]
fn locks_are_obeyed_and_conflicts_noticed() {
    let db = Db::open("/db", options()).unwrap();
    let mut locking = db.transaction_with(TransactionOptions::new().locking(true));
    locking.get_for_update("locked").unwrap();
    assert!(!db.try_write(&put("locked", b"1")).unwrap());
    assert!(db.try_write(&put("free", b"1")).unwrap());
    drop(locking);
    assert!(db.try_write(&put("locked", b"2")).unwrap());

    let mut optimistic = db.transaction();
    optimistic.get_for_update("free").unwrap();
    optimistic.put("mine", "1");
    assert!(db.try_write(&put("free", b"2")).unwrap());
    assert_eq!(optimistic.commit().unwrap_err().kind(), ErrorKind::Conflict);
}

#[test]
fn a_full_memtable_is_left_to_a_write_that_waits() {
    let db = Db::open("/db", options().write_buffer_size(64 << 10)).unwrap();
    let entry = |number: usize| put(&format!("{number:04}"), &[7; 1_000]);
    // Nothing is flushed before a memtable is full.
    let made = (0..).take_while(|&number| db.try_write(&entry(number)).unwrap()).count();
    assert!((30..=64).contains(&made), "refused after {made} writes");
    assert_eq!(db.iter().unwrap().count(), made);
    db.write(&entry(made)).unwrap();
    db.wait_idle().unwrap();
    assert!(db.try_write(&entry(made + 1)).unwrap(), "a new memtable");
    assert_eq!(db.iter().unwrap().count(), made + 2);
}

#[test]
fn under_a_memory_budget_every_write_may_wait() {
    let options = options().memory_budget(Some(MemoryBudget::new(8 << 20)));
    let db = Db::open("/db", options).unwrap();
    assert!(!db.try_write(&put("key", b"value")).unwrap());
    assert_eq!(db.get("key").unwrap(), None);
}
