//! The simulated file system keeps the promises of [`Env`], and breaks none that a real disk would
//! keep.

use std::collections::BTreeSet;
use std::path::Path;

use terrace::{CreateOptions, Env, ErrorKind, LockMode, ReadAccess};
use terrace_testkit::simfs::{
    DataLoss, EntryLoss, Fault, FaultPlan, LogKind, OpKind, PowerLoss, SimFs,
};

const DIR: &str = "/d";

fn path(name: &str) -> std::path::PathBuf {
    Path::new(DIR).join(name)
}

/// A file system with a durable directory.
fn prepared() -> SimFs {
    let fs = SimFs::new();
    fs.create_dir(Path::new(DIR), 0o755).expect("create directory");
    fs.sync_dir(Path::new("/")).expect("sync directory");
    fs
}

fn write(fs: &SimFs, name: &str, bytes: &[u8], sync: bool) {
    let mut file = fs.create(&path(name), CreateOptions::default()).expect("create");
    file.append(bytes).expect("append");
    if sync {
        file.sync().expect("sync");
    }
    file.close().expect("close");
}

fn read(fs: &SimFs, name: &str) -> Option<String> {
    fs.contents(&path(name)).map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
}

#[test]
fn a_power_cut_loses_unsynced_data() {
    let fs = prepared();
    write(&fs, "both", b"data", true);
    fs.sync_dir(Path::new(DIR)).expect("sync directory");
    write(&fs, "file only", b"data", true);
    write(&fs, "neither", b"data", false);
    let mut file = fs.open_append(&path("both")).expect("open");
    file.append(b" and more").expect("append");

    let after = fs.power_loss(PowerLoss::STRICT);
    assert_eq!(after.names(Path::new(DIR)), ["both"]);
    assert_eq!(read(&after, "both").as_deref(), Some("data"));

    let after = fs.power_loss(PowerLoss::PROCESS_ONLY);
    assert_eq!(after.names(Path::new(DIR)).len(), 3);
    assert_eq!(read(&after, "both").as_deref(), Some("data and more"));

    let entries_only = PowerLoss { data: DataLoss::All, entries: EntryLoss::Nothing, seed: 0 };
    assert_eq!(read(&fs.power_loss(entries_only), "neither").as_deref(), Some(""));
}

#[test]
fn a_rename_replaces_as_one_step_and_is_durable_after_a_sync_of_the_directory() {
    let fs = prepared();
    write(&fs, "CURRENT", b"old", true);
    fs.sync_dir(Path::new(DIR)).expect("sync directory");
    write(&fs, "temp", b"new", true);
    fs.rename(&path("temp"), &path("CURRENT")).expect("rename");
    let mut seen = BTreeSet::new();
    for seed in 0..500 {
        let after = fs.power_loss(PowerLoss::random(seed));
        seen.insert(read(&after, "CURRENT").expect("never neither"));
    }
    assert_eq!(seen.into_iter().collect::<Vec<_>>(), ["new", "old"]);
    fs.sync_dir(Path::new(DIR)).expect("sync directory");
    assert_eq!(read(&fs.power_loss(PowerLoss::STRICT), "CURRENT").as_deref(), Some("new"));
}

