//! put, get, delete, scan, batch: single entries and ranges, good input and bad.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use crate::tool::Tool;

#[test]
fn a_value_comes_back_until_it_is_deleted() {
    let tool = Tool::new();
    assert_eq!(tool.ok(&["put", "--create", "db", "apple", "red"]), "");
    assert_eq!(tool.ok(&["get", "db", "apple"]), "red\n");
    tool.ok(&["put", "db", "apple", "green and red"]);
    assert_eq!(tool.ok(&["get", "db", "apple"]), "green and red\n");
    assert_eq!(tool.ok(&["get", "--raw", "db", "apple"]), "green and red");
    assert_eq!(
        tool.ok(&["get", "--json", "db", "apple"]),
        "{\"key\":\"apple\",\"value\":\"green and red\"}\n"
    );
    tool.ok(&["delete", "db", "apple"]);
    tool.ok(&["delete", "db", "never there"]);
    tool.run(&["get", "db", "apple"]).fails(1, "no entry for the key apple");
    tool.run(&["get", "db", ""]).fails(1, "no entry for the key \"\"\n");
    let long = tool.run(&["get", "db", &"k".repeat(3000)]);
    assert!(long.stderr.len() < 120, "{}", long.stderr);
    long.fails(1, "kkk\"... (3000 bytes)");
    let missing = tool.run(&["get", "--json", "db", "apple"]);
    assert_eq!(
        (missing.status, &missing.stdout[..]),
        (1, &b"{\"key\":\"apple\",\"value\":null}\n"[..])
    );
}

#[test]
fn ranges_and_prefixes_are_removed() {
    let tool = Tool::new();
    tool.ok_with(&["load", "db"], b"a\t1\nb\t2\nba\t3\nbb\t4\nc\t5\n");
    let keys = || tool.ok(&["scan", "db", "--keys-only"]).replace('\n', " ");
    tool.ok(&["delete-range", "db", "ba", "bb"]);
    assert_eq!(keys(), "a b bb c ");
    tool.ok(&["delete-range", "db", "--prefix", "b"]);
    assert_eq!(keys(), "a c ");
    tool.run(&["delete-range", "db", "z", "a"]).fails(2, "the range from z to a ends before");
    tool.ok(&["delete-range", "db", "--hex", "61", "62"]);
    assert_eq!(keys(), "c ");
    tool.run(&["delete-range", "db", "a"]).fails(2, "TO");
    tool.run(&["delete-range", "db", "a", "b", "--to", "c"]).fails(2, "cannot be used with");
    tool.ok(&["delete-range", "db", "--from", "y", "--to", "z"]);
    tool.run(&["delete-range", "db"]).fails(2, "FROM");
    tool.run(&["delete-range", "db", "a", "b", "--prefix", "c"]).fails(2, "cannot be used with");
    tool.run(&["delete-range", "nowhere", "a", "b"]).fails(2, "there is no database");
    let script = b"begin\nput d 1\ndelete-range c e\nput e 1\nscan\nrollback\nscan\n";
    assert_eq!(tool.ok_with(&["shell", "db"], script), "e\t1\nc\t5\n");
    let script = b"begin\ndelete-range c e\ncommit\nscan\n";
    assert_eq!(tool.ok_with(&["shell", "db"], script), "");
}

