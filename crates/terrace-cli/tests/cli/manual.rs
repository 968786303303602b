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
    let page = |name: &str| fs::read_to_string(tool.path("share/man1").join(name)).expect("a page");
    // Tables and examples keep their lines, and a reader can copy them.
    let bench = page("terrace-bench.1");
    let (_, table) = bench.split_once(".nf\n").expect("a table");
    assert!(table.starts_with("fillseq, fillrandom        put num entries"), "{table}");
    let load = page("terrace-load.1");
    let (_, examples) = load.split_once(".SH EXAMPLES\n.RS 2\n.nf\n").expect("examples");
    let example = "\nprintf \\*(Aqa\\et1\\enb\\et2\\en\\*(Aq | terrace load DB\n";
    assert!(examples.contains(example), "{load}");
    assert!(examples.trim_end().ends_with(".fi\n.RE"), "{load}");
    for name in ["terrace.1", "terrace-scan.1", "terrace-verify.1", "terrace-keyspace-create.1"] {
        let (page, name) = (page(name), name.trim_end_matches(".1"));
        assert!(page.contains("\n.SH \"EXIT STATUS\"\n") && !page.contains("EXTRA"), "{page}");
        let title = format!("\n.TH {name} 1 \"\" \"{name} ");
        assert!(page.contains(&title), "the footer is its own: {page}");
    }
    assert!(page("terrace-shell.1").contains("TERRACE_HISTORY"));
    let verify = page("terrace-verify.1");
    let (_, statuses) = verify.split_once(".SH \"EXIT STATUS\"\n").expect("statuses");
    let usual = "1 if anything is.\n.PP\nAs of every command: 0 all is well;";
    assert!(statuses.starts_with(usual), "{verify}");
    fs::write(tool.path("file"), "").expect("a file");
    let ran = tool.run(&["man", "file"]);
    assert_eq!(ran.status, 2);
    assert!(ran.stderr.starts_with("terrace: cannot create file: "), "{}", ran.stderr);
}

#[test]
fn help_says_what_an_option_takes() {
    let tool = Tool::new();
    let help = tool.ok(&["help", "compact"]);
    let help = help.split_whitespace().collect::<Vec<_>>().join(" ");
    for bounds in [
        "before compression, from 1K to 4M",
        "flushed, from 64K to 1G",
        "begins, from 1M to 1G",
        "same time, from 74 to 50000",
    ] {
        assert!(help.contains(bounds), "{bounds} is not in {help}");
    }
    assert!(help.contains("snappy, none, lz4"), "{help}");
    assert_eq!(help.contains("zstd"), cfg!(feature = "zstd"), "{help}");
    let help = tool.ok(&["help"]);
    assert!(help.contains("Create, list and drop keyspaces, and count their entries"), "{help}");
}

/// Text that was broken into lines for a wide terminal would be broken again, in the middle.
#[test]
fn help_fills_the_lines_of_a_terminal_of_any_width() {
    let tool = Tool::new();
    for width in [60, 80, 100] {
        for command in ["--help", "scan", "load", "dump", "shell", "bench", "advise"] {
            let args = if command == "--help" { vec![command] } else { vec![command, "--help"] };
            let ran = tool.command(&args).env("COLUMNS", width.to_string()).output();
            let help = String::from_utf8(ran.expect("it runs").stdout).expect("text");
            let prose = |line: &&str| !line.is_empty() && !line.starts_with(' ');
            let lines: Vec<&str> = help.lines().collect();
            // An example or a row of a list may end flush left where it was wrapped.
            let lists = lines.iter().rposition(|line| line.starts_with("Examples:"));
            for pair in lines[..lists.unwrap_or(lines.len())].windows(2) {
                if pair.iter().all(prose) {
                    let next = pair[1].split(' ').next().unwrap_or_default();
                    let fits = pair[0].len() + 1 + next.len() <= width;
                    assert!(!fits, "{args:?} at {width}: {next} fits behind {}", pair[0]);
                }
            }
        }
    }
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
