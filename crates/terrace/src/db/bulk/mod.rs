//! Loading many entries at once, past log and memtable.
//!
//! [`BulkLoad`] takes entries in any order, sorts them where they need it ([`sort`]), has tables built of them on
//! several threads ([`builders`]) and at the end puts all of them into force with one edit ([`install`]).
//!
//! # Invariants
//! 1. Until the edit, the tables of a load have names that no recovery and no repair takes for tables (`N.dbtmp`).
//! 2. All entries of a load bear one sequence number, greater than that of every write before the edit and smaller than
//!    that of every write after it: the load happens when it ends.
//! 3. The edit is written with the commit lock held and nothing left in memtables: after a crash that the load
//!    survives, so has every write before it.

mod builders;
mod install;
mod load;
mod sort;
mod staged;

pub use load::{BulkLoad, BulkLoadOptions, LoadReport};
