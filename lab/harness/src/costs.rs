//! What basic operations cost on the machine of a run, so that runs of two machines, or of one
//! machine on two days, can be told apart from changes of an engine. Takes less than a second on a
//! usual machine.

use std::fs::{self, File};
use std::hint::black_box;
use std::io::{self, Write};
use std::path::Path;
use std::time::{Duration, Instant};

use crate::run::Costs;

/// Bytes of a record that is written: about an entry.
const RECORD: [u8; 128] = [7; 128];
const WRITES: u32 = 20_000;
const SYNCS: u32 = 25;
/// Bytes that are touched for the first time, and that a chain of loads leads through.
const MEMORY: usize = 64 << 20;
const PAGE: usize = 4096;
/// Words between two places of the chain: each is in a cache line of its own.
const STRIDE: usize = 16;
const LOADS: u32 = 1_000_000;

/// Measures them, with a file in `dir`.
///
/// # Errors
/// Names the file that cannot be written.
pub fn measure(dir: &Path) -> Result<Costs, String> {
    let path = dir.join(".lab-costs");
    let files = file_costs(&path);
    let _ = fs::remove_file(&path);
    let (write_ns, fdatasync_us) = files.map_err(|e| format!("{}: {e}", path.display()))?;
    Ok(Costs { write_ns, page_fault_ns: page_fault_ns(), fdatasync_us, memory_ns: memory_ns() })
}

fn file_costs(path: &Path) -> io::Result<(f64, f64)> {
    let mut file = File::create(path)?;
    let begin = Instant::now();
    for _ in 0..WRITES {
        file.write_all(&RECORD)?;
    }
    let write = nanos(begin.elapsed(), WRITES);
    file.sync_data()?;
    let mut syncs = Vec::new();
    for _ in 0..SYNCS {
        file.write_all(&RECORD)?;
        let begin = Instant::now();
        file.sync_data()?;
        syncs.push(begin.elapsed());
    }
    syncs.sort_unstable();
    Ok((write, syncs[syncs.len() / 2].as_secs_f64() * 1e6))
}

/// The first touch of a page of fresh memory.
fn page_fault_ns() -> f64 {
    let mut memory = vec![0_u8; MEMORY];
    let begin = Instant::now();
    for page in memory.chunks_mut(PAGE) {
        page[0] = 1;
    }
    black_box(&memory);
    nanos(begin.elapsed(), (MEMORY / PAGE) as u32)
}

/// A load that depends on the load before it, from anywhere in the memory.
fn memory_ns() -> f64 {
    let places = MEMORY / size_of::<u32>() / STRIDE;
    let mut chain = vec![0_u32; places * STRIDE];
    // One cycle through all places, in an order that follows from nothing (Sattolo).
    let mut order: Vec<u32> = (0..places as u32).collect();
    let mut state = 1_u64;
    for last in (1..places).rev() {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        order.swap(last, (state >> 33) as usize % last);
    }
    for (at, next) in order.iter().enumerate() {
        chain[at * STRIDE] = *next;
    }
    let begin = Instant::now();
    let mut at = 0;
    for _ in 0..LOADS {
        at = chain[at as usize * STRIDE];
    }
    black_box(at);
    nanos(begin.elapsed(), LOADS)
}

fn nanos(time: Duration, times: u32) -> f64 {
    time.as_secs_f64() * 1e9 / f64::from(times)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn costs_are_measured_and_leave_nothing_behind() {
        let dir = tempfile::tempdir().expect("a directory");
        let costs = measure(dir.path()).expect("costs");
        for cost in [costs.write_ns, costs.page_fault_ns, costs.fdatasync_us, costs.memory_ns] {
            assert!(cost > 0.0 && cost.is_finite(), "{costs:?}");
        }
        assert_eq!(fs::read_dir(dir.path()).expect("a directory").count(), 0);
        let problem = measure(&dir.path().join("none")).expect_err("no directory");
        assert!(problem.contains("none"), "{problem}");
    }
}
