//! Where the raw data of a suite lie, as links from the page.
//!
//! Invariants:
//! 1. A link is relative, so that a directory of results can be moved or served as a whole.

use std::path::{Path, PathBuf};

use crate::run::{Measurements, Run};

/// A suite for a page of several: its run, and the directories that its raw data are in.
#[derive(Clone, Debug)]
pub struct Source {
    /// The run's description.
    pub run: Run,
    /// The run's measurements.
    pub measurements: Measurements,
    /// The directories; more than one if runs were pooled.
    pub paths: Vec<PathBuf>,
}

/// Links to directories, each ending in a slash, or empty for the page's own.
pub(crate) fn links(paths: &[PathBuf], dir: &Path) -> Vec<String> {
    paths.iter().map(|path| link(path, dir)).collect()
}

/// The way from a page in `dir` to `path`, as a link.
fn link(path: &Path, dir: &Path) -> String {
    let absolute = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let (path, dir) = (absolute(path), absolute(dir));
    let common = path.components().zip(dir.components()).take_while(|(a, b)| a == b).count();
    let up = dir.components().skip(common).map(|_| "..".to_owned());
    let down =
        path.components().skip(common).map(|part| encoded(&part.as_os_str().to_string_lossy()));
    up.chain(down).map(|part| part + "/").collect()
}

/// A name as a part of an address.
fn encoded(name: &str) -> String {
    name.bytes()
        .map(|byte| match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => {
                char::from(byte).to_string()
            }
            byte => format!("%{byte:02X}"),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_lead_from_the_page_to_the_data() {
        let link = |path, dir| link(Path::new(path), Path::new(dir));
        assert_eq!(link("/none/a", "/none/a"), "");
        assert_eq!(link("/none/a/run 1", "/none/b"), "../a/run%201/");
        assert_eq!(link("/none/out/x#", "/none/out"), "x%23/");
    }
}
