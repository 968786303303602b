//! Where measurements are taken, and what there is of memory and space.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::thread;

use crate::costs;
use crate::run::Machine;

/// This machine, with the file system that holds `dir`.
#[must_use]
pub fn here(dir: &Path) -> Machine {
    let unknown = || "unknown".to_owned();
    Machine {
        cpu: field("/proc/cpuinfo", "model name").unwrap_or_else(unknown),
        cores: thread::available_parallelism().map_or(1, usize::from),
        memory_mib: kib("MemTotal") / 1024,
        kernel: fs::read_to_string("/proc/sys/kernel/osrelease")
            .map_or_else(|_| unknown(), |release| format!("Linux {}", release.trim())),
        file_system: file_system(dir).unwrap_or_else(unknown),
        costs: costs::measure(dir).ok(),
    }
}

/// The time in UTC, in the form that `format` gives to `date`.
#[must_use]
pub fn now(format: &str) -> String {
    let output = Command::new("date").args(["-u", format]).output();
    output.map_or_else(
        |_| "unknown".to_owned(),
        |o| String::from_utf8_lossy(&o.stdout).trim().to_owned(),
    )
}

/// Bytes of memory that can be had without swapping.
#[must_use]
pub fn available_memory() -> u64 {
    kib("MemAvailable") * 1024
}

/// Bytes that may still be written to the file system that holds `dir`.
///
/// # Errors
/// Names the directory.
pub fn free_space(dir: &Path) -> Result<u64, String> {
    let info = rustix::fs::statvfs(dir).map_err(|e| format!("{}: {e}", dir.display()))?;
    Ok(info.f_bavail.saturating_mul(info.f_frsize))
}

/// Bytes for people.
#[must_use]
pub fn mebibytes(bytes: u64) -> String {
    format!("{} MiB", bytes.div_ceil(1 << 20))
}

fn kib(name: &str) -> u64 {
    let value = field("/proc/meminfo", name);
    value.and_then(|text| text.split(' ').next().and_then(|kib| kib.parse().ok())).unwrap_or(0)
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
        let (Some(device), Some(place), Some(kind)) = (words.next(), words.next(), words.next())
        else {
            continue;
        };
        if dir.starts_with(place)
            && best.as_ref().is_none_or(|(known, _)| place.len() >= known.len())
        {
            best = Some((place, format!("{kind} on {device}")));
        }
    }
    best.map(|(_, text)| text)
}

/// Uses memory, half a gibibyte at most, and gives it back. A virtual machine may hand free memory
/// to its host within seconds (free page reporting) and get it again at the first use only, at up
/// to a millisecond for each piece: that would be charged to whichever program needs memory first.
pub fn touch_memory(bytes: u64) {
    let mut memory = vec![0_u8; bytes.min(512 << 20).min(available_memory() / 4) as usize];
    for page in memory.chunks_mut(4096) {
        page[0] = 1;
    }
    std::hint::black_box(&memory);
}
