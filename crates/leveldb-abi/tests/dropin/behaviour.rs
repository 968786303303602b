//! What programs see: transcripts of the same program with either library, and files that both look at.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::libraries::{Libraries, compiled, libraries, succeeded};

/// What `LD_LIBRARY_PATH` is for our library.
fn ours(libraries: &Libraries) -> PathBuf {
    let dir = libraries.ours.join("lib");
    assert!(dir.join("libleveldb.so.1d").exists());
    dir
}

/// What `program` prints with one of the libraries, given some arguments.
fn printed(program: &Path, library: Option<&Path>, arguments: &[&Path]) -> String {
    let mut run = Command::new(program);
    run.args(arguments).env_remove("LD_LIBRARY_PATH");
    if let Some(library) = library {
        run.env("LD_LIBRARY_PATH", library);
    }
    String::from_utf8_lossy(&succeeded(run).stdout).into_owned()
}

/// What `program` prints with one of the libraries, in a fresh directory.
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
fn files_are_dumped_as_the_same_text() {
    let Some(libraries) = libraries() else { return };
    let (fill, dump) = (compiled("fill.cc", &[]), compiled("dump.cc", &[]));
    for writer in [None, Some(ours(libraries))] {
        let dir = tempfile::tempdir().unwrap();
        printed(&fill, writer.as_deref(), &[dir.path()]);
        let mut files: Vec<_> = fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().path()).collect();
        files.sort();
        let files: Vec<&Path> = files.iter().map(|file| file.as_path()).collect();
        let theirs = printed(&dump, None, &files);
        assert!(theirs.contains("AddFile: ") && theirs.contains("  del '") && theirs.contains(" : val => '"));
        assert_same(&theirs, &printed(&dump, Some(&ours(libraries)), &files));
    }
}
