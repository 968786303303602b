//! The file system in memory and the simulated disk behave as the real one does, for everything
//! that the engine may ask and to what goes wrong.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use terrace::{
    CompactOptions, CreateOptions, Db, Env, ErrorKind, FileLock, LockMode, MemEnv, Options,
    PosixEnv, RandomAccessFile, ReadAccess, Result, TableWriter,
};
use terrace_testkit::env_methods;
use terrace_testkit::simfs::SimFs;

const REUSE: CreateOptions = CreateOptions { mode: 0o644, exclusive: false };

/// Runs `script` on a directory of each file system.
fn on_all(script: impl Fn(&dyn Env, &Path)) {
    on_real_and_in_memory(&script);
    let simulated = SimFs::new().env();
    simulated.create_dir(Path::new("/home"), 0o755).expect("creates");
    script(simulated.as_ref(), Path::new("/home"));
}

fn on_real_and_in_memory(script: impl Fn(&dyn Env, &Path)) {
    let dir = tempfile::tempdir().expect("a directory");
    script(PosixEnv::shared().as_ref(), dir.path());
    let env = MemEnv::new();
    env.create_dir(Path::new("/home"), 0o755).expect("creates");
    script(&env, Path::new("/home"));
}

fn put(env: &dyn Env, path: &Path, data: &[u8]) -> Result<()> {
    let mut file = env.create(path, REUSE)?;
    file.append(data)?;
    file.sync()?;
    file.close()
}

fn read(env: &dyn Env, path: &Path) -> Result<Vec<u8>> {
    let file = env.open_random(path, ReadAccess::Pread)?;
    let mut bytes = vec![0; file.size() as usize];
    let count = file.read_at(0, &mut bytes)?;
    bytes.truncate(count);
    Ok(bytes)
}

/// An operation's outcome: its error's kind, with the system's number where the two systems agree
/// on one.
#[track_caller]
fn fails<T>(outcome: Result<T>, kind: ErrorKind, code: Option<i32>) {
    let error = outcome.err().expect("an error");
    assert_eq!(error.kind(), kind, "{error}");
    if code.is_some() {
        assert_eq!(error.raw_os_error(), code, "{error}");
    }
}

const ENOENT: Option<i32> = Some(2);
const EEXIST: Option<i32> = Some(17);
const ENOTDIR: Option<i32> = Some(20);
const EISDIR: Option<i32> = Some(21);
const EINVAL: Option<i32> = Some(22);
const ENOTEMPTY: Option<i32> = Some(39);

#[test]
fn files_come_change_and_go() {
    on_all(|env, dir| {
        let (file, missing, below) =
            (dir.join("file"), dir.join("missing"), dir.join("file/below"));
        put(env, &file, b"one").expect("puts");
        put(env, &file, b"four").expect("truncates and puts");
        assert_eq!(read(env, &file).expect("reads"), b"four");
        fails(env.create(&file, CreateOptions::default()), ErrorKind::Io, EEXIST);
        fails(env.create(dir, CreateOptions::default()), ErrorKind::Io, EEXIST);
        fails(env.create(dir, REUSE), ErrorKind::Io, EISDIR);
        fails(put(env, &below, b"x"), ErrorKind::Io, ENOTDIR);
        fails(put(env, &missing.join("x"), b"x"), ErrorKind::NotFound, ENOENT);
        fails(env.open_append(&missing), ErrorKind::NotFound, ENOENT);
        fails(env.open_random(&missing, ReadAccess::Mapped), ErrorKind::NotFound, ENOENT);
        fails(env.open_random(dir, ReadAccess::Mapped), ErrorKind::Io, None);
        fails(env.file_size(&missing), ErrorKind::NotFound, ENOENT);
        fails(env.remove(&missing), ErrorKind::NotFound, ENOENT);
        fails(env.remove(dir), ErrorKind::Io, EISDIR);
        let mut more = env.open_append(&file).expect("opens");
        more.append(b"teen").expect("appends");
        more.close().expect("closes");
        assert_eq!(
            (read(env, &file).expect("reads"), env.file_size(&file).expect("stats")),
            (b"fourteen".to_vec(), 8)
        );
        // A removed file remains for its holders.
        let held = env.open_random(&file, ReadAccess::Mapped).expect("opens");
        env.remove(&file).expect("removes");
        let mut buffer = [0; 10];
        assert_eq!((held.read_at(4, &mut buffer).expect("reads"), &buffer[..4]), (4, &b"teen"[..]));
        assert_eq!(held.read_at(100, &mut buffer).expect("reads"), 0);
        assert!(!env.exists(&file).expect("looks"));
    });
}

