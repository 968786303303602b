//! The settings of keyspaces, from the catalogue.
//!
//! They are read once, when a read or a compaction first asks, so that a database without keyspaces
//! opens as it did. A catalogue that cannot be read is the error of reads in keyspaces.

use std::ops::Bound;
use std::sync::Arc;

use crate::base::error::{Error, Result};
use crate::base::value_pointer::ValuePointer;
use crate::compaction::filter::FilterSet;
use crate::iterator::db_iter::DbIter;
use crate::iterator::deleted_ranges::{DeletedRangeRecorder, DeletedRanges};
use crate::iterator::merged::Merged;
use crate::iterator::scan_bounds::ScanBounds;
use crate::iterator::values_ahead::PointedValues;
use crate::table::{PrefixSetting, PrefixSettings};
use crate::version::NUM_LEVELS;
use crate::version::value_reader::ValueScanLength;

use crate::db::db_impl::background::Background;
use crate::db::key_range::prefix_end;
use crate::db::view::catalogue::entry;

/// Passes over deleted entries one by one.
#[derive(Default)]
struct NoRanges(DeletedRanges);

impl DeletedRangeRecorder for NoRanges {
    fn deleted_ranges(&self) -> &DeletedRanges {
        &self.0
    }

    fn watch(&self, _from: &[u8], _to: Option<&[u8]>) {}
}

impl PointedValues for NoRanges {
    fn read_value(&self, _: &[u8], _: &mut Vec<u8>, _: &mut dyn FnMut()) -> Result<()> {
        Err(Error::corruption("the catalogue of keyspaces points into a value file"))
    }

    fn ask_for_values(&self, _pointers: &[ValuePointer]) {}

    fn scan_length(&self) -> Arc<ValueScanLength> {
        Arc::default()
    }
}

impl Background {
    /// The settings of keyspaces, read from the catalogue if they are not known yet.
    #[inline]
    pub(in crate::db) fn prefix_settings(self: &Arc<Self>) -> Result<Arc<PrefixSettings>> {
        match self.files.catalogue.known() {
            Some(known) => Ok(Arc::clone(&known)),
            None => {
                let loaded = self.change_settings(|_| ())?;
                self.schedule_expiry_check();
                Ok(loaded)
            }
        }
    }

    /// Changes the settings of keyspaces, before there is a key that they are for.
    pub(in crate::db) fn change_settings(
        &self,
        change: impl FnOnce(&mut PrefixSettings),
    ) -> Result<Arc<PrefixSettings>> {
        self.files.catalogue.change(|| self.load_settings(), change)
    }

    /// Sees to it that the settings of a keyspace that was found are those of its entry, which a
    /// load may have brought after the catalogue was read.
    pub(in crate::db) fn ensure_setting(
        self: &Arc<Self>,
        prefix: &[u8],
        setting: PrefixSetting,
    ) -> Result<()> {
        if !self.prefix_settings()?.agrees(prefix, setting) {
            self.change_settings(|all| all.set(prefix, setting))?;
            self.schedule_expiry_check();
        }
        Ok(())
    }

    /// Whether a table may hold entries of the catalogue, as far as its first and last keys tell.
    pub(super) fn may_have_catalogue(&self) -> bool {
        let (keys, version) = (&self.files.order.keys, &self.views.current.load().version);
        let end = prefix_end(entry::PREFIX).unwrap_or_default();
        keys.is_bytewise()
            && (0..NUM_LEVELS).any(|level| version.overlaps_level(keys, level, entry::PREFIX, &end))
    }

    fn load_settings(&self) -> Result<PrefixSettings> {
        let (mut settings, files) = (PrefixSettings::default(), &self.files);
        if !files.order.keys.is_bytewise() {
            return Ok(settings);
        }
        files.check_open()?;
        let beginning = self.views.beginning();
        let view = self.views.current.load_full();
        let sequence = self.views.visible_sequence().max(view.in_tables);
        // They are read once: blocks that others use stay in the cache for them.
        let merged = Merged::new(view.sources(&files.tables, &files.order, false)?, &files.order);
        let keys = files.order.keys.clone();
        let mut iter = DbIter::new(merged, keys, sequence, beginning, NoRanges::default());
        let before = entry::key(&[]);
        // What else begins with an exclamation mark may be a queue of which all is deleted.
        let within = |from: &[u8], to| {
            Arc::new(ScanBounds::new(&files.order.keys, Bound::Included(from.to_vec()), to))
        };
        iter.set_bounds(within(
            &before,
            prefix_end(&before).map_or(Bound::Unbounded, Bound::Excluded),
        ));
        iter.seek(&before);
        while iter.valid() {
            iter.resolve();
            let Some((key, value)) = iter.entry() else { break };
            let Some(prefix) = key.strip_prefix(before.as_slice()) else { break };
            // What cannot be opened here has no settings here either.
            if let Ok(options) = entry::decode(value) {
                settings.set(prefix, options.prefix_setting());
            }
            iter.next();
        }
        iter.status()?;
        iter.set_bounds(within(entry::CLOCK, Bound::Included(entry::CLOCK.to_vec())));
        iter.seek(entry::CLOCK);
        let mark = iter.entry().filter(|(key, _)| *key == entry::CLOCK);
        if let Some(mark) = mark.and_then(|(_, value)| entry::decode_clock(value)) {
            files.catalogue.take_mark(files.env.as_ref(), mark);
        }
        iter.status()?;
        Ok(settings)
    }

    /// The settings of keys that may expire, and the time up to which a compaction that begins now
    /// removes them.
    pub(super) fn expired_in_compactions(self: &Arc<Self>) -> Option<(Arc<PrefixSettings>, u64)> {
        let settings = self.prefix_settings().ok()?;
        let expired_before = || self.files.catalogue.expired_before(self.files.env.as_ref());
        settings.any_expires().then(|| (settings, expired_before()))
    }

    /// The filters that a compaction that begins now asks.
    pub(super) fn compaction_filters(&self) -> FilterSet {
        let by_prefix = self.files.catalogue.filters.lock().clone();
        let database = self.files.options.compaction_filter.clone();
        FilterSet { database, by_prefix, spared: entry::PREFIX }
    }
}
