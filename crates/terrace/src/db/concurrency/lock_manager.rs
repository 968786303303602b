//! Locks on keys: their holders, their queues, and the wait-for graph.
//!
//! A lock has one holder at a time. A request for a held lock joins the lock's queue. A release
//! grants the lock to the first request in it if that has waited for [`FAIR_AFTER`]. Before, the
//! lock is free and the first request is woken: a thread that runs may take it meanwhile, so that
//! short transactions on one key do not wait for a change of thread each. One that gives way in a
//! cycle hands its locks over, and queues from then on: it would close the cycle again and again
//! before the others wake. An owner waits for one key at a time, so the wait-for graph is a set of
//! chains, and a cycle is found when its last wait begins: the youngest owner in the cycle gets the
//! error.
//!
//! # Invariants
//! 1. The count of users is changed under the table's lock, and is not zero while a lock is held.
//! 2. A queue holds owners that wait for its key, each once, in the order in which they came.
//! 3. A lock without a holder has a queue, the first in which is awake or about to wake.
//! 4. In a child of a fork nobody takes the table's lock, which a thread may hold that is not
//!    there: owners that are dropped there leave the table as it is.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::base::comparator::KeyOrder;
use crate::base::error::{Error, ErrorKind, Result};
use crate::base::fork::Origin;
use crate::base::locks::{AtomicU64, Condvar, Mutex, MutexGuard};
use crate::base::mutation::mutated;
use crate::env::Env;

use super::ordered_key::{OrderedKey, shown};
use super::ordered_range::{KeyBounds, OrderedRange};
use super::users::Users;

/// After so many microseconds, or half of its time limit, a request is the next to get its lock.
const FAIR_AFTER: u64 = 1000;

/// The number of an owner that gives way to all others: it takes its locks anew.
const YOUNGEST: u64 = u64::MAX;

/// How old a transaction is: of a cycle the one with the greatest number gives way. It keeps its
/// age when it runs again.
#[derive(Clone, Copy, Debug)]
pub(in crate::db) struct Age {
    number: u64,
    gave_way: bool,
}

impl Age {
    /// Of a transaction that runs again.
    pub(in crate::db) fn again(self) -> Self {
        Age { gave_way: true, ..self }
    }
}

/// See the [module](self).
pub(in crate::db) struct LockManager {
    order: KeyOrder,
    env: Arc<dyn Env>,
    table: Mutex<Table>,
    /// Counts every locked key.
    users: Arc<Users>,
    next_owner: AtomicU64,
    waits: AtomicU64,
    origin: Origin,
}

#[derive(Default)]
struct Table {
    locks: BTreeMap<OrderedKey, Lock>,
    waits: HashMap<u64, Wait>,
    /// Owners that errors name otherwise than by their numbers.
    names: HashMap<u64, String>,
    closed: Option<Error>,
}

struct Lock {
    holder: Option<u64>,
    queue: VecDeque<u64>,
}

/// One owner's wait.
struct Wait {
    key: OrderedKey,
    age: u64,
    /// From when on a release hands the lock over, in microseconds.
    due: u64,
    /// Whether its thread runs, or has been woken to look at the lock.
    is_awake: bool,
    /// How it ended.
    outcome: Option<Result<()>>,
    ended: Arc<Condvar>,
}

/// An owner of locks, and the locks that it holds. Dropped, it gives them up.
pub(in crate::db) struct LockOwner {
    manager: Arc<LockManager>,
    id: u64,
    age: Age,
    timeout: Duration,
    keys: BTreeSet<OrderedKey>,
}

impl LockManager {
    pub(in crate::db) fn new(order: KeyOrder, env: Arc<dyn Env>, users: Arc<Users>) -> Self {
        LockManager {
            order,
            env,
            table: Mutex::default(),
            users,
            next_owner: AtomicU64::new(1),
            waits: AtomicU64::new(0),
            origin: Origin::here(),
        }
    }

    /// The age of a transaction that begins: it is younger than all before.
    pub(in crate::db) fn next_age(&self) -> Age {
        Age { number: self.next_number(), gave_way: false }
    }

    fn next_number(&self) -> u64 {
        self.next_owner.fetch_add(1, Ordering::Relaxed)
    }