#[test]
fn directories_come_and_go() {
    on_all(|env, dir| {
        let (file, deep) = (dir.join("file"), dir.join("a/b"));
        put(env, &file, b"x").expect("puts");
        env.create_dir(&deep, 0o755).expect("creates");
        env.create_dir(&deep, 0o755).expect("is there");
        assert!(env.exists(&deep).expect("looks") && env.exists(Path::new("/")).expect("looks"));
        fails(env.create_dir(&file, 0o755), ErrorKind::Io, ENOTDIR);
        fails(env.create_dir(&file.join("below"), 0o755), ErrorKind::Io, ENOTDIR);
        fails(env.list(&file), ErrorKind::Io, ENOTDIR);
        fails(env.list(&dir.join("none")), ErrorKind::NotFound, ENOENT);
        let mut names = env.list(dir).expect("lists");
        names.sort();
        assert_eq!(names, ["a", "file"]);
        env.sync_dir(&deep).expect("syncs");
        fails(env.sync_dir(&dir.join("none")), ErrorKind::NotFound, ENOENT);
        fails(env.remove_dir(&file), ErrorKind::Io, ENOTDIR);
        fails(env.remove_dir(&dir.join("none")), ErrorKind::NotFound, ENOENT);
        fails(env.remove_dir(&dir.join("a")), ErrorKind::Io, ENOTEMPTY);
        env.remove_dir(&deep).expect("removes");
        env.remove_dir(&dir.join("a")).expect("removes");
        assert_eq!(env.list(dir).expect("lists"), ["file"]);
    });
}

#[test]
fn names_change_as_one_step() {
    on_all(|env, dir| {
        let path = |name: &str| -> PathBuf { dir.join(name) };
        put(env, &path("one"), b"1").expect("puts");
        put(env, &path("two"), b"2").expect("puts");
        env.create_dir(&path("d"), 0o755).expect("creates");
        let rename = |from: &str, to: &str| env.rename(&path(from), &path(to));
        fails(rename("none", "one"), ErrorKind::NotFound, ENOENT);
        fails(rename("one", "none/one"), ErrorKind::NotFound, ENOENT);
        fails(rename("one", "two/one"), ErrorKind::Io, ENOTDIR);
        fails(rename("one", "d"), ErrorKind::Io, EISDIR);
        rename("one", "one").expect("nothing to do");
        rename("one", "two").expect("replaces");
        assert_eq!(read(env, &path("two")).expect("reads"), b"1");
        let mut names = env.list(dir).expect("lists");
        names.sort();
        assert_eq!(names, ["d", "two"]);
    });
}

/// Not on the simulated disk, which moves no directories: the engine moves none.
#[test]
fn directories_change_their_names_with_all_that_they_hold() {
    on_real_and_in_memory(|env, dir| {
        let path = |name: &str| -> PathBuf { dir.join(name) };
        put(env, &path("one"), b"1").expect("puts");
        env.create_dir(&path("d/e"), 0o755).expect("creates");
        put(env, &path("d/e/f"), b"f").expect("puts");
        env.create_dir(&path("empty"), 0o755).expect("creates");
        let rename = |from: &str, to: &str| env.rename(&path(from), &path(to));
        fails(rename("d", "one"), ErrorKind::Io, ENOTDIR);
        fails(rename("d", "d/e/g"), ErrorKind::Io, EINVAL);
        fails(rename("empty", "d"), ErrorKind::Io, ENOTEMPTY);
        rename("d", "empty").expect("replaces an empty directory");
        assert_eq!(read(env, &path("empty/e/f")).expect("reads"), b"f");
        let mut names = env.list(dir).expect("lists");
        names.sort();
        assert_eq!(names, ["empty", "one"]);
    });
}

