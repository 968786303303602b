//! Disks that cannot read a part of a file: once, which costs nothing, or for ever, which costs
//! that part and is told.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::{io, ops::ControlFlow};

use terrace::{
    Compression, Db, Env, Error, ErrorKind, MemEnv, Options, RandomAccessFile, ReadAccess, Result,
    WriteOptions, destroy, inspect, repair, verify,
};
use terrace_testkit::env_methods;

type Contents = BTreeMap<Vec<u8>, Vec<u8>>;

const EIO: i32 = 5;
const EACCES: i32 = 13;
const DIR: &str = "/db";
const FOR_EVER: u32 = u32::MAX;

/// The calls that fail, and how often.
struct Fault {
    /// A file's name, or the name of an operation and a file's.
    what: String,
    range: Range<u64>,
    code: i32,
    left: u32,
}

/// A file system in memory with bad places.
#[derive(Clone)]
struct Disk {
    files: MemEnv,
    faults: Arc<Mutex<Vec<Fault>>>,
}

struct BadFile {
    file: Arc<dyn RandomAccessFile>,
    name: String,
    disk: Disk,
}

impl Disk {
    /// A disk with a database on it, and what that holds: a deep table, one with newer entries, and
    /// a log.
    fn with_database() -> (Self, Contents) {
        let disk = Disk { files: MemEnv::new(), faults: Arc::default() };
        let mut model = Contents::new();
        let db = Db::open(DIR, disk.options()).expect("creates");
        for (step, name) in [(1, "deep"), (3, "newer"), (5, "newest")] {
            for number in (0..3000).step_by(step) {
                let (key, value) = (
                    format!("key{number:05}").into_bytes(),
                    format!("{name} {number:060}").into_bytes(),
                );
                db.put_with(&key, &value, WriteOptions { sync: number % 500 == 0 })
                    .expect("writes");
                model.insert(key, value);
            }
            match name {
                "deep" => db.compact_range::<&[u8]>(..).expect("compacts"),
                "newer" => db.flush().expect("flushes"),
                _ => db.wait_idle().expect("rests"),
            }
        }
        db.close().expect("closes");
        (disk, model)
    }

    fn options(&self) -> Options {
        let options = Options::new()
            .create_if_missing(true)
            .block_size(1 << 10)
            .compression(Compression::None);
        options.env(Arc::new(self.clone()))
    }

    fn contents(&self) -> Contents {
        contents_of(&Db::open(DIR, self.options()).expect("opens"))
    }

    fn break_down(&self, what: &str, range: Range<u64>, code: i32, times: u32) {
        self.faults.lock().expect("sound").push(Fault {
            what: what.to_owned(),
            range,
            code,
            left: times,
        });
    }

    /// Ends the faults; returns whether all of them occurred.
    fn heal(&self, times: u32) -> bool {
        let faults = std::mem::take(&mut *self.faults.lock().expect("sound"));
        !faults.is_empty() && faults.iter().all(|fault| fault.left < times)
    }

    fn check(&self, what: &str, path: &Path, range: Range<u64>) -> Result<()> {
        let mut faults = self.faults.lock().expect("sound");
        let is_hit = |fault: &&mut Fault| {
            fault.what == what
                && fault.left > 0
                && fault.range.start < range.end
                && range.start < fault.range.end
        };
        match faults.iter_mut().find(is_hit) {
            Some(fault) => {
                fault.left -= 1;
                Err(Error::io("read", path, io::Error::from_raw_os_error(fault.code)))
            }
            None => Ok(()),
        }
    }

    /// Refuses a whole operation, named by itself and its file.
    fn operate(&self, operation: &str, path: &Path) -> Result<()> {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        self.check(&format!("{operation} {name}"), path, 0..1)
    }

    /// Everything but `LOCK` and the log for people.
    fn image(&self) -> Vec<(String, Option<Vec<u8>>)> {
        let mut names = self.files.list(Path::new(DIR)).expect("lists");
        names.retain(|name| !name.starts_with("LO"));
        names.sort();
        names
            .into_iter()
            .map(|name| (name.clone(), self.files.read(Path::new(DIR).join(name))))
            .collect()
    }

    fn names(&self, suffix: &str) -> Vec<String> {
        let mut names = self.files.list(Path::new(DIR)).expect("lists");
        names.retain(|name| name.ends_with(suffix));
        names.sort();
        names
    }

    fn size(&self, name: &str) -> u64 {
        self.files.file_size(&Path::new(DIR).join(name)).expect("a file")
    }

    fn manifest(&self) -> String {
        String::from_utf8(self.files.read("/db/CURRENT").expect("there"))
            .expect("text")
            .trim_end()
            .to_owned()
    }
}

