//! load and dump: every byte comes back in every format, and mistakes in the input are found.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use crate::tool::Tool;

/// Entries with every byte in keys and values, empty keys and values among them.
fn hard_entries() -> String {
    let mut lines = String::from("\t\n");
    for byte in 0..=255u8 {
        lines.push_str(&format!("{byte:02x}\t{byte:02x}{:02x}\n", byte.wrapping_add(1)));
    }
    let all: String = (0..=255).map(|byte| format!("{byte:02x}")).collect();
    lines.push_str(&format!("{all}\t{all}\n{all}ff\t\n"));
    lines
}

#[test]
fn every_byte_survives_every_format() {
    let tool = Tool::new();
    tool.ok_with(&["load", "first", "--hex"], hard_entries().as_bytes());
    let expected = tool.ok(&["dump", "first", "--hex"]);
    assert_eq!(expected.lines().count(), 259);
    let formats: [(&[&str], &[&str]); 8] = [
        (&[], &[]),
        (&["--hex"], &["--hex"]),
        (&["--base64"], &["--base64"]),
        (&["--format", "json"], &["--format", "json"]),
        (&["--json", "--hex"], &["--format", "json", "--hex"]),
        (&["--format", "json", "--hex"], &["--json", "--hex"]),
        (&["--format", "bdb"], &["--format", "bdb"]),
        (&["--format", "bdb", "--printable"], &["--format", "bdb"]),
    ];
    for (number, (dump, load)) in formats.into_iter().enumerate() {
        let dumped = tool.run(&[&["dump", "first"], dump].concat());
        assert_eq!((dumped.status, dumped.stderr.as_str()), (0, ""));
        let db = format!("copy{number}");
        let loaded = tool.ok_with(&[&["load", &db], load].concat(), &dumped.stdout);
        assert!(
            loaded.starts_with("loaded 259 entries") || loaded.contains("\"entries\":259"),
            "{loaded}"
        );
        assert_eq!(tool.ok(&["dump", &db, "--hex"]), expected, "{dump:?}");
    }
}

#[test]
fn dumps_go_to_files_and_take_ranges() {
    let tool = Tool::new();
    tool.sample("db");
    assert_eq!(tool.ok(&["dump", "db", "all.txt"]), "");
    assert_eq!(
        tool.ok(&["load", "copy", "all.txt", "--format", "text", "--json"]),
        "{\"bytes\":34885,\"entries\":2000}\n"
    );
    assert_eq!(tool.ok(&["dump", "copy"]), tool.ok(&["dump", "db"]));
    assert_eq!(
        tool.ok(&["dump", "db", "--prefix", "key0000", "--to", "key00002"]),
        "key00000\tvalue 0\nkey00001\tvalue 1\n"
    );
    let bdb = "VERSION=3\nformat=print\ntype=btree\nHEADER=END\n zebra\n stripes\nDATA=END\n";
    assert_eq!(tool.ok(&["dump", "db", "-", "--from", "z", "--format", "bdb", "--printable"]), bdb);
    tool.run(&["dump", "db", "no/such/place"]).fails(2, "cannot create no/such/place");
    tool.run(&["dump", "nowhere", "out.txt"]).fails(2, "nowhere");
    assert!(!tool.path("out.txt").exists());
}

