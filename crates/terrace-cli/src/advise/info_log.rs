//! Facts from the info logs of the last two times that a database was open: the lines of Terrace
//! and of LevelDB.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

use serde::Serialize;

/// A longer info log is read from there on to its end.
const READ_FROM_THE_END: u64 = 8 << 20;
/// Below this much that was flushed, a ratio to it says nothing.
const FLUSHED_FOR_RATIOS: u64 = 1 << 20;

/// Work that the info logs mention.
#[derive(Debug, Default, PartialEq, Serialize)]
pub(super) struct Activity {
    /// Which of `LOG.old` and `LOG` could be read.
    pub(super) files: Vec<&'static str>,
    pub(super) flushes: u64,
    pub(super) flushed_bytes: u64,
    pub(super) largest_flush_bytes: u64,
    pub(super) compactions: u64,
    pub(super) compacted_bytes: u64,
    /// Of Terrace's compactions; LevelDB does not log it.
    pub(super) longest_compaction_seconds: f64,
    /// Times that a writer of LevelDB's had to wait; Terrace does not log them.
    pub(super) waits: u64,
    pub(super) background_errors: u64,
}

impl Activity {
    pub(super) fn of(database: &Path) -> Self {
        let mut activity = Activity::default();
        for name in ["LOG.old", "LOG"] {
            // An info log is for people; without it there is less to say.
            if let Ok(text) = end_of(&database.join(name)) {
                activity.files.push(name);
                text.lines().for_each(|line| activity.line(line));
            }
        }
        activity
    }

    /// Write amplification: bytes that flushes and compactions wrote for each byte that a flush
    /// wrote. None where too little was flushed to tell.
    pub(super) fn write_amplification(&self) -> Option<f64> {
        let written = self.flushed_bytes.saturating_add(self.compacted_bytes);
        (self.flushed_bytes >= FLUSHED_FOR_RATIOS)
            .then(|| written as f64 / self.flushed_bytes as f64)
    }

    fn line(&mut self, line: &str) {
        if let Some(bytes) = flushed(line) {
            self.flushes += 1;
            self.flushed_bytes = self.flushed_bytes.saturating_add(bytes);
            self.largest_flush_bytes = self.largest_flush_bytes.max(bytes);
        } else if let Some((bytes, seconds)) = compacted(line) {
            self.compactions += 1;
            self.compacted_bytes = self.compacted_bytes.saturating_add(bytes);
            self.longest_compaction_seconds = self.longest_compaction_seconds.max(seconds);
        } else if line.ends_with("memtable full; waiting...")
            || line.ends_with("Too many L0 files; waiting...")
        {
            self.waits += 1;
        } else if line.contains("background error: ") || line.contains("Compaction error: ") {
            self.background_errors += 1;
        }
    }
}

/// Terrace: `flushed 000003.log to table 000005 at level 0: 1234 bytes`.
/// LevelDB: `Level-0 table #5: 1234 bytes OK`.
fn flushed(line: &str) -> Option<u64> {
    let rest = match line.split_once(" flushed ") {
        Some((_, rest)) => rest.split_once(" at level ")?.1,
        None => line.split_once("Level-0 table #")?.1,
    };
    let (bytes, end) = rest.split_once(": ")?.1.split_once(" bytes")?;
    if end.trim().is_empty() || end == " OK" { bytes.parse().ok() } else { None }
}

/// Terrace: `compacted 4 + 2 tables of levels 0 and 1 into 3: 400 bytes into 300 in 0.012 s: …`;
/// earlier versions said `merged`.
/// LevelDB: `Compacted 4@0 + 2@1 files => 300 bytes`.
fn compacted(line: &str) -> Option<(u64, f64)> {
    if let Some((_, rest)) = line.split_once("Compacted ") {
        let (bytes, _) = rest.split_once(" files => ")?.1.split_once(" bytes")?;
        return Some((bytes.parse().ok()?, 0.0));
    }
    let (_, tables) = line.split_once(" compacted ").or_else(|| line.split_once(" merged "))?;
    let (bytes, rest) = tables.split_once(" bytes into ")?.1.split_once(" in ")?;
    let seconds: f64 = rest.split_once(" s")?.0.parse().ok()?;
    Some((bytes.parse().ok()?, if seconds.is_finite() { seconds.max(0.0) } else { 0.0 }))
}

fn end_of(path: &Path) -> std::io::Result<String> {
    // A pipe or a device would never end.
    if !path.symlink_metadata()?.is_file() {
        return Err(std::io::ErrorKind::InvalidInput.into());
    }
    let mut file = File::open(path)?;
    let size = file.metadata()?.len();
    file.seek(SeekFrom::Start(size.saturating_sub(READ_FROM_THE_END)))?;
    let mut bytes = Vec::new();
    file.take(READ_FROM_THE_END).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_both_engines_are_understood() {
        let mut activity = Activity::default();
        for line in [
            "2026/11/21-07:51:28.000123 flushed 000003.log, 000004.log to table 000005 at level 0: \
             1000 bytes",
            "2026/11/21-07:51:29.000123 compacted 4 + 2 tables of levels 0 and 1 into 3: \
             9000 bytes into 7000 in 1.250 s: due",
            "2026/11/21-07:51:29.000123 merged 1 + 0 tables of levels 3 and 4 into 1: \
             0 bytes into 0 in 0.001 s: due",
            "2026/11/21-07:51:29.000123 moved table 000007 from level 1 to 2",
            "2021/03/01-10:00:00.000000 140 Level-0 table #5: started",
            "2021/03/01-10:00:00.000000 140 Level-0 table #5: 2000 bytes OK",
            "2021/03/01-10:00:00.000000 140 Level-0 table #6: 0 bytes IO error: disk",
            "2021/03/01-10:00:00.000000 140 Compacting 4@0 + 1@1 files",
            "2021/03/01-10:00:00.000000 140 Compacted 4@0 + 1@1 files => 5000 bytes",
            "2021/03/01-10:00:00.000000 140 Current memtable full; waiting...",
            "2021/03/01-10:00:00.000000 140 Too many L0 files; waiting...",
            "2021/03/01-10:00:00.000000 140 Compaction error: IO error",
            " merged  bytes into  in  s flushed  at level ",
            "Compacted files => x bytes",
        ] {
            activity.line(line);
        }
        let expected = Activity {
            files: vec![],
            flushes: 2,
            flushed_bytes: 3000,
            largest_flush_bytes: 2000,
            compactions: 3,
            compacted_bytes: 12_000,
            longest_compaction_seconds: 1.25,
            waits: 2,
            background_errors: 1,
        };
        assert_eq!(activity, expected);
        assert_eq!(activity.write_amplification(), None, "3000 bytes were flushed");
        activity.flushed_bytes <<= 10;
        activity.compacted_bytes <<= 10;
        assert_eq!(activity.write_amplification(), Some(5.0));
    }
}
