//! What an engine's program and libraries show of how they were built. Nothing is run but `ldd`,
//! which lists the libraries; the files themselves are read.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::program::Program;

/// Libraries of the system, which every program has and whose build is not the engine's.
const SYSTEM: [&str; 12] = [
    "ld-linux",
    "linux-vdso",
    "libc.",
    "libm.",
    "libgcc_s",
    "libstdc++",
    "libpthread",
    "libdl.",
    "librt.",
    "libresolv",
    "libcrypto",
    "libssl",
];
/// What a program calls where an `assert` of C fails.
const ASSERTION: &[u8] = b"\0__assert_fail\0";

/// The build of a program and the libraries that it loads.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Build {
    /// Files that were compiled with assertions, by name.
    pub assertions: Vec<String>,
    /// Files with the processor's instruction for CRC-32C, by name; `None` where that is not known
    /// to be recognised, on processors other than x86-64.
    pub crc_instruction: Option<Vec<String>>,
}

impl Build {
    /// The build of a program. `None` if it is no binary: a script.
    #[must_use]
    pub(super) fn of(program: &Program) -> Option<Build> {
        let bytes = fs::read(&program.path).ok().filter(|bytes| bytes.starts_with(b"\x7fELF"))?;
        let mut build = Build::default();
        let mut crc = Vec::new();
        let mut look = |path: &Path, bytes: &[u8]| {
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            if contains(bytes, ASSERTION) {
                build.assertions.push(name.clone());
            }
            if has_crc_instruction(bytes) {
                crc.push(name);
            }
        };
        look(&program.path, &bytes);
        for path in libraries(program) {
            if let Ok(bytes) = fs::read(&path) {
                look(&path, &bytes);
            }
        }
        build.crc_instruction = cfg!(target_arch = "x86_64").then_some(crc);
        Some(build)
    }

    /// For readers.
    #[must_use]
    pub fn in_words(&self) -> String {
        let assertions = match self.assertions.as_slice() {
            [] => "without assertions".to_owned(),
            files => format!("WITH ASSERTIONS ({})", files.join(", ")),
        };
        let crc = match self.crc_instruction.as_deref() {
            None => "CRC-32C: not looked at on this processor".to_owned(),
            Some([]) => "no CRC-32C instruction".to_owned(),
            Some(files) => format!("CRC-32C instruction in {}", files.join(", ")),
        };
        format!("{assertions}; {crc}")
    }
}

/// The libraries that a program loads, without those of the system.
fn libraries(program: &Program) -> Vec<PathBuf> {
    let mut ldd = Command::new("ldd");
    ldd.arg(&program.path).stdin(Stdio::null()).stderr(Stdio::null());
    if let Some(path) = &program.library_path {
        ldd.env("LD_LIBRARY_PATH", path);
    }
    let Ok(output) = ldd.output() else { return Vec::new() };
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    // "libleveldb.so.1d => /usr/lib/libleveldb.so.1d (0x…)"
    let loaded = text.lines().filter_map(|line| line.trim().split_once(" => "));
    loaded
        .filter(|(name, _)| !SYSTEM.iter().any(|system| name.starts_with(system)))
        .filter_map(|(_, rest)| rest.split_once(" (").map(|(path, _)| PathBuf::from(path)))
        .collect()
}

fn contains(bytes: &[u8], wanted: &[u8]) -> bool {
    bytes.windows(wanted.len()).any(|window| window == wanted)
}

/// Whether `crc32 r, r/m` with an operand of eight bytes is among the bytes of a file:
/// `F2 REX.W 0F 38 F1`. Five bytes that are there by chance are one file in thousands.
fn has_crc_instruction(bytes: &[u8]) -> bool {
    bytes
        .windows(5)
        .any(|w| w[0] == 0xf2 && (0x48..=0x4f).contains(&w[1]) && w[2..] == [0x0f, 0x38, 0xf1])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_build_in_words() {
        let build = Build::default();
        assert_eq!(
            build.in_words(),
            "without assertions; CRC-32C: not looked at on this processor"
        );
        let build = Build {
            assertions: vec!["libleveldb.so.1d".to_owned()],
            crc_instruction: Some(Vec::new()),
        };
        assert_eq!(build.in_words(), "WITH ASSERTIONS (libleveldb.so.1d); no CRC-32C instruction");
    }

    #[test]
    fn assertions_and_instructions_are_found_in_bytes() {
        assert!(contains(b"a\0__assert_fail\0b", ASSERTION));
        assert!(!contains(b"a\0__assert_fail_base\0b", ASSERTION));
        assert!(has_crc_instruction(&[0, 0xf2, 0x48, 0x0f, 0x38, 0xf1, 0xc1]));
        assert!(!has_crc_instruction(&[0xf2, 0x0f, 0x38, 0xf1, 0xc1, 0]));
    }
}
