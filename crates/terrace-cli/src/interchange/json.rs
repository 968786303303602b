//! One JSON object a line, `{"key": ..., "value": ...}`. A string is exactly the text that it
//! stands for; bytes that are not UTF-8, which no JSON string holds, are `{"base64": "..."}`. With
//! `--hex` and `--base64` strings are in that notation.

use serde::Deserialize;
use serde_json::json;

use crate::failure::Result;
use crate::output::Output;
use crate::source::Source;
use crate::text::{JsonBytes, Notation, to_json};

const ONE_OBJECT_A_LINE: &str = "this is no JSON object on a line of its own, as in \
    {\"key\": \"...\", \"value\": \"...\"}; `jq -c` prints such lines, of an array with `.[]`";

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ReadEntry {
    key: JsonBytes,
    value: JsonBytes,
}

pub(super) fn read(source: &mut Source, notation: Notation) -> Result<Option<(Vec<u8>, Vec<u8>)>> {
    loop {
        if !source.advance()? {
            return Ok(None);
        }
        if source.line().trim_ascii().is_empty() {
            continue;
        }
        let line = source.line().trim_ascii();
        // A struct can be read from an array, too.
        if !line.starts_with(b"{") {
            return Err(source.mistake(ONE_OBJECT_A_LINE));
        }
        let entry: ReadEntry = serde_json::from_slice(line).map_err(|error| {
            if error.is_eof() {
                source.mistake(ONE_OBJECT_A_LINE)
            } else {
                source.mistake(without_line(&error))
            }
        })?;
        let decode = |name: &str, written: JsonBytes| {
            written.decode(notation).map_err(|e| source.mistake(format_args!("{name}: {e}")))
        };
        return Ok(Some((decode("key", entry.key)?, decode("value", entry.value)?)));
    }
}

pub(super) fn write(out: &mut Output, notation: Notation, key: &[u8], value: &[u8]) -> Result<()> {
    out.json(&json!({ "key": to_json(notation, key), "value": to_json(notation, value) }))
}

/// The parser's message. It counts lines within what it was given, which is always one line.
fn without_line(error: &serde_json::Error) -> String {
    let (message, column) = (error.to_string(), error.column());
    match message.split_once(" at line ") {
        Some((what, _)) => format!("{what} at column {column}"),
        None => message,
    }
}
