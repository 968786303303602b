//! `engine.toml`: what an engine program is made of.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde::Deserialize;

/// Columns that stand first, in this order; the others follow by name.
const FIRST: [&str; 4] = ["terrace", "dropin", "leveldb", "leveldb-debian"];

/// A column: an engine, or a variant of one.
#[derive(Clone, Debug)]
pub struct Column {
    /// `engine` or `engine-variant`.
    pub id: String,
    /// The engine's name, by which a suite may set something for it alone.
    pub engine: String,
    /// The engine whose settings in a suite hold for it: its own name, or that of
    /// [`Manifest::like`].
    pub settings_of: String,
    /// The variant; empty for the engine as such.
    pub variant: String,
    /// For readers, until the program itself says better.
    pub title: String,
    /// Whether it is run only where its name is given.
    pub asked_for: bool,
}

/// An `engine.toml`. One of `sources`, `like`, `cargo`, `go`, `program`, `script` and `missing`
/// says what the program is.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Manifest {
    /// Where it lies.
    #[serde(skip)]
    pub dir: PathBuf,
    /// The directory's name, unless it says otherwise.
    pub name: String,
    /// For readers.
    pub title: String,
    /// C++ files, from its directory.
    pub sources: Vec<String>,
    /// The name of another engine, from whose sources it is built with other libraries.
    pub like: Option<String>,
    /// Flags for the compiler, as `-lleveldb`.
    pub libraries: Vec<String>,
    /// Where `tools/build-peers` puts its library, from the repository's root: a directory with
    /// `include` and `lib`, which are looked into first.
    pub built: Option<String>,
    /// Debian packages that it needs.
    pub packages: Vec<String>,
    /// A header that tells whether they are installed.
    pub probe: String,
    /// How it is set up, in place of what its program says.
    pub settings: Option<String>,
    /// Whether it is run only where its name is given: not by `all`, nor by default.
    pub asked_for: bool,
    /// Columns of their own.
    pub variants: Vec<String>,
    /// A binary of the lab's workspace.
    pub cargo: Option<String>,
    /// A directory with a main package in Go, from its own; `go.mod` is there or in a directory
    /// above.
    pub go: Option<String>,
    /// The name of another engine, whose program it is.
    pub program: Option<String>,
    /// Where the program finds its libraries, from the repository's root.
    pub library_path: Option<String>,
    /// A program that needs no building, from its directory.
    pub script: Option<String>,
    /// Why it cannot be had.
    pub missing: Option<String>,
    /// Why an asynchronous write promises less than to have reached the operating system, and to be
    /// what a crash of the machine costs at most: for all variants, or by name.
    weaker: Weaker,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
enum Weaker {
    All(String),
    Variants(BTreeMap<String, String>),
}

impl Default for Weaker {
    fn default() -> Self {
        Weaker::Variants(BTreeMap::new())
    }
}

impl Manifest {
    fn load(path: &Path) -> Result<Manifest, String> {
        let problem = |e: &dyn std::fmt::Display| format!("{}: {e}", path.display());
        let text = fs::read_to_string(path).map_err(|e| problem(&e))?;
        let mut manifest: Manifest = toml::from_str(&text).map_err(|e| problem(&e))?;
        manifest.dir = path.parent().unwrap_or(Path::new("")).to_owned();
        if manifest.name.is_empty() {
            manifest.name = name_of(&manifest.dir);
        }
        if manifest.title.is_empty() {
            manifest.title = manifest.name.clone();
        }
        let kinds = [
            !manifest.sources.is_empty(),
            manifest.like.is_some(),
            manifest.cargo.is_some(),
            manifest.go.is_some(),
            manifest.program.is_some(),
            manifest.script.is_some(),
            manifest.missing.is_some(),
        ];
        if kinds.iter().filter(|given| **given).count() != 1 {
            let one_of = "sources, like, cargo, go, program, script and missing";
            return Err(problem(&format!("it has to have exactly one of {one_of}")));
        }
        Ok(manifest)
    }

    /// In place of a file that cannot be read, so that the other engines can be run.
    fn broken(path: &Path, reason: String) -> Manifest {
        let dir = path.parent().unwrap_or(Path::new("")).to_owned();
        let name = name_of(&dir);
        Manifest { dir, title: name.clone(), name, missing: Some(reason), ..Manifest::default() }
    }

    /// Its columns.
    #[must_use]
    pub fn columns(&self) -> Vec<Column> {
        let column = |variant: &str| {
            let (id, title) = match variant {
                "" => (self.name.clone(), self.title.clone()),
                variant => {
                    (format!("{}-{variant}", self.name), format!("{}, {variant}", self.title))
                }
            };
            Column {
                id,
                engine: self.name.clone(),
                settings_of: self.like.clone().unwrap_or_else(|| self.name.clone()),
                variant: variant.to_owned(),
                title,
                asked_for: self.asked_for,
            }
        };
        match self.variants.as_slice() {
            [] => vec![column("")],
            variants => variants.iter().map(|variant| column(variant)).collect(),
        }
    }

    /// Why a variant's asynchronous write promises less than others.
    pub(super) fn weaker(&self, variant: &str) -> Option<String> {
        match &self.weaker {
            Weaker::All(reason) => Some(reason.clone()),
            Weaker::Variants(reasons) => reasons.get(variant).cloned(),
        }
    }
}

fn name_of(dir: &Path) -> String {
    dir.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned())
}

/// All engines of the lab in `lab`: `engines/*/engine.toml`, and the same in `engines/rust` and
/// `engines/go`. One whose file cannot be read, or says what nothing knows, cannot be had.
///
/// # Errors
/// Names the directory that cannot be read.
pub fn discover(lab: &Path) -> Result<Vec<Manifest>, String> {
    let mut manifests = Vec::new();
    for dir in ["engines", "engines/rust", "engines/go"].map(|dir| lab.join(dir)) {
        if !dir.is_dir() {
            continue;
        }
        let entries = fs::read_dir(&dir).map_err(|e| format!("{}: {e}", dir.display()))?;
        for entry in entries {
            let path =
                entry.map_err(|e| format!("{}: {e}", dir.display()))?.path().join("engine.toml");
            if path.is_file() {
                let broken = |reason| Manifest::broken(&path, reason);
                manifests.push(Manifest::load(&path).unwrap_or_else(broken));
            }
        }
    }
    if manifests.is_empty() {
        return Err(format!("{}: there is no engine here", lab.join("engines").display()));
    }
    // Engines without a program come last.
    manifests.sort_by_key(|manifest| {
        let place = FIRST.iter().position(|name| *name == manifest.name).unwrap_or(FIRST.len());
        (manifest.missing.is_some(), place, manifest.name.clone())
    });
    Ok(manifests)
}
