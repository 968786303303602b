//! Many keyspaces in one database of fjall, with its default options: `tools/many-keyspaces`.

use std::path::Path;
use std::process::ExitCode;
use std::thread;
use std::time::Duration;

use fjall::{Database, Keyspace, KeyspaceCreateOptions, PersistMode};
use lab_driver::keyspaces::{Keyspaces, run};
use lab_driver::{Failure, Result, Visit};

/// The time between two checks whether background work has ended.
const POLL_INTERVAL: Duration = Duration::from_millis(10);
/// Checks in a row that find no work: a compaction may follow a flush.
const IDLE_CHECKS: u32 = 10;

struct Fjall {
    db: Database,
}

fn main() -> ExitCode {
    run::<Fjall>()
}

fn failed(error: fjall::Error) -> Failure {
    Failure::new(format!("{error:?}"))
}

impl Keyspaces for Fjall {
    type Keyspace = Keyspace;

    const NAME: &'static str = concat!("fjall ", env!("LAB_ENGINE_VERSION"));

    fn open(directory: &Path) -> Result<Self> {
        Ok(Fjall { db: Database::builder(directory).open().map_err(failed)? })
    }

    fn create(&self, name: &str) -> Result<Keyspace> {
        self.db.keyspace(name, KeyspaceCreateOptions::default).map_err(failed)
    }

    fn put(keyspace: &Keyspace, key: &[u8], value: &[u8]) -> Result<()> {
        keyspace.insert(key, value).map_err(failed)
    }

    fn flush(&self, keyspaces: &[Keyspace]) -> Result<()> {
        for keyspace in keyspaces {
            keyspace.rotate_memtable().map_err(failed)?;
        }
        let (mut idle, mut completed) = (0, self.db.compactions_completed());
        while idle < IDLE_CHECKS {
            thread::sleep(POLL_INTERVAL);
            let busy = self.db.outstanding_flushes() > 0
                || self.db.active_compactions() > 0
                || keyspaces.iter().any(|keyspace| keyspace.sealed_memtable_count() > 0);
            let before = std::mem::replace(&mut completed, self.db.compactions_completed());
            idle = if busy || completed != before { 0 } else { idle + 1 };
        }
        Ok(())
    }

    fn scan(keyspace: &Keyspace, mut visit: impl FnMut(&[u8], &[u8]) -> Visit) -> Result<()> {
        for entry in keyspace.iter() {
            let (key, value) = entry.into_inner().map_err(failed)?;
            if visit(&key, &value).is_break() {
                break;
            }
        }
        Ok(())
    }

    fn is_table(path: &Path) -> bool {
        path.parent().is_some_and(|directory| directory.ends_with("tables"))
    }

    fn close(self) -> Result<()> {
        self.db.persist(PersistMode::SyncAll).map_err(failed)
    }
}
