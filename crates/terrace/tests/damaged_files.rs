//! Damaged files: each damaged copy of a database gives right results, or an error that names a
//! file; no panic, no hang, bounded memory.
//!
//! A target of its own, because it measures the memory of its process. `TERRACE_TEST_SCALE` sets
//! how many mutants.

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::path::Path;
use std::time::Duration;

use terrace::{Db, Error, ErrorKind, repair, verify};
use terrace_testkit::campaign::{campaign, panics};
use terrace_testkit::driver::{Driver, read_all, read_all_ways};
use terrace_testkit::history::History;
use terrace_testkit::model::{Change, Pair};
use terrace_testkit::option_set::OptionSet;
use terrace_testkit::rng::Rng;
use terrace_testkit::scale::scaled;
use terrace_testkit::script::{Action, Script};
use terrace_testkit::simfs::{LogKind, PowerLoss, SimFs};
use terrace_testkit::watchdog::Watchdog;

const DIR: &str = "/db";
const SECTOR: usize = 512;
/// Of databases of a few kilobytes, with memtables of 64 KB. No mutant makes the engine take more.
const MEMORY: u64 = 64 << 20;

#[track_caller]
fn expect_corruption(outcome: terrace::Result<Db>, file: &str) {
    let error = outcome.expect_err("an error");
    assert_eq!(error.kind(), ErrorKind::Corruption, "{error}");
    assert!(error.to_string().contains(file), "{file} in: {error}");
}

/// A database with every kind of file: several tables, a log with synced and unsynced writes, a
/// MANIFEST of several edits.
struct Specimen {
    settings: OptionSet,
    disk: SimFs,
    history: History,
    /// Files as they were at earlier moments, gone or changed since.
    earlier: Vec<(String, Vec<u8>)>,
}

fn specimen(settings: &OptionSet) -> Specimen {
    let put = |n: usize, size| {
        Change::Put(format!("key{:03}", n % 50).into_bytes(), Rng::new(n as u64).bytes(size))
    };
    let flushed = |writes: Vec<Action>, and: Action| {
        writes.into_iter().chain([Action::Flush, and]).collect::<Vec<_>>()
    };
    let parts = [
        (0..20).map(|n| Action::Write(vec![put(n, 150)], false)).collect(),
        flushed(
            (20..60).map(|n| Action::Write(vec![put(n, 150)], false)).collect(),
            Action::Reopen,
        ),
        (30..50)
            .map(|n| {
                Action::Write(vec![put(n, 150), Change::Delete(vec![b'd', n as u8])], n % 7 == 0)
            })
            .collect(),
        flushed(
            (50..70).map(|n| Action::Write(vec![put(n, 150)], false)).collect(),
            Action::WaitIdle,
        ),
        // As large as the one before, and of the same keys.
        flushed(
            (50..70).map(|n| Action::Write(vec![put(n + 1000, 150)], false)).collect(),
            Action::WaitIdle,
        ),
        (100..115).map(|n| Action::Write(vec![put(n, 80)], n % 4 == 0)).collect(),
        (115..130).map(|n| Action::Write(vec![put(n, 80)], n % 4 == 0)).collect(),
    ];
    let dir = Path::new(DIR);
    let fs = SimFs::new();
    fs.set_log_kind(if settings.mapped_log { LogKind::Prepared } else { LogKind::Plain });
    let mut driver = Driver::new(&fs, dir, settings, History::new());
    driver
        .play(&Script { name: "specimen".to_owned(), actions: vec![] })
        .expect("a healthy file system");
    let mut earlier = Vec::new();
    for actions in parts {
        driver
            .play_on(&Script { name: "specimen".to_owned(), actions })
            .expect("a healthy file system");
        earlier.extend(fs.names(dir).into_iter().filter_map(|name| {
            let bytes = fs.contents(&dir.join(&name))?;
            Some((name, bytes))
        }));
    }
    // The disk as the death of the process leaves it: the log is not closed.
    let disk = fs.power_loss(PowerLoss::PROCESS_ONLY);
    earlier.retain(|(name, bytes)| disk.contents(&dir.join(name)).as_ref() != Some(bytes));
    earlier.dedup();
    Specimen { settings: settings.clone(), disk, history: driver.finish().expect("close"), earlier }
}

