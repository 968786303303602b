//! Settings of keys by their prefixes: those of keyspaces.

use crate::base::prefix_map::PrefixMap;

use super::compression::Compression;

/// The settings that differ from the database's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct PrefixSetting {
    /// Values may have a trailer with a time of expiry.
    pub(crate) expires: bool,
    pub(crate) compression: Option<Compression>,
    pub(crate) block_size: Option<usize>,
    /// Bits for each key in the filter of the whole table.
    pub(crate) filter_bits: Option<usize>,
}

/// See the [module](self).
#[derive(Clone, Debug, Default)]
pub(crate) struct PrefixSettings {
    by_prefix: PrefixMap<PrefixSetting>,
    any_expires: bool,
}

impl PrefixSettings {
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.by_prefix.is_empty()
    }

    /// Whether values of any keys may expire.
    pub(crate) fn any_expires(&self) -> bool {
        self.any_expires
    }

    /// Sets the settings of a prefix, which are left out where they say nothing. Where values could
    /// expire once they can still, for readers of what was there before.
    pub(crate) fn set(&mut self, prefix: &[u8], setting: PrefixSetting) {
        let known = self.by_prefix.get(prefix).copied();
        let says_nothing =
            setting == PrefixSetting::default() && self.by_prefix.longest(prefix).is_none();
        if !says_nothing {
            let expires = setting.expires || known.is_some_and(|known| known.expires);
            self.any_expires |= expires;
            self.by_prefix.insert(prefix, PrefixSetting { expires, ..setting });
        }
    }

    /// Whether [`set`](Self::set) would change nothing.
    pub(crate) fn agrees(&self, prefix: &[u8], setting: PrefixSetting) -> bool {
        self.by_prefix.get(prefix).is_some_and(|known| {
            *known == PrefixSetting { expires: known.expires || setting.expires, ..setting }
        })
    }

    /// The prefix that owns a user key, and its settings.
    pub(crate) fn owner<'k>(&self, user_key: &'k [u8]) -> Option<(&'k [u8], PrefixSetting)> {
        self.by_prefix.longest(user_key).map(|(prefix, setting)| (prefix, *setting))
    }

    /// Whether the value of a user key may have a trailer with a time of expiry.
    #[inline]
    pub(crate) fn expires(&self, user_key: &[u8]) -> bool {
        user_key.first() == Some(&b'!')
            && self.owner(user_key).is_some_and(|(_, setting)| setting.expires)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_keyspace_within_another_has_settings_of_its_own() {
        let mut settings = PrefixSettings::default();
        let expiring = PrefixSetting { expires: true, ..PrefixSetting::default() };
        settings.set(b"!plain!", PrefixSetting::default());
        assert!(settings.is_empty() && !settings.any_expires(), "it says nothing");
        settings.set(b"!a!", expiring);
        settings.set(b"!a!!b!", PrefixSetting::default());
        assert!(settings.expires(b"!a!k") && settings.expires(b"!a!!x!k"));
        assert!(!settings.expires(b"!a!!b!k") && !settings.expires(b"k"));
        // Dropped, and created again without expiry.
        settings.set(b"!a!", PrefixSetting { block_size: Some(1024), ..PrefixSetting::default() });
        let owner = settings.owner(b"!a!k").map(|(_, setting)| setting);
        assert_eq!(owner, Some(PrefixSetting { block_size: Some(1024), ..expiring }));
    }
}
