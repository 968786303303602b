//! stat, files, inspect, verify, repair, compact, checkpoint, destroy; and that looking changes
//! nothing.

use std::path::{Path, PathBuf};

use crate::tool::{Tool, state_of};
use serde_json::Value;

fn flip(path: &Path, at: u64) {
    let mut bytes = std::fs::read(path).expect("readable");
    bytes[usize::try_from(at).expect("an index")] ^= 0x40;
    std::fs::write(path, bytes).expect("written");
}

fn name(path: &Path) -> String {
    path.file_name().expect("a name").to_string_lossy().into_owned()
}

#[test]
fn reading_commands_change_nothing() {
    let tool = Tool::new();
    tool.sample("db");
    let before = state_of(&tool.path("db"));
    let table = tool.files("db", ".ldb")[0].to_string_lossy().into_owned();
    let log = tool.files("db", ".log")[0].to_string_lossy().into_owned();
    for args in [
        &["get", "db", "zebra"][..],
        &["scan", "db"],
        &["scan", "db", "--count"],
        &["dump", "db"],
        &["stat", "db"],
        &["stat", "db", "--json"],
        &["files", "db"],
        &["verify", "db"],
        &["checkpoint", "db", "copy"],
        &["inspect", &table],
        &["inspect", &log],
        &["inspect", "db/CURRENT", "--kind", "log"],
    ] {
        tool.run(args);
        assert!(state_of(&tool.path("db")) == before, "{args:?} changed the database");
    }
    let read_only =
        tool.run_with(&["shell", "--read-only", "db"], b"scan --limit 1\nput a 1\nfiles\n");
    assert_eq!(read_only.status, 2);
    assert!(read_only.stderr.contains("read-only"), "{}", read_only.stderr);
    assert!(state_of(&tool.path("db")) == before, "a read-only shell changed the database");
}

#[test]
fn stat_and_files_describe_the_database() {
    let tool = Tool::new();
    tool.sample("db");
    let stat: Value = serde_json::from_str(&tool.ok(&["stat", "db", "--json"])).expect("JSON");
    let files: u64 = stat["levels"]
        .as_array()
        .expect("levels")
        .iter()
        .map(|l| l["files"].as_u64().expect("n"))
        .sum();
    assert_eq!(files, tool.files("db", ".ldb").len() as u64);
    assert_eq!(stat["sequence"], 4, "one for the load, three for the batch");
    assert!(stat["disk_bytes"].as_u64() > Some(0));
    let text = tool.ok(&["stat", "db"]);
    for part in ["level", "tables", "block cache", "last sequence number", "snapshots"] {
        assert!(text.contains(part), "{part} is not in\n{text}");
    }
    let lines = tool.run(&["files", "db", "--json"]).json_lines();
    let tables: Vec<_> = lines.iter().filter(|line| line["type"] == "table").collect();
    assert_eq!(tables.len() as u64, files);
    assert_eq!(tables[0]["smallest"], "key00000");
    assert_eq!(lines.iter().filter(|line| line["type"] == "manifest").count(), 1);
    let text = tool.ok(&["files", "db", "--hex"]);
    assert!(text.contains("6b65793030303030") && text.contains("CURRENT"), "{text}");
    tool.run(&["stat", "nowhere"]).fails(2, "nowhere");
}