fn contents_of(db: &Db) -> Contents {
    db.iter().expect("iterates").map(|entry| entry.expect("reads")).collect()
}

impl RandomAccessFile for BadFile {
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<usize> {
        self.disk.check(&self.name, Path::new(&self.name), offset..offset + buffer.len() as u64)?;
        self.file.read_at(offset, buffer)
    }

    fn size(&self) -> u64 {
        self.file.size()
    }
}

impl Env for Disk {
    fn open_random(&self, path: &Path, _: ReadAccess) -> Result<Arc<dyn RandomAccessFile>> {
        let file = self.files.open_random(path, ReadAccess::Pread)?;
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        Ok(Arc::new(BadFile { file, name, disk: self.clone() }))
    }

    fn list(&self, dir: &Path) -> Result<Vec<String>> {
        self.operate("list", dir)?;
        self.files.list(dir)
    }

    fn remove(&self, path: &Path) -> Result<()> {
        self.operate("remove", path)?;
        self.files.remove(path)
    }

    env_methods! {
        create open_append exists create_dir remove_dir file_size rename sync_dir lock schedule
        set_background_threads now_micros wall_clock sleep
    }
}

/// Checks that a check finds the fault in `file`, and a repair leaves at most `cost` entries other
/// than they were.
#[track_caller]
fn costs(disk: &Disk, model: &Contents, file: &str, range: Range<u64>, cost: usize) -> usize {
    disk.break_down(file, range, EIO, FOR_EVER);
    let before = disk.image();
    let found = verify(DIR, &disk.options()).expect("checks");
    assert!(
        found.problems.iter().any(|problem| problem.file == file),
        "{file}: {:#?}",
        found.problems
    );
    assert!(disk.image() == before, "a check changes nothing");
    let report = repair(DIR, &disk.options()).expect("repairs");
    assert!(
        report.problems.iter().any(|problem| problem.file == file),
        "{file}: {:#?}",
        report.problems
    );
    assert!(disk.heal(FOR_EVER));
    assert!(verify(DIR, &disk.options()).expect("checks").is_clean());
    let left = disk.contents();
    let gone = model.iter().filter(|(key, value)| left.get(*key) != Some(value)).count();
    let back = left.keys().filter(|key| !model.contains_key(*key)).count();
    assert!(gone + back <= cost, "{file}: {gone} entries lost and {back} back instead of {cost}");
    gone + back
}

#[test]
fn a_bad_sector_in_a_table_costs_a_block() {
    let (disk, model) = Disk::with_database();
    let table = disk.names(".ldb").remove(0);
    assert!(costs(&disk, &model, &table, 10..20, 60) > 0);
}

#[test]
fn a_bad_sector_behind_the_data_of_a_table_costs_little() {
    // Blocks that are searched for are read many at once.
    const COST: usize = 1000;
    // In the footer, the index and what else lies between.
    for from_end in [20, 60, 150, 400] {
        let (disk, model) = Disk::with_database();
        let table = disk.names(".ldb").remove(0);
        let end = disk.size(&table);
        costs(&disk, &model, &table, end - from_end..end - from_end + 1, COST);
    }
}

/// As a power cut leaves it in a flush: an open removes it, and nothing needs it.
#[test]
fn a_bad_sector_in_a_table_that_nothing_names_costs_nothing() {
    let (disk, model) = Disk::with_database();
    let (named, stray) = (disk.names(".ldb").remove(0), "900000.ldb");
    let bytes = disk.files.read(Path::new(DIR).join(&named)).expect("there");
    disk.files.write(Path::new(DIR).join(stray), bytes);
    let end = disk.size(stray);
    disk.break_down(stray, end - 48..end, EIO, FOR_EVER);
    let found = verify(DIR, &disk.options()).expect("checks");
    assert!(found.problems.iter().all(|problem| problem.file == stray), "{found:#?}");
    let report = repair(DIR, &disk.options()).expect("repairs");
    assert!(report.problems.iter().all(|problem| problem.file == stray), "{report:#?}");
    assert!(disk.heal(FOR_EVER));
    assert!(disk.contents() == model);
}

