//! Which background threads have hold of a database.
//!
//! A job signals completion under the state lock before it drops its `DbImpl`. A moment later its
//! thread drops that, and if nobody else has that any more, of open tables, the logger and
//! the environment. A C++ program brings its own kinds of these and deletes them once it has
//! deleted the database; so a close waits until no thread has any.

use std::ops::Deref;
use std::sync::Arc;

use crate::base::locks::{Condvar, Mutex};
use crate::env::Priority;

use crate::db::db_impl::DbImpl;

#[derive(Default)]
struct Threads {
    /// How many jobs have hold of the core, begun or not.
    holding: Mutex<usize>,
    /// Signalled when one has let go.
    let_go: Condvar,
}

/// See the [module](self).
#[derive(Default)]
pub(in crate::db) struct Jobs(Arc<Threads>);

impl Jobs {
    /// Returns once no background thread has hold of the core.
    pub(in crate::db) fn wait_for_none(&self) {
        let mut holding = self.0.holding.lock();
        while *holding > 0 {
            self.0.let_go.wait(&mut holding);
        }
    }
}

/// The core, for a background thread. Whatever else a job has goes before it.
pub(in crate::db) struct Held {
    core: Arc<DbImpl>,
    /// Fields are dropped in this order.
    _holding: Holding,
}

struct Holding(Arc<Threads>);

impl Drop for Holding {
    fn drop(&mut self) {
        *self.0.holding.lock() -= 1;
        self.0.let_go.notify_all();
    }
}

impl Deref for Held {
    type Target = Arc<DbImpl>;

    fn deref(&self) -> &Arc<DbImpl> {
        &self.core
    }
}

impl DbImpl {
    pub(in crate::db) fn hold(self: &Arc<Self>) -> Held {
        *self.jobs.0.holding.lock() += 1;
        Held { core: self.clone(), _holding: Holding(self.jobs.0.clone()) }
    }

    /// Runs a job on a background thread.
    pub(in crate::db) fn in_background(
        self: &Arc<Self>,
        priority: Priority,
        job: impl FnOnce(&Arc<DbImpl>) + Send + 'static,
    ) {
        let held = self.hold();
        self.env.schedule(priority, Box::new(move || job(&held)));
    }
}