    /// An owner of a transaction's locks, which waits for each at most `timeout`; forever if that
    /// is [`Duration::MAX`]. Of a cycle the youngest owner gives way.
    pub(in crate::db) fn owner(self: &Arc<Self>, age: Age, timeout: Duration) -> LockOwner {
        LockOwner {
            manager: self.clone(),
            id: self.next_number(),
            age,
            timeout,
            keys: BTreeSet::new(),
        }
    }

    /// An owner for one write, which gives way in every cycle, and begins anew.
    pub(in crate::db) fn writer(self: &Arc<Self>, timeout: Duration) -> LockOwner {
        self.owner(Age { number: YOUNGEST, gave_way: false }, timeout)
    }

    /// The first of `keys` that another than `owner` has locked.
    pub(in crate::db) fn locked_key<'k>(
        &self,
        owner: Option<&LockOwner>,
        mut keys: impl Iterator<Item = &'k [u8]>,
    ) -> Option<OrderedKey> {
        let table = self.table.lock();
        let id = owner.map(|owner| owner.id);
        let is_others = |key: &OrderedKey| {
            table.locks.get(key).is_some_and(|lock| lock.is_held_by_another_than(id))
        };
        keys.find_map(|key| Some(OrderedKey::new(key, &self.order)).filter(is_others))
    }

    /// The first key in one of `ranges` that another than `owner` has locked.
    pub(in crate::db) fn locked_in_ranges<'k>(
        &self,
        owner: Option<&LockOwner>,
        mut ranges: impl Iterator<Item = KeyBounds<'k>>,
    ) -> Option<OrderedKey> {
        let table = self.table.lock();
        let id = owner.map(|owner| owner.id);
        ranges.find_map(|range| {
            let range = OrderedRange::new(range, &self.order);
            let mut locks = table.locks.range(Some(range.bounds()).filter(|_| range.has_room())?);
            locks.find(|(_, lock)| lock.is_held_by_another_than(id)).map(|(key, _)| key.clone())
        })
    }

    /// How many keys are locked, or about to be.
    pub(in crate::db) fn held(&self) -> usize {
        self.table.lock().locks.len()
    }

    /// How often an owner had to wait.
    pub(in crate::db) fn waits(&self) -> u64 {
        self.waits.load(Ordering::Relaxed)
    }

    /// Ends every wait, and has every further one fail with `error`.
    pub(in crate::db) fn close(&self, error: &Error) {
        let mut table = self.table.lock();
        for wait in table.waits.values_mut() {
            wait.outcome.get_or_insert(Err(error.clone()));
            wait.ended.notify_all();
        }
        table.locks.values_mut().for_each(|lock| lock.queue.clear());
        table.locks.retain(|_, lock| {
            let is_held = lock.holder.is_some();
            if !is_held {
                self.users.remove();
            }
            is_held
        });
        table.closed = Some(error.clone());
    }
}

impl Lock {
    fn is_held_by_another_than(&self, owner: Option<u64>) -> bool {
        self.holder.is_some() && self.holder != owner
    }
}

impl Table {
    /// The owners that wait for one another, from `owner`, if it waited for `key`, back to it.
    fn cycle(&self, owner: u64, key: &OrderedKey) -> Option<Vec<u64>> {
        let mut cycle = vec![owner];
        let mut wanted = key;
        loop {
            let holder = self.locks.get(wanted)?.holder?;
            if holder == owner {
                return Some(cycle);
            }
            cycle.push(holder);
            // Its wait is over if it has an outcome: it is about to go on.
            wanted = &self.waits.get(&holder).filter(|wait| wait.outcome.is_none())?.key;
        }
    }

    /// Describes the wait-for graph.
    fn describe(&self, cycle: &[u64], key: &OrderedKey) -> Error {
        let mut text = String::new();
        for (at, &waiting) in cycle.iter().enumerate() {
            let holder = cycle[(at + 1) % cycle.len()];
            let wanted = match at {
                0 => shown(key.as_slice()),
                _ => self
                    .waits
                    .get(&waiting)
                    .map_or(String::new(), |wait| shown(wait.key.as_slice())),
            };
            let separator = if at == 0 { "" } else { ", " };
            text += &format!(
                "{separator}transaction {waiting} waits for {wanted} of transaction {holder}"
            );
        }
        Error::deadlock(text)
    }

