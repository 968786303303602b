//! advise, and the presets that it speaks of.

use serde_json::Value;
use terrace::{Db, Options};
use terrace_testkit::leveldb::{Fill, Peer, PeerOptions};
use terrace_testkit::workload::Workload;

use crate::tool::{Tool, state_of};

impl Tool {
    fn advice(&self, args: &[&str]) -> Value {
        let mut all = vec!["advise", "--json"];
        all.extend(args);
        serde_json::from_str(&self.ok(&all)).expect("JSON")
    }

    /// Fills a database by `terrace bench`.
    fn benched(&self, db: &str, args: &[&str]) {
        let db = format!("--db={db}");
        let mut all = vec!["bench", &db, "--json"];
        all.extend(args);
        self.ok(&all);
    }
}

fn settings(report: &Value) -> Vec<&str> {
    let advice = report["advice"].as_array().expect("advice");
    advice.iter().map(|advice| advice["setting"].as_str().expect("a setting")).collect()
}

fn change_of<'a>(report: &'a Value, setting: &str) -> &'a str {
    let advice = report["advice"].as_array().expect("advice").iter();
    let found = advice.filter(|advice| advice["setting"] == setting).collect::<Vec<_>>();
    found.first().unwrap_or_else(|| panic!("nothing about {setting} in {report}"))["change"]
        .as_str()
        .expect("a change")
}

#[test]
fn a_healthy_database_needs_nothing_and_is_not_touched() {
    let tool = Tool::new();
    tool.sample("db");
    let before = state_of(&tool.path("db"));
    let text = tool.ok(&["advise", "db"]);
    assert!(text.contains("Nothing to change") && text.contains("Not seen:"), "{text}");
    let report = tool.advice(&["db"]);
    assert_eq!(
        (settings(&report).len(), &report["database"]["sample"]["entries"]),
        (0, &Value::from(2000))
    );
    assert!(state_of(&tool.path("db")) == before, "advise changed the database");
    assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");

    tool.run(&["advise", "nowhere"]).fails(2, "nowhere");
    assert_eq!(tool.run(&["advise", "db", "--workload", "none-such"]).status, 2);
}

#[test]
fn deletions_are_seen() {
    let tool = Tool::new();
    // A snapshot keeps the deletions and the entries that they hide, through every compaction
    // before the close.
    let options = Options::new().create_if_missing(true).write_buffer_size(256 << 10);
    let db = Db::open(tool.path("db"), options).expect("opens");
    let key = |n: u32| format!("key{n:08}");
    for n in 0..30_000 {
        db.put(key(n), [b'v'; 100]).expect("puts");
    }
    let snapshot = db.snapshot();
    for n in 0..30_000 {
        db.delete(key(n)).expect("deletes");
    }
    db.flush().expect("flushes");
    db.close().expect("closes");
    drop(snapshot);
    let report = tool.advice(&["db"]);
    assert!(settings(&report).contains(&"terrace compact"), "{report}");
    assert!(report["database"]["sample"]["deletions"].as_u64() > Some(1000), "{report}");
    assert!(report["database"]["info_log"]["flushes"].as_u64() > Some(10), "{report}");
    tool.ok(&["compact", "db"]);
    assert!(!settings(&tool.advice(&["db"])).contains(&"terrace compact"));

    // The info log is for people, and may be gone.
    for log in ["LOG", "LOG.old"] {
        std::fs::remove_file(tool.path("db").join(log)).expect("removed");
    }
    let text = tool.ok(&["advise", "db"]);
    assert!(text.contains("there is no info log"), "{text}");
}

#[test]
fn due_compactions_are_reported() {
    let Some(peer) = Peer::find() else { return };
    let tool = Tool::new();
    let options = PeerOptions { write_buffer: 64 << 10, ..PeerOptions::default() };
    let fill = Fill {
        workload: Workload::new(7),
        from: 0,
        to: 100_000,
        batch: 1,
        sync_every: 0,
        kill: false,
    };
    peer.fill(&tool.path("db"), &options, &fill).expect("LevelDB fills it");
    tool.ok(&["compact", "db"]);
    assert!(!settings(&tool.advice(&["db"])).contains(&"terrace compact"));
    // LevelDB's repair leaves every table at level 0, and these are enough for a compaction to be
    // due.
    peer.simple("repair", &tool.path("db"), &options).expect("LevelDB repairs it");
    let report = tool.advice(&["db"]);
    assert!(settings(&report).contains(&"terrace compact"), "{report}");
}

