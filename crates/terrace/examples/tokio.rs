//! A database in an asynchronous program: calls that may wait for the disk run on tokio's blocking
//! threads.
//!
//! A `Db` is cheap to clone, so each call takes its own. A put that is not synced waits for the
//! disk only when flushes fall behind; a get of a block in the cache never does. What waits in any
//! case, synced writes and scans of cold data, belongs into `spawn_blocking`.
//!
//! `cargo run --example tokio`

use terrace::{Db, Options, Result, WriteOptions};

/// A handle for tasks.
#[derive(Clone)]
pub(crate) struct AsyncDb(Db);

impl AsyncDb {
    /// Runs `call` where it may block.
    async fn call<T: Send + 'static>(
        &self,
        call: impl FnOnce(&Db) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let db = self.0.clone();
        tokio::task::spawn_blocking(move || call(&db)).await.expect("no panic")
    }

    pub(crate) async fn put_durably(&self, key: String, value: &'static str) -> Result<()> {
        self.call(move |db| db.put_with(key, value, WriteOptions::sync())).await
    }

    pub(crate) async fn get(&self, key: &'static str) -> Result<Option<Vec<u8>>> {
        self.call(move |db| db.get(key)).await
    }

    /// Some keys in order, copied: an iterator would have to stay on its thread.
    pub(crate) async fn keys(&self, from: &'static str, count: usize) -> Result<Vec<Vec<u8>>> {
        self.call(move |db| {
            db.range(from..)?.take(count).map(|entry| entry.map(|(key, _)| key)).collect()
        })
        .await
    }
}

async fn run(db: AsyncDb) -> Result<()> {
    // Synced writes of many tasks share the syncs of the log.
    let tasks: Vec<_> = (0..50)
        .map(|number| {
            let db = db.clone();
            let key = format!("task {number:02}");
            tokio::spawn(async move { db.put_durably(key, "done").await })
        })
        .collect();
    for task in tasks {
        task.await.expect("no panic")?;
    }
    assert_eq!(db.get("task 49").await?.as_deref(), Some(&b"done"[..]));
    let last = db.keys("task 40", 100).await?;
    assert_eq!(last.len(), 10);
    println!("50 tasks wrote durably; {} keys from task 40 on", last.len());
    Ok(())
}

pub(crate) fn main() -> Result<()> {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let db = Db::open(dir.path().join("tasks"), Options::new().create_if_missing(true))?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .build()
        .expect("threads for tokio");
    runtime.block_on(run(AsyncDb(db.clone())))?;
    db.close()
}
