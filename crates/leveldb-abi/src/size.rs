//! Sizes in the environment.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

/// Bytes, or a number with K, M or G behind it; `None` for anything else.
pub(crate) fn parse(text: &OsStr) -> Option<usize> {
    let text = text.as_bytes();
    let (digits, unit) = match text.split_last()? {
        (b'K' | b'k', digits) => (digits, 1 << 10),
        (b'M' | b'm', digits) => (digits, 1 << 20),
        (b'G' | b'g', digits) => (digits, 1 << 30),
        _ => (text, 1),
    };
    let number: usize = std::str::from_utf8(digits).ok()?.parse().ok()?;
    number.checked_mul(unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_size_has_a_unit_or_none() {
        let parsed = |text: &str| parse(OsStr::new(text));
        assert_eq!(parsed("65536"), Some(65_536));
        assert_eq!(parsed("64M"), Some(64 << 20));
        assert_eq!(parsed("2g"), Some(2 << 30));
        for wrong in ["", "M", "-1", "64 M", "64MB", "99999999999999999999", "99999999999G"] {
            assert_eq!(parsed(wrong), None, "{wrong}");
        }
    }
}
