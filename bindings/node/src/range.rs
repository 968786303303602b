//! Ranges of keys as iterators and `clear` take them.

use std::ops::Bound;

use terrace::{ReadOptions, Result};

use crate::frames::Frames;

/// Bits of the flags that come with a range; `lib/range.js` sets them.
pub mod flag {
    /// The frames begin with the smallest key of the range.
    pub const LOWER: u32 = 1;
    /// The key at which the range ends, itself left out, comes next.
    pub const UPPER: u32 = 2;
    /// From the largest key to the smallest.
    pub const REVERSE: u32 = 4;
    /// Show keys.
    pub const KEYS: u32 = 8;
    /// Show values.
    pub const VALUES: u32 = 16;
    /// Keep blocks that are read in the cache.
    pub const FILL_CACHE: u32 = 32;
}

/// The keys from `lower` to before `upper`, and the direction.
#[derive(Clone, Debug, Default)]
pub struct Range {
    lower: Option<Vec<u8>>,
    upper: Option<Vec<u8>>,
    /// Whether the largest key comes first.
    pub reverse: bool,
}

impl Range {
    /// Reads a range.
    ///
    /// # Errors
    /// `InvalidArgument` if the frames do not hold the bounds that the flags announce.
    pub fn read(mut frames: Frames<'_>, flags: u32) -> Result<Range> {
        let mut bound = |is_there| -> Result<Option<Vec<u8>>> {
            if is_there { frames.bytes().map(|key| Some(key.to_vec())) } else { Ok(None) }
        };
        let lower = bound(flags & flag::LOWER != 0)?;
        let upper = bound(flags & flag::UPPER != 0)?;
        Ok(Range { lower, upper, reverse: flags & flag::REVERSE != 0 })
    }

    /// The bounds, empty where there is none.
    pub fn bounds(&self) -> (&[u8], &[u8]) {
        (self.lower.as_deref().unwrap_or_default(), self.upper.as_deref().unwrap_or_default())
    }

    /// The same for the engine.
    pub fn ends(&self) -> (Bound<&[u8]>, Bound<&[u8]>) {
        let lower = self.lower.as_deref().map_or(Bound::Unbounded, Bound::Included);
        (lower, self.upper.as_deref().map_or(Bound::Unbounded, Bound::Excluded))
    }

    /// Whether `key` is in the range.
    pub fn contains(&self, key: &[u8]) -> bool {
        let is_below = self.lower.as_ref().is_some_and(|lower| key < lower.as_slice());
        let is_above = self.upper.as_ref().is_some_and(|upper| key >= upper.as_slice());
        !is_below && !is_above
    }

    /// The options of a cursor over the range.
    pub fn read_options(&self, snapshot: &terrace::Snapshot, fill_cache: bool) -> ReadOptions {
        let mut options = ReadOptions::new().snapshot(snapshot).fill_cache(fill_cache);
        if let Some(lower) = &self.lower {
            options = options.lower_bound(lower.clone());
        }
        if let Some(upper) = &self.upper {
            options = options.upper_bound(upper.clone());
        }
        options
    }
}
