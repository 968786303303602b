//! What a cursor reads and keeps.

use std::sync::Arc;

use crate::base::error::Result;
use crate::base::value_pointer::ValuePointer;
use crate::iterator::deleted_ranges::{DeletedRangeRecorder, DeletedRanges};
use crate::iterator::values_ahead::PointedValues;
use crate::version::value_reader::ValueScanLength;

use crate::db::db_impl::DbImpl;
use crate::db::view::View;

/// What the cursor reads. Has files removed that only the cursor kept, once everything else of it is
/// gone.
pub(super) struct Held {
    /// `None` once it is let go.
    pub(super) view: Option<Arc<View>>,
    pub(super) core: Arc<DbImpl>,
}

impl Drop for Held {
    fn drop(&mut self) {
        self.view = None;
        self.core.background.purge_later();
    }
}

impl PointedValues for Held {
    fn read_value(
        &self,
        pointer: &[u8],
        value: &mut Vec<u8>,
        before_waiting: &mut dyn FnMut(),
    ) -> Result<()> {
        let (files, view) = (&self.core.files, self.view()?);
        let values = &view.version.values;
        files.sparing(|| files.values.read_or_wait(values, pointer, value, before_waiting))
    }

    fn ask_for_values(&self, pointers: &[ValuePointer]) {
        if let Some(view) = &self.view {
            self.core.files.values.ask(&view.version.values, pointers.iter().copied());
        }
    }

    fn scan_length(&self) -> Arc<ValueScanLength> {
        self.core.files.values.scan_length.clone()
    }
}

impl Held {
    pub(super) fn view(&self) -> Result<&Arc<View>> {
        self.view.as_ref().ok_or_else(|| self.core.files.closed_error())
    }
}

impl DeletedRangeRecorder for Held {
    fn deleted_ranges(&self) -> &DeletedRanges {
        &self.core.views.deleted_ranges
    }

    fn watch(&self, from: &[u8], to: Option<&[u8]>) {
        let core = &self.core;
        if core.files.works_elsewhere() {
            return;
        }
        // Writers may hold it for long.
        if let Some(commit) = core.writes.commit.try_lock() {
            let last = commit
                .as_ref()
                .map_or(core.views.visible_sequence(), |commit| commit.last_sequence);
            core.views.deleted_ranges.watch(from, to, last);
        }
    }
}
