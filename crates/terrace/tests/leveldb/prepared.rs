//! Prepared transactions in databases that the real LevelDB opens, writes and repairs in between.

use std::path::Path;

use terrace::{Db, ErrorKind, Options};
use terrace_testkit::leveldb::{Peer, PeerOptions};

fn open(path: &Path) -> Db {
    let options = Options::new().create_if_missing(true).prepared_transactions(true);
    Db::open(path, options).expect("opens")
}

/// A database with one prepared transaction, which changes two keys and rests on a third one.
fn prepare(path: &Path) {
    let db = open(path);
    db.put("old", "0").unwrap();
    db.put("read", "0").unwrap();
    let mut transaction = db.transaction();
    transaction.get_for_update("read").unwrap();
    transaction.put("old", "1");
    transaction.put("new", "1");
    transaction.prepare("pay").unwrap();
    db.close().unwrap();
}

#[test]
fn leveldb_keeps_prepared_transactions_and_what_it_writes_overtakes_them() {
    let Some(peer) = Peer::find() else { return };
    let options = PeerOptions::default();
    for (key, overtakes) in [(None, false), (Some("other"), false), (Some("read"), true)] {
        for command in ["open", "compact", "repair"] {
            let dir = tempfile::tempdir().expect("a temporary directory");
            let path = dir.path().join("db");
            prepare(&path);
            let case = format!("LevelDB writes {key:?}, then {command}");
            if let Some(key) = key {
                peer.put(&path, &options, key.as_bytes(), b"LevelDB's").expect("LevelDB writes");
            }
            peer.simple(command, &path, &options).expect("LevelDB's turn");
            let db = open(&path);
            let listed = db.prepared_transactions().unwrap();
            assert_eq!(listed.len(), 1, "{case}");
            assert_eq!((listed[0].writes, listed[0].is_overtaken), (2, overtakes), "{case}");
            let committed = db.commit_prepared("pay");
            if overtakes {
                assert_eq!(committed.unwrap_err().kind(), ErrorKind::Conflict, "{case}");
                db.rollback_prepared("pay").expect("a rollback");
            } else {
                committed.unwrap_or_else(|error| panic!("{case}: {error}"));
            }
            db.close().unwrap();
            let value = peer.get(&path, &options, b"new").expect("LevelDB reads");
            assert_eq!(value.is_some(), !overtakes, "{case}");
            let entries = peer.entries(&path, &options).expect("LevelDB reads");
            assert!(entries.iter().all(|(key, _)| !key.starts_with(b"!$terrace!")), "{case}");
        }
    }
}
