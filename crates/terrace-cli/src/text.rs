//! Keys and values as people and scripts write them: text with escapes, hexadecimal or base64.
//!
//! 1. `decode(encode(bytes)) == bytes` for every notation and every byte string.
//! 2. An encoded form holds no TAB, no newline, no carriage return and no control character, so
//!    that a line of it can be cut at its TABs. In the text notation it is valid UTF-8.

use std::borrow::Cow;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use serde_json::Value;

/// Bytes of a key that a message shows at most.
const SHOWN: usize = 60;

/// A way to write bytes down.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Notation {
    /// UTF-8 as it is; a backslash, control characters and bytes that are not UTF-8 as escapes.
    #[default]
    Text,
    /// Two hexadecimal digits a byte.
    Hex,
    /// The standard alphabet, padded.
    Base64,
}

impl Notation {
    /// Appends `bytes`, written down, to `line`.
    pub(crate) fn encode_into(self, bytes: &[u8], line: &mut Vec<u8>) {
        match self {
            Notation::Text => escape_into(bytes, line),
            Notation::Hex => hex_into(bytes, line),
            Notation::Base64 => line.extend_from_slice(STANDARD.encode(bytes).as_bytes()),
        }
    }

    pub(crate) fn encode(self, bytes: &[u8]) -> String {
        let mut line = Vec::with_capacity(bytes.len());
        self.encode_into(bytes, &mut line);
        // The text notation escapes whatever is not UTF-8, the others are ASCII: nothing is ever
        // lost here.
        String::from_utf8_lossy(&line).into_owned()
    }

    /// A key, or another word of a user's, in a message: quoted where it is empty or has blanks,
    /// and shortened where it is long.
    pub(crate) fn in_message(self, bytes: &[u8]) -> String {
        match (bytes.get(..SHOWN), bytes) {
            (Some(start), _) => {
                format!("\"{}\"... ({} bytes)", self.encode(start), bytes.len())
            }
            (None, b"") => "\"\"".to_owned(),
            (None, _) if bytes.contains(&b' ') => format!("\"{}\"", self.encode(bytes)),
            (None, _) => self.encode(bytes),
        }
    }

    /// The bytes that `written` stands for, or what is wrong with it.
    pub(crate) fn decode(self, written: &[u8]) -> Result<Vec<u8>, String> {
        match self {
            Notation::Text => unescape(written),
            Notation::Hex => unhex(written),
            Notation::Base64 => STANDARD.decode(written).map_err(|e| format!("not base64: {e}")),
        }
    }
}

fn escape_into(bytes: &[u8], line: &mut Vec<u8>) {
    for chunk in bytes.utf8_chunks() {
        for (at, character) in chunk.valid().char_indices() {
            match character {
                '\\' => line.extend_from_slice(b"\\\\"),
                '\t' => line.extend_from_slice(b"\\t"),
                '\n' => line.extend_from_slice(b"\\n"),
                '\r' => line.extend_from_slice(b"\\r"),
                _ => {
                    let written = &chunk.valid().as_bytes()[at..at + character.len_utf8()];
                    if is_invisible(character) {
                        escape_bytes(written, line);
                    } else {
                        line.extend_from_slice(written);
                    }
                }
            }
        }
        escape_bytes(chunk.invalid(), line);
    }
}

fn escape_bytes(bytes: &[u8], line: &mut Vec<u8>) {
    for &byte in bytes {
        line.extend_from_slice(b"\\x");
        push_hex(byte, line);
    }
}

/// Characters that show nothing, break a line or turn the direction of what follows: two different
/// keys must not look the same on a terminal.
fn is_invisible(character: char) -> bool {
    character.is_control()
        || matches!(character, '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}')
        || matches!(character, '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

/// `text` with escapes in place of characters that a terminal would obey, or that break a line.
/// Backslashes stay, so that text in a notation comes out as it is.
pub(crate) fn printable(text: &str) -> Cow<'_, str> {
    let is_hostile = |character: char| character != '\t' && is_invisible(character);
    if !text.contains(is_hostile) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 16);
    for character in text.chars() {
        match is_hostile(character) {
            true => shown
                .push_str(&Notation::Text.encode(character.encode_utf8(&mut [0; 4]).as_bytes())),
            false => shown.push(character),
        }
    }
    Cow::Owned(shown)
}

/// The same inside of a JSON text: `\u` escapes, so that the strings stay what they are.
pub(crate) fn printable_json(json: String) -> String {
    if !json.contains(is_invisible) {
        return json;
    }
    let mut shown = String::with_capacity(json.len() + 16);
    for character in json.chars() {
        match is_invisible(character) {
            true => character
                .encode_utf16(&mut [0; 2])
                .iter()
                .for_each(|unit| shown.push_str(&format!("\\u{unit:04x}"))),
            false => shown.push(character),
        }
    }
    shown
}

fn unescape(written: &[u8]) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::with_capacity(written.len());
    let mut rest = written;
    while let Some(at) = rest.iter().position(|&byte| byte == b'\\') {
        bytes.extend_from_slice(&rest[..at]);
        let (byte, length) = unescape_one(&rest[at..])?;
        bytes.push(byte);
        rest = &rest[at + length..];
    }
    bytes.extend_from_slice(rest);
    Ok(bytes)
}

