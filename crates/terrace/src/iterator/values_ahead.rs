//! Asks the device for the values that a scan comes to next.
//!
//! A value in a value file that is not in memory is waited for, unless the device was asked for it
//! before. A scan that has to wait asks for those that follow in its block first: for as many as scans
//! usually go on to read from where they are sought, and once it has gone further, for twice as many
//! each time.

use std::sync::Arc;

use crate::base::error::Result;
use crate::base::internal_key::user_key;
use crate::base::value_pointer::ValuePointer;
use crate::version::value_reader::{MOST_ASKED, ValueScanLength};

use super::merged::Merged;
use super::scan_bounds::ScanBounds;

/// Values that are asked for at once, once a scan reads ahead, and at most.
const FIRST: usize = 4;
const MOST: usize = 64;

/// Reads the values that entries of a table point at.
pub(crate) trait PointedValues {
    /// Reads the value that `pointer` leads to into `value`, whose contents go, and calls
    /// `before_waiting` if the device has to be waited for.
    fn read_value(
        &self,
        pointer: &[u8],
        value: &mut Vec<u8>,
        before_waiting: &mut dyn FnMut(),
    ) -> Result<()>;

    /// Asks the device for what `pointers` lead to. A hint.
    fn ask_for_values(&self, pointers: &[ValuePointer]);

    /// How many values scans read that have waited for values.
    fn scan_length(&self) -> Arc<ValueScanLength>;
}

/// See the [module](self).
pub(crate) struct ValuesAhead {
    scan_length: Arc<ValueScanLength>,
    /// Values that were read since the last seek or turn, this one included.
    read: usize,
    /// Whether that was on the way back.
    backward: bool,
    /// How many are asked for the next time; 0 until the scan has waited for one.
    window: usize,
    pointers: Vec<ValuePointer>,
}

impl ValuesAhead {
    pub(crate) fn new(scan_length: Arc<ValueScanLength>) -> Self {
        ValuesAhead { scan_length, read: 0, backward: false, window: 0, pointers: Vec::new() }
    }

    /// For a scan that reads all values, and tells nothing about how far others go.
    pub(crate) fn of_whole_scan() -> Self {
        let mut ahead = Self::new(Arc::default());
        (ahead.read, ahead.window) = (usize::MAX, MOST);
        ahead
    }

    /// Ends the scan, and begins another.
    pub(crate) fn restart(&mut self) {
        if self.window > 0 {
            let went_on = self.read.saturating_sub(1);
            self.scan_length.note(u8::try_from(went_on).unwrap_or(u8::MAX));
        }
        (self.read, self.window) = (0, 0);
    }

    /// Before the scan reads the value where `inner` stands, or, backward, behind that: passes the
    /// pointers that follow within `bounds` to `ask`, if it reads ahead and has come far enough.
    pub(crate) fn go_on(
        &mut self,
        inner: &mut Merged,
        bounds: Option<&ScanBounds>,
        backward: bool,
        ask: impl FnOnce(&[ValuePointer]),
    ) {
        if std::mem::replace(&mut self.backward, backward) != backward {
            self.restart();
        }
        self.read = self.read.saturating_add(1);
        if self.window > 0 {
            self.ask(inner, bounds, backward, ask);
        }
    }

    /// Before the scan waits for that value.
    pub(crate) fn begin(
        &mut self,
        inner: &mut Merged,
        bounds: Option<&ScanBounds>,
        backward: bool,
        ask: impl FnOnce(&[ValuePointer]),
    ) {
        if self.window == 0 {
            self.window = FIRST;
            self.ask(inner, bounds, backward, ask);
        }
    }

    fn ask(
        &mut self,
        inner: &mut Merged,
        bounds: Option<&ScanBounds>,
        backward: bool,
        ask: impl FnOnce(&[ValuePointer]),
    ) {
        let expected = 1 + self.scan_length.expected();
        let goes_further = self.read > expected;
        let most = match goes_further {
            true => self.window,
            // Each run is asked for as many: which of them comes next is not known.
            false => expected.saturating_sub(self.read + inner.shown_ahead(backward)),
        };
        if most == 0 {
            return;
        }
        let Self { pointers, .. } = self;
        pointers.clear();
        let mut bytes = 0;
        inner.show_ahead(backward, &mut |key, value| {
            if bounds.is_some_and(|bounds| bounds.is_beyond(user_key(key), !backward)) {
                return false;
            }
            let pointer = ValuePointer::of_entry(key, value);
            bytes += pointer.map_or(0, |pointer| pointer.length);
            pointers.extend(pointer);
            pointers.len() < most && bytes < MOST_ASKED
        });
        if pointers.is_empty() {
            return;
        }
        if goes_further {
            self.window = (self.window * 2).min(MOST);
        }
        ask(pointers);
    }
}

impl Drop for ValuesAhead {
    fn drop(&mut self) {
        self.restart();
    }
}
