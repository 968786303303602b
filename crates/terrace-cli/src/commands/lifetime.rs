//! How long an entry lives: the option `--ttl`.

use std::time::Duration;

use clap::Args;

use crate::number::parse_seconds;

/// The option of commands that set a value.
#[derive(Args, Debug, Clone, Copy, Default)]
pub(crate) struct LifetimeArgs {
    /// The entry expires after so many seconds; in a keyspace with expiry
    #[arg(
        long,
        value_name = "SECONDS",
        value_parser = parse_seconds,
        allow_negative_numbers = true
    )]
    pub(crate) ttl: Option<Duration>,
}
