//! Safeties that can be removed one at a time, to see that a test notices.
//!
//! A build with `--cfg mutants` removes the one that the environment variable `TERRACE_MUTANT`
//! names; or several, separated by commas, as fuzz targets do with checksums. In every other build
//! [`mutated`] is a constant and nothing of this remains. `tests/mutants.txt` lists the names, each
//! with the test that fails without it; `make mutants` runs them all.

/// Whether the safety `name` is removed.
#[cfg(mutants)]
pub(crate) fn mutated(name: &str) -> bool {
    use std::sync::LazyLock;
    static REMOVED: LazyLock<Option<String>> =
        LazyLock::new(|| std::env::var("TERRACE_MUTANT").ok());
    REMOVED.as_deref().is_some_and(|removed| removed.split(',').any(|one| one == name))
}

/// Whether the safety `name` is removed: never.
#[cfg(not(mutants))]
#[inline(always)]
pub(crate) const fn mutated(_name: &str) -> bool {
    false
}
