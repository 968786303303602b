//! Programs in Go: the tool that builds them, and what they are made of.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::{env, fs};

/// The first version of the tool that can read what newer ones write into `go.mod`, and fetches a
/// newer one by itself where that is allowed.
const SWITCHES_VERSIONS: u32 = 21;

/// The tool: `$GO`, or `go`.
fn tool() -> String {
    env::var("GO").unwrap_or_else(|_| "go".to_owned())
}

/// The version of the tool, as `go1.25.3`.
pub(super) fn version() -> Result<String, String> {
    // Away from every module: the tool would look for the version that its `go.mod` asks for.
    let output = Command::new(tool())
        .args(["env", "GOVERSION"])
        .current_dir("/")
        .stdin(Stdio::null())
        .output()
        .map_err(|e| format!("there is no Go ({}: {e}); apt-get install golang-go", tool()))?;
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// Missing requirements of a package, as far as they show without building.
pub(super) fn lacking(package: &Path) -> Result<(), String> {
    let module = module(package)?.join("go.mod");
    let text = fs::read_to_string(&module).map_err(|e| format!("{}: {e}", module.display()))?;
    let version = version()?;
    let wanted = text.lines().find_map(|line| line.strip_prefix("go ")).unwrap_or_default();
    if is_too_old(&version, wanted) {
        return Err(format!("{version} is too old, its module wants Go {wanted}"));
    }
    Ok(())
}

fn is_too_old(version: &str, wanted: &str) -> bool {
    let minor = |text: &str| text.split('.').nth(1).and_then(|minor| minor.parse::<u32>().ok());
    match (minor(version), minor(wanted)) {
        (Some(version), Some(wanted)) => version < wanted.min(SWITCHES_VERSIONS),
        _ => false,
    }
}

/// The directory of the module that a package belongs to.
pub(super) fn module(package: &Path) -> Result<PathBuf, String> {
    let problem = |e: &dyn std::fmt::Display| format!("{}: {e}", package.display());
    let package = package.canonicalize().map_err(|e| problem(&e))?;
    package
        .ancestors()
        .find(|dir| dir.join("go.mod").is_file())
        .map(Path::to_owned)
        .ok_or_else(|| problem(&"there is no go.mod here or above"))
}

/// The directories of a module, without those of other engines.
pub(super) fn directories(module: &Path, package: &Path) -> Vec<PathBuf> {
    let mut directories = vec![module.to_owned(), package.to_owned()];
    let mut at = 0;
    while let Some(dir) = directories.get(at) {
        let below = fs::read_dir(dir).into_iter().flatten().flatten().map(|entry| entry.path());
        let below: Vec<PathBuf> =
            below.filter(|path| path.is_dir() && !path.join("engine.toml").is_file()).collect();
        directories.extend(below);
        at += 1;
    }
    directories
}

/// The command that builds a package into `path`. Modules that the machine lacks are fetched. What
/// they have in C is compiled without assertions, as the programs in C++ are.
pub(super) fn build(package: &Path, path: &Path) -> Command {
    let mut command = Command::new(tool());
    command.args(["build", "-buildvcs=false", "-o"]).arg(path).arg(".").current_dir(package);
    if env::var_os("CGO_CFLAGS").is_none() {
        command.env("CGO_CFLAGS", "-O2 -DNDEBUG");
    }
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_tools_that_cannot_help_themselves_are_too_old() {
        assert!(is_too_old("go1.19.8", "1.25.0"));
        assert!(is_too_old("go1.17", "1.18"));
        for version in ["go1.21.0", "go1.24.1", "go1.25.0", "go1.26.8", "devel +abc"] {
            assert!(!is_too_old(version, "1.25.0"), "{version}");
        }
        assert!(!is_too_old("go1.19.8", ""));
    }
}