#[test]
fn a_missing_file_is_an_error_that_names_it_and_never_a_fresh_database() {
    let fs = specimen(&OptionSet::default()).disk;
    let dir = Path::new(DIR);
    for name in fs.names(dir).iter().filter(|name| *name != "LOCK" && !name.starts_with("LOG")) {
        let fs = fs.power_loss(PowerLoss::PROCESS_ONLY);
        fs.env().remove(&dir.join(name)).expect("remove");
        let open = Db::open(dir, OptionSet::default().options(fs.env()));
        expect_corruption(open, name);
    }
    // Nothing but a table tells that there was a database.
    let fs = SimFs::new();
    let options = || OptionSet::default().options(fs.env());
    let db = Db::open(dir, options()).expect("open");
    db.put("a", "1").expect("put");
    db.flush().expect("flush");
    db.close().expect("close");
    for name in fs.names(dir).iter().filter(|name| !name.ends_with(".ldb")) {
        fs.env().remove(&dir.join(name)).expect("remove");
    }
    expect_corruption(Db::open(dir, options()), "CURRENT");
}

#[test]
fn a_flipped_bit_in_a_manifest_is_an_error() {
    let settings = OptionSet::default();
    let pristine = specimen(&settings).disk;
    let dir = Path::new(DIR);
    let name = pristine
        .names(dir)
        .into_iter()
        .find(|name| name.starts_with("MANIFEST"))
        .expect("a MANIFEST");
    let path = dir.join(&name);
    let bytes = pristine.contents(&path).expect("a file");
    for bit in 0..bytes.len() * 8 {
        let fs = pristine.power_loss(PowerLoss::PROCESS_ONLY);
        let mut new = bytes.clone();
        new[bit / 8] ^= 1 << (bit % 8);
        fs.set_contents(&path, &new);
        expect_corruption(Db::open(dir, settings.options(fs.env())), &name);
    }
}

/// The kind of a file, from its name.
fn kind(name: &str) -> &str {
    name.rsplit_once('.')
        .map_or_else(|| name.split('-').next().unwrap_or(name), |(_, ending)| ending)
}

/// The operations on a database.
struct Damage {
    what: String,
    /// Whether whole records may be gone, with the marks behind them that would tell.
    large: bool,
    /// The new bytes of files; none for those that are gone.
    files: Vec<(String, Option<Vec<u8>>)>,
}

impl Damage {
    fn of(what: String, large: bool, name: &str, bytes: Vec<u8>) -> Damage {
        Damage {
            what: format!("{name}: {what}"),
            large,
            files: vec![(name.to_owned(), Some(bytes))],
        }
    }

    /// Whether nothing but tables is damaged, which knows no half truth.
    fn tables_only(&self) -> bool {
        self.files.iter().all(|(name, _)| kind(name) == "ldb")
    }
}

/// `bytes` with the sector at `to` replaced by that at `from` of `source`, as far as both reach.
fn with_sector(bytes: &[u8], to: usize, source: &[u8], from: usize) -> Vec<u8> {
    let mut new = bytes.to_vec();
    let piece = &source[from.min(source.len())..(from + SECTOR).min(source.len())];
    new.iter_mut().skip(to).zip(piece).for_each(|(byte, other)| *byte = *other);
    new
}

/// Damages one file by itself.
fn damaged(name: &str, bytes: &[u8], rng: &mut Rng) -> Damage {
    let at = rng.below(bytes.len());
    let sector = at / SECTOR * SECTOR;
    let other = rng.below(bytes.len()) / SECTOR * SECTOR;
    let of = |what, large, new| Damage::of(what, large, name, new);
    let cut = || of(format!("cut off at {at}"), true, bytes[..at].to_vec());
    match rng.below(18) {
        0..9 => {
            let bit = rng.below(8);
            let mut new = bytes.to_vec();
            if let Some(byte) = new.get_mut(at) {
                *byte ^= 1 << bit;
            }
            of(format!("bit {bit} of byte {at} flipped"), false, new)
        }
        9..12 => cut(),
        12 => {
            let new = with_sector(bytes, sector, bytes, other);
            of(format!("sector at {other} copied to {sector}"), true, new)
        }
        13 => of(
            format!("sector at {sector} zeroed"),
            true,
            with_sector(bytes, sector, &[0; SECTOR], 0),
        ),
        14 => {
            let extra = rng.between(1, 600);
            of(format!("{extra} bytes appended"), false, [bytes, &rng.bytes(extra)].concat())
        }
        15 => {
            let new = with_sector(&with_sector(bytes, sector, bytes, other), other, bytes, sector);
            if new == bytes {
                cut()
            } else {
                of(format!("sectors at {sector} and {other} swapped"), true, new)
            }
        }
        16 => {
            let number: String = name.chars().filter(char::is_ascii_digit).collect();
            let renamed = if number.is_empty() {
                "000123.old".to_owned()
            } else {
                name.replace(&number, "000123")
            };
            let files = vec![(name.to_owned(), None), (renamed, Some(bytes.to_vec()))];
            Damage { what: format!("{name}: renamed"), large: true, files }
        }
        _ => Damage {
            what: format!("{name}: removed"),
            large: true,
            files: vec![(name.to_owned(), None)],
        },
    }
}