#[test]
fn entries_expire_in_keyspaces_made_for_that() {
    let tool = Tool::new();
    let create = ["keyspace", "create", "--create", "db", "sessions", "--expiry"];
    tool.ok(&create);
    let put = |key, seconds| ["put", "db", "--keyspace", "sessions", key, "v", "--ttl", seconds];
    tool.ok(&put("gone", "0"));
    tool.ok(&put("there", "86400"));
    tool.ok(&["put", "db", "--keyspace", "sessions", "stays", "v"]);
    assert_eq!(tool.ok(&["scan", "db", "--keyspace", "sessions"]), "stays\tv\nthere\tv\n");
    assert_eq!(tool.ok(&["scan", "db", "--keyspace", "sessions", "--count"]), "2\n");
    tool.run(&["get", "db", "--keyspace", "sessions", "gone"]).fails(1, "no entry");
    let stat = tool.ok(&["keyspace", "stat", "db", "sessions"]);
    assert!(stat.starts_with("2 entries, "), "{stat}");
    // What a whole dump is loaded into expires as this does.
    let dump = tool.ok(&["dump", "db"]);
    tool.ok_with(&["load", "copy"], dump.as_bytes());
    assert_eq!(tool.ok(&["scan", "copy", "--keyspace", "sessions"]), "stays\tv\nthere\tv\n");
    assert_eq!(tool.ok(&["dump", "db", "--keyspace", "sessions"]), "stays\tv\nthere\tv\n");
    // Those of a keyspace with a time of its own.
    tool.ok(&["keyspace", "create", "--expiry", "--ttl", "86400", "db", "short"]);
    tool.ok_with(&["load", "db", "--keyspace", "short"], b"a\t1\n");
    tool.ok_with(&["batch", "db", "--keyspace", "short"], b"put b 2\n");
    assert_eq!(tool.ok(&["scan", "db", "--keyspace", "short"]), "a\t1\nb\t2\n");
    tool.ok(&["cas", "db", "--keyspace", "short", "c", "3", "--if-absent"]);
    tool.ok(&["update", "db", "--keyspace", "short", "d", "--add", "4"]);
    let script = b"begin\ncas a 5 --if 1\nupdate e --add 6\ncommit\n";
    tool.ok_with(&["shell", "db", "--keyspace", "short"], script);
    let raw = tool.ok(&["dump", "db", "--prefix", "!short!"]);
    assert_eq!(raw.matches("ttl").count(), 5, "{raw}");
    tool.ok(&["cas", "db", "--keyspace", "short", "a", "6", "--if", "5", "--ttl", "0"]);
    tool.ok(&["update", "db", "--keyspace", "short", "b", "--add", "1", "--ttl", "0"]);
    assert_eq!(tool.ok(&["scan", "db", "--keyspace", "short"]), "c\t3\nd\t4\ne\t6\n");
    tool.run(&["update", "db", "b", "--add", "1", "--ttl", "9"]).fails(2, "--ttl needs --keyspace");
    tool.run(&["put", "db", "--keyspace", "short", "a", "1", "--ttl", "-5"])
        .fails(2, "the number is out of range");
    tool.run(&["put", "db", "--keyspace", "short", "a", "1", "--ttl", "1h"])
        .fails(2, "this takes a whole number");
    tool.ok(&[
        "keyspace",
        "create",
        "db",
        "plain",
        "--compression",
        "none",
        "--block-size",
        "8192",
    ]);
    tool.run(&["put", "db", "--keyspace", "plain", "a", "1", "--ttl", "5"])
        .fails(2, "created without expiry");
    tool.run(&["put", "db", "a", "1", "--ttl", "5"]).fails(2, "--ttl needs --keyspace");
    tool.run(&["keyspace", "create", "db", "x", "--ttl", "5"]).fails(2, "--expiry");
    tool.run(&["keyspace", "create", "db", "x", "--own-compression", "lzma"])
        .fails(2, "none or snappy");
    tool.run(&["keyspace", "create", "db", "x", "--own-filter-bits", "99"]).fails(2, "filter_bits");
}

