//! The command-line tours of README.md and of the crate's own do what they show.

use std::env;
use std::path::Path;
use std::process::{Command, Stdio};

/// The output of one `$` line.
struct Step {
    command: String,
    output: String,
}

/// The steps of every `console` block.
fn tour(text: &str) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    let mut inside = false;
    for line in text.lines() {
        match line {
            "```console" => inside = true,
            "```" => inside = false,
            _ if !inside => {}
            _ => match line.strip_prefix("$ ") {
                Some(command) => {
                    steps.push(Step { command: command.to_owned(), output: String::new() })
                }
                None => {
                    let step = steps.last_mut().expect("a block begins with a command");
                    step.output.push_str(line);
                    step.output.push('\n');
                }
            },
        }
    }
    steps
}

fn follow(readme: &str) {
    let readme = Path::new(env!("CARGO_MANIFEST_DIR")).join(readme);
    let steps = tour(&std::fs::read_to_string(readme).expect("README.md"));
    assert!(steps.len() > 3, "the tour was not found");
    let dir = tempfile::tempdir().expect("a temporary directory");
    let program = Path::new(env!("CARGO_BIN_EXE_terrace")).parent().expect("a directory");
    let path = format!("{}:{}", program.display(), env::var("PATH").unwrap_or_default());
    for Step { command, output } in steps {
        // As a terminal shows it: messages and output in the order in which they come.
        let done = Command::new("sh")
            .args(["-c", &format!("exec 2>&1; {command}")])
            .current_dir(dir.path())
            .env("PATH", &path)
            .stdin(Stdio::null())
            .output()
            .expect("a shell");
        let said = String::from_utf8_lossy(&done.stdout);
        assert_eq!(said, output, "$ {command}");
    }
}

#[test]
fn the_tour_in_the_readme_is_true() {
    follow("../../README.md");
}

#[test]
fn the_tour_in_the_readme_of_the_crate_is_true() {
    follow("README.md");
}
