//! Many keyspaces in one database of Terrace, with its default options: `tools/many-keyspaces`.

use std::path::Path;
use std::process::ExitCode;

use lab_driver::keyspaces::{Keyspaces, run};
use lab_driver::{Failure, Result, Visit};
use terrace::{Db, Keyspace, KeyspaceOptions, Options};

struct Terrace {
    db: Db,
}

fn main() -> ExitCode {
    run::<Terrace>()
}

fn failed(error: terrace::Error) -> Failure {
    Failure::new(error)
}

impl Keyspaces for Terrace {
    type Keyspace = Keyspace;

    const NAME: &'static str = "terrace";

    fn open(directory: &Path) -> Result<Self> {
        let options = Options::new().create_if_missing(true);
        Ok(Terrace { db: Db::open(directory, options).map_err(failed)? })
    }

    fn create(&self, name: &str) -> Result<Keyspace> {
        self.db.create_keyspace(name, KeyspaceOptions::new()).map_err(failed)
    }

    fn put(keyspace: &Keyspace, key: &[u8], value: &[u8]) -> Result<()> {
        keyspace.put(key, value).map_err(failed)
    }

    fn flush(&self, _: &[Keyspace]) -> Result<()> {
        self.db.flush().map_err(failed)?;
        self.db.wait_idle().map_err(failed)
    }

    fn scan(keyspace: &Keyspace, mut visit: impl FnMut(&[u8], &[u8]) -> Visit) -> Result<()> {
        let mut cursor = keyspace.cursor().map_err(failed)?;
        cursor.seek_to_first();
        while cursor.valid() && visit(cursor.key(), cursor.value()).is_continue() {
            cursor.next();
        }
        cursor.status().map_err(failed)
    }

    fn is_table(path: &Path) -> bool {
        path.extension().is_some_and(|extension| extension == "ldb" || extension == "sst")
    }

    fn close(self) -> Result<()> {
        self.db.close().map_err(failed)
    }
}
