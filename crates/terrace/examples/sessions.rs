//! Sessions that expire, beside users that do not: two keyspaces of one database.
//!
//! A session is seen by no read once its time has passed, and compactions give its space back. A
//! request that extends it sets it anew; that is one step with the look at it, so a session that a
//! logout has removed meanwhile stays away.
//!
//! `cargo run --example sessions`

use std::path::Path;
use std::time::Duration;

use terrace::{Counter, Db, Keyspace, KeyspaceOptions, Options, PutOptions, Result};

/// The users that are logged in, and the number of logins of each.
pub(crate) struct Sessions {
    db: Db,
    logins: Keyspace,
    sessions: Keyspace,
    lifetime: Duration,
}

impl Sessions {
    /// Opens or creates the database. A session ends `lifetime` after its last request.
    pub(crate) fn open(path: impl AsRef<Path>, lifetime: Duration) -> Result<Sessions> {
        let db = Db::open(path, Options::new().create_if_missing(true))?;
        let logins = db.open_or_create_keyspace("logins", KeyspaceOptions::new())?;
        let sessions =
            db.open_or_create_keyspace("sessions", KeyspaceOptions::new().expiry(true))?;
        Ok(Sessions { db, logins, sessions, lifetime })
    }

    /// Begins a session of `user` under `token`. Returns the user's number of logins.
    pub(crate) fn log_in(&self, token: &str, user: &str) -> Result<i64> {
        self.sessions.put_with(token, user, PutOptions::new().ttl(self.lifetime))?;
        Counter::decode(&self.logins.merge(user, Counter::encode(1), &Counter)?)
    }

    /// The user of the session, which goes on for its lifetime from now.
    pub(crate) fn request(&self, token: &str) -> Result<Option<Vec<u8>>> {
        let extended = PutOptions::new().ttl(self.lifetime);
        self.sessions.update_with(token, |user| user.map(<[u8]>::to_vec), extended)
    }

    /// Ends the session.
    pub(crate) fn log_out(&self, token: &str) -> Result<()> {
        self.sessions.delete(token)
    }
}

pub(crate) fn main() -> Result<()> {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let path = dir.path().join("sessions");
    let sessions = Sessions::open(&path, Duration::from_secs(3600))?;
    assert_eq!(sessions.log_in("t1", "ada")?, 1);
    assert_eq!(sessions.log_in("t2", "ada")?, 2);
    assert_eq!(sessions.request("t1")?.as_deref(), Some(&b"ada"[..]));
    sessions.log_out("t1")?;
    assert_eq!(sessions.request("t1")?, None);
    sessions.db.close()?;

    let brief = Sessions::open(&path, Duration::ZERO)?;
    assert_eq!(brief.log_in("t3", "ada")?, 3);
    assert_eq!(brief.request("t3")?, None, "its time has passed");
    assert_eq!(brief.request("t2")?.as_deref(), Some(&b"ada"[..]), "it had an hour");
    println!(
        "ada was logged in 3 times; sessions that are open: {}",
        brief.sessions.iter()?.count()
    );
    brief.db.close()
}
