//! What commands say and keep of a log that is damaged.

use std::path::{Path, PathBuf};

use terrace_testkit::leveldb::{Fill, Peer, PeerOptions};
use terrace_testkit::workload::Workload;

use crate::tool::{Ran, Tool, state_of};

/// A database of LevelDB's whose entries are all in its log, and that log.
fn with_a_log(tool: &Tool, peer: &Peer) -> PathBuf {
    let workload = Workload::new(7);
    let fill = Fill { workload, from: 0, to: 400, batch: 1, sync_every: 0, kill: false };
    peer.fill(&tool.path("db"), &PeerOptions::default(), &fill).expect("LevelDB fills it");
    let log = tool.files("db", ".log").pop().expect("a log");
    assert!(log.metadata().expect("a size").len() > 8192 && tool.files("db", ".ldb").is_empty());
    log
}

fn damage_the_middle(log: &Path) {
    let mut bytes = std::fs::read(log).expect("readable");
    let middle = bytes.len() / 2;
    bytes[middle] ^= 0x40;
    std::fs::write(log, bytes).expect("written");
}

fn copy(tool: &Tool, from: &str, to: &str) {
    std::fs::create_dir(tool.path(to)).expect("created");
    for file in tool.path(from).read_dir().expect("a directory").map(|file| file.expect("a file")) {
        std::fs::copy(file.path(), tool.path(to).join(file.file_name())).expect("copied");
    }
}

fn lines(ran: &Ran) -> usize {
    ran.stdout.iter().filter(|&&byte| byte == b'\n').count()
}

#[track_caller]
fn assert_warns(ran: &Ran, part: &str) {
    let warnings: Vec<_> =
        ran.stderr.lines().filter(|line| line.starts_with("terrace: warning: ")).collect();
    assert_eq!(warnings.len(), 1, "{ran:?}");
    let place = "terrace: warning: db/000003.log is damaged at offset ";
    assert!(warnings[0].starts_with(place) && warnings[0].contains(part), "{warnings:?}");
}

#[test]
fn every_command_that_leaves_out_a_part_of_a_log_warns() {
    let Some(peer) = Peer::find() else { return };
    let tool = Tool::new();
    let log = with_a_log(&tool, &peer);
    assert_eq!(log, tool.path("db/000003.log"));
    let all = tool.run(&["dump", "db"]);
    assert_eq!((all.status, all.stderr.as_str()), (0, ""));
    damage_the_middle(&log);
    let before = state_of(&tool.path("db"));
    for args in [
        &["stat", "db"][..],
        &["files", "db", "--json"],
        &["advise", "db"],
        &["shell", "--read-only", "db"],
    ] {
        let ran = tool.run(args);
        assert_eq!((ran.status, ran.stderr.lines().count()), (0, 1), "{args:?}: {ran:?}");
        assert_warns(&ran, "later writes are left out (--recovery salvage reads what can be read");
    }
    // Whether a key is there cannot be told without all of the log.
    let none = tool.run(&["get", "db", "none"]);
    assert_warns(&none, "--recovery strict refuses");
    none.fails_after_warning(2, "no entry for the key none (what was left out of the log");
    let none = tool.run(&["get", "db", "none", "--keyspace", "none"]);
    none.fails_after_warning(2, "(what was left out of the log");
    let none = tool.run(&["keyspace", "stat", "db", "none"]);
    none.fails_after_warning(2, "(what was left out of the log");
    // What is printed lacks something, and is no success.
    for (args, what) in [
        (&["scan", "db"][..], "scan"),
        (&["scan", "db", "--limit", "1"], "scan"),
        (&["scan", "db", "--count"], "count"),
        (&["scan", "db", "--count", "--recovery", "salvage"], "count"),
        (&["keyspace", "list", "db"], "list"),
        (&["prepared", "list", "db"], "list"),
    ] {
        let ran = tool.run(args);
        assert!(ran.status == 1 && (what == "list" || lines(&ran) > 0), "{args:?}: {ran:?}");
        assert_warns(&ran, "is damaged");
        let end = format!("the {what} is incomplete: it lacks what was left out of the log\n");
        assert!(ran.stderr.ends_with(&end), "{args:?}: {ran:?}");
    }
    // A copy that lacks something is made, and is no success.
    let cut = tool.run(&["dump", "db"]);
    assert_eq!(cut.status, 1, "{cut:?}");
    assert_warns(&cut, "later writes");
    assert!(
        cut.stderr
            .ends_with("terrace: the dump is incomplete: it lacks what was left out of the log\n")
    );
    let copied = tool.run(&["checkpoint", "db", "copy"]);
    assert!(copied.status == 1 && lines(&copied) == 1, "{copied:?}");
    assert_eq!(tool.run(&["dump", "copy"]).stdout, cut.stdout);
    let salvaged = tool.run(&["dump", "db", "--recovery", "salvage"]);
    assert_eq!(salvaged.status, 1, "{salvaged:?}");
    assert_warns(&salvaged, "what cannot be read is left out");
    assert!(
        lines(&cut) > 0 && lines(&cut) < lines(&salvaged),
        "{} {}",
        lines(&cut),
        lines(&salvaged)
    );
    tool.run(&["dump", "db", "--recovery", "strict"]).fails(2, "000003.log");
    assert!(state_of(&tool.path("db")) == before, "a reading command changed the database");

    // The path comes from the user, and is escaped all the same.
    let hostile = "evil\u{1b}[31m\nline2";
    copy(&tool, "db", hostile);
    let seen = tool.run(&["stat", hostile]).stderr;
    assert!(seen.starts_with("terrace: warning: evil\\x1b[31m\\nline2/000003.log is"), "{seen:?}");
    assert_eq!(seen.lines().count(), 1, "{seen:?}");

    // An open for writing says where it has kept the log that it cuts; the next one cuts nothing.
    let put = tool.run(&["put", "db", "new", "1"]);
    assert_eq!(put.status, 0, "{put:?}");
    assert_warns(&put, "the log is kept as db/lost/000003.log (see `terrace help repair`)");
    tool.ok(&["put", "db", "new", "2"]);
    tool.ok(&["dump", "db"]);
}

