//! The lab's engine program for redb.

mod backend;

use std::collections::BTreeMap;
use std::fmt::Display;
use std::ops::Range;
use std::path::Path;
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use backend::UnsyncedBackend;
use lab_driver::{
    Description, Durability, Engine, Failure, Operation, Operations, Result, Session, Settings,
    Start, Variant, Visit,
};
use redb::{
    Database, ReadOnlyTable, ReadableDatabase, ReadableTable, TableDefinition, WriteTransaction,
};

const FILE: &str = "lab.redb";
type Definition<'a> = TableDefinition<'a, &'static [u8], &'static [u8]>;
type ReadTable = ReadOnlyTable<&'static [u8], &'static [u8]>;

const TABLE: Definition<'static> = TableDefinition::new("lab");
/// The variant whose commits reach the operating system.
const UNSYNCED: &str = "unsynced";

struct Redb {
    db: Database,
    asynchronous: redb::Durability,
    /// The file, if not every durable commit syncs it.
    unsynced: Option<UnsyncedBackend>,
    /// The tables of the benchmarks that are about many.
    keyspaces: Vec<String>,
    /// How many write transactions have ended. A session reads on in the table that it has open
    /// while there is no new one.
    commits: AtomicU64,
}

struct RedbSession<'a> {
    redb: &'a Redb,
    /// The table as of so many commits, or of a newer one. None while the session itself writes: an
    /// open table keeps redb from using the pages again that a commit frees.
    table: Option<(u64, ReadTable)>,
}

fn main() -> ExitCode {
    lab_driver::run::<Redb>()
}

/// redb has an error type for every step.
fn failed(error: impl Display) -> Failure {
    Failure::new(error)
}

impl Engine for Redb {
    type Session<'a> = RedbSession<'a>;

    const NAME: &'static str = "redb";

    fn describe(variant: &str) -> Option<Description> {
        let variants = vec![
            Variant { name: "", title: "redb, Durability::None" },
            Variant { name: UNSYNCED, title: "redb, commits to the system" },
        ];
        let title = variants.iter().find(|known| known.name == variant)?.title;
        Some(Description {
            engine: Self::NAME,
            title,
            version: env!("LAB_ENGINE_VERSION").to_owned(),
            asynchronous: match variant {
                UNSYNCED => {
                    "a durable commit whose pages are written to the file, through a storage backend of the lab's that \
                     leaves syncing out: survives the process"
                }
                _ => {
                    "Durability::None: visible to every reader, but in the memory of the process until a later durable \
                     commit: what was written since is lost with the process"
                }
            },
            synchronous: "Durability::Immediate: on the disk",
            variants,
            settings: "One table of byte strings, and one for each keyspace. A range is deleted by retain_in. cache_size and write_buffer_size together are its one cache; there \
                       is nothing for block_size (4 KiB pages), max_open_files (one file), bloom_bits and compression. \
                       Every write is a transaction. Every read sees the newest commit, as the other engines' \
                       reads do: a thread keeps its read transaction and its table open until there is a newer \
                       commit, and opens the table of a keyspace for each get. A batch, and a bulk load, is one write \
                       transaction. waitcompact is an empty durable commit. The system's allocator."
                .to_owned(),
            limits: vec!["no compression", "one writer at a time"],
            unsupported: BTreeMap::new(),
        })
    }

    fn open(settings: &Settings) -> Result<Self> {
        let cache = settings.cache_size.saturating_add(settings.write_buffer_size);
        Redb::at(&settings.db().join(FILE), &settings.variant, Settings::chosen(cache))
    }

    fn session(&self) -> Self::Session<'_> {
        RedbSession { redb: self, table: None }
    }

    fn compact(&mut self) -> Result<()> {
        self.db.compact().map(drop).map_err(failed)
    }

    fn wait_compact(&mut self) -> Result<Duration> {
        let transaction = self.db.begin_write().map_err(failed)?;
        transaction.commit().map_err(failed)?;
        Ok(Duration::ZERO)
    }

    const HAS_KEYSPACES: bool = true;

    fn open_keyspaces(&mut self, count: u64) -> Result<()> {
        for number in self.keyspaces.len() as u64..count {
            let name = format!("keyspace-{number}");
            self.write_to(TableDefinition::new(&name), Durability::Synchronous, |_| Ok(()))?;
            self.keyspaces.push(name);
        }
        Ok(())
    }

    fn close(self) -> Result<()> {
        // A clean close makes durable what was not; errors of the drop would be silent.
        self.write(Durability::Synchronous, |_| Ok(()))
    }
}

