//! Bytes and words: what every other layer is written in.
//!
//! Nothing here does I/O, starts a thread or knows what a database is.

pub(crate) mod abbreviated_keys;
pub(crate) mod advice;
pub(crate) mod checksum;
pub(crate) mod coding;
pub(crate) mod comparator;
pub(crate) mod error;
pub(crate) mod expiry;
pub(crate) mod fork;
pub(crate) mod internal_key;
pub(crate) mod locks;
pub(crate) mod memory_account;
pub(crate) mod mutation;
pub(crate) mod prefetch;
pub(crate) mod prefix_map;
#[cfg(test)]
pub(crate) mod random;
pub(crate) mod value_pointer;
