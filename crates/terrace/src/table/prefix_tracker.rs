//! The settings of the entry that a table's builder has come to, and what its end needs of them.
//!
//! Compression and block size hold for blocks, so a block ends where they change. There is one
//! filter: it has the most bits that any of the table's keys is to have.

use std::sync::Arc;

use crate::base::expiry::split;

use super::expiry_sample::ExpirySample;
use super::prefix_settings::{PrefixSetting, PrefixSettings};

/// See the [module](self).
pub(super) struct PrefixTracker {
    settings: Arc<PrefixSettings>,
    /// The prefix that owns the last key, and its settings. Empty before the first key, and if none
    /// does.
    prefix: Vec<u8>,
    setting: PrefixSetting,
    is_begun: bool,
    /// Those of the database, and the most so far.
    default_bits: usize,
    filter_bits: usize,
    sample: ExpirySample,
}

impl PrefixTracker {
    pub(super) fn new(settings: Arc<PrefixSettings>, default_bits: usize) -> Self {
        PrefixTracker {
            settings,
            prefix: Vec::new(),
            setting: PrefixSetting::default(),
            is_begun: false,
            default_bits,
            filter_bits: 0,
            sample: ExpirySample::new(),
        }
    }

    /// Moves on to a user key. Returns its settings if another prefix owns it than the key before.
    #[inline]
    pub(super) fn enter(&mut self, user_key: &[u8]) -> Option<PrefixSetting> {
        let is_same = match self.prefix.is_empty() {
            true => self.is_begun && user_key.first() != Some(&b'!'),
            // What another separator follows may be of a prefix within this one.
            false => {
                user_key.starts_with(&self.prefix) && user_key.get(self.prefix.len()) != Some(&b'!')
            }
        };
        if is_same { None } else { self.change(user_key) }
    }

    fn change(&mut self, user_key: &[u8]) -> Option<PrefixSetting> {
        let (prefix, setting) = self.settings.owner(user_key).unwrap_or_default();
        self.is_begun = true;
        self.prefix.clear();
        self.prefix.extend_from_slice(prefix);
        self.setting = setting;
        self.filter_bits = self.filter_bits.max(setting.filter_bits.unwrap_or(self.default_bits));
        Some(setting)
    }

    /// Takes note of a value of the key that was entered last.
    #[inline]
    pub(super) fn note(&mut self, user_key: &[u8], value: &[u8]) {
        if self.setting.expires
            && let Some(expiring) = split(user_key, value)
        {
            self.sample.add(expiring.expires_at);
        }
    }

    /// Bits for each key in the filter.
    pub(super) fn filter_bits(&self) -> usize {
        self.filter_bits
    }

    /// When half of the table's entries have expired; [`u64::MAX`] for never.
    pub(super) fn half_expired(self, entries: u64) -> u64 {
        self.sample.half_expired(entries)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_change_where_another_prefix_begins() {
        let mut settings = PrefixSettings::default();
        let bits = |bits| PrefixSetting { filter_bits: Some(bits), ..PrefixSetting::default() };
        settings.set(b"!a!", bits(4));
        settings.set(b"!a!!b!", bits(16));
        let mut tracker = PrefixTracker::new(Arc::new(settings), 10);
        let none = PrefixSetting::default();
        for (key, expected, most) in [
            ("!a!!a", Some(bits(4)), 4),
            ("!a!!b!k", Some(bits(16)), 16),
            ("!a!!b!l", None, 16),
            ("!a!k", Some(bits(4)), 16),
            ("!a!l", None, 16),
            ("!b!k", Some(none), 16),
            ("!b!l", Some(none), 16),
            ("k", None, 16),
        ] {
            assert_eq!(tracker.enter(key.as_bytes()), expected, "{key}");
            assert_eq!(tracker.filter_bits(), most, "{key}");
        }
    }
}