#[test]
fn few_open_files_are_seen() {
    let tool = Tool::new();
    tool.benched(
        "db",
        &["--benchmarks=fillseq", "--num=600000", "--compression=none", "--write_buffer_size=512K"],
    );
    let report = tool.advice(&["db"]);
    assert!(
        !settings(&report).contains(&"max_open_files"),
        "as many tables fit into the default: {report}"
    );
    // 64 tables may be open in any case.
    let report = tool.advice(&["db", "--max-open-files", "10"]);
    let wanted: usize = change_of(&report, "max_open_files")
        .rsplit(' ')
        .next()
        .expect("a word")
        .parse()
        .expect("a number");
    assert!(wanted > tool.files("db", ".ldb").len(), "{report}");
    assert!(
        change_of(&report, "block_cache_size").starts_with("from 8.00 MiB to 64.00 MiB"),
        "{report}"
    );
    let report = tool.advice(&["db", "--cache-size", "64M"]);
    assert!(!settings(&report).contains(&"block_cache_size"), "{report}");
}

#[test]
fn compression_is_judged_by_what_it_would_do() {
    let tool = Tool::new();
    let fill = ["--benchmarks=fillseq,waitcompact", "--num=100000", "--compression=none"];
    tool.benched("loose", &fill);
    let report = tool.advice(&["loose"]);
    assert!(change_of(&report, "compression").starts_with("to snappy"), "{report}");
    assert!(
        report["database"]["sample"]["would_compress_to_percent"].as_u64() < Some(70),
        "{report}"
    );
    assert!(change_of(&report, "compression").contains("`terrace compact --force`"), "{report}");
    tool.ok(&["compact", "--force", "loose"]);
    assert!(
        !settings(&tool.advice(&["loose"])).contains(&"compression"),
        "the advice was followed"
    );

    // Digits of a random number generator: what snappy cannot shrink stays as it is.
    let mut state = 1u64;
    let mut digits = || {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        format!("{:02x}", state >> 56)
    };
    let lines: String = (0..9000)
        .map(|i| format!("{i:08x}\t{}\n", (0..1024).map(|_| digits()).collect::<String>()))
        .collect();
    tool.ok_with(&["load", "random", "--hex"], lines.as_bytes());
    let report = tool.advice(&["random"]);
    assert_eq!(change_of(&report, "compression"), "to none", "{report}");
}

#[test]
fn one_huge_value_says_nothing_about_the_block_size() {
    let tool = Tool::new();
    let lines: String = (0..2000).map(|i| format!("key{i:05}\tvalue {i}\n")).collect();
    tool.ok_with(&["load", "db"], format!("{lines}z\t{}\n", "x".repeat(600 << 10)).as_bytes());
    let report = tool.advice(&["db"]);
    assert!(!settings(&report).contains(&"block_size"), "{report}");
    tool.ok_with(&["load", "large", "--block-size", "64K"], lines.as_bytes());
    assert_eq!(
        change_of(&tool.advice(&["large"]), "block_size").split(',').next(),
        Some("to 4.00 KiB")
    );
}

#[test]
fn a_damaged_table_does_not_stop_it() {
    let tool = Tool::new();
    tool.sample("db");
    let table = &tool.files("db", ".ldb")[0];
    let mut bytes = std::fs::read(table).expect("readable");
    bytes[100] ^= 0x40;
    std::fs::write(table, bytes).expect("written");
    let text = tool.ok(&["advise", "db"]);
    assert!(text.contains("see `terrace verify`"), "{text}");
}

#[test]
fn what_leveldb_made_gets_advice_too() {
    let Some(peer) = Peer::find() else { return };
    let tool = Tool::new();
    let options = PeerOptions { write_buffer: 64 << 10, ..PeerOptions::default() };
    let fill = Fill {
        workload: Workload::new(7),
        from: 0,
        to: 60_000,
        batch: 1,
        sync_every: 0,
        kill: false,
    };
    peer.fill(&tool.path("db"), &options, &fill).expect("LevelDB fills it");
    let before = state_of(&tool.path("db"));
    let report = tool.advice(&["db"]);
    assert!(state_of(&tool.path("db")) == before, "advise changed the database");
    assert!(change_of(&report, "table_filter_bits").contains("terrace compact"), "{report}");
    assert!(report["database"]["info_log"]["flushes"].as_u64() > Some(10), "{report}");
    tool.ok(&["compact", "--force", "db"]);
    assert!(!settings(&tool.advice(&["db"])).contains(&"table_filter_bits"));
}

