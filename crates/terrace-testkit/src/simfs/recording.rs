//! The history of a simulated disk, and the disk at any moment of it.

use std::ops::RangeInclusive;
use std::path::Path;

use super::disk::{Disk, Step};

/// A disk and the totally ordered steps that changed it since.
#[derive(Clone, Default)]
pub struct Recording {
    pub(super) base: Disk,
    pub(super) steps: Vec<Step>,
}

impl Recording {
    /// How many steps were recorded; there is one moment more: before the first.
    pub fn len(&self) -> usize {
        self.steps.len()
    }

    /// Whether nothing was recorded.
    pub fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }

    /// Iterates over the moments from before the first step to after the last.
    pub fn replay(&self) -> Replay<'_> {
        Replay { recording: self, disk: self.base.clone(), at: 0 }
    }

    /// The moments in the middle of a job that was over at moment `to`, and had not begun at `from`:
    /// from the first table or value file that it made to the last file that was removed behind it.
    pub fn moments_of_job(&self, from: usize, to: usize) -> RangeInclusive<usize> {
        let is_new = |step: &Step| match step {
            Step::Create { path, .. } => is_named(path, &["ldb", "vlog"]),
            _ => false,
        };
        let is_removal = |step: &&Step| matches!(step, Step::Remove { .. });
        let made = self.steps.iter().take(to).skip(from).position(is_new);
        let first = made.map_or(to, |made| from + made + 1);
        first..=to + self.steps.iter().skip(to).take_while(is_removal).count()
    }

    /// The steps around moment `at`, for a message.
    pub fn describe(&self, at: usize) -> String {
        let mut text = String::new();
        for (index, step) in self.steps.iter().enumerate().take(at + 3).skip(at.saturating_sub(25))
        {
            let mark = if index + 1 == at { "<- last before the crash" } else { "" };
            let shown = match step {
                Step::Write { inode, offset, data } => {
                    format!("Write {inode:?} {offset}+{}", data.len())
                }
                other => format!("{other:?}"),
            };
            text.push_str(&format!("  {}: {shown} {mark}\n", index + 1));
        }
        text
    }
}

fn is_named(path: &Path, extensions: &[&str]) -> bool {
    path.extension().is_some_and(|found| extensions.iter().any(|wanted| found == *wanted))
}

/// A moment in a [`Recording`].
pub struct Replay<'a> {
    recording: &'a Recording,
    pub(super) disk: Disk,
    at: usize,
}

impl Replay<'_> {
    /// How many steps have happened.
    pub fn at(&self) -> usize {
        self.at
    }

    /// Goes on by one step; false at the end.
    pub fn advance(&mut self) -> bool {
        let Some(step) = self.recording.steps.get(self.at) else { return false };
        self.disk.apply(step);
        self.at += 1;
        true
    }

    /// Goes on until `at` steps have happened.
    pub fn advance_to(&mut self, at: usize) {
        while self.at < at && self.advance() {}
    }
}
