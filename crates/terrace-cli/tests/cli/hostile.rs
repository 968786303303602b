//! Names and messages that come from files never reach a terminal as control characters.

use std::cmp::Ordering;
use std::sync::Arc;

use terrace::{Comparator, Db, FilterPolicy, Options};

use crate::tool::{Ran, Tool};

const NAME: &str = "evil\u{1b}]0;pwned\u{7}\u{1b}[31mred\u{9b}1m\u{202e}\nline2";

struct HostileOrder;

impl Comparator for HostileOrder {
    fn name(&self) -> &str {
        NAME
    }

    fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        a.cmp(b)
    }
}

struct HostileFilter;

impl FilterPolicy for HostileFilter {
    fn name(&self) -> &str {
        NAME
    }

    fn create_filter(&self, _: &[&[u8]], _: &mut Vec<u8>) {}

    fn key_may_match(&self, _: &[u8], _: &[u8]) -> bool {
        true
    }
}

#[track_caller]
fn assert_printable(ran: &Ran, what: &[&str]) {
    let stdout = String::from_utf8(ran.stdout.clone()).expect("UTF-8");
    for text in [&stdout, &ran.stderr] {
        let hostile =
            text.chars().find(|&c| c != '\n' && c != '\t' && (c.is_control() || c == '\u{202e}'));
        assert_eq!(hostile, None, "{what:?} prints {text:?}");
        assert!(!text.contains("\nline2"), "{what:?} breaks a line: {text:?}");
    }
}

#[test]
fn names_from_files_are_escaped_in_every_command() {
    let tool = Tool::new();
    let options = Options::new().create_if_missing(true).comparator(Arc::new(HostileOrder));
    let options = options.filter_policy(Some(Arc::new(HostileFilter)));
    let db = Db::open(tool.path("db"), options).expect("opened");
    db.put("key", "value").expect("written");
    db.flush().expect("flushed");
    db.close().expect("closed");
    let manifest = tool.files("db", "MANIFEST-")[0].to_string_lossy().into_owned();
    let table = tool.files("db", ".ldb")[0].to_string_lossy().into_owned();
    let mut named = 0;
    for args in [
        &["get", "db", "key"][..],
        &["put", "db", "key", "value"],
        &["scan", "db"],
        &["dump", "db"],
        &["verify", "db"],
        &["verify", "db", "--json"],
        &["files", "db"],
        &["stat", "db"],
        &["advise", "db"],
        &["repair", "db"],
        &["compact", "db"],
        &["checkpoint", "db", "copy"],
        &["shell", "db"],
        &["inspect", &manifest],
        &["inspect", &manifest, "--json"],
        &["inspect", &table],
        &["inspect", &table, "--json"],
    ] {
        let ran = tool.run(args);
        assert_printable(&ran, args);
        named += usize::from(
            ran.stderr.contains("evil") || String::from_utf8_lossy(&ran.stdout).contains("evil"),
        );
    }
    assert!(named >= 14, "the name is shown, escaped: {named}");
    let shown: serde_json::Value =
        tool.run(&["inspect", &manifest, "--json", "--summary"]).json_lines().remove(0);
    assert_eq!(shown["manifest"]["comparator"], NAME, "JSON holds the name itself");
}

#[test]
fn paths_and_arguments_are_escaped_too() {
    let tool = Tool::new();
    let path = "no\u{1b}[31mwhere\u{202e}\nline2";
    for args in [
        &["get", path, "k"][..],
        &["inspect", path],
        &["destroy", path],
        &["load", "db", path],
        &["dump", path, path],
        &["frob\u{1b}[31mnicate"],
        &["scan", "db", "--what\u{1b}[31m"],
        &["get", "db", "k", "--cache-size", "4\u{1b}[31m"],
    ] {
        let ran = tool.run(args);
        assert_eq!(ran.status, 2, "{args:?}");
        assert_printable(&ran, args);
    }
    tool.ok(&["put", "--create", path, "k", "v"]);
    for args in [&["destroy", path][..], &["checkpoint", path, "copy\u{1b}[31m"], &["verify", path]]
    {
        assert_printable(&tool.run(args), args);
    }
}
