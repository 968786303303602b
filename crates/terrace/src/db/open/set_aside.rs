//! Moves to `lost/` what recovery found and nothing needs, yet may be all there is of some writes.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::Arc;

use crate::base::error::{Error, ErrorKind, Result};
use crate::base::internal_key::SequenceNumber;
use crate::base::mutation::mutated;
use crate::version::edit::NewFile;
use crate::version::file_meta::FileMeta;
use crate::version::filename::{self, FileKind, LOST_DIR};

use crate::db::db_impl::files::Files;
use crate::db::db_impl::lost::{copy_to_lost, link_to_lost, move_to_lost};
use crate::db::open::recovery::Recovered;
use crate::db::options::events::Event;

/// Moves tables to `lost/` that no MANIFEST names and that may be all there is of some writes,
/// so that repair and people find them there. That is any of them where recovery cut the
/// history: the MANIFEST may have lost its end rather than the logs theirs. Where the
/// MANIFEST's last record is bad, it is those of a bulk load, which stands in no log, and of a
/// log that has lost more than its table. Others are in their logs.
///
/// If one cannot be moved the open fails: the next one would remove it.
pub(super) fn set_aside_tables(
    files: &Files,
    unnamed: &mut Vec<String>,
    torn: Option<String>,
    recovered: &Recovered,
) -> Result<()> {
    let was_cut = recovered.was_damaged();
    if !was_cut && torn.is_none() {
        return Ok(());
    }
    let is_wanted = |name: &str| match filename::parse(name) {
        Some((FileKind::Table, number)) => {
            was_cut || holds_more(files, name, number, recovered.last_sequence)
        }
        _ => false,
    };
    let (mut wanted, unwanted): (Vec<_>, Vec<_>) =
        std::mem::take(unnamed).into_iter().partition(|name| is_wanted(name));
    let is_values = |name: &String| matches!(filename::parse(name), Some((FileKind::Values, _)));
    // What the tables may point at goes with them.
    let (values, unwanted) =
        unwanted.into_iter().partition(|name| !wanted.is_empty() && is_values(name));
    wanted.extend::<Vec<_>>(values);
    *unnamed = unwanted;
    for name in wanted {
        let kept_as = move_to_lost(files, &name).map_err(|error| not_kept(&name, &error))?;
        files.log(format!("moved {name}, which no MANIFEST names, to {kept_as}"));
        if let Some(torn) = &torn {
            let message = format!(
                "{torn}; {name}, which may have been named there, holds writes that are lost"
            );
            let (file, kept_as) = (name, Some(kept_as));
            files.tell(&Event::RecoveryDamage { file, message, kept_as });
        }
    }
    Ok(())
}

/// Why an open fails that would have the next one remove `name`.
fn not_kept(name: &str, error: &Error) -> Error {
    error.clone().context(format_args!(
        "{name} may be all there is of some writes, and could not be kept in {LOST_DIR}"
    ))
}

/// Moves value files to `lost/` of which the MANIFEST does not know, because another program wrote
/// it. If that fails the open does: the next one would take them for its own leftovers.
pub(super) fn set_aside_values(files: &Files, names: &[String]) -> Result<()> {
    for name in names {
        let kept_as = move_to_lost(files, name)?;
        files.log(format!(
            "moved {name} to {kept_as}: another program wrote the MANIFEST, which does not name \
             it; if tables point into it, move it back and repair the database"
        ));
    }
    Ok(())
}

/// Whether a table that no MANIFEST names may hold writes later than `last_sequence`, or such
/// as have no place in the history. One that was never finished, as a crash leaves it, was in
/// no edit.
fn holds_more(files: &Files, name: &str, number: u64, last_sequence: SequenceNumber) -> bool {
    let Ok(size) = files.env.file_size(&files.path(name)) else { return true };
    let (smallest, largest, values, codecs) = Default::default();
    let file = NewFile { level: 0, number, size, smallest, largest, values, codecs };
    match files.tables.table(&Arc::new(FileMeta::new(file, &Arc::default()))) {
        // LevelDB, which records no properties, has no loads either.
        Ok(table) => table.properties().is_some_and(|properties| {
            properties.largest_sequence == 0 || properties.largest_sequence > last_sequence
        }),
        Err(error) => error.kind() != ErrorKind::Corruption,
    }
}

/// Keeps logs in `lost/` in which recovery met damage with something valid behind it: they are
/// removed when they are not needed any more. If that fails the open does.
pub(super) fn set_aside_logs(files: &Files, recovered: &mut Recovered) -> Result<()> {
    let mut kept = BTreeMap::new();
    for damage in
        recovered.damage.iter_mut().filter(|damage| damage.keep && !mutated("keep-damaged-logs"))
    {
        let kept_as = match kept.entry(damage.log) {
            Entry::Occupied(kept) => kept.into_mut(),
            Entry::Vacant(new) => new.insert(keep_log(files, damage.log)?),
        };
        damage.kept_as = Some(kept_as.clone());
    }
    Ok(())
}

fn keep_log(files: &Files, number: u64) -> Result<String> {
    let name = filename::log(number);
    // A full disk has room for a second name.
    copy_to_lost(files, &name)
        .or_else(|error| link_to_lost(files, &name).map_err(|_| error))
        .map_err(|error| not_kept(&name, &error))
}
