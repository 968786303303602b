//! One source, or several merged: most databases at rest have one, and a merge of one costs.

use std::ops::{Deref, DerefMut};

use crate::base::error::Result;
use crate::base::internal_key::{self, InternalOrder};
use crate::table::{StoredBlock, TableIter};

use super::merging::MergingIter;
use super::source::Source;

/// See the [module](self).
pub(crate) enum Merged {
    Single(Only),
    Many(MergingIter),
}

/// The only source, where it was made: it is large, and a cursor is moved half a dozen times until
/// its caller has it.
pub(crate) struct Only(Box<[Source; 1]>);

impl Deref for Only {
    type Target = Source;

    #[inline]
    fn deref(&self) -> &Source {
        let [source] = &*self.0;
        source
    }
}

impl DerefMut for Only {
    #[inline]
    fn deref_mut(&mut self) -> &mut Source {
        let [source] = &mut *self.0;
        source
    }
}

macro_rules! each {
    ($merged:expr, $iter:ident => $body:expr) => {
        match $merged {
            Merged::Single($iter) => $body,
            Merged::Many($iter) => $body,
        }
    };
}

impl Merged {
    pub(crate) fn new(sources: Vec<Source>, order: &InternalOrder) -> Self {
        match <Box<[Source; 1]>>::try_from(sources) {
            Ok(source) => Merged::Single(Only(source)),
            Err(sources) => Merged::Many(MergingIter::new(sources, order.clone())),
        }
    }

    #[inline]
    pub(crate) fn valid(&self) -> bool {
        each!(self, iter => iter.valid())
    }

    pub(crate) fn seek_to_first(&mut self) {
        each!(self, iter => iter.seek_to_first());
    }

    pub(crate) fn seek_to_last(&mut self) {
        each!(self, iter => iter.seek_to_last());
    }

    pub(crate) fn seek(&mut self, target: &[u8]) {
        each!(self, iter => iter.seek(target));
    }

    /// See [`MergingIter::pass`].
    pub(super) fn pass(&mut self, target: &[u8]) {
        match self {
            Merged::Single(source) => source.seek(target),
            Merged::Many(merging) => merging.pass(target),
        }
    }

    #[inline]
    pub(crate) fn next(&mut self) {
        each!(self, iter => iter.next());
    }

    #[inline]
    pub(crate) fn prev(&mut self) {
        each!(self, iter => iter.prev());
    }

    #[inline]
    pub(crate) fn key(&self) -> &[u8] {
        each!(self, iter => iter.key())
    }

    #[inline]
    pub(crate) fn value(&self) -> &[u8] {
        each!(self, iter => iter.value())
    }

    #[inline]
    pub(super) fn entry(&self) -> (&[u8], &[u8]) {
        each!(self, iter => iter.entry())
    }

    /// See [`MergingIter::next_of_other_key`]. In the bytewise order only.
    #[inline]
    pub(super) fn next_of_other_key<R>(
        &mut self,
        look: impl FnOnce(&TableIter) -> R,
    ) -> Option<Option<(u64, R)>> {
        match self {
            Merged::Single(source) => source.next_of_other_key(look).map(Some),
            Merged::Many(merging) => merging.next_of_other_key(look),
        }
    }

    /// See [`MergingIter::prev_of_other_key`]. In the bytewise order only.
    #[inline]
    pub(super) fn prev_of_other_key<R>(
        &mut self,
        look: impl FnOnce(&TableIter) -> R,
    ) -> Option<Option<(u64, R)>> {
        match self {
            Merged::Single(source) => {
                let seen =
                    |table: &TableIter| Some((internal_key::split(table.key())?.1, look(table)));
                source.prev_of_other_key(seen).map(Option::flatten)
            }
            Merged::Many(merging) => merging.prev_of_other_key(look),
        }
    }

    /// See [`MergingIter::is_only_version`]. In the bytewise order only.
    #[inline]
    pub(super) fn is_only_version(&self) -> bool {
        match self {
            Merged::Single(source) => source.follows_other_key(),
            Merged::Many(merging) => merging.is_only_version(),
        }
    }

    /// See [`TableIter::lone_block`].
    pub(crate) fn lone_block(&self) -> Option<StoredBlock<'_>> {
        let source = match self {
            Merged::Single(source) => source,
            Merged::Many(merging) => merging.current()?,
        };
        source.table()?.lone_block()
    }

    /// See [`TableIter::shown_ahead`].
    pub(super) fn shown_ahead(&self, backward: bool) -> usize {
        let source = match self {
            Merged::Single(source) => Some(&**source),
            Merged::Many(merging) => merging.current(),
        };
        source.and_then(Source::table).map_or(0, |table| table.shown_ahead(backward))
    }

    /// See [`TableIter::show_ahead`].
    pub(super) fn show_ahead(
        &mut self,
        backward: bool,
        show: &mut dyn FnMut(&[u8], &[u8]) -> bool,
    ) {
        let source = match self {
            Merged::Single(source) => Some(&mut **source),
            Merged::Many(merging) => merging.current_mut(),
        };
        if let Some(table) = source.and_then(Source::table_mut) {
            table.show_ahead(backward, show);
        }
    }

    pub(crate) fn status(&self) -> Result<()> {
        each!(self, iter => iter.status())
    }
}
