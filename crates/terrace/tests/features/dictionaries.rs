//! Tables with zstd dictionaries: what they save, and everything that copies, reads, checks and
//! mends tables.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use terrace::inspect::{self, TableItem};
use terrace::{
    BloomFilterPolicy, CompactOptions, Compression, Db, Env, ErrorKind, MemEnv, Options,
    TableWriter, repair, verify,
};
use terrace_testkit::rng::Rng;

const NAME: &str = "terrace.zstd-dictionary";

fn options(env: &Arc<MemEnv>, dictionary: usize) -> Options {
    Options::new()
        .create_if_missing(true)
        .env(env.clone())
        .write_buffer_size(256 << 10)
        .compression(Compression::Zstd)
        .zstd_dictionary(dictionary)
}

fn open(env: &Arc<MemEnv>, dictionary: usize) -> Db {
    Db::open("/db", options(env, dictionary)).expect("opens")
}

fn key(number: usize) -> Vec<u8> {
    format!("event{number:08}").into_bytes()
}

/// An entry as applications store them: different kinds, each with names of its own.
fn json(number: usize) -> Vec<u8> {
    let mut rng = Rng::new(number as u64);
    let mut below = |bound| rng.below(bound);
    let words = ["Waterproof", "Cotton", "Organic", "Wireless", "Portable", "Garden", "Winter"];
    let session = below(1 << 32);
    let text = match below(4) {
        0 => format!(
            "{{\"type\":\"page_view\",\"session\":\"{session:08x}\",\"url\":\
             \"https://www.example.com/products/{}\",\"duration_ms\":{}}}",
            words[below(7)],
            below(100_000)
        ),
        1 => format!(
            "{{\"type\":\"purchase\",\"session\":\"{session:08x}\",\"quantity\":{},\
             \"unit_price_cents\":{},\"payment_method\":\"credit_card\",\"express\":{}}}",
            below(9),
            below(30_000),
            below(2) == 0
        ),
        2 => format!(
            "{{\"type\":\"search\",\"session\":\"{session:08x}\",\"query\":\"{} {}\",\
             \"results\":{},\"filters\":{{\"in_stock\":true,\"max_price\":{}}}}}",
            words[below(7)],
            words[below(7)],
            below(1000),
            below(500)
        ),
        _ => format!(
            "{{\"type\":\"subscription_renewed\",\"session\":\"{session:08x}\",\
             \"next_billing_date\":\"2025-{:02}-{:02}\",\"amount_cents\":{}}}",
            below(12) + 1,
            below(28) + 1,
            below(10_000)
        ),
    };
    text.into_bytes()
}

fn fill(db: &Db, numbers: std::ops::Range<usize>) {
    numbers.for_each(|number| db.put(key(number), json(number)).expect("puts"));
}

fn rewrite(db: &Db) {
    db.compact_range_with::<&[u8]>(.., CompactOptions::new().force(true)).expect("compacts");
    db.wait_idle().expect("waits");
}

fn check(db: &Db, count: usize) {
    let mut expected = 0..count;
    for entry in db.iter().expect("scans") {
        let (found, value) = entry.expect("reads");
        let number = expected.next().expect("no more");
        assert!(found == key(number) && value == json(number), "{number}");
    }
    assert!(expected.next().is_none());
    for number in (0..count).step_by(37) {
        assert_eq!(db.get(key(number)).expect("reads"), Some(json(number)));
        assert_eq!(db.get([&key(number)[..], b"x"].concat()).expect("reads"), None);
    }
    let report = db.verify().expect("checks");
    assert!(report.is_clean(), "{report:?}");
}

fn has_dictionaries(db: &Db) -> bool {
    db.files().iter().any(|table| table.compressions.contains(&"zstd-dictionary"))
}

fn tables(env: &MemEnv, directory: &str) -> Vec<PathBuf> {
    let mut names = env.list(Path::new(directory)).expect("lists");
    names.retain(|name| name.ends_with(".ldb"));
    names.sort();
    names.into_iter().map(|name| Path::new(directory).join(name)).collect()
}

