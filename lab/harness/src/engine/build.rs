//! Building engine programs.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::SystemTime;
use std::{env, fs};

use super::go;
use super::manifest::Manifest;
use super::program::Program;

/// Builds programs into a cache. Each is built at most once in a process.
#[derive(Debug)]
pub(super) struct Builder {
    lab: PathBuf,
    cache: PathBuf,
    built: RefCell<BTreeMap<String, Result<PathBuf, String>>>,
}

impl Builder {
    pub(super) fn new(lab: &Path, cache: &Path) -> Builder {
        Builder { lab: lab.to_owned(), cache: cache.to_owned(), built: RefCell::default() }
    }

    /// The program of a variant; the error says why it cannot be had.
    pub(super) fn program(
        &self,
        manifest: &Manifest,
        all: &[Manifest],
        variant: &str,
    ) -> Result<Program, String> {
        let library_path = self.library_path(manifest)?;
        let maker = maker(manifest, all)?;
        let known = self.built.borrow().get(&maker.name).cloned();
        let path = match known {
            Some(path) => path?,
            None => {
                let path = self.build(maker, all);
                self.built.borrow_mut().insert(maker.name.clone(), path.clone());
                path?
            }
        };
        Ok(Program { path, arguments: Vec::new(), library_path, variant: variant.to_owned() })
    }

    /// Missing requirements, as far as they show without building.
    pub(super) fn lacking(&self, manifest: &Manifest, all: &[Manifest]) -> Option<String> {
        if let Some(reason) = &manifest.missing {
            return Some(reason.clone());
        }
        if let Err(reason) = self.library_path(manifest) {
            return Some(reason);
        }
        let maker = match maker(manifest, all) {
            Ok(maker) => maker,
            Err(reason) => return Some(reason),
        };
        if let Some(package) = &maker.go {
            return go::lacking(&maker.dir.join(package)).err();
        }
        if !is_compiled(maker) {
            return None;
        }
        self.prefix(maker).and_then(|prefix| probe(maker, prefix.as_deref())).err()
    }

    /// Where the library lies that `tools/build-peers` makes.
    fn prefix(&self, manifest: &Manifest) -> Result<Option<PathBuf>, String> {
        let Some(built) = &manifest.built else { return Ok(None) };
        let root = self.lab.parent().unwrap_or(Path::new("."));
        let path = root.join(built);
        if !path.join("lib").is_dir() {
            // Engines that are like another one share its library.
            let name = built.rsplit('/').next().unwrap_or(built);
            return Err(format!("{built} is missing; `tools/build-peers {name}` makes it"));
        }
        Ok(Some(path))
    }

    /// What `tools/build-peers` compiled an engine's library with.
    pub(super) fn compiled_with(&self, manifest: &Manifest) -> Option<String> {
        let flags = self.prefix(manifest).ok()??.join("flags");
        let text = fs::read_to_string(flags).ok()?;
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        (!text.is_empty()).then_some(text)
    }

    fn library_path(&self, manifest: &Manifest) -> Result<Option<PathBuf>, String> {
        let Some(path) = &manifest.library_path else { return Ok(None) };
        let root = self.lab.parent().unwrap_or(Path::new("."));
        let path = root.join(path);
        if !path.is_dir() {
            return Err(format!("{} is missing; tools/build-dropin makes it", path.display()));
        }
        Ok(Some(path))
    }

    fn build(&self, manifest: &Manifest, all: &[Manifest]) -> Result<PathBuf, String> {
        if let Some(reason) = self.lacking(manifest, all) {
            return Err(reason);
        }
        if let Some(script) = &manifest.script {
            let path = manifest.dir.join(script);
            return path.canonicalize().map_err(|e| format!("{}: {e}", path.display()));
        }
        if let Some(package) = &manifest.go {
            return self.go(manifest, &manifest.dir.join(package));
        }
        match &manifest.cargo {
            Some(binary) => self.cargo(binary),
            None => self.compile(manifest, all),
        }
    }

