//! Build script of the engine programs: tells the program `lab-NAME` which version of NAME it is
//! built with.

use std::path::Path;
use std::{env, fs};

fn main() {
    let lock =
        Path::new(&env::var("CARGO_MANIFEST_DIR").expect("set by Cargo")).join("../../Cargo.lock");
    println!("cargo::rerun-if-changed={}", lock.display());
    let package = env::var("CARGO_PKG_NAME").expect("set by Cargo");
    let engine = package.strip_prefix("lab-").expect("packages are named lab-ENGINE");
    let text = fs::read_to_string(&lock).expect("the workspace has a Cargo.lock");
    let entry = format!("name = \"{engine}\"\nversion = \"");
    let (_, rest) = text.split_once(&entry).expect("Cargo.lock names the engine");
    let (version, _) = rest.split_once('"').expect("Cargo.lock is well formed");
    println!("cargo::rustc-env=LAB_ENGINE_VERSION={version}");
}
