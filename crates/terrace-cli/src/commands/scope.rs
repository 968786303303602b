//! Where the keys of a command are: the option `--keyspace`.

use std::time::Duration;

use clap::Args;
use terrace::{Db, Keyspace, PutOptions};

use crate::failure::{Failure, Result};
use crate::range::KeyRange;

/// The option of commands that read and write entries.
#[derive(Args, Debug, Clone, Default)]
pub(crate) struct ScopeArgs {
    /// Keys are keys of this keyspace; given again, of the one of that name within it
    #[arg(long = "keyspace", value_name = "NAME")]
    pub(crate) names: Vec<String>,
}

/// Where the keys of a command are: in a keyspace, or in the whole database.
#[derive(Clone, Debug, Default)]
pub(crate) struct Scope {
    prefix: Vec<u8>,
    keyspace: Option<Keyspace>,
}

impl Scope {
    /// That of a keyspace, which must be there.
    pub(crate) fn of(db: &Db, names: &[String]) -> Result<Scope> {
        let keyspace = find(db, names)?;
        let prefix = keyspace.as_ref().map_or_else(Vec::new, |keyspace| keyspace.key(""));
        Ok(Scope { prefix, keyspace })
    }

    /// A key as the database has it.
    pub(crate) fn key(&self, key: &[u8]) -> Vec<u8> {
        [&self.prefix, key].concat()
    }

    /// An entry as the database has it, which expires after `ttl`, or as the keyspace says.
    pub(crate) fn entry(
        &self,
        key: &[u8],
        value: &[u8],
        ttl: Option<Duration>,
    ) -> Result<(Vec<u8>, Vec<u8>)> {
        let options = self.put_options(ttl)?;
        match &self.keyspace {
            Some(keyspace) => Ok(keyspace.entry(key, value, options)?),
            None => Ok((key.to_vec(), value.to_vec())),
        }
    }

    /// Options for an entry that expires after `ttl`, or as the keyspace says.
    pub(crate) fn put_options(&self, ttl: Option<Duration>) -> Result<PutOptions> {
        match (&self.keyspace, ttl) {
            (Some(_), Some(ttl)) => Ok(PutOptions::new().ttl(ttl)),
            (None, Some(_)) => Err(Failure::other("--ttl needs --keyspace NAME, with expiry")),
            (_, None) => Ok(PutOptions::new()),
        }
    }

    /// Whether this is the whole database.
    pub(crate) fn is_everything(&self) -> bool {
        self.keyspace.is_none()
    }

    /// None for the whole database.
    pub(crate) fn keyspace(&self) -> Option<&Keyspace> {
        self.keyspace.as_ref()
    }

    /// A key of the database as it is within.
    pub(crate) fn within<'k>(&self, key: &'k [u8]) -> &'k [u8] {
        key.strip_prefix(self.prefix.as_slice()).unwrap_or(key)
    }

    /// A range of keys as the database has them.
    pub(crate) fn range(&self, range: KeyRange) -> KeyRange {
        if self.prefix.is_empty() {
            return range;
        }
        let to = match range.to {
            Some(to) => Some(self.key(&to)),
            None => KeyRange::of_prefix(&self.prefix).to,
        };
        KeyRange { from: Some(self.key(&range.from.unwrap_or_default())), to }
    }
}

/// The keyspace that names lead to, each within the one before; none without names. Fails as for a
/// key that is not there if one of them is missing.
pub(super) fn find(db: &Db, names: &[String]) -> Result<Option<Keyspace>> {
    let Some((first, rest)) = names.split_first() else { return Ok(None) };
    let mut keyspace = db.keyspace(first).map_err(Failure::of_missing)?;
    for name in rest {
        keyspace = keyspace.keyspace(name).map_err(Failure::of_missing)?;
    }
    Ok(Some(keyspace))
}
