//! How large the filters of tables are.

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use terrace::{Db, MemEnv, Options, inspect};
use terrace_testkit::rng::Rng;

use crate::subcompactions::PATH;

fn put(db: &Db, keys: Range<u32>, step: usize) {
    let mut rng = Rng::new(u64::from(keys.start));
    for key in keys.step_by(step) {
        db.put(format!("{key:08}"), rng.bytes(100)).expect("puts");
    }
}

/// The level of each table, its entries, and the bits for each of them in its filter.
fn filters(db: &Db, options: &Options) -> Vec<(usize, u64, u64)> {
    let files = db.files().into_iter().map(|file| {
        let path = Path::new(PATH).join(format!("{:06}.ldb", file.number));
        let summary = inspect::table(&path, options, &mut |_| std::ops::ControlFlow::Continue(()))
            .expect("a table");
        let mut blocks = summary.meta_blocks.iter();
        let filter = blocks.find(|(name, _)| name == "terrace.filter");
        let bits = filter.map_or(0, |(_, handle)| handle.size * 8 / summary.entries);
        (file.level, summary.entries, bits)
    });
    files.collect()
}

/// A table that a lookup passes on its way to older entries is to be wrong more rarely than the last one.
#[test]
fn tables_above_others_have_more_bits_for_each_key() {
    let options = Options::new().create_if_missing(true).env(Arc::new(MemEnv::new()));
    let db = Db::open(PATH, options.clone()).expect("opens");
    put(&db, 0..20_000, 1);
    db.flush().expect("flushes");
    db.compact_range::<&[u8]>(..).expect("compacts");
    let last: Vec<_> = filters(&db, &options);
    assert_eq!(last.iter().map(|(_, entries, _)| entries).sum::<u64>(), 20_000, "{last:?}");
    assert!(last.iter().all(|(_, _, bits)| *bits == 10), "{last:?}");

    // Over all of it, and beside it.
    put(&db, 0..20_000, 20);
    db.flush().expect("flushes");
    put(&db, 30_000..31_000, 1);
    db.flush().expect("flushes");
    let mut new = filters(&db, &options);
    new.retain(|table| !last.contains(table));
    new.sort_unstable_by_key(|(_, _, bits)| *bits);
    let bits: Vec<_> = new.iter().map(|(_, entries, bits)| (*entries, *bits)).collect();
    assert_eq!(bits, [(1000, 10), (1000, 16)], "{new:?}");

    // What has nothing below it is as the first.
    db.compact_range::<&[u8]>(..).expect("compacts");
    let all = filters(&db, &options);
    assert!(all.iter().all(|(_, _, bits)| *bits == 10), "{all:?}");
    db.close().expect("closes");

    let none = options.table_filter_bits(0);
    let db = Db::open(PATH, none.clone()).expect("opens");
    put(&db, 0..20_000, 20);
    db.flush().expect("flushes");
    let all = filters(&db, &none);
    assert!(all.iter().any(|(_, entries, bits)| (*entries, *bits) == (1000, 0)), "{all:?}");
}
