//! Exit statuses, which are grep's: 0 yes, 1 no, 2 an error. A script must be able to tell the last
//! two apart.

use crate::tool::Tool;

/// Damages the first block of the first table of `db`.
fn damage(tool: &Tool, db: &str) {
    let table = tool.files(db, ".ldb").remove(0);
    let mut bytes = std::fs::read(&table).expect("readable");
    bytes[20] ^= 0x40;
    std::fs::write(table, bytes).expect("written");
}

#[test]
fn a_negative_answer_is_1_and_damage_is_2() {
    let tool = Tool::new();
    tool.ok(&["keyspace", "create", "--create", "db", "users"]);
    tool.ok_with(&["load", "db", "--keyspace", "users"], b"ada\tblue\n");
    tool.sample("db");
    tool.ok(&["compact", "db", "--force"]);
    for args in [
        &["get", "db", "key00001x"][..],
        &["get", "db", "--json", "key00001x"],
        &["get", "db", "--keyspace", "users", "eve"],
        &["cas", "db", "key00001x", "new", "--if", "another"],
        &["keyspace", "stat", "db", "nobody"],
        &["keyspace", "drop", "db", "users", "nobody"],
    ] {
        let ran = tool.run(args);
        assert_eq!(ran.status, 1, "{args:?}: {ran:?}");
    }
    // Those that read the block that is damaged then.
    let reading = [
        (&["get", "db", "key00001"][..], 0),
        (&["get", "db", "--json", "key00001"], 0),
        (&["get", "db", "--keyspace", "users", "ada"], 0),
        (&["cas", "db", "key00001", "new", "--if", "another"], 1),
        (&["cas", "db", "key00001", "new", "--if-absent"], 1),
        (&["keyspace", "stat", "db", "users"], 0),
    ];
    for (args, answer) in reading {
        let ran = tool.run(args);
        assert_eq!(ran.status, answer, "{args:?}: {ran:?}");
    }
    // The status of a shell is the worst of its commands'.
    let script = b"get key00001x\ncas key00001 new --if another\n";
    assert_eq!(tool.run_with(&["shell", "db"], script).status, 1);
    damage(&tool, "db");
    for (args, _) in reading {
        tool.run(args).fails(2, "checksum");
    }
    assert_eq!(tool.run_with(&["shell", "db"], script).status, 2);
    for other in [&["scan", "db"][..], &["dump", "db"], &["compact", "db", "--force"]] {
        tool.run(other).fails(2, "checksum");
    }
    // Damage is the answer of those that look for it.
    assert_eq!(tool.run(&["verify", "db"]).status, 1);
    let table = tool.files("db", ".ldb").remove(0);
    assert_eq!(tool.run(&["inspect", &table.to_string_lossy()]).status, 1);
    assert_eq!(tool.run(&["repair", "db"]).status, 1);
}

#[test]
fn bad_arguments_and_missing_databases_are_2() {
    let tool = Tool::new();
    tool.ok(&["put", "--create", "db", "a", "1"]);
    for args in [
        &["get", "nowhere", "a"][..],
        &["get", "db"],
        &["get", "db", "a", "b"],
        &["get", "--hex", "db", "0"],
        &["get", "db", "\\q"],
        &["get", "db", "a", "--cache-size", "none"],
        &["get", "db", "--keyspace", "\u{e4}", "a"],
        &["cas", "nowhere", "a", "2", "--if", "1"],
        &["cas", "db", "a", "2"],
        &["cas", "db", "a", "--if", "1"],
        &["cas", "db", "a", "2", "--if", "1", "--if-absent"],
        &["cas", "db", "a", "\\q", "--if", "1"],
        &["cas", "--hex", "db", "61", "2", "--if", "31"],
        &["keyspace", "stat", "db", "\u{e4}"],
        &["keyspace", "stat", "nowhere", "users"],
        &["prepared", "commit", "nowhere", "name"],
        &["prepared", "commit", "--hex", "db", "0"],
        &["prepared", "rollback", "db"],
    ] {
        let ran = tool.run(args);
        assert_eq!(ran.status, 2, "{args:?}: {ran:?}");
        assert!(ran.stdout.is_empty(), "{args:?}: {ran:?}");
    }
    tool.run(&["prepared", "commit", "db", "name"]).fails(1, "name");
    tool.run(&["prepared", "rollback", "db", "name"]).fails(1, "name");
}
