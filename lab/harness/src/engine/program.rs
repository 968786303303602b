//! The program of a column.

use std::path::PathBuf;
use std::process::{Command, Stdio};

/// What it takes to run a column's program.
#[derive(Clone, Debug)]
pub struct Program {
    /// The executable.
    pub path: PathBuf,
    /// Arguments before all others.
    pub arguments: Vec<String>,
    /// Where it finds its libraries, if not in the usual places.
    pub library_path: Option<PathBuf>,
    /// Passed on as `--variant`.
    pub variant: String,
}

impl Program {
    /// A command that runs it.
    #[must_use]
    pub fn command(&self) -> Command {
        let mut command = Command::new(&self.path);
        command.args(&self.arguments).stdin(Stdio::null());
        if let Some(path) = &self.library_path {
            command.env("LD_LIBRARY_PATH", path);
        }
        if !self.variant.is_empty() {
            command.arg(format!("--variant={}", self.variant));
        }
        command
    }
}