#[test]
fn inspect_takes_every_kind_of_file_apart() {
    let tool = Tool::new();
    tool.sample("db");
    let file = |part: &str| tool.files("db", part)[0].to_string_lossy().into_owned();
    let (table, log, manifest) = (file(".ldb"), file(".log"), file("MANIFEST-"));

    let text = tool.ok(&["inspect", &table]);
    assert!(text.contains("entries    2000, 0 deletions"), "{text}");
    assert!(
        text.contains("keys       key00000 .. key01999") && text.contains("no damage"),
        "{text}"
    );
    let items = tool.run(&["inspect", &table, "--values", "--json"]).json_lines();
    let entries: Vec<_> = items.iter().filter_map(|item| item.get("entry")).collect();
    assert_eq!(entries.len(), 2000);
    assert_eq!((&entries[3]["key"], &entries[3]["value"]), (&"key00003".into(), &"value 3".into()));
    let blocks: u64 = items.iter().filter_map(|item| item["block"]["entries"].as_u64()).sum();
    assert_eq!(blocks, 2000);
    assert_eq!(tool.run(&["inspect", &table, "--summary", "--json"]).json_lines().len(), 1);

    let text = tool.ok(&["inspect", &log, "--values"]);
    for part in [
        "3 operations",
        "put\tkey00007\tseven",
        "delete\tkey00008",
        "put\tzebra\tstripes",
        "no damage",
    ] {
        assert!(text.contains(part), "{part} is not in\n{text}");
    }
    let operations = tool.run(&["inspect", &log, "--keys", "--json"]).json_lines();
    assert!(
        operations
            .iter()
            .any(|item| item["entry"]["effect"] == "delete" && item["entry"]["sequence"] == 3)
    );

    let text = tool.ok(&["inspect", &manifest]);
    assert!(
        text.contains("comparator     leveldb.BytewiseComparator") && text.contains("add table"),
        "{text}"
    );
    let edits = tool.run(&["inspect", &manifest, "--json"]).json_lines();
    assert!(edits.iter().any(|item| item["edit"]["comparator"] == "leveldb.BytewiseComparator"));

    // Without a telling name the contents say what it is.
    for (path, part) in [(&table, "\ntable of"), (&log, "\nlog of"), (&manifest, "MANIFEST of")] {
        std::fs::copy(path, tool.path("stranger")).expect("copied");
        let text = tool.ok(&["inspect", "stranger"]);
        assert!(text.contains(part), "{part:?} is not in {text}");
    }
    std::fs::write(tool.path("stranger"), "some text\n").expect("written");
    tool.run(&["inspect", "stranger"]).fails(2, "none of table, log, value file and MANIFEST");
    tool.run(&["inspect", "stranger", "--kind", "table"]).fails(1, "too few for a table");
    tool.run(&["inspect", "db"]).fails(2, "is a directory");
    tool.run(&["inspect", "stranger", "--kind", "x"]).fails(2, "table, log, values, manifest");
    // A header whose record the file does not hold is the torn end of a log, but no MANIFEST.
    std::fs::write(tool.path("stranger"), b"\x01\x02\x03\x04\xff\x00\x01torn").expect("written");
    assert!(tool.ok(&["inspect", "stranger", "--kind", "log"]).contains("no damage"));
    let seen = tool.run(&["inspect", "stranger", "--kind", "manifest"]);
    let text = String::from_utf8_lossy(&seen.stdout);
    assert!(seen.status == 1 && text.contains("no edit can be read"), "{text}");
    assert!(text.contains("damaged in 1 place") && !text.contains("no damage"), "{text}");
    let name = manifest.rsplit('/').next().expect("a name");
    assert_eq!(tool.ok(&["inspect", "db/CURRENT"]), format!("{name}\n"));
    let current = tool.run(&["inspect", "db/CURRENT", "--json"]).json_lines().remove(0);
    assert_eq!(current["current"]["line"], name);
    std::fs::write(tool.path("CURRENT"), "nonsense").expect("written");
    let seen = tool.run(&["inspect", "CURRENT"]);
    assert!(seen.status == 1 && seen.stdout.starts_with(b"nonsense\nDAMAGE at 0: "), "{seen:?}");
    // Where one of several files cannot be read, JSON says which and why.
    std::fs::write(tool.path("bad.ldb"), "bad").expect("written");
    let seen = tool.run(&["inspect", "bad.ldb", &log, "--json", "--summary"]);
    let lines: Vec<Value> = String::from_utf8_lossy(&seen.stdout)
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect();
    assert_eq!((seen.status, lines.len(), &lines[0]["file"]), (1, 4, &"bad.ldb".into()));
    assert!(lines[1]["error"].as_str().is_some_and(|error| error.contains("bad.ldb")), "{lines:?}");
    assert!(lines[3]["log"].is_object(), "{lines:?}");
    tool.run(&["inspect", "nowhere"]).fails(2, "cannot open nowhere");
}

