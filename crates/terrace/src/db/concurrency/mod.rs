//! Locks of keys and conflicts of serializable transactions, and the one load that tells a writer
//! that there are none.

pub(in crate::db) mod conflict_set;
pub(in crate::db) mod footprint;
pub(in crate::db) mod lock_manager;
pub(in crate::db) mod ordered_key;
pub(in crate::db) mod ordered_range;
pub(in crate::db) mod read_set;
mod users;

use std::hash::{DefaultHasher, Hasher};
use std::sync::Arc;

use crate::base::comparator::KeyOrder;
use crate::base::locks::{Mutex, MutexGuard};
use crate::env::Env;

use crate::db::concurrency::conflict_set::ConflictSet;
use crate::db::concurrency::lock_manager::LockManager;
use crate::db::concurrency::users::Users;

const POP_TURNS: usize = 32;

/// See the [module](self).
pub(in crate::db) struct ConcurrencyControl {
    users: Arc<Users>,
    pub(in crate::db) locks: Arc<LockManager>,
    pub(in crate::db) conflicts: ConflictSet,
    /// The turns of [`pop_turn`](Self::pop_turn).
    pops: [Mutex<()>; POP_TURNS],
}

impl ConcurrencyControl {
    pub(in crate::db) fn new(order: &KeyOrder, env: &Arc<dyn Env>) -> Self {
        let users = Arc::new(Users::default());
        ConcurrencyControl {
            locks: Arc::new(LockManager::new(order.clone(), env.clone(), users.clone())),
            conflicts: ConflictSet::new(order.clone(), users.clone()),
            users,
            pops: Default::default(),
        }
    }

    /// Held while the first or last entry of a range that begins with `from` is popped: all who do
    /// that want the same one. Few others wait for it.
    pub(in crate::db) fn pop_turn(&self, from: &[u8]) -> MutexGuard<'_, ()> {
        let mut hasher = DefaultHasher::new();
        hasher.write(from);
        self.pops[hasher.finish() as usize % POP_TURNS].lock()
    }

    /// Whether a commit has to look at locks, and to be recorded. The caller holds the commit lock.
    #[inline]
    pub(in crate::db) fn is_used(&self) -> bool {
        self.users.are_there()
    }
}