#[test]
fn a_file_has_as_many_names_as_it_is_given() {
    on_all(|env, dir| {
        let path = |name: &str| -> PathBuf { dir.join(name) };
        put(env, &path("one"), b"1").expect("puts");
        put(env, &path("other"), b"2").expect("puts");
        env.create_dir(&path("d"), 0o755).expect("creates");
        let link = |from: &str, to: &str| env.link(&path(from), &path(to));
        fails(link("none", "two"), ErrorKind::NotFound, ENOENT);
        fails(link("one", "none/two"), ErrorKind::NotFound, ENOENT);
        fails(link("one", "other/two"), ErrorKind::Io, ENOTDIR);
        for taken in ["one", "other", "d"] {
            fails(link("one", taken), ErrorKind::Io, EEXIST);
        }
        fails(link("d", "e"), ErrorKind::Io, None);
        link("one", "d/two").expect("links");
        let mut file = env.open_append(&path("d/two")).expect("opens");
        file.append(b"+").expect("appends");
        file.close().expect("closes");
        assert_eq!(read(env, &path("one")).expect("reads"), b"1+");
        // Of two names of one file none goes in a rename.
        env.rename(&path("one"), &path("d/two")).expect("nothing to do");
        env.remove(&path("one")).expect("removes");
        env.rename(&path("d/two"), &path("other")).expect("replaces");
        assert_eq!(read(env, &path("other")).expect("reads"), b"1+");
        assert!(env.list(&path("d")).expect("lists").is_empty());
    });
}

#[test]
fn locks_exclude_writers_and_not_readers() {
    on_all(|env, dir| {
        let (path, missing) = (dir.join("LOCK"), dir.join("none/LOCK"));
        let lock = |mode| env.lock(&path, mode);
        // Without an earlier lock readers need none, and none is created for them.
        let nothing = lock(LockMode::Shared).expect("nothing to lock");
        assert!(!env.exists(&path).expect("looks"));
        drop(nothing);
        drop(env.lock(&missing, LockMode::Shared).expect("nothing to lock"));
        fails(env.lock(&missing, LockMode::Exclusive), ErrorKind::NotFound, ENOENT);
        fails(env.lock(dir, LockMode::Exclusive), ErrorKind::Io, None);
        fails(env.lock(dir, LockMode::Shared), ErrorKind::Io, None);
        let writer = lock(LockMode::Exclusive).expect("creates and locks");
        assert!(env.exists(&path).expect("looks"));
        for mode in [LockMode::Exclusive, LockMode::Shared] {
            fails(lock(mode), ErrorKind::Busy, None);
        }
        drop(writer);
        let readers: Vec<Box<dyn FileLock>> =
            (0..3).map(|_| lock(LockMode::Shared).expect("locks")).collect();
        fails(lock(LockMode::Exclusive), ErrorKind::Busy, None);
        drop(readers);
        // A lock belongs to the file: removed and made anew, the name is free.
        let old = lock(LockMode::Exclusive).expect("locks");
        env.remove(&path).expect("removes");
        let new = lock(LockMode::Exclusive).expect("another file");
        drop(old);
        fails(lock(LockMode::Exclusive), ErrorKind::Busy, None);
        drop(new);
        drop(lock(LockMode::Exclusive).expect("free again"));
    });
}

#[test]
fn the_root_of_memory_stays() {
    let env = MemEnv::new();
    let root = Path::new("/");
    assert!(env.exists(root).expect("looks") && env.exists(Path::new("")).expect("looks"));
    fails(env.remove_dir(root), ErrorKind::Io, Some(16));
    fails(env.remove(root), ErrorKind::Io, EISDIR);
    fails(env.create(root, REUSE), ErrorKind::Io, EISDIR);
    env.write("/a/b", b"1".to_vec());
    env.write("/a/b", b"22".to_vec());
    assert_eq!(
        (env.read("/a/b"), env.read("/a"), env.read("/c")),
        (Some(b"22".to_vec()), None, None)
    );
    assert_eq!(env.list(root).expect("lists"), ["a"]);
    for taken in ["/a", "/a/b/c"] {
        let other = env.clone();
        let written = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            other.write(taken, Vec::new())
        }));
        assert!(written.is_err(), "{taken} belongs to something else");
    }
}

