//! A position between the entries of a range.
//!
//! plyvel's iterators stand between two entries, not at one: `next` returns the entry behind the
//! position and moves past it, `prev` the one before it. So `prev` after `next` returns the same
//! entry again.

use std::cmp::Ordering;
use std::sync::Arc;

use terrace::{Comparator, Cursor, Result};

use crate::comparator::PyComparator;

/// In the order of keys.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Direction {
    Forward,
    Backward,
}

impl Direction {
    pub(crate) fn reversed(self) -> Self {
        match self {
            Direction::Forward => Direction::Backward,
            Direction::Backward => Direction::Forward,
        }
    }
}

/// Which keys are in a range.
#[derive(Clone, Default)]
pub(crate) struct Range {
    pub(crate) start: Option<Vec<u8>>,
    pub(crate) stop: Option<Vec<u8>>,
    pub(crate) include_start: bool,
    pub(crate) include_stop: bool,
    /// Bytewise, if it is none of Python's.
    pub(crate) order: Option<Arc<PyComparator>>,
}

impl Range {
    /// The keys that begin with `prefix`.
    pub(crate) fn prefix(prefix: Vec<u8>) -> Self {
        let stop = prefix.iter().rposition(|&byte| byte != 0xff).map(|last| {
            let mut stop = prefix[..=last].to_vec();
            stop[last] += 1;
            stop
        });
        Range { start: Some(prefix), stop, include_start: true, include_stop: false, order: None }
    }

    #[inline]
    fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        match &self.order {
            None => a.cmp(b),
            Some(order) => order.compare(a, b),
        }
    }

    #[inline]
    fn is_before_start(&self, key: &[u8]) -> bool {
        self.start.as_ref().is_some_and(|start| match self.compare(key, start) {
            Ordering::Less => true,
            Ordering::Equal => !self.include_start,
            Ordering::Greater => false,
        })
    }

    #[inline]
    fn is_behind_stop(&self, key: &[u8]) -> bool {
        self.stop.as_ref().is_some_and(|stop| match self.compare(key, stop) {
            Ordering::Less => false,
            Ordering::Equal => !self.include_stop,
            Ordering::Greater => true,
        })
    }
}

/// Where a scan stands.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    /// Before every entry of the range.
    Start,
    /// Behind every entry of the range.
    Stop,
    /// Directly before the entry of the cursor.
    BeforeEntry,
    /// Directly behind the entry of the cursor.
    BehindEntry,
}

/// See the [module](self).
///
/// # Invariants
/// 1. At `BeforeEntry` and `BehindEntry` the cursor is valid.
pub(crate) struct Scan {
    cursor: Cursor,
    range: Range,
    place: Place,
}

impl Scan {
    /// A scan at the end of the range at which one in `direction` begins.
    pub(crate) fn new(cursor: Cursor, range: Range, direction: Direction) -> Self {
        let place = match direction {
            Direction::Forward => Place::Start,
            Direction::Backward => Place::Stop,
        };
        Scan { cursor, range, place }
    }

    /// Goes before every entry.
    pub(crate) fn go_to_start(&mut self) {
        self.place = Place::Start;
    }

    /// Goes behind every entry.
    pub(crate) fn go_to_stop(&mut self) {
        self.place = Place::Stop;
    }

    /// Goes before the first entry at or after `target`, which is moved into the range first.
    pub(crate) fn seek(&mut self, target: &[u8]) -> Result<()> {
        let (start, stop) = (self.range.start.as_deref(), self.range.stop.as_deref());
        let below = start.filter(|start| self.range.compare(target, start).is_lt());
        let above = stop.filter(|stop| self.range.compare(target, stop).is_gt());
        let target = below.or(above).unwrap_or(target);
        self.cursor.seek(target);
        self.cursor.status()?;
        self.place = match self.cursor.valid() {
            true if !self.range.is_before_start(self.cursor.key()) => Place::BeforeEntry,
            true => Place::Start,
            false => Place::Stop,
        };
        Ok(())
    }

    /// Goes back to before the entry of `key`, which is there, as seen in `direction`.
    pub(crate) fn return_to(&mut self, key: &[u8], direction: Direction) -> Result<()> {
        self.cursor.seek(key);
        self.cursor.status()?;
        self.return_to_entry(direction);
        Ok(())
    }

    /// Goes back to before the entry that the last step in `direction` passed.
    pub(crate) fn return_to_entry(&mut self, direction: Direction) {
        self.place = match (self.cursor.valid(), direction) {
            (true, Direction::Forward) => Place::BeforeEntry,
            (true, Direction::Backward) => Place::BehindEntry,
            (false, Direction::Forward) => Place::Stop,
            (false, Direction::Backward) => Place::Start,
        };
    }

    /// Passes the next entry in `direction`, if there is one, and returns it.
    #[inline]
    pub(crate) fn step(&mut self, direction: Direction) -> Result<Option<(&[u8], &[u8])>> {
        match direction {
            Direction::Forward => self.forward(),
            Direction::Backward => self.backward(),
        }
    }

    /// The entry that the last step passed.
    pub(crate) fn entry(&self) -> (&[u8], &[u8]) {
        self.cursor.entry().unwrap_or_default()
    }

    #[inline]
    fn forward(&mut self) -> Result<Option<(&[u8], &[u8])>> {
        match self.place {
            Place::BehindEntry => self.cursor.next(),
            Place::BeforeEntry => {}
            Place::Start => self.seek_to_first(),
            Place::Stop => return Ok(None),
        }
        self.place = Place::Stop;
        let Some(entry) = self.cursor.entry() else {
            return self.cursor.status().map(|()| None);
        };
        if self.range.is_behind_stop(entry.0) {
            return Ok(None);
        }
        self.place = Place::BehindEntry;
        Ok(Some(entry))
    }

    #[inline]
    fn backward(&mut self) -> Result<Option<(&[u8], &[u8])>> {
        match self.place {
            Place::BeforeEntry => self.cursor.prev(),
            Place::BehindEntry => {}
            Place::Stop => self.seek_to_last(),
            Place::Start => return Ok(None),
        }
        self.place = Place::Start;
        let Some(entry) = self.cursor.entry() else {
            return self.cursor.status().map(|()| None);
        };
        if self.range.is_before_start(entry.0) {
            return Ok(None);
        }
        self.place = Place::BeforeEntry;
        Ok(Some(entry))
    }

    fn seek_to_first(&mut self) {
        match &self.range.start {
            None => self.cursor.seek_to_first(),
            Some(start) => {
                self.cursor.seek(start);
                if self.cursor.valid() && self.range.is_before_start(self.cursor.key()) {
                    self.cursor.next();
                }
            }
        }
    }

    fn seek_to_last(&mut self) {
        match &self.range.stop {
            None => self.cursor.seek_to_last(),
            Some(stop) => {
                self.cursor.seek_for_prev(stop);
                if self.cursor.valid() && self.range.is_behind_stop(self.cursor.key()) {
                    self.cursor.prev();
                }
            }
        }
    }
}
