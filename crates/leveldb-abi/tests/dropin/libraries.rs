//! The two libraries, and programs that run with either.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Output};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::{env, fs};

/// Where this crate is.
pub(crate) const CRATE: &str = env!("CARGO_MANIFEST_DIR");

/// Both libraries.
pub(crate) struct Libraries {
    /// The directory that `tools/build-dropin` filled.
    pub(crate) ours: PathBuf,
    /// Debian's `libleveldb.so.1d`.
    pub(crate) debian: PathBuf,
}

impl Libraries {
    /// The drop-in under Debian's name.
    pub(crate) fn swapped(&self) -> PathBuf {
        self.ours.join("lib/libleveldb.so.1d")
    }

    /// Has `tools/build-dropin` build in the profile of this test.
    pub(crate) fn build_environment(&self, command: &mut Command) {
        let profile_dir = env::current_exe().unwrap().ancestors().nth(2).unwrap().to_owned();
        let profile = profile_dir.file_name().unwrap().to_str().unwrap();
        command.env("DROPIN_PROFILE", if profile == "debug" { "dev" } else { profile });
        command.env("CARGO_TARGET_DIR", profile_dir.parent().unwrap());
    }
}

/// Says why a test does nothing; under `CI` that is a failure.
pub(crate) fn skip(reason: &str) {
    terrace_testkit::skip::skip("tool", reason);
}

/// Says why a test does nothing where that is this user's lack of rights, which continuous
/// integration may be without, too.
pub(crate) fn skip_for_rights(reason: &str) {
    terrace_testkit::skip::skip("right", reason);
}

/// Builds the drop-in once, in the profile of this test, and finds Debian's library.
pub(crate) fn libraries() -> Option<&'static Libraries> {
    static FOUND: OnceLock<Option<Libraries>> = OnceLock::new();
    FOUND.get_or_init(find_libraries).as_ref()
}

fn find_libraries() -> Option<Libraries> {
    let compiler = Command::new("g++").arg("-print-file-name=libleveldb.so").output();
    let Ok(answer) = compiler else {
        skip("there is no g++");
        return None;
    };
    let debian = PathBuf::from(String::from_utf8_lossy(&answer.stdout).trim());
    let Ok(debian) = fs::canonicalize(debian).map(|file| file.with_file_name("libleveldb.so.1d"))
    else {
        skip("libleveldb-dev is not installed");
        return None;
    };
    let ours = fs::canonicalize(env!("CARGO_TARGET_TMPDIR")).unwrap().join("dropin");
    let found = Libraries { ours, debian };
    let mut build = Command::new(Path::new(CRATE).join("../../tools/build-dropin"));
    build.arg(&found.ours);
    found.build_environment(&mut build);
    succeeded(build);
    Some(found)
}

/// Runs a command that must succeed.
pub(crate) fn succeeded(mut command: Command) -> Output {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let (out, err) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{command:?}: {}\n{out}\n{err}", output.status);
    output
}

/// Runs a command that may fail: its status, and what it printed.
pub(crate) fn outcome(command: &mut Command) -> (ExitStatus, String) {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let (out, err) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    (output.status, format!("{out}\n{err}"))
}

/// The libleveldb that a command ran with, by what the loader wrote for `LD_DEBUG=libs` under
/// `LD_DEBUG_OUTPUT`.
pub(crate) fn library_used(traced: &Path) -> Option<PathBuf> {
    let prefix = traced.file_name().unwrap().to_owned().into_string().unwrap();
    let entries =
        fs::read_dir(traced.parent().unwrap()).unwrap().map(|entry| entry.unwrap().path());
    let logs =
        entries.filter(|path| path.file_name().unwrap().to_string_lossy().starts_with(&prefix));
    let texts: Vec<_> =
        logs.map(|log| String::from_utf8_lossy(&fs::read(log).unwrap()).into_owned()).collect();
    let mut loaded = texts
        .iter()
        .flat_map(|text| text.lines())
        .filter_map(|line| line.split_once("calling init: "));
    let path = loaded
        .find(|(_, path)| path.contains("/libleveldb.so"))
        .map(|(_, path)| Path::new(path.trim()))?;
    // The loader writes `/lib` for `/usr/lib` and follows no links.
    let directory = path.parent().unwrap();
    Some(
        fs::canonicalize(directory).unwrap_or(directory.to_owned()).join(path.file_name().unwrap()),
    )
}

/// Compiles a program of `tests/programs`, with Debian's headers unless `flags` say otherwise.
pub(crate) fn compiled(source: &str, flags: &[&OsStr]) -> PathBuf {
    static COUNT: AtomicUsize = AtomicUsize::new(0);
    let name = format!("{}_{}", source.replace('.', "_"), COUNT.fetch_add(1, Ordering::Relaxed));
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let source = Path::new(CRATE).join("tests/programs").join(source);
    let is_c = source.extension() == Some(OsStr::new("c"));
    let mut compile = Command::new(if is_c { "gcc" } else { "g++" });
    compile.args(if is_c {
        ["-std=c11", "-D_GNU_SOURCE"]
    } else {
        ["-std=c++17", "-D_GNU_SOURCE"]
    });
    compile
        .args(["-O1", "-g", "-Wall"])
        .args(flags)
        .arg("-o")
        .arg(&program)
        .arg(source)
        .args(["-lleveldb", "-pthread"]);
    succeeded(compile);
    program
}