#[test]
fn the_system_is_asked_for_what_it_refuses() {
    let dir = tempfile::tempdir().expect("a directory");
    let env: Arc<dyn Env> = PosixEnv::shared();
    let long = dir.path().join("x".repeat(300));
    for outcome in [
        env.exists(&long).map(drop),
        env.list(&long).map(drop),
        env.create_dir(&long, 0o755),
        env.lock(&long, LockMode::Exclusive).map(drop),
        env.lock(&long, LockMode::Shared).map(drop),
        env.open_random(&long, ReadAccess::Mapped).map(drop),
        env.remove(&long),
        env.file_size(&long).map(drop),
        env.sync_dir(&long),
    ] {
        fails(outcome, ErrorKind::Io, Some(36));
    }
    // Names that are not text belong to no database.
    use std::os::unix::ffi::OsStrExt as _;
    fs::write(dir.path().join(std::ffi::OsStr::from_bytes(b"\xff\xfe")), "").expect("writes");
    assert!(env.list(dir.path()).expect("lists").is_empty());
}

/// The real file system, and what was asked of it.
struct Asked {
    files: Arc<dyn Env>,
    synced: Mutex<Vec<PathBuf>>,
    opened: Mutex<Vec<(PathBuf, ReadAccess)>>,
}

impl Asked {
    fn new() -> Arc<Asked> {
        let (synced, opened) = Default::default();
        Arc::new(Asked { files: PosixEnv::shared(), synced, opened })
    }
}

impl Env for Asked {
    fn sync_dir(&self, dir: &Path) -> Result<()> {
        self.synced.lock().expect("sound").push(dir.to_owned());
        self.files.sync_dir(dir)
    }

    fn open_random(&self, path: &Path, access: ReadAccess) -> Result<Arc<dyn RandomAccessFile>> {
        self.opened.lock().expect("sound").push((path.to_owned(), access));
        self.files.open_random(path, access)
    }

    fn true_path(&self, dir: &Path) -> PathBuf {
        self.files.true_path(dir)
    }

    fn has_other_names(&self, path: &Path) -> Result<bool> {
        self.files.has_other_names(path)
    }

    fn link(&self, from: &Path, to: &Path) -> Result<()> {
        self.files.link(from, to)
    }

    env_methods! {
        create open_append exists list create_dir remove_dir remove file_size rename lock schedule
         set_background_threads wall_clock sleep now_micros
    }
}

/// The names above a new database are durable where it is, not where its path leads through.
#[test]
fn the_directories_above_a_database_behind_a_link_are_synced() {
    let dir = tempfile::tempdir().expect("a directory");
    let real = dir.path().join("above/real");
    fs::create_dir_all(&real).expect("directories");
    let link = dir.path().join("link");
    std::os::unix::fs::symlink(&real, &link).expect("a link");
    let env = Asked::new();
    let options = Options::new().create_if_missing(true).env(env.clone());
    Db::open(link.join("db"), options).expect("creates").close().expect("closes");
    let synced = env.synced.lock().expect("sound").clone();
    let above = fs::canonicalize(dir.path().join("above")).expect("a path");
    assert!(synced.contains(&above), "{synced:?}");
}

/// A link that leads elsewhere from now on, as one of a deployment does, moves no open database.
#[test]
fn a_link_that_is_changed_does_not_move_an_open_database() {
    let dir = tempfile::tempdir().expect("a directory");
    let [first, second, link] = ["first", "second", "current"].map(|name| dir.path().join(name));
    let options = || Options::new().create_if_missing(true);
    let other = Db::open(&second, options()).expect("creates");
    other.put("other", "1").expect("puts");
    other.close().expect("closes");
    fs::create_dir(&first).expect("a directory");
    std::os::unix::fs::symlink(&first, &link).expect("a link");
    let db = Db::open(&link, options()).expect("creates");
    fs::remove_file(&link).expect("the link");
    std::os::unix::fs::symlink(&second, &link).expect("a link");
    for round in 0..3 {
        db.put("own", round.to_string()).expect("puts");
        db.flush().expect("flushes");
    }
    db.compact_range::<&[u8]>(..).expect("compacts");
    assert_eq!(db.path(), fs::canonicalize(&first).expect("a path"));
    db.close().expect("closes");
    let db = Db::open(&second, options()).expect("opens");
    assert_eq!(db.get("other").expect("reads").as_deref(), Some(&b"1"[..]));
    assert_eq!(db.get("own").expect("reads"), None);
    db.close().expect("closes");
    let db = Db::open(&first, options()).expect("opens");
    assert_eq!(db.get("own").expect("reads").as_deref(), Some(&b"2"[..]));
}

