//! convert, and what the other commands show of value files.

use serde_json::Value;

use crate::tool::{Tool, state_of};

/// A database of 40 entries, half of which have values of 10,000 bytes.
fn sample(tool: &Tool) -> String {
    let value = |number: usize| "v".repeat(if number.is_multiple_of(2) { 10_000 } else { 10 });
    let lines: String =
        (0..40).map(|number| format!("key{number:02}\t{number}{}\n", value(number))).collect();
    tool.ok_with(&["load", "db"], lines.as_bytes());
    tool.ok(&["dump", "db"])
}

fn json(text: &str) -> Value {
    serde_json::from_str(text).expect("JSON")
}

#[test]
fn convert_goes_both_ways() {
    let tool = Tool::new();
    let expected = sample(&tool);
    let text = tool.ok(&["convert", "db", "--to", "extended"]);
    assert!(text.contains("before: 1 table of") && text.contains(", no value files\n"), "{text}");
    assert!(text.contains(", 1 value file of") && text.contains("LevelDB does not open"), "{text}");
    assert_eq!(tool.ok(&["dump", "db"]), expected);
    assert_eq!(tool.files("db", ".vlog").len(), 1);
    tool.ok(&["verify", "db"]);

    let told = json(&tool.ok(&["convert", "db", "--to", "plain", "--json"]));
    assert_eq!((&told["extended"], &told["value_log"]), (&false.into(), &Value::Null));
    assert_eq!(
        (&told["before"]["value_files"], &told["after"]["value_files"]),
        (&1.into(), &0.into())
    );
    assert!(told["before"]["value_file_bytes"].as_u64() > Some(200_000), "{told}");
    assert_eq!(tool.files("db", ".vlog").len(), 0);
    assert_eq!(tool.ok(&["dump", "db"]), expected);
    let manifest = tool.files("db", "MANIFEST-")[0].to_string_lossy().into_owned();
    let text = tool.ok(&["inspect", &manifest, "--summary"]);
    assert!(text.contains("comparator     leveldb.BytewiseComparator"), "{text}");

    // A plain database converts to a plain one, and so does one without a value of that size.
    let text = tool.ok(&["convert", "db", "--to", "plain"]);
    assert!(text.ends_with("the database is plain: LevelDB opens it\n"), "{text}");
    let text = tool.ok(&["convert", "db", "--to", "extended", "--value-log", "16K"]);
    assert!(text.ends_with("is plain: it has no value of 16384 bytes or more\n"), "{text}");
}

#[test]
fn convert_refuses_what_it_cannot_do() {
    let tool = Tool::new();
    sample(&tool);
    let before = state_of(&tool.path("db"));
    tool.run(&["convert", "db"]).fails(2, "--to");
    tool.run(&["convert", "db", "--to", "rocksdb"]).fails(2, "plain, extended");
    tool.run(&["convert", "db", "--to", "plain", "--value-log", "4K"]).fails(2, "--value-log");
    tool.run(&["convert", "db", "--to", "extended", "--value-log", "0"])
        .fails(2, "for '--value-log <SIZE>': it must be at least 1");
    tool.run(&["convert", "nowhere", "--to", "plain"]).fails(2, "no database at nowhere");
    assert!(state_of(&tool.path("db")) == before, "a refused conversion changed the database");
    let _open = terrace::Db::open(tool.path("db"), terrace::Options::new()).expect("opens");
    tool.run(&["convert", "db", "--to", "extended"])
        .fails(2, "db is open in another process (busy: ");
    assert_eq!(tool.files("db", ".vlog").len(), 0);
}

