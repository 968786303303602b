//! Which background threads have hold of a database.
//!
//! A job signals completion under the state lock before it drops its part of the `DbImpl`. A moment
//! later its thread drops that, and with it, if there is no other reference, the open tables, the
//! logger and the environment. A C++ program brings its own kinds of these and deletes them once it
//! has deleted the database; so a close waits until no thread has any.

use std::ops::Deref;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};

use crate::base::locks::{Condvar, Mutex};
use crate::env::{Env, Priority};

#[derive(Default)]
struct Threads {
    /// How many jobs have hold of the core, begun or not.
    holding: Mutex<usize>,
    /// Whether no more may have, which is set with `holding` locked.
    is_over: AtomicBool,
    /// Signalled when one has let go.
    let_go: Condvar,
}

/// See the [module](self).
#[derive(Default)]
pub(in crate::db) struct Jobs(Arc<Threads>);

impl Jobs {
    /// The core, for a job of a background thread.
    pub(in crate::db) fn hold<T>(&self, core: &Arc<T>) -> Held<T> {
        *self.0.holding.lock() += 1;
        Held { core: core.clone(), _holding: Holding(self.0.clone()) }
    }

    /// The core, for a job that did not keep it while it was not due, if the core is still there.
    pub(in crate::db) fn later<T>(&self, core: &Arc<T>) -> Later<T> {
        Later { core: Arc::downgrade(core), threads: self.0.clone() }
    }

    /// Runs a job of the core's on a background thread.
    pub(in crate::db) fn run<T: Send + Sync + 'static>(
        &self,
        core: &Arc<T>,
        env: &dyn Env,
        priority: Priority,
        job: impl FnOnce(&Arc<T>) + Send + 'static,
    ) {
        let held = self.hold(core);
        env.schedule(priority, Box::new(move || job(&held)));
    }

    /// Returns once no background thread has hold of the core. Nothing that was put off gets it
    /// from then on.
    pub(in crate::db) fn wait_for_none(&self) {
        let mut holding = self.0.holding.lock();
        while *holding > 0 {
            self.0.let_go.wait(&mut holding);
        }
        self.0.is_over.store(true, Ordering::Relaxed);
    }
}

/// The core, for a background thread. A job drops it after everything else.
pub(in crate::db) struct Held<T> {
    core: Arc<T>,
    /// Fields are dropped in this order.
    _holding: Holding,
}

/// The core for later, if it is still there.
pub(in crate::db) struct Later<T> {
    core: Weak<T>,
    threads: Arc<Threads>,
}

impl<T> Later<T> {
    pub(in crate::db) fn hold(&self) -> Option<Held<T>> {
        {
            let mut holding = self.threads.holding.lock();
            if self.threads.is_over.load(Ordering::Relaxed) {
                return None;
            }
            // Counted first: who waits for the last one waits for this one, too.
            *holding += 1;
        }
        let _holding = Holding(self.threads.clone());
        Some(Held { core: self.core.upgrade()?, _holding })
    }
}

struct Holding(Arc<Threads>);

impl Drop for Holding {
    fn drop(&mut self) {
        *self.0.holding.lock() -= 1;
        self.0.let_go.notify_all();
    }
}

impl<T> Deref for Held<T> {
    type Target = Arc<T>;

    fn deref(&self) -> &Arc<T> {
        &self.core
    }
}
