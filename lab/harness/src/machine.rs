//! Where the measurements were taken.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::thread;

use serde::Serialize;

/// The machine, as far as it matters to a reader of the report.
#[derive(Debug, Serialize)]
pub(crate) struct Machine {
    pub(crate) processor: String,
    pub(crate) cores: usize,
    pub(crate) memory_mib: u64,
    pub(crate) system: String,
    pub(crate) file_system: String,
    pub(crate) date: String,
}

impl Machine {
    /// This machine, with the file system that holds `dir`.
    pub(crate) fn here(dir: &Path) -> Machine {
        Machine {
            processor: field("/proc/cpuinfo", "model name").unwrap_or_else(|| "unknown".to_owned()),
            cores: thread::available_parallelism().map_or(1, usize::from),
            memory_mib: field("/proc/meminfo", "MemTotal")
                .and_then(|text| text.split(' ').next().and_then(|kib| kib.parse::<u64>().ok()))
                .map_or(0, |kib| kib / 1024),
            system: fs::read_to_string("/proc/sys/kernel/osrelease")
                .map_or_else(|_| "unknown".to_owned(), |release| format!("Linux {}", release.trim())),
            file_system: file_system(dir).unwrap_or_else(|| "unknown".to_owned()),
            date: Command::new("date")
                .args(["-u", "+%Y-%m-%d %H:%M UTC"])
                .output()
                .map_or_else(|_| "unknown".to_owned(), |o| String::from_utf8_lossy(&o.stdout).trim().to_owned()),
        }
    }
}

fn field(file: &str, name: &str) -> Option<String> {
    let text = fs::read_to_string(file).ok()?;
    let line = text.lines().find(|line| line.starts_with(name))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}

/// Type and device of the file system that a directory lies on.
fn file_system(dir: &Path) -> Option<String> {
    let dir = dir.canonicalize().ok()?;
    let mounts = fs::read_to_string("/proc/mounts").ok()?;
    let mut best: Option<(&str, String)> = None;
    for line in mounts.lines() {
        let mut words = line.split(' ');
        let (Some(device), Some(place), Some(kind)) = (words.next(), words.next(), words.next()) else { continue };
        if dir.starts_with(place) && best.as_ref().is_none_or(|(known, _)| place.len() >= known.len()) {
            best = Some((place, format!("{kind} on {device}")));
        }
    }
    best.map(|(_, text)| text)
}

/// Uses half a gibibyte of memory once. On a virtual machine the first use of a page is slow, and would be charged to
/// the engine that runs first.
pub(crate) fn touch_memory() {
    let mut memory = vec![0_u8; 512 << 20];
    for page in memory.chunks_mut(4096) {
        page[0] = 1;
    }
    std::hint::black_box(&memory);
}