/// What an open database makes of a new file and of one that it no longer needs.
fn write_and_compact(db: &Db, value: &str) -> Result<()> {
    for round in 0..3 {
        db.put("own", format!("{value}{round}"))?;
        db.put(format!("own{round}"), vec![7; 100_000])?;
        db.flush()?;
    }
    db.compact_range_with::<&[u8]>(.., CompactOptions::new().force(true))
}

fn value_of(db: &Db, key: &str) -> Option<String> {
    db.get(key).expect("reads").map(|value| String::from_utf8(value).expect("a text"))
}

/// A deployment renames the directory of a running program and puts a new one in its place, with a
/// copy of the database as it was.
#[test]
fn an_open_database_goes_on_in_a_directory_that_was_renamed() {
    let dir = tempfile::tempdir().expect("a directory");
    let [current, old] = ["current", "old"].map(|name| dir.path().join(name));
    // A few tables may be open at once: others are opened where they lie now.
    let options = || Options::new().create_if_missing(true).max_open_files(20);
    fs::create_dir(&current).expect("a directory");
    let db = Db::open(current.join("db"), options()).expect("creates");
    write_and_compact(&db, "before").expect("writes");
    fs::rename(&current, &old).expect("renames");
    write_and_compact(&db, "alone").expect("writes");
    assert_eq!(value_of(&db, "own").as_deref(), Some("alone2"));
    fs::create_dir_all(current.join("db")).expect("directories");
    for entry in fs::read_dir(old.join("db")).expect("a directory") {
        let name = entry.expect("an entry").file_name();
        fs::copy(old.join("db").join(&name), current.join("db").join(&name)).expect("copies");
    }
    let other = Db::open(current.join("db"), options()).expect("opens, with a lock of its own");
    other.put("other", "1").expect("puts");
    for round in 0..3 {
        write_and_compact(&db, &format!("beside{round}-")).expect("writes");
        write_and_compact(&other, &format!("other{round}-")).expect("writes");
    }
    assert_eq!(value_of(&db, "other"), None);
    assert_eq!(value_of(&other, "own").as_deref(), Some("other2-2"));
    db.close().expect("closes");
    other.close().expect("closes");
    for (place, own, other) in [(&old, "beside2-2", None), (&current, "other2-2", Some("1"))] {
        let db = Db::open(place.join("db"), options()).expect("opens");
        assert!(db.verify().expect("verifies").problems.is_empty());
        assert_eq!(value_of(&db, "own").as_deref(), Some(own));
        assert_eq!(value_of(&db, "other").as_deref(), other);
        db.close().expect("closes");
    }
}

/// A program that removes a database which another one has open, and creates it anew.
#[test]
fn a_database_whose_directory_was_removed_leaves_the_next_one_alone() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("db");
    let options = || Options::new().create_if_missing(true);
    let removed = Db::open(&path, options()).expect("creates");
    write_and_compact(&removed, "removed").expect("writes");
    fs::remove_dir_all(&path).expect("removes");
    let db = Db::open(&path, options()).expect("creates");
    write_and_compact(&db, "new").expect("writes");
    let error = write_and_compact(&removed, "late").expect_err("there is no place for it");
    assert!(error.message().contains("another one has its name"), "{error}");
    let _ = removed.close();
    write_and_compact(&db, "newer").expect("writes");
    db.close().expect("closes");
    let db = Db::open(&path, options()).expect("opens");
    assert!(db.verify().expect("verifies").problems.is_empty());
    assert_eq!(value_of(&db, "own").as_deref(), Some("newer2"));
    db.close().expect("closes");
}