#[test]
fn keyspaces_are_made_filled_counted_and_dropped() {
    let tool = Tool::new();
    tool.run(&["keyspace", "create", "db", "users"]).fails(2, "there is no database");
    tool.ok(&["keyspace", "create", "--create", "db", "users"]);
    tool.ok(&["keyspace", "create", "db", "users", "old"]);
    tool.run(&["keyspace", "create", "db", "users"]).fails(2, "exists already");
    tool.run(&["keyspace", "create", "db", "a!b"]).fails(2, "the name");
    tool.run(&["keyspace", "create", "db", "none", "x"]).fails(1, "no keyspace none");
    tool.ok(&["put", "db", "--keyspace", "users", "ada", "1"]);
    tool.ok(&["put", "db", "--keyspace", "users", "--keyspace", "old", "bob", "2"]);
    tool.ok(&["put", "db", "ada", "outside"]);
    tool.ok_with(&["load", "db", "--keyspace", "users"], b"cy\t3\n");
    tool.ok_with(&["batch", "db", "--keyspace", "users"], b"put dee 4\ndelete cy\n");
    assert_eq!(tool.ok(&["get", "db", "--keyspace", "users", "ada"]), "1\n");
    assert_eq!(tool.ok(&["get", "db", "!users!!old!bob"]), "2\n");
    let inside = "!old!bob\t2\nada\t1\ndee\t4\n";
    assert_eq!(tool.ok(&["scan", "db", "--keyspace", "users"]), inside);
    assert_eq!(tool.ok(&["dump", "db", "--keyspace", "users"]), inside);
    assert_eq!(tool.ok(&["scan", "db", "--keyspace", "users", "--from", "b"]), "dee\t4\n");
    assert_eq!(tool.ok(&["scan", "db", "--keyspace", "users", "--count"]), "3\n");
    assert_eq!(tool.ok(&["keyspace", "list", "db"]), "users\n");
    assert_eq!(tool.ok(&["keyspace", "list", "db", "users", "--json"]), "{\"name\":\"old\"}\n");
    let stat = tool.ok(&["keyspace", "stat", "db", "users"]);
    assert!(stat.starts_with("3 entries, ") && stat.ends_with("keyspaces within: old\n"), "{stat}");
    for command in ["get a", "put a b", "scan", "dump", "load -", "delete a", "update a --add 1"] {
        let mut words = command.split(' ');
        let name = words.next().expect("a command");
        let args = [name, "db", "--keyspace", "none"].into_iter().chain(words).collect::<Vec<_>>();
        tool.run_with(&args, b"a\t1\n").fails(1, "there is no keyspace none");
    }
    tool.run(&["shell", "db", "--keyspace", "none"]).fails(1, "there is no keyspace none");
    tool.ok(&["delete-range", "db", "--keyspace", "users", "--prefix", "d"]);
    tool.ok(&["delete", "db", "--keyspace", "users", "--keyspace", "old", "bob"]);
    let script = b"begin\nput x 1\ncommit\nscan\nget --keyspace users ada\nkeyspace list\n";
    let shown = tool.ok_with(&["shell", "db", "--keyspace", "users"], script);
    assert_eq!(shown, "ada\t1\nx\t1\n1\nusers\n");
    tool.ok(&["keyspace", "drop", "db", "users"]);
    tool.run(&["keyspace", "drop", "db", "users"]).fails(1, "no keyspace users");
    tool.run(&["get", "db", "--keyspace", "users", "ada"]).fails(1, "no keyspace users");
    assert_eq!(tool.ok(&["scan", "db"]), "ada\toutside\n");
}

