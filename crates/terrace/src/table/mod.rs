//! Tables: sorted files, written once and then only read, in LevelDB's format.
//!
//! [`TableBuilder`] writes one, [`Table`] reads one from any number of threads, [`TableIter`] steps
//! through one. The same code serves the engine's tables of internal keys and LevelDB's public
//! tables of plain keys; [`TableOrder`] is the difference.

mod abbreviated_entries;
mod block;
mod block_buffer;
mod block_builder;
mod block_cache;
mod block_error;
mod block_iter;
mod block_places;
mod block_ref;
mod block_search;
mod block_writer;
mod buffer;
mod compression;
mod counters;
mod dictionary;
mod dictionary_builder;
mod entries_ahead;
mod entry;
mod expiry_sample;
mod external_cache;
mod filter_block;
mod format;
mod full_filter;
#[cfg(any(test, fuzzing))]
pub(crate) mod fuzzing;
mod group;
mod index;
mod iter;
mod key_allowance;
mod key_buffer;
mod lookup;
mod offsets;
mod order;
mod prefix_settings;
mod prefix_tracker;
mod properties;
mod read_policy;
mod readahead;
mod rescue;
mod scan;
mod scan_length;
mod separators;
mod snappy;
#[expect(clippy::module_inception, reason = "LevelDB's noun for its reader")]
mod table;
mod table_builder;
mod table_dictionary;
mod table_dump;

pub use block_cache::BlockCache;
pub(crate) use block_cache::CacheLoan;
pub(crate) use compression::Codecs;
pub use compression::Compression;
pub use external_cache::{BlockKey, ExternalBlock, ExternalBlockCache, HeldBlock};

pub(crate) use block_ref::BlockSlice;
pub(crate) use counters::ReadTotals;
pub(crate) use dictionary::MOST_DICTIONARY;
pub(crate) use dictionary_builder::DictionarySettings;
pub(crate) use format::{BlockHandle, StoredBlock};
pub(crate) use full_filter::{FullFilter, hash_key};
pub(crate) use iter::TableIter;
pub(crate) use lookup::TableHit;
pub(crate) use order::TableOrder;
pub(crate) use prefix_settings::{PrefixSetting, PrefixSettings};
pub(crate) use properties::TableProperties;
pub(crate) use read_policy::{MOST_HEAP, ReadPolicy};
pub(crate) use readahead::{Ahead, EndShare, ask_for_end, ask_for_next_file};
pub(crate) use rescue::rescue;
pub(crate) use scan::{BlockEntries, ScanItem};
pub(crate) use scan_length::ScanLength;
pub(crate) use separators::Place;
pub(crate) use table::{Table, TableReadSettings};
pub(crate) use table_builder::{TableBuilder, TableSettings};
pub(crate) use table_dump::TableDump;

#[cfg(test)]
mod tests;