    fn go(&self, manifest: &Manifest, package: &Path) -> Result<PathBuf, String> {
        let module = go::module(package)?;
        let path = self.output(&manifest.name)?;
        let command = go::build(package, &path);
        let directories = go::directories(&module, package);
        let not_run = |error: &io::Error| format!("go: {error}");
        self.make(&manifest.name, command, &directories, go::version()?.as_str(), not_run)
    }

    /// Where a program is built: an absolute path.
    fn output(&self, name: &str) -> Result<PathBuf, String> {
        let problem = |e| format!("{}: {e}", self.cache.display());
        fs::create_dir_all(&self.cache).map_err(problem)?;
        Ok(self.cache.canonicalize().map_err(problem)?.join(name))
    }

    /// Runs a command that builds a program, unless it was built by the same command and tools
    /// after the last change in the directories. `not_run` says why it could not be run.
    fn make(
        &self,
        name: &str,
        mut command: Command,
        directories: &[PathBuf],
        tools: &str,
        not_run: impl Fn(&io::Error) -> String,
    ) -> Result<PathBuf, String> {
        let path = self.output(name)?;
        let line = format!("{command:?}{}{tools}\n", if tools.is_empty() { "" } else { " " });
        let record = self.cache.join(format!("{name}.command"));
        let same_command = fs::read_to_string(&record).is_ok_and(|old| old == line);
        if !same_command || is_older(&path, directories) {
            let output = command.stdin(Stdio::null()).output().map_err(|e| not_run(&e))?;
            if !output.status.success() {
                let _ = fs::remove_file(&record);
                return Err(self.failed(name, &output.stderr));
            }
            fs::write(&record, line).map_err(|e| format!("{}: {e}", record.display()))?;
        }
        path.canonicalize().map_err(|e| format!("{}: {e}", path.display()))
    }

    fn cargo(&self, binary: &str) -> Result<PathBuf, String> {
        let cargo = env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
        // Its package alone, so that what other engines need does not have to be there.
        let arguments = [
            "build",
            "--release",
            "--quiet",
            "--package",
            binary,
            "--bin",
            binary,
            "--manifest-path",
        ];
        let output = Command::new(&cargo)
            .args(arguments)
            .arg(self.lab.join("Cargo.toml"))
            .stdin(Stdio::null())
            .output()
            .map_err(|e| format!("cargo does not start ({cargo}: {e})"))?;
        if !output.status.success() {
            return Err(self.failed(binary, &output.stderr));
        }
        let target =
            env::var_os("CARGO_TARGET_DIR").map_or_else(|| self.lab.join("target"), PathBuf::from);
        let path = target.join("release").join(binary);
        path.canonicalize().map_err(|e| format!("{}: {e}", path.display()))
    }

    fn compile(&self, manifest: &Manifest, all: &[Manifest]) -> Result<PathBuf, String> {
        let sources = sources(manifest, all)?;
        let prefix = self.prefix(manifest)?;
        let path = self.output(&manifest.name)?;
        let mut command = Command::new(compiler());
        command.args(["-O2", "-DNDEBUG", "-std=c++20", "-o"]).arg(&path).args(&sources);
        if let Some(prefix) = &prefix {
            // The place in the cache, so that another build of the library is another command.
            let prefix = prefix.canonicalize().map_err(|e| format!("{}: {e}", prefix.display()))?;
            command.arg("-I").arg(prefix.join("include")).arg("-L").arg(prefix.join("lib"));
        }
        command.args(&manifest.libraries).arg("-pthread");
        let mut directories: Vec<PathBuf> =
            sources.iter().filter_map(|source| source.parent()).map(Path::to_owned).collect();
        directories.extend([manifest.dir.clone(), self.lab.join("engines/common")]);
        self.make(&manifest.name, command, &directories, "", no_compiler)
    }

