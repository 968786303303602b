//! Numbers in arguments.

use std::str::FromStr;

/// A whole number that fits.
pub(crate) fn parse_whole<T: FromStr>(text: &str) -> Result<T, String> {
    let digits = text.strip_prefix('-').unwrap_or(text);
    match text.parse() {
        Ok(number) => Ok(number),
        Err(_) if !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()) => {
            Err("the number is out of range".to_owned())
        }
        Err(_) => Err("this takes a whole number".to_owned()),
    }
}
