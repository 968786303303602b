//! What an open leaves out of damaged logs: one line on standard error for every such open.
//!
//! The engine tells its listener of damage while it opens, on the thread that opens, and the logs
//! are still there then. It does not say whether a read-only open found anything behind the damage,
//! so the log itself is looked at.
//!
//! # Invariants
//! 1. The torn end of a log that was never synced, with nothing behind it, is no damage: every
//!    crash of a program leaves one.
//! 2. Names and messages come from files, and are escaped.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use terrace::inspect::{self, LogItem};
use terrace::{Event, EventListener, Options, RecoveryMode};

use crate::directory::FileType;
use crate::text;

/// The least unit in which systems and disks write files back.
const SECTOR: u64 = 512;

/// A file that recovery did not take as a whole.
struct Damage {
    file: String,
    message: String,
    /// Where the file is kept, seen from the database's directory.
    kept_as: Option<String>,
    /// Whether anything is left out that a power cut alone does not explain.
    counts: bool,
}

/// Listens to the open of one database.
pub(crate) struct Recovery {
    path: PathBuf,
    mode: RecoveryMode,
    damage: Mutex<Vec<Damage>>,
}

impl EventListener for Recovery {
    fn on_event(&self, event: &Event) {
        let Event::RecoveryDamage { file, message, kept_as } = event else { return };
        let mut all = self.damage.lock().unwrap_or_else(PoisonError::into_inner);
        // Two are reported in any case, and there may be thousands in a log.
        let counts = !all.is_empty() || kept_as.is_some() || !self.is_torn_end(file, message);
        all.push(Damage {
            file: file.clone(),
            message: message.clone(),
            kept_as: kept_as.clone(),
            counts,
        });
    }
}

impl Recovery {
    /// Listens to an open of the database in `path`.
    pub(crate) fn listen(path: &Path, mode: RecoveryMode) -> Arc<Self> {
        Arc::new(Recovery { path: path.to_owned(), mode, damage: Mutex::default() })
    }

    /// Warns of what was left out, if anything was, and returns whether it was.
    pub(crate) fn report(&self) -> bool {
        let damage = self.damage.lock().unwrap_or_else(PoisonError::into_inner);
        // Damage in a second log is one of more logs that hold something.
        if damage.len() < 2 && !damage.iter().any(|damage| damage.counts) {
            return false;
        }
        let Some(first) = damage.first() else { return false };
        let line = self.warning(first, damage.len() - 1);
        // Nothing is left to do when standard error is closed.
        let _ = writeln!(io::stderr(), "terrace: warning: {}", text::printable(&line));
        true
    }

    fn warning(&self, first: &Damage, more: usize) -> String {
        let file = self.path.join(&first.file).display().to_string();
        let kept = first.kept_as.as_ref().map(|name| self.path.join(name).display().to_string());
        if FileType::of(&first.file) != FileType::Log {
            // A table that the lost end of the MANIFEST may have named.
            let kept = kept.map_or_else(String::new, |kept| format!("; it is kept as {kept}"));
            return format!("{}: {}{kept}", self.path.display(), first.message);
        }
        let offset = offset_in(&first.message, &first.file);
        let place = match (offset, first.message.contains("a batch at sequence number")) {
            (None, _) => format!("{file} is damaged"),
            (Some(offset), false) => format!("{file} is damaged at offset {offset}"),
            (Some(offset), true) => format!("writes are missing before offset {offset} of {file}"),
        };
        let left_out = match (self.mode, more) {
            (RecoveryMode::Salvage, 0) => "what cannot be read is left out".to_owned(),
            (RecoveryMode::Salvage, more) => {
                format!("what cannot be read there and further on ({more} more) is left out")
            }
            _ => "later writes are left out".to_owned(),
        };
        let hint = match (kept, self.mode) {
            (Some(kept), _) => {
                format!(", and the log is kept as {kept} (see `terrace help repair`)")
            }
            (None, RecoveryMode::Salvage) => String::new(),
            (None, _) => " (--recovery salvage reads what can be read, --recovery strict refuses \
                          where synced writes may be lost)"
                .to_owned(),
        };
        format!("{place}: {left_out}{hint}")
    }

    /// Whether nothing can be read behind the damage, and whole sectors of it are zeros, as a power
    /// cut leaves a record that was not synced.
    fn is_torn_end(&self, file: &str, message: &str) -> bool {
        let path = self.path.join(file);
        let Some(offset) = offset_in(message, file) else { return false };
        let mut has_more = false;
        let read = inspect::log(&path, &Options::new(), &mut |item| {
            has_more = matches!(item, LogItem::Batch(batch)
                if batch.offset >= offset && !batch.is_mark());
            if has_more { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        read.is_ok() && !has_more && misses_a_sector(&path, offset).unwrap_or(false)
    }
}

/// The offset that a message names after the path of its file, which ends in `file`.
fn offset_in(message: &str, file: &str) -> Option<u64> {
    let (_, rest) = message.split_once(file)?.1.split_once("at offset ")?;
    let digits = rest.split(|c: char| !c.is_ascii_digit()).next()?;
    digits.parse().ok()
}

/// Whether a sector behind `offset`, or what the file has of it, holds nothing but zeros.
fn misses_a_sector(path: &Path, offset: u64) -> io::Result<bool> {
    let mut file = File::open(path)?;
    let start = offset.next_multiple_of(SECTOR);
    file.seek(SeekFrom::Start(start))?;
    let mut sector = Vec::new();
    loop {
        sector.clear();
        if Read::by_ref(&mut file).take(SECTOR).read_to_end(&mut sector)? == 0 {
            return Ok(false);
        }
        if sector.iter().all(|&byte| byte == 0) {
            return Ok(true);
        }
    }
}