#[test]
fn wrong_lines_are_named_and_what_precedes_them_stays() {
    let tool = Tool::new();
    for (number, (options, input, message)) in [
        (
            &[][..],
            &b"a\t1\nb 2\n"[..],
            "standard input:2: no TAB between key and value (1 entry before it loaded)",
        ),
        (&[], b"a\t1\nb\t\\q\n", "standard input:2: value: unknown escape \\q"),
        (&[], b"{\"key\":\"a\",\"value\":\"1\"}\n", "this looks like --format json"),
        (&[], b"VERSION=3\n", "this looks like --format bdb"),
        (&["--hex"], b"61\t1\n", "standard input:1: value: an odd number"),
        (&["--format", "json"], b"{\"key\":\"a\"}\n", "standard input:1: missing field `value`"),
        (
            &["--format", "json"],
            b"{\"key\":\"a\",\"val",
            "standard input:1: this is no JSON object",
        ),
        (&["--format", "json"], b"{\n\"key\":\"a\"}\n", "`jq -c` prints such lines"),
        (&["--format", "json"], b"[\"a\",\"b\"]\n", "standard input:1: this is no JSON object"),
        (
            &["--format", "json"],
            b"{\"key\":\"a\",\"value\":\"1\",\"ttl\":9}\n",
            "standard input:1: unknown field `ttl`",
        ),
        (&["--format", "bdb"], b"a\t1\n", "standard input:1: not a header line"),
        (
            &["--format", "bdb"],
            b"format=print\nHEADER=END\n a\n 1\n b\n",
            "ends after line 5: DATA=END is missing",
        ),
    ]
    .into_iter()
    .enumerate()
    {
        let db = format!("db{number}");
        tool.run_with(&[&["load", &db], options].concat(), input).fails(2, message);
    }
    assert_eq!(tool.ok(&["scan", "db0"]), "a\t1\n");
    assert_eq!(tool.ok(&["scan", "db11"]), "a\t1\n");
    tool.run(&["load", "db", "no-such-file"]).fails(2, "cannot open no-such-file");
    assert!(!tool.path("db").exists());
    tool.run_with(&["load", "db", "--no-create"], b"a\t1\n").fails(2, "db");
    assert!(!tool.path("db").exists());
    tool.run_with(&["load", "db", "--no-create", "--create"], b"").fails(2, "cannot be used with");
    tool.run_with(&["load", "db", "--create"], b"a\t1\n").ok();
}

#[test]
fn many_entries_load_in_any_order() {
    let tool = Tool::new();
    let lines: String =
        (0..25_000).map(|i| format!("{:08}\tvalue {i}\n", i * 7919 % 25_000)).collect();
    std::fs::write(tool.path("entries"), &lines).expect("written");
    assert!(tool.ok(&["load", "db", "entries"]).starts_with("loaded 25000 entries"));
    assert_eq!(tool.ok(&["scan", "db", "--count"]), "25000\n");
    let mut sorted: Vec<_> = lines.lines().collect();
    sorted.sort_unstable();
    assert!(tool.ok(&["dump", "db"]).lines().eq(sorted));
}

#[test]
fn lines_may_end_as_on_windows() {
    let tool = Tool::new();
    let bdb = "VERSION=3\nformat=bytevalue\ntype=btree\nHEADER=END\n 61\n 31\n 62\n 0d\nDATA=END\n";
    let print = "VERSION=3\nformat=print\ntype=btree\nHEADER=END\n a\n 1\n b\n \\0d\nDATA=END\n";
    let json = "{\"key\":\"a\",\"value\":\"1\"}\n\n{\"key\":\"b\",\"value\":\"\\r\"}\n";
    for (number, (options, input)) in [
        (&[][..], "a\t1\n\nb\t\\r\n"),
        (&["--hex"], "61\t31\n62\t0d\n"),
        (&["--base64"], "YQ==\tMQ==\nYg==\tDQ==\n"),
        (&["--format", "json"], json),
        (&["--format", "bdb"], bdb),
        (&["--format", "bdb"], print),
    ]
    .into_iter()
    .enumerate()
    {
        let db = format!("db{number}");
        let input = input.replace('\n', "\r\n");
        tool.ok_with(&[&["load", &db], options].concat(), input.as_bytes());
        assert_eq!(tool.ok(&["scan", &db]), "a\t1\nb\t\\r\n", "{options:?}");
    }
}