/// The dictionary's place in a table.
fn dictionary(env: &Arc<MemEnv>, table: &Path) -> Option<inspect::Extent> {
    let mut kinds = BTreeMap::new();
    let summary = inspect::table(table, &options(env, 0), &mut |item| {
        match item {
            TableItem::Block(block) => *kinds.entry(block.compression).or_insert(0) += 1,
            TableItem::Damage(damage) => panic!("{damage:?}"),
            _ => {}
        }
        ControlFlow::Continue(())
    });
    let blocks = summary.expect("reads").meta_blocks;
    let found = blocks.into_iter().find(|(name, _)| name == NAME).map(|(_, extent)| extent);
    assert_eq!(kinds.contains_key("zstd with a dictionary"), found.is_some(), "{kinds:?}");
    found
}

#[test]
fn short_entries_take_less_space() {
    let size = |dictionary: usize| {
        let env = Arc::new(MemEnv::new());
        let db = open(&env, dictionary);
        fill(&db, 0..20_000);
        rewrite(&db);
        check(&db, 20_000);
        assert_eq!(has_dictionaries(&db), dictionary > 0);
        db.files().iter().map(|table| table.size).sum::<u64>()
    };
    let plain = size(0);
    for bytes in [4 << 10, 16 << 10] {
        let with = size(bytes);
        println!("dictionary of {bytes}: {with} bytes instead of {plain}");
        assert!(with * 100 < plain * 85, "{bytes}: {with} bytes instead of {plain}");
    }
}

/// Random operations and sizes against a model, with reopenings that change the settings, so that
/// tables with and without dictionaries lie beside each other.
#[test]
fn tables_with_and_without_dictionaries_hold_what_was_written() {
    for seed in 1..=3 {
        let env = Arc::new(MemEnv::new());
        let mut rng = Rng::new(seed);
        let mut model = BTreeMap::new();
        let mut seen = false;
        for round in 0..6 {
            let mut settings = options(&env, [0, 2 << 10, 8 << 10][(round + seed as usize) % 3])
                .block_size([1 << 10, 4 << 10][round % 2])
                .max_file_size(1 << 20);
            if seed != 2 {
                settings = settings.filter_policy(Some(Arc::new(BloomFilterPolicy::new(10))));
            }
            if round == 4 {
                let levels = [Compression::Snappy, Compression::None, Compression::Zstd];
                settings = settings.compression_per_level(levels.to_vec());
            }
            let db = Db::open("/db", settings).expect("opens");
            for _ in 0..1500 {
                let key = key(rng.below(4000));
                let value = match rng.below(200) {
                    0 => vec![b'x'; rng.below(40_000)],
                    1 => json(rng.below(1000)).repeat(rng.below(60)),
                    2..=20 => Vec::new(),
                    _ => json(rng.below(1 << 30)),
                };
                match value.is_empty() {
                    true => db.delete(&key).expect("deletes"),
                    false => db.put(&key, &value).expect("puts"),
                }
                match value.is_empty() {
                    true => drop(model.remove(&key)),
                    false => drop(model.insert(key, value)),
                }
            }
            if round % 2 == 1 {
                rewrite(&db);
            }
            seen |= has_dictionaries(&db);
            let found: Vec<_> = db.iter().expect("scans").map(|it| it.expect("reads")).collect();
            assert!(found.iter().map(|(key, value)| (key, value)).eq(&model), "{seed}, {round}");
            for _ in 0..500 {
                let key = key(rng.below(4200));
                assert_eq!(db.get(&key).expect("reads").as_ref(), model.get(&key));
                let next = db.range(key.clone()..).expect("scans").next();
                let next = next.map(|entry| entry.expect("reads"));
                let expected = model.range(key..).next();
                assert_eq!(next.as_ref().map(|(key, value)| (key, value)), expected);
            }
            let report = db.verify().expect("checks");
            assert!(report.is_clean(), "{report:?}");
            db.close().expect("closes");
        }
        assert!(seen, "{seed}: no table had a dictionary");
    }
}