#[test]
fn bytes_are_written_in_three_notations() {
    let tool = Tool::new();
    tool.ok(&["put", "--create", "db", "\\x00\\tkey\\\\", "\\xff\\n"]);
    assert_eq!(tool.ok(&["get", "--hex", "db", "00096b65795c"]), "ff0a\n");
    assert_eq!(tool.ok(&["get", "--base64", "db", "AAlrZXlc"]), "/wo=\n");
    assert_eq!(tool.ok(&["scan", "db"]), "\\x00\\tkey\\\\\t\\xff\\n\n");
    let raw = tool.run(&["get", "--raw", "db", "\\x00\\tkey\\\\"]);
    assert_eq!(raw.stdout, b"\xff\n");
    // Arguments may be any bytes at all.
    let key = OsStr::from_bytes(b"\xfe");
    assert_eq!(tool.run(&[OsStr::new("put"), OsStr::new("db"), key, OsStr::new("")]).ok(), "");
    assert_eq!(tool.ok(&["get", "db", "\\xfe"]), "\n");
    tool.run(&["put", "db", "a\\q", "v"]).fails(2, "KEY: unknown escape \\q");
    tool.run(&["put", "db", "a", "\\x1"]).fails(2, "VALUE: \\x without two hexadecimal digits");
    tool.run(&["get", "--hex", "db", "abc"]).fails(2, "KEY: an odd number");
    tool.run(&["get", "--hex", "--base64", "db", "abcd"]).fails(2, "cannot be used with");
}

