//! Presets: what they change shows in how a database behaves.

use terrace::{Db, Options, Workload};

const WORKLOADS: [Workload; 3] =
    [Workload::DataLogging, Workload::Analytics, Workload::Interactive];

fn open(dir: &std::path::Path, options: Options) -> Db {
    Db::open(dir, options.create_if_missing(true)).expect("opens")
}

#[test]
fn a_database_of_one_preset_opens_under_every_other() {
    let dir = tempfile::tempdir().expect("a directory");
    for (n, workload) in WORKLOADS.into_iter().enumerate() {
        let db = open(dir.path(), Options::for_workload(workload));
        db.put(format!("{n}"), format!("{workload:?}")).expect("puts");
        assert_eq!(db.iter().expect("iterates").count(), n + 1);
        db.close().expect("closes");
    }
}

#[test]
fn the_write_buffer_of_a_preset_holds_what_it_says() {
    // More than the defaults hold, less than a preset for writing does.
    const MEBIBYTES: usize = 12;
    let flushes = |options| {
        let dir = tempfile::tempdir().expect("a directory");
        let db = open(dir.path(), options);
        for n in 0..MEBIBYTES * 16 {
            db.put(format!("{n:08}"), vec![b'v'; 64 << 10]).expect("puts");
        }
        db.wait_idle().expect("idle");
        db.stats().flush_bytes_written
    };
    assert!(flushes(Options::new()) > 0);
    assert!(flushes(Options::for_workload(Workload::Interactive)) > 0);
    assert_eq!(flushes(Options::for_workload(Workload::DataLogging)), 0);
    assert_eq!(flushes(Options::for_workload(Workload::Analytics)), 0);
}

#[test]
fn what_is_set_after_a_preset_counts() {
    let capacity = |options| {
        let dir = tempfile::tempdir().expect("a directory");
        open(dir.path(), options).stats().cache_capacity
    };
    let analytics = Options::for_workload(Workload::Analytics);
    assert_eq!(capacity(analytics.clone()), 64 << 20);
    assert_eq!(capacity(analytics.block_cache_size(1 << 20)), 1 << 20);
    assert_eq!(capacity(Options::for_workload(Workload::Interactive)), capacity(Options::new()));
}
