//! The files of a database in its directory, by their names: which are its own, which it needs, and
//! which nothing needs.

use std::collections::BTreeSet;
use std::path::Path;

use crate::base::error::{Error, Result};
use crate::base::mutation::mutated;
use crate::env::Env;
use crate::version::edit::NewValueFile;
use crate::version::filename::{self, FileKind};
use crate::version::manifest::ManifestState;
use crate::version::value_files::ValueFileMap;

use crate::db::io_error::retry_once;
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

    /// The tables that the MANIFEST does not name.
    pub(in crate::db) fn unnamed_tables(&self, state: &ManifestState) -> Vec<u64> {
        let named: BTreeSet<_> = state.version.files().map(|(_, file)| file.number).collect();
        self.of_kind(FileKind::Table).filter(|number| !named.contains(number)).collect()
    }

    /// The value files as they are.
    pub(in crate::db) fn value_files(&self, env: &dyn Env, dir: &Path) -> Result<ValueFileMap> {
        let as_it_is = |number| {
            let path = dir.join(filename::values(number));
            let size = retry_once(|| env.file_size(&path))?;
            // How much of it is values nobody knows.
            Ok(NewValueFile { number, size, value_bytes: size })
        };
        let files: Result<Vec<_>> = self.of_kind(FileKind::Values).map(as_it_is).collect();
        Ok(ValueFileMap::unused(files?))
    }

    /// Fails if a table or a value file is missing.
    pub(super) fn check_present(&self, dir: &Path, state: &ManifestState) -> Result<()> {
        let tables = state.version.files().map(|(_, file)| file.number);
        self.check_kind(dir, FileKind::Table, tables, "tables that the MANIFEST names")?;
        let values = state.version.values.iter().map(|used| used.file.number);
        self.check_kind(dir, FileKind::Values, values, "value files that tables point into")
    }

    fn check_kind(
        &self,
        dir: &Path,
        kind: FileKind,
        needed: impl Iterator<Item = u64>,
        what: &str,
    ) -> Result<()> {
        let present: BTreeSet<_> = self.of_kind(kind).collect();
        let name = |number| match kind {
            FileKind::Values => filename::values(number),
            _ => filename::table(number),
        };
        let missing: Vec<_> = needed.filter(|number| !present.contains(number)).map(name).collect();
        if missing.is_empty() {
            return Ok(());
        }
        let names = missing.join(", ");
        Err(Error::corruption(format!(
            "{}: {what} are missing: {names}; repair keeps the rest",
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
                FileKind::Values if state.version.values.get(*number).is_none() => {
                    let is_foreign = !state.is_terraces && !state.is_extended;
                    let leftovers = match *number >= state.next_file_number {
                        _ if is_foreign => &mut leftovers.values_of_others,
                        true => &mut leftovers.never_used,
                        false => &mut leftovers.given_up,
                    };
                    leftovers.push(name.clone());
                }
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
    /// Value files beside a MANIFEST that another program wrote, which knows none: tables that it
    /// took over, in a repair say, may point into them.
    pub(super) values_of_others: Vec<String>,
}
