//! How entries are put into a keyspace.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::base::expiry::NEVER;
use crate::db::options::WriteOptions;
use crate::db::view::catalogue::keyspace_options::millis;

/// How long an entry is there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Lifetime {
    /// The keyspace's default.
    #[default]
    Default,
    Forever,
    For(Duration),
    Until(SystemTime),
}

/// How entries are put into a [`Keyspace`](crate::Keyspace). [`WriteOptions`] are made into these
/// where there is nothing to say of expiry.
///
/// ```
/// # fn main() -> terrace::Result<()> {
/// # let options = terrace::Options::new().create_if_missing(true);
/// # let options = options.env(std::sync::Arc::new(terrace::MemEnv::new()));
/// # let db = terrace::Db::open("/put.db", options)?;
/// use std::time::{Duration, SystemTime};
/// use terrace::{KeyspaceOptions, PutOptions, WriteOptions};
///
/// let sessions = db.create_keyspace("sessions", KeyspaceOptions::new().expiry(true))?;
/// sessions.put_with("a", "1", PutOptions::new().ttl(Duration::from_secs(60)))?;
/// let tomorrow = SystemTime::now() + Duration::from_secs(24 * 3600);
/// sessions.put_with("b", "2", PutOptions::new().expires_at(tomorrow).sync(true))?;
/// sessions.put_with("c", "3", WriteOptions::sync())?; // for ever
/// assert_eq!(sessions.iter()?.count(), 3);
/// # drop(sessions);
/// # db.close()
/// # }
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PutOptions {
    pub(super) write: WriteOptions,
    lifetime: Lifetime,
}

impl PutOptions {
    /// Not synced, with the keyspace's default time to live.
    pub fn new() -> Self {
        Self::default()
    }

    /// Wait until the write would survive the death of the machine: see
    /// [`WriteOptions::sync`]. Default: false.
    ///
    /// ```
    /// # use terrace::*;
    /// # let options = Options::new().env(std::sync::Arc::new(MemEnv::new()));
    /// # let db = Db::open("/db", options.create_if_missing(true))?;
    /// # let users = db.create_keyspace("users", KeyspaceOptions::new())?;
    /// users.put_with("7", "Ada", PutOptions::new().sync(true))?;
    /// # Ok::<_, terrace::Error>(())
    /// ```
    #[must_use]
    pub fn sync(mut self, sync: bool) -> Self {
        self.write.sync = sync;
        self
    }

    /// The entry expires when this time has passed, to within two milliseconds.
    ///
    /// ```
    /// # use terrace::*;
    /// # let options = Options::new().env(std::sync::Arc::new(MemEnv::new()));
    /// # let db = Db::open("/db", options.create_if_missing(true))?;
    /// use std::time::Duration;
    ///
    /// let sessions = db.create_keyspace("sessions", KeyspaceOptions::new().expiry(true))?;
    /// let minute = PutOptions::new().ttl(Duration::from_secs(60));
    /// sessions.put_with("ada", "1", minute)?;
    /// # Ok::<_, terrace::Error>(())
    /// ```
    #[must_use]
    pub fn ttl(mut self, ttl: Duration) -> Self {
        self.lifetime = Lifetime::For(ttl);
        self
    }

    /// The entry expires at this time, rounded up to milliseconds; at once if it has passed. The
    /// time is that of the database's clock (`docs/architecture.md`).
    ///
    /// ```
    /// # use terrace::*;
    /// # let options = Options::new().env(std::sync::Arc::new(MemEnv::new()));
    /// # let db = Db::open("/db", options.create_if_missing(true))?;
    /// use std::time::{Duration, SystemTime};
    ///
    /// let sessions = db.create_keyspace("sessions", KeyspaceOptions::new().expiry(true))?;
    /// let tomorrow = SystemTime::now() + Duration::from_secs(24 * 3600);
    /// sessions.put_with("ada", "1", PutOptions::new().expires_at(tomorrow))?;
    /// # Ok::<_, terrace::Error>(())
    /// ```
    #[must_use]
    pub fn expires_at(mut self, time: SystemTime) -> Self {
        self.lifetime = Lifetime::Until(time);
        self
    }

    /// The entry never expires, whatever the keyspace's default is.
    ///
    /// ```
    /// # use terrace::*;
    /// # let options = Options::new().env(std::sync::Arc::new(MemEnv::new()));
    /// # let db = Db::open("/db", options.create_if_missing(true))?;
    /// use std::time::Duration;
    ///
    /// let hour = KeyspaceOptions::new().expiry(true).default_ttl(Some(Duration::from_secs(3600)));
    /// let sessions = db.create_keyspace("sessions", hour)?;
    /// sessions.put_with("root", "1", PutOptions::new().never_expires())?;
    /// # Ok::<_, terrace::Error>(())
    /// ```
    #[must_use]
    pub fn never_expires(mut self) -> Self {
        self.lifetime = Lifetime::Forever;
        self
    }

    /// Whether it is said when the entry expires.
    pub(super) fn says_when(&self) -> bool {
        matches!(self.lifetime, Lifetime::For(_) | Lifetime::Until(_))
    }

    /// When an entry expires that is put at the time that `now` returns, in milliseconds since
    /// 1970. `None` for never.
    pub(super) fn expires_at_millis(
        &self,
        default_ttl: Option<Duration>,
        now: impl FnOnce() -> u64,
    ) -> Option<u64> {
        let after = |ttl| now().saturating_add(millis(ttl)).min(NEVER - 1);
        match self.lifetime {
            Lifetime::Default => default_ttl.map(after),
            Lifetime::Forever => None,
            Lifetime::For(ttl) => Some(after(ttl)),
            Lifetime::Until(time) => {
                Some(millis(time.duration_since(UNIX_EPOCH).unwrap_or_default()).min(NEVER - 1))
            }
        }
    }
}

impl From<WriteOptions> for PutOptions {
    fn from(write: WriteOptions) -> Self {
        PutOptions { write, lifetime: Lifetime::Default }
    }
}
