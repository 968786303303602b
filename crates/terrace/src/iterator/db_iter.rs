//! The user's view of internal entries: of each user key the newest version that is visible at a
//! sequence number, without deleted keys.
//!
//! In the bytewise order entries are not copied where their neighbour has another user key and no
//! other source comes in between: a step of the inner iterator is all there is to do, in either
//! direction.
//!
//! Ranges that are known to be deleted are skipped: see [`deleted_ranges`](super::deleted_ranges).
//! A scan with bounds ends at the first entry beyond the bound ahead, whatever that entry is: no
//! deleted entries are passed there.
//!
//! # Invariants
//! 1. Forward, the inner iterator stands at the entry that is shown.
//! 2. At a pointer it stands there, too. The value is read when [`DbIter::resolve`] is called, before
//!    anybody looks at it, and kept here: what a reader does not show is not read. For a reader of
//!    keys it is read only if [`DbIter::load`] is called.
//! 3. Backward, the inner iterator stands just before all entries of the user key that is shown,
//!    which is therefore kept here, key and value. What can be shown where it stands is shown as if
//!    on the way forward.
//! 4. Nothing beyond the bound ahead is shown. Callers begin at or within the bound behind, and
//!    leave an entry at a bound that is left out.

use std::cmp::Ordering;
use std::ops::Bound;
use std::sync::Arc;

use crate::base::comparator::KeyOrder;
use crate::base::error::{Error, Result};
use crate::base::internal_key::{
    self, EntryKind, KIND_FOR_SEEK, MAX_SEQUENCE, ParsedKey, SequenceNumber, user_key,
};
use crate::base::mutation::mutated;
use crate::base::value_pointer::{MAX_POINTER_SIZE, ValuePointer};
use crate::table::TableIter;

use super::deleted_ranges::{Beginning, DeletedRangeRecorder};
use super::deleted_run::DeletedRun;
use super::merged::Merged;
use super::scan_bounds::ScanBounds;
use super::values_ahead::{PointedValues, ValuesAhead};

/// Entries to step over, forward or back, before another seek is made.
const MOST_STEPS: usize = 8;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Direction {
    /// Or backwards, over an entry that is the only one of its user key.
    Forward,
    /// Forward at an entry that has a pointer in place of a value.
    AtPointer,
    Backward,
}

/// See the [module](self).
pub(crate) struct DbIter<K> {
    inner: Merged,
    keys: KeyOrder,
    sequence: SequenceNumber,
    bounds: Option<Arc<ScanBounds>>,
    direction: Direction,
    valid: bool,
    /// Backward: what is shown. Forward: room for the key being skipped, and at a pointer the value.
    saved_key: Vec<u8>,
    saved_value: Vec<u8>,
    /// `saved_value` is the pointer to the value that is shown.
    is_pending: bool,
    /// Whether nobody looks at values.
    is_of_keys: bool,
    /// Once a value was read.
    values_ahead: Option<Box<ValuesAhead>>,
    /// The key that is sought. Never one that is shown: C and C++ programs seek to the key that
    /// they were shown.
    target: Vec<u8>,
    error: Option<Error>,
    beginning: Beginning,
    /// The last one: fields are dropped in this order.
    keeper: K,
}

impl<K: DeletedRangeRecorder + PointedValues> DbIter<K> {
    /// The view of `inner` for a read at `sequence`; `beginning` was taken before `inner`.
    pub(crate) fn new(
        inner: Merged,
        keys: KeyOrder,
        sequence: SequenceNumber,
        beginning: Beginning,
        keeper: K,
    ) -> Self {
        DbIter {
            inner,
            keys,
            sequence,
            bounds: None,
            direction: Direction::Forward,
            valid: false,
            saved_key: Vec::new(),
            saved_value: Vec::new(),
            is_pending: false,
            is_of_keys: false,
            values_ahead: None,
            target: Vec::new(),
            error: None,
            beginning,
            keeper,
        }
    }

    /// Has values that are pointed at left unread: what is shown in their place is no value.
    pub(crate) fn show_keys_only(&mut self) {
        self.is_of_keys = true;
    }