/// The records before the sector tell which tables were removed.
#[test]
fn what_a_manifest_with_a_bad_sector_has_removed_does_not_come_back() {
    let disk = Disk { files: MemEnv::new(), faults: Arc::default() };
    let key = |name: u8| vec![name; 5_000];
    let db = Db::open(DIR, disk.options()).expect("creates");
    db.put(key(b'x'), "deleted").expect("writes");
    db.flush().expect("flushes");
    let removed = disk.names(".ldb").remove(0);
    let bytes = disk.files.read(Path::new(DIR).join(&removed)).expect("there");
    db.delete(key(b'x')).expect("deletes");
    db.compact_range::<&[u8]>(..).expect("compacts");
    for name in b'a'..=b'c' {
        db.put(key(name), "stays").expect("writes");
        db.flush().expect("flushes");
    }
    db.close().expect("closes");
    assert!(disk.names(".ldb").iter().all(|name| *name != removed));
    disk.files.write(Path::new(DIR).join(&removed), bytes);
    let manifest = disk.manifest();
    assert!(disk.size(&manifest) > 33_000);
    disk.break_down(&manifest, 33_000..33_001, EIO, FOR_EVER);
    repair(DIR, &disk.options()).expect("repairs");
    assert!(disk.heal(FOR_EVER));
    let keys: Vec<_> = disk.contents().into_keys().collect();
    assert!(keys == [b'a', b'b', b'c'].map(key), "{} keys", keys.len());
}

#[test]
fn a_bad_sector_in_a_log_costs_what_follows() {
    let (disk, model) = Disk::with_database();
    let log = disk.names(".log").pop().expect("a log");
    let lost = costs(&disk, &model, &log, 40_000..40_001, 1500);
    assert!(lost > 100, "{lost}");
}

#[test]
fn current_and_manifest_can_be_unreadable() {
    let (disk, model) = Disk::with_database();
    assert_eq!(costs(&disk, &model, "CURRENT", 0..1, 0), 0);
    let (disk, model) = Disk::with_database();
    assert_eq!(costs(&disk, &model, &disk.manifest(), 0..1, 0), 0);
}

#[test]
fn an_error_that_goes_away_costs_nothing() {
    let (disk, model) = Disk::with_database();
    let (table, log) = (disk.names(".ldb").remove(0), disk.names(".log").pop().expect("a log"));
    let end = disk.size(&table);
    let before = disk.image();
    for (file, at, code) in [
        (table.as_str(), 10, EIO),
        (&table, 10, EACCES),
        (&table, end - 20, EIO),
        (&table, end - 20, EACCES),
        (&log, 20_000, EIO),
        ("CURRENT", 0, EIO),
        ("CURRENT", 0, EACCES),
        (&disk.manifest(), 0, EIO),
        (&disk.manifest(), 0, EACCES),
    ] {
        disk.break_down(file, at..at + 1, code, 1);
        let report = repair(DIR, &disk.options()).expect("repairs");
        assert!(disk.heal(1), "{file} was not read at {at}");
        assert!(
            report.problems.is_empty() && report.moved.is_empty(),
            "{file} at {at}: {report:#?}"
        );
        assert!(disk.image() == before, "{file} at {at}");
    }
    // Two places that fail once each are not one that fails twice.
    for at in [20_000, 50_000] {
        disk.break_down(&log, at..at + 1, EIO, 1);
    }
    let report = repair(DIR, &disk.options()).expect("repairs");
    assert!(disk.heal(1), "{log} was not read");
    assert!(report.problems.is_empty() && disk.image() == before, "{report:#?}");
    // A check tries again what it reads last: blocks and logs.
    for (file, at) in [(&table, 10), (&log, 20_000)] {
        disk.break_down(file, at..at + 1, EIO, 1);
        let report = verify(DIR, &disk.options()).expect("checks");
        assert!(disk.heal(1) && report.is_clean(), "{file}: {report:#?}");
    }
    assert!(disk.contents() == model);
}

#[test]
fn a_refusal_of_the_system_ends_a_repair_and_leaves_everything() {
    let (disk, model) = Disk::with_database();
    let (table, log) = (disk.names(".ldb").remove(0), disk.names(".log").pop().expect("a log"));
    let (end, manifest) = (disk.size(&table), disk.manifest());
    let before = disk.image();
    let refuses = |file: &str, at: u64| {
        disk.break_down(file, at..at + 1, EACCES, FOR_EVER);
        let error = repair(DIR, &disk.options()).expect_err("refused");
        assert!(
            disk.heal(FOR_EVER)
                && error.kind() == ErrorKind::Io
                && error.raw_os_error() == Some(EACCES),
            "{error}"
        );
        assert!(error.message().contains(file), "{error}");
    };
    for (file, at) in [
        (table.as_str(), 10),
        (&table, end - 20),
        (&table, end - 60),
        (&log, 20_000),
        ("CURRENT", 0),
        (&manifest, 0),
    ] {
        refuses(file, at);
        assert!(disk.image() == before, "{file} at {at}");
        // A check tells of tables and logs, and cannot begin without CURRENT and MANIFEST.
        disk.break_down(file, at..at + 1, EACCES, FOR_EVER);
        match verify(DIR, &disk.options()) {
            Ok(report) => {
                assert!(report.problems.iter().any(|problem| problem.file == file), "{report:#?}")
            }
            Err(error) => assert!(
                error.raw_os_error() == Some(EACCES) && file != table && file != log,
                "{error}"
            ),
        }
        assert!(disk.heal(FOR_EVER));
    }
    assert!(disk.contents() == model);
    // The same in a table without its end, whose blocks are searched for.
    let path = Path::new(DIR).join(&table);
    let whole = disk.files.read(&path).expect("there");
    disk.files.write(&path, whole[..whole.len() - 30].to_vec());
    refuses(&table, 70_000.min(end / 2));
    disk.files.write(&path, whole);
    assert!(disk.contents() == model);
}

