//! The damage of a file.

use crate::base::error::{Error, ErrorKind, Result};

use super::piece::Damage;

/// Counts damage.
pub(super) struct DamageCounter {
    name: String,
    pub(super) damages: u64,
}

impl DamageCounter {
    /// `name` is how errors call the file.
    pub(super) fn new(name: String) -> Self {
        DamageCounter { name, damages: 0 }
    }

    pub(super) fn count(&mut self, offset: u64, message: &str) -> Damage {
        self.damages += 1;
        // Errors say which file and where; here both are known.
        let message = message
            .replace(&format!("{}: ", self.name), "")
            .replace(&format!("block at offset {offset}: "), "")
            .replace(&format!(" at offset {offset}"), "");
        Damage { offset, message }
    }

    /// An error while a part of the file was read: damage if it is the file's, an error if it is
    /// the system's.
    pub(super) fn count_error(&mut self, offset: u64, error: Error) -> Result<Damage> {
        if error.kind() == ErrorKind::Corruption {
            return Ok(self.count(offset, error.message()));
        }
        Err(error)
    }
}
