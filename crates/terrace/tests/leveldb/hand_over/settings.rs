//! Settings that mean the same to Terrace and to LevelDB, and that fit into a word of a child's
//! command line.

use std::fmt;
use std::str::FromStr;

use terrace::{Options, PosixEnv};
use terrace_testkit::leveldb::PeerOptions;
use terrace_testkit::option_set::OptionSet;
use terrace_testkit::rng::Rng;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Settings {
    /// Defaults but for compression and filter.
    Plain { snappy: bool, bloom_bits: usize },
    /// At random, from a seed.
    Random { seed: u64, reverse: bool },
}

impl Settings {
    fn set(&self) -> OptionSet {
        match *self {
            Settings::Plain { snappy, bloom_bits } => OptionSet {
                write_buffer_size: 4 << 20,
                max_file_size: 2 << 20,
                snappy,
                bloom_bits,
                ..OptionSet::default()
            },
            // The order of keys belongs to the database, not to a hand-over.
            Settings::Random { seed, reverse } => OptionSet {
                reverse,
                value_log: 0,
                lz4: false,
                ..OptionSet::random(&mut Rng::new(seed))
            },
        }
    }

    pub(crate) fn reverse(&self) -> bool {
        self.set().reverse
    }

    pub(crate) fn terrace(&self) -> Options {
        self.set().options(PosixEnv::shared())
    }

    pub(crate) fn leveldb(&self) -> PeerOptions {
        let set = self.set();
        PeerOptions {
            create: true,
            paranoid: set.paranoid_checks,
            snappy: set.snappy,
            bloom: set.bloom_bits as u32,
            block_size: set.block_size,
            restart_interval: set.block_restart_interval,
            write_buffer: set.write_buffer_size,
            max_file_size: set.max_file_size,
            reuse_logs: set.reuse_logs,
            reverse: set.reverse,
        }
    }

    /// The same with paranoid checks on.
    pub(crate) fn leveldb_paranoid(&self) -> PeerOptions {
        PeerOptions { paranoid: true, ..self.leveldb() }
    }
}

impl fmt::Display for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Settings::Plain { snappy, bloom_bits } => {
                write!(f, "plain:{}:{bloom_bits}", u8::from(*snappy))
            }
            Settings::Random { seed, reverse } => write!(f, "random:{seed}:{}", u8::from(*reverse)),
        }
    }
}

impl FromStr for Settings {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let parts: Vec<&str> = text.split(':').collect();
        match parts[..] {
            ["plain", snappy, bloom_bits] => Ok(Settings::Plain {
                snappy: snappy == "1",
                bloom_bits: bloom_bits.parse().map_err(drop)?,
            }),
            ["random", seed, reverse] => {
                Ok(Settings::Random { seed: seed.parse().map_err(drop)?, reverse: reverse == "1" })
            }
            _ => Err(()),
        }
    }
}
