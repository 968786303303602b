//! Many entries at once: a load goes past the log and the memtable, straight into tables.
//!
//! Nothing of it is visible before `finish`, and all of it afterwards, durably. Entries may come in
//! any order; in the order of their keys they are not even sorted.
//!
//! `cargo run --release --example bulk_load`

use std::time::Instant;

use terrace::{BulkLoadOptions, Db, Options, Result};

const ENTRIES: u32 = 100_000;

pub(crate) fn main() -> Result<()> {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let db = Db::open(dir.path().join("words"), Options::new().create_if_missing(true))?;
    db.put("zebra", "written before")?;

    let start = Instant::now();
    let mut load = db.bulk_load_with(BulkLoadOptions::new().memory(16 << 20))?;
    for number in 0..ENTRIES {
        load.put(format!("word {number:08}"), number.to_be_bytes())?;
    }
    assert_eq!(db.get("word 00000000")?, None, "not before the end");
    let report = load.finish()?;

    assert_eq!(report.entries, u64::from(ENTRIES));
    assert_eq!(db.get("word 00000007")?, Some(7_u32.to_be_bytes().to_vec()));
    assert_eq!(db.get("zebra")?.as_deref(), Some(&b"written before"[..]));
    println!(
        "{} entries in {} tables, {} bytes, {:.0?}",
        report.entries,
        report.tables,
        report.table_bytes,
        start.elapsed()
    );
    db.close()
}
