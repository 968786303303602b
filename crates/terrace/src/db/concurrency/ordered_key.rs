//! Keys that sort as the database sorts them.

use std::cmp::Ordering;

use crate::base::comparator::KeyOrder;

/// The bytes of a key that a message shows.
const SHOWN: usize = 64;

/// See the [module](self).
#[derive(Clone)]
pub(in crate::db) struct OrderedKey {
    bytes: Vec<u8>,
    order: KeyOrder,
}

impl OrderedKey {
    pub(in crate::db) fn new(key: &[u8], order: &KeyOrder) -> Self {
        OrderedKey { bytes: key.to_vec(), order: order.clone() }
    }

    pub(in crate::db) fn as_slice(&self) -> &[u8] {
        &self.bytes
    }
}

impl Ord for OrderedKey {
    fn cmp(&self, other: &Self) -> Ordering {
        self.order.compare(&self.bytes, &other.bytes)
    }
}

impl PartialOrd for OrderedKey {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for OrderedKey {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for OrderedKey {}

/// A key as messages show it.
pub(in crate::db) fn shown(key: &[u8]) -> String {
    let start = key[..key.len().min(SHOWN)].escape_ascii();
    let more = if key.len() > SHOWN { " and so on" } else { "" };
    format!("\"{start}\"{more}")
}
