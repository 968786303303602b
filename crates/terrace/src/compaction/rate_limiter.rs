//! Limits the rate at which compactions write.
//!
//! Writers of tables count their bytes. Those that may wait sleep when more has been written than
//! the rate allows for the elapsed time. A tenth of a second's worth may be written at once. Any
//! thread.

use std::io::IoSlice;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use crate::base::error::Result;
use crate::base::locks::plain::Mutex;
use crate::env::{Env, FileSyncer, WritableFile};

/// How much of a second's worth may be written at once.
const BURST_MICROS: u64 = 100_000;
/// Shorter waits are put off until they add up.
const SHORTEST_WAIT_MICROS: u64 = 1_000;
/// Waiting threads look this often at whether waiting is over.
const LONGEST_SLEEP_MICROS: u64 = 20_000;

/// A rate, and how far it has been used up.
pub(crate) struct RateLimiter {
    env: Arc<dyn Env>,
    bytes_per_second: u64,
    /// When everything counted so far would have been written at the rate.
    paid_until: Mutex<u64>,
    waited_micros: AtomicU64,
    lifted: AtomicBool,
}

impl RateLimiter {
    pub(crate) fn new(env: Arc<dyn Env>, bytes_per_second: u64) -> Self {
        RateLimiter {
            env,
            bytes_per_second,
            paid_until: Mutex::new(0),
            waited_micros: AtomicU64::new(0),
            lifted: AtomicBool::new(false),
        }
    }

    /// Ends all waiting: the waiting jobs are being stopped.
    pub(crate) fn lift(&self) {
        self.lifted.store(true, Ordering::Relaxed);
    }

    /// `file`, written to as slowly as `limit` says, if there is one.
    pub(crate) fn over(
        limit: Option<&Arc<RateLimiter>>,
        file: Box<dyn WritableFile>,
    ) -> Box<dyn WritableFile> {
        match limit {
            Some(limit) => Box::new(LimitedFile { file, limit: limit.clone() }),
            None => file,
        }
    }

    /// Counts bytes that were written, and says how many microseconds ahead of the rate that is.
    pub(crate) fn count(&self, bytes: u64) -> u64 {
        let now = self.env.now_micros();
        let micros = bytes.saturating_mul(1_000_000) / self.bytes_per_second;
        let mut paid_until = self.paid_until.lock();
        *paid_until = (*paid_until).max(now.saturating_sub(BURST_MICROS)).saturating_add(micros);
        paid_until.saturating_sub(now)
    }

    /// Counts bytes that were written, and waits if that was too fast.
    fn pay(&self, bytes: u64) {
        let mut left = self.count(bytes);
        if left < SHORTEST_WAIT_MICROS {
            return;
        }
        while left > 0 && !self.lifted.load(Ordering::Relaxed) {
            let micros = left.min(LONGEST_SLEEP_MICROS);
            self.waited_micros.fetch_add(micros, Ordering::Relaxed);
            self.env.sleep(Duration::from_micros(micros));
            left -= micros;
        }
    }

    /// Microseconds waited in all.
    pub(crate) fn waited_micros(&self) -> u64 {
        self.waited_micros.load(Ordering::Relaxed)
    }
}

/// A file whose writer waits for its share.
struct LimitedFile {
    file: Box<dyn WritableFile>,
    limit: Arc<RateLimiter>,
}

impl WritableFile for LimitedFile {
    fn append(&mut self, data: &[u8]) -> Result<()> {
        self.file.append(data)?;
        self.limit.pay(data.len() as u64);
        Ok(())
    }

    fn append_parts(&mut self, parts: &mut [IoSlice<'_>], headers: &[usize]) -> Result<()> {
        let length = parts.iter().map(|part| part.len() as u64).sum();
        self.file.append_parts(parts, headers)?;
        self.limit.pay(length);
        Ok(())
    }

    fn sync(&mut self) -> Result<()> {
        self.file.sync()
    }

    fn syncer(&self) -> Option<Arc<dyn FileSyncer>> {
        self.file.syncer()
    }

    fn start_writeback(&mut self, offset: u64, length: u64) {
        self.file.start_writeback(offset, length);
    }

    fn close(self: Box<Self>) -> Result<()> {
        self.file.close()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::env::{CreateOptions, MemEnv};

    #[test]
    fn a_writer_above_the_rate_waits() {
        let env = MemEnv::new();
        let limit = Arc::new(RateLimiter::new(Arc::new(env.clone()), 1 << 20));
        let file = env.create("/file".as_ref(), CreateOptions::default()).expect("creates");
        let mut file = RateLimiter::over(Some(&limit), file);
        file.append(b"a little").expect("appends");
        assert_eq!(limit.waited_micros(), 0, "within what may be written at once");
        // A fifth of a second's worth, half of which may be written at once, however late it is.
        let (first, second) = ([b'.'; 10], vec![b'.'; (1 << 20) / 5 - 10]);
        let mut parts = [&first[..], &second].map(IoSlice::new);
        file.append_parts(&mut parts, &[0]).expect("appends");
        file.sync().expect("syncs");
        file.close().expect("closes");
        let waited = limit.waited_micros();
        assert!((99_000..=200_100).contains(&waited), "{waited}");
        assert_eq!(env.file_size("/file".as_ref()).expect("stats"), 8 + (1 << 20) / 5);
    }

    #[test]
    fn what_was_written_too_fast_is_owed() {
        let limit = RateLimiter::new(Arc::new(MemEnv::new()), 1 << 20);
        let second = 1_000_000;
        assert_eq!(limit.count(1 << 10), 0, "within what may be written at once");
        let owed = limit.count(4 << 20);
        assert!((3 * second..=4 * second).contains(&owed), "{owed}");
        let more = limit.count(1 << 20);
        assert!(more > owed && more <= owed + second, "{more}");
    }

    /// A close must not wait for what flushes owe.
    #[test]
    fn waiting_ends_when_the_limit_is_lifted() {
        let limit = Arc::new(RateLimiter::new(Arc::new(MemEnv::new()), 1 << 20));
        let beside = limit.clone();
        // For hours, otherwise.
        let waiting = std::thread::spawn(move || beside.pay(1 << 40));
        limit.lift();
        waiting.join().expect("ends");
        limit.pay(1 << 40);
    }
}
