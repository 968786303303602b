//! A limit for the memory of one program, the pages included that the system caches of its files: a
//! control group of its own.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{self, Command};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::Duration;

/// Tells a program where its group's requests to storage devices are counted.
const IO_STAT: &str = "LAB_IO_STAT";
/// Where the system has its control groups.
const ROOT: &str = "/sys/fs/cgroup";
/// A group cannot be removed before the last process is gone from it.
const ATTEMPTS: u32 = 50;
const PAUSE: Duration = Duration::from_millis(20);

/// A control group. It is removed when this goes.
pub(crate) struct MemoryLimit {
    group: PathBuf,
    bytes: u64,
}

impl MemoryLimit {
    /// A group with a limit of so many bytes.
    pub(crate) fn new(bytes: u64) -> Result<Self, String> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let (parent, names) = parent()?;
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let group = parent.join(format!("terrace-lab-{}-{number}", process::id()));
        let refused = |error: &dyn std::fmt::Display| {
            format!("cannot limit memory: {}: {error}", group.display())
        };
        fs::create_dir(&group).map_err(|error| refused(&error))?;
        let limit = MemoryLimit { group: group.clone(), bytes };
        fs::write(group.join(names.limit), bytes.to_string()).map_err(|error| refused(&error))?;
        // Where there is no swap there is no such file.
        let swap = names.swap.map(|swap| group.join(swap)).filter(|swap| swap.exists());
        if let Some(swap) = swap {
            let most = if names.swap_includes_memory { bytes } else { 0 };
            fs::write(swap, most.to_string()).map_err(|error| refused(&error))?;
        }
        Ok(limit)
    }

    /// The limit, if the system has killed a program for taking more.
    pub(crate) fn has_killed(&self) -> Option<u64> {
        // The second is version 1's.
        let files = ["memory.events", "memory.oom_control"].map(|name| self.group.join(name));
        let texts = files.iter().filter_map(|file| fs::read_to_string(file).ok());
        let killed = |text: String| {
            let counts = text.lines().filter_map(|line| line.strip_prefix("oom_kill "));
            counts.filter_map(|count| count.trim().parse::<u64>().ok()).any(|count| count > 0)
        };
        let mut killed = texts.map(killed).filter(|killed| *killed);
        killed.next().map(|_| self.bytes)
    }

    /// The same command, which joins the group first.
    pub(crate) fn around(&self, command: &Command) -> Command {
        let mut joining = Command::new("sh");
        joining.args(["-c", "echo $$ >\"$0\" && exec \"$@\""]);
        // Only groups of version 2 have it, if the system lets them count.
        let io_stat = self.group.join("io.stat");
        if io_stat.is_file() {
            joining.env(IO_STAT, io_stat);
        } else {
            joining.env_remove(IO_STAT);
        }
        joining.arg(self.group.join("cgroup.procs"));
        joining.arg(command.get_program()).args(command.get_args());
        for (name, value) in command.get_envs() {
            match value {
                Some(value) => joining.env(name, value),
                None => joining.env_remove(name),
            };
        }
        if let Some(dir) = command.get_current_dir() {
            joining.current_dir(dir);
        }
        joining
    }
}

impl Drop for MemoryLimit {
    fn drop(&mut self) {
        for _ in 0..ATTEMPTS {
            if fs::remove_dir(&self.group).is_ok() || !self.group.exists() {
                return;
            }
            thread::sleep(PAUSE);
        }
    }
}

/// The names of a group's files.
struct Names {
    limit: &'static str,
    swap: Option<&'static str>,
    swap_includes_memory: bool,
}

/// Where groups that limit memory can be made.
fn parent() -> Result<(PathBuf, Names), String> {
    let root = Path::new(ROOT);
    let first = root.join("memory");
    if first.is_dir() {
        let swap = Some("memory.memsw.limit_in_bytes");
        let names = Names { limit: "memory.limit_in_bytes", swap, swap_includes_memory: true };
        let own = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
        let own = own.lines().find_map(|line| line.split_once(":memory:/"));
        let own = own.map(|(_, path)| first.join(path)).filter(|path| path.is_dir());
        return Ok((own.unwrap_or(first), names));
    }
    let controllers = fs::read_to_string(root.join("cgroup.controllers")).unwrap_or_default();
    if controllers.split_whitespace().any(|name| name == "memory") {
        // It may have been given on already, or not be ours to give; the group shows it.
        let _ = fs::write(root.join("cgroup.subtree_control"), "+memory");
        // Without it nothing but the counts of requests is missing.
        let _ = fs::write(root.join("cgroup.subtree_control"), "+io");
        let swap = Some("memory.swap.max");
        let names = Names { limit: "memory.max", swap, swap_includes_memory: false };
        return Ok((root.to_owned(), names));
    }
    Err(format!("cannot limit memory: there is no memory controller in {ROOT}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_told_where_its_requests_are_counted() {
        let dir = tempfile::tempdir().expect("a directory");
        let limit = MemoryLimit { group: dir.path().join("group"), bytes: 1 };
        fs::create_dir(&limit.group).expect("a directory");
        let told = || {
            let mut command = Command::new("sh");
            command.args(["-c", "echo ${LAB_IO_STAT:-nowhere}"]);
            let output = limit.around(&command).output().expect("sh");
            String::from_utf8_lossy(&output.stdout).trim().to_owned()
        };
        assert_eq!(told(), "nowhere");
        let io_stat = limit.group.join("io.stat");
        fs::write(&io_stat, "").expect("written");
        assert_eq!(told(), io_stat.display().to_string());
        fs::remove_dir_all(&limit.group).expect("removed");
    }

    #[test]
    fn a_program_in_a_group_has_its_limit() {
        let limit = match MemoryLimit::new(64 << 20) {
            Ok(limit) => limit,
            Err(reason) => {
                assert!(reason.starts_with("cannot limit memory: "), "{reason}");
                return terrace_testkit::skip::skip("right", reason);
            }
        };
        let mut command = Command::new("sh");
        // Half of the limit can be had, twice of it cannot.
        let take = "x=$(head -c \"$1\" /dev/zero | tr '\\0' x) && echo ${#x} $GREETING";
        command.args(["-c", take, "sh"]).env("GREETING", "hello");
        let output = |bytes: u64| {
            let mut command = limit.around(&command);
            command.arg(bytes.to_string()).output().expect("sh")
        };
        let within = output(8 << 20);
        assert_eq!(String::from_utf8_lossy(&within.stdout), "8388608 hello\n");
        assert_eq!(limit.has_killed(), None);
        assert!(!output(256 << 20).status.success());
        assert_eq!(limit.has_killed(), Some(64 << 20));
        let group = limit.group.clone();
        drop(limit);
        assert!(!group.exists());
    }
}