#[test]
fn copies_reopenings_and_rewrites_read_them() {
    let env = Arc::new(MemEnv::new());
    let db = open(&env, 4 << 10);
    fill(&db, 0..5000);
    rewrite(&db);
    assert!(has_dictionaries(&db) && db.stats().is_extended);
    db.checkpoint("/copy").expect("copies");
    db.close().expect("closes");
    let extent = dictionary(&env, tables(&env, "/db").first().expect("a table"));
    let extent = extent.expect("a dictionary");
    assert!(extent.offset == 0 && (512..=4 << 10).contains(&extent.size), "{extent:?}");
    let plain = options(&env, 0).compression(Compression::Snappy);
    assert!(verify("/copy", &plain).expect("checks").is_clean());
    let copy = Db::open("/copy", plain.clone()).expect("opens");
    check(&copy, 5000);
    copy.close().expect("closes");
    repair("/copy", &plain).expect("repairs");
    check(&Db::open("/copy", plain.clone()).expect("opens"), 5000);
    // Without the option it is read, and plain when everything is rewritten.
    let db = Db::open("/db", plain).expect("opens");
    check(&db, 5000);
    rewrite(&db);
    assert!(!has_dictionaries(&db) && !db.stats().is_extended);
    check(&db, 5000);
}

#[test]
fn bulk_loads_and_table_writers_have_them() {
    let env = Arc::new(MemEnv::new());
    let mut writer = TableWriter::create("/table.ldb", &options(&env, 4 << 10)).expect("a table");
    (0..3000).for_each(|number| writer.put(key(number), json(number)).expect("puts"));
    let error = writer.put(key(17), "").expect_err("not ascending");
    assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");
    drop(writer);
    env.remove(Path::new("/table.ldb")).expect("removes");
    let mut writer = TableWriter::create("/table.ldb", &options(&env, 4 << 10)).expect("a table");
    (0..3000).for_each(|number| writer.put(key(number), json(number)).expect("puts"));
    writer.finish().expect("a table");
    assert!(dictionary(&env, Path::new("/table.ldb")).is_some());
    let db = open(&env, 0);
    db.ingest(&["/table.ldb"]).expect("ingests");
    assert!(has_dictionaries(&db));
    check(&db, 3000);
    db.close().expect("closes");
    let env = Arc::new(MemEnv::new());
    let db = open(&env, 4 << 10);
    let mut load = db.bulk_load().expect("a load");
    (0..5000).for_each(|number| load.put(key(number), json(number)).expect("puts"));
    load.finish().expect("loads");
    assert!(has_dictionaries(&db));
    check(&db, 5000);
}

/// Random bytes, few entries, and tables with data below them.
#[test]
fn a_table_without_a_gain_has_none() {
    let env = Arc::new(MemEnv::new());
    let db = open(&env, 4 << 10);
    fill(&db, 0..50);
    rewrite(&db);
    assert!(!has_dictionaries(&db), "few entries");
    let mut rng = Rng::new(1);
    for number in 100_000..101_000 {
        let value: Vec<_> = (0..100).flat_map(|_| rng.next_u64().to_le_bytes()).collect();
        db.put(key(number), value).expect("puts");
    }
    rewrite(&db);
    assert!(!has_dictionaries(&db), "random bytes");
    db.close().expect("closes");
    for bytes in [1, 2047, (256 << 10) + 1] {
        let error = Db::open("/db", options(&env, bytes)).map(drop).expect_err("out of range");
        assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");
    }
}

/// A database with one table that has a dictionary.
fn with_one_table() -> (Arc<MemEnv>, PathBuf, Vec<u8>, inspect::Extent) {
    let env = Arc::new(MemEnv::new());
    let db = open(&env, 4 << 10);
    fill(&db, 0..5000);
    rewrite(&db);
    db.close().expect("closes");
    let path = tables(&env, "/db").pop().expect("a table");
    let extent = dictionary(&env, &path).expect("a dictionary");
    let bytes = env.read(&path).expect("reads");
    (env, path, bytes, extent)
}