#[test]
fn what_an_open_kept_of_a_damaged_log_can_be_read() {
    let Some(peer) = Peer::find() else { return };
    let tool = Tool::new();
    let log = with_a_log(&tool, &peer);
    damage_the_middle(&log);
    let salvaged = tool.run(&["dump", "db", "--recovery", "salvage"]);
    copy(&tool, "db", "repaired");
    assert_eq!(tool.run(&["put", "db", "new", "1"]).status, 0);

    let repaired = tool.run(&["repair", "db"]);
    let text = String::from_utf8_lossy(&repaired.stdout);
    assert_eq!(repaired.status, 0, "the database as it is now is whole: {repaired:?}");
    assert!(text.contains("not read: 000003.log in db/lost, of an earlier open"), "{text}");
    let report = tool.run(&["repair", "db", "--json"]).json_lines().remove(0);
    assert_eq!(report["lost_logs"], serde_json::json!(["000003.log"]));

    // The way that `terrace help repair` describes.
    let help = tool.ok(&["help", "repair"]);
    for line in
        ["mkdir SAVED && cp DB/lost/000003.log SAVED", "terrace repair SAVED", "terrace dump SAVED"]
    {
        assert!(help.contains(line), "{help}");
    }
    std::fs::create_dir(tool.path("saved")).expect("created");
    std::fs::copy(tool.path("db/lost/000003.log"), tool.path("saved/000003.log")).expect("copied");
    let saved = tool.run(&["repair", "saved"]);
    assert_eq!(saved.status, 1, "{saved:?}");
    let dump = tool.run(&["dump", "saved"]);
    assert_eq!((dump.status, dump.stderr.as_str()), (0, ""));
    assert!(dump.stdout == salvaged.stdout, "{} of {}", lines(&dump), lines(&salvaged));
    let seen = tool.run(&["inspect", "db/lost/000003.log", "--values"]);
    assert!(seen.status == 1 && lines(&seen) > lines(&dump), "{}", lines(&seen));

    // A repair before any open for writing takes what can be read by itself.
    let repaired = tool.run(&["repair", "repaired"]);
    assert_eq!(repaired.status, 1, "{repaired:?}");
    assert!(tool.run(&["dump", "repaired"]).stdout == salvaged.stdout);
}

#[test]
fn a_torn_end_is_cut_in_silence() {
    let Some(peer) = Peer::find() else { return };
    let tool = Tool::new();
    let log = with_a_log(&tool, &peer);
    let bytes = std::fs::read(&log).expect("readable");
    // A process that was killed while it wrote, and a power cut before the last sectors were
    // written.
    let killed = bytes[..bytes.len() - 3].to_vec();
    let mut unwritten = bytes.clone();
    let sector = (bytes.len() - 2000) / 512 * 512;
    unwritten[sector..].fill(0);
    for (torn, name) in [(killed, "killed"), (unwritten, "unwritten")] {
        std::fs::write(&log, &torn).expect("written");
        let dump = tool.run(&["dump", "db"]);
        assert!(dump.status == 0 && dump.stderr.is_empty(), "{name}: {}", dump.stderr);
        assert!(lines(&dump) > 0, "{name}");
        copy(&tool, "db", name);
        tool.ok(&["put", name, "k", "v"]);
        assert!(!tool.path(name).join("lost").exists(), "{name}");
    }
    // One byte of the last record is not what a power cut leaves.
    let mut flipped = bytes;
    let last = flipped.len() - 1;
    flipped[last] ^= 0x40;
    std::fs::write(&log, &flipped).expect("written");
    let dump = tool.run(&["dump", "db"]);
    assert_eq!(dump.status, 1, "{}", dump.stderr);
    assert_warns(&dump, "later writes are left out");
}
