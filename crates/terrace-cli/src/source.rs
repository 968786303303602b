//! Lines of input, from a file or standard input, that know where they are.
//!
//! A line ends in a newline, or in a carriage return and a newline, as in text that has been on
//! Windows: every format that is read here writes a carriage return of a key or a value in another
//! way. A byte order mark before the first line is none of it; `dump` writes that of a key as
//! escapes.

use std::fmt::Display;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

use crate::failure::{Failure, Result};

const BUFFER_SIZE: usize = 64 << 10;

/// What programs on Windows begin a file of text with.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// Fails if the command was started with standard input closed.
///
/// Rust's runtime opens `/dev/null` for reading and writing in the place of a closed one, and to
/// read from that would be to take nothing for an empty input. `< /dev/null` is for reading alone
/// and stays an empty input.
pub(crate) fn require_standard_input() -> Result<()> {
    let stdin = io::stdin();
    let is_null = || -> rustix::io::Result<bool> {
        let (input, null) = (rustix::fs::fstat(&stdin)?, rustix::fs::stat("/dev/null")?);
        let is_same = (input.st_dev, input.st_ino) == (null.st_dev, null.st_ino);
        Ok(is_same && rustix::fs::fcntl_getfl(&stdin)?.contains(rustix::fs::OFlags::RDWR))
    };
    match is_null() {
        Ok(true) => Err(Failure::other(
            "standard input is closed (or is /dev/null, opened for writing too)",
        )),
        Ok(false) | Err(_) => Ok(()),
    }
}

/// Input that is read a line at a time.
pub(crate) struct Source {
    reader: BufReader<Box<dyn Read>>,
    name: String,
    size: Option<u64>,
    line: Vec<u8>,
    line_number: u64,
    bytes_read: u64,
}

impl Source {
    /// The file at `path`; standard input if there is no path or it is `-`.
    pub(crate) fn open(path: Option<&Path>) -> Result<Self> {
        let Some(path) = path.filter(|path| !Self::is_standard_input(Some(path))) else {
            require_standard_input()?;
            return Ok(Self::new(Box::new(io::stdin().lock()), "standard input".into(), None));
        };
        let file = File::open(path).map_err(|e| Failure::io("open", path, &e))?;
        let metadata = file.metadata().map_err(|e| Failure::io("open", path, &e))?;
        let size = metadata.is_file().then_some(metadata.len());
        Ok(Self::new(Box::new(file), path.display().to_string(), size))
    }

    /// Whether `path` means standard input.
    pub(crate) fn is_standard_input(path: Option<&Path>) -> bool {
        path.is_none_or(|path| path == Path::new("-"))
    }

    fn new(reader: Box<dyn Read>, name: String, size: Option<u64>) -> Self {
        let reader = BufReader::with_capacity(BUFFER_SIZE, reader);
        Source { reader, name, size, line: Vec::new(), line_number: 0, bytes_read: 0 }
    }

    #[cfg(test)]
    pub(crate) fn from_bytes(bytes: &'static [u8]) -> Self {
        Self::new(Box::new(bytes), "test".into(), None)
    }

    /// Reads the next line; false at the end of the input.
    pub(crate) fn advance(&mut self) -> Result<bool> {
        self.line.clear();
        let length = self.reader.read_until(b'\n', &mut self.line);
        let length =
            length.map_err(|e| Failure::other(format!("cannot read {}: {e}", self.name)))?;
        if length == 0 {
            return Ok(false);
        }
        self.line_number += 1;
        self.bytes_read += length as u64;
        if self.line.last() == Some(&b'\n') {
            self.line.pop();
            if self.line.last() == Some(&b'\r') {
                self.line.pop();
            }
        }
        if self.line_number == 1 && self.line.starts_with(BYTE_ORDER_MARK) {
            self.line.drain(..BYTE_ORDER_MARK.len());
        }
        Ok(true)
    }

    /// Whether the next line has been read already: `advance` does not wait for it.
    pub(crate) fn has_next_line(&self) -> bool {
        self.reader.buffer().contains(&b'\n')
    }

    /// The current line, without its end.
    pub(crate) fn line(&self) -> &[u8] {
        &self.line
    }

    /// The size of the whole input, where it is known.
    pub(crate) fn size(&self) -> Option<u64> {
        self.size
    }

    pub(crate) fn bytes_read(&self) -> u64 {
        self.bytes_read
    }

    /// A failure at the current line.
    pub(crate) fn mistake(&self, what: impl Display) -> Failure {
        Failure::other(format!("{}:{}: {what}", self.name, self.line_number))
    }

    /// A failure because the input is over too soon.
    pub(crate) fn ended_early(&self, what: impl Display) -> Failure {
        Failure::other(format!("{}: ends after line {}: {what}", self.name, self.line_number))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_ends_in_a_newline_with_or_without_one_carriage_return() {
        let mut source = Source::from_bytes(b"a\r\nb\nc\r\r\n\r\nd\re\r");
        let mut lines = Vec::new();
        while source.advance().expect("a line") {
            lines.push(source.line().to_vec());
        }
        assert_eq!(lines, [&b"a"[..], b"b", b"c\r", b"", b"d\re\r"]);
        assert_eq!(source.bytes_read(), 15);
    }
}
