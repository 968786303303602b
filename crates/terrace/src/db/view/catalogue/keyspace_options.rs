//! The settings of a keyspace.

use std::time::Duration;

use crate::base::error::{Error, Result};
use crate::table::{Compression, PrefixSetting};

/// How a keyspace is created. A builder. What it does not say is as in the
/// [`Options`](crate::Options) of the database, whatever they are at the time.
///
/// The settings are stored in the database. Compression and block size hold for the blocks that
/// flushes and compactions write from then on, and blocks never hold keys of keyspaces that differ
/// in them; a table has one filter, with the most bits that any keyspace of its keys asks for.
///
/// ```
/// # fn main() -> terrace::Result<()> {
/// # let options = terrace::Options::new().create_if_missing(true);
/// # let options = options.env(std::sync::Arc::new(terrace::MemEnv::new()));
/// # let db = terrace::Db::open("/settings.db", options)?;
/// use terrace::{Compression, KeyspaceOptions};
///
/// let images = KeyspaceOptions::new().compression(Compression::None).block_size(64 << 10);
/// db.create_keyspace("images", images.clone())?;
/// assert_eq!(db.keyspace("images")?.options(), &images);
/// # db.close()
/// # }
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct KeyspaceOptions {
    pub(in crate::db) expiry: bool,
    pub(in crate::db) default_ttl: Option<Duration>,
    pub(in crate::db) compression: Option<Compression>,
    pub(in crate::db) block_size: Option<usize>,
    pub(in crate::db) filter_bits: Option<usize>,
}

impl KeyspaceOptions {
    /// The database's settings.
    pub fn new() -> Self {
        Self::default()
    }

    /// Entries may have a time to live ([`PutOptions::ttl`](crate::PutOptions::ttl)). Once it has
    /// passed no read sees them; compactions remove them, and begin by themselves where half of a
    /// table has expired. Default: false.
    ///
    /// An entry that expires ends with its time and a checksum, 16 bytes that only LevelDB's
    /// programs see. What they write has no time, and never expires.
    ///
    /// ```
    /// # fn main() -> terrace::Result<()> {
    /// # let options = terrace::Options::new().create_if_missing(true);
    /// # let options = options.env(std::sync::Arc::new(terrace::MemEnv::new()));
    /// # let db = terrace::Db::open("/sessions.db", options)?;
    /// use std::time::Duration;
    /// use terrace::{KeyspaceOptions, PutOptions};
    ///
    /// let hour = Duration::from_secs(3600);
    /// let options = KeyspaceOptions::new().expiry(true).default_ttl(Some(hour));
    /// let sessions = db.create_keyspace("sessions", options)?;
    /// sessions.put("ada", "1")?; // for an hour
    /// sessions.put_with("eve", "2", PutOptions::new().ttl(Duration::ZERO))?;
    /// assert_eq!(sessions.iter()?.count(), 1);
    /// # drop(sessions);
    /// # db.close()
    /// # }
    /// ```
    #[must_use]
    pub fn expiry(mut self, expiry: bool) -> Self {
        self.expiry = expiry;
        self
    }

    /// The time to live of entries that are put without one, in whole milliseconds; needs
    /// [`expiry`](Self::expiry). Default: none, they never expire.
    ///
    /// ```
    /// # use terrace::*;
    /// # let options = Options::new().env(std::sync::Arc::new(MemEnv::new()));
    /// # let db = Db::open("/db", options.create_if_missing(true))?;
    /// let hour = std::time::Duration::from_secs(3600);
    /// let options = KeyspaceOptions::new().expiry(true).default_ttl(Some(hour));
    /// db.create_keyspace("sessions", options)?.put("ada", "1")?; // for an hour
    /// # Ok::<_, terrace::Error>(())
    /// ```
    #[must_use]
    pub fn default_ttl(mut self, ttl: Option<Duration>) -> Self {
        self.default_ttl = ttl;
        self
    }

    /// How blocks are compressed, at all levels: with snappy or not at all. Default: as the
    /// database says.
    ///
    /// ```
    /// # use terrace::*;
    /// # let options = Options::new().env(std::sync::Arc::new(MemEnv::new()));
    /// # let db = Db::open("/db", options.create_if_missing(true))?;
    /// let options = KeyspaceOptions::new().compression(Compression::None);
    /// db.create_keyspace("photos", options)?;
    /// # Ok::<_, terrace::Error>(())
    /// ```
    #[must_use]
    pub fn compression(mut self, compression: Compression) -> Self {
        self.compression = Some(compression);
        self
    }

    /// Bytes of user data in a block before compression, 1 KiB – 4 MiB. Default: as the database
    /// says.
    ///
    /// ```
    /// # use terrace::*;
    /// # let options = Options::new().env(std::sync::Arc::new(MemEnv::new()));
    /// # let db = Db::open("/db", options.create_if_missing(true))?;
    /// let options = KeyspaceOptions::new().block_size(64 << 10); // fewer reads for scans
    /// db.create_keyspace("history", options)?;
    /// # Ok::<_, terrace::Error>(())
    /// ```
    #[must_use]
    pub fn block_size(mut self, bytes: usize) -> Self {
        self.block_size = Some(bytes);
        self
    }

    /// Bits for each key in the filters of tables, 0 to 32; see
    /// [`Options::table_filter_bits`](crate::Options::table_filter_bits). Default: as the database
    /// says.
    ///
    /// ```
    /// # use terrace::*;
    /// # let options = Options::new().env(std::sync::Arc::new(MemEnv::new()));
    /// # let db = Db::open("/db", options.create_if_missing(true))?;
    /// let options = KeyspaceOptions::new().filter_bits(0); // every key that is asked for is there
    /// db.create_keyspace("history", options)?;
    /// # Ok::<_, terrace::Error>(())
    /// ```
    #[must_use]
    pub fn filter_bits(mut self, bits: usize) -> Self {
        self.filter_bits = Some(bits);
        self
    }

    /// The settings that the engine keeps by the prefix of keys.
    pub(in crate::db) fn prefix_setting(&self) -> PrefixSetting {
        PrefixSetting {
            expires: self.expiry,
            compression: self.compression,
            block_size: self.block_size,
            filter_bits: self.filter_bits,
        }
    }

    /// Whether these settings can be.
    pub(in crate::db) fn check(&self) -> Result<()> {
        let refuse = |what: String| Err(Error::invalid_argument(format!("a keyspace's {what}")));
        if let Some(compression) = self.compression.filter(|it| !it.is_leveldbs()) {
            // A keyspace's settings outlive every option, and no conversion could undo them.
            let name = compression.name();
            return refuse(format!("compression is none or snappy, not {name}"));
        }
        if let Some(ttl) = self.default_ttl {
            if !self.expiry {
                return refuse("default_ttl needs expiry".to_owned());
            }
            if ttl.is_zero() || ttl.subsec_nanos() % 1_000_000 != 0 || millis(ttl) == u64::MAX {
                return refuse(format!(
                    "default_ttl is {ttl:?}, must be whole milliseconds, one at least"
                ));
            }
        }
        match (self.block_size, self.filter_bits) {
            (Some(size), _) if !(1 << 10..=4 << 20).contains(&size) => {
                refuse(format!("block_size is {size}, must be 1024 to 4194304"))
            }
            (_, Some(bits)) if bits > 32 => {
                refuse(format!("filter_bits is {bits}, must be 0 to 32"))
            }
            _ => Ok(()),
        }
    }
}

/// Milliseconds, rounded up.
pub(in crate::db) fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX)
}