/// Damages a file by what it or another one of its kind was earlier, or with another one. None
/// where there is none.
fn mixed_up(specimen: &Specimen, name: &str, bytes: &[u8], rng: &mut Rng) -> Option<Damage> {
    let sector = rng.below(bytes.len()) / SECTOR * SECTOR;
    let of = |what, new| (new != bytes).then(|| Damage::of(what, true, name, new));
    if rng.one_in(2) {
        let earlier: Vec<_> =
            specimen.earlier.iter().filter(|(old, _)| kind(old) == kind(name)).collect();
        let itself: Vec<_> = earlier.iter().filter(|(old, _)| *old == name).copied().collect();
        let choice = if itself.is_empty() || rng.one_in(3) { earlier } else { itself };
        let (old, stale) = choice.get(rng.below(choice.len().max(1)))?;
        return match rng.below(3) {
            0 => of(format!("all of an earlier {old} of {} bytes", stale.len()), stale.clone()),
            // What the end of the file was before it grew: zeros, or nothing yet.
            1 => of(format!("from {sector} on as in an earlier {old}"), {
                let mut new = bytes[..sector].to_vec();
                new.extend(stale.get(sector..).unwrap_or_default());
                new
            }),
            _ => of(
                format!("sector at {sector} of an earlier {old}"),
                with_sector(bytes, sector, stale, sector),
            ),
        };
    }
    let names = specimen.disk.names(Path::new(DIR));
    let others: Vec<_> =
        names.iter().filter(|other| *other != name && kind(other) == kind(name)).collect();
    let other = *others.get(rng.below(others.len().max(1)))?;
    let theirs = specimen.disk.contents(&Path::new(DIR).join(other))?;
    if rng.one_in(2) {
        let files = vec![(name.to_owned(), Some(theirs)), (other.clone(), Some(bytes.to_vec()))];
        return Some(Damage { what: format!("{name} and {other}: swapped"), large: true, files });
    }
    let ours = with_sector(bytes, sector, &theirs, sector);
    let files = vec![
        (name.to_owned(), Some(ours)),
        (other.clone(), Some(with_sector(&theirs, sector, bytes, sector))),
    ];
    Some(Damage {
        what: format!("{name} and {other}: sectors at {sector} swapped"),
        large: true,
        files,
    })
}

/// The greatest amount of memory that this process has had, in bytes; none where the system does
/// not tell.
fn peak_memory() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    Some(line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()? << 10)
}

/// The behaviour of a damaged database.
enum Outcome {
    Error,
    Harmless,
    Cut,
}

/// Whether a message names a file of the database, there or not.
fn names_a_file(text: &str) -> bool {
    ["CURRENT", "LOCK", "MANIFEST-", ".log", ".ldb", ".vlog"].iter().any(|part| text.contains(part))
}

/// Passes over an error that names a file.
fn named<T>(what: &str, outcome: Result<T, Error>) -> Result<Option<T>, String> {
    match outcome {
        Ok(value) => Ok(Some(value)),
        Err(error) if names_a_file(&error.to_string()) => Ok(None),
        Err(error) => Err(format!("{what}: the error names no file: {error}")),
    }
}

/// Repairs what is left without the files of `damage`, and returns what is found then.
fn without_files(specimen: &Specimen, damage: &Damage) -> Vec<Pair> {
    let (dir, fs) = (Path::new(DIR), specimen.disk.power_loss(PowerLoss::PROCESS_ONLY));
    let options = || specimen.settings.options(fs.env());
    for (name, _) in &damage.files {
        let _ = fs.env().remove(&dir.join(name));
    }
    let found =
        repair(dir, &options()).and_then(|_| Db::open(dir, options())).and_then(|db| read_all(&db));
    found.unwrap_or_default()
}

