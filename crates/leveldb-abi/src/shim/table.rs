//! Tables of plain keys: LevelDB's public `Table` and `TableBuilder`.

use std::ffi::c_void;
use std::sync::Arc;

use terrace::ReadOptions;
use terrace::abi::{PlainTable, PlainTableBuilder};

use super::calls::{FileCalls, RandomCalls};
use super::cursor::ShimCursor;
use super::env_files::{CustomFile, CustomRandomFile};
use super::options::ShimOptions;
use super::outcome::{Bytes, Outcome};
use crate::guard::export;
use crate::memory::{hand_out, release, store};

/// `shim_table_builder`.
#[expect(missing_debug_implementations, reason = "an opaque handle")]
pub struct ShimTableBuilder(PlainTableBuilder);

/// `shim_table`.
#[expect(missing_debug_implementations, reason = "an opaque handle")]
pub struct ShimTable(PlainTable);

export! {
    /// A table in a file that stays the caller's.
    fn shim_table_builder_new(
        options: *const ShimOptions, file: *mut c_void, calls: *const FileCalls,
    ) -> *mut ShimTableBuilder {
        let file = Box::new(CustomFile::borrowed(file, *calls));
        let options = (*options).settings().to_options();
        hand_out(ShimTableBuilder(PlainTableBuilder::new(file, &options)))
    }

    /// Releases a builder.
    fn shim_table_builder_release(builder: *mut ShimTableBuilder) {
        drop(release(builder));
    }

    /// Takes over sizes and compression.
    fn shim_table_builder_change(
        builder: *mut ShimTableBuilder, options: *const ShimOptions,
    ) -> Outcome {
        Outcome::of(|| (*builder).0.change_options(&(*options).settings().to_options()))
    }

    /// Adds an entry.
    fn shim_table_builder_add(builder: *mut ShimTableBuilder, key: Bytes, value: Bytes) -> Outcome {
        Outcome::of(|| (*builder).0.add(key.get(), value.get()))
    }

    /// Ends the block.
    fn shim_table_builder_flush(builder: *mut ShimTableBuilder) -> Outcome {
        Outcome::of(|| (*builder).0.flush())
    }

    /// Writes the rest.
    fn shim_table_builder_finish(builder: *mut ShimTableBuilder) -> Outcome {
        Outcome::of(|| (*builder).0.finish())
    }

    /// Gives up.
    fn shim_table_builder_abandon(builder: *mut ShimTableBuilder) {
        (*builder).0.abandon();
    }

    /// Entries so far.
    fn shim_table_builder_entries(builder: *const ShimTableBuilder) -> u64 {
        (*builder).0.entries()
    }

    /// Bytes of the file so far.
    fn shim_table_builder_size(builder: *const ShimTableBuilder) -> u64 {
        (*builder).0.file_size()
    }

    /// Opens a table in a file that stays the caller's.
    fn shim_table_open(
        options: *const ShimOptions, file: *mut c_void, size: u64, calls: *const RandomCalls,
        table: *mut *mut ShimTable,
    ) -> Outcome {
        Outcome::of(|| {
            let file = Arc::new(CustomRandomFile::borrowed(file, size, *calls));
            let opened = PlainTable::open(file, &(*options).settings().to_options())?;
            store(table, hand_out(ShimTable(opened)));
            Ok(())
        })
    }

    /// Closes a table.
    fn shim_table_release(table: *mut ShimTable) {
        drop(release(table));
    }

    /// About where a key is.
    fn shim_table_offset(table: *const ShimTable, key: Bytes) -> u64 {
        (*table).0.approximate_offset_of(key.get())
    }

    /// Whether a key may be there, as far as index and filter know.
    fn shim_table_may_contain(table: *const ShimTable, key: Bytes) -> u8 {
        (*table).0.may_contain(key.get()).into()
    }

    /// A cursor at no entry.
    fn shim_table_cursor(table: *const ShimTable, fill_cache: u8) -> *mut ShimCursor {
        let options = ReadOptions::new().fill_cache(fill_cache != 0);
        hand_out(ShimCursor::Table((*table).0.iter(&options)))
    }
}