#[test]
fn a_damaged_dictionary_is_damage_and_nothing_else() {
    let (env, path, sound, extent) = with_one_table();
    for at in (0..extent.size as usize + 5).step_by(401) {
        let mut bytes = sound.clone();
        bytes[at] ^= 1;
        env.write(&path, bytes);
        let settings = options(&env, 0);
        let report = verify("/db", &settings).expect("checks");
        let damaged = "the table's dictionary is damaged";
        let found = report.problems.iter().any(|problem| problem.message.contains(damaged));
        assert!(found, "{at}: {report:?}");
        let db = Db::open("/db", settings).expect("opens");
        let error = db.get(key(2500)).expect_err("damaged");
        assert_eq!(error.kind(), ErrorKind::Corruption, "{error}");
        assert!(error.to_string().contains("dictionary"), "{error}");
        assert!(db.iter().expect("scans").any(|entry| entry.is_err()));
        drop(db);
    }
    // A repair keeps what does not need it, and leaves a database that is sound.
    repair("/db", &options(&env, 0)).expect("repairs");
    assert!(verify("/db", &options(&env, 0)).expect("checks").is_clean());
}

fn masked(bytes: &[u8]) -> [u8; 4] {
    crc32c::crc32c(bytes).rotate_right(15).wrapping_add(0xa282_ead8).to_le_bytes()
}

/// Where the metaindex of a table lies: the first two varints of the footer.
fn metaindex(table: &[u8]) -> (usize, usize) {
    let mut footer = table[table.len() - 48..].iter();
    let mut number = || {
        let mut number = 0;
        for (at, &byte) in footer.by_ref().enumerate() {
            number |= usize::from(byte & 0x7f) << (7 * at);
            if byte < 0x80 {
                break;
            }
        }
        number
    };
    (number(), number())
}

#[test]
fn a_missing_dictionary_is_corruption() {
    let (env, path, mut bytes, _) = with_one_table();
    let (offset, size) = metaindex(&bytes);
    let block = &mut bytes[offset..offset + size + 5];
    assert_eq!(block[size], 0, "not compressed");
    let at = block.windows(15).position(|window| window == b"zstd-dictionary").expect("its name");
    block[at + 14] = b'x';
    let checksum = masked(&block[..=size]);
    block[size + 1..].copy_from_slice(&checksum);
    env.write(&path, bytes);
    let db = open(&env, 0);
    let error = db.get(key(2500)).expect_err("missing");
    assert_eq!(error.kind(), ErrorKind::Corruption, "{error}");
    assert!(error.to_string().contains("needs a dictionary, and the table has none"), "{error}");
    assert!(!db.verify().expect("checks").is_clean());
}

/// The dictionary is found at the beginning of the file.
#[test]
fn a_damaged_metaindex_costs_no_entry() {
    let (env, path, mut bytes, _) = with_one_table();
    let (begin, _) = metaindex(&bytes);
    bytes[begin] ^= 1;
    env.write(&path, bytes);
    let db = open(&env, 0);
    for number in (0..5000).step_by(100) {
        assert_eq!(db.get(key(number)).expect("reads"), Some(json(number)));
    }
    assert_eq!(db.iter().expect("scans").filter(|entry| entry.is_ok()).count(), 5000);
    assert!(!db.verify().expect("checks").is_clean());
    let mut damages = 0;
    let summary = inspect::table(&path, &options(&env, 0), &mut |item| {
        damages += usize::from(matches!(item, TableItem::Damage(_)));
        ControlFlow::Continue(())
    });
    assert_eq!((summary.expect("reads").entries, damages), (5000, 1));
}

/// A table without its end, and one without its dictionary too.
#[test]
fn blocks_are_found_without_an_index() {
    for damages_dictionary in [false, true] {
        let (env, path, mut bytes, extent) = with_one_table();
        bytes.truncate(bytes.len() - 200);
        let last = bytes.len() / 2;
        bytes[last] ^= 1;
        if damages_dictionary {
            bytes[extent.size as usize / 2] ^= 1;
        }
        env.write(&path, bytes);
        let report = repair("/db", &options(&env, 0)).expect("repairs");
        assert!(!report.problems.is_empty());
        let db = open(&env, 0);
        let left: Vec<_> = db.iter().expect("scans").map(|entry| entry.expect("reads")).collect();
        match damages_dictionary {
            false => assert!((4800..5000).contains(&left.len()), "{} of 5000", left.len()),
            true => assert!(left.len() < 1000, "{} of 5000", left.len()),
        }
        for (found, value) in left {
            let number = String::from_utf8(found[5..].to_vec()).expect("digits");
            assert_eq!(value, json(number.parse().expect("a number")));
        }
    }
}