#[test]
fn presets_are_taken_where_options_are() {
    let tool = Tool::new();
    tool.sample("db");
    for preset in ["data-logging", "analytics", "interactive"] {
        let report = tool.advice(&["db", "--workload", preset]);
        assert_eq!(report["preset"], preset);
        tool.ok(&["put", "db", "--preset", preset, "key", preset]);
        assert_eq!(tool.ok(&["get", "db", "key"]), format!("{preset}\n"));
        tool.benched(
            "bench",
            &["--benchmarks=fillseq,readrandom", "--num=1000", "--yes", "--preset", preset],
        );
    }
    let report = tool.advice(&["db", "--workload", "data-logging"]);
    assert_eq!(change_of(&report, "write_buffer_size"), "to 16.00 MiB");
    assert_eq!(tool.run(&["put", "db", "--preset", "fast", "key", "value"]).status, 2);
}

/// A run of the lab with figures of one section; a setting has the rate 300, the defaults 200.
fn lab_run(
    tool: &Tool,
    name: &str,
    suite: &str,
    section: &str,
    setting: &str,
    benchmark: &str,
) -> String {
    let figure = |setting: &str, rate: f64| {
        serde_json::json!({
            "section": section, "cell": 0, "benchmark": benchmark, "setting": setting, "engine": "terrace",
            "ops_per_sec": {"middle": rate, "min": rate, "max": rate, "spread": 0.0, "rounds": 1},
        })
    };
    let run = serde_json::json!({
        "run": {"schema": 1, "suite": suite, "began": "2026-11-21T10:00:00Z", "num": 1000},
        "figures": [figure("defaults", 200.0), figure(setting, 300.0)],
        "measurements": [],
    });
    std::fs::create_dir_all(tool.path(name)).expect("created");
    std::fs::write(tool.path(name).join("results.json"), run.to_string()).expect("written");
    name.to_owned()
}

#[test]
fn what_the_lab_measured_is_said() {
    let tool = Tool::new();
    tool.sample("db");
    let advise = ["advise", "db", "--workload", "data-logging", "--lab-run"];
    let with = |run: &str| {
        tool.ok(&[&advise[..], &[run]].concat()).split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let run = lab_run(
        &tool,
        "run",
        "configurations",
        "data-logging",
        "preset data-logging",
        "fillrandom",
    );
    let text = with(&run);
    assert!(
        text.contains(
            "fillrandom runs at 1.50 times the defaults with preset data-logging on terrace"
        ),
        "{text}"
    );
    assert!(
        text.contains("Measured by the lab's suite configurations, 1000 entries, 2026-11-21."),
        "{text}"
    );
    let report = tool.advice(&["db", "--workload", "data-logging", "--lab-run", &run]);
    assert!(
        report["lab_figures"].as_str().is_some_and(|source| source.contains("1000 entries")),
        "{report}"
    );

    // A run that has nothing on it says so; so does one of another suite, or none at all.
    let other = lab_run(&tool, "else", "configurations", "analytics", "none such", "readseq");
    assert!(with(&other).contains("Nothing of this was measured by"), "{text}");
    let wrong =
        lab_run(&tool, "wrong", "modern", "data-logging", "preset data-logging", "fillrandom");
    tool.run(&[&advise[..], &[&wrong]].concat()).fails(2, "of the suite modern");
    tool.run(&[&advise[..], &["nowhere"]].concat()).fails(2, "nowhere");
    std::fs::write(tool.path("run").join("results.json"), "{\"run\":").expect("written");
    tool.run(&[&advise[..], &["run"]].concat()).fails(2, "no run of the lab");
}

#[test]
fn large_values_are_measured_wherever_they_lie() {
    let tool = Tool::new();
    let lines: String =
        (0..600).map(|number| format!("key{number:03}\t{}\n", "v".repeat(20_000))).collect();
    tool.ok_with(&["load", "db", "--compression", "none"], lines.as_bytes());
    let report = tool.advice(&["db"]);
    assert!(change_of(&report, "value_log").starts_with("to 4.00 KiB"), "{report}");
    let text = tool.ok(&["advise", "db"]);
    assert!(text.contains("stored at 100 % of their raw size"), "{text}");
    // The few bytes that a convert flushes say nothing about write amplification.
    tool.ok(&["put", "db", "k", "v"]);
    tool.ok(&["convert", "db", "--to", "extended"]);
    let text = tool.ok(&["advise", "db"]);
    for part in ["values of 19.5", "value files", "1 compaction"] {
        assert!(text.contains(part), "{part} is not in\n{text}");
    }
    assert!(!text.contains("amplification"), "{text}");
    assert!(!settings(&tool.advice(&["db"])).contains(&"value_log"));
    tool.benched("busy", &["--benchmarks=fillrandom,waitcompact", "--num=100000"]);
    let text = tool.ok(&["advise", "busy"]);
    assert!(text.contains(", write amplification "), "{text}");
}