#[test]
fn values_come_from_files() {
    let tool = Tool::new();
    let bytes: Vec<u8> = (0..=255).cycle().take(300_000).collect();
    std::fs::write(tool.path("value"), &bytes).expect("written");
    tool.ok(&["put", "--create", "db", "k", "--value-file", "value"]);
    assert!(tool.run(&["get", "--raw", "db", "k"]).stdout == bytes);
    tool.ok_with(&["put", "db", "k", "--value-file", "-"], b"from a pipe\n");
    assert_eq!(tool.run(&["get", "--raw", "db", "k"]).stdout, b"from a pipe\n");
    tool.run(&["put", "db", "k"]).fails(2, "VALUE");
    tool.run(&["put", "db", "k", "--value-file", "nowhere"]).fails(2, "cannot open nowhere");
    tool.run(&["put", "db", "k", "--value-file", "db"]).fails(2, "db is a directory");
    // Of a size that no value may have nothing is read: there is no memory for it.
    let large = std::fs::File::create(tool.path("large")).expect("created");
    large.set_len(1 << 40).expect("a file with a hole");
    let script = "ulimit -v 2000000; exec \"$0\" put db k --value-file large";
    let mut shell = std::process::Command::new("bash");
    shell.args(["-c", script, env!("CARGO_BIN_EXE_terrace")]).current_dir(tool.path(""));
    let output = shell.output().expect("bash runs");
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(message, "terrace: large is too large for a value: 4 GiB or more\n");
    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn nothing_is_created_by_mistake() {
    let tool = Tool::new();
    for args in
        [&["put", "db", "k", "v"][..], &["get", "db", "k"], &["delete", "db", "k"], &["scan", "db"]]
    {
        tool.run(args).fails(2, "there is no database at db");
        assert!(!tool.path("db").exists(), "{args:?}");
    }
    // A wrong argument is found before the database is made.
    tool.run(&["put", "--create", "db", "k", "\\"]).fails(2, "VALUE");
    assert!(!tool.path("db").exists());
    std::fs::create_dir(tool.path("empty")).expect("created");
    tool.run(&["put", "empty", "k", "v"]).fails(2, "there is no database at empty");
    tool.run(&["get", "empty", "k"]).fails(2, "empty");
    assert_eq!(tool.path("empty").read_dir().expect("a directory").count(), 0);
    std::fs::write(tool.path("file"), "text").expect("written");
    tool.run(&["get", "file", "k"]).fails(2, "is a file");
    tool.run(&["put", "--create", "file", "k", "v"]).fails(2, "is a file");
    tool.run(&["load", "file"]).fails(2, "is a file");
    // A damaged database is not one that is not there.
    tool.sample("broken");
    std::fs::remove_file(tool.path("broken/CURRENT")).expect("removed");
    tool.run(&["put", "--create", "broken", "k", "v"]).fails(2, "CURRENT");
    tool.run(&["put", "broken", "k", "v"]).fails(2, "CURRENT");
}

#[test]
fn a_scan_takes_ranges_prefixes_limits_and_directions() {
    let tool = Tool::new();
    tool.ok_with(&["load", "db"], b"a\t1\nb\t2\nba\t3\nbb\t4\nc\t5\n");
    let scan = |args: &[&str]| {
        let args = [&["scan", "db", "--keys-only"], args].concat();
        tool.ok(&args).split_whitespace().collect::<Vec<_>>().join(" ")
    };
    assert_eq!(scan(&[]), "a b ba bb c");
    assert_eq!(scan(&["--from", "b"]), "b ba bb c");
    assert_eq!(scan(&["--to", "bb"]), "a b ba");
    assert_eq!(scan(&["--from", "aa", "--to", "bb"]), "b ba");
    assert_eq!(scan(&["--prefix", "b"]), "b ba bb");
    assert_eq!(scan(&["--prefix", "b", "--from", "ba", "--to", "z"]), "ba bb");
    assert_eq!(scan(&["--reverse"]), "c bb ba b a");
    assert_eq!(scan(&["--reverse", "--to", "bb"]), "ba b a");
    assert_eq!(scan(&["--reverse", "--prefix", "b", "--limit", "2"]), "bb ba");
    assert_eq!(scan(&["--limit", "0"]), "");
    assert_eq!(scan(&["--from", "z"]), "");
    assert_eq!(scan(&["--from", "c", "--to", "c"]), "");
    for command in ["scan", "dump", "compact", "delete-range"] {
        tool.run(&[command, "db", "--from", "c", "--to", "a\\x00"])
            .fails(2, "terrace: the range from c to a\\x00 ends before it begins\n");
    }
    tool.run(&["delete-range", "db", "c", "a"]).fails(2, "the range from c to a ends");
    let message =
        format!("from \"{}\"... (5000 bytes) to a ends before it begins\n", "c".repeat(60));
    tool.run(&["scan", "db", "--from", &"c".repeat(5000), "--to", "a"]).fails(2, &message);
    assert_eq!(scan(&[]), "a b ba bb c", "a refused command removed something");
    assert_eq!(tool.ok(&["scan", "db", "--prefix", "b", "--count"]), "3\n");
    assert_eq!(tool.ok(&["scan", "db", "--count", "--json"]), "{\"count\":5}\n");
    assert_eq!(tool.ok(&["scan", "db", "--limit", "1"]), "a\t1\n");
    let entries = tool.run(&["scan", "db", "--json", "--hex", "--limit", "1"]).json_lines();
    assert_eq!(entries, [serde_json::json!({ "key": "61", "value": "31" })]);
    let keys = tool.run(&["scan", "db", "--json", "--keys-only", "--limit", "1"]).json_lines();
    assert_eq!(keys, [serde_json::json!({ "key": "a" })]);
    tool.run(&["scan", "db", "--limit", "many"]).fails(2, "invalid value");
    tool.run(&["scan", "db", "--limit", "-1"]).fails(2, "invalid value '-1' for '--limit <N>'");
    for args in [["--cache-size", "-1"], ["--cache-size", "-4K"], ["--max-open-files", "-1"]] {
        let ran = tool.run(&[&["scan", "db"], &args[..]].concat());
        assert!(!ran.stderr.contains("tip"), "{ran:?}");
        ran.fails(2, &format!("invalid value '{}' for '{} <", args[1], args[0]));
    }
    tool.run(&["scan", "db", "--what"]).fails(2, "unexpected argument");
    tool.run(&["scan"]).fails(2, "DB");
}

#[test]
fn a_batch_is_applied_whole_or_not_at_all() {
    let tool = Tool::new();
    let lines = b"# comment\nput a 1\n\nput \"b c\" 'two words'\nput\ttab key\tvalue with spaces\ndelete a\nput\te\t\n";
    let printed = tool.ok_with(&["batch", "--create", "db"], lines);
    assert_eq!(printed, "applied 5 operations, 40 bytes of keys and values\n");
    assert_eq!(tool.ok(&["scan", "db"]), "b c\ttwo words\ne\t\ntab key\tvalue with spaces\n");
    for (line, message) in [
        ("put x", "standard input:2: put takes a key and a value, here is 1 word after it"),
        ("delete", "standard input:2: delete takes a key, here are 0 words after it"),
        ("drop x", "standard input:2: must be put or delete, is drop"),
        ("put x \\z", "standard input:2: value: unknown escape"),
        ("put x \"y", "standard input:2: a quote"),
    ] {
        tool.run_with(&["batch", "db"], format!("put new 1\n{line}\n").as_bytes())
            .fails(2, message);
    }
    tool.run(&["get", "db", "new"]).fails(1, "no entry");
    // Lines may end as on Windows.
    tool.ok_with(&["batch", "db"], b"\r\n# comment\r\nput g 7\r\nput\tspaced key\t8\r\n");
    assert_eq!(tool.ok(&["scan", "db", "--from", "g", "--to", "t"]), "g\t7\nspaced key\t8\n");
    tool.ok_with(&["batch", "db"], b"delete g\r\ndelete\tspaced key\r\n");
    assert_eq!(tool.ok(&["scan", "db", "--from", "g", "--to", "t"]), "");
    std::fs::write(tool.path("changes"), "delete e\nput f 6\n").expect("written");
    assert_eq!(tool.ok(&["batch", "db", "changes", "--json"]), "{\"bytes\":3,\"operations\":2}\n");
    tool.run_with(&["batch", "absent"], b"put a 1\n").fails(2, "absent");
}

#[test]
fn a_closed_pipe_is_no_failure() {
    let tool = Tool::new();
    tool.sample("db");
    let mut child = tool.command(&["scan", "db"]).spawn().expect("the command starts");
    drop(child.stdout.take());
    let output = child.wait_with_output().expect("the command ends");
    assert_eq!((output.status.code(), &output.stderr[..]), (Some(0), &b""[..]));
}

#[test]
fn a_closed_standard_input_is_no_empty_value() {
    let tool = Tool::new();
    tool.ok(&["put", "--create", "db", "k", "v"]);
    for command in ["put db k --value-file -", "load db", "batch db"] {
        let script = format!("exec \"$0\" {command} <&-");
        let mut shell = std::process::Command::new("sh");
        shell.args(["-c", &script, env!("CARGO_BIN_EXE_terrace")]).current_dir(tool.path(""));
        let output = shell.output().expect("sh runs");
        let message = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{command}: {message}");
        assert!(message.contains("standard input is closed"), "{message}");
    }
    assert_eq!(tool.ok(&["get", "db", "k"]), "v\n");
}

#[test]
fn hints_fit_what_is_wrong() {
    let tool = Tool::new();
    std::fs::write(tool.path("file"), "text").expect("written");
    std::fs::create_dir(tool.path("empty")).expect("created");
    std::os::unix::fs::symlink("loop", tool.path("loop")).expect("linked");
    for args in
        [&["put", "file", "k", "v"][..], &["put", "file/db", "k", "v"], &["put", "loop", "k", "v"]]
    {
        let ran = tool.run(args);
        assert!(ran.status == 2 && !ran.stderr.contains("--create"), "{ran:?}");
    }
    for args in [&["put", "empty", "k", "v"][..], &["put", "nowhere", "k", "v"]] {
        tool.run(args).fails(2, "--create makes a new one");
    }
    for command in
        ["get", "scan", "dump", "stat", "files", "checkpoint", "verify", "shell", "advise"]
    {
        let more: &[&str] = match command {
            "get" => &["k"],
            "checkpoint" => &["copy"],
            _ => &[],
        };
        let ran = tool.run(&[&[command, "empty"], more].concat());
        assert!(!ran.stderr.contains("create_if_missing"), "{ran:?}");
        ran.fails(2, "there is no database at empty");
    }
    tool.run(&["shell", "--read-only", "empty"]).fails(2, "there is no database at empty");
}

#[test]
fn a_value_is_swapped_if_it_is_the_expected_one() {
    let tool = Tool::new();
    tool.ok(&["cas", "--create", "db", "leader", "anna", "--if-absent"]);
    for arguments in [
        &["cas", "db", "leader", "berta", "--if-absent"][..],
        &["cas", "db", "leader", "berta", "--if", "clara"],
        &["cas", "db", "leader", "--delete", "--if", "clara"],
        &["cas", "db", "nobody", "berta", "--if", "clara"],
    ] {
        tool.run(arguments).fails(1, "nothing was changed");
    }
    tool.ok(&["cas", "db", "leader", "berta", "--if", "anna"]);
    assert_eq!(tool.ok(&["get", "db", "leader"]), "berta\n");
    tool.ok(&["cas", "db", "leader", "--delete", "--if", "berta"]);
    tool.run(&["get", "db", "leader"]).fails(1, "no entry");
    tool.run(&["cas", "db", "leader", "berta"]).fails(2, "--if");
    tool.run(&["cas", "db", "leader", "--delete", "--if-absent"]).fails(2, "cannot be used");
}

#[test]
fn a_number_is_added_to_and_bytes_are_appended() {
    let tool = Tool::new();
    let update = |arguments: &[&str]| tool.ok(&[&["update", "db", "--create"], arguments].concat());
    assert_eq!(update(&["stock", "--add", "7"]), "7\n");
    assert_eq!(update(&["stock", "--add", "-9"]), "-2\n");
    assert_eq!(tool.ok(&["get", "db", "stock"]), "-2\n");
    assert_eq!(update(&["hits", "--add", "258", "--counter"]), "258\n");
    assert_eq!(tool.ok(&["get", "--hex", "db", "68697473"]), "0201000000000000\n");
    assert_eq!(update(&["tags", "--append", "red", "--separator", ","]), "red\n");
    assert_eq!(update(&["tags", "--append", "ripe", "--separator", ","]), "red,ripe\n");
    assert_eq!(
        update(&["tags", "--json", "--append", "!"]),
        "{\"key\":\"tags\",\"value\":\"red,ripe!\"}\n"
    );
    tool.run(&["update", "db", "tags", "--add", "1"]).fails(2, "not a whole number");
    tool.run(&["update", "db", "stock", "--add", "1", "--counter"]).fails(2, "8 bytes");
    tool.run(&["update", "db", "stock"]).fails(2, "--add");
    for arguments in [["--append", "1", "--counter", ""], ["--add", "1", "--separator", ","]] {
        let arguments = arguments.iter().filter(|argument| !argument.is_empty());
        let arguments: Vec<_> =
            ["update", "db", "stock"].iter().chain(arguments).copied().collect();
        tool.run(&arguments).fails(2, "cannot be used");
        assert_eq!(tool.ok(&["get", "db", "stock"]), "-2\n");
    }
}

#[test]
fn own_entries_are_not_changed_by_hand_nor_shown() {
    let tool = Tool::new();
    tool.ok(&["keyspace", "create", "--create", "--expiry", "db", "users"]);
    tool.ok(&["put", "db", "--keyspace", "users", "ada", "1"]);
    tool.ok(&["put", "db", "z", "2"]);
    assert_eq!(tool.ok(&["scan", "db"]), "!users!ada\t1\nz\t2\n");
    assert_eq!(tool.ok(&["scan", "db", "--reverse", "--limit", "9"]), "z\t2\n!users!ada\t1\n");
    assert_eq!(tool.ok(&["scan", "db", "--count"]), "2\n");
    let own = tool.ok(&["scan", "db", "--prefix", "!$terrace!", "--keys-only"]);
    assert_eq!(own, "!$terrace!keyspace!users!\n");
    let entry = "!$terrace!keyspace!users!";
    let refused = "are Terrace's own";
    tool.run(&["put", "db", entry, "x"]).fails(2, refused);
    tool.run(&["delete", "db", entry]).fails(2, refused);
    tool.run(&["cas", "db", entry, "x", "--if-absent"]).fails(2, refused);
    tool.run(&["update", "db", entry, "--append", "x"]).fails(2, refused);
    tool.run_with(&["batch", "db"], format!("put {entry} x\n").as_bytes()).fails(2, refused);
    tool.run_with(&["batch", "db"], format!("delete {entry}\n").as_bytes()).fails(2, refused);
    for range in [&["", "z"][..], &["--prefix", ""], &["--prefix", "!"], &["--from", "!"]] {
        tool.run(&[&["delete-range", "db"], range].concat()).fails(2, "Terrace's own entries");
    }
    let stat = tool.ok(&["keyspace", "stat", "db", "users"]);
    assert!(stat.contains("settings: expiry\n"), "{stat}");
    let timed =
        ["--expiry", "--ttl", "3600", "--own-compression", "none", "--own-block-size", "8192"];
    tool.ok(&[&["keyspace", "create", "db", "timed"][..], &timed].concat());
    let stat = tool.run(&["keyspace", "stat", "db", "timed", "--json"]).json_lines().remove(0);
    let settings = serde_json::json!({
        "expiry": true, "ttl_ms": 3_600_000, "compression": "none", "block_size": 8192,
    });
    assert_eq!(stat["settings"], settings);
    let text = tool.ok(&["keyspace", "stat", "db", "timed"]);
    assert!(text.contains("ttl 3600000 ms, compression none"), "{text}");
    tool.ok(&["delete-range", "db", "--prefix", "", "--force"]);
    tool.run(&["keyspace", "stat", "db", "users"]).fails(1, "no keyspace users");
    tool.ok(&["delete-range", "db", "--prefix", ""]);
    tool.run(&["dump", "db", "nowhere/x"]).fails(2, "there is no directory nowhere");
    tool.run(&["scan", "db", "--limit", "x"]).fails(2, "this takes a whole number");
}

#[test]
fn a_dump_leaves_prepared_transactions_out() {
    let tool = Tool::new();
    tool.ok_with(&["shell", "--create", "db"], b"put a 1\nbegin\nput b 2\nprepare t\n");
    let dump = tool.run(&["dump", "db"]);
    assert_eq!((dump.status, &dump.stdout[..]), (0, &b"a\t1\n"[..]));
    assert!(dump.stderr.starts_with("terrace: 1 prepared transaction left out"), "{dump:?}");
    let own = tool.ok(&["dump", "db", "--prefix", "!$terrace!prepared!"]);
    assert!(own.starts_with("!$terrace!prepared!t\t"), "{own}");
    assert!(tool.ok(&["prepared", "list", "db"]).starts_with("t\t1\t"));
    let script = b"begin\nput c 1\nprepare t\n";
    tool.run_with(&["shell", "db"], script).fails(2, "not prepared, but rolled back");
}

#[test]
fn sizes_out_of_bounds_are_refused() {
    let tool = Tool::new();
    for (option, bad, bounds) in [
        ("--block-size", "1", "from 1K to 4M"),
        ("--block-size", "5M", "from 1K to 4M"),
        ("--write-buffer-size", "63K", "from 64K to 1G"),
        ("--max-file-size", "2G", "from 1M to 1G"),
    ] {
        let ran = tool.run(&["put", "--create", "db", "k", "v", option, bad]);
        assert_eq!(ran.status, 2, "{ran:?}");
        assert!(ran.stderr.contains(bounds), "{ran:?}");
        assert!(!tool.path("db").exists(), "{option} {bad}");
    }
    tool.ok(&["put", "--create", "db", "k", "v", "--block-size", "1K", "--max-file-size", "1G"]);
}
