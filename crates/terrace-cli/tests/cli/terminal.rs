//! The shell on a terminal, by `script`; and what signals leave behind.

use std::io::{Read, Write};
use std::process::{Child, Command, Stdio};

use crate::tool::Tool;

/// A terminal session: `terrace ARGS` under a pseudo-terminal that `script` makes.
struct Terminal {
    child: Child,
    seen: String,
}

impl Terminal {
    fn start(tool: &Tool, args: &str) -> Self {
        Self::start_with_history(tool, args, "")
    }

    fn start_with_history(tool: &Tool, args: &str, history: &str) -> Self {
        let line = format!("'{}' {args}", env!("CARGO_BIN_EXE_terrace"));
        let mut command = Command::new("script");
        command.args(["-qefc", &line, "/dev/null"]).current_dir(tool.path("")).env("TERM", "xterm");
        command.env("TERRACE_HISTORY", history).stdin(Stdio::piped()).stdout(Stdio::piped());
        Terminal {
            child: command.spawn().expect("script, of util-linux, runs"),
            seen: String::new(),
        }
    }

    fn type_in(&mut self, text: &str) {
        self.type_in_bytes(text.as_bytes());
    }

    fn type_in_bytes(&mut self, bytes: &[u8]) {
        self.child.stdin.as_mut().expect("a pipe").write_all(bytes).expect("typed");
    }

    /// Reads until `part` appears in what was not looked at yet.
    fn expect(&mut self, part: &str) {
        let from = self.seen.len();
        let mut bytes = Vec::new();
        let mut byte = [0];
        while !bytes.ends_with(part.as_bytes()) {
            let read =
                self.child.stdout.as_mut().expect("a pipe").read(&mut byte).expect("readable");
            assert_eq!(
                read,
                1,
                "{part:?} never came after {:?}{:?}",
                self.seen,
                String::from_utf8_lossy(&bytes)
            );
            bytes.push(byte[0]);
        }
        self.seen.push_str(&String::from_utf8_lossy(&bytes));
        assert!(self.seen.len() > from);
    }

    fn end(mut self) -> String {
        drop(self.child.stdin.take());
        let mut rest = String::new();
        let mut stdout = self.child.stdout.take().expect("a pipe");
        let mut bytes = Vec::new();
        stdout.read_to_end(&mut bytes).expect("readable");
        rest.push_str(&String::from_utf8_lossy(&bytes));
        self.child.wait().expect("ended");
        std::mem::take(&mut self.seen) + &rest
    }
}

/// Of a test that fails, too.
impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn every_pasted_line_runs() {
    let tool = Tool::new();
    let mut terminal = Terminal::start(&tool, "shell --create db");
    terminal.expect("terrace> ");
    terminal.type_in("put p1 1\rput p2 2\rput p3 3\r");
    terminal.type_in("\x1b[200~put b1 1\nput b2 2\nput b3 3\x1b[201~\r");
    terminal.type_in(".exit\r");
    let seen = terminal.end();
    assert!(!seen.contains("unexpected argument"), "{seen}");
    assert_eq!(tool.ok(&["scan", "db", "--count"]), "6\n", "{seen:?}");
}

#[test]
fn the_prompt_shows_a_transaction_and_tab_completes_options_and_paths() {
    let tool = Tool::new();
    std::fs::write(tool.path("entries.txt"), "a\t1\n").expect("written");
    let mut terminal = Terminal::start(&tool, "shell --create db");
    terminal.expect("terrace> ");
    terminal.type_in("begin\r");
    terminal.expect("terrace*> ");
    terminal.type_in("rollback\r");
    terminal.expect("terrace> ");
    terminal.type_in("load ent\t\r");
    terminal.expect("loaded 1 entry");
    terminal.type_in("scan --keys\t\r.exit\r");
    let seen = terminal.end();
    assert!(seen.contains("--keys-only"), "{seen:?}");
}

#[test]
fn a_load_from_a_terminal_says_so_and_draws_nothing() {
    let tool = Tool::new();
    let mut terminal = Terminal::start(&tool, "load db");
    terminal.expect("reads entries from standard input, until Ctrl-D");
    // Several times as long as a spinner stays as it is.
    std::thread::sleep(std::time::Duration::from_millis(500));
    terminal.type_in("a\t1\n\x04");
    terminal.expect("loaded 1 entry");
    let seen = terminal.end();
    assert!(!seen.contains("loading"), "{seen:?}");
    assert_eq!(tool.ok(&["scan", "db"]), "a\t1\n");
}

#[test]
fn a_line_that_is_not_utf8_is_not_run_and_the_transaction_goes_on() {
    let tool = Tool::new();
    let mut terminal = Terminal::start(&tool, "shell --create db");
    terminal.expect("terrace> ");
    terminal.type_in("begin\rput a 1\r");
    terminal.expect("put a 1");
    terminal.expect("terrace*> ");
    terminal.type_in_bytes(b"put b caf\xe9 ; delete a\r");
    terminal.expect("this is not UTF-8, and what was typed is dropped");
    terminal.expect("terrace*> ");
    terminal.type_in("put c 3\rcommit\r.exit\r");
    terminal.end();
    assert_eq!(tool.ok(&["scan", "db"]), "a\t1\nc\t3\n");
}

