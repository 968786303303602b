//! Features beyond reads and writes, each beside readers, writers, crashes and the real LevelDB.

mod bulk_load;
mod checkpoint;
mod codecs;
mod compaction_filter;
#[cfg(feature = "zstd")]
mod dictionaries;
mod expiry;
mod expiry_faults;
mod filters;
mod growing_value_files;
mod idle_flush;
mod inspect;
mod intra_level_0;
mod keyspace_faults;
mod keyspaces;
mod manual_compaction;
mod memory_budget;
mod mixed;
mod range_delete;
mod skipped_levels;
mod subcompactions;
mod try_write;
mod value_log;
mod value_space;
