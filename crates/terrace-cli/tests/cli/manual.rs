//! Help, completions and the manual.

use std::fs::{self, OpenOptions};

use crate::tool::Tool;

#[test]
fn completions_name_every_command() {
    let tool = Tool::new();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let ran = tool.run(&["completions", shell]);
        let script = String::from_utf8(ran.stdout).expect("a script is text");
        assert_eq!((ran.status, ran.stderr.as_str()), (0, ""), "{shell}");
        for word in ["scan", "checkpoint", "prefix", "completions"] {
            assert!(script.contains(word), "{shell} lacks {word}");
        }
    }
    assert_eq!(tool.run(&["completions", "tcsh"]).status, 2);
}

#[test]
fn man_prints_one_page_or_writes_all() {
    let tool = Tool::new();
    let page = tool.run(&["man"]);
    assert_eq!(page.status, 0, "{}", page.stderr);
    assert!(String::from_utf8_lossy(&page.stdout).contains(".TH terrace 1"));
    let ran = tool.run(&["man", "share/man1"]);
    assert_eq!((ran.status, ran.stdout.as_slice()), (0, &b""[..]), "{}", ran.stderr);
    for name in ["terrace.1", "terrace-scan.1", "terrace-man.1"] {
        let page = fs::read_to_string(tool.path("share/man1").join(name)).expect(name);
        assert!(page.contains(".TH") && page.contains(".SH SYNOPSIS"), "{name}");
    }
    fs::write(tool.path("file"), "").expect("a file");
    let ran = tool.run(&["man", "file"]);
    assert_eq!(ran.status, 2);
    assert!(ran.stderr.starts_with("terrace: cannot create file: "), "{}", ran.stderr);
}

/// A script that saves the output must not take a page that was cut for a whole one.
#[test]
fn help_that_cannot_be_written_is_a_failure() {
    let tool = Tool::new();
    for args in [&["--version"][..], &["--help"], &["scan", "--help"], &["completions", "bash"]] {
        let full = OpenOptions::new().write(true).open("/dev/full").expect("a full device");
        let ran = tool.command(args).stdout(full).output().expect("it runs");
        let message = String::from_utf8_lossy(&ran.stderr);
        assert_eq!(ran.status.code(), Some(2), "{args:?}: {message}");
        let expected = "terrace: cannot write standard output: No space left on device";
        assert!(message.starts_with(expected), "{args:?}: {message}");
    }
}