    /// Ends the wait of an owner with an error. Its lock has a holder, or another is the first in
    /// its queue.
    fn refuse(&mut self, owner: u64, error: Error) {
        let Some(wait) = self.waits.get_mut(&owner) else { return };
        wait.outcome = Some(Err(error));
        wait.ended.notify_all();
        if let Some(lock) = self.locks.get_mut(&wait.key) {
            lock.queue.retain(|&queued| queued != owner);
        }
    }

    /// Wakes the first in the queue of a lock without a holder. If there is none, so is the lock.
    fn offer(&mut self, key: &OrderedKey, users: &Users) {
        match self.locks.get(key).and_then(|lock| lock.queue.front()) {
            Some(first) => {
                if let Some(wait) = self.waits.get_mut(first).filter(|wait| !wait.is_awake) {
                    wait.is_awake = true;
                    wait.ended.notify_all();
                }
            }
            None => {
                self.locks.remove(key);
                users.remove();
            }
        }
    }

    /// Takes the lock for `owner`, the first in its queue, if it has no holder.
    fn take_as_first(&mut self, owner: u64, key: &OrderedKey) -> bool {
        let Some(lock) = self.locks.get_mut(key) else { return false };
        let is_free = lock.holder.is_none() && lock.queue.front() == Some(&owner);
        if is_free {
            lock.queue.pop_front();
            lock.holder = Some(owner);
        }
        is_free
    }
}

impl LockOwner {
    /// Whether it holds the lock of `key`.
    pub(in crate::db) fn holds(&self, key: &[u8]) -> bool {
        !self.keys.is_empty() && self.keys.contains(&OrderedKey::new(key, &self.manager.order))
    }

