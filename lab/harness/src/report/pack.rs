//! What the page's script is given (`dataset`), and on a page of several suites all but the first
//! sentences of each: compressed, as text that an element can hold. Readers without scripts have
//! the first chart and all tables of ratios of a suite's own page, the charts as files and all
//! figures in `results.csv`.
//!
//! Rejected: drawing charts from their figures by a script, which would be every kind of chart a
//! second time, in another language.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use miniz_oxide::deflate::compress_to_vec_zlib;

/// The best compression that is not slow.
const LEVEL: u8 = 9;

/// A part of the page: zlib, then base64.
pub(crate) fn pack(part: &str) -> String {
    STANDARD.encode(compress_to_vec_zlib(part.as_bytes(), LEVEL))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_packed_can_be_unpacked() {
        for part in ["", "<svg>one</svg>\n<svg>two ×</svg>"] {
            let bytes = STANDARD.decode(pack(part)).expect("base64");
            let text = miniz_oxide::inflate::decompress_to_vec_zlib(&bytes).expect("zlib");
            assert_eq!(text, part.as_bytes());
        }
    }
}
