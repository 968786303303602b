//! How much memory a process may use for its files: the system's, or less in a container or under a
//! limit of address space. Any thread may call.

use std::fs;
use std::path::{Path, PathBuf};

use rustix::process::{Resource, getrlimit};

/// Bytes that are free or hold clean pages of files, at most the limit of each control group of
/// this process, and of its address space (`ulimit -v`). `None` where the system does not tell.
pub(super) fn available_memory() -> Option<u64> {
    let system = fs::read_to_string("/proc/meminfo").ok().and_then(|text| from_meminfo(&text));
    let groups = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let address_space = getrlimit(Resource::As).current;
    let groups = limit_files(&groups);
    let limits = groups.iter().filter_map(|file| limit(file)).chain(address_space);
    system.into_iter().chain(limits).min()
}

fn from_meminfo(text: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1 << 10)
}

/// The files with the limits of the groups that `/proc/self/cgroup` names and of those above them.
/// In a container the names may be the host's; the root's file is the container's then.
fn limit_files(groups: &str) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for line in groups.lines() {
        let (root, name, path) = match line.split_once(':').map(|(_, rest)| rest.split_once(':')) {
            Some(Some(("", path))) => ("/sys/fs/cgroup", "memory.max", path),
            Some(Some(("memory", path))) => {
                ("/sys/fs/cgroup/memory", "memory.limit_in_bytes", path)
            }
            _ => continue,
        };
        let group = Path::new(path.trim_start_matches('/'));
        files.extend(group.ancestors().map(|above| Path::new(root).join(above).join(name)));
    }
    files
}

/// `None` without a limit ("max", or a file that is not there).
fn limit(file: &Path) -> Option<u64> {
    fs::read_to_string(file).ok()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_and_groups_are_read_as_linux_writes_them() {
        let text =
            "MemTotal:       24683732 kB\nMemFree:         100 kB\nMemAvailable:   24098000 kB\n";
        assert_eq!(from_meminfo(text), Some(24_098_000 << 10));
        assert_eq!(from_meminfo("MemTotal: 1 kB\n"), None);
        let paths = |text| {
            limit_files(text).iter().map(|path| path.display().to_string()).collect::<Vec<_>>()
        };
        assert_eq!(
            paths("0::/a/b\n"),
            [
                "/sys/fs/cgroup/a/b/memory.max",
                "/sys/fs/cgroup/a/memory.max",
                "/sys/fs/cgroup/memory.max"
            ]
        );
        assert_eq!(
            paths("3:cpuset:/\n4:memory:/a\nnonsense\n"),
            [
                "/sys/fs/cgroup/memory/a/memory.limit_in_bytes",
                "/sys/fs/cgroup/memory/memory.limit_in_bytes"
            ]
        );
    }
}
