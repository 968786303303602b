//! Resources of the process, and the size of the database's directory.

use std::env;
use std::fs::{self, File};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::Duration;

use rustix::fs::Advice;

use crate::{Failure, Result};

/// `st_blocks` counts in these, whatever the file system's own blocks are.
const STAT_BLOCK: u64 = 512;

/// Counters of the whole process, background threads included.
pub(crate) struct ProcessCounters {
    cpu: Duration,
    written_by_calls: u64,
    written_to_storage: u64,
    read_from_storage: u64,
    device: Option<DeviceRequests>,
}

/// Requests to the storage device, and bytes written to it, by the process's control group.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct DeviceRequests {
    pub(crate) reads: u64,
    pub(crate) writes: u64,
    pub(crate) bytes_written: u64,
}

impl DeviceRequests {
    /// `None` unless `LAB_IO_STAT` names the group's `io.stat`.
    fn now() -> Option<Self> {
        let text = fs::read_to_string(env::var_os("LAB_IO_STAT")?).ok()?;
        Some(DeviceRequests::of(&text))
    }

    /// Of a line for each device: `259:0 rbytes=1 wbytes=2 rios=3 wios=4 dbytes=5 dios=6`. A
    /// stacked device and the one below it count the same requests, so that the greatest number
    /// counts.
    fn of(text: &str) -> Self {
        let most = |name: &str| {
            let fields = text.split_whitespace().filter_map(|word| word.strip_prefix(name));
            fields.filter_map(|number| number.parse().ok()).max().unwrap_or(0)
        };
        DeviceRequests {
            reads: most("rios="),
            writes: most("wios="),
            bytes_written: most("wbytes="),
        }
    }
}

impl ProcessCounters {
    pub(crate) fn now() -> Self {
        let io = fs::read_to_string("/proc/self/io").unwrap_or_default();
        ProcessCounters {
            cpu: cpu_time(),
            written_by_calls: number_of(&io, "wchar"),
            written_to_storage: number_of(&io, "write_bytes"),
            read_from_storage: number_of(&io, "read_bytes"),
            device: DeviceRequests::now(),
        }
    }

    pub(crate) fn cpu_seconds_since(&self, start: &Self) -> f64 {
        self.cpu.saturating_sub(start.cpu).as_secs_f64()
    }

    /// Bytes that the storage device had to read, for calls as for faults in mapped files.
    pub(crate) fn bytes_read_since(&self, start: &Self) -> u64 {
        self.read_from_storage.saturating_sub(start.read_from_storage)
    }

    /// Requests to the storage device, and bytes written to it; `None` where they are not counted.
    pub(crate) fn device_since(&self, start: &Self) -> Option<DeviceRequests> {
        let (end, start) = (self.device?, start.device?);
        Some(DeviceRequests {
            reads: end.reads.saturating_sub(start.reads),
            writes: end.writes.saturating_sub(start.writes),
            bytes_written: end.bytes_written.saturating_sub(start.bytes_written),
        })
    }

    /// Bytes written to files, which reached the page cache: by system calls or, where that is more, those that mapped files wrote besides.
    pub(crate) fn bytes_written_since(&self, start: &Self) -> u64 {
        let by_calls = self.written_by_calls.saturating_sub(start.written_by_calls);
        by_calls.max(self.written_to_storage.saturating_sub(start.written_to_storage))
    }
}

pub(crate) fn cpu_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap_or(0))
}

/// The number behind `name:` in a file of `/proc`.
fn number_of(text: &str, name: &str) -> u64 {
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    line.and_then(|rest| rest.split_whitespace().next()?.parse().ok()).unwrap_or(0)
}

/// From here on, `peak_memory_bytes` speaks of what comes.
pub(crate) fn reset_peak_memory() {
    // Where the system does not allow it the peak is the whole process's.
    let _ = fs::write("/proc/self/clear_refs", "5");
}

pub(crate) fn peak_memory_bytes() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    number_of(&status, "VmHWM") * 1024
}

pub(crate) fn resident_memory_bytes() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    number_of(&status, "VmRSS") * 1024
}

/// Counts the files below a directory that `wanted` accepts.
pub(crate) fn count_files(directory: &Path, wanted: impl Fn(&Path) -> bool) -> u64 {
    let mut count = 0;
    // Files may go while they are counted.
    let _ = visit_files(directory, &mut |path| {
        count += u64::from(wanted(path));
        Ok(())
    });
    count
}

/// The bytes that the files below a directory occupy.
pub(crate) fn disk_bytes(directory: &Path) -> u64 {
    let mut bytes = 0;
    // Files may go while they are counted.
    let _ = visit_files(directory, &mut |path| {
        bytes += path.metadata().map_or(0, |file| file.blocks() * STAT_BLOCK);
        Ok(())
    });
    bytes
}

/// Drops the files below a directory from the page cache.
pub(crate) fn drop_pages(directory: &Path) -> Result<()> {
    visit_files(directory, &mut |path| {
        let file = File::open(path)?;
        file.sync_all()?;
        rustix::fs::fadvise(&file, 0, None, Advice::DontNeed)?;
        Ok(())
    })
    .map_err(|e| Failure::io("drop from the page cache", directory, &e))
}

fn visit_files(
    directory: &Path,
    visit: &mut dyn FnMut(&Path) -> std::io::Result<()>,
) -> std::io::Result<()> {
    for entry in directory.read_dir()? {
        let path = entry?.path();
        if path.is_dir() {
            visit_files(&path, visit)?;
        } else if path.is_file() {
            visit(&path)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_those_of_the_busiest_device() {
        let text = "259:0 rbytes=8192 wbytes=4096 rios=2 wios=1 dbytes=0 dios=0\n\
                    253:0 rbytes=8192 wbytes=8192 rios=3 wios=1 dbytes=0 dios=0\n";
        let counted = DeviceRequests { reads: 3, writes: 1, bytes_written: 8192 };
        assert_eq!(DeviceRequests::of(text), counted);
        assert_eq!(DeviceRequests::of(""), DeviceRequests::default());
    }
}
