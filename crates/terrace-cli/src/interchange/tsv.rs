//! One entry a line: key, TAB, value, both in a notation that never holds a TAB itself.

use crate::failure::Result;
use crate::source::Source;
use crate::text::Notation;

/// The next entry. Blank lines are passed over: an entry always has a TAB.
pub(super) fn read(source: &mut Source, notation: Notation) -> Result<Option<(Vec<u8>, Vec<u8>)>> {
    loop {
        if !source.advance()? {
            return Ok(None);
        }
        if !source.line().is_empty() {
            return parse(source, notation).map(Some);
        }
    }
}

fn parse(source: &Source, notation: Notation) -> Result<(Vec<u8>, Vec<u8>)> {
    let line = source.line();
    let Some(tab) = line.iter().position(|&byte| byte == b'\t') else {
        let hint = match line {
            [b'{', ..] => " (this looks like --format json)",
            _ if line.starts_with(b"VERSION=") => " (this looks like --format bdb)",
            _ => "",
        };
        return Err(source.mistake(format_args!("no TAB between key and value{hint}")));
    };
    let key =
        notation.decode(&line[..tab]).map_err(|e| source.mistake(format_args!("key: {e}")))?;
    let value = notation
        .decode(&line[tab + 1..])
        .map_err(|e| source.mistake(format_args!("value: {e}")))?;
    Ok((key, value))
}

pub(super) fn write(line: &mut Vec<u8>, notation: Notation, key: &[u8], value: &[u8]) {
    notation.encode_into(key, line);
    line.push(b'\t');
    notation.encode_into(value, line);
    line.push(b'\n');
}