#[test]
fn a_line_that_is_not_utf8_costs_no_history() {
    let tool = Tool::new();
    std::fs::write(tool.path("history"), "#V2\nget earlier\n").expect("written");
    let mut terminal = Terminal::start_with_history(&tool, "shell --create db", "history");
    terminal.expect("terrace> ");
    terminal.type_in("put now 1\r");
    terminal.expect("terrace> ");
    terminal.type_in_bytes(b"\xe9\r");
    terminal.expect("this is not UTF-8");
    terminal.expect("terrace> ");
    terminal.type_in("get now\r.exit\r");
    terminal.end();
    let history = std::fs::read_to_string(tool.path("history")).expect("saved");
    for line in ["get earlier", "put now 1", "get now"] {
        assert!(history.lines().any(|saved| saved == line), "{line} is not in {history:?}");
    }
}

#[test]
fn an_interrupt_ends_a_scan_and_not_the_shell() {
    let tool = Tool::new();
    let lines: String = (0..200_000).map(|i| format!("key{i:06}\tvalue {i}\n")).collect();
    tool.ok_with(&["load", "db"], lines.as_bytes());
    let mut terminal = Terminal::start(&tool, "shell db");
    terminal.expect("terrace> ");
    terminal.type_in("scan\r");
    terminal.expect("key000100");
    terminal.type_in("\x03");
    terminal.expect("interrupted");
    terminal.expect("terrace> ");
    // At the prompt it drops the line, however often.
    for _ in 0..3 {
        terminal.type_in("put dropped 1\x03");
        terminal.expect("terrace> ");
    }
    terminal.type_in("put after 1\r.exit\r");
    let seen = terminal.end();
    assert!(!seen.contains("key199999"), "the scan went on to its end");
    assert_eq!(tool.ok(&["get", "db", "after"]), "1\n");
    tool.run(&["get", "db", "dropped"]).fails(1, "no entry");
    let help = tool.ok_with(&["shell", "db"], b".help\n");
    assert!(
        help.contains("Ctrl-C ends a scan or a load, and drops a line that is typed."),
        "{help}"
    );
}

#[test]
fn the_shell_has_verify_advise_and_checkpoint() {
    let tool = Tool::new();
    tool.sample("db");
    let printed = tool.ok_with(&["shell", "db"], b".help\nverify\ncheckpoint copy\nadvise\n");
    for part in ["checkpoint DIR", "verify ", "advise ", "no damage", "copy: ", "Nothing to change"]
    {
        assert!(printed.contains(part), "{part} is not in {printed}");
    }
}

/// Does this process ignore a signal, and so do its children? Under `nohup` SIGHUP is ignored.
fn is_ignored(signal: u32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.is_some_and(|mask| mask & (1 << (signal - 1)) != 0)
}

/// Starts a command and sends it a signal when `is_busy`. Returns false if the command ended first.
fn interrupt_when(tool: &Tool, args: &[&str], signal: &str, is_busy: &dyn Fn() -> bool) -> bool {
    let mut child = tool.command(args).spawn().expect("started");
    while !is_busy() {
        if child.try_wait().expect("waited").is_some() {
            return false;
        }
    }
    Command::new("kill").args(["-s", signal, &child.id().to_string()]).status().expect("sent");
    !child.wait().expect("ended").success()
}

#[test]
fn a_killed_command_leaves_no_temporary_files() {
    let tool = Tool::new();
    let lines: String = (0..100_000).map(|i| format!("key{i:06}\tvalue {i}\n")).collect();
    tool.ok_with(&["load", "db"], lines.as_bytes());
    let names = || {
        let mut names: Vec<_> = tool
            .path("")
            .read_dir()
            .expect("listed")
            .map(|e| e.expect("entry").file_name())
            .collect();
        names.sort();
        names
    };
    let before = names();
    // Many times: a signal may come at any moment of an open.
    let signals = [("INT", 2), ("TERM", 15), ("HUP", 1)].repeat(20);
    for (signal, _) in signals.into_iter().filter(|&(_, number)| !is_ignored(number)) {
        for (args, mark) in [
            (&["bench", "--benchmarks=fillrandom", "--num=100000000"][..], "terrace-bench-"),
            (&["dump", "db", "out.txt"], ".terrace-"),
        ] {
            // A dump may be over before the signal comes: then another one is started.
            while !interrupt_when(&tool, args, signal, &|| {
                names().iter().any(|name| name.to_string_lossy().starts_with(mark))
            }) {
                std::fs::remove_file(tool.path("out.txt")).expect("a complete dump");
            }
            // A signal that comes after the last step of a dump leaves all of it.
            if let Ok(dump) = std::fs::read_to_string(tool.path("out.txt")) {
                assert_eq!(dump.lines().count(), 100_000, "{args:?} after SIG{signal}");
                std::fs::remove_file(tool.path("out.txt")).expect("removed");
            }
            assert_eq!(names(), before, "{args:?} after SIG{signal}");
        }
    }
    // A load keeps its tables under temporary names inside the database.
    let mut child = tool.command(&["load", "db"]).spawn().expect("started");
    let mut stdin = child.stdin.take().expect("a pipe");
    let mut number = 0;
    // More than a pipe and a buffer hold: the load has begun, and what is there is not the CURRENT
    // of an open.
    while number < 20_000 || tool.files("db", ".dbtmp").is_empty() {
        stdin.write_all(format!("new{number:09}\t{number:0100}\n").as_bytes()).expect("read");
        number += 1;
    }
    Command::new("kill").args(["-s", "TERM", &child.id().to_string()]).status().expect("sent");
    assert!(!child.wait().expect("ended").success());
    assert_eq!(tool.files("db", ".dbtmp"), Vec::<std::path::PathBuf>::new());
}