#[test]
fn damage_is_found_and_named() {
    let tool = Tool::new();
    tool.sample("db");
    let clean: Value = serde_json::from_str(&tool.ok(&["verify", "db", "--json"])).expect("JSON");
    assert_eq!((&clean["clean"], &clean["problems"]), (&true.into(), &Value::Array(Vec::new())));
    assert!(tool.ok(&["verify", "db"]).starts_with("no damage: "));

    let table = tool.files("db", ".ldb")[0].clone();
    flip(&table, 20);
    let found = tool.run(&["verify", "db"]);
    let text = String::from_utf8_lossy(&found.stdout);
    assert_eq!(found.status, 1, "{text}");
    assert!(text.contains(&name(&table)) && text.contains("checksum"), "{text}");
    let found = tool.run(&["verify", "db", "--json"]);
    let report: Value = serde_json::from_slice(&found.stdout).expect("JSON");
    assert_eq!((found.status, &report["clean"]), (1, &false.into()));
    let found = tool.run(&["inspect", &table.to_string_lossy(), "--summary"]);
    let text = String::from_utf8_lossy(&found.stdout);
    assert_eq!((found.status, found.stderr.as_str()), (1, ""));
    assert!(
        text.contains("DAMAGE at 0: checksum mismatch\n") && text.contains("damaged in 1 place"),
        "{text}"
    );
    tool.run(&["get", "db", "key00001"]).fails(2, "checksum");
    tool.run(&["scan", "db"]).fails(2, "checksum");
    let line = format!("inspect {} --summary\n", table.display());
    let in_shell = tool.run_with(&["shell", "--create", "sound"], line.as_bytes());
    assert_eq!((in_shell.status, in_shell.stderr.as_str()), (1, ""), "it was said already");
    tool.run(&["verify", "nowhere"]).fails(2, "nowhere");
}

#[test]
fn repair_brings_back_what_can_be_read() {
    let tool = Tool::new();
    tool.sample("db");
    let before = tool.ok(&["dump", "db"]);
    for manifest in tool.files("db", "MANIFEST-") {
        std::fs::remove_file(manifest).expect("removed");
    }
    assert_ne!(tool.run(&["scan", "db"]).status, 0);
    // Something may be lost when anything was wrong, and the status says so, if not in words.
    let repaired = tool.run(&["repair", "db", "--json"]);
    assert_eq!((repaired.status, repaired.stderr.as_str()), (1, ""));
    let report: Value = serde_json::from_slice(&repaired.stdout).expect("JSON");
    assert!(report["tables"].as_u64() > Some(0), "{report}");
    assert_ne!(report["problems"], Value::Array(Vec::new()));
    assert_eq!(tool.ok(&["dump", "db"]), before);
    assert!(tool.ok(&["verify", "db"]).starts_with("no damage"));
    assert!(tool.ok(&["repair", "db"]).starts_with("read "));
    let table = tool.files("db", ".ldb")[0].clone();
    flip(&table, 20);
    let repaired = tool.run(&["repair", "db"]);
    let text = String::from_utf8_lossy(&repaired.stdout);
    assert_eq!((repaired.status, repaired.stderr.as_str()), (1, ""));
    assert!(text.contains(&name(&table)) && text.contains("the database holds"), "{text}");
    assert!(tool.ok(&["verify", "db"]).starts_with("no damage"));
    let clean: Value = serde_json::from_str(&tool.ok(&["repair", "db", "--json"])).expect("JSON");
    assert_eq!(clean["problems"], Value::Array(Vec::new()));
    tool.run(&["repair", "nowhere"]).fails(2, "there is no database at nowhere");
    std::fs::create_dir(tool.path("empty")).expect("created");
    tool.run(&["repair", "empty"]).fails(2, "there is no database at empty: no file in it");
}

