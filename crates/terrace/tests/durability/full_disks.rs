//! On a disk that has room for a part of a step, what was done of it does not take up the rest.

use std::path::Path;
use std::sync::{Arc, Mutex};

use terrace::{CreateOptions, Db, Env, MemEnv, Options, RecoveryMode, WritableFile};
use terrace_testkit::env_methods;

use super::faults::as_they_are;

const PATH: &str = "/db";

/// An Env on whose disk there is no room for some files.
struct Full {
    files: Arc<MemEnv>,
    /// Whether there is none for a file of this name.
    refuses: Mutex<Refuses>,
}

type Refuses = Box<dyn FnMut(&str) -> bool + Send>;

impl Full {
    fn over(files: Arc<MemEnv>) -> Arc<Full> {
        Arc::new(Full { files, refuses: Mutex::new(Box::new(|_| false)) })
    }

    fn refuse(&self, refuses: impl FnMut(&str) -> bool + Send + 'static) {
        *self.refuses.lock().expect("sound") = Box::new(refuses);
    }

    fn names(&self) -> Vec<String> {
        self.files.list(Path::new(PATH)).expect("lists")
    }

    fn count(&self, part: &str) -> usize {
        self.names().iter().filter(|name| name.contains(part)).count()
    }

    /// The names of tables and value files.
    fn data_files(&self) -> Vec<String> {
        let is_data = |name: &String| name.ends_with(".ldb") || name.ends_with(".vlog");
        self.names().into_iter().filter(is_data).collect()
    }
}

impl Env for Full {
    fn create(
        &self,
        path: &Path,
        options: CreateOptions,
    ) -> terrace::Result<Box<dyn WritableFile>> {
        let name = path.file_name().expect("a name").to_string_lossy().into_owned();
        if (self.refuses.lock().expect("sound"))(&name) {
            let full = std::io::Error::from(std::io::ErrorKind::StorageFull);
            return Err(terrace::Error::io("create", path, full));
        }
        self.files.create(path, options)
    }

    env_methods! {
        open_random open_append exists list create_dir remove_dir remove file_size rename sync_dir
        lock schedule set_background_threads wall_clock sleep now_micros
    }
}

/// With a CURRENT that cannot be written, too.
#[test]
fn a_manifest_that_is_full_grows_where_no_other_can_begin() {
    for refused in ["MANIFEST-", ".dbtmp"] {
        let env = Full::over(Arc::default());
        let options = || {
            let options = Options::new().create_if_missing(true).env(env.clone());
            options.max_manifest_size(4 << 10)
        };
        let db = Db::open(PATH, options()).expect("creates");
        // A snapshot as large as a MANIFEST may be.
        db.put(vec![b'a'; 2000], "1").expect("puts");
        db.flush().expect("flushes");
        let manifests = env.count("MANIFEST-");
        env.refuse(move |name| name.contains(refused));
        for number in 0..20 {
            db.put([&[b'k'; 1000][..], &[number]].concat(), "1").expect("puts");
            db.flush().unwrap_or_else(|error| panic!("{number}: {error}"));
        }
        db.wait_idle().expect("compacts");
        let named = db.files().len();
        db.close().expect("closes");
        assert_eq!((env.data_files().len(), env.count("MANIFEST-")), (named, manifests));
        env.refuse(|_| false);
        let db = Db::open(PATH, options()).expect("opens");
        assert_eq!(db.iter().expect("entries").count(), 21);
        assert!(db.verify().expect("checks").problems.is_empty());
    }
}

/// The first value file wants a MANIFEST of its own.
#[test]
fn what_no_manifest_took_goes_before_the_next_attempt() {
    let env = Full::over(Arc::default());
    let options = Options::new().create_if_missing(true).env(env.clone()).value_log(Some(1000));
    let db = Db::open(PATH, options.clone()).expect("creates");
    db.put("a", "1").expect("puts");
    db.flush().expect("flushes");
    env.refuse(|name| name.starts_with("MANIFEST"));
    db.put("b", vec![2; 10_000]).expect("puts");
    for attempt in 0..5 {
        assert!(db.flush().is_err());
        // The first table, and what this attempt made.
        let files = env.data_files();
        assert!(files.len() <= 3, "after {} attempts: {files:?}", attempt + 1);
    }
    env.refuse(|_| false);
    db.flush().expect("flushes");
    db.close().expect("closes");
    assert_eq!(env.data_files().len(), 3, "{:?}", env.data_files());
    let db = Db::open(PATH, options).expect("opens");
    assert_eq!(db.iter().expect("entries").count(), 2);
    assert!(db.verify().expect("checks").problems.is_empty());
}

/// The files of a process that was killed with 1,000 entries in its log.
fn killed() -> Arc<MemEnv> {
    let files = Arc::new(MemEnv::new());
    let options = Options::new().create_if_missing(true).write_buffer_size(8 << 20);
    let db = Db::open(PATH, options.env(files.clone())).expect("creates");
    (0..1000).for_each(|number| db.put(format!("{number:04}"), [7; 1000]).expect("puts"));
    as_they_are(&files, Path::new(PATH))
}

/// Opens twice without success, and then with it.
fn open_at_last(env: &Arc<Full>, options: Options, refuses: impl Fn() -> Refuses) -> Db {
    let options = options.write_buffer_size(64 << 10).env(env.clone());
    for _ in 0..2 {
        *env.refuses.lock().expect("sound") = refuses();
        assert!(Db::open(PATH, options.clone()).is_err());
        assert_eq!(env.data_files(), Vec::<String>::new());
        assert_eq!(env.count(".log"), 1, "{:?}", env.names());
    }
    env.refuse(|_| false);
    Db::open(PATH, options).expect("opens")
}

#[test]
fn an_open_that_fails_leaves_no_tables() {
    let files = killed();
    // What that process had not finished.
    files.write(Path::new(PATH).join("000900.ldb"), vec![0; 1000]);
    let env = Full::over(files);
    let db = open_at_last(&env, Options::new(), || {
        let mut tables = 0;
        Box::new(move |name| {
            tables += u32::from(name.ends_with(".ldb"));
            name.ends_with(".ldb") && tables > 3
        })
    });
    assert_eq!(db.iter().expect("entries").count(), 1000);
    assert!(db.verify().expect("checks").problems.is_empty());
}

/// The flush of such an open is the first that has a value file, for which a second MANIFEST is
/// begun.
#[test]
fn an_open_that_fails_leaves_no_value_files() {
    let env = Full::over(killed());
    let db = open_at_last(&env, Options::new().value_log(Some(500)), || {
        let mut manifests = 0;
        Box::new(move |name| {
            manifests += u32::from(name.starts_with("MANIFEST"));
            name.starts_with("MANIFEST") && manifests > 1
        })
    });
    assert_eq!(db.iter().expect("entries").count(), 1000);
    assert!(db.verify().expect("checks").problems.is_empty());
}

/// Damage in a log of which a copy is to be kept, for which there is no room.
#[test]
fn an_open_that_cannot_put_aside_a_log_leaves_no_tables() {
    let files = killed();
    let log = files.list(Path::new(PATH)).expect("lists").into_iter();
    let log = Path::new(PATH).join(log.rev().find(|name| name.ends_with(".log")).expect("a log"));
    let mut damaged = files.read(&log).expect("a log");
    damaged[900_000] ^= 1;
    files.write(&log, damaged);
    let env = Full::over(files);
    let salvage = Options::new().recovery_mode(RecoveryMode::Salvage);
    let db = open_at_last(&env, salvage, || Box::new(|name| name.ends_with(".unfinished")));
    assert!(db.iter().expect("entries").count() > 800);
}
