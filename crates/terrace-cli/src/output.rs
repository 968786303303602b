//! Where data goes: standard output or a file, buffered, with a closed pipe told apart from a
//! failure.

pub(crate) mod columns;
mod draft;

use std::io::{self, BufWriter, IsTerminal, Write};
use std::path::Path;

use serde::Serialize;

use crate::failure::{Failure, Result};
use crate::text;
use draft::Draft;

const BUFFER_SIZE: usize = 64 << 10;

/// A buffered stream of data.
pub(crate) struct Output {
    writer: BufWriter<Box<dyn Write>>,
    name: String,
    is_terminal: bool,
    discards_when_closed: bool,
    draft: Option<Draft>,
}

impl Output {
    pub(crate) fn stdout() -> Self {
        let stdout = io::stdout();
        let is_terminal = stdout.is_terminal();
        Self::new(Box::new(stdout), "standard output".into(), is_terminal)
    }

    /// Whether `path` means standard output: `-`, or one of its names.
    pub(crate) fn is_standard_output(path: &Path) -> bool {
        ["-", "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"]
            .iter()
            .any(|name| path == Path::new(name))
    }

    /// A file that is there, or takes the place of an old one, when it is [finished](Self::finish).
    pub(crate) fn file(path: &Path) -> Result<Self> {
        let (file, draft) = draft::create(path).map_err(|error| {
            match path.parent().filter(|dir| !dir.as_os_str().is_empty() && !dir.exists()) {
                None => Failure::io("create", path, &error),
                Some(dir) => Failure::other(format!(
                    "cannot create {}: there is no directory {}",
                    path.display(),
                    dir.display()
                )),
            }
        })?;
        Ok(Output { draft, ..Self::new(Box::new(file), path.display().to_string(), false) })
    }

    fn new(writer: Box<dyn Write>, name: String, is_terminal: bool) -> Self {
        Output {
            writer: BufWriter::with_capacity(BUFFER_SIZE, writer),
            name,
            is_terminal,
            discards_when_closed: false,
            draft: None,
        }
    }

    /// Whether a person sees what is written here at once.
    pub(crate) fn is_terminal(&self) -> bool {
        self.is_terminal
    }

    pub(crate) fn bytes(&mut self, bytes: &[u8]) -> Result<()> {
        let written = self.writer.write_all(bytes);
        self.checked(written)
    }

    /// One line, whatever names and messages from files it holds: control characters are printed as
    /// escapes.
    pub(crate) fn line(&mut self, line: impl AsRef<str>) -> Result<()> {
        self.bytes(text::printable(line.as_ref()).as_bytes())?;
        self.bytes(b"\n")
    }

    /// Several lines.
    pub(crate) fn lines(&mut self, lines: &str) -> Result<()> {
        lines.lines().try_for_each(|line| self.line(line))
    }

    /// One JSON value on one line.
    pub(crate) fn json(&mut self, value: &impl Serialize) -> Result<()> {
        let line =
            serde_json::to_string(value).map_err(|e| Failure::other(format!("JSON: {e}")))?;
        self.bytes(text::printable_json(line).as_bytes())?;
        self.bytes(b"\n")
    }

    pub(crate) fn flush(&mut self) -> Result<()> {
        let flushed = self.writer.flush();
        self.checked(flushed)
    }

    /// Writes out what is left, and has a file take its place.
    pub(crate) fn finish(mut self) -> Result<()> {
        self.flush()?;
        match self.draft {
            Some(draft) => draft
                .finish()
                .map_err(|e| Failure::other(format!("cannot write {}: {e}", self.name))),
            None => Ok(()),
        }
    }

    /// Has a closed pipe fail once, and all that is written after it vanish.
    pub(crate) fn discard_when_closed(&mut self) {
        self.discards_when_closed = true;
    }

    fn checked(&mut self, result: io::Result<()>) -> Result<()> {
        result.map_err(|error| {
            let failure = Failure::of_output(&self.name, &error);
            if matches!(failure, Failure::ClosedPipe) && self.discards_when_closed {
                self.writer = BufWriter::new(Box::new(io::sink()));
            }
            failure
        })
    }
}