#[test]
fn a_checkpoint_is_a_database_of_its_own() {
    let tool = Tool::new();
    tool.sample("db");
    let all = tool.ok(&["dump", "db"]);
    let text = tool.ok(&["checkpoint", "db", "copies/first"]);
    assert!(text.starts_with("copies/first: ") && text.contains(" of them linked"), "{text}");
    tool.ok(&["put", "db", "later", "1"]);
    tool.ok(&["delete", "copies/first", "zebra"]);
    assert_eq!(tool.ok(&["dump", "db"]).lines().count(), all.lines().count() + 1);
    assert_eq!(tool.ok(&["dump", "copies/first"]).lines().count(), all.lines().count() - 1);
    tool.ok(&["verify", "copies/first"]);
    let report: Value =
        serde_json::from_str(&tool.ok(&["checkpoint", "db", "copies/second", "--json"]))
            .expect("JSON");
    assert!(
        report["linked"].as_u64() > Some(0)
            && report["tables"].as_u64() > report["linked"].as_u64(),
        "{report}"
    );
    assert_eq!(report["sequence"], 5);
    tool.run(&["checkpoint", "db", "copies/second"]).fails(2, "not empty");
    tool.run(&["checkpoint", "nowhere", "copies/third"]).fails(2, "nowhere");
    std::fs::write(tool.path("file"), "").expect("written");
    tool.run(&["checkpoint", "db", "file"]).fails(2, "file is a file; a copy needs a directory");
    for inside in ["db", "db/sub", "copies/../db/sub/sub"] {
        tool.run(&["checkpoint", "db", inside]).fails(2, "is in the database's own directory");
    }
    assert!(!tool.path("db/sub").exists());
    assert!(!tool.path("copies/third").exists());
    // Live, in a shell that writes.
    let script = b"put now 1\ncheckpoint copies/live\nput then 2\n";
    assert!(tool.run_with(&["shell", "db"], script).stderr.is_empty());
    assert_eq!(
        tool.ok(&["scan", "copies/live", "--from", "now", "--to", "u", "--keys-only"]),
        "now\n"
    );
}

#[test]
fn compaction_gives_space_back() {
    let tool = Tool::new();
    tool.sample("db");
    let deletes: String = (0..2000).map(|i| format!("delete key{i:05}\n")).collect();
    tool.ok_with(&["batch", "db"], deletes.as_bytes());
    let text = tool.ok(&["compact", "db", "--from", "a", "--to", "z"]);
    assert!(text.starts_with("tables held "), "{text}");
    let sizes: Value = serde_json::from_str(&tool.ok(&["compact", "db", "--json"])).expect("JSON");
    assert!(sizes["table_bytes_after"].as_u64() < Some(2000), "{sizes}");
    let nothing = "nothing to do: the tables are compact already; --force rewrites them\n";
    assert!(tool.ok(&["compact", "db"]).ends_with(nothing));
    assert!(!tool.ok(&["compact", "db", "--force"]).contains("nothing to do"));
    assert_eq!(tool.ok(&["dump", "db"]), "zebra\tstripes\n");
    tool.run(&["compact", "nowhere"]).fails(2, "nowhere");
}

#[test]
fn filters_stay_where_they_were() {
    let tool = Tool::new();
    let lines: String = (0..2000).map(|i| format!("key{i:05}\tvalue {i}\n")).collect();
    tool.ok_with(&["load", "with", "--bloom-bits", "10"], lines.as_bytes());
    tool.ok_with(&["load", "without"], lines.as_bytes());
    for (db, filter) in
        [("with", "leveldb.BuiltinBloomFilter2, Terrace's own"), ("without", "Terrace's own")]
    {
        // The second time the first compaction's tables say whether there shall be filters.
        let bits: &[&str] = if db == "with" { &["--bloom-bits", "10"] } else { &[] };
        tool.ok(&[&["compact", db], bits].concat());
        tool.ok(&["put", db, "key00000", "again"]);
        tool.ok(&["compact", db]);
        let table = tool.files(db, ".ldb").pop().expect("a table");
        let text = tool.ok(&["inspect", &table.to_string_lossy(), "--summary"]);
        assert!(text.contains(&format!("filters    {filter}\n")), "{text}");
    }
}

