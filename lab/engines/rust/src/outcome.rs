//! What a benchmark came to.

use crate::benchmark::Benchmark;
use crate::meter::Meter;
use crate::resources::DeviceRequests;

/// What a benchmark came to.
pub(crate) struct Outcome<'a> {
    pub(crate) benchmark: Benchmark,
    pub(crate) variant: &'a str,
    pub(crate) meter: Meter<'static>,
    pub(crate) threads: u64,
    pub(crate) seconds: f64,
    pub(crate) cpu_seconds: f64,
    pub(crate) bytes_written: u64,
    pub(crate) bytes_read: u64,
    /// Where the control group counts them.
    pub(crate) device: Option<DeviceRequests>,
    pub(crate) disk_bytes: u64,
    pub(crate) peak_memory_bytes: u64,
    /// Files and bytes of each level when the benchmark began.
    pub(crate) levels: Vec<(u64, u64)>,
    pub(crate) writer_ops_per_sec: Option<f64>,
    pub(crate) digest: Option<String>,
}