impl Redb {
    /// The database in a file, which is created if there is none.
    fn at(path: &Path, variant: &str, cache: Option<usize>) -> Result<Self> {
        let mut builder = Database::builder();
        if let Some(bytes) = cache {
            builder.set_cache_size(bytes);
        }
        let unsynced = match variant {
            UNSYNCED => Some(UnsyncedBackend::open(path)?),
            _ => None,
        };
        let db = match &unsynced {
            Some(backend) => builder.create_with_backend(backend.clone()),
            None => builder.create(path),
        };
        let asynchronous =
            if variant.is_empty() { redb::Durability::None } else { redb::Durability::Immediate };
        let redb = Redb {
            db: db.map_err(failed)?,
            asynchronous,
            unsynced,
            keyspaces: Vec::new(),
            commits: AtomicU64::new(0),
        };
        // Readers find a table, also in an empty database.
        redb.write(Durability::Synchronous, |_| Ok(()))?;
        Ok(redb)
    }

    /// One write transaction.
    #[inline]
    fn write(
        &self,
        durability: Durability,
        body: impl FnOnce(&mut redb::Table<'_, &[u8], &[u8]>) -> Result<()>,
    ) -> Result<()> {
        self.write_to(TABLE, durability, body)
    }

    fn write_to(
        &self,
        table: Definition<'_>,
        durability: Durability,
        body: impl FnOnce(&mut redb::Table<'_, &[u8], &[u8]>) -> Result<()>,
    ) -> Result<()> {
        let mut transaction: WriteTransaction = self.db.begin_write().map_err(failed)?;
        let wait = durability == Durability::Synchronous;
        transaction
            .set_durability(if wait { redb::Durability::Immediate } else { self.asynchronous })
            .map_err(failed)?;
        {
            let mut table = transaction.open_table(table).map_err(failed)?;
            body(&mut table)?;
        }
        transaction.commit().map_err(failed)?;
        self.commits.fetch_add(1, Ordering::Release);
        match &self.unsynced {
            Some(backend) if wait => backend.sync(),
            _ => Ok(()),
        }
    }

    #[inline]
    fn table(&self, table: Definition<'_>) -> Result<ReadTable> {
        self.db.begin_read().map_err(failed)?.open_table(table).map_err(failed)
    }
}

impl RedbSession<'_> {
    /// The table as of the newest commit.
    #[inline]
    fn table(&mut self) -> Result<&ReadTable> {
        // Before the transaction begins, which may see a newer commit; it is then opened once more.
        let commits = self.redb.commits.load(Ordering::Acquire);
        if self.table.as_ref().is_none_or(|(known, _)| *known != commits) {
            self.table = None;
            self.table = Some((commits, self.redb.table(TABLE)?));
        }
        match &self.table {
            Some((_, table)) => Ok(table),
            None => Err(Failure::new("the table is not open")),
        }
    }

    /// One asynchronous write transaction.
    fn write(
        &mut self,
        body: impl FnOnce(&mut redb::Table<'_, &[u8], &[u8]>) -> Result<()>,
    ) -> Result<()> {
        self.table = None;
        self.redb.write(Durability::Asynchronous, body)
    }
}

impl Session for RedbSession<'_> {
    #[inline]
    fn put(&mut self, key: &[u8], value: &[u8], durability: Durability) -> Result<()> {
        self.table = None;
        self.redb.write(durability, |table| table.insert(key, value).map(drop).map_err(failed))
    }

    #[inline]
    fn delete(&mut self, key: &[u8]) -> Result<()> {
        self.write(|table| table.remove(key).map(drop).map_err(failed))
    }

    #[inline]
    fn get<R>(&mut self, key: &[u8], look: impl FnOnce(&[u8]) -> R) -> Result<Option<R>> {
        let value = self.table()?.get(key).map_err(failed)?;
        Ok(value.map(|value| look(value.value())))
    }

    fn delete_range(&mut self, range: Range<&[u8]>, _: &mut impl Operations) -> Result<()> {
        self.write(|table| table.retain_in(range, |_, _| false).map_err(failed))
    }

    fn put_in(&mut self, keyspace: usize, key: &[u8], value: &[u8]) -> Result<()> {
        self.table = None;
        let table = TableDefinition::new(&self.redb.keyspaces[keyspace]);
        self.redb.write_to(table, Durability::Asynchronous, |table| {
            table.insert(key, value).map(drop).map_err(failed)
        })
    }

    fn get_in<R>(
        &mut self,
        keyspace: usize,
        key: &[u8],
        look: impl FnOnce(&[u8]) -> R,
    ) -> Result<Option<R>> {
        let table = self.redb.table(TableDefinition::new(&self.redb.keyspaces[keyspace]))?;
        let value = table.get(key).map_err(failed)?;
        Ok(value.map(|value| look(value.value())))
    }

    fn write_batch(&mut self, operations: &mut impl Operations) -> Result<()> {
        self.write(|table| {
            while let Some(operation) = operations.next() {
                match operation {
                    Operation::Put(key, value) => {
                        table.insert(key, value).map(drop).map_err(failed)?
                    }
                    Operation::Delete(key) => table.remove(key).map(drop).map_err(failed)?,
                }
            }
            Ok(())
        })
    }

    fn bulk_load(&mut self, entries: &mut impl Operations) -> Result<()> {
        self.write_batch(entries)
    }

    fn scan(&mut self, start: Start<'_>, visit: impl FnMut(&[u8], &[u8]) -> Visit) -> Result<()> {
        let table = self.table()?;
        match start {
            Start::First => show(table.iter().map_err(failed)?, visit),
            Start::Last => show(table.iter().map_err(failed)?.rev(), visit),
            Start::Key(key) => show(table.range(key..).map_err(failed)?, visit),
        }
    }
}

type Entry<'a> = (redb::AccessGuard<'a, &'static [u8]>, redb::AccessGuard<'a, &'static [u8]>);

fn show<'a>(
    entries: impl Iterator<Item = std::result::Result<Entry<'a>, redb::StorageError>>,
    mut visit: impl FnMut(&[u8], &[u8]) -> Visit,
) -> Result<()> {
    for entry in entries {
        let (key, value) = entry.map_err(failed)?;
        if visit(key.value(), value.value()).is_break() {
            break;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open(directory: &Path) -> Redb {
        Redb::at(&directory.join(FILE), "", None).expect("a database")
    }

    fn get(session: &mut RedbSession<'_>, key: &[u8]) -> Option<Vec<u8>> {
        session.get(key, <[u8]>::to_vec).expect("a get")
    }

    fn put(session: &mut RedbSession<'_>, key: &[u8], value: &[u8]) {
        session.put(key, value, Durability::Asynchronous).expect("a put");
    }

    #[test]
    fn a_read_sees_the_newest_commit_of_any_session() {
        let directory = tempfile::tempdir().expect("a directory");
        let redb = open(directory.path());
        let (mut one, mut other) = (redb.session(), redb.session());
        assert_eq!(get(&mut one, b"a"), None);
        put(&mut other, b"a", b"1");
        assert_eq!(get(&mut one, b"a").as_deref(), Some(&b"1"[..]));
        assert_eq!(get(&mut other, b"a").as_deref(), Some(&b"1"[..]));
        other.delete(b"a").expect("a delete");
        assert_eq!([get(&mut one, b"a"), get(&mut other, b"a")], [None, None]);
    }

    #[test]
    fn a_session_keeps_its_table_until_the_next_commit() {
        let directory = tempfile::tempdir().expect("a directory");
        let redb = open(directory.path());
        let mut session = redb.session();
        put(&mut session, b"a", b"1");
        assert!(session.table.is_none());
        get(&mut session, b"a");
        let commits = session.table.as_ref().map(|(commits, _)| *commits);
        // A transaction that is opened anew would see this commit, of which the session knows nothing.
        let mut transaction = redb.db.begin_write().expect("a transaction");
        transaction.set_durability(redb::Durability::None).expect("a durability");
        let mut table = transaction.open_table(TABLE).expect("a table");
        table.insert(&b"b"[..], &b"2"[..]).expect("an insert");
        drop(table);
        transaction.commit().expect("a commit");
        assert_eq!(get(&mut session, b"b"), None);
        assert_eq!(session.table.as_ref().map(|(commits, _)| *commits), commits);
    }
}
