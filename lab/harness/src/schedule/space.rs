//! Whether there is enough memory and disk space for a group, looked at before it begins.

use std::path::Path;

use crate::machine::{available_memory, free_space, mebibytes};
use crate::suite::{Group, Plan};

/// A database may take so many times the size of its data while it is written: logs, old files,
/// half-filled pages.
const OVERHEAD: u64 = 4;
/// An engine's preallocation, and the space that should stay free.
const RESERVE: u64 = 512 << 20;

/// Whether a whole plan can be run by anyone.
///
/// # Errors
/// Says what is lacking.
pub fn check(plan: &Plan, num: u64, databases: &Path) -> Result<(), String> {
    plan.groups.iter().try_for_each(|group| enough(group, "", num, databases))
}

/// Whether one engine can run a group.
pub(super) fn enough(
    group: &Group,
    engine: &str,
    num: u64,
    databases: &Path,
) -> Result<(), String> {
    let settings: Vec<_> = group.steps.iter().map(|step| step.settings(engine)).collect();
    let data = settings
        .iter()
        .map(|settings| settings.entries(num).saturating_mul(settings.entry_size()))
        .max();
    let wanted = data.unwrap_or(0).saturating_mul(OVERHEAD).saturating_add(RESERVE);
    let free = free_space(databases)?;
    if free < wanted {
        let (wanted, free) = (mebibytes(wanted), mebibytes(free));
        return Err(format!(
            "{}: no space: {} wants up to {wanted}, {free} are free",
            databases.display(),
            group.name
        ));
    }
    let wanted = settings
        .iter()
        .map(crate::suite::Settings::memory)
        .max()
        .unwrap_or(0)
        .saturating_add(RESERVE);
    let available = available_memory();
    if available < wanted {
        let (wanted, available) = (mebibytes(wanted), mebibytes(available));
        return Err(format!(
            "not enough memory: {} wants up to {wanted}, {available} are available",
            group.name
        ));
    }
    Ok(())
}
