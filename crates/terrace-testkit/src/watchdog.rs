//! Ends the process when a run hangs, so that a hang is a failure with a seed and not a timeout
//! without one.

use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

/// Watches one run. The process is aborted unless it is dropped or fed in time.
pub struct Watchdog {
    shared: Arc<Shared>,
}

struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    label: String,
    fed: u64,
    done: bool,
}

impl Watchdog {
    /// Watches from now on; `label` names the run, its seed above all.
    pub fn new(limit: Duration, label: impl Into<String>) -> Watchdog {
        let state = State { label: label.into(), fed: 0, done: false };
        let shared = Arc::new(Shared { state: Mutex::new(state), changed: Condvar::new() });
        let watched = shared.clone();
        std::thread::spawn(move || watched.watch(limit));
        Watchdog { shared }
    }

    /// Says that the run goes on, as `label`; the time begins anew.
    pub fn feed(&self, label: impl Into<String>) {
        let mut state = self.shared.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.label = label.into();
        state.fed += 1;
        drop(state);
        self.shared.changed.notify_all();
    }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        self.shared.state.lock().unwrap_or_else(PoisonError::into_inner).done = true;
        self.shared.changed.notify_all();
    }
}

impl Shared {
    fn watch(&self, limit: Duration) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            let fed = state.fed;
            let waiting = |state: &mut State| state.fed == fed && !state.done;
            let (next, timeout) = self
                .changed
                .wait_timeout_while(state, limit, waiting)
                .unwrap_or_else(PoisonError::into_inner);
            state = next;
            if state.done {
                return;
            }
            if timeout.timed_out() {
                eprintln!("HANG: no progress within {limit:?}: {}", state.label);
                std::process::abort();
            }
        }
    }
}
