//! The terms of a range delete beyond its ranges.

use crate::base::error::Result;

/// See the [module](self). Both are called with the commit lock held.
pub(in crate::db) trait Terms {
    /// An error, and nothing is deleted.
    fn check(&self) -> Result<()> {
        Ok(())
    }

    /// The ranges are deleted, as reads see them, and no other write has come since.
    fn done(&self) {}
}

/// No terms.
impl Terms for () {}