#[test]
fn a_dump_that_fails_leaves_the_file_as_it_was() {
    let tool = Tool::new();
    tool.sample("db");
    let mode =
        |name: &str| tool.path(name).metadata().expect("a file").permissions().mode() & 0o7777;
    std::fs::write(tool.path("out.txt"), "a good backup").expect("written");
    let usual = mode("out.txt");
    std::fs::set_permissions(tool.path("out.txt"), Permissions::from_mode(0o640)).expect("changed");
    let expected = tool.ok(&["dump", "db"]);

    let table = tool.files("db", ".ldb")[0].clone();
    let sound = std::fs::read(&table).expect("readable");
    let mut damaged = sound.clone();
    damaged[sound.len() / 2] ^= 0x40;
    std::fs::write(&table, damaged).expect("written");
    tool.run(&["dump", "db", "out.txt"]).fails(2, "checksum");
    tool.run(&["dump", "db", "new.txt"]).fails(2, "checksum");
    assert_eq!(std::fs::read_to_string(tool.path("out.txt")).expect("readable"), "a good backup");
    assert_eq!(
        tool.path("").read_dir().expect("a directory").count(),
        2,
        "a failed dump leaves nothing behind"
    );

    std::fs::write(&table, sound).expect("written");
    std::os::unix::fs::symlink("out.txt", tool.path("link.txt")).expect("linked");
    tool.ok(&["dump", "db", "link.txt"]);
    tool.ok(&["dump", "db", "new.txt"]);
    assert!(tool.path("link.txt").is_symlink());
    for (name, expected_mode) in [("out.txt", 0o640), ("new.txt", usual)] {
        assert_eq!(std::fs::read_to_string(tool.path(name)).expect("readable"), expected, "{name}");
        assert_eq!(mode(name), expected_mode, "{name}");
    }
    assert_eq!(tool.ok(&["dump", "db", "/dev/stdout"]), expected);
    assert_eq!(tool.ok(&["dump", "db", "/dev/null"]), "");
    assert_eq!(tool.path("").read_dir().expect("a directory").count(), 4);
}