    /// Ends scans at these bounds, from the next seek on.
    pub(crate) fn set_bounds(&mut self, bounds: Arc<ScanBounds>) {
        self.bounds = Some(bounds);
    }

    pub(crate) fn bounds(&self) -> Option<&ScanBounds> {
        self.bounds.as_deref()
    }

    pub(crate) fn keeper(&self) -> &K {
        &self.keeper
    }

    #[inline]
    pub(crate) fn valid(&self) -> bool {
        self.valid
    }

    /// Leaves the entry, as if there were none: it is beyond what the reader asked for.
    pub(crate) fn leave(&mut self) {
        self.valid = false;
        self.is_pending = false;
    }

    #[inline]
    pub(crate) fn key(&self) -> &[u8] {
        match (self.valid, self.direction) {
            (false, _) => &[],
            (true, Direction::Forward | Direction::AtPointer) => user_key(self.inner.key()),
            (true, Direction::Backward) => &self.saved_key,
        }
    }

    #[inline]
    pub(crate) fn value(&self) -> &[u8] {
        match (self.valid, self.direction) {
            (false, _) => &[],
            (true, Direction::Forward) => self.inner.value(),
            (true, Direction::AtPointer | Direction::Backward) => &self.saved_value,
        }
    }

    /// Key and value, if there is an entry here.
    #[inline]
    pub(crate) fn entry(&self) -> Option<(&[u8], &[u8])> {
        if !self.valid {
            return None;
        }
        Some(match self.direction {
            Direction::Forward => {
                let (key, value) = self.inner.entry();
                (user_key(key), value)
            }
            Direction::AtPointer => (user_key(self.inner.key()), &self.saved_value),
            Direction::Backward => (&self.saved_key, &self.saved_value),
        })
    }

    pub(crate) fn status(&self) -> Result<()> {
        match &self.error {
            Some(error) => Err(error.clone()),
            None => self.inner.status(),
        }
    }

    pub(crate) fn seek_to_first(&mut self) {
        self.start(Direction::Forward);
        self.inner.seek_to_first();
        self.find_forward(false);
    }

    pub(crate) fn seek_to_last(&mut self) {
        self.start(Direction::Backward);
        self.inner.seek_to_last();
        self.find_backward();
    }

    /// Moves to the first key at or after `key`, which is not before the lower bound.
    pub(crate) fn seek(&mut self, key: &[u8]) {
        self.set_target(key);
        self.start(Direction::Forward);
        self.inner.seek(&self.target);
        self.find_forward(false);
    }

    /// Moves to the last key at or before `key`, which is not behind the upper bound.
    pub(crate) fn seek_for_prev(&mut self, key: &[u8]) {
        self.set_target(key);
        self.start(Direction::Forward);
        self.inner.seek(&self.target);
        if self.inner.status().is_err() {
            return;
        }
        // The first entry of the key from here on is the one that counts; other keys do not.
        let here = user_key(self.inner.key());
        if self.inner.valid() && self.keys.compare(here, user_key(&self.target)).is_eq() {
            match ParsedKey::parse(self.inner.key()).map(|entry| entry.kind) {
                None => return self.fail(),
                Some(EntryKind::Value) => self.valid = true,
                Some(EntryKind::Pointer) => self.stop_at_pointer(),
                Some(EntryKind::Deletion) => {}
            }
            if self.valid {
                return self.leave_beyond_bound(false);
            }
        }
        self.step_back();
        self.find_backward();
    }

    /// Takes a copy of the key that is sought, before anything moves: it may be the one that is
    /// shown.
    fn set_target(&mut self, key: &[u8]) {
        self.target.clear();
        self.target.reserve(key.len() + internal_key::TAG_SIZE);
        internal_key::append(&mut self.target, key, self.sequence, KIND_FOR_SEEK);
    }

    fn start(&mut self, direction: Direction) {
        if let Some(values_ahead) = &mut self.values_ahead {
            values_ahead.restart();
        }
        self.is_pending = false;
        self.direction = direction;
        self.error = None;
        self.valid = false;
    }