#[test]
fn commands_show_value_files() {
    let tool = Tool::new();
    let plain = tool.ok_with(&["load", "plain"], b"a\t1\n");
    assert!(plain.starts_with("loaded 1 entry"), "{plain}");
    assert!(!tool.ok(&["stat", "plain"]).contains("value files"));
    sample(&tool);
    tool.ok(&["convert", "db", "--to", "extended", "--value-log", "5000"]);

    let stat = json(&tool.ok(&["stat", "db", "--json"]));
    let (bytes, used) = (stat["value_file_bytes"].as_u64(), stat["value_bytes_used"].as_u64());
    assert!(stat["value_files"] == 1 && bytes > used && used > Some(200_000), "{stat}");
    let text = tool.ok(&["stat", "db"]);
    let line = text.lines().find(|line| line.starts_with("value files")).expect("a line");
    assert!(line.contains("1, ") && line.ends_with("of it used"), "{line}");

    let lines = tool.run(&["files", "db", "--json"]).json_lines();
    let values: Vec<_> = lines.iter().filter(|line| line["type"] == "values").collect();
    assert!(values.len() == 1 && values[0]["size"].as_u64() == bytes, "{values:?}");

    let file = |part: &str| tool.files("db", part)[0].to_string_lossy().into_owned();
    let text = tool.ok(&["inspect", &file(".vlog"), "--keys"]);
    std::fs::copy(&tool.files("db", ".vlog")[0], tool.path("copied")).expect("copied");
    let named = tool.ok(&["inspect", "copied", "--kind", "values", "--summary"]);
    assert!(named.starts_with("value file of"), "{named}");
    for part in ["value file of", "batches    20,", "put\tkey38\t(10002 bytes)", "no damage"] {
        assert!(text.contains(part), "{part} is not in\n{text}");
    }
    let table = file(".ldb");
    let text = tool.ok(&["inspect", &table, "--values"]);
    let name = values[0]["name"].as_str().expect("a name");
    for part in ["put\tkey38\t(10002 bytes at ", name, "points at  20 values in value files"] {
        assert!(text.contains(part), "{part} is not in\n{text}");
    }
    let items = tool.run(&["inspect", &table, "--keys", "--json"]).json_lines();
    let pointed = items.iter().filter(|item| item["entry"]["value_file"] == name).count();
    assert_eq!(pointed, 20);
    let text = tool.ok(&["inspect", &file("MANIFEST-")]);
    for part in ["comparator terrace.extended.", "add value file", "points at"] {
        assert!(text.contains(part), "{part} is not in\n{text}");
    }

    let copied = json(&tool.ok(&["checkpoint", "db", "copy", "--json"]));
    assert!(copied["value_files"] == 1 && copied["value_bytes"].as_u64() == bytes, "{copied}");
    let text = tool.ok(&["checkpoint", "db", "copy2"]);
    assert!(text.contains("1 table and 1 value file, 2 of them linked"), "{text}");
}

#[test]
fn options_of_writing_commands_make_value_files() {
    let tool = Tool::new();
    let expected = sample(&tool);
    let text = tool.ok(&["compact", "db", "--force", "--value-log", "4K"]);
    assert!(text.contains("value files held 0 B, now hold"), "{text}");
    assert_eq!(tool.files("db", ".vlog").len(), 1);
    let told = json(&tool.ok(&["compact", "db", "--force", "--json"]));
    assert_eq!(told["value_file_bytes_after"], 0);
    assert_eq!(tool.files("db", ".vlog").len(), 0);
    let script = "compact --force\nstat\n";
    let text = tool.ok_with(&["shell", "db", "--value-log", "4K"], script.as_bytes());
    assert!(text.contains("value files"), "{text}");
    assert_eq!(tool.ok(&["dump", "db"]), expected);
    let bench = ["bench", "--benchmarks=fillrandom,waitcompact,stats", "--num=100"];
    let values = ["--value_size=20000", "--value_log=4K", "--json"];
    let lines = tool.run(&[&bench[..], &values[..]].concat()).json_lines();
    assert!(lines.iter().all(|line| line["error"].is_null()), "{lines:?}");
}

#[test]
fn damage_in_a_value_file_is_found_and_named() {
    let tool = Tool::new();
    sample(&tool);
    tool.ok(&["convert", "db", "--to", "extended"]);
    let path = &tool.files("db", ".vlog")[0];
    let mut bytes = std::fs::read(path).expect("readable");
    bytes[1000] ^= 0x40;
    std::fs::write(path, bytes).expect("written");
    let name = path.file_name().and_then(|name| name.to_str()).expect("a name");
    let verified = tool.run(&["verify", "db"]);
    let text = String::from_utf8_lossy(&verified.stdout);
    assert!(verified.status == 1 && text.contains(name) && text.contains("key00"), "{text}");
    tool.run(&["get", "db", "key00"]).fails(2, name);
    assert_eq!(tool.run(&["inspect", path.to_str().expect("text")]).status, 1);
    // Nothing is given up: the table that points at the damage stays.
    tool.run(&["convert", "db", "--to", "plain"]).fails(2, name);
    assert_eq!(tool.files("db", ".vlog").len(), 1);
    assert!(tool.ok(&["get", "db", "key02"]).len() > 10_000);
}

