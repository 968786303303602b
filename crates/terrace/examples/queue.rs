//! A durable queue: any number of producers and consumers, and no message is taken twice.
//!
//! Keys are numbers in big-endian form, so that their order is that of arrival. A message that was
//! taken stays deleted after a crash, because the pop is synced before the message is handed out.
//!
//! `cargo run --example queue`

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use terrace::{Db, Options, Result, WriteOptions};

/// A queue in a database of its own.
pub(crate) struct Queue {
    db: Db,
    next: AtomicU64,
}

impl Queue {
    /// Opens or creates the queue and goes on behind its last message.
    pub(crate) fn open(path: impl AsRef<Path>) -> Result<Queue> {
        let db = Db::open(path, Options::new().create_if_missing(true))?;
        let last = db.last()?.and_then(|(key, _)| key.try_into().ok()).map(u64::from_be_bytes);
        Ok(Queue { db, next: AtomicU64::new(last.map_or(0, |last| last + 1)) })
    }

    /// Appends a message, which is durable when the call returns.
    pub(crate) fn push(&self, message: impl AsRef<[u8]>) -> Result<()> {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        self.db.put_with(number.to_be_bytes(), message, WriteOptions::sync())
    }

    /// Takes the oldest message. Of two consumers each gets another one.
    pub(crate) fn pop(&self) -> Result<Option<Vec<u8>>> {
        let oldest = self.db.pop_first_in::<&[u8]>(.., WriteOptions::sync())?;
        Ok(oldest.map(|(_, message)| message))
    }
}

pub(crate) fn main() -> Result<()> {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let queue = Queue::open(dir.path().join("queue"))?;
    for number in 0..20 {
        queue.push(format!("message {number}"))?;
    }
    let taken = std::thread::scope(|scope| {
        let consume = || std::iter::from_fn(|| queue.pop().transpose()).collect::<Result<Vec<_>>>();
        let consumers = [scope.spawn(consume), scope.spawn(consume)];
        consumers.map(|consumer| consumer.join().expect("no panic"))
    });
    let mut messages = Vec::new();
    for share in taken {
        messages.extend(share?);
    }
    messages.sort_unstable();
    messages.dedup();
    assert_eq!(messages.len(), 20, "each message was taken once");
    println!("20 messages, each taken once by one of two consumers");
    queue.db.close()
}
