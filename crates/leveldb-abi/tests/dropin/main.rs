//! The drop-in library beside Debian's `libleveldb1d`: the same symbols, the same layouts, and
//! programs that were compiled against Debian's headers print the same with either.
//!
//! Where there is no compiler or no LevelDB the tests say SKIPPED, and fail under `CI`.

mod behaviour;
mod clients;
mod faults;
mod handover;
mod installed;
mod libraries;
mod litecoin;
mod traces;

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::path::Path;
use std::process::Command;

use behaviour::transcript;
use libraries::{CRATE, compiled, libraries, skip, succeeded};

/// Names and kinds of the dynamic symbols that a library defines.
fn dynamic_symbols(library: &Path) -> BTreeSet<(String, String)> {
    let mut nm = Command::new("nm");
    nm.args(["-D", "--defined-only", "--format=posix"]).arg(library);
    let output = succeeded(nm).stdout;
    let text = String::from_utf8(output).unwrap();
    text.lines()
        .filter_map(|line| {
            let mut words = line.split(' ');
            Some((words.next()?.to_owned(), words.next()?.to_owned()))
        })
        .collect()
}

#[test]
fn exactly_leveldbs_symbols_are_exported() {
    let Some(libraries) = libraries() else { return };
    let is_public = |name: &str| {
        let prefixes = [
            "leveldb_",
            "_ZN7leveldb",
            "_ZNK7leveldb",
            "_ZTVN7leveldb",
            "_ZTSN7leveldb",
            "_ZTIN7leveldb",
        ];
        prefixes.iter().any(|prefix| name.starts_with(prefix))
    };
    let expected: BTreeSet<_> = dynamic_symbols(&libraries.debian)
        .into_iter()
        .filter(|(name, _)| is_public(name))
        .collect();
    for name in ["libleveldb.so.1", "libleveldb.so.1d"] {
        let library = libraries.ours.join("lib").join(name);
        let found: BTreeSet<_> = dynamic_symbols(&library)
            .into_iter()
            .filter(|(name, _)| !name.starts_with("terrace_"))
            .collect();
        let missing: Vec<_> = expected.difference(&found).collect();
        let surplus: Vec<_> = found.difference(&expected).collect();
        assert!(
            missing.is_empty() && surplus.is_empty(),
            "{name}: missing {missing:#?}, surplus {surplus:#?}"
        );
        let mut readelf = Command::new("readelf");
        readelf.arg("-d").arg(&library);
        let dynamic = String::from_utf8(succeeded(readelf).stdout).unwrap();
        assert!(dynamic.contains(&format!("soname: [{name}]")), "{dynamic}");
    }
}

#[test]
fn the_static_library_serves_too() {
    let Some(libraries) = libraries() else { return };
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join("transcript_static");
    let source = Path::new(CRATE).join("tests/programs/transcript.c");
    let mut compile = Command::new("gcc");
    compile
        .args(["-std=c11", "-D_GNU_SOURCE", "-O1", "-I"])
        .arg(libraries.ours.join("include"))
        .arg(source);
    compile.arg(libraries.ours.join("lib/libleveldb.a")).args([
        "-lstdc++",
        "-lpthread",
        "-ldl",
        "-lm",
        "-o",
    ]);
    compile.arg(&program);
    succeeded(compile);
    let shared = compiled("transcript.c", &[]);
    assert_eq!(transcript(&program, None), transcript(&shared, None));
    // The header declares a function that only the static library has, as with LevelDB.
    let index = Command::new("nm").arg(libraries.ours.join("lib/libleveldb.a")).output().unwrap();
    let symbols = String::from_utf8_lossy(&index.stdout).into_owned();
    assert!(symbols.contains(" T _ZN7leveldb3LogEPNS_6LoggerEPKcz\n"), "leveldb::Log");
}

#[test]
fn layouts_are_leveldbs() {
    if libraries().is_some() {
        compiled("layout.cc", &[]);
        let ours = Path::new(CRATE).join("include");
        compiled("layout.cc", &[OsStr::new("-I"), ours.as_os_str()]);
    }
}

/// The output of Python when plyvel, Debian's binary, runs `tests/programs/use_plyvel.py` with one
/// of the libraries.
fn plyvel(dir: &Path, library: Option<&Path>, part: &str) -> String {
    let mut python = Command::new("/usr/bin/python3");
    python.arg(Path::new(CRATE).join("tests/programs/use_plyvel.py")).arg(dir).arg(part);
    python.env_remove("LD_LIBRARY_PATH");
    if let Some(library) = library {
        python.env("LD_LIBRARY_PATH", library);
    }
    String::from_utf8_lossy(&succeeded(python).stdout).into_owned()
}

#[test]
fn plyvel_runs_the_same_and_hands_over_ten_times() {
    let Some(libraries) = libraries() else { return };
    let installed = Command::new("/usr/bin/python3").args(["-c", "import plyvel"]).output();
    if !installed.is_ok_and(|output| output.status.success()) {
        return skip("python3-plyvel is not installed");
    }
    let ours = libraries.ours.join("lib");
    let [first, second] = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let theirs = plyvel(first.path(), None, "everything");
    assert_eq!(theirs, plyvel(second.path(), Some(&ours), "everything"));
    assert!(theirs.contains("done"), "{theirs}");
    // One database, by turns: each adds to it and reads all that is there.
    let shared = tempfile::tempdir().unwrap();
    for round in 0..10 {
        let library = (round % 2 == 1).then_some(ours.as_path());
        let printed = plyvel(shared.path(), library, &format!("round {round}"));
        assert_eq!(printed, format!("{} entries\n", (round + 1) * 1000), "round {round}");
    }
}

#[test]
fn hostile_callers_under_the_address_sanitizer() {
    let Some(libraries) = libraries() else { return };
    let program = compiled("hostile.cc", &[OsStr::new("-fsanitize=address,undefined")]);
    assert_eq!(transcript(&program, Some(&libraries.ours.join("lib"))), "survived\n");
}
