//! Stored values as a lasting reader sees them.

use std::sync::Arc;

use crate::base::expiry::split;
use crate::table::PrefixSettings;

use super::read_times::ReadTime;

/// See the [module](self).
#[derive(Clone)]
pub(in crate::db) struct ExpiryCheck {
    settings: Arc<PrefixSettings>,
    time: ReadTime,
}

impl ExpiryCheck {
    pub(in crate::db) fn new(settings: Arc<PrefixSettings>, time: ReadTime) -> Self {
        ExpiryCheck { settings, time }
    }

    /// Whether the value of `key` may have a trailer.
    pub(in crate::db) fn may_expire(&self, key: &[u8]) -> bool {
        self.settings.expires(key)
    }

    /// The value of `key` without a trailer; `None` if it has expired.
    #[inline]
    pub(in crate::db) fn shown<'v>(&self, key: &[u8], stored: &'v [u8]) -> Option<&'v [u8]> {
        if self.settings.expires(key) {
            shown_at(key, stored, self.time.millis())
        } else {
            Some(stored)
        }
    }
}

/// The value of a key whose values may expire, without a trailer; `None` if it has expired at
/// `now`.
pub(in crate::db) fn shown_at<'v>(key: &[u8], stored: &'v [u8], now: u64) -> Option<&'v [u8]> {
    match split(key, stored) {
        Some(expiring) if expiring.expires_at <= now => None,
        Some(expiring) => Some(expiring.value),
        None => Some(stored),
    }
}
