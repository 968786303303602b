//! The engine programs: found by their `engine.toml`, built, and asked to describe themselves.
//!
//! 1. A column that cannot be had is kept, with the reason; nothing here ends a run.
//! 2. Programs are built into a cache and only again when a file that they are made of has changed.

mod build;
mod go;
mod inspect;
mod manifest;
mod program;

use std::path::Path;

use serde::Deserialize;

use crate::run;
use build::Builder;
pub use inspect::Build;
pub use manifest::{Column, Manifest, discover};
pub use program::Program;

/// A column made ready.
#[derive(Clone, Debug)]
pub struct Ready {
    /// The column.
    pub column: Column,
    /// The report's text about it; `missing` is set if it cannot be run.
    pub about: run::Engine,
    /// How it is run; `None` if it cannot be.
    pub program: Option<Program>,
    /// Benchmarks that it cannot run, and why.
    pub unsupported: std::collections::BTreeMap<String, String>,
}

/// The engines that there are.
#[derive(Debug)]
pub struct Engines {
    manifests: Vec<Manifest>,
    builder: Builder,
}

impl Engines {
    /// The engines of the lab in `lab`, with their programs built in `cache`.
    ///
    /// # Errors
    /// Names the directory that cannot be read.
    pub fn find(lab: &Path, cache: &Path) -> Result<Engines, String> {
        Ok(Engines { manifests: discover(lab)?, builder: Builder::new(lab, cache) })
    }

    /// Every column, Terrace first.
    #[must_use]
    pub fn columns(&self) -> Vec<Column> {
        self.manifests.iter().flat_map(Manifest::columns).collect()
    }

    /// The columns with the given ids, in the order of all. `name*` stands for an engine with all
    /// its variants and builds, `all` for every column but those that have to be asked for. With
    /// `lenient` an id that does not exist is passed over.
    ///
    /// # Errors
    /// Names the id that does not exist, and those that do.
    pub fn select(&self, ids: &[String], lenient: bool) -> Result<Vec<Column>, String> {
        let all = self.columns();
        let matches = |id: &str, column: &Column| match id.strip_suffix('*') {
            Some(name) => column.engine == name || column.settings_of == name,
            None => id == "all" && !column.asked_for || id == column.id,
        };
        if let Some(unknown) =
            ids.iter().find(|id| !lenient && !all.iter().any(|column| matches(id, column)))
        {
            let known: Vec<&str> = all.iter().map(|column| column.id.as_str()).collect();
            return Err(format!("there is no engine {unknown:?}, only {}", known.join(", ")));
        }
        Ok(all
            .into_iter()
            .filter(|column| match ids {
                [] => !column.asked_for,
                ids => ids.iter().any(|id| matches(id, column)),
            })
            .collect())
    }

    /// Why an engine cannot be run here; `None` if nothing is known to be missing. Quick: nothing
    /// is built, and what needs no building is asked to describe itself.
    #[must_use]
    pub fn lacking(&self, engine: &str) -> Option<String> {
        let manifest = self.manifests.iter().find(|manifest| manifest.name == engine)?;
        self.builder.lacking(manifest, &self.manifests).or_else(|| {
            let column = manifest.columns().into_iter().next();
            self.prepare(&column.filter(|_| manifest.script.is_some())?).about.missing
        })
    }

    /// Builds a column's program, if need be, and asks it to describe itself.
    #[must_use]
    pub fn prepare(&self, column: &Column) -> Ready {
        let built = self
            .manifests
            .iter()
            .find(|manifest| manifest.name == column.engine)
            .ok_or_else(|| "it has no engine.toml".to_owned())
            .and_then(|manifest| {
                Ok((self.builder.program(manifest, &self.manifests, &column.variant)?, manifest))
            });
        let described = built.and_then(|(program, manifest)| {
            let description = Description::of(&program)?;
            Ok((program, description, manifest))
        });
        match described {
            Ok((program, description, manifest)) => {
                let mut about = description.about(column, manifest.weaker(&column.variant));
                // Another engine's program does not know what it is run as.
                if manifest.program.is_some() || manifest.like.is_some() {
                    about.title = column.title.clone();
                }
                if let Some(settings) = &manifest.settings {
                    about.settings.clone_from(settings);
                    about.limits.clear();
                }
                about.build = Build::of(&program).map(|build| build.in_words());
                if let (Some(build), Some(flags)) =
                    (&mut about.build, self.builder.compiled_with(manifest))
                {
                    build.push_str(&format!("; compiled with {flags}"));
                }
                Ready {
                    column: column.clone(),
                    about,
                    program: Some(program),
                    unsupported: description.unsupported,
                }
            }
            Err(reason) => {
                let (id, title, missing) = (column.id.clone(), column.title.clone(), Some(reason));
                let about = run::Engine { id, title, missing, ..run::Engine::default() };
                Ready {
                    column: column.clone(),
                    about,
                    program: None,
                    unsupported: Default::default(),
                }
            }
        }
    }
}

/// The output of `--describe`.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Description {
    title: String,
    version: String,
    variants: Vec<Variant>,
    asynchronous: String,
    synchronous: String,
    settings: String,
    limits: Vec<String>,
    weaker: Option<String>,
    unsupported: std::collections::BTreeMap<String, String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Variant {
    name: String,
    title: String,
    weaker: Option<String>,
}

impl Description {
    fn of(program: &Program) -> Result<Description, String> {
        let shown = program.path.display();
        let output =
            program.command().arg("--describe").output().map_err(|e| format!("{shown}: {e}"))?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr);
            return Err(format!(
                "{shown} --describe: {}: {}",
                output.status,
                said.lines().next().unwrap_or("")
            ));
        }
        serde_json::from_slice(&output.stdout)
            .map_err(|e| format!("{shown} --describe: not a description: {e}"))
    }

    fn about(&self, column: &Column, weaker: Option<String>) -> run::Engine {
        let variant = self.variants.iter().find(|variant| variant.name == column.variant);
        let title = variant.map(|variant| &variant.title).filter(|title| !title.is_empty());
        run::Engine {
            id: column.id.clone(),
            title: title
                .or(Some(&self.title))
                .filter(|title| !title.is_empty())
                .unwrap_or(&column.title)
                .clone(),
            version: self.version.clone(),
            asynchronous: self.asynchronous.clone(),
            synchronous: self.synchronous.clone(),
            settings: self.settings.clone(),
            limits: self.limits.clone(),
            weaker: variant
                .and_then(|variant| variant.weaker.clone())
                .or(weaker)
                .or(self.weaker.clone()),
            build: None,
            missing: None,
            disqualified: None,
        }
    }
}
