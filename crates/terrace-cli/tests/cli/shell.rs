//! The shell, through a pipe.

use std::io::{BufRead, BufReader, Read, Write};
use std::time::Duration;

use crate::tool::Tool;

#[test]
fn commands_run_one_after_the_other() {
    let tool = Tool::new();
    let script = b"put apple red\n# a comment\n\nput \"two words\" 'and \\x00'\nput e ''\ndelete e\nscan\nget apple\n\
        scan --count\n.mode hex\nget 6170706c65\n.mode text\n.json on\nget apple\n.json off\n.exit\nput never reached\n";
    let printed = tool.ok_with(&["shell", "--create", "db"], script);
    let expected =
        "apple\tred\ntwo words\tand \\x00\nred\n2\n726564\n{\"key\":\"apple\",\"value\":\"red\"}\n";
    assert_eq!(printed, expected);
    assert_eq!(tool.ok(&["scan", "db", "--count"]), "2\n");
}

#[test]
fn failures_name_their_line_and_do_not_end_it() {
    let tool = Tool::new();
    let script = b"put a 1\nget b\nput c\nfrobnicate\nput 'c\nget a\n";
    let ran = tool.run_with(&["shell", "--create", "db"], script);
    assert_eq!((ran.status, &ran.stdout[..]), (2, &b"1\n"[..]));
    let messages: Vec<_> = ran.stderr.lines().collect();
    assert_eq!(messages.len(), 4, "{messages:?}");
    for (message, part) in messages.iter().zip([
        "2: no entry",
        "3: the following required arguments were not provided: <VALUE>; Usage: put",
        "4: no command frobnicate",
        "5: a quote",
    ]) {
        assert!(message.starts_with(&format!("terrace: standard input:{part}")), "{message}");
    }
    let lines_of_windows = b"put w 1\r\n\r\n# a comment\r\nget w\r\n.exit\r\nput never reached\r\n";
    assert_eq!(tool.ok_with(&["shell", "db"], lines_of_windows), "1\n");
    let ran = tool.run_with(&["shell", "--bail", "db"], b"get b\nget a\n");
    assert_eq!((ran.status, &ran.stdout[..]), (1, &b""[..]));
}

#[test]
fn transactions_end_in_all_or_nothing() {
    let tool = Tool::new();
    std::fs::write(tool.path("changes"), "put c 3\ndelete a\n").expect("written");
    let script =
        b"put a 1\nbegin\nput b 2\nbatch changes\nget c\nscan --reverse\nscan --count --to c\ndump\nrollback\nscan\n\
        begin\ndelete a\nput d 4\ncommit\nscan\n";
    let printed = tool.ok_with(&["shell", "--create", "db"], script);
    assert_eq!(
        printed,
        "applied 2 operations, 3 bytes of keys and values\n3\nc\t3\nb\t2\n1\nb\t2\nc\t3\na\t1\nd\t4\n"
    );
    for (line, part) in [("commit", "no transaction"), ("rollback", "no transaction")] {
        tool.run_with(&["shell", "db"], line.as_bytes()).fails(2, part);
    }
    for line in ["begin", "load changes"] {
        let script = format!("begin\n{line}\n");
        tool.run_with(&["shell", "db"], script.as_bytes())
            .fails(2, "cannot be part of a transaction");
    }
    tool.run_with(&["shell", "db"], b"begin\nput e 5\n").fails(2, "not committed");
    tool.ok_with(&["shell", "db"], b"begin\nget d\n");
    assert_eq!(tool.ok(&["scan", "db"]), "d\t4\n");
    tool.run_with(&["shell", "--read-only", "db"], b"begin\nput e 5\ncommit\n")
        .fails(2, "read-only");
}

#[test]
fn transactions_lock_and_serialize() {
    let tool = Tool::new();
    let script = b"put a 1\nbegin locking\nget-for-update a\nput a 2\ncommit\n\
        begin serializable locking\nget-for-update a\nupdate a --add 40\ncas a 43 --if 42\nget a\nrollback\n\
        begin serializable\nscan --count\ncas b 1 --if-absent\ncommit\nscan\n";
    let printed = tool.ok_with(&["shell", "--create", "db"], script);
    assert_eq!(printed, "1\n2\n42\n43\n1\na\t2\nb\t1\n");
    tool.run_with(&["shell", "db"], b"get-for-update a\n").fails(2, "no transaction");
    tool.run_with(&["shell", "db"], b"begin nothing\n").fails(2, "invalid value 'nothing'");
    tool.run_with(&["shell", "db"], b"begin\ncas b 2 --if 3\ncommit\n")
        .fails(1, "does not have the expected value");
    assert_eq!(tool.ok(&["get", "db", "b"]), "1\n");
}

