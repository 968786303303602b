//! The incarnations of keyspaces that there are handles of.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::base::locks::Mutex;

use crate::db::view::catalogue::keyspace_options::KeyspaceOptions;

/// A keyspace from its creation, or from when it was found, to its end.
pub(in crate::db) struct Incarnation {
    /// The prefix of its keys.
    pub(in crate::db) prefix: Vec<u8>,
    pub(in crate::db) options: KeyspaceOptions,
    is_dropped: AtomicBool,
}

impl Incarnation {
    pub(in crate::db) fn new(prefix: Vec<u8>, options: KeyspaceOptions) -> Arc<Self> {
        Arc::new(Incarnation { prefix, options, is_dropped: AtomicBool::new(false) })
    }

    pub(in crate::db) fn is_alive(&self) -> bool {
        !self.is_dropped.load(Ordering::Acquire)
    }
}

/// See the [module](self).
#[derive(Default)]
pub(in crate::db) struct Incarnations {
    pub(in crate::db) registry: Mutex<Registry>,
    /// Held while a keyspace is created or dropped, which may wait for locks and flushes.
    pub(in crate::db) one_at_a_time: Mutex<()>,
    /// Held while the settings of a keyspace are taken from its entry or given to it: nothing waits
    /// meanwhile.
    pub(in crate::db) settings: Mutex<()>,
}

/// See [`Incarnations`].
#[derive(Default)]
pub(in crate::db) struct Registry {
    /// By their prefixes.
    pub(in crate::db) alive: BTreeMap<Vec<u8>, Arc<Incarnation>>,
    /// How many keyspaces were dropped: what was found before one was may be gone.
    pub(in crate::db) drops: u64,
}

impl Registry {
    pub(in crate::db) fn get_or_add(
        &mut self,
        prefix: Vec<u8>,
        options: KeyspaceOptions,
    ) -> Arc<Incarnation> {
        let new = || Incarnation::new(prefix.clone(), options);
        self.alive.entry(prefix.clone()).or_insert_with(new).clone()
    }

    /// Ends the incarnations of a prefix and of what lies within it.
    pub(in crate::db) fn end(&mut self, prefix: &[u8]) {
        self.drops += 1;
        let within = self.alive.range(prefix.to_vec()..);
        let within = within.take_while(|(other, _)| other.starts_with(prefix));
        let ended: Vec<_> = within.map(|(other, _)| other.clone()).collect();
        for incarnation in ended.iter().filter_map(|other| self.alive.remove(other)) {
            incarnation.is_dropped.store(true, Ordering::Release);
        }
    }
}
