//! The files of a database in its directory, by their names: which are its own, which it needs, and
//! which nothing needs.

use std::collections::BTreeSet;
use std::path::Path;

use crate::base::error::{Error, Result};
use crate::base::mutation::mutated;
use crate::env::Env;
use crate::version::filename::{self, FileKind};
use crate::version::manifest::ManifestState;

use crate::db::options::{Options, RecoveryMode};

/// How far the numbers of files may be beyond those that the MANIFEST knows: more than any process
/// can have handed out without recording it.
const REACH: u64 = 1 << 40;

/// The database's own files in its directory.
pub(in crate::db) struct OwnFiles {
    pub(in crate::db) found: Vec<(String, FileKind, u64)>,
    pub(super) numbers: BTreeSet<u64>,
}

impl OwnFiles {
    pub(in crate::db) fn list(env: &dyn Env, dir: &Path) -> Result<Self> {
        let mut found = Vec::new();
        for name in env.list(dir)? {
            if let Some((kind, number)) = filename::parse(&name) {
                found.push((name, kind, number));
            }
        }
        let numbers = found.iter().map(|(_, _, number)| *number).collect();
        Ok(OwnFiles { found, numbers })
    }

    /// Leaves out what cannot be the database's own, because its number is far beyond all that were
    /// handed out: what follows it would use the numbers up.
    pub(in crate::db) fn leave_strangers(&mut self, next_file_number: u64) {
        let end = next_file_number.saturating_add(REACH);
        if mutated("names-within-reach") {
            return;
        }
        self.found.retain(|(_, _, number)| *number < end);
        self.numbers.retain(|number| *number < end);
    }

    pub(in crate::db) fn of_kind(&self, wanted: FileKind) -> impl Iterator<Item = u64> {
        self.found.iter().filter(move |(_, kind, _)| *kind == wanted).map(|(_, _, number)| *number)
    }

    /// Whether there is a table that the MANIFEST does not name.
    pub(in crate::db) fn has_unnamed_tables(&self, state: &ManifestState) -> bool {
        let named: BTreeSet<_> = state.version.files().map(|(_, file)| file.number).collect();
        self.of_kind(FileKind::Table).any(|number| !named.contains(&number))
    }

    pub(super) fn check_tables(&self, dir: &Path, state: &ManifestState) -> Result<()> {
        let present: BTreeSet<_> = self.of_kind(FileKind::Table).collect();
        let missing: Vec<_> = state
            .version
            .files()
            .filter(|(_, file)| !present.contains(&file.number))
            .map(|(_, file)| filename::table(file.number))
            .collect();
        if missing.is_empty() {
            return Ok(());
        }
        let names = missing.join(", ");
        Err(Error::corruption(format!(
            "{}: tables that the MANIFEST names are missing: {names}",
            dir.display()
        )))
    }

    /// The files that nothing needs.
    pub(super) fn leftovers(&self, state: &ManifestState, manifest_number: u64) -> Leftovers {
        let live: BTreeSet<_> = state.version.files().map(|(_, file)| file.number).collect();
        let mut leftovers = Leftovers::default();
        for (name, kind, number) in &self.found {
            match kind {
                FileKind::Temp => leftovers.never_used.push(name.clone()),
                FileKind::Table if *number >= state.next_file_number => {
                    leftovers.never_used.push(name.clone())
                }
                FileKind::Table if !live.contains(number) => leftovers.given_up.push(name.clone()),
                FileKind::Log
                    if *number < state.log_number && *number != state.previous_log_number =>
                {
                    leftovers.given_up.push(name.clone());
                }
                FileKind::Manifest if *number != manifest_number => {
                    leftovers.given_up.push(name.clone())
                }
                _ => {}
            }
        }
        leftovers
    }

    /// The logs to replay, oldest first.
    pub(super) fn needed_logs(
        &self,
        dir: &Path,
        state: &ManifestState,
        options: &Options,
    ) -> Result<Vec<u64>> {
        let mut logs: Vec<_> =
            self.of_kind(FileKind::Log).filter(|&number| state.needs_log(number)).collect();
        logs.sort_unstable();
        let salvage = options.recovery_mode == RecoveryMode::Salvage || mutated("missing-log");
        if state.log_number != 0 && !logs.contains(&state.log_number) && !salvage {
            let path = dir.join(filename::log(state.log_number));
            return Err(Error::corruption(format!(
                "{}: missing, and the MANIFEST needs it",
                path.display()
            )));
        }
        Ok(logs)
    }
}

/// Files of the database's own that nothing needs any more.
#[derive(Default)]
pub(super) struct Leftovers {
    /// No MANIFEST ever named them.
    pub(super) never_used: Vec<String>,
    /// The MANIFEST has given them up, or replaced them. If what it says is not durable, an older
    /// state needs them.
    pub(super) given_up: Vec<String>,
}