    pub(crate) fn next(&mut self) {
        if !self.valid {
            return;
        }
        match self.short_step(|_| ()) {
            Some(Some((tag, ()))) if self.shows(tag) => self.leave_beyond_bound(true),
            Some(_) => self.find_forward(false),
            None => self.long_step(),
        }
    }

    /// [`next`](Self::next), and shows key and value of the entry that is there then. False if
    /// there is none. Most steps are within a block, whose iterator is at hand; asking for the
    /// entry from here again would cost as much as the step. Without bounds only.
    #[inline]
    pub(crate) fn next_with(&mut self, mut show: impl FnMut(&[u8], &[u8])) -> bool {
        debug_assert!(self.bounds.is_none(), "the next entry is shown as soon as it is there");
        if !self.valid {
            return false;
        }
        match self.short_step(|table| show(user_key(table.key()), table.value())) {
            Some(Some((tag, ()))) if self.shows(tag) => return true,
            Some(_) => self.find_forward(false),
            None => self.long_step(),
        }
        self.resolve();
        self.entry().map(|(key, value)| show(key, value)).is_some()
    }

    /// A step on from an entry that is shown, if that is known to be the only one of its user key.
    /// Nothing happens otherwise. Returns the tag of the entry there and what `look` makes of the
    /// table's iterator if that entry is the first of its user key.
    #[inline]
    fn short_step<R>(&mut self, look: impl FnOnce(&TableIter) -> R) -> Option<Option<(u64, R)>> {
        if self.direction != Direction::Forward || !self.keys.is_bytewise() {
            return None;
        }
        self.inner.next_of_other_key(look)
    }

    /// Every other step on from an entry that is shown.
    fn long_step(&mut self) {
        if self.direction == Direction::Backward {
            // The inner iterator stands before the entries of the key that is shown: step onto the
            // first of them.
            self.direction = Direction::Forward;
            if self.inner.valid() {
                self.inner.next();
            } else {
                self.inner.seek_to_first();
            }
            self.find_forward(true);
            return;
        }
        self.direction = Direction::Forward;
        self.save_current_key();
        self.inner.next();
        self.find_forward(true);
    }

    /// Whether the entry with this tag is what a read sees of its user key, if it is the first that
    /// it may see.
    #[inline]
    fn shows(&self, tag: u64) -> bool {
        internal_key::tag_sequence(tag) <= self.sequence && tag as u8 == EntryKind::Value as u8
    }

    /// Leaves the entry that is shown where the inner iterator stands, if it is beyond the bound
    /// ahead.
    #[inline]
    fn leave_beyond_bound(&mut self, is_forward: bool) {
        if self.bounds.is_some() && self.is_beyond_bound(is_forward) {
            self.leave();
        }
    }

    /// Whether the inner iterator stands beyond the bound ahead. Out of line: a step without bounds
    /// stays short.
    #[inline(never)]
    fn is_beyond_bound(&self, is_forward: bool) -> bool {
        let bounds = self.bounds.as_deref().zip(internal_key::split(self.inner.key()));
        bounds.is_some_and(|(bounds, (key, _))| bounds.is_beyond(key, is_forward))
    }

    fn save_current_key(&mut self) {
        put(&mut self.saved_key, user_key(self.inner.key()));
    }

    /// Finds the next entry to show, from where the inner iterator stands, up to the upper bound;
    /// `skip` passes over `saved_key` first.
    fn find_forward(&mut self, mut skip: bool) {
        self.valid = false;
        self.is_pending = false;
        let is_bounded = self.bounds.is_some();
        let (mut unseen, mut deleted) = (0, DeletedRun::default());
        while self.inner.valid() {
            if is_bounded && self.is_beyond_bound(true) {
                break;
            }
            let Some(entry) = ParsedKey::parse(self.inner.key()) else {
                self.fail();
                break;
            };
            let hidden =
                skip && self.keys.compare(entry.user_key, &self.saved_key) != Ordering::Greater;
            unseen += 1;
            if entry.sequence <= self.sequence && !hidden {
                unseen = 0;
                match entry.kind {
                    EntryKind::Value => {
                        self.valid = true;
                        break;
                    }
                    EntryKind::Pointer => {
                        self.stop_at_pointer();
                        break;
                    }
                    EntryKind::Deletion => {
                        self.save_current_key();
                        skip = true;
                        if deleted.add() && self.skip_deleted_range(&mut deleted) {
                            skip = false;
                            continue;
                        }
                    }
                }
            }
            if unseen < MOST_STEPS {
                self.inner.next();
            } else {
                unseen = 0;
                skip = self.pass_versions(skip);
            }
        }
        if deleted.is_worth_a_note() {
            self.note(deleted, true);
        }
    }

