//! Numbers in arguments.

use std::str::FromStr;
use std::time::Duration;

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

/// A whole number from `least` to `most`, where there is one.
pub(crate) fn parse_from(least: u64, most: Option<u64>, text: &str) -> Result<u64, String> {
    let number = parse_whole(text)?;
    if number < least || most.is_some_and(|most| number > most) {
        return Err(match most {
            Some(most) => format!("it must be from {least} to {most}"),
            None => format!("it must be at least {least}"),
        });
    }
    Ok(number)
}

/// A time in whole seconds.
pub(crate) fn parse_seconds(text: &str) -> Result<Duration, String> {
    parse_whole(text).map(Duration::from_secs)
}

/// Bytes: a number, or one with K, M or G (powers of 1,024; `KB` and `KiB` mean the same).
pub(crate) fn parse_size(written: &str) -> Result<usize, String> {
    let digits = written.trim_end_matches(|c: char| !c.is_ascii_digit());
    let unit = written[digits.len()..].trim().to_ascii_lowercase();
    let shift = match unit.as_str() {
        "" | "b" => 0,
        "k" | "kb" | "kib" => 10,
        "m" | "mb" | "mib" => 20,
        "g" | "gb" | "gib" => 30,
        _ => return Err("not a size: use a number, or one with K, M or G".into()),
    };
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err("not a size: use a number, or one with K, M or G".into());
    }
    let number = digits.parse::<usize>().ok();
    number.and_then(|number| number.checked_mul(1 << shift)).ok_or_else(|| "too large".into())
}

/// Bytes of a block before compression.
pub(crate) fn parse_block_size(written: &str) -> Result<usize, String> {
    parse_size_from("1K", "4M", written)
}

/// Bytes of a dictionary at most.
pub(crate) fn parse_zstd_dictionary(written: &str) -> Result<usize, String> {
    match parse_size(written)? {
        0 => Ok(0),
        _ => parse_size_from("2K", "256K", written),
    }
}

/// Bytes of a memtable.
pub(crate) fn parse_write_buffer_size(written: &str) -> Result<usize, String> {
    parse_size_from("64K", "1G", written)
}

/// Bytes of a table.
pub(crate) fn parse_max_file_size(written: &str) -> Result<usize, String> {
    parse_size_from("1M", "1G", written)
}

/// Bytes from `least` to `most`.
fn parse_size_from(least: &str, most: &str, written: &str) -> Result<usize, String> {
    let size = parse_size(written)?;
    match (parse_size(least)?..=parse_size(most)?).contains(&size) {
        true => Ok(size),
        false => Err(format!("it must be from {least} to {most}")),
    }
}

/// The least size of values in value files.
pub(crate) fn parse_value_log(written: &str) -> Result<usize, String> {
    match parse_size(written)? {
        0 => Err("it must be at least 1; without the option values stay in tables".into()),
        size => Ok(size),
    }
}

#[cfg(test)]
mod tests {
    use super::{parse_block_size, parse_from, parse_size};

    #[test]
    fn sizes_have_units() {
        assert_eq!(parse_size("4096"), Ok(4096));
        assert_eq!(parse_size("4K"), Ok(4096));
        assert_eq!(parse_size("2MiB"), Ok(2 << 20));
        assert_eq!(parse_size("1g"), Ok(1 << 30));
        for bad in ["", "K", "4x", "-1", "1.5M", "99999999999G"] {
            assert!(parse_size(bad).is_err(), "{bad}");
        }
        for large in ["99999999999G", "99999999999999999999", "99999999999999999999K"] {
            assert_eq!(parse_size(large), Err("too large".into()), "{large}");
        }
    }

    #[test]
    fn a_size_out_of_bounds_is_told_the_bounds() {
        assert_eq!(parse_block_size("1K"), Ok(1 << 10));
        assert_eq!(parse_block_size("4M"), Ok(4 << 20));
        for bad in ["0", "1", "1023", "5M", "4194305"] {
            assert_eq!(parse_block_size(bad), Err("it must be from 1K to 4M".into()), "{bad}");
        }
        assert!(parse_block_size("x").is_err_and(|error| error.starts_with("not a size")));
    }

    #[test]
    fn a_number_out_of_bounds_is_told_the_bounds() {
        assert_eq!(parse_from(1, None, "7"), Ok(7));
        assert_eq!(parse_from(1, None, "0"), Err("it must be at least 1".into()));
        assert_eq!(parse_from(1, Some(9), "10"), Err("it must be from 1 to 9".into()));
        assert_eq!(parse_from(1, None, "-1"), Err("the number is out of range".into()));
        assert_eq!(parse_from(1, None, "x"), Err("this takes a whole number".into()));
    }
}
