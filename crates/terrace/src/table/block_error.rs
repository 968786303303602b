//! Why a block cannot be read.

use std::collections::TryReserveError;

use crate::base::error::Error;

/// The damage of a block.
pub(super) type Damage = &'static str;

/// Damage and lack of memory are apart: a repair gives up what is damaged, and a program may start
/// one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BlockError {
    Damage(Damage),
    OutOfMemory,
}

impl BlockError {
    /// The error for the block at `offset` of the file `name`.
    pub(super) fn at(self, offset: u64, name: &str) -> Error {
        let place = format!("{name}: block at offset {offset}");
        match self {
            BlockError::Damage(damage) => Error::corruption(format!("{place}: {damage}")),
            BlockError::OutOfMemory => Error::out_of_memory(format!("{place}: out of memory")),
        }
    }
}

impl From<Damage> for BlockError {
    fn from(damage: Damage) -> Self {
        BlockError::Damage(damage)
    }
}

impl From<TryReserveError> for BlockError {
    fn from(_: TryReserveError) -> Self {
        BlockError::OutOfMemory
    }
}
