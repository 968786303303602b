//! Runs the command as a user does, in a directory of its own.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::SystemTime;

use tempfile::TempDir;

/// A temporary directory, and the command in it.
pub(crate) struct Tool {
    dir: TempDir,
}

/// The result of a run of the command.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) status: i32,
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: String,
}

impl Tool {
    pub(crate) fn new() -> Self {
        Tool { dir: tempfile::tempdir().expect("a temporary directory") }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub(crate) fn run<S: AsRef<OsStr>>(&self, args: &[S]) -> Ran {
        self.run_with(args, b"")
    }

    /// Runs with `input` on standard input. Paths in `args` are relative to the temporary
    /// directory.
    pub(crate) fn run_with<S: AsRef<OsStr>>(&self, args: &[S], input: &[u8]) -> Ran {
        let mut child = self.command(args).spawn().expect("the command starts");
        let mut stdin = child.stdin.take().expect("a pipe");
        let input = input.to_vec();
        // The command may end without reading all of it.
        let writer = std::thread::spawn(move || drop(stdin.write_all(&input)));
        let output = child.wait_with_output().expect("the command ends");
        writer.join().expect("the writer ends");
        let stderr = String::from_utf8(output.stderr).expect("messages are UTF-8");
        assert!(!stderr.contains("panicked"), "{stderr}");
        Ran { status: output.status.code().expect("no signal"), stdout: output.stdout, stderr }
    }

    pub(crate) fn command<S: AsRef<OsStr>>(&self, args: &[S]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_terrace"));
        command.args(args).current_dir(self.dir.path()).env("TMPDIR", self.dir.path());
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// Runs, expects success and silence on standard error, and returns what was printed.
    pub(crate) fn ok<S: AsRef<OsStr>>(&self, args: &[S]) -> String {
        self.run(args).ok()
    }

    pub(crate) fn ok_with<S: AsRef<OsStr>>(&self, args: &[S], input: &[u8]) -> String {
        self.run_with(args, input).ok()
    }

    /// A database with tables in several levels' worth of files, a log with further entries,
    /// overwrites and deletes.
    pub(crate) fn sample(&self, db: &str) {
        let lines: String = (0..2000).map(|i| format!("key{i:05}\tvalue {i}\n")).collect();
        self.ok_with(&["load", db], lines.as_bytes());
        self.ok(&["compact", db]);
        self.ok_with(&["batch", db], b"put key00007 seven\ndelete key00008\nput zebra stripes\n");
    }

    /// The files of `db` whose names end in `suffix`, or begin with it.
    pub(crate) fn files(&self, db: &str, part: &str) -> Vec<PathBuf> {
        let names = self
            .path(db)
            .read_dir()
            .expect("a directory")
            .map(|entry| entry.expect("an entry").path());
        let fits = |path: &PathBuf| {
            let name = path.file_name().and_then(OsStr::to_str).unwrap_or_default();
            name.ends_with(part) || name.starts_with(part)
        };
        let mut files: Vec<PathBuf> = names.filter(fits).collect();
        files.sort();
        files
    }
}

impl Ran {
    #[track_caller]
    pub(crate) fn ok(self) -> String {
        assert_eq!(
            (self.status, self.stderr.as_str()),
            (0, ""),
            "{}",
            String::from_utf8_lossy(&self.stdout)
        );
        String::from_utf8(self.stdout).expect("UTF-8")
    }

    /// Expects this status and a one-line message that holds `part`.
    #[track_caller]
    pub(crate) fn fails(self, status: i32, part: &str) {
        assert_eq!(self.status, status, "{self:?}");
        assert!(self.stderr.contains(part), "{:?} is not in {:?}", part, self.stderr);
        assert!(self.stderr.starts_with("terrace: "), "{}", self.stderr);
    }

    /// Expects this status and a message behind others that holds `part`.
    #[track_caller]
    pub(crate) fn fails_after_warning(self, status: i32, part: &str) {
        let message = self.stderr.lines().last().unwrap_or_default();
        assert!(self.status == status && message.contains(part), "{self:?}");
    }

    #[track_caller]
    pub(crate) fn json_lines(self) -> Vec<serde_json::Value> {
        let text = self.ok();
        text.lines()
            .map(|line| serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line}")))
            .collect()
    }
}

/// The contents of a directory: bytes and times of every file.
pub(crate) fn state_of(dir: &Path) -> BTreeMap<PathBuf, (Vec<u8>, SystemTime)> {
    let files = dir.read_dir().expect("a directory").map(|entry| entry.expect("an entry").path());
    let files = files.filter(|path| path.is_file());
    let state = files.map(|path| {
        let bytes = std::fs::read(&path).expect("readable");
        let time = path.metadata().and_then(|metadata| metadata.modified()).expect("a time");
        (path, (bytes, time))
    });
    let mut state: BTreeMap<_, _> = state.collect();
    let time = dir.metadata().and_then(|metadata| metadata.modified()).expect("a time");
    state.insert(dir.to_path_buf(), (Vec::new(), time));
    state
}
