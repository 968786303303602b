//! The trait of an engine program.

use std::collections::BTreeMap;
use std::ops::{ControlFlow, Range};
use std::time::Duration;

use serde::Serialize;

use crate::{Failure, Result, Settings};

/// A database, open.
pub trait Engine: Sized + Send + Sync {
    /// The handle of one thread.
    type Session<'a>: Session
    where
        Self: 'a;

    /// The engine's name in results.
    const NAME: &'static str;

    /// Describes the engine under a variant; `None` if it has no such variant.
    fn describe(variant: &str) -> Option<Description>;

    /// Opens the database in `settings.db()`, a directory that exists, and creates it where there
    /// is none.
    fn open(settings: &Settings) -> Result<Self>;

    /// Begins to work, on the thread that works.
    fn session(&self) -> Self::Session<'_>;

    /// Compacts the whole range.
    fn compact(&mut self) -> Result<()>;

    /// Does all work that was put off. Returns the time at its end in which it only saw that there
    /// was nothing more to do.
    fn wait_compact(&mut self) -> Result<Duration>;

    /// Closes the database, and says what went wrong.
    fn close(self) -> Result<()>;

    /// The files and bytes of each level of its LSM tree, from level 0; nothing of what is no such
    /// tree, or does not say.
    fn levels(&self) -> Vec<(u64, u64)> {
        Vec::new()
    }

    /// Whether entries can expire by themselves.
    const EXPIRES: bool = false;

    /// Says after what time entries expire that [`Session::put_expiring`] puts from now on.
    fn expire_after(&mut self, _time: Duration) -> Result<()> {
        Err(Failure::new("entries do not expire"))
    }

    /// Whether one database has several keyspaces: trees, tables, column families.
    const HAS_KEYSPACES: bool = false;

    /// Opens the keyspaces from 0 to below `count`, and creates those that are not there.
    fn open_keyspaces(&mut self, _count: u64) -> Result<()> {
        Err(Failure::new("there are no keyspaces"))
    }
}

/// The durability of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// To have reached the operating system.
    Asynchronous,
    /// To be on the disk.
    Synchronous,
}

/// One change of a batch.
pub enum Operation<'a> {
    /// Set a key to a value.
    Put(&'a [u8], &'a [u8]),
    /// Remove a key.
    Delete(&'a [u8]),
}

/// Changes, one after the other.
pub trait Operations {
    /// The next change; `None` after the last one.
    fn next(&mut self) -> Option<Operation<'_>>;
}

/// Where a scan begins and which way it goes.
#[derive(Clone, Copy)]
pub enum Start<'a> {
    /// Forwards from the first entry.
    First,
    /// Backwards from the last entry.
    Last,
    /// Forwards from the first entry whose key is not before this one.
    Key(&'a [u8]),
}

/// Whether a scan goes on to the next entry.
pub type Visit = ControlFlow<()>;

/// The handle of one thread of a benchmark.
pub trait Session {
    /// Sets a key to a value.
    fn put(&mut self, key: &[u8], value: &[u8], durability: Durability) -> Result<()>;

    /// Removes a key that may be absent, asynchronously.
    fn delete(&mut self, key: &[u8]) -> Result<()>;

    /// Shows `look` the value of a key, if it has one: in a buffer that is used again where the
    /// engine reads into one, else where the engine has it.
    fn get<R>(&mut self, key: &[u8], look: impl FnOnce(&[u8]) -> R) -> Result<Option<R>>;

    /// Shows `look` each key that has a value, with the value.
    fn multi_get(&mut self, keys: &[&[u8]], mut look: impl FnMut(&[u8], &[u8])) -> Result<()> {
        for key in keys {
            self.get(key, |value| look(key, value))?;
        }
        Ok(())
    }

    /// Applies all changes or none, asynchronously.
    fn write_batch(&mut self, operations: &mut impl Operations) -> Result<()>;

    /// Puts entries in increasing order into an empty database, the engine's best way.
    fn bulk_load(&mut self, entries: &mut impl Operations) -> Result<()>;

    /// Shows entries in order until `visit` breaks or there are none left.
    fn scan(&mut self, start: Start<'_>, visit: impl FnMut(&[u8], &[u8]) -> Visit) -> Result<()>;

    /// Deletes a range of keys, asynchronously. `deletes` are all keys in it, for an engine that
    /// can delete ranges only key by key.
    fn delete_range(&mut self, _range: Range<&[u8]>, deletes: &mut impl Operations) -> Result<()> {
        self.write_batch(deletes)
    }

    /// Sets a key to a value that expires, asynchronously.
    fn put_expiring(&mut self, _key: &[u8], _value: &[u8]) -> Result<()> {
        Err(Failure::new("entries do not expire"))
    }

    /// Sets a key of a keyspace to a value, asynchronously.
    fn put_in(&mut self, _keyspace: usize, _key: &[u8], _value: &[u8]) -> Result<()> {
        Err(Failure::new("there are no keyspaces"))
    }

    /// Shows `look` the value of a key of a keyspace, if it has one.
    fn get_in<R>(
        &mut self,
        _keyspace: usize,
        _key: &[u8],
        _look: impl FnOnce(&[u8]) -> R,
    ) -> Result<Option<R>> {
        Err(Failure::new("there are no keyspaces"))
    }
}

/// The output of `--describe`.
#[derive(Clone, Debug, Serialize)]
pub struct Description {
    /// [`Engine::NAME`].
    pub engine: &'static str,
    /// The name for readers.
    pub title: &'static str,
    /// The engine's version.
    pub version: String,
    /// The ways to run it.
    pub variants: Vec<Variant>,
    /// The promise of an asynchronous write when it returns.
    pub asynchronous: &'static str,
    /// The promise of a synchronous write when it returns.
    pub synchronous: &'static str,
    /// How it is set up.
    pub settings: String,
    /// Promises and abilities that it lacks.
    pub limits: Vec<&'static str>,
    /// Benchmarks that it cannot run, and why.
    pub unsupported: BTreeMap<&'static str, &'static str>,
}

/// A way to run an engine.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Variant {
    /// For `--variant`; empty for the usual way.
    pub name: &'static str,
    /// The name for readers.
    pub title: &'static str,
}