#[test]
fn every_name_of_a_file_is_durable_by_itself() {
    let fs = prepared();
    write(&fs, "one", b"data", true);
    fs.sync_dir(Path::new(DIR)).expect("sync directory");
    fs.create_dir(&path("sub"), 0o755).expect("create directory");
    fs.sync_dir(Path::new(DIR)).expect("sync directory");
    fs.record();
    assert_eq!(
        fs.link(&path("none"), &path("two")).expect_err("no file").kind(),
        ErrorKind::NotFound
    );
    assert_eq!(
        fs.link(&path("one"), &path("sub")).expect_err("taken").raw_os_error(),
        Some(libc::EEXIST)
    );
    fs.link(&path("one"), &path("sub/two")).expect("link");
    fs.rename(&path("one"), &path("sub/two")).expect("nothing to do");
    assert_eq!(fs.used(), 4);
    let after = fs.power_loss(PowerLoss::STRICT);
    assert_eq!((read(&after, "one").as_deref(), read(&after, "sub/two")), (Some("data"), None));
    fs.sync_dir(&path("sub")).expect("sync directory");
    fs.remove(&path("one")).expect("remove");
    let mut file = fs.open_append(&path("sub/two")).expect("open");
    file.append(b" and more").expect("append");
    file.sync().expect("sync");
    let after = fs.power_loss(PowerLoss::STRICT);
    for name in ["one", "sub/two"] {
        assert_eq!(read(&after, name).as_deref(), Some("data and more"), "one file");
    }
    fs.sync_dir(Path::new(DIR)).expect("sync directory");
    let recording = fs.take_recording();
    let mut replay = recording.replay();
    replay.advance_to(recording.len());
    let after = replay.power_loss(PowerLoss::STRICT);
    assert_eq!(
        (read(&after, "one"), read(&after, "sub/two").as_deref()),
        (None, Some("data and more"))
    );
}

#[test]
fn a_directory_is_durable_with_its_parent_only() {
    let fs = SimFs::new();
    fs.create_dir(Path::new("/a/b"), 0o755).expect("create directories");
    fs.sync_dir(Path::new("/a")).expect("sync directory");
    assert!(!fs.power_loss(PowerLoss::STRICT).exists(Path::new("/a/b")).expect("stat"));
    fs.sync_dir(Path::new("/")).expect("sync directory");
    assert!(fs.power_loss(PowerLoss::STRICT).exists(Path::new("/a/b")).expect("stat"));
}

#[test]
fn a_recording_replays_to_the_disk_it_was_made_of() {
    let fs = prepared();
    write(&fs, "before", b"1", true);
    fs.record();
    write(&fs, "a", &[7; 10_000], true);
    fs.rename(&path("a"), &path("b")).expect("rename");
    fs.remove(&path("before")).expect("remove");
    let steps = fs.steps();
    let live = fs.power_loss(PowerLoss::PROCESS_ONLY);
    let recording = fs.take_recording();
    assert_eq!(recording.len(), steps);
    let mut replay = recording.replay();
    assert_eq!(read(&replay.power_loss(PowerLoss::PROCESS_ONLY), "before").as_deref(), Some("1"));
    replay.advance_to(steps);
    let replayed = replay.power_loss(PowerLoss::PROCESS_ONLY);
    assert_eq!(replayed.names(Path::new(DIR)), live.names(Path::new(DIR)));
    assert_eq!(read(&replayed, "b"), read(&live, "b"));
}

#[test]
fn faults_hit_the_operation_they_are_meant_for() {
    let fs = prepared();
    let kinds = vec![OpKind::Append];
    fs.set_faults(Some(FaultPlan {
        kinds,
        suffix: ".log".into(),
        ..FaultPlan::at(1, Fault::Short, false)
    }));
    write(&fs, "1.ldb", b"not meant", true);
    let mut file = fs.create(&path("1.log"), CreateOptions::default()).expect("create");
    file.append(b"first").expect("the first is spared");
    let error = file.append(b"second").expect_err("the second fails");
    assert!(error.kind() == ErrorKind::Io && error.to_string().contains("/d/1.log"), "{error}");
    file.append(b"!").expect("the third is spared");
    assert_eq!(read(&fs, "1.log").as_deref(), Some("firstsec!"));
    assert_eq!(fs.injected(), 1);

    fs.set_faults(Some(FaultPlan {
        kinds: vec![OpKind::Sync],
        ..FaultPlan::at(0, Fault::Io, false)
    }));
    file.sync().expect_err("the sync fails");
    file.sync().expect("the next one succeeds");
    let after = fs.power_loss(PowerLoss { entries: EntryLoss::Nothing, ..PowerLoss::STRICT });
    assert_eq!(
        read(&after, "1.log").as_deref(),
        Some("\0\0\0\0\0\0\0\0\0"),
        "and yet the data is gone"
    );
}