    /// Why a build failed: its first error, and where all of them are.
    fn failed(&self, name: &str, output: &[u8]) -> String {
        let text = String::from_utf8_lossy(output);
        // Go names the package first, and what it fetches.
        let is_message = |line: &&str| !line.starts_with("# ") && !line.contains("downloading");
        let first = text
            .lines()
            .find(|line| line.contains("error:") || line.contains("error["))
            .or(text.lines().find(is_message))
            .unwrap_or("no message");
        // Cargo says last what a failure goes back to: a registry that cannot be reached.
        let cause = text.rsplit_once("Caused by:\n").and_then(|(_, rest)| rest.lines().next());
        let cause = cause.map(|cause| format!(": {}", cause.trim())).unwrap_or_default();
        let log = self.cache.join(format!("{name}.errors.txt"));
        let _ = fs::create_dir_all(&self.cache).and_then(|()| fs::write(&log, output));
        format!(
            "its program does not build: {}{cause} (all of it: {})",
            first.trim(),
            log.display()
        )
    }
}

/// The engine that the program belongs to: itself, unless it says otherwise.
fn maker<'a>(manifest: &'a Manifest, all: &'a [Manifest]) -> Result<&'a Manifest, String> {
    let Some(name) = &manifest.program else { return Ok(manifest) };
    all.iter()
        .find(|other| other.name == *name && other.program.is_none())
        .ok_or_else(|| format!("it runs the program of {name}, which does not exist"))
}

/// Whether it is C++ that has to be compiled.
fn is_compiled(manifest: &Manifest) -> bool {
    !manifest.sources.is_empty() || manifest.like.is_some()
}

/// The C++ files of an engine: its own, or those of the engine that it is like.
fn sources(manifest: &Manifest, all: &[Manifest]) -> Result<Vec<PathBuf>, String> {
    let owner = match &manifest.like {
        Some(name) => all
            .iter()
            .find(|other| other.name == *name && other.like.is_none())
            .ok_or_else(|| format!("it is built from the sources of {name}, which do not exist"))?,
        None => manifest,
    };
    Ok(owner.sources.iter().map(|source| owner.dir.join(source)).collect())
}

fn compiler() -> String {
    env::var("CXX").unwrap_or_else(|_| "c++".to_owned())
}

fn no_compiler(problem: &io::Error) -> String {
    format!("there is no C++ compiler ({}: {problem}); apt-get install g++, or set CXX", compiler())
}

/// Whether what a program includes is installed.
fn probe(manifest: &Manifest, prefix: Option<&Path>) -> Result<(), String> {
    if manifest.probe.is_empty() {
        return Ok(());
    }
    let flags =
        manifest.libraries.iter().filter(|flag| flag.starts_with("-I") || flag.starts_with("-D"));
    let output = Command::new(compiler())
        .args(["-E", "-x", "c++", "-include", &manifest.probe, "/dev/null"])
        .args(flags)
        .args(prefix.iter().flat_map(|prefix| ["-I".into(), prefix.join("include")]))
        .stdin(Stdio::null())
        .output()
        .map_err(|e| no_compiler(&e))?;
    if output.status.success() {
        return Ok(());
    }
    let packages = manifest.packages.join(" ");
    Err(format!(
        "{} is not installed (there is no {}); apt-get install {packages}",
        manifest.title, manifest.probe
    ))
}

/// Whether a file is missing, or older than any file in the directories.
fn is_older(path: &Path, dirs: &[PathBuf]) -> bool {
    let Ok(built) = fs::metadata(path).and_then(|metadata| metadata.modified()) else {
        return true;
    };
    dirs.iter().any(|dir| newest(dir).is_none_or(|changed| changed >= built))
}

fn newest(dir: &Path) -> Option<SystemTime> {
    let Ok(entries) = fs::read_dir(dir) else { return Some(SystemTime::UNIX_EPOCH) };
    let times = entries.map(|entry| {
        entry.and_then(|entry| entry.metadata()).and_then(|file| file.modified()).ok()
    });
    times.max().unwrap_or(Some(SystemTime::UNIX_EPOCH))
}
