//! Progress of long work: on standard error, and only where a person looks at it.

use std::io::{self, IsTerminal};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

const REDRAW: Duration = Duration::from_millis(120);

/// A bar or a spinner; nothing at all if standard error is not a terminal. It vanishes when it is
/// dropped.
pub(crate) struct Progress(ProgressBar);

impl Progress {
    /// Work whose end is unknown.
    pub(crate) fn spinner(what: &str) -> Self {
        Self::start(ProgressBar::new_spinner(), "{spinner} {msg} {elapsed}", what)
    }

    /// Work on a number of bytes.
    pub(crate) fn bytes(what: &str, total: Option<u64>) -> Self {
        match total {
            Some(total) => {
                let bar = ProgressBar::new(total);
                Self::start(
                    bar,
                    "{msg} {wide_bar} {bytes}/{total_bytes}, {bytes_per_sec}, {eta} left",
                    what,
                )
            }
            None => Self::start(
                ProgressBar::new_spinner(),
                "{spinner} {msg} {bytes}, {bytes_per_sec}",
                what,
            ),
        }
    }

    /// Work on a number of things.
    pub(crate) fn count(what: &str, total: u64) -> Self {
        Self::start(
            ProgressBar::new(total),
            "{msg} {wide_bar} {human_pos}/{human_len}, {eta} left",
            what,
        )
    }

    /// No progress to be seen: data goes to the same terminal.
    pub(crate) fn hidden() -> Self {
        Progress(ProgressBar::hidden())
    }

    fn start(bar: ProgressBar, template: &str, what: &str) -> Self {
        if !io::stderr().is_terminal() {
            return Self::hidden();
        }
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        bar.set_message(what.to_string());
        bar.enable_steady_tick(REDRAW);
        Progress(bar)
    }

    /// Work done so far.
    pub(crate) fn set(&self, position: u64) {
        self.0.set_position(position);
    }

    /// Work done so far, of so much as is known now.
    pub(crate) fn set_of(&self, position: u64, total: u64) {
        self.0.set_length(total);
        self.0.set_position(position);
    }

    /// Work done by one of several threads.
    pub(crate) fn add(&self, amount: u64) {
        self.0.inc(amount);
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}
