//! A reader of a node and its writer in every interleaving, and with every value that a weakly
//! ordered machine may show.
//!
//! `RUSTFLAGS="--cfg loom" cargo test -p terrace --lib interleavings`. Nodes are four wide here. Of
//! a whole tree there are too many interleavings: `tests` tries that with threads.

#![allow(unsafe_code)]

use std::ptr::NonNull;

use loom::thread;

use super::atomics::{in_model, is_writer};
use super::node::{BEFORE_ALL, Entry, Node, Prefix, Shape, abbreviate};
use super::record::{Bound, Record};
use crate::base::internal_key::InternalOrder;

/// A record that is never freed.
fn record(key: &'static str) -> Record {
    let room = Box::leak(vec![0u64; Record::size(key.as_bytes(), b"") / 8 + 1].into_boxed_slice());
    let record = Record::at(NonNull::from(room).cast());
    // SAFETY: enough room, and nobody knows of it.
    unsafe { record.write(key.as_bytes(), 1, b"") };
    record
}

fn entry(key: &'static str, skip: usize) -> Entry {
    let abbreviated = abbreviate(&InternalOrder::default(), key.as_bytes(), skip);
    Entry { abbreviated, pointer: record(key).pointer() }
}

/// A leaf of these keys that is never freed.
fn leaf(keys: &[&'static str], prefix: Prefix, next: Option<&'static Node>) -> &'static Node {
    leaf_at(false, keys, prefix, next)
}

fn leaf_at(
    leftmost: bool,
    keys: &[&'static str],
    prefix: Prefix,
    next: Option<&'static Node>,
) -> &'static Node {
    let shape = Shape { level: 0, leftmost, low: record(keys[0]), low_tag: BEFORE_ALL };
    let entries: Vec<_> = keys.iter().map(|key| entry(key, prefix.skip)).collect();
    let room = Box::leak(Box::new(std::mem::MaybeUninit::<Node>::uninit()));
    // SAFETY: enough room for ever; the entries are records that are never freed.
    unsafe {
        Node::create(NonNull::from(room).cast(), shape, prefix, &entries, next.map(NonNull::from))
            .as_ref()
    }
}

/// A reader's result for `key` in `node` and its right siblings: the first key not before it.
fn find(mut node: &'static Node, key: &str) -> Option<&'static str> {
    let order = InternalOrder::default();
    let target = Bound { user_key: key.as_bytes(), tag: u64::MAX - 1 };
    loop {
        let snapshot = node.snapshot();
        let at = node.locate(&order, snapshot, &target);
        let found = (at < snapshot.state.count()).then(|| node.record(snapshot.state.slot(at)));
        if !node.is_current(snapshot) {
            continue;
        }
        // SAFETY: records here are never freed.
        let found = found
            .map(|record| std::str::from_utf8(unsafe { record.user_key() }).expect("a test's key"));
        if found.is_some_and(|found| found >= key) {
            return found;
        }
        node = node.next()?;
    }
}

/// Tries `write` against a reader of each of these keys, which must find one of these results.
fn explore(
    write: fn(&'static Node),
    full: &'static [&'static str],
    reads: &[(&'static str, &'static [&'static str])],
) {
    explore_at(false, write, full, reads);
}

fn explore_at(
    leftmost: bool,
    write: fn(&'static Node),
    full: &'static [&'static str],
    reads: &[(&'static str, &'static [&'static str])],
) {
    for &(key, allowed) in reads {
        let mut builder = loom::model::Builder::new();
        builder.preemption_bound = Some(2);
        let model = move || {
            let node = leaf_at(leftmost, full, Prefix { skip: 0, confined: true }, None);
            let thread = thread::spawn(move || {
                is_writer();
                write(node);
            });
            let found = find(node, key).unwrap_or("nothing");
            assert!(allowed.contains(&found), "{found} for {key}");
            thread.join().expect("the writer");
        };
        in_model(|| builder.check(model));
    }
}

fn put(node: &Node, at: usize, key: &'static str) {
    let entry = entry(key, node.state().skip());
    // SAFETY: a record, never freed.
    unsafe { node.put(at, entry) };
}

fn split(node: &Node, right: &'static Node) {
    // SAFETY: never freed.
    unsafe { node.split_off(2, NonNull::from(right)) };
}

#[test]
fn an_entry_comes_whole() {
    fn write(node: &'static Node) {
        put(node, 1, "2");
        put(node, 0, "0");
    }
    explore(
        write,
        &["1", "3"],
        &[("0", &["0", "1"]), ("1", &["1"]), ("2", &["2", "3"]), ("3", &["3"])],
    );
}

#[test]
fn a_split_hides_nothing() {
    fn write(node: &'static Node) {
        split(node, leaf(&["5", "7"], Prefix { skip: 0, confined: true }, None));
        put(node, 1, "2");
    }
    let reads: [(_, &[_]); 4] = [("1", &["1"]), ("3", &["3"]), ("5", &["5"]), ("6", &["7"])];
    explore(write, &["1", "3", "5", "7"], &reads);
}

/// All abbreviated keys are equal at first; then they are computed from later bytes, in slots that
/// others leave.
#[test]
fn other_abbreviated_keys_hide_nothing() {
    const PREFIX: Prefix = Prefix { skip: 9, confined: true };
    fn write(node: &'static Node) {
        split(node, leaf(&["long key 5", "long key 7"], PREFIX, None));
        node.change_prefix(&InternalOrder::default(), PREFIX);
        put(node, 1, "long key 2");
    }
    let full = &["long key 1", "long key 3", "long key 5", "long key 7"];
    explore(write, full, &[("long key 1", &["long key 1"]), ("long key 6", &["long key 7"])]);
}

/// In the first node of a level a prefix may be longer than what all keys that are sought there
/// begin with.
#[test]
fn a_prefix_that_some_keys_lack_misleads_no_reader() {
    const PREFIX: Prefix = Prefix { skip: 9, confined: false };
    fn write(node: &'static Node) {
        split(node, leaf(&["long key 5", "long key 7"], PREFIX, None));
        node.change_prefix(&InternalOrder::default(), PREFIX);
    }
    let full = &["long key 1", "long key 3", "long key 5", "long key 7"];
    // Its tenth byte is after those of all keys, its first before.
    let reads: [(_, &[_]); 2] = [("a........9", &["long key 1"]), ("long key 6", &["long key 7"])];
    explore_at(true, write, full, &reads);
}
