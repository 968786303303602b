//! Failures of background jobs.

use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::base::error::{Error, ErrorKind, Result};
use crate::base::mutation::mutated;

/// Why a job failed.
pub(in crate::db) struct Failure {
    pub(in crate::db) error: Error,
    pub(in crate::db) retryable: bool,
}

/// Runs a job. A panic becomes a failure that is not tried again.
pub(in crate::db) fn caught<T>(
    what: &str,
    job: impl FnOnce() -> Result<T>,
) -> std::result::Result<T, Failure> {
    match catch_unwind(AssertUnwindSafe(job)) {
        Ok(result) => result.map_err(|error| {
            // Damage does not go away, and a refused edit is a bug here: trying again would do more
            // harm.
            let retryable =
                !matches!(error.kind(), ErrorKind::Corruption | ErrorKind::InvalidArgument)
                    && !mutated("heal-after-failures");
            Failure { error, retryable }
        }),
        Err(panic) => {
            let message = panic
                .downcast_ref::<&str>()
                .map(|text| (*text).to_owned())
                .or_else(|| panic.downcast_ref::<String>().cloned())
                .unwrap_or_else(|| "no message".to_owned());
            Err(Failure {
                error: Error::io_message(format!("a panic while {what}: {message}")),
                retryable: false,
            })
        }
    }
}
