//! One program for all fuzz targets: `TERRACE_FUZZ_TARGET` names one. Made and run by `tools/fuzz`.
//!
//! `TERRACE_FUZZ_SEEDS` names a directory instead: examples for every target are written there, and
//! the program ends.

#![no_main]

mod seeds;
#[path = "../../crates/leveldb-abi/tests/sequences/mod.rs"]
mod sequence;

use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use terrace::fuzzing::TARGETS;

/// The chosen target.
static RUN: LazyLock<fn(&[u8])> = LazyLock::new(|| {
    if let Some(dir) = std::env::var_os("TERRACE_FUZZ_SEEDS") {
        seeds::write(Path::new(&dir));
        std::process::exit(0);
    }
    let name = std::env::var("TERRACE_FUZZ_TARGET").unwrap_or_default();
    if name == "c-api" {
        return |data| sequence::run(data, &PLACE);
    }
    match TARGETS.iter().find(|target| target.name == name) {
        Some(target) => target.run,
        None => panic!("TERRACE_FUZZ_TARGET is {name:?}, which is no target"),
    }
});

/// The directory of databases on disk; the caller removes it.
static PLACE: LazyLock<PathBuf> =
    LazyLock::new(|| std::env::temp_dir().join(format!("terrace-fuzz-{}", std::process::id())));

libfuzzer_sys::fuzz_target!(init: { LazyLock::force(&RUN); }, |data: &[u8]| RUN(data));