/// A backup may come without `LOCK`, and its tables have the numbers of those that the old database
/// removes.
#[test]
fn a_backup_in_the_place_of_an_open_database_is_left_alone() {
    let dir = tempfile::tempdir().expect("a directory");
    let [path, backup] = ["db", "backup"].map(|name| dir.path().join(name));
    let options = || Options::new().create_if_missing(true);
    let removed = Db::open(&path, options()).expect("creates");
    write_and_compact(&removed, "backup").expect("writes");
    removed.checkpoint(&backup).expect("copies");
    fs::remove_file(backup.join("LOCK")).expect("removes");
    write_and_compact(&removed, "removed").expect("writes");
    fs::remove_dir_all(&path).expect("removes");
    fs::rename(&backup, &path).expect("restores");
    let names = || {
        let entries = fs::read_dir(&path).expect("a directory");
        let mut names: Vec<_> = entries.map(|entry| entry.expect("an entry").file_name()).collect();
        names.sort();
        names
    };
    let restored = names();
    let error = write_and_compact(&removed, "late").expect_err("there is no place for it");
    assert!(error.message().contains("another one has its name"), "{error}");
    let _ = removed.close();
    assert_eq!(names(), restored);
    let db = Db::open(&path, options()).expect("opens");
    assert!(db.verify().expect("verifies").is_clean());
    assert_eq!(value_of(&db, "own").as_deref(), Some("backup2"));
}

/// Another process may have locked the file that has its place now, and its own file may have been
/// put anywhere.
#[test]
fn a_database_does_not_follow_its_lock_file_out_of_its_directory() {
    let dir = tempfile::tempdir().expect("a directory");
    let [path, elsewhere] = ["db", "elsewhere"].map(|name| dir.path().join(name));
    fs::create_dir(&elsewhere).expect("a directory");
    let db = Db::open(&path, Options::new().create_if_missing(true)).expect("creates");
    fs::rename(path.join("LOCK"), elsewhere.join("LOCK")).expect("renames");
    write_and_compact(&db, "value").expect("writes");
    assert_eq!(fs::read_dir(&elsewhere).expect("a directory").count(), 1);
    fs::write(path.join("LOCK"), "").expect("writes");
    let error = write_and_compact(&db, "late").expect_err("not its lock");
    assert!(error.message().contains("another process may have the database open"), "{error}");
    fs::rename(elsewhere.join("LOCK"), path.join("LOCK")).expect("comes back");
    db.close().expect("closes");
    let db = Db::open(&path, Options::new()).expect("opens");
    assert!(value_of(&db, "own").is_some());
}

/// Without its file `LOCK`, which some scripts remove, a database goes on as it did.
#[test]
fn a_lock_file_that_was_removed_does_not_stop_a_database() {
    let dir = tempfile::tempdir().expect("a directory");
    let db = Db::open(dir.path(), Options::new().create_if_missing(true)).expect("creates");
    fs::remove_file(dir.path().join("LOCK")).expect("removes");
    write_and_compact(&db, "value").expect("writes");
    assert_eq!(value_of(&db, "own").as_deref(), Some("value2"));
    db.close().expect("closes");
}

/// Nobody keeps another program from shortening a file that is ingested, which would end this one
/// where the file is mapped.
#[test]
fn what_is_ingested_is_not_mapped() {
    let dir = tempfile::tempdir().expect("a directory");
    let env = Asked::new();
    let options = Options::new().create_if_missing(true).env(env.clone());
    let path = dir.path().join("table");
    let mut table = TableWriter::create(&path, &options).expect("a table");
    table.put("a", "1").expect("puts");
    table.finish().expect("a table");
    let db = Db::open(dir.path().join("db"), options).expect("creates");
    db.ingest(&[&path]).expect("ingests");
    let opened = env.opened.lock().expect("sound").clone();
    let of_table: Vec<_> = opened.iter().filter(|(opened, _)| *opened == path).collect();
    assert!(!of_table.is_empty());
    assert!(of_table.iter().all(|(_, access)| *access == ReadAccess::Pread), "{of_table:?}");
}