#[test]
fn the_other_commands_are_there_too() {
    let tool = Tool::new();
    std::fs::write(tool.path("changes"), "put b 2\nput c 3\n").expect("written");
    std::fs::write(tool.path("entries"), "d\t4\n").expect("written");
    let script =
        b"put a 1\nbatch changes\nload entries\ncompact\ndump out.txt\nfiles\nstat\ninspect db/CURRENT --kind log\n\
        .help\n.help scan\n.timer on\nget a\n";
    let ran = tool.run_with(&["shell", "--create", "db"], script);
    let text = String::from_utf8_lossy(&ran.stdout);
    for part in [
        "applied 2 operations",
        "loaded 1 entry",
        "tables held",
        ".mode text|hex|base64",
        "--prefix",
        " ms\n",
    ] {
        assert!(text.contains(part), "{part} is not in\n{text}");
    }
    assert_eq!(
        std::fs::read_to_string(tool.path("out.txt")).expect("readable"),
        "a\t1\nb\t2\nc\t3\nd\t4\n"
    );
    tool.run_with(&["shell", "db"], b"load\n").fails(2, "name a FILE");
    tool.run(&["shell", "nowhere"]).fails(2, "nowhere");
    tool.run(&["shell", "--create", "--read-only", "db"]).fails(2, "cannot be used with");
}

#[test]
fn a_script_runs_to_its_end_when_its_output_is_closed() {
    let tool = Tool::new();
    // More than any pipe or buffer holds.
    let lines: String = (0..30_000).map(|i| format!("key{i:05}\tvalue {i}\n")).collect();
    tool.ok_with(&["load", "db"], lines.as_bytes());
    for (script, status) in [
        ("scan\nput a 1\nscan\nput b 2\n", 0),
        ("get nothing\nscan\nput a 1\nput b 2\n", 1),
        ("scan\nput a 1\nscan\nfrobnicate\nput b 2\n", 2),
        (".json on\nscan\nput a 1\nget nothing\nput b 2\n", 1),
    ] {
        let mut child = tool.command(&["shell", "db"]).spawn().expect("the command starts");
        let mut first = [0; 8];
        let mut output = child.stdout.take().expect("a pipe");
        child.stdin.take().expect("a pipe").write_all(script.as_bytes()).expect("the shell reads");
        output.read_exact(&mut first).expect("the scan prints");
        drop(output);
        assert_eq!(
            child.wait_with_output().expect("the command ends").status.code(),
            Some(status),
            "{script}"
        );
        assert_eq!(tool.ok(&["scan", "db", "--to", "c"]), "a\t1\nb\t2\n", "{script}");
        tool.ok_with(&["batch", "db"], b"delete a\ndelete b\n");
    }
}

#[test]
fn transactions_are_prepared_and_decided_later() {
    let tool = Tool::new();
    let script = b"put a 1\nbegin\nput a 2\nput b 2\nprepare pay\nprepared list\nget a\n\
        begin\nput c 3\nprepare 'two words'\n";
    let printed = tool.ok_with(&["shell", "--create", "db"], script);
    assert_eq!(printed, "pay\t2\tprepared\n1\n");
    assert_eq!(tool.ok(&["prepared", "list", "db"]), "pay\t2\tprepared\ntwo words\t1\tprepared\n");
    let json = "{\"name\":\"pay\",\"overtaken\":false,\"writes\":2}\n";
    assert!(tool.ok(&["prepared", "list", "--json", "db"]).starts_with(json));
    assert!(tool.ok_with(&["shell", "--read-only", "db"], b"prepared list\n").starts_with("pay"));
    tool.run_with(&["shell", "db"], b"begin locking\nget-for-update a\n")
        .fails(2, "holds the lock");
    // What a script writes behind a refused prepare is not part of that transaction.
    let script = b"begin\nput d 4\nprepare pay\nbegin\nput e 5\ncommit\ndelete e\n";
    let refused = tool.run_with(&["shell", "db"], script);
    assert!(refused.status == 2 && refused.stderr.contains("input:3: "), "{refused:?}");
    assert_eq!(refused.stderr.lines().count(), 1, "{refused:?}");
    tool.ok(&["prepared", "commit", "db", "pay"]);
    tool.run(&["prepared", "commit", "db", "pay"]).fails(1, "no transaction is prepared as");
    tool.ok(&["prepared", "rollback", "--hex", "db", "74776f20776f726473"]);
    assert_eq!(tool.ok(&["prepared", "list", "db"]), "");
    assert_eq!(tool.ok(&["scan", "db"]), "a\t2\nb\t2\n");
    tool.run_with(&["shell", "db"], b"prepare pay\n").fails(2, "no transaction");
}

/// As a program has it that writes a line and waits for the answer.
#[test]
fn output_comes_before_the_next_line_is_awaited() {
    let tool = Tool::new();
    let mut child = tool.command(&["shell", "--create", "db"]).spawn().expect("it starts");
    let mut input = child.stdin.take().expect("a pipe");
    let mut output = BufReader::new(child.stdout.take().expect("a pipe"));
    let (answers, answered) = std::sync::mpsc::channel();
    let reader = std::thread::spawn(move || {
        let mut line = String::new();
        while output.read_line(&mut line).is_ok_and(|length| length > 0) {
            if answers.send(std::mem::take(&mut line)).is_err() {
                break;
            }
        }
    });
    for number in 0..3 {
        let line = format!("put a {number}\nget a\n");
        input.write_all(line.as_bytes()).expect("the shell reads");
        let answer = answered.recv_timeout(Duration::from_secs(60)).expect("an answer");
        assert_eq!(answer, format!("{number}\n"));
    }
    drop(input);
    assert!(child.wait().expect("it ends").success());
    reader.join().expect("the reader ends");
}
