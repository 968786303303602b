//! How long a benchmark may take.

use std::time::Duration;

use super::pace::{PREPARING_FACTOR, Pace, Refill};
use crate::suite::{Role, Settings, Step};

/// For the self-test.
pub(super) const SELF_TEST: Duration = Duration::from_secs(180);
/// A program that takes so many times its limit, and `grace` more, does not look at the clock and
/// is killed.
const OVERRUN: f64 = 3.0;

/// The limits of an engine in a group.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits<'a> {
    /// Seconds for one benchmark; 0 for no limit.
    pub(super) time_limit: f64,
    /// Seconds for opening and closing a database.
    pub(super) grace: f64,
    /// The engine's id.
    pub(super) engine: &'a str,
    /// The time that the run's budget allows.
    pub(super) pace: &'a Pace,
    /// Seconds for a database that is written anew, while one is.
    pub(super) refill: Option<f64>,
}

impl Limits<'_> {
    /// The limit that a step's program is told, in seconds; 0 for none.
    pub(super) fn told(&self, step: &Step) -> f64 {
        if step.workload.timed {
            return 0.0;
        }
        if let Some(seconds) = self.refill {
            return seconds;
        }
        // With a budget a cell is cut short like any other, and what reads its database gets it
        // from a quicker way to write it.
        let patient = step.patient && (step.role == Role::Prepare || !self.pace.has_budget());
        let limit = if patient { self.time_limit * PREPARING_FACTOR } else { self.time_limit };
        self.pace.allowed(self.engine, step, limit)
    }

    /// While a database is written anew.
    pub(super) fn while_refilling(self, refill: &Refill<'_>) -> Self {
        Limits { refill: Some(self.pace.allowed_to_refill(refill, self.longest())), ..self }
    }

    /// Seconds for what makes a database for others; 0 for no limit.
    pub(super) fn longest(&self) -> f64 {
        self.time_limit * PREPARING_FACTOR
    }

    /// After which a step's program is killed; without a limit only what has a duration of its own.
    pub(super) fn killed(&self, step: &Step, settings: &Settings) -> Option<Duration> {
        let asked = if step.workload.timed {
            settings.number("duration").unwrap_or(0.0) + self.time_limit
        } else if self.time_limit <= 0.0 {
            return None;
        } else if step.workload.is_whole() {
            // It cannot be cut short.
            self.time_limit * PREPARING_FACTOR * OVERRUN
        } else {
            self.told(step) * OVERRUN
        };
        Some(Duration::from_secs_f64(asked + self.grace))
    }
}
