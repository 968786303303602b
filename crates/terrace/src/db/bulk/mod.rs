//! Loading many entries at once, past log and memtable.
//!
//! [`BulkLoad`] takes entries in any order, sorts them where they need it ([`sort`]), has tables
//! built of them on several threads ([`builders`]) and at the end installs all of them with one
//! edit ([`install`]). [`mod@ingest`] takes in tables that a [`TableWriter`] made.
//!
//! # Invariants
//! 1. Until the edit, the tables of a load have names that no recovery and no repair takes for
//!    tables (`N.dbtmp`).
//! 2. All entries of a load bear one sequence number, greater than that of every write before the
//!    edit and smaller than that of every write after it: the load happens when it ends. Tables
//!    that are taken in as they are bear 0: only where the database has nothing between their first
//!    and last keys, and while there is no snapshot.
//! 3. The edit is written with the commit lock held and nothing left in memtables: after a crash
//!    that the load survives, so has every write before it.
//! 4. A file that is to be moved into the database keeps its own name until the edit is durable:
//!    nobody else knows for certain where its entries are. Its link `N.dbtmp` has a number that the
//!    MANIFEST records as used, durably: no engine that opens the database after a crash creates a
//!    file of that name, which would write into it.

mod builders;
mod ingest;
mod install;
mod load;
mod sort;
mod table_writer;

pub(super) use ingest::ingest;

pub use ingest::IngestOptions;
pub use load::{BulkLoad, BulkLoadOptions, LoadReport};
pub use table_writer::{TableSummary, TableWriter};
