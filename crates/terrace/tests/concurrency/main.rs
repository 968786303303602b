//! Threads that share a database: linearizable calls, locks, serializable transactions.

mod everything;
mod linear;
mod locking;
mod prepared;
mod serializable;
