//! Progress of a run: a bar with the time left on a terminal, a line per group
//! elsewhere.

use std::collections::BTreeMap;
use std::io::{IsTerminal, stderr};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};

use crate::notice::notice;

/// The display. It learns how long each group takes.
pub(super) struct Progress {
    /// Group and engine of what is still to do; the first comes next, roughly.
    left: Vec<(u32, usize, usize)>,
    total: usize,
    /// Seconds and how many, by group.
    taken: BTreeMap<usize, (f64, u32)>,
    bar: Option<ProgressBar>,
    current: Option<Current>,
}

struct Current {
    round: u32,
    group: usize,
    label: String,
    began: Instant,
}

impl Progress {
    pub(super) fn new(work: Vec<(u32, usize, usize)>) -> Progress {
        let bar = stderr().is_terminal().then(|| {
            let bar = ProgressBar::new(work.len() as u64);
            let style =
                ProgressStyle::with_template("[{elapsed_precise}] {bar:24} {pos}/{len} {wide_msg}");
            bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
            bar.enable_steady_tick(Duration::from_millis(500));
            bar
        });
        let total = work.len();
        Progress { left: work, total, taken: BTreeMap::new(), bar, current: None }
    }

    /// An engine begins with a group.
    pub(super) fn begin(
        &mut self,
        round: u32,
        rounds: u32,
        group: usize,
        name: &str,
        engine: &str,
    ) {
        let which =
            if rounds > 1 { format!("round {} of {rounds}, ", round + 1) } else { String::new() };
        let label = format!("{which}{name}: {engine}");
        self.current = Some(Current { round, group, label, began: Instant::now() });
        self.doing("");
    }

    /// The engine goes on to a benchmark.
    pub(super) fn doing(&self, benchmark: &str) {
        let Some(current) = &self.current else { return };
        if let Some(bar) = &self.bar {
            let left = self.time_left();
            bar.set_message(format!(
                "{}{}{} {benchmark}",
                left.trim(),
                if left.is_empty() { "" } else { " " },
                current.label
            ));
        }
    }

    /// The engine ends with the group.
    pub(super) fn end(&mut self, remark: &str) {
        let Some(current) = self.current.take() else { return };
        let seconds = current.began.elapsed().as_secs_f64();
        let taken = self.taken.entry(current.group).or_insert((0.0, 0));
        *taken = (taken.0 + seconds, taken.1 + 1);
        // Which engine's is done does not matter for the time.
        let of = |(round, group, _): &(u32, usize, usize)| {
            (*round, *group) == (current.round, current.group)
        };
        if let Some(at) = self.left.iter().position(of) {
            self.left.remove(at);
        }
        let remark = if remark.is_empty() { String::new() } else { format!("  {remark}") };
        match &self.bar {
            Some(bar) => {
                if !remark.is_empty() {
                    bar.println(format!("{}{remark}", current.label));
                }
                bar.inc(1);
            }
            None => {
                let done = self.total - self.left.len();
                let left = self.time_left();
                notice(&format!(
                    "{done:4}/{} {seconds:7.1} s  {}{remark}{left}",
                    self.total, current.label
                ));
            }
        }
    }

    /// A group is known well enough, and left out of a round.
    pub(super) fn spare(&mut self, round: u32, group: usize) {
        let before = self.left.len();
        self.left.retain(|(a_round, a_group, _)| (*a_round, *a_group) != (round, group));
        self.total -= before - self.left.len();
        if let Some(bar) = &self.bar {
            bar.set_length(self.total as u64);
        }
    }

    /// Something that the user should not miss.
    pub(super) fn note(&self, text: &str) {
        match &self.bar {
            Some(bar) => bar.println(text),
            None => notice(text),
        }
    }

    /// The activity beside the groups.
    pub(super) fn say(&self, text: &str) {
        match &self.bar {
            Some(bar) => bar.set_message(text.to_owned()),
            None => notice(text),
        }
    }

    pub(super) fn finish(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }

    /// A group that was not run yet is taken to be like those that were.
    fn time_left(&self) -> String {
        let (seconds, count) =
            self.taken.values().fold((0.0, 0), |sum, taken| (sum.0 + taken.0, sum.1 + taken.1));
        if count == 0 {
            return String::new();
        }
        let usual = seconds / f64::from(count);
        let of = |group: &usize| {
            self.taken.get(group).map_or(usual, |(seconds, count)| seconds / f64::from(*count))
        };
        let running =
            self.current.as_ref().map_or(0.0, |current| current.began.elapsed().as_secs_f64());
        let left: f64 = self.left.iter().map(|(_, group, _)| of(group)).sum::<f64>() - running;
        let left = left.max(0.0) as u64;
        match (left / 3600, left % 3600 / 60, left % 60) {
            (0, 0, seconds) => format!("  ({seconds} s left)"),
            (0, minutes, _) => format!("  ({minutes} min left)"),
            (hours, minutes, _) => format!("  ({hours} h {minutes} min left)"),
        }
    }
}