#[test]
fn many_problems_of_a_file_are_cut_short_in_text() {
    let tool = Tool::new();
    let lines: String =
        (0..30).map(|number| format!("key{number:02}\t{}\n", "v".repeat(10_000))).collect();
    tool.ok_with(&["load", "db"], lines.as_bytes());
    tool.ok(&["convert", "db", "--to", "extended"]);
    std::fs::remove_file(&tool.files("db", ".vlog")[0]).expect("removed");
    let json: Value =
        serde_json::from_slice(&tool.run(&["verify", "db", "--json"]).stdout).expect("JSON");
    let problems = json["problems"].as_array().expect("problems").len();
    assert!(problems >= 30, "{json}");
    for command in ["verify", "repair"] {
        let ran = tool.run(&[command, "db"]);
        let text = String::from_utf8_lossy(&ran.stdout);
        assert_eq!(ran.status, 1, "{ran:?}");
        assert!((7..20).contains(&text.lines().count()), "{text}");
        assert!(text.contains(": and ") && text.contains(" more; --json lists them all"), "{text}");
    }
}

#[test]
fn a_compaction_ends_when_unused_values_are_gone() {
    let tool = Tool::new();
    let lines: String =
        (0..400).map(|number| format!("key{number:03}\t{}\n", "v".repeat(10_000))).collect();
    tool.ok_with(&["load", "db"], lines.as_bytes());
    tool.ok(&["convert", "db", "--to", "extended"]);
    let overwrites: String = (0..360).map(|number| format!("put key{number:03} small\n")).collect();
    tool.ok_with(&["batch", "db", "--value-log", "4K"], overwrites.as_bytes());
    let told = json(&tool.ok(&["compact", "db", "--value-log", "4K", "--json"]));
    let (before, after) = (&told["value_file_bytes_before"], &told["value_file_bytes_after"]);
    assert!(before.as_u64() > Some(3_900_000) && after.as_u64() < Some(1_000_000), "{told}");
    let held = |tool: &Tool| {
        let sizes =
            tool.files("db", ".vlog").into_iter().map(|file| file.metadata().expect("a size"));
        sizes.map(|metadata| metadata.len()).sum::<u64>()
    };
    assert_eq!(after.as_u64(), Some(held(&tool)), "what is said is what is there");
    assert_eq!(tool.ok(&["get", "db", "key399"]).len(), 10_001);

    // Tables that are compact stay as they are, and so does what they point at.
    tool.ok(&["compact", "db"]);
    assert_eq!(after.as_u64(), Some(held(&tool)));
    tool.ok(&["compact", "db", "--force"]);
    assert_eq!(held(&tool), 0);
}

#[test]
fn a_load_says_that_values_stay_in_tables() {
    let tool = Tool::new();
    let line = format!("key\t{}\n", "v".repeat(5000));
    let text = tool.ok_with(&["load", "db", "--value-log", "4K"], line.as_bytes());
    let command = "`terrace convert db --to extended --value-log 4096`";
    assert!(text.starts_with("loaded 1 entry") && text.contains(command), "{text}");
    assert!(tool.files("db", ".vlog").is_empty());
    tool.ok(&["convert", "db", "--to", "extended", "--value-log", "4096"]);
    assert_eq!(tool.files("db", ".vlog").len(), 1);
    let text = tool.ok_with(&["load", "db", "--value-log", "8K"], line.as_bytes());
    assert_eq!(text.lines().count(), 1, "{text}");
    assert_eq!(tool.ok_with(&["load", "db"], line.as_bytes()).lines().count(), 1);
    assert_eq!(
        tool.run_with(
            &["load", "db", "--value-log", "4K", "--json"],
            b"{\"key\":\"a\",\"value\":\"b\"}\n"
        )
        .json_lines()
        .len(),
        1
    );
}