/// The byte that the escape at the start of `rest` stands for, and the escape's length.
fn unescape_one(rest: &[u8]) -> Result<(u8, usize), String> {
    let byte = match rest.get(1) {
        None => return Err("a backslash at the end; a backslash itself is written \\\\".into()),
        Some(b't') => b'\t',
        Some(b'n') => b'\n',
        Some(b'r') => b'\r',
        Some(&byte @ (b'\\' | b'"' | b'\'' | b' ')) => byte,
        Some(b'x') => {
            return match (
                rest.get(2).copied().and_then(digit),
                rest.get(3).copied().and_then(digit),
            ) {
                (Some(high), Some(low)) => Ok((high << 4 | low, 4)),
                _ => Err("\\x without two hexadecimal digits".into()),
            };
        }
        Some(&other) => {
            let mut shown = Vec::new();
            escape_into(&[other], &mut shown);
            let shown = String::from_utf8_lossy(&shown);
            return Err(format!("unknown escape \\{shown}; a backslash itself is written \\\\"));
        }
    };
    Ok((byte, 2))
}

const DIGITS: &[u8; 16] = b"0123456789abcdef";

/// `bytes` as JSON. In the text notation: a string that is exactly the text, or `{"base64": "..."}`
/// where the bytes are not UTF-8; in the other notations a string in that notation.
pub(crate) fn to_json(notation: Notation, bytes: &[u8]) -> Value {
    match (notation, std::str::from_utf8(bytes)) {
        (Notation::Text, Ok(text)) => text.into(),
        (Notation::Text, Err(_)) => serde_json::json!({ "base64": Notation::Base64.encode(bytes) }),
        (Notation::Hex | Notation::Base64, _) => notation.encode(bytes).into(),
    }
}

/// The two forms in which JSON holds bytes.
#[derive(Deserialize)]
#[serde(untagged, expecting = "a key or value must be a string or {\"base64\": \"...\"}")]
pub(crate) enum JsonBytes {
    Text(String),
    Base64 { base64: String },
}

impl JsonBytes {
    /// The bytes that [`to_json`] was given.
    pub(crate) fn decode(self, notation: Notation) -> Result<Vec<u8>, String> {
        match (self, notation) {
            (JsonBytes::Text(text), Notation::Text) => Ok(text.into_bytes()),
            (JsonBytes::Text(text), notation) => notation.decode(text.as_bytes()),
            (JsonBytes::Base64 { base64 }, _) => Notation::Base64.decode(base64.as_bytes()),
        }
    }
}

/// Appends the two digits of `byte`.
pub(crate) fn push_hex(byte: u8, line: &mut Vec<u8>) {
    line.push(DIGITS[usize::from(byte >> 4)]);
    line.push(DIGITS[usize::from(byte & 15)]);
}

/// Appends the digits of `bytes`.
pub(crate) fn hex_into(bytes: &[u8], line: &mut Vec<u8>) {
    for &byte in bytes {
        push_hex(byte, line);
    }
}

/// The bytes that pairs of hexadecimal digits stand for, or what is wrong with them.
pub(crate) fn unhex(written: &[u8]) -> Result<Vec<u8>, String> {
    if !written.len().is_multiple_of(2) {
        return Err(format!("an odd number of hexadecimal digits ({})", written.len()));
    }
    let pairs = written.chunks_exact(2).map(|pair| Some(digit(pair[0])? << 4 | digit(pair[1])?));
    pairs.collect::<Option<_>>().ok_or_else(|| "not hexadecimal".into())
}

/// The value of a hexadecimal digit.
pub(crate) fn digit(byte: u8) -> Option<u8> {
    char::from(byte).to_digit(16).map(|value| value as u8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_comes_back_in_every_notation() {
        let all: Vec<u8> = (0..=255).collect();
        for notation in [Notation::Text, Notation::Hex, Notation::Base64] {
            let mut cases: Vec<Vec<u8>> = (0..=255).map(|byte| vec![byte]).collect();
            cases.extend([all.clone(), Vec::new(), "grüße\u{202e}\u{200b}€\\".into()]);
            for bytes in cases {
                let written = notation.encode(&bytes);
                assert!(!written.chars().any(char::is_control), "{written:?}");
                assert_eq!(notation.decode(written.as_bytes()), Ok(bytes), "{written:?}");
            }
        }
    }

    #[test]
    fn text_stays_readable() {
        let text = |bytes: &[u8]| Notation::Text.encode(bytes);
        assert_eq!(text("grüße, 世界".as_bytes()), "grüße, 世界");
        assert_eq!(text(b"a\tb\nc\\d\0\xff"), "a\\tb\\nc\\\\d\\x00\\xff");
        assert_eq!(text("\u{200b}".as_bytes()), "\\xe2\\x80\\x8b");
    }

    #[test]
    fn messages_quote_and_shorten() {
        let shown = |bytes: &[u8]| Notation::Text.in_message(bytes);
        assert_eq!((shown(b"apple"), shown(b"")), ("apple".to_owned(), "\"\"".to_owned()));
        assert_eq!(shown(b"two words"), "\"two words\"");
        let long = shown(&[b'k'; 5000]);
        assert!(long.ends_with("kkk\"... (5000 bytes)") && long.len() < 90, "{long}");
    }

    #[test]
    fn mistakes_are_named() {
        let error = |notation: Notation, written: &str| {
            notation.decode(written.as_bytes()).expect_err("a mistake")
        };
        assert!(error(Notation::Text, "a\\q").contains("unknown escape \\q"));
        assert!(error(Notation::Text, "a\\x1").contains("two hexadecimal digits"));
        assert!(error(Notation::Text, "a\\").contains("at the end"));
        assert!(error(Notation::Hex, "abc").contains("odd number"));
        assert!(error(Notation::Hex, "zz").contains("not hexadecimal"));
        assert!(error(Notation::Base64, "a").contains("not base64"));
    }
}