    /// Forward, after many entries that were not seen: goes to the next entry, or to the one of
    /// this key that may be seen, over other versions of it in the same source, if they were many.
    /// `skip` passes over `saved_key`, if that is the key here. Returns whether that is to be
    /// passed over still.
    #[cold]
    fn pass_versions(&mut self, skip: bool) -> bool {
        let ordering = self.keys.compare(user_key(self.inner.key()), &self.saved_key);
        if ordering != Ordering::Equal {
            // What others have written meanwhile may come before the key that is to be passed over.
            let before = skip && ordering == Ordering::Less;
            if !before {
                // If as many again are to come of this key, they are known by that.
                self.save_current_key();
            }
            self.inner.next();
            return before;
        }
        let all = skip || mutated("versions-passed");
        let (sequence, kind) =
            if all { (0, EntryKind::Deletion) } else { (self.sequence, KIND_FOR_SEEK) };
        let length = self.saved_key.len();
        internal_key::append(&mut self.saved_key, &[], sequence, kind);
        self.inner.pass(&self.saved_key);
        self.saved_key.truncate(length);
        skip
    }

    pub(crate) fn prev(&mut self) {
        if !self.valid {
            return;
        }
        match self.short_step_back(|_| ()) {
            Some(Some((tag, ()))) if self.shows(tag) => self.leave_beyond_bound(false),
            Some(_) => self.find_backward(),
            None => self.long_step_back(),
        }
    }

    /// [`prev`](Self::prev), and shows key and value as [`next_with`](Self::next_with) does.
    #[inline]
    pub(crate) fn prev_with(&mut self, mut show: impl FnMut(&[u8], &[u8])) -> bool {
        debug_assert!(self.bounds.is_none(), "the entry before is shown as soon as it is there");
        if !self.valid {
            return false;
        }
        match self.short_step_back(|table| show(user_key(table.key()), table.value())) {
            Some(Some((tag, ()))) if self.shows(tag) => return true,
            Some(_) => self.find_backward(),
            None => self.long_step_back(),
        }
        self.resolve();
        self.entry().map(|(key, value)| show(key, value)).is_some()
    }

    /// A step back from an entry that is shown where it stands, if the one before is of another
    /// user key. Nothing happens otherwise. Returns the tag there and what `look` makes of the
    /// table's iterator if that entry, too, is the only one of its user key, and so can be shown
    /// where it stands.
    #[inline]
    fn short_step_back<R>(
        &mut self,
        look: impl FnOnce(&TableIter) -> R,
    ) -> Option<Option<(u64, R)>> {
        if self.direction != Direction::Forward || !self.keys.is_bytewise() {
            return None;
        }
        self.inner.prev_of_other_key(look)
    }

    /// Every other step back from an entry that is shown.
    fn long_step_back(&mut self) {
        if self.direction != Direction::Backward {
            // Step before every entry of the key that is shown, newer ones that this read does not
            // see included.
            self.save_current_key();
            let mut passed = 0;
            loop {
                if passed == MOST_STEPS {
                    self.seek_before_versions();
                    break;
                }
                passed += 1;
                self.inner.prev();
                if !self.inner.valid()
                    || self.keys.compare(user_key(self.inner.key()), &self.saved_key)
                        == Ordering::Less
                {
                    break;
                }
            }
        }
        self.find_backward();
    }