#[test]
fn json_strings_are_text_and_other_bytes_are_base64_objects() {
    let tool = Tool::new();
    let foreign = r#"{"key":"p","value":"C:\\temp\\users\\x00"}
{"key":"q","value":"x\ny\t\u00e9\u0000"}
{"value":{"base64":"/wA="},"key":{"base64":"cv8="}}
"#;
    tool.ok_with(&["load", "db", "--json"], foreign.as_bytes());
    assert_eq!(tool.run(&["get", "db", "p", "--raw"]).stdout, br"C:\temp\users\x00");
    assert_eq!(tool.run(&["get", "db", "q", "--raw"]).stdout, "x\ny\t\u{e9}\0".as_bytes());
    assert_eq!(tool.run(&["get", "db", r"r\xff", "--raw"]).stdout, b"\xff\0");
    let printed = tool.run(&["get", "db", "q", "--json"]).json_lines();
    assert_eq!(printed, [serde_json::json!({ "key": "q", "value": "x\ny\t\u{e9}\0" })]);
    let scanned = tool.run(&["scan", "db", "--json"]).json_lines();
    assert_eq!(scanned[0], serde_json::json!({ "key": "p", "value": r"C:\temp\users\x00" }));
    assert_eq!(
        scanned[2],
        serde_json::json!({ "key": { "base64": "cv8=" }, "value": { "base64": "/wA=" } })
    );
    assert_eq!(
        tool.run(&["scan", "db", "--json", "--keys-only"]).json_lines()[2]["key"]["base64"],
        "cv8="
    );
    for (line, message) in [
        (r#"{"key":"a","value":{"base64":"?"}}"#, "value: not base64"),
        (r#"{"key":"a","value":{"hex":"00"}}"#, "standard input:1: "),
        (r#"{"key":"a","value":1}"#, "standard input:1: "),
    ] {
        tool.run_with(&["load", "bad", "--json"], line.as_bytes()).fails(2, message);
    }
}

#[test]
fn a_dump_never_replaces_a_file_of_a_database() {
    let tool = Tool::new();
    tool.sample("db");
    std::os::unix::fs::symlink("db", tool.path("link")).expect("linked");
    let manifest = tool.files("db", "MANIFEST-")[0].to_string_lossy().into_owned();
    let before = crate::tool::state_of(&tool.path("db"));
    for to in [
        "db/CURRENT",
        "db/LOCK",
        "db/LOG",
        "db/000099.ldb",
        "db/999999.log",
        "link/CURRENT",
        &manifest,
    ] {
        tool.run(&["dump", "db", to]).fails(2, "is a name of the database's own files");
    }
    std::os::unix::fs::symlink("db/CURRENT", tool.path("current")).expect("linked");
    tool.run(&["dump", "db", "current"]).fails(2, "is a name of the database's own files");
    // A link without a target is not followed, however many links it takes.
    for (target, name) in
        [("db/000099.ldb", "dangling"), ("dangling", "chain"), ("elsewhere", "harmless")]
    {
        std::os::unix::fs::symlink(target, tool.path(name)).expect("linked");
        tool.run(&["dump", "db", name]).fails(2, "a symbolic link to a file that does not exist");
    }
    assert!(!tool.path("elsewhere").exists());
    assert!(crate::tool::state_of(&tool.path("db")) == before);
    tool.ok(&["dump", "db", "CURRENT"]);
}

/// The entry that says which settings a keyspace has.
const USERS: &str = "!$terrace!keyspace!users!";

#[test]
fn a_load_keeps_the_settings_of_keyspaces() {
    let tool = Tool::new();
    tool.ok(&["keyspace", "create", "--create", "--expiry", "db", "users"]);
    tool.ok(&["put", "db", "--keyspace", "users", "a", "1", "--ttl", "1000"]);
    tool.ok(&["keyspace", "create", "--create", "other", "users"]);
    tool.ok(&["put", "other", "--keyspace", "users", "b", "2"]);
    tool.ok(&["put", "other", " first", "3"]);
    let (before, dump) = (tool.ok(&["dump", "db"]), tool.ok(&["dump", "other"]));
    let ran = tool.run_with(&["load", "db"], dump.as_bytes());
    assert!(ran.stderr.ends_with("; nothing was loaded\n"), "{ran:?}");
    ran.fails(
        2,
        "standard input:2: the keyspace users has other settings in the database (expiry) than in \
         the input (none); `terrace dump`",
    );
    assert_eq!(tool.ok(&["dump", "db"]), before);
    // As the message says.
    let entries = tool.ok(&["dump", "other", "--keyspace", "users"]);
    tool.ok_with(&["load", "db", "--keyspace", "users"], entries.as_bytes());
    assert_eq!(tool.ok(&["scan", "db", "--keyspace", "users"]), "a\t1\nb\t2\n");
    // A dump comes back into its own database and into a new one, nested keyspaces too.
    tool.ok(&["keyspace", "create", "--expiry", "--ttl", "60", "db", "users", "old"]);
    tool.ok(&["put", "db", "--keyspace", "users", "--keyspace", "old", "c", "3"]);
    let dump = tool.ok(&["dump", "db"]);
    assert!(dump.contains("!$terrace!clock\t"), "{dump}");
    for to in ["db", "new"] {
        tool.ok_with(&["load", to], dump.as_bytes());
        assert_eq!(tool.ok(&["dump", to]), dump);
    }
    // Two dumps in one input that do not agree.
    let both = format!("{dump}{}", tool.ok(&["dump", "other"]));
    let message = "other settings before this line (expiry) than in the input (none)";
    tool.run_with(&["load", "both"], both.as_bytes()).fails(2, message);
    assert_eq!(tool.ok(&["dump", "both"]), "");
}

#[test]
fn a_load_takes_own_entries_that_a_dump_has_and_no_others() {
    let tool = Tool::new();
    // This version gives such a key no meaning; LevelDB may have written it.
    tool.ok_with(&["load", "other"], "!$terrace!else\t1\n".as_bytes());
    assert_eq!(tool.ok(&["dump", "other"]), "!$terrace!else\t1\n");
    // An earlier mark of the clock changes nothing.
    let clock = |millis: u32| format!("!$terrace!clock\tclock 1\\n{millis}\\n\n");
    tool.ok_with(&["load", "clock"], clock(2_000).as_bytes());
    tool.ok_with(&["load", "clock"], clock(1_000).as_bytes());
    assert_eq!(tool.ok(&["dump", "clock"]), clock(2_000));
    let none = "!$terrace!keyspace!a!!b!\tkeyspace 1\\n\n";
    tool.ok_with(&["load", "fine"], none.as_bytes());
    assert_eq!(tool.ok(&["keyspace", "list", "fine", "a"]), "b\n");
    for (line, message) in [
        (&*format!("{USERS}\tgarbage\n"), "the keyspace users: its entry in the catalogue is of"),
        (&format!("{USERS}\tkeyspace 1\\ncipher aes\\n\n"), "with the unknown setting cipher aes"),
        ("!$terrace!keyspace!a!!b!\t\n", "the keyspace a > b: its entry in the catalogue"),
        ("!$terrace!keyspace!a!b!\tkeyspace 1\\n\n", "the name \"a!b\" of a keyspace"),
        ("!$terrace!keyspace!$terrace!\tkeyspace 1\\n\n", "is reserved"),
        ("!$terrace!keyspace!\tkeyspace 1\\n\n", "are Terrace's own"),
        ("!$terrace!clock\tclock 1\\nsoon\\n\n", "the entry of the clock of expiry"),
        ("!$terrace!prepared!pay\tprepared 1\\n\n", "are Terrace's own"),
        ("!$terrace!clock\tclock 1\\n4102444800000\\n\n", "more than a day ahead"),
    ] {
        let input = format!("a\t1\n{line}");
        tool.run_with(&["load", "db"], input.as_bytes()).fails(2, message);
        assert_eq!(tool.ok(&["scan", "db", "--from", ""]), "", "{line}");
        assert_eq!(tool.ok(&["scan", "db", "--prefix", "!$terrace!"]), "", "{line}");
    }
}

#[test]
fn a_dump_of_a_whole_database_does_not_go_into_a_keyspace() {
    let tool = Tool::new();
    tool.ok(&["keyspace", "create", "--create", "db", "users"]);
    tool.ok(&["put", "db", "a", "1"]);
    let dump = tool.ok(&["dump", "db"]);
    tool.run_with(&["load", "db", "--keyspace", "users"], format!("\t0\n{dump}").as_bytes()).fails(
        2,
        "standard input:2: entries of keyspaces and of the clock of expiry are of a dump",
    );
    assert_eq!(tool.ok(&["scan", "db", "--keyspace", "users"]), "");
    // In a keyspace other keys may look like that.
    let own = "!$terrace!k\t1\n";
    tool.ok_with(&["load", "db", "--keyspace", "users"], own.as_bytes());
    assert_eq!(tool.ok(&["dump", "db", "--keyspace", "users"]), own);
}

#[test]
fn a_byte_order_mark_is_no_part_of_the_first_key() {
    let tool = Tool::new();
    let json = "{\"key\":\"a\",\"value\":\"1\"}\n{\"key\":\"\u{feff}\",\"value\":\"2\"}\n";
    for (number, (options, input)) in
        [(&[][..], "a\t1\n\u{feff}\t2\n"), (&["--json"], json)].into_iter().enumerate()
    {
        let db = format!("db{number}");
        let input = format!("\u{feff}{input}");
        tool.ok_with(&[&["load", &db], options].concat(), input.as_bytes());
        assert_eq!(tool.ok(&["scan", &db]), "a\t1\n\\xef\\xbb\\xbf\t2\n", "{options:?}");
        // A key of one mark comes back.
        let dump = tool.ok(&["dump", &db, "--from", "b"]);
        let copy = format!("copy{number}");
        tool.ok_with(&["load", &copy], dump.as_bytes());
        assert_eq!(tool.ok(&["dump", &copy]), dump);
    }
}

#[test]
fn a_dump_to_a_handle_follows_what_is_there() {
    let tool = Tool::new();
    tool.ok_with(&["load", "db"], b"a\t1\nb\t2\n");
    let earlier = "earlier\n".repeat(9);
    for (redirection, to) in [
        (">> out", "/dev/stdout"),
        (">> out", "/dev/fd/1"),
        (">> out", "/proc/self/fd/1"),
        ("2>> out", "/dev/stderr"),
        ("3>> out", "/dev/fd/3"),
    ] {
        std::fs::write(tool.path("out"), &earlier).expect("written");
        let line = format!("'{}' dump db {to} {redirection}", env!("CARGO_BIN_EXE_terrace"));
        let ran = Command::new("sh").args(["-c", &line]).current_dir(tool.path("")).output();
        assert!(ran.expect("a shell").status.success(), "{line}");
        let out = std::fs::read_to_string(tool.path("out")).expect("readable");
        assert_eq!(out, format!("{earlier}a\t1\nb\t2\n"), "{line}");
    }
}