/// LZ4 makes a database extended as value files do.
#[test]
fn a_database_with_lz4_is_extended_until_it_is_converted() {
    let tool = Tool::new();
    // A key is no name of a comparator.
    let lines: String =
        (0..2000).map(|i| format!("terrace.extended.{i:05}\tvalue {i}\n")).collect();
    tool.ok_with(&["load", "db", "--compression", "lz4"], lines.as_bytes());
    tool.ok(&["compact", "db", "--compression", "lz4"]);
    assert!(tool.ok(&["stat", "db"]).contains("yes: LevelDB refuses the database\n"));
    let stat: Value = serde_json::from_str(&tool.ok(&["stat", "db", "--json"])).expect("JSON");
    assert_eq!(
        (&stat["extended"], &stat["tables_by_compression"]["lz4"]),
        (&true.into(), &1.into())
    );
    assert!(tool.ok(&["stat", "db"]).contains("lz4 in 1 of them\n"));
    assert!(tool.ok(&["files", "db"]).lines().any(|line| line.contains(" lz4 ")));
    let tables = tool.run(&["files", "db", "--json"]).json_lines();
    let table = tables.iter().find(|line| line["type"] == "table").expect("a table");
    assert_eq!(table["compressions"], serde_json::json!(["lz4"]));
    let table = tool.files("db", ".ldb").pop().expect("a table");
    let blocks = tool.ok(&["inspect", &table.to_string_lossy()]);
    assert!(blocks.contains("lz4"), "{blocks}");
    tool.run(&["convert", "db", "--to", "plain", "--compression", "lz4"])
        .fails(2, "LevelDB does not read that: drop --compression");
    assert!(tool.ok(&["convert", "db", "--to", "plain"]).ends_with("LevelDB opens it\n"));
    assert!(!tool.ok(&["stat", "db"]).contains("LevelDB refuses"));
    assert_eq!(tool.ok(&["dump", "db"]), lines);
    if cfg!(not(feature = "zstd")) {
        tool.run(&["compact", "db", "--compression", "zstd"]).fails(2, "the feature zstd");
    }
}

/// Short entries that are alike share a dictionary.
#[test]
fn zstd_dictionaries_are_shown_and_converted() {
    let tool = Tool::new();
    tool.run(&["compact", "db", "--zstd-dictionary", "7"]).fails(2, "it must be from 2K to 256K");
    if cfg!(not(feature = "zstd")) {
        return;
    }
    let lines: String = (0..3000u32)
        .map(|i| {
            let hash = i.wrapping_mul(2_654_435_761);
            format!("k{i:05}\t{{customer: {hash}, state: active, balance_cents: {}}}\n", hash % 997)
        })
        .collect();
    let zstd = ["--compression", "zstd", "--zstd-dictionary", "4K"];
    tool.ok_with(&[&["load", "db"], &zstd[..]].concat(), lines.as_bytes());
    tool.ok(&[&["compact", "db", "--force"], &zstd[..]].concat());
    assert!(tool.ok(&["stat", "db"]).contains("zstd-dictionary in 1 of them"));
    let table = tool.files("db", ".ldb").pop().expect("a table");
    let shown = tool.ok(&["inspect", &table.to_string_lossy()]);
    assert!(shown.contains("terrace.zstd-dictionary  0 ("), "{shown}");
    assert!(shown.contains("zstd with a dictionary of "), "{shown}");
    assert!(tool.ok(&["convert", "db", "--to", "plain"]).ends_with("LevelDB opens it\n"));
    assert_eq!(tool.ok(&["dump", "db"]), lines);
}

/// A process that was killed after its last value file went leaves the name behind.
#[test]
fn stat_says_that_a_database_is_extended_by_name_alone() {
    let tool = Tool::new();
    let options = terrace::Options::new().create_if_missing(true).value_log(Some(100));
    let db = terrace::Db::open(tool.path("db"), options).expect("opens");
    db.put("key", [7; 1_000]).expect("writes");
    db.flush().expect("flushes");
    assert!(db.stats().is_extended);
    db.delete("key").expect("deletes");
    db.compact_range::<&[u8]>(..).expect("compacts");
    db.wait_idle().expect("rests");
    assert!(!db.stats().is_extended);
    std::fs::create_dir(tool.path("killed")).expect("a directory");
    for file in std::fs::read_dir(tool.path("db")).expect("files") {
        let file = file.expect("a file");
        if file.file_type().expect("a type").is_file() {
            let copy = tool.path("killed").join(file.file_name());
            std::fs::copy(file.path(), copy).expect("copies");
        }
    }
    assert!(tool.ok(&["stat", "killed"]).contains("by name, until the database is next closed"));
    let stat = json(&tool.ok(&["stat", "killed", "--json"]));
    assert_eq!(stat["extended"], true);
}
