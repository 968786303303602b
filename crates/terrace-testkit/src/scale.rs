//! How large the tests that have a size are.

use std::env;

/// `full` at full size (`make test`), and the fraction of it that `TERRACE_TEST_SCALE` says
/// otherwise: 0.02 where it is not set, as in `make check`. At least 1.
///
/// # Panics
/// If `TERRACE_TEST_SCALE` is not a positive number.
pub fn scaled(full: u64) -> u64 {
    let fraction = match env::var("TERRACE_TEST_SCALE") {
        Ok(text) => {
            text.parse().ok().filter(|fraction: &f64| *fraction > 0.0).unwrap_or_else(|| {
                panic!("TERRACE_TEST_SCALE is {text:?}, must be a positive number: 1 for full size")
            })
        }
        Err(_) => 0.02,
    };
    ((full as f64 * fraction) as u64).max(1)
}