#[test]
fn destroying_takes_a_yes() {
    let tool = Tool::new();
    tool.sample("db");
    tool.run(&["destroy", "db"]).fails(2, "add --yes");
    assert!(tool.path("db/CURRENT").exists());
    assert_eq!(tool.ok(&["destroy", "db", "--yes"]), "");
    assert!(!tool.path("db").exists());
    tool.run(&["destroy", "db", "--yes"]).fails(2, "db");
    tool.sample("db");
    std::fs::write(tool.path("db/notes.txt"), "mine").expect("written");
    assert!(tool.ok(&["destroy", "db", "--yes"]).contains("stays"));
    assert_eq!(std::fs::read(tool.path("db/notes.txt")).expect("readable"), b"mine");
    tool.sample("kept");
    std::fs::create_dir(tool.path("kept/lost")).expect("created");
    std::fs::write(tool.path("kept/lost/000003.log"), "damaged").expect("written");
    assert!(tool.ok(&["destroy", "kept", "--yes"]).starts_with("kept/lost stays"));
    // After a failed creation only commands that create say how to try again.
    std::fs::create_dir(tool.path("half")).expect("created");
    std::fs::write(tool.path("half/MANIFEST-000001"), "").expect("written");
    let message = "there is no database at half, only files that a failed creation left";
    tool.run(&["delete", "half", "k"]).fails(2, &format!("{message}\n"));
    let hint = format!("{message}; --create makes a new one\n");
    tool.run(&["put", "half", "k", "v"]).fails(2, &hint);
    tool.sample("real");
    std::os::unix::fs::symlink("real", tool.path("name")).expect("linked");
    assert_eq!(tool.ok(&["destroy", "name", "--yes"]), "the directory name stays, empty\n");
    assert_eq!(std::fs::read_dir(tool.path("real")).expect("a directory").count(), 0);
    std::fs::create_dir(tool.path("other")).expect("created");
    tool.run(&["destroy", "other", "--yes"]).fails(2, "no database");
    assert!(tool.path("other").exists());
}

#[test]
fn help_teaches() {
    let tool = Tool::new();
    let help = tool.ok(&["--help"]);
    let commands = "put get delete scan load dump batch stat files inspect verify repair compact checkpoint destroy shell \
        bench";
    for command in commands.split(' ') {
        assert!(help.contains(&format!("\n  {command} ")), "{command}");
        let help = tool.ok(&[command, "--help"]);
        assert!(help.contains("Examples:\n"), "{command}");
        assert!(help.lines().all(|line| line.chars().count() <= 100), "{command}: {help}");
    }
    assert!(tool.ok(&["--version"]).starts_with("terrace "));
    for args in [&[][..], &["keyspace"]] {
        let nothing = tool.run(args);
        assert!(nothing.status == 2 && nothing.stdout.is_empty(), "{nothing:?}");
        assert!(!nothing.stderr.starts_with("terrace: "), "{}", nothing.stderr);
        assert!(nothing.stderr.contains("Usage: terrace"), "{}", nothing.stderr);
    }
    for (command, line) in [
        ("get", "Print JSON, one object a line"),
        ("load", "The input is JSON, one object a line"),
        ("dump", "The same as --format json"),
        ("compact", "--from and --to are pairs of hexadecimal digits"),
        ("files", "Print keys as pairs of hexadecimal digits"),
    ] {
        let help = tool.ok(&["help", command]);
        assert!(help.contains(line), "{command}: {help}");
    }
    tool.run(&["frobnicate"]).fails(2, "unrecognized subcommand");
}

#[test]
fn a_forced_compaction_rewrites_the_bottommost_level() {
    let tool = Tool::new();
    tool.sample("db");
    tool.ok(&["compact", "db"]);
    let compression = |db: &Tool| {
        let table = db.files("db", ".ldb")[0].to_string_lossy().into_owned();
        db.run(&["inspect", &table, "--json"]).json_lines()[0]["block"]["compression"].clone()
    };
    assert_eq!(compression(&tool), "snappy");
    tool.ok(&["compact", "db", "--compression", "none", "--force"]);
    assert_eq!(compression(&tool), "none");
    assert_eq!(tool.ok(&["scan", "db", "--count"]), "2000\n");
}

