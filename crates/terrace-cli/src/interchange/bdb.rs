//! Berkeley DB's text format, as `db_dump` writes and `db_load` reads it.
//!
//! A header of `NAME=VALUE` lines up to `HEADER=END`, then a line per key and a line per value in
//! turn, each beginning with one space, up to `DATA=END`. With `format=bytevalue` bytes are pairs
//! of hexadecimal digits; with `format=print` printable ASCII stands for itself, `\\` for a
//! backslash and `\xx` for any other byte.

use crate::failure::Result;
use crate::output::Output;
use crate::source::Source;
use crate::text;

/// The two ways to write bytes down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Style {
    Bytes,
    Print,
}

/// Reads the part behind the header.
pub(super) struct Reader {
    style: Style,
}

impl Reader {
    /// Reads the header.
    pub(super) fn start(source: &mut Source) -> Result<Self> {
        let mut style = None;
        loop {
            if !source.advance()? {
                return Err(source
                    .ended_early("HEADER=END is missing, so this is not a whole db_dump file"));
            }
            let line = String::from_utf8_lossy(source.line()).into_owned();
            let Some((name, value)) = line.split_once('=') else {
                return Err(source.mistake("not a header line of the form NAME=VALUE"));
            };
            match (name, value) {
                ("HEADER", "END") => break,
                ("VERSION", "1" | "2" | "3") => {}
                ("VERSION", _) => {
                    return Err(source.mistake(format_args!("unknown version {value}")));
                }
                ("format", "bytevalue") => style = Some(Style::Bytes),
                ("format", "print") => style = Some(Style::Print),
                ("format", _) => return Err(source.mistake(format_args!("unknown format {value}"))),
                ("type", "btree" | "hash") => {}
                ("type", _) => {
                    return Err(source
                        .mistake(format_args!("a database of type {value} has no keys of bytes")));
                }
                // The rest describes Berkeley DB's own pages and trees.
                _ => {}
            }
        }
        match style {
            Some(style) => Ok(Reader { style }),
            None => Err(source.mistake("the header does not say format=bytevalue or format=print")),
        }
    }

    pub(super) fn read(&mut self, source: &mut Source) -> Result<Option<(Vec<u8>, Vec<u8>)>> {
        let Some(key) = self.datum(source, "key")? else {
            while source.advance()? {
                if !source.line().is_empty() {
                    return Err(source
                        .mistake("more follows DATA=END; load a file of one database at a time"));
                }
            }
            return Ok(None);
        };
        match self.datum(source, "value")? {
            Some(value) => Ok(Some((key, value))),
            None => Err(source.mistake("DATA=END where the value of the key before it must be")),
        }
    }

    /// The next line's bytes; `None` at `DATA=END`.
    fn datum(&self, source: &mut Source, what: &str) -> Result<Option<Vec<u8>>> {
        if !source.advance()? {
            return Err(source.ended_early("DATA=END is missing, so the input is cut short"));
        }
        let line = source.line();
        if line == b"DATA=END" {
            return Ok(None);
        }
        let Some(written) = line.strip_prefix(b" ") else {
            return Err(source.mistake(format_args!("a {what} line must begin with a space")));
        };
        let bytes = match self.style {
            Style::Bytes => text::unhex(written),
            Style::Print => decode_print(written),
        };
        bytes.map(Some).map_err(|e| source.mistake(format_args!("{what}: {e}")))
    }
}

fn decode_print(written: &[u8]) -> std::result::Result<Vec<u8>, String> {
    let mut bytes = Vec::with_capacity(written.len());
    let mut rest = written.iter().copied();
    while let Some(byte) = rest.next() {
        if byte != b'\\' {
            bytes.push(byte);
            continue;
        }
        match rest.next() {
            Some(b'\\') => bytes.push(b'\\'),
            Some(first) => match (text::digit(first), rest.next().and_then(text::digit)) {
                (Some(high), Some(low)) => bytes.push(high << 4 | low),
                _ => return Err("a backslash without two hexadecimal digits".into()),
            },
            None => return Err("a backslash at the end".into()),
        }
    }
    Ok(bytes)
}

pub(super) fn write_header(out: &mut Output, style: Style) -> Result<()> {
    let format = match style {
        Style::Bytes => "bytevalue",
        Style::Print => "print",
    };
    out.lines(&format!("VERSION=3\nformat={format}\ntype=btree\nHEADER=END"))
}

pub(super) fn write(lines: &mut Vec<u8>, style: Style, key: &[u8], value: &[u8]) {
    for bytes in [key, value] {
        lines.push(b' ');
        match style {
            Style::Bytes => text::hex_into(bytes, lines),
            Style::Print => encode_print(bytes, lines),
        }
        lines.push(b'\n');
    }
}

fn encode_print(bytes: &[u8], line: &mut Vec<u8>) {
    for &byte in bytes {
        match byte {
            b'\\' => line.extend_from_slice(b"\\\\"),
            b' '..=b'~' => line.push(byte),
            _ => {
                line.push(b'\\');
                text::push_hex(byte, line);
            }
        }
    }
}

pub(super) fn write_end(out: &mut Output) -> Result<()> {
    out.line("DATA=END")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(input: &'static [u8]) -> Result<Vec<(Vec<u8>, Vec<u8>)>> {
        let mut source = Source::from_bytes(input);
        let mut reader = Reader::start(&mut source)?;
        let mut entries = Vec::new();
        while let Some(entry) = reader.read(&mut source)? {
            entries.push(entry);
        }
        Ok(entries)
    }

    #[test]
    fn what_db_dump_writes_is_read() {
        let bytes =
            b"VERSION=3\nformat=bytevalue\ntype=btree\ndb_pagesize=4096\nHEADER=END\n 6b\n 76\n \n \nDATA=END\n";
        let print =
            b"VERSION=3\nformat=print\ntype=hash\nh_nelem=2\nHEADER=END\n k\n v\n \n \nDATA=END\n";
        let expected = vec![(b"k".to_vec(), b"v".to_vec()), (Vec::new(), Vec::new())];
        assert_eq!(read(bytes).expect("entries"), expected);
        assert_eq!(read(print).expect("entries"), expected);
        assert_eq!(decode_print(b"a\\00\\\\\\ff"), Ok(b"a\0\\\xff".to_vec()));
    }

    #[test]
    fn mistakes_name_the_line() {
        let mistakes: [(&[u8], &str); 8] = [
            (b"VERSION=3\n", "test: ends after line 1"),
            (b"VERSION=9\n", "test:1: unknown version"),
            (b"VERSION=3\nformat=print\ntype=recno\n", "test:3: a database of type recno"),
            (b"VERSION=3\nHEADER=END\n", "test:2: the header does not say format"),
            (b"format=print\nHEADER=END\nk\n", "test:3: a key line must begin with a space"),
            (b"format=print\nHEADER=END\n k\nDATA=END\n", "test:4: DATA=END where the value"),
            (b"format=bytevalue\nHEADER=END\n 6b\n 7\n", "test:4: value: an odd number"),
            (b"format=print\nHEADER=END\n k\n v\n", "test: ends after line 4: DATA=END is missing"),
        ];
        for (input, message) in mistakes {
            let failure = read(input).expect_err("a mistake").to_string();
            assert!(failure.starts_with(message), "{failure}");
        }
    }
}
