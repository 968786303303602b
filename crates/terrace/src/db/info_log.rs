//! The file `LOG`: what happened, for people. The one of the previous open is kept as `LOG.old`.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use crate::base::locks::plain::Mutex;
use crate::env::{CreateOptions, Env, Logger, WritableFile};
use crate::version::filename;

/// Writes lines to `LOG`. A message that cannot be written is dropped: the database matters more.
struct FileLogger {
    env: Arc<dyn Env>,
    file: Mutex<Box<dyn WritableFile>>,
}

impl Logger for FileLogger {
    fn log(&self, message: &str) {
        let line = format!("{} {message}\n", timestamp(self.env.wall_clock()));
        let _ = self.file.lock().append(line.as_bytes());
    }
}

struct NoLogger;

impl Logger for NoLogger {
    fn log(&self, _message: &str) {}
}

/// A logger that drops everything.
pub(in crate::db) fn silent() -> Arc<dyn Logger> {
    Arc::new(NoLogger)
}

/// Starts a fresh `LOG` in `dir`. Where that fails, on a full disk for example, messages are
/// dropped.
pub(in crate::db) fn start(env: &Arc<dyn Env>, dir: &Path, mode: u32) -> Arc<dyn Logger> {
    let path = dir.join(filename::INFO_LOG);
    let _ = env.rename(&path, &dir.join(filename::OLD_INFO_LOG));
    match env.create(&path, CreateOptions { mode, exclusive: false }) {
        Ok(file) => Arc::new(FileLogger { env: env.clone(), file: Mutex::new(file) }),
        Err(_) => silent(),
    }
}

/// `2026/11/21-07:51:28.000123`, UTC.
fn timestamp(since_epoch: Duration) -> String {
    let seconds = since_epoch.as_secs();
    let (year, month, day) = civil_date(seconds / 86_400);
    let second_of_day = seconds % 86_400;
    let (hour, minute, second) =
        (second_of_day / 3600, second_of_day / 60 % 60, second_of_day % 60);
    let micros = since_epoch.subsec_micros();
    format!("{year:04}/{month:02}/{day:02}-{hour:02}:{minute:02}:{second:02}.{micros:06}")
}

/// The Gregorian date of a day counted from 1970-01-01, by eras of 400 years that begin in March,
/// so that February 29 is the last day of a year.
fn civil_date(days_since_1970: u64) -> (u64, u64, u64) {
    let days = days_since_1970 + 719_468;
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    let year = era * 400 + year_of_era + u64::from(month <= 2);
    (year, month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timestamps_are_utc() {
        assert_eq!(timestamp(Duration::ZERO), "1970/01/01-00:00:00.000000");
        assert_eq!(
            timestamp(Duration::from_micros(951_782_400_000_007)),
            "2000/02/29-00:00:00.000007"
        );
        assert_eq!(timestamp(Duration::from_secs(1_795_247_488)), "2026/11/21-07:51:28.000000");
        assert_eq!(timestamp(Duration::from_secs(4_107_542_399)), "2100/02/28-23:59:59.000000");
    }
}
