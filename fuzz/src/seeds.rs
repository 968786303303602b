//! Examples for the targets, cut out of databases that the real LevelDB and Terrace have written.

use std::fs;
use std::path::Path;

use terrace::fuzzing::{pack, parts};
use terrace_testkit::leveldb::{Fill, Peer, PeerOptions};
use terrace_testkit::workload::{Operation, Workload};

/// Larger examples teach a fuzzer nothing more.
const LARGEST: usize = 6_000;
/// Of one kind, from one database.
const AT_MOST: usize = 6;

/// Writes them to a directory per target.
pub(crate) fn write(dir: &Path) {
    let scratch = tempfile::tempdir().expect("a directory");
    let mut number = 0;
    for (seed, operations) in [(1, 12), (2, 40), (3, 90)] {
        let workload = Workload::new(seed);
        let db = scratch.path().join(format!("terrace-{seed}"));
        let options = terrace::Options::new().create_if_missing(true).write_buffer_size(1 << 16);
        let opened = terrace::Db::open(&db, options).expect("opens");
        for at in 0..operations {
            match workload.operation(at) {
                Operation::Put { key, value } => opened.put(key, &value[..value.len().min(300)]),
                Operation::Delete { key } => opened.delete(key),
            }
            .expect("writes");
            if at == operations / 2 {
                opened.flush().expect("flushes");
            }
        }
        opened.write_with(&terrace::WriteBatch::new(), terrace::WriteOptions::sync()).expect("a mark");
        opened.close().expect("closes");
        take(dir, &db, &mut number);
        let Some(peer) = Peer::find() else { continue };
        let db = scratch.path().join(format!("leveldb-{seed}"));
        let options = PeerOptions { bloom: 10, ..PeerOptions::default() };
        let fill = |from, to| Fill { workload, from, to, batch: 4, sync_every: 0, kill: false };
        peer.fill(&db, &options, &fill(0, operations / 2)).expect("LevelDB writes");
        take(dir, &db, &mut number);
        peer.fill(&db, &options, &fill(operations / 2, operations)).expect("LevelDB writes");
        take(dir, &db, &mut number);
    }
    for calls in [
        &b"\x10\x20\x01\x30\x00\x11\x22\x01\x33\x44\x09\x03\x11\x0e\x00\x11\x0f\x00\x00\x0b\x0d\x00\x0f\xff\x00"[..],
        &[7; 60],
    ] {
        keep(dir, "c-api", &mut number, calls);
    }
}

fn take(dir: &Path, db: &Path, number: &mut u32) {
    let mut files = Vec::new();
    for entry in fs::read_dir(db).expect("a directory") {
        let entry = entry.expect("an entry");
        let name = entry.file_name().to_string_lossy().into_owned();
        if name.starts_with("LOG") || name == "LOCK" || !entry.path().is_file() {
            continue;
        }
        files.push((name, fs::read(entry.path()).expect("a file")));
    }
    files.sort();
    if let Some(packed) = pack(0, &files) {
        keep(dir, "directory", number, &packed);
    }
    let mut counts = std::collections::BTreeMap::<_, usize>::new();
    for (target, bytes) in
        files.iter().filter(|(name, _)| name != "CURRENT").flat_map(|(name, bytes)| parts(name, bytes))
    {
        let count = counts.entry(target).or_default();
        if *count < AT_MOST {
            *count += 1;
            keep(dir, target, number, &bytes);
        }
    }
}

fn keep(dir: &Path, target: &str, number: &mut u32, bytes: &[u8]) {
    if bytes.is_empty() || bytes.len() > LARGEST {
        return;
    }
    let dir = dir.join(target);
    fs::create_dir_all(&dir).expect("a directory");
    fs::write(dir.join(format!("seed-{number:03}")), bytes).expect("writes");
    *number += 1;
}