#[test]
fn a_repair_counts_what_is_in_logs() {
    let tool = Tool::new();
    tool.ok(&["put", "--create", "db", "apple", "red"]);
    let said = tool.ok(&["repair", "db"]);
    assert!(said.contains("0 entries in tables and 1 entry in logs"), "{said}");
    let json: Value = serde_json::from_str(&tool.ok(&["repair", "db", "--json"])).expect("JSON");
    assert_eq!((&json["entries"], &json["log_entries"]), (&0.into(), &1.into()));
}

/// How a MANIFEST of RocksDB 7.8 begins: with a tag that LevelDB has not in its second edit.
const ROCKSDB_MANIFEST: &str = "\
    56f9b8f81c0001011a6c6576656c64622e4279746577697365436f6d70617261746f722e173d065300010205\
    0a050401670008d407096101010000000000000961010100000000000001010505f4cb9fd806060100070008\
    07556e6b6e6f776e030805000000000000000c10fe73253c51bb39a95d38dc998b5d9e5b01";

#[test]
fn databases_of_rocksdb_are_refused_by_name() {
    let tool = Tool::new();
    for db in ["rocks", "bare"] {
        std::fs::create_dir(tool.path(db)).expect("created");
        let file = |name: &str| tool.path(db).join(name);
        std::fs::write(file("CURRENT"), "MANIFEST-000005\n").expect("written");
        let digits = ROCKSDB_MANIFEST.as_bytes().chunks(2);
        let bytes = digits.map(|pair| std::str::from_utf8(pair).expect("text"));
        let bytes = bytes.map(|pair| u8::from_str_radix(pair, 16).expect("a byte"));
        std::fs::write(file("MANIFEST-000005"), bytes.collect::<Vec<_>>()).expect("written");
        std::fs::write(file("000004.log"), "").expect("written");
    }
    // Its other files tell where there is no MANIFEST; a backup may lack them.
    let add_others = |db: &str| {
        std::fs::write(tool.path(db).join("IDENTITY"), "an id").expect("written");
        std::fs::write(tool.path(db).join("OPTIONS-000007"), "[Version]\n").expect("written");
    };
    add_others("rocks");
    std::fs::remove_file(tool.path("rocks/MANIFEST-000005")).expect("removed");
    // They may have been left behind, a MANIFEST as well.
    tool.ok(&["put", "--create", "converted", "a", "b"]);
    add_others("converted");
    std::fs::copy(tool.path("bare/MANIFEST-000005"), tool.path("converted/MANIFEST-999999"))
        .expect("copied");
    assert_eq!(tool.ok(&["get", "converted", "a"]), "b\n");
    for db in ["rocks", "bare"] {
        let before = state_of(&tool.path(db));
        let database = format!("--db={db}");
        for args in [
            &["get", db, "a"][..],
            &["put", db, "a", "b"],
            &["put", "--create", db, "a", "b"],
            &["load", db],
            &["scan", db],
            &["dump", db],
            &["stat", db],
            &["advise", db],
            &["verify", db],
            &["repair", db],
            &["compact", db],
            &["convert", db, "--to", "plain"],
            &["checkpoint", db, "copy"],
            &["shell", db],
            &["shell", "--read-only", db],
            &["destroy", db, "--yes"],
            &["bench", &database, "--benchmarks=fillseq", "--num=10", "--yes"],
        ] {
            let message = format!(
                "terrace: {db} is a RocksDB database: docs/migrating.md says how to convert it\n"
            );
            let ran = tool.run_with(args, b"a\tb\n");
            assert_eq!((ran.status, &ran.stderr), (2, &message), "{args:?}");
        }
        let after = state_of(&tool.path(db));
        assert!(after == before, "{db} was changed");
    }
}

