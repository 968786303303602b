//! One JSON object a line. Keys and values are strings in a notation, because JSON strings cannot hold any byte.

use serde::{Deserialize, Serialize};

use crate::failure::Result;
use crate::output::Output;
use crate::source::Source;
use crate::text::Notation;

#[derive(Deserialize)]
struct ReadEntry {
    key: String,
    value: String,
}

#[derive(Serialize)]
struct WrittenEntry {
    key: String,
    value: String,
}

pub(super) fn read(source: &mut Source, notation: Notation) -> Result<Option<(Vec<u8>, Vec<u8>)>> {
    loop {
        if !source.advance()? {
            return Ok(None);
        }
        if source.line().trim_ascii().is_empty() {
            continue;
        }
        let entry: ReadEntry = serde_json::from_slice(source.line()).map_err(|e| source.mistake(e))?;
        let decode = |name: &str, written: &str| {
            notation.decode(written.as_bytes()).map_err(|e| source.mistake(format_args!("{name}: {e}")))
        };
        return Ok(Some((decode("key", &entry.key)?, decode("value", &entry.value)?)));
    }
}

pub(super) fn write(out: &mut Output, notation: Notation, key: &[u8], value: &[u8]) -> Result<()> {
    out.json(&WrittenEntry { key: notation.encode(key), value: notation.encode(value) })
}
