//! Safeties that can be removed one at a time, to see that a test notices.
//!
//! A build with `--cfg sabotage` removes the one that the environment variable `TERRACE_SABOTAGE` names; or several,
//! separated by commas, as fuzz targets do with checksums. In every other build [`sabotaged`] is a constant and nothing of
//! this remains. `tests/sabotage.txt` lists the names, each with the test
//! that fails without it; `make sabotage` runs them all.

/// Whether the safety `name` is removed.
#[cfg(sabotage)]
pub(crate) fn sabotaged(name: &str) -> bool {
    use std::sync::LazyLock;
    static REMOVED: LazyLock<Option<String>> = LazyLock::new(|| std::env::var("TERRACE_SABOTAGE").ok());
    REMOVED.as_deref().is_some_and(|removed| removed.split(',').any(|one| one == name))
}

/// Whether the safety `name` is removed: never.
#[cfg(not(sabotage))]
#[inline(always)]
pub(crate) const fn sabotaged(_name: &str) -> bool {
    false
}
