//! Whole databases as text: the formats of `load` and `dump`.
//!
//! Every format holds every byte string, and what `dump` writes `load` reads back.

mod bdb;
mod json;
mod tsv;

use clap::ValueEnum;

use crate::failure::Result;
use crate::output::Output;
use crate::source::Source;
use crate::text::Notation;

/// The format of a dump. (A comment on a variant would make clap print a paragraph for each
/// option.)
#[derive(ValueEnum, Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Format {
    #[default]
    Text,
    Json,
    Bdb,
}

/// Reads entries one after the other.
pub(crate) struct EntryReader {
    source: Source,
    kind: ReaderKind,
}

enum ReaderKind {
    Tsv(Notation),
    Json(Notation),
    Bdb(bdb::Reader),
}

impl EntryReader {
    pub(crate) fn new(mut source: Source, format: Format, notation: Notation) -> Result<Self> {
        let kind = match format {
            Format::Text => ReaderKind::Tsv(notation),
            Format::Json => ReaderKind::Json(notation),
            Format::Bdb => ReaderKind::Bdb(bdb::Reader::start(&mut source)?),
        };
        Ok(EntryReader { source, kind })
    }

    /// The next key and value; `None` at the end.
    pub(crate) fn read(&mut self) -> Result<Option<(Vec<u8>, Vec<u8>)>> {
        match &mut self.kind {
            ReaderKind::Tsv(notation) => tsv::read(&mut self.source, *notation),
            ReaderKind::Json(notation) => json::read(&mut self.source, *notation),
            ReaderKind::Bdb(reader) => reader.read(&mut self.source),
        }
    }

    /// Where the entries come from.
    pub(crate) fn source(&self) -> &Source {
        &self.source
    }
}

/// Writes entries one after the other.
pub(crate) struct EntryWriter {
    kind: WriterKind,
    line: Vec<u8>,
}

enum WriterKind {
    Tsv(Notation),
    Json(Notation),
    Bdb(bdb::Style),
}

impl EntryWriter {
    /// `printable` chooses the readable one of Berkeley DB's two styles.
    pub(crate) fn new(
        out: &mut Output,
        format: Format,
        notation: Notation,
        printable: bool,
    ) -> Result<Self> {
        let kind = match format {
            Format::Text => WriterKind::Tsv(notation),
            Format::Json => WriterKind::Json(notation),
            Format::Bdb => {
                WriterKind::Bdb(if printable { bdb::Style::Print } else { bdb::Style::Bytes })
            }
        };
        if let WriterKind::Bdb(style) = kind {
            bdb::write_header(out, style)?;
        }
        Ok(EntryWriter { kind, line: Vec::new() })
    }

    pub(crate) fn write(&mut self, out: &mut Output, key: &[u8], value: &[u8]) -> Result<()> {
        self.line.clear();
        match self.kind {
            WriterKind::Tsv(notation) => tsv::write(&mut self.line, notation, key, value),
            WriterKind::Json(notation) => return json::write(out, notation, key, value),
            WriterKind::Bdb(style) => bdb::write(&mut self.line, style, key, value),
        }
        out.bytes(&self.line)
    }

    pub(crate) fn finish(self, out: &mut Output) -> Result<()> {
        match self.kind {
            WriterKind::Bdb(_) => bdb::write_end(out),
            WriterKind::Tsv(_) | WriterKind::Json(_) => Ok(()),
        }
    }
}
