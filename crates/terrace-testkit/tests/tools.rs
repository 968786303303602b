//! The checks under `tools` fail where what they run fails: a check that cannot look must not look
//! like success.
//!
//! Each runs in a directory of its own, with programs that only seem to be cargo, rustc and LLVM's.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use std::sync::{Mutex, PoisonError};

use tempfile::TempDir;

const TOOLS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tools");

/// A process that another test starts would inherit a program that is being written, which then
/// cannot be run.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// A copy of one tool, and programs in its `PATH`.
struct Isolated {
    dir: TempDir,
    tool: &'static str,
}

impl Isolated {
    fn of(tool: &'static str) -> Self {
        let copy = Isolated { dir: tempfile::tempdir().expect("a temporary directory"), tool };
        for dir in ["tools", "bin", "crates/terrace/tests"] {
            fs::create_dir_all(copy.dir.path().join(dir)).expect("created");
        }
        fs::copy(Path::new(TOOLS).join(tool), copy.dir.path().join("tools").join(tool))
            .expect("copied");
        copy
    }

    fn file(&self, name: &str, text: &str) {
        fs::create_dir_all(self.dir.path().join(name).parent().expect("a directory"))
            .expect("created");
        fs::write(self.dir.path().join(name), text).expect("written");
    }

    fn program(&self, name: &str, script: &str) {
        self.file(name, &format!("#!/bin/sh\n{script}\n"));
        let executable = fs::Permissions::from_mode(0o755);
        fs::set_permissions(self.dir.path().join(name), executable).expect("changed");
    }

    /// Whether the tool succeeds, and what it prints.
    fn run(&self, arguments: &[&str]) -> (bool, String) {
        let path = std::env::var("PATH").unwrap_or_default();
        let output = Command::new("bash")
            .arg(self.dir.path().join("tools").join(self.tool))
            .args(arguments)
            .env("PATH", format!("{}:{path}", self.dir.path().join("bin").display()))
            .env("CARGO", "cargo")
            .output()
            .expect("bash");
        let printed =
            [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
        (output.status.success(), printed.concat())
    }
}

#[test]
fn mutants_know_what_it_is_asked_to_remove() {
    let _one = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let copy = Isolated::of("mutants");
    copy.file(
        "crates/terrace/tests/mutants.txt",
        "# safety | target | test | scale\nlog-sync | crash | survives | 1\n",
    );
    // Every test passes but where the safety is removed.
    copy.program("deps/crash-0", "[ \"$TERRACE_MUTANT\" = none ] && echo '1 passed'");
    let built = format!("{{\"executable\":\"{}/deps/crash-0\"}}", copy.dir.path().display());
    copy.program("bin/cargo", &format!("echo '{built}'"));
    for arguments in [&[][..], &["log-sync"]] {
        let (success, printed) = copy.run(arguments);
        assert!(success && printed.contains("1 caught, 0 problems"), "{arguments:?}: {printed}");
    }
    for arguments in [&["log"][..], &["log-sync", "log-sink"], &[""], &["-v"]] {
        let (success, printed) = copy.run(arguments);
        let unknown = arguments.last().expect("a name");
        assert!(
            !success && printed.contains(&format!("no safety {unknown} in")),
            "{arguments:?}: {printed}"
        );
    }
}

#[test]
fn an_audit_that_cannot_look_fails() {
    let _one = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let copy = Isolated::of("audit");
    let text = fs::read_to_string(Path::new(TOOLS).join("audit")).expect("the tool");
    let (_, known) = text.split_once("\nengine='").expect("the engine's dependencies");
    let (known, _) = known.split_once('\'').expect("an end");
    let direct: String = known.split(' ').map(|name| format!("{name} v1.0.0\\n")).collect();
    for workspace in ["", "lab/", "fuzz/"] {
        copy.file(&format!("{workspace}Cargo.lock"), "[[package]]\nname = \"terrace\"\n");
    }
    let cargo = |of_lab: &str| {
        let direct = format!("*'--depth 1'*) printf 'terrace v0.1.0\\n{direct}' ;;");
        let whole = "*--workspace*) printf 'terrace v0.1.0\\tMIT OR Apache-2.0\\n' ;;";
        copy.program(
            "bin/cargo",
            &format!("case \"$*\" in\n*lab/*) {of_lab} ;;\n{direct}\n{whole}\nesac"),
        );
    };
    cargo("printf 'lab v0.1.0\\tMIT\\n'");
    let (success, printed) = copy.run(&[]);
    assert!(success && printed.contains("the engine takes in"), "{printed}");
    for of_lab in [
        "exit 101",
        "printf 'lab v0.1.0\\tMIT\\n'; exit 101",
        "printf ''",
        "printf 'lab v0.1.0\\tsecret\\n'",
    ] {
        cargo(of_lab);
        let (success, printed) = copy.run(&[]);
        assert!(!success && printed.contains("lab/Cargo.toml"), "{of_lab}: {printed}");
    }
}

#[test]
fn coverage_of_failing_tests_fails() {
    let _one = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let copy = Isolated::of("coverage");
    copy.program("bin/rustc", "printf 'host: here\\nLLVM version: 0.0\\n'");
    copy.program("bin/llvm-profdata-0", "exit 0");
    copy.program("bin/llvm-cov-0", "exit 0");
    let built = format!("{{\"executable\":\"{}/deps/basics-0\"}}", copy.dir.path().display());
    copy.program("bin/cargo", &format!("echo '{built}'"));
    for passes in [true, false] {
        copy.program("deps/basics-0", if passes { "exit 0" } else { "exit 1" });
        let (success, printed) = copy.run(&[]);
        assert_eq!(success, passes, "{printed}");
        assert!(printed.contains("decoders"), "the figures are printed all the same: {printed}");
    }
}