/// Verifies and repairs a copy of a mutant. Where the damage cannot be taken for an older state,
/// the repaired database has no version of any key that is older than what the other files alone
/// hold.
fn examine_repair(
    fs: &SimFs,
    specimen: &Specimen,
    damage: &Damage,
    floors: &mut Floors,
) -> Result<(), String> {
    let (dir, fs) = (Path::new(DIR), fs.power_loss(PowerLoss::PROCESS_ONLY));
    let options = || specimen.settings.options(fs.env());
    named("verify", verify(dir, &options()))?;
    if named("repair", repair(dir, &options()))?.is_none() {
        return Ok(());
    }
    let db = Db::open(dir, options()).map_err(|error| format!("after repair: {error}"))?;
    let found = read_all_ways(&db).map_err(|error| format!("after repair: {error}"))?;
    specimen.history.check_keys(&found, 0).map_err(|error| format!("after repair: {error}"))?;
    if damage.tables_only() || !damage.large {
        let names = damage.files.iter().map(|(name, _)| name.clone()).collect();
        let key = (specimen.settings.mapped_log, names);
        let floor = floors.entry(key).or_insert_with(|| without_files(specimen, damage));
        let found: BTreeMap<_, _> = found.into_iter().collect();
        for (key, value) in floor.iter() {
            let is_newer =
                specimen.history.is_as_new(key, found.get(key).map(Vec::as_slice), value);
            if !is_newer {
                return Err(format!(
                    "after repair: {key:?} is older than what undamaged files hold"
                ));
            }
        }
    }
    Ok(())
}

/// Compacts what is open, closes it, and reads it again: an error stays an error or is one no more
/// because the result is right; right results stay as they are.
fn examine_compaction(
    db: Db,
    fs: &SimFs,
    settings: &OptionSet,
    expected: &[Pair],
) -> Result<(), String> {
    let dir = Path::new(DIR);
    named("compact", db.compact_range::<&[u8]>(..))?;
    let compacted = read_all_ways(&db);
    let _ = db.close();
    let again = Db::open(dir, settings.options(fs.env())).map_err(|error| error.to_string());
    let again = again.and_then(|db| read_all_ways(&db));
    for (how, found) in [("after a compaction", compacted), ("opened after a compaction", again)] {
        match found {
            Ok(found) if found == expected => {}
            Ok(found) => {
                return Err(format!(
                    "{how}: {} entries, not the {} right ones",
                    found.len(),
                    expected.len()
                ));
            }
            Err(error) if names_a_file(&error) => {}
            Err(error) => return Err(format!("{how}: the error names no file: {error}")),
        }
    }
    Ok(())
}

/// The results of repairs without the files of these names, for logs of either kind.
type Floors = HashMap<(bool, Vec<String>), Vec<Pair>>;

/// Verifies, repairs, opens, reads and compacts a mutant.
fn examine(
    fs: &SimFs,
    specimen: &Specimen,
    damage: &Damage,
    floors: &mut Floors,
) -> Result<Outcome, String> {
    let (dir, settings) = (Path::new(DIR), &specimen.settings);
    examine_repair(fs, specimen, damage, floors)?;
    let Some(db) = named("open", Db::open(dir, settings.options(fs.env())))? else {
        return Ok(Outcome::Error);
    };
    let writes = specimen.history.writes().len();
    let expected = specimen.history.state(writes).entries();
    // Keys one by one: each right, or an error.
    for (key, value) in &expected {
        if let Some(found) = named("get", db.get(key))?
            && found.as_ref() != Some(value)
            && damage.tables_only()
        {
            return Err(format!("get {key:?} is wrong: {:?}", found.map(|value| value.len())));
        }
    }
    let (outcome, right) = match read_all_ways(&db) {
        Ok(found) if found == expected => (Outcome::Harmless, Some(found)),
        Ok(_) if damage.tables_only() => return Err("a wrong result without an error".to_owned()),
        Ok(found) => {
            // Where an end with its marks is gone, a log or MANIFEST may look like that of an older
            // database, but never like that of one that never was. And no single bit makes durable
            // data go unnoticed.
            let required = if damage.large { 0 } else { specimen.history.required(usize::MAX) };
            specimen.history.check(&found, required, writes)?;
            (Outcome::Cut, Some(found))
        }
        Err(error) if names_a_file(&error) => {
            (Outcome::Error, damage.tables_only().then_some(expected))
        }
        Err(error) => return Err(format!("the error names no file: {error}")),
    };
    match right {
        Some(right) => examine_compaction(db, fs, settings, &right)?,
        None => drop(db.compact_range::<&[u8]>(..)),
    }
    Ok(outcome)
}