#[test]
fn an_inspection_tells_the_systems_errors_from_damage() {
    let (disk, _) = Disk::with_database();
    let table = disk.names(".ldb").remove(0);
    let end = disk.size(&table);
    let path = Path::new(DIR).join(&table);
    let show = || inspect::table(&path, &disk.options(), &mut |_| ControlFlow::Continue(()));
    assert_eq!(show().expect("sound").damages, 0);
    // A data block, the index, the footer.
    for at in [10, end - 60, end - 10] {
        disk.break_down(&table, at..at + 1, EIO, FOR_EVER);
        let error = show().expect_err("unreadable");
        assert!(error.kind() == ErrorKind::Io && error.raw_os_error() == Some(EIO), "{error}");
        assert!(disk.heal(FOR_EVER));
    }
    disk.files.write("/db/stranger", disk.files.read(&path).expect("there"));
    disk.break_down("stranger", end - 10..end, EIO, FOR_EVER);
    let error = inspect::kind(Path::new("/db/stranger"), &disk.options()).expect_err("unreadable");
    assert_eq!(error.raw_os_error(), Some(EIO));
    assert!(disk.heal(FOR_EVER));
}

#[test]
fn what_cannot_be_destroyed_is_told() {
    let (disk, _) = Disk::with_database();
    let table = disk
        .files
        .list(Path::new(DIR))
        .expect("lists")
        .into_iter()
        .find(|name| name.ends_with(".ldb"));
    let remove_table = format!("remove {}", table.expect("a table"));
    let whats = [
        ("list db", true),
        ("remove CURRENT", true),
        (&remove_table, false),
        ("remove LOCK", false),
    ];
    for (what, left) in whats {
        disk.break_down(what, 0..1, EACCES, 1);
        let error = destroy(DIR, &disk.options()).expect_err("refused");
        assert_eq!(error.raw_os_error(), Some(EACCES), "{error}");
        assert!(disk.heal(1));
        assert_eq!(disk.files.exists(Path::new("/db/CURRENT")).expect("looks"), left, "{what}");
        let others = disk.files.list(Path::new(DIR)).expect("lists").len();
        assert!(left == (others > 2), "{what}: one file that stays keeps no other");
    }
    destroy(DIR, &disk.options()).expect("destroys the rest");
    assert!(!disk.files.exists(Path::new(DIR)).expect("looks"));
    destroy(DIR, &disk.options()).expect("there is nothing");
}

#[test]
fn reads_tell_of_bad_sectors_and_go_on_elsewhere() {
    let (disk, model) = Disk::with_database();
    let table = disk.names(".ldb").pop().expect("a table");
    let db = Db::open(DIR, disk.options().block_cache_size(0)).expect("opens");
    disk.break_down(&table, 10..20, EIO, FOR_EVER);
    let (mut right, mut refused) = (0, 0);
    for (key, value) in &model {
        match db.get(key) {
            Ok(found) => {
                assert_eq!(found.as_ref(), Some(value));
                right += 1;
            }
            Err(error) => {
                assert!(
                    error.kind() == ErrorKind::Io && error.message().contains(&table),
                    "{error}"
                );
                refused += 1;
            }
        }
    }
    assert!(right > 10 * refused && refused > 0, "{right} right, {refused} refused");
    assert!(db.iter().expect("iterates").any(|entry| entry.is_err()), "a scan tells, too");
    let mut cursor = db.cursor().expect("a cursor");
    let mut lost = 0;
    for key in model.keys() {
        cursor.seek_for_prev(key);
        match cursor.status() {
            Ok(()) => assert_eq!(cursor.key(), key),
            Err(error) => {
                assert!(error.kind() == ErrorKind::Io && !cursor.valid(), "{error}");
                lost += 1;
            }
        }
    }
    assert!(lost > 0 && model.len() > 10 * lost, "{lost}");
    assert!(disk.heal(FOR_EVER));
    assert!(contents_of(&db) == model, "nothing of it is kept");
}
