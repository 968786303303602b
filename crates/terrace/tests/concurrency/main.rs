//! Threads that share a database: linearizable calls, locks, serializable transactions.

mod linear;
mod locking;
mod prepared;
mod serializable;