    /// The keys that it has locked.
    pub(in crate::db) fn keys(&self) -> impl Iterator<Item = Vec<u8>> + '_ {
        self.keys.iter().map(|key| key.as_slice().to_vec())
    }

    /// Has errors of those that wait for its locks name it so.
    pub(in crate::db) fn set_name(&self, name: String) {
        self.manager.table.lock().names.insert(self.id, name);
    }

    /// Whether it may be asked to begin anew rather than its caller.
    pub(in crate::db) fn gives_way(&self) -> bool {
        self.age.number == YOUNGEST
    }

    /// Locks `key`, when it is this owner's turn.
    ///
    /// # Errors
    /// `Deadlock` if this owner, the youngest of a cycle, has to give way; all its locks are given
    /// up then. `TimedOut` after the owner's time. `Closed` if the database is closed meanwhile.
    pub(in crate::db) fn lock(&mut self, key: &[u8]) -> Result<()> {
        self.lock_ordered(OrderedKey::new(key, &self.manager.order))
    }

    pub(in crate::db) fn lock_ordered(&mut self, key: OrderedKey) -> Result<()> {
        let manager = self.manager.clone();
        let mut table = manager.table.lock();
        if let Some(error) = &table.closed {
            return Err(error.clone());
        }
        match table.locks.get_mut(&key) {
            Some(lock) if lock.holder == Some(self.id) => return Ok(()),
            Some(lock) if lock.holder.is_none() && !self.age.gave_way => {
                lock.holder = Some(self.id);
                self.keys.insert(key);
                return Ok(());
            }
            Some(_) => {}
            None => {
                let lock = Lock { holder: Some(self.id), queue: VecDeque::new() };
                table.locks.insert(key.clone(), lock);
                manager.users.add();
                self.keys.insert(key);
                return Ok(());
            }
        }
        if !mutated("deadlocks")
            && let Some(cycle) = table.cycle(self.id, &key)
        {
            let error = table.describe(&cycle, &key);
            let age = |owner: u64| table.waits.get(&owner).map_or(self.age.number, |wait| wait.age);
            let youngest = cycle.iter().copied().max_by_key(|&owner| age(owner));
            match youngest {
                Some(other) if other != self.id => table.refuse(other, error),
                _ => {
                    self.give_way(&mut table);
                    return Err(error);
                }
            }
        }
        let waited = self.wait(&mut table, key);
        if waited.as_ref().is_err_and(|error| error.kind() == ErrorKind::Deadlock) {
            self.give_way(&mut table);
        }
        waited
    }

    /// Queues for a lock, and waits until it is there.
    fn wait(&mut self, table: &mut MutexGuard<'_, Table>, key: OrderedKey) -> Result<()> {
        let ended = Arc::new(Condvar::new());
        let env = self.manager.env.clone();
        let since = env.now_micros();
        let wait = Wait {
            key: key.clone(),
            age: self.age.number,
            due: since.saturating_add(FAIR_AFTER.min(self.timeout.as_micros() as u64 / 2)),
            is_awake: true,
            outcome: None,
            ended: ended.clone(),
        };
        table.waits.insert(self.id, wait);
        self.manager.waits.fetch_add(1, Ordering::Relaxed);
        if let Some(lock) = table.locks.get_mut(&key) {
            match mutated("fair-queues") {
                true => lock.queue.push_front(self.id),
                false => lock.queue.push_back(self.id),
            }
        }
        let mut in_time = true;
        let outcome = loop {
            let outcome = table.waits.get_mut(&self.id).and_then(|wait| wait.outcome.take());
            if let Some(outcome) = outcome {
                break outcome;
            }
            if table.take_as_first(self.id, &key) {
                break Ok(());
            }
            if !in_time {
                let error = self.timed_out(table, &key);
                table.refuse(self.id, error.clone());
                break Err(error);
            }
            let waited = Duration::from_micros(env.now_micros().saturating_sub(since));
            let left = self.timeout.checked_sub(waited);
            if let Some(wait) = table.waits.get_mut(&self.id).filter(|_| left.is_some()) {
                wait.is_awake = false;
            }
            match left {
                _ if self.timeout == Duration::MAX => ended.wait(table),
                Some(left) => _ = ended.wait_for(table, left),
                None => in_time = false,
            }
        };
        table.waits.remove(&self.id);
        if outcome.is_ok() {
            self.keys.insert(key);
        }
        outcome
    }

    fn timed_out(&self, table: &Table, key: &OrderedKey) -> Error {
        let (shown, time) = (shown(key.as_slice()), self.timeout);
        let holder = match table.locks.get(key).and_then(|lock| lock.holder) {
            None => "others come before in its queue".to_owned(),
            Some(holder) => match table.names.get(&holder) {
                None => format!("transaction {holder} holds the lock"),
                Some(name) => format!("{name} holds the lock"),
            },
        };
        Error::timed_out(format!("waited {time:?} for the lock of {shown}; {holder}"))
    }

    /// Ends a cycle: gives all locks up, and hands each to the first in its queue. A transaction that
    /// runs again would take a free one back before that wakes, and close the same cycle.
    fn give_way(&mut self, table: &mut Table) {
        self.age = self.age.again();
        self.release(table, !mutated("cycles-hand-over"));
    }

    /// Gives all locks up, each to the first in its queue if that has waited for long or, for another
    /// reason, `is_next`.
    fn release(&mut self, table: &mut Table, is_next: bool) {
        for key in std::mem::take(&mut self.keys) {
            let Some(lock) = table.locks.get_mut(&key) else { continue };
            lock.holder = None;
            let first = lock.queue.front().copied();
            let wait = first.and_then(|first| table.waits.get_mut(&first));
            let is_due = |wait: &&mut Wait| {
                is_next || self.manager.env.now_micros() >= wait.due && !mutated("fair-after")
            };
            match wait.filter(is_due) {
                None => table.offer(&key, &self.manager.users),
                Some(wait) => {
                    lock.queue.pop_front();
                    lock.holder = first;
                    wait.outcome = Some(Ok(()));
                    wait.ended.notify_all();
                }
            }
        }
    }
}

impl Drop for LockOwner {
    fn drop(&mut self) {
        if !self.keys.is_empty() && !self.manager.origin.is_ancestor() {
            let manager = self.manager.clone();
            let mut table = manager.table.lock();
            table.names.remove(&self.id);
            self.release(&mut table, false);
        }
    }
}