#[test]
fn a_full_disk_takes_a_part_and_heals() {
    let fs = prepared();
    fs.set_capacity(Some(10));
    write(&fs, "a", b"1234567", false);
    let mut file = fs.create(&path("b"), CreateOptions::default()).expect("create");
    assert!(file.append(b"89abc").expect_err("full").is_out_of_space());
    assert_eq!(fs.used(), 10);
    fs.remove(&path("a")).expect("remove");
    file.append(b"more").expect("room again");
    assert_eq!(read(&fs, "b").as_deref(), Some("89amore"));
}

#[test]
fn a_prepared_log_shows_zeros_until_it_is_closed() {
    let fs = prepared();
    fs.set_log_kind(LogKind::Prepared);
    let mut log = fs.create_log(&path("1.log"), CreateOptions::default(), 8192).expect("create");
    log.append(b"record").expect("append");
    let bytes = fs.contents(&path("1.log")).expect("a file");
    assert_eq!((bytes.len(), &bytes[..8]), (8192, &b"record\0\0"[..]));
    log.append(&[1; 8190]).expect("append past the prepared space");
    assert!(fs.contents(&path("1.log")).expect("a file").len() > 8196);
    log.close().expect("close");
    assert_eq!(fs.file_size(&path("1.log")).expect("size"), 8196);
}

#[test]
fn a_recycled_log_holds_none_of_its_old_bytes() {
    let fs = prepared();
    fs.set_log_kind(LogKind::Prepared);
    let mut log = fs.create_log(&path("1.log"), CreateOptions::default(), 8192).expect("create");
    log.append(&[1; 9000]).expect("append");
    assert!(log.zero_out());
    fs.rename(&path("1.log"), &path("2.log")).expect("rename");
    log.set_path(&path("2.log"));
    log.append(&[2; 100]).expect("append");
    let bytes = fs.contents(&path("2.log")).expect("a file");
    assert!(
        bytes.len() >= 9000
            && bytes[..100] == [2; 100]
            && bytes[100..].iter().all(|&byte| byte == 0)
    );
    for seed in 0..200 {
        let after = fs.power_loss(PowerLoss::random(seed));
        for name in ["1.log", "2.log"] {
            assert!(!after.contents(&path(name)).unwrap_or_default().contains(&1), "seed {seed}");
        }
    }
    log.sync().expect("sync");
    assert!(!log.zero_out(), "what has been synced is on the disk");
}

#[test]
fn names_locks_and_readers_follow_the_contract() {
    let fs = prepared();
    write(&fs, "a", b"bytes", false);
    let exclusive = fs.create(&path("a"), CreateOptions::default()).err().expect("exists");
    assert_eq!(exclusive.raw_os_error(), Some(libc::EEXIST));
    let reader = fs.open_random(&path("a"), ReadAccess::Mapped).expect("open");
    fs.remove(&path("a")).expect("remove");
    let mut buffer = [0; 8];
    assert_eq!(reader.read_at(1, &mut buffer).expect("an open file outlives its name"), 4);
    assert_eq!(
        fs.open_random(&path("a"), ReadAccess::Pread).err().expect("gone").kind(),
        ErrorKind::NotFound
    );
    assert_eq!(fs.remove(&path("a")).expect_err("gone").kind(), ErrorKind::NotFound);

    let lock = fs.lock(&path("LOCK"), LockMode::Exclusive).expect("lock");
    assert_eq!(
        fs.lock(&path("LOCK"), LockMode::Shared).err().expect("held").kind(),
        ErrorKind::Busy
    );
    drop(lock);
    let readers = [0, 1].map(|_| fs.lock(&path("LOCK"), LockMode::Shared).expect("shared"));
    assert_eq!(
        fs.lock(&path("LOCK"), LockMode::Exclusive).err().expect("held").kind(),
        ErrorKind::Busy
    );
    drop(readers);
    fs.lock(&path("LOCK"), LockMode::Exclusive).expect("free again");

    fs.remove_dir(Path::new(DIR)).expect_err("not empty");
    assert_eq!(fs.list(Path::new(DIR)).expect("list"), ["LOCK"]);
}
