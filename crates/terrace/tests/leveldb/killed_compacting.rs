//! What LevelDB leaves if it is killed in a manual compaction, which begins a log.

use terrace::{Db, Options, RecoveryMode, verify};
use terrace_testkit::leveldb::{Peer, PeerOptions};

/// The last write before, a delete, is in no table any more, and the log before is empty: nothing but
/// the edit with which LevelDB has opened the database tells that the synced write in the new log
/// follows.
#[test]
fn a_synced_write_in_the_new_log_is_found() {
    let Some(peer) = Peer::find() else { return };
    let options = PeerOptions { create: true, ..PeerOptions::default() };
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("db");
    for key in [b"a", b"k"] {
        peer.put(&path, &options, key, b"1").expect("puts");
    }
    peer.simple("compact", &path, &options).expect("compacts");
    peer.delete(&path, &options, b"k").expect("deletes");
    peer.simple("compact", &path, &options).expect("compacts");
    peer.die_compacting(&path, &options, b"z", b"1").expect("puts, and dies");
    let report = verify(&path, &Options::new()).expect("checks");
    assert!(report.problems.is_empty(), "{report:#?}");
    let strict = Options::new().recovery_mode(RecoveryMode::Strict).paranoid_checks(true);
    let db = Db::open(&path, strict).expect("opens");
    let keys: Vec<_> = db.iter().expect("iterates").map(|entry| entry.expect("reads").0).collect();
    assert_eq!(keys, [b"a", b"z"]);
}
