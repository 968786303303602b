//! Observable behaviour: transcripts of the same program with either library, and files that both
//! look at.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::libraries::{CRATE, Libraries, compiled, libraries, skip, succeeded};

/// `LD_LIBRARY_PATH` for the drop-in.
fn ours(libraries: &Libraries) -> PathBuf {
    let dir = libraries.ours.join("lib");
    assert!(dir.join("libleveldb.so.1d").exists());
    dir
}

/// The output of `program` with one of the libraries, given some arguments.
fn printed(program: &Path, library: Option<&Path>, arguments: &[&Path]) -> String {
    let mut run = Command::new(program);
    run.args(arguments).env_remove("LD_LIBRARY_PATH");
    if let Some(library) = library {
        run.env("LD_LIBRARY_PATH", library);
    }
    String::from_utf8_lossy(&succeeded(run).stdout).into_owned()
}

/// The output of `program` with one of the libraries, in a fresh directory.
pub(crate) fn transcript(program: &Path, library: Option<&Path>) -> String {
    let dir = tempfile::tempdir().unwrap();
    printed(program, library, &[dir.path()])
}

fn assert_same(theirs: &str, ours: &str) {
    let differing = theirs.lines().zip(ours.lines()).find(|(theirs, ours)| theirs != ours);
    assert_eq!(differing, None, "LevelDB's line, and ours");
    assert_eq!(theirs, ours);
}

fn compare_transcripts(source: &str) {
    let Some(libraries) = libraries() else { return };
    let program = compiled(source, &[]);
    assert_same(&transcript(&program, None), &transcript(&program, Some(&ours(libraries))));
}

#[test]
fn a_c_program_prints_the_same() {
    compare_transcripts("transcript.c");
}

#[test]
fn a_cxx_program_prints_the_same() {
    compare_transcripts("transcript.cc");
}

#[test]
fn options_and_components_mean_the_same() {
    compare_transcripts("semantics.cc");
}

#[test]
fn pointers_to_nothing_and_exceptions_of_callbacks_are_leveldbs() {
    compare_transcripts("edges.cc");
}

#[test]
fn what_leveldbs_own_tests_ask_of_environments_holds() {
    compare_transcripts("environment.cc");
}

#[test]
fn names_that_are_not_utf8_are_exchanged_with_leveldb() {
    let Some(libraries) = libraries() else { return };
    let (program, ours) = (compiled("names.cc", &[]), ours(libraries));
    for first in [None, Some(ours.as_path())] {
        let dir = tempfile::tempdir().unwrap();
        let db = dir.path().join("db");
        let second = if first.is_none() { Some(ours.as_path()) } else { None };
        let open = |library, key: &str| printed(&program, library, &[&db, Path::new(key)]);
        assert_eq!(open(first, "first"), "OK, 1 keys, filter not asked\n");
        assert_eq!(open(second, "second"), "OK, 2 keys, filter asked\n");
        assert_eq!(open(first, "third"), "OK, 3 keys, filter asked\n");
    }
}

/// Programs are looked for faults of their own in this way.
#[test]
fn a_program_runs_under_valgrind_without_a_complaint() {
    let Some(libraries) = libraries() else { return };
    if Command::new("valgrind").arg("--version").output().is_err() {
        return skip("there is no valgrind");
    }
    let (program, library) = (compiled("transcript.c", &[]), ours(libraries));
    let dir = tempfile::tempdir().unwrap();
    let mut run = Command::new("valgrind");
    run.args(["-q", "--error-exitcode=9"]);
    run.arg(&program).arg(dir.path()).env("LD_LIBRARY_PATH", &library);
    let printed = String::from_utf8_lossy(&succeeded(run).stdout).into_owned();
    assert_same(&transcript(&program, Some(&library)), &printed);
}

#[test]
fn an_environment_that_fails_now_and_then_loses_nothing() {
    let Some(libraries) = libraries() else { return };
    assert_eq!(transcript(&compiled("failing_env.cc", &[]), Some(&ours(libraries))), "survived\n");
}

/// Whether it is no table that a close broke off: LevelDB leaves such behind, and the two have
/// other words for them.
fn is_finished(file: &Path) -> bool {
    const MAGIC: [u8; 8] = [0x57, 0xfb, 0x80, 0x8b, 0x24, 0x75, 0x47, 0xdb];
    file.extension() != Some(OsStr::new("ldb")) || fs::read(file).unwrap().ends_with(&MAGIC)
}

#[test]
fn files_are_dumped_as_the_same_text() {
    let Some(libraries) = libraries() else { return };
    let (fill, dump) = (compiled("fill.cc", &[]), compiled("dump.cc", &[]));
    for writer in [None, Some(ours(libraries))] {
        let dir = tempfile::tempdir().unwrap();
        printed(&fill, writer.as_deref(), &[dir.path()]);
        let mut files: Vec<_> =
            fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().path()).collect();
        files.sort();
        files.retain(|file| is_finished(file));
        let files: Vec<&Path> = files.iter().map(|file| file.as_path()).collect();
        let theirs = printed(&dump, None, &files);
        assert!(
            theirs.contains("AddFile: ")
                && theirs.contains("  del '")
                && theirs.contains(" : val => '")
        );
        assert_same(&theirs, &printed(&dump, Some(&ours(libraries)), &files));
    }
}

#[test]
fn what_terrace_offers_beyond_leveldb() {
    let Some(libraries) = libraries() else { return };
    let include = Path::new(CRATE).join("include");
    // Linked with our library: Debian's does not have the functions.
    let lib = ours(libraries);
    let flags = [
        OsStr::new("-Wextra"),
        OsStr::new("-I"),
        include.as_os_str(),
        OsStr::new("-L"),
        lib.as_os_str(),
    ];
    let program = compiled("extras.c", &flags);
    assert_eq!(transcript(&program, Some(&lib)), "done\n");
    // Every function is used, and nothing is declared that is not exported.
    let header = fs::read_to_string(include.join("terrace/c.h")).unwrap();
    let test = fs::read_to_string(Path::new(CRATE).join("tests/programs/extras.c")).unwrap();
    let exports = fs::read_to_string(Path::new(CRATE).join("exports.map")).unwrap();
    let declared = functions(&header);
    assert!(declared.len() > 20);
    assert_eq!(declared, functions(&test));
    assert_eq!(declared, functions(&exports.replace(';', "(")));
}

/// The functions of `terrace/c.h` that a text names.
fn functions(text: &str) -> BTreeSet<&str> {
    let words = text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_' || c == '('));
    words
        .flat_map(|word| word.split_inclusive('('))
        .filter_map(|word| word.strip_suffix('(').filter(|name| name.starts_with("terrace_")))
        .collect()
}
