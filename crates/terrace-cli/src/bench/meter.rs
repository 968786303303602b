//! The cost of a benchmark: latencies of its operations, processor time, bytes written, bytes on
//! disk.

use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;

/// Latencies are kept to two digits: an error below one per cent.
const SIGNIFICANT_DIGITS: u8 = 2;
/// Latencies above an hour count as an hour.
const LONGEST_NANOS: u64 = 3_600_000_000_000;
/// `st_blocks` counts in these, whatever the file system's own blocks are.
const STAT_BLOCK: u64 = 512;

/// The work of one thread, or of all of them.
pub(super) struct Work {
    pub(super) operations: u64,
    pub(super) bytes: u64,
    pub(super) found: u64,
    /// Nanoseconds of a call.
    pub(super) latencies: Histogram<u64>,
    last: Instant,
}

impl Work {
    pub(super) fn new() -> Self {
        let latencies = Histogram::new_with_bounds(1, LONGEST_NANOS, SIGNIFICANT_DIGITS)
            .expect("bounds in range");
        Work { operations: 0, bytes: 0, found: 0, latencies, last: Instant::now() }
    }

    /// The measured part begins.
    pub(super) fn begin(&mut self) {
        self.last = Instant::now();
    }

    /// One call ended that did `count` operations.
    #[inline]
    pub(super) fn end(&mut self, count: u64) {
        let now = Instant::now();
        self.latencies.saturating_record(nanos(now - self.last));
        self.last = now;
        self.operations += count;
    }

    /// `count` steps of a scan ended. A step alone is too short for the clock.
    pub(super) fn end_steps(&mut self, count: u64) {
        let now = Instant::now();
        let Some(each) = nanos(now - self.last).checked_div(count) else { return };
        self.latencies.saturating_record_n(each, count);
        self.last = now;
        self.operations += count;
    }

    pub(super) fn merge(&mut self, other: &Work) {
        self.operations += other.operations;
        self.bytes += other.bytes;
        self.found += other.found;
        // Both have the same bounds, so adding cannot fail.
        let _ = self.latencies.add(&other.latencies);
    }
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// Counters of the whole process, background threads included.
#[derive(Clone, Copy)]
pub(super) struct ProcessCounters {
    cpu: Duration,
    written_by_calls: u64,
    written_to_storage: u64,
}

impl ProcessCounters {
    pub(super) fn now() -> Self {
        let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
        let io = std::fs::read_to_string("/proc/self/io").unwrap_or_default();
        let counter = |name: &str| {
            let line = io.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
            line.and_then(|number| number.parse().ok()).unwrap_or(0)
        };
        ProcessCounters {
            cpu: Duration::new(
                time.tv_sec.unsigned_abs(),
                u32::try_from(time.tv_nsec).unwrap_or(0),
            ),
            written_by_calls: counter("wchar"),
            written_to_storage: counter("write_bytes"),
        }
    }

    pub(super) fn cpu_seconds_since(&self, start: &Self) -> f64 {
        self.cpu.saturating_sub(start.cpu).as_secs_f64()
    }

    /// Bytes written by system calls or, where that is more, those that mapped files wrote besides.
    pub(super) fn bytes_written_since(&self, start: &Self) -> u64 {
        let by_calls = self.written_by_calls.saturating_sub(start.written_by_calls);
        by_calls.max(self.written_to_storage.saturating_sub(start.written_to_storage))
    }
}

/// The bytes that the files of a directory occupy.
pub(super) fn disk_bytes(path: &Path) -> u64 {
    let Ok(entries) = path.read_dir() else { return 0 };
    let files = entries.filter_map(|entry| entry.ok()?.metadata().ok());
    files.filter(|file| file.is_file()).map(|file| file.blocks() * STAT_BLOCK).sum()
}