    /// Finds the previous key to show, down to the lower bound. Backward, the versions of a key come
    /// oldest first, so the last one that may be seen counts, and only the first entry of another
    /// key ends the search.
    fn find_backward(&mut self) {
        // The only version of its key can be shown where it stands.
        if self.keys.is_bytewise()
            && self.inner.is_only_version()
            && internal_key::split(self.inner.key()).is_some_and(|(_, tag)| self.shows(tag))
        {
            self.direction = Direction::Forward;
            self.valid = true;
            self.is_pending = false;
            return self.leave_beyond_bound(false);
        }
        self.direction = Direction::Backward;
        self.valid = false;
        let is_bounded = self.bounds.is_some();
        let (mut found, mut passed, mut deleted) = (None, 0, DeletedRun::default());
        while self.inner.valid() {
            if is_bounded && self.is_beyond_bound(false) {
                break;
            }
            let Some(entry) = ParsedKey::parse(self.inner.key()) else { return self.fail() };
            if found.is_some()
                && self.keys.compare(entry.user_key, &self.saved_key) == Ordering::Less
            {
                break;
            }
            passed += 1;
            if passed == MOST_STEPS {
                passed = 0;
                if self.keys.compare(entry.user_key, &self.saved_key) == Ordering::Equal {
                    // Of those that may be seen the newest came last, if others have come already.
                    if entry.sequence <= self.sequence {
                        found = self.find_newest_version();
                    }
                    self.seek_before_versions();
                    continue;
                }
                // Nothing is found yet. If as many again are to come of this key, they are known by
                // that.
                put(&mut self.saved_key, entry.user_key);
            }
            if entry.sequence <= self.sequence {
                found = Some(entry.kind).filter(|kind| *kind != EntryKind::Deletion);
                put(&mut self.saved_key, entry.user_key);
                if found.is_some() {
                    put(&mut self.saved_value, self.inner.value());
                } else if deleted.add() && self.skip_deleted_range(&mut deleted) {
                    continue;
                }
            }
            self.inner.prev();
        }
        self.valid = found.is_some() && self.inner.status().is_ok();
        self.is_pending = self.valid && found == Some(EntryKind::Pointer);
        if deleted.is_worth_a_note() {
            self.note(deleted, false);
        }
        if !self.valid {
            self.direction = Direction::Forward;
        }
    }

    /// At a deleted key, `saved_key`: skips the known range around it, as far as the bounds go.
    /// Returns whether there is one.
    #[cold]
    fn skip_deleted_range(&mut self, deleted: &mut DeletedRun) -> bool {
        if !self.keys.is_bytewise() {
            return false;
        }
        let is_forward = self.direction == Direction::Forward;
        let bounds = |from: &[u8], to: Option<&[u8]>| {
            let from = Bound::Included(from.to_vec());
            let to = to.map_or(Bound::Unbounded, |to| Bound::Excluded(to.to_vec()));
            if is_forward { (from, to) } else { (to, from) }
        };
        let sequence = self.sequence.min(self.beginning.visible);
        let Some((begin, end)) =
            self.keeper.deleted_ranges().around(&self.saved_key, sequence, bounds)
        else {
            deleted.begin_at(&self.saved_key, is_forward);
            return false;
        };
        deleted.begin_with(begin);
        let end = match &self.bounds {
            Some(bounds) => bounds.nearer(end, is_forward),
            None => end,
        };
        match end {
            Bound::Unbounded => {
                self.inner.seek_to_last();
                self.inner.next();
            }
            Bound::Included(key) | Bound::Excluded(key) => {
                self.saved_key = key;
                self.seek_version(MAX_SEQUENCE);
                if !is_forward {
                    self.step_back();
                }
            }
        }
        true
    }

    /// Reports the range that the scan has passed when it ends here.
    #[cold]
    fn note(&mut self, deleted: DeletedRun, is_forward: bool) {
        if self.status().is_err() {
            return;
        }
        let end = match self.valid {
            true => Some(self.key()),
            // The bound has stopped it, unless there are no more keys.
            false if self.inner.valid() => {
                self.bounds.as_ref().and_then(|bounds| bounds.key_ahead(is_forward))
            }
            false => None,
        };
        let Some((from, to)) = deleted.range(end) else { return };
        if self.keeper.deleted_ranges().note(
            &from,
            to.as_deref(),
            self.sequence,
            self.beginning.moment,
        ) {
            self.keeper.watch(&from, to.as_deref());
        }
    }