#[test]
fn damage_in_any_file_is_an_error_that_names_it_or_harmless() {
    let watchdog = Watchdog::new(Duration::from_secs(60), "damage");
    let specimens = [false, true].map(|mapped_log| {
        let specimen = specimen(&OptionSet {
            mapped_log,
            bloom_bits: 10,
            value_log: if mapped_log { 0 } else { 50 },
            ..OptionSet::default()
        });
        let names = specimen.disk.names(Path::new(DIR));
        for wanted in ["log", "ldb", "MANIFEST", "CURRENT", "LOCK"] {
            assert!(names.iter().any(|name| kind(name) == wanted), "{wanted} in {names:?}");
        }
        assert!(names.iter().filter(|name| kind(name) == "ldb").count() > 1, "{names:?}");
        specimen
    });
    let before = panics();
    let mut floors = Floors::new();
    let (mut errors, mut harmless, mut cut) = (0u64, 0u64, 0u64);
    campaign("damage_in_any_file", scaled(15_000), |seed| {
        let mut rng = Rng::new(seed);
        let specimen = rng.pick(&specimens);
        let names = specimen.disk.names(Path::new(DIR));
        let name = rng.pick(&names).clone();
        let bytes = specimen.disk.contents(&Path::new(DIR).join(&name)).expect("a file");
        let mixed = if rng.one_in(3) { mixed_up(specimen, &name, &bytes, &mut rng) } else { None };
        let damage = mixed.unwrap_or_else(|| damaged(&name, &bytes, &mut rng));
        watchdog.feed(format!("damage: seed {seed}, {}", damage.what));
        let fs = specimen.disk.power_loss(PowerLoss::PROCESS_ONLY);
        for (name, bytes) in &damage.files {
            let path = Path::new(DIR).join(name);
            match bytes {
                Some(bytes) => fs.set_contents(&path, bytes),
                None => fs.env().remove(&path).map_err(|error| error.to_string())?,
            }
        }
        let outcome = examine(&fs, specimen, &damage, &mut floors)
            .map_err(|error| format!("{} ({} bytes): {error}", damage.what, bytes.len()))?;
        match outcome {
            Outcome::Error => errors += 1,
            Outcome::Harmless => harmless += 1,
            Outcome::Cut => cut += 1,
        }
        Ok(())
    });
    assert_eq!(panics(), before);
    let peak = peak_memory().unwrap_or(0);
    println!(
        "damage_in_any_file: {errors} errors, {harmless} harmless, {cut} cut to a prefix; {} MB of \
         memory at most",
        peak >> 20
    );
    assert!(peak < MEMORY, "{peak} bytes of memory");
}

/// The newest entry of a table need not be its first or last.
#[test]
fn an_earlier_log_hides_nothing_newer() {
    let (dir, settings) = (Path::new(DIR), OptionSet::default());
    let fs = SimFs::new();
    let logs = || {
        fs.names(dir)
            .into_iter()
            .filter(|name| kind(name) == "log")
            .max()
            .map(|name| dir.join(name))
    };
    let db = Db::open(dir, settings.options(fs.env())).expect("open");
    for key in ["a", "b", "c", "b"] {
        db.put(key, "earlier").expect("put");
    }
    let earlier = fs.contents(&logs().expect("a log")).expect("its contents");
    db.put("b", "later").expect("put");
    db.flush().expect("flush");
    db.close().expect("close");
    fs.set_contents(&logs().expect("a log"), &earlier);
    let db = Db::open(dir, settings.options(fs.env())).expect("open");
    assert_eq!(db.get("b").expect("get").as_deref(), Some(&b"later"[..]));
    assert_eq!(read_all_ways(&db).expect("what every way of reading finds").len(), 3);
}
