//! The two definitions of the workload, in Rust and in C++, agree, and the real LevelDB does what
//! the peer says.

use terrace_testkit::leveldb::{Fill, Peer, PeerOptions};
use terrace_testkit::workload::{State, Workload};

const OPERATIONS: u64 = 5_000;

fn fill(workload: Workload, kill: bool) -> Fill {
    Fill { workload, from: 0, to: OPERATIONS, batch: 7, sync_every: 500, kill }
}

#[test]
fn both_sides_define_the_same_workload() {
    let Some(peer) = Peer::find() else { return };
    for (seed, reverse, kill) in
        [(1, false, false), (2, true, false), (3, false, true), (u64::MAX, true, true)]
    {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let db = dir.path().join("db");
        let workload = Workload::new(seed);
        let options =
            PeerOptions { reverse, bloom: 10, write_buffer: 1 << 16, ..PeerOptions::default() };
        peer.fill(&db, &options, &fill(workload, kill)).expect("fill");
        let mut state = State::new(workload);
        state.advance(OPERATIONS);
        let expected = state.digest(reverse);
        assert_eq!(
            peer.verify(&db, &options, workload, OPERATIONS).expect("verify"),
            expected,
            "seed {seed}"
        );
        assert_eq!(peer.digest(&db, &options).expect("digest"), expected, "seed {seed}");
        let mut entries = peer.entries(&db, &options).expect("entries");
        if reverse {
            entries.reverse();
        }
        assert!(
            entries.iter().map(|(key, value)| (key.as_slice(), value.clone())).eq(state.entries())
        );
    }
}

#[test]
fn refusals_are_told() {
    let Some(peer) = Peer::find() else { return };
    let dir = tempfile::tempdir().expect("a temporary directory");
    let db = dir.path().join("db");
    let missing = PeerOptions { create: false, ..PeerOptions::default() };
    let refused = peer.simple("open", &db, &missing).expect_err("there is no database");
    assert!(refused.0.contains("does not exist"), "{refused}");

    let options = PeerOptions::default();
    peer.put(&db, &options, b"key", b"\x00value").expect("put");
    assert_eq!(peer.get(&db, &options, b"key").expect("get").as_deref(), Some(&b"\x00value"[..]));
    assert_eq!(peer.get(&db, &options, b"other").expect("get"), None);
    peer.simple("compact", &db, &options).expect("compact");
    let files = |level: u32| {
        let name = format!("leveldb.num-files-at-level{level}");
        peer.property(&db, &options, &name).expect("property").parse::<u32>().expect("a number")
    };
    assert_eq!((0..7).map(files).sum::<u32>(), 1);

    let held = peer.hold_open(&db, &options).expect("open");
    let refused = peer.simple("open", &db, &options).expect_err("the database is held open");
    assert!(refused.0.contains("lock"), "{refused}");
    drop(held);
    peer.simple("open", &db, &options).expect("it is not locked");

    let other_order = PeerOptions { reverse: true, ..PeerOptions::default() };
    let refused = peer.simple("open", &db, &other_order).expect_err("another comparator");
    assert!(refused.0.contains("does not match"), "{refused}");

    let unmatched = peer.verify(&db, &options, Workload::new(1), 10).expect_err("another workload");
    assert!(unmatched.0.contains("key"), "{unmatched}");
}