#[test]
fn a_busy_database_is_said_to_be_and_can_be_waited_for() {
    let tool = Tool::new();
    tool.sample("db");
    let open = terrace::Db::open(tool.path("db"), terrace::Options::new()).expect("opens");
    let message = "terrace: db is open in another process (busy: lock db/LOCK";
    for args in [
        &["get", "db", "a"][..],
        &["put", "db", "a", "1"],
        &["update", "db", "n", "--add", "1"],
        &["cas", "db", "n", "1", "--if-absent"],
        &["verify", "db"],
        &["repair", "db"],
        &["destroy", "db", "--yes"],
        &["put", "db", "a", "1", "--wait", "0"],
    ] {
        let ran = tool.run(args);
        assert!(ran.status == 2 && ran.stderr.starts_with(message), "{args:?}: {ran:?}");
        // What has the option and did not use it names it.
        let hint = !args.contains(&"--wait") && args[0] != "destroy";
        assert_eq!(ran.stderr.contains("; --wait SECONDS waits"), hint, "{args:?}: {ran:?}");
    }
    let help = tool.ok(&["help", "update"]);
    assert!(help.contains("Exit status 2 if the database is busy"), "{help}");
    // Both wait until the database is closed; then one of them waits for the other.
    let update = ["update", "db", "n", "--add", "1", "--wait", "600"];
    let waiting: Vec<_> =
        (0..2).map(|_| tool.command(&update).spawn().expect("the command starts")).collect();
    open.close().expect("closes");
    for child in waiting {
        let ended = child.wait_with_output().expect("the command ends");
        assert!(ended.status.success(), "{ended:?}");
    }
    assert_eq!(tool.ok(&["get", "db", "n"]), "2\n");
    tool.ok(&["verify", "db", "--wait", "1"]);
}

#[test]
fn a_limit_of_file_sizes_is_a_failure() {
    let tool = Tool::new();
    std::fs::write(tool.path("value"), vec![7; 1 << 20]).expect("written");
    let script = "ulimit -f 64; exec \"$0\" put --create db k --value-file value";
    let mut shell = std::process::Command::new("bash");
    shell.args(["-c", script, env!("CARGO_BIN_EXE_terrace")]).current_dir(tool.path(""));
    let output = shell.output().expect("bash runs");
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{message}");
    assert!(message.starts_with("terrace: ") && message.contains("File too large"), "{message}");
}

/// Runs with so many KiB of address space.
fn run_within(tool: &Tool, kib: u32, args: &str) -> (Option<i32>, String) {
    let script = format!("ulimit -v {kib}; exec \"$0\" {args}");
    let mut shell = std::process::Command::new("bash");
    shell.args(["-c", &script, env!("CARGO_BIN_EXE_terrace")]).current_dir(tool.path(""));
    let output = shell.output().expect("bash runs");
    (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
}

/// The table of a database with a block of 5 MiB that takes 96 MiB of memory.
fn table_of_a_large_block(tool: &Tool) -> PathBuf {
    let value = std::fs::File::create(tool.path("value")).expect("created");
    value.set_len(96 << 20).expect("a file with a hole");
    tool.ok(&["put", "--create", "db", "k", "--value-file", "value"]);
    tool.ok(&["compact", "db"]);
    tool.files("db", ".ldb").pop().expect("a table")
}

#[test]
fn lack_of_memory_is_not_taken_for_damage() {
    let tool = Tool::new();
    let table = table_of_a_large_block(&tool);
    let intact = std::fs::read(&table).expect("read");
    let is_refused = |args: &str| {
        let (status, message) = run_within(&tool, 96 << 10, args);
        assert_eq!(status, Some(2), "{args}: {message}");
        let text = "block at offset 0: out of memory";
        assert!(message.starts_with("terrace: I/O error: "), "{args}: {message}");
        assert!(message.contains(text), "{args}: {message}");
        assert!(std::fs::read(&table).expect("still there") == intact, "{args}");
    };
    ["get db k", "verify db", "repair db"].into_iter().for_each(is_refused);
    tool.ok(&["verify", "db"]);
}

#[test]
fn repair_of_a_table_without_footer_fails_without_memory_and_keeps_it() {
    let tool = Tool::new();
    let table = table_of_a_large_block(&tool);
    let mut bytes = std::fs::read(&table).expect("read");
    bytes.truncate(bytes.len() - 60);
    std::fs::write(&table, bytes).expect("written");
    let (status, message) = run_within(&tool, 96 << 10, "repair db");
    assert_eq!(status, Some(2), "{message}");
    assert!(message.contains("block at offset 0: out of memory"), "{message}");
    tool.run(&["repair", "db"]);
    assert_eq!(tool.run(&["get", "--raw", "db", "k"]).stdout.len(), 96 << 20);
}
