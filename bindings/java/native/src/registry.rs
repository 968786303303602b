//! Objects of the engine by the numbers under which Java knows them.
//!
//! Any thread may call. A number is used once and never again; 0 is none.

use std::collections::HashMap;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use arc_swap::ArcSwap;
use jni::sys::jlong;
use terrace::Error;

/// Locks are split by the number's last digits.
const SHARDS: usize = 16;

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

type Shards<T> = [Mutex<HashMap<jlong, Arc<T>>>; SHARDS];

/// Many objects with short lives: iterators, snapshots, transactions, loads, caches.
pub(crate) struct Registry<T> {
    /// What the objects are, for messages.
    noun: &'static str,
    last: AtomicI64,
    shards: OnceLock<Shards<T>>,
}

impl<T> Registry<T> {
    pub(crate) const fn new(noun: &'static str) -> Self {
        Registry { noun, last: AtomicI64::new(0), shards: OnceLock::new() }
    }

    fn shard(&self, number: jlong) -> &Mutex<HashMap<jlong, Arc<T>>> {
        let shards = self.shards.get_or_init(|| std::array::from_fn(|_| Mutex::default()));
        &shards[number as usize % SHARDS]
    }

    /// Takes in an object and returns its number.
    pub(crate) fn insert(&self, object: T) -> jlong {
        let number = self.last.fetch_add(1, Ordering::Relaxed) + 1;
        lock(self.shard(number)).insert(number, Arc::new(object));
        number
    }

    /// Returns the object, which stays alive while the caller uses it.
    ///
    /// # Errors
    /// `Closed` if it was removed.
    pub(crate) fn get(&self, number: jlong) -> terrace::Result<Arc<T>> {
        let object = lock(self.shard(number)).get(&number).cloned();
        object.ok_or_else(|| Error::closed(format!("the {} is closed", self.noun)))
    }

    /// Removes the object. `None` if it was removed before.
    pub(crate) fn remove(&self, number: jlong) -> Option<Arc<T>> {
        lock(self.shard(number)).remove(&number)
    }

    /// Removes the objects that are chosen. They are dropped without a lock held.
    pub(crate) fn remove_where(&self, is_chosen: impl Fn(&T) -> bool) {
        for shard in self.shards.get().into_iter().flatten() {
            let chosen: Vec<_> = {
                let mut objects = lock(shard);
                let numbers: Vec<_> = objects
                    .iter()
                    .filter(|(_, object)| is_chosen(object))
                    .map(|(number, _)| *number)
                    .collect();
                numbers.iter().filter_map(|number| objects.remove(number)).collect()
            };
            drop(chosen);
        }
    }
}

/// Few objects that many threads use at once: databases. Looking one up writes no shared memory.
pub(crate) struct ReadMostly<T> {
    noun: &'static str,
    last: AtomicI64,
    objects: OnceLock<ArcSwap<HashMap<jlong, Arc<T>>>>,
}

impl<T> ReadMostly<T> {
    pub(crate) const fn new(noun: &'static str) -> Self {
        ReadMostly { noun, last: AtomicI64::new(0), objects: OnceLock::new() }
    }

    fn objects(&self) -> &ArcSwap<HashMap<jlong, Arc<T>>> {
        self.objects.get_or_init(ArcSwap::default)
    }

    /// Takes in an object and returns its number.
    pub(crate) fn insert(&self, object: T) -> jlong {
        let number = self.last.fetch_add(1, Ordering::Relaxed) + 1;
        let object = Arc::new(object);
        self.objects().rcu(|objects| {
            let mut objects = HashMap::clone(objects);
            objects.insert(number, object.clone());
            objects
        });
        number
    }

    /// Runs `work` with the object, which stays alive meanwhile.
    ///
    /// # Errors
    /// `Closed` if it was removed; else those of `work`.
    pub(crate) fn with<R, E: From<Error>>(
        &self,
        number: jlong,
        work: impl FnOnce(&Arc<T>) -> Result<R, E>,
    ) -> Result<R, E> {
        let objects = self.objects().load();
        let object = objects.get(&number);
        work(object.ok_or_else(|| Error::closed(format!("the {} is closed", self.noun)))?)
    }

    /// Removes the object. `None` if it was removed before.
    pub(crate) fn remove(&self, number: jlong) -> Option<Arc<T>> {
        let mut removed = None;
        self.objects().rcu(|objects| {
            let mut objects = HashMap::clone(objects);
            removed = objects.remove(&number);
            objects
        });
        removed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_an_error_once_its_object_is_removed() {
        let registry = Registry::new("thing");
        let number = registry.insert("one");
        let held = registry.get(number).unwrap();
        assert!(registry.remove(number).is_some());
        assert!(registry.remove(number).is_none());
        assert_eq!(*held, "one");
        let error = registry.get(number).unwrap_err();
        assert_eq!(error.kind(), terrace::ErrorKind::Closed);
        assert_eq!(error.message(), "the thing is closed");
        assert!(registry.get(0).is_err());
        assert!(registry.get(-1).is_err());
        assert_ne!(registry.insert("two"), number);
    }

    #[test]
    fn chosen_objects_are_removed_and_others_stay() {
        let registry = Registry::new("thing");
        registry.remove_where(|_: &i32| true);
        let numbers: Vec<_> = (0..100).map(|object| registry.insert(object)).collect();
        registry.remove_where(|object| object % 3 == 0);
        for (object, number) in numbers.into_iter().enumerate() {
            assert_eq!(registry.get(number).is_ok(), object % 3 != 0);
        }
    }

    #[test]
    fn an_object_in_use_outlives_its_removal() {
        let objects = ReadMostly::new("thing");
        let number = objects.insert(String::from("one"));
        objects
            .with(number, |one| {
                assert!(objects.remove(number).is_some());
                assert_eq!(**one, "one");
                Ok::<_, Error>(())
            })
            .unwrap();
        assert!(objects.with(number, |_| Ok::<_, Error>(())).is_err());
    }
}