    /// At one of many versions of `saved_key`: goes to the newest that may be seen. Returns its kind
    /// if it is a value or a pointer to one, which is saved then.
    #[cold]
    fn find_newest_version(&mut self) -> Option<EntryKind> {
        self.seek_version(self.sequence);
        let newest = ParsedKey::parse(self.inner.key()).filter(|_| self.inner.valid());
        let found = newest.filter(|newest| {
            newest.kind != EntryKind::Deletion
                && self.keys.compare(newest.user_key, &self.saved_key) == Ordering::Equal
        });
        let found = found.map(|found| found.kind);
        if found.is_some() {
            put(&mut self.saved_key, user_key(self.inner.key()));
            put(&mut self.saved_value, self.inner.value());
        }
        found
    }

    /// Shows the entry here, which has a pointer in place of a value.
    #[cold]
    fn stop_at_pointer(&mut self) {
        self.direction = Direction::AtPointer;
        self.valid = true;
        self.is_pending = true;
        put(&mut self.saved_value, self.inner.value());
    }

    /// [`load`](Self::load), unless only keys are shown.
    #[inline]
    pub(crate) fn resolve(&mut self) {
        if self.is_pending && !self.is_of_keys {
            self.load();
        }
    }

    /// Whether there is only a pointer to the value that is shown yet.
    pub(crate) fn is_pending(&self) -> bool {
        self.is_pending
    }

    /// Reads the value that is shown, if there is only a pointer to it yet. If that fails nothing is
    /// shown.
    #[cold]
    pub(crate) fn load(&mut self) {
        if !self.is_pending {
            return;
        }
        self.is_pending = false;
        // Copied, so that the value goes to where there is room for it mostly. What is longer is no
        // pointer, and stays none.
        let mut pointer = [0; MAX_POINTER_SIZE + 1];
        let length = self.saved_value.len().min(pointer.len());
        pointer[..length].copy_from_slice(&self.saved_value[..length]);
        let backward = self.direction == Direction::Backward;
        let Self { inner, keeper, values_ahead, saved_value, bounds, .. } = self;
        let bounds = bounds.as_deref();
        let ahead =
            values_ahead.get_or_insert_with(|| Box::new(ValuesAhead::new(keeper.scan_length())));
        let ask = |pointers: &[ValuePointer]| keeper.ask_for_values(pointers);
        ahead.go_on(inner, bounds, backward, ask);
        let mut before_waiting = || ahead.begin(inner, bounds, backward, ask);
        let read = keeper.read_value(&pointer[..length], saved_value, &mut before_waiting);
        if let Err(error) = read {
            self.valid = false;
            self.error = Some(error);
        }
    }

    /// Goes to the last entry before all of `saved_key`, the largest tag of which sorts first.
    #[cold]
    fn seek_before_versions(&mut self) {
        // What failed stays known.
        if self.inner.status().is_ok() {
            self.seek_version(MAX_SEQUENCE);
            self.step_back();
        }
    }

    /// Goes to the first version of `saved_key` that is not newer than `sequence`, or behind all of
    /// them.
    fn seek_version(&mut self, sequence: SequenceNumber) {
        let length = self.saved_key.len();
        internal_key::append(&mut self.saved_key, &[], sequence, KIND_FOR_SEEK);
        self.inner.seek(&self.saved_key);
        self.saved_key.truncate(length);
    }

    /// To the entry before, from behind the last one, too.
    fn step_back(&mut self) {
        if self.inner.valid() {
            self.inner.prev();
        } else if self.inner.status().is_ok() {
            self.inner.seek_to_last();
        }
    }

    #[cold]
    fn fail(&mut self) {
        self.valid = false;
        self.error = Some(Error::corruption(
            "an entry whose internal key is too short or of an unknown kind",
        ));
    }
}

/// Copies `bytes` to where there is room for them mostly.
#[inline]
fn put(buffer: &mut Vec<u8>, bytes: &[u8]) {
    buffer.clear();
    buffer.extend_from_slice(bytes);
}
