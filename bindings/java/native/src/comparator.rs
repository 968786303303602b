//! An order of keys that is written in Java.

use std::cmp::Ordering;
use std::sync::Arc;

use jni::Env;
use jni::objects::{JByteArray, JObject};
use jni::refs::Global;
use terrace::Comparator;

use crate::attach::with_env;
use crate::callbacks::Callbacks;
use crate::comparator_failure::ComparatorFailure;

/// A `DBComparator`.
///
/// It must not throw. If it does, keys are compared as bytes from then on, and the failure keeps
/// whatever this leads to out of the database: see [`ComparatorFailure`].
pub(crate) struct JavaComparator {
    object: Global<JObject<'static>>,
    name: String,
    failure: Arc<ComparatorFailure>,
}

impl JavaComparator {
    pub(crate) fn new(
        object: Global<JObject<'static>>,
        name: String,
        failure: Arc<ComparatorFailure>,
    ) -> Self {
        JavaComparator { object, name, failure }
    }

    /// What `work` returns; `None` if Java threw.
    fn call<R>(&self, work: impl FnOnce(&mut Env<'_>) -> jni::errors::Result<R>) -> Option<R> {
        if self.failure.get().is_some() {
            return None;
        }
        with_env(work).map_err(|error| self.failure.set(error)).ok()
    }
}

fn bytes(env: &Env<'_>, array: &JByteArray<'_>) -> jni::errors::Result<Option<Vec<u8>>> {
    if array.is_null() { Ok(None) } else { env.convert_byte_array(array).map(Some) }
}

impl Comparator for JavaComparator {
    fn name(&self) -> &str {
        &self.name
    }

    fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        let order = self.call(|env| {
            let left = env.byte_array_from_slice(a)?;
            let right = env.byte_array_from_slice(b)?;
            Callbacks::compare(env, &self.object, &left, &right)
        });
        order.map_or_else(|| a.cmp(b), |order| order.cmp(&0))
    }

    fn find_shortest_separator(&self, start: &mut Vec<u8>, limit: &[u8]) {
        let shorter = self.call(|env| {
            let from = env.byte_array_from_slice(start)?;
            let to = env.byte_array_from_slice(limit)?;
            let shorter = Callbacks::separator(env, &self.object, &from, &to)?;
            bytes(env, &shorter)
        });
        // A separator that is none would have lookups miss keys.
        if let Some(shorter) = shorter.flatten()
            && shorter.len() < start.len()
            && self.compare(start, &shorter).is_le()
            && self.compare(&shorter, limit).is_lt()
        {
            *start = shorter;
        }
    }

    fn find_short_successor(&self, key: &mut Vec<u8>) {
        let shorter = self.call(|env| {
            let from = env.byte_array_from_slice(key)?;
            let shorter = Callbacks::successor(env, &self.object, &from)?;
            bytes(env, &shorter)
        });
        if let Some(shorter) = shorter.flatten()
            && shorter.len() < key.len()
            && self.compare(key, &shorter).is_le()
        {
            *key = shorter;
        }
    }
}
