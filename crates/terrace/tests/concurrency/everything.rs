//! Threads that use everything at once: transactions of every kind, atomic updates, keyspaces that
//! come and go, range deletes, filters, snapshots, a small memory budget.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use terrace::{
    CompactOptions, CompactionFilter, Counter, Db, ErrorKind, FilterDecision, Isolation,
    KeyspaceOptions, MemEnv, MemoryBudget, Options, PutOptions, Result, TransactOptions,
    TransactionOptions,
};
use terrace_testkit::campaign::campaign;
use terrace_testkit::rng::Rng;
use terrace_testkit::scale::scaled;
use terrace_testkit::watchdog::Watchdog;

const ACCOUNTS: usize = 12;
const START: i64 = 100;

/// Removes what is marked as waste.
struct Waste;

impl CompactionFilter for Waste {
    fn filter(&self, _key: &[u8], value: &[u8]) -> FilterDecision {
        match value == b"waste" {
            true => FilterDecision::Remove,
            false => FilterDecision::Keep,
        }
    }
}

fn account(number: usize) -> String {
    format!("!bank!{number:02}")
}

fn money(value: Option<Vec<u8>>) -> i64 {
    Counter::decode(&value.expect("an account")).expect("a counter")
}

struct Thread<'a> {
    db: &'a Db,
    rng: Rng,
    /// Names keyspaces of its own.
    id: usize,
    counted: &'a AtomicU64,
}

impl Thread<'_> {
    /// Moves money between accounts, or sees that none is lost.
    fn transfer(&mut self) -> Result<()> {
        let isolation = *self.rng.pick(&[Isolation::Snapshot, Isolation::Serializable]);
        let kind = TransactionOptions::new()
            .isolation(isolation)
            .locking(self.rng.one_in(2))
            .lock_timeout(Duration::from_secs(60));
        let (from, to) = (self.rng.below(ACCOUNTS), self.rng.below(ACCOUNTS));
        let amount = self.rng.below(20) as i64;
        self.db.transact_with(TransactOptions::new().transaction_options(kind), |transaction| {
            for (number, change) in [(from, -amount), (to, amount)] {
                let key = account(number);
                let present = money(transaction.get_for_update(&key)?);
                transaction.put(&key, Counter::encode(present + change));
            }
            Ok(())
        })
    }

    fn audit(&self) -> Result<()> {
        let snapshot = self.db.snapshot();
        for _ in 0..2 {
            let entries: Vec<_> = snapshot.prefix("!bank!")?.collect::<Result<_>>()?;
            let sum: i64 = entries.into_iter().map(|(_, value)| money(Some(value))).sum();
            assert_eq!(sum, START * ACCOUNTS as i64, "money is lost or made");
        }
        Ok(())
    }

    fn count(&self) -> Result<()> {
        self.db.merge("count", Counter::encode(1), &Counter)?;
        self.counted.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    /// A keyspace from its creation to its end, and a queue in it that others may pop from.
    fn live(&mut self) -> Result<()> {
        let name = format!("own{}", self.id);
        let options = KeyspaceOptions::new().expiry(self.rng.one_in(2));
        let own = self.db.create_keyspace(&name, options.clone())?;
        own.set_compaction_filter(Arc::new(Waste))?;
        for number in 0..self.rng.below(60) {
            let value = *self.rng.pick(&[&b"waste"[..], b"kept"]);
            own.put(format!("{number:03}"), value)?;
        }
        if options == KeyspaceOptions::new().expiry(true) {
            own.put_with("gone", "at once", PutOptions::new().ttl(Duration::ZERO))?;
            assert_eq!(own.get("gone")?, None);
        }
        own.delete_range("010".."050")?;
        assert_eq!(own.range("010".."050")?.count(), 0);
        let (first, last) = (own.key(""), own.key("zzz"));
        while self.db.pop_last_in(first.clone()..last.clone(), Default::default())?.is_some() {}
        assert_eq!(own.iter()?.count(), 0);
        assert!(self.db.drop_keyspace(&name)?);
        assert_eq!(own.put("late", "").expect_err("it was dropped").kind(), ErrorKind::Closed);
        Ok(())
    }

    fn act(&mut self) -> Result<()> {
        match self.rng.below(24) {
            0..=8 => self.transfer(),
            9 => self.audit(),
            10..=15 => self.count(),
            16 => self.live(),
            17 => self.db.delete_range("scratch".."scratci"),
            18 => self.db.compact_range_with::<&[u8]>(.., CompactOptions::new().force(true)),
            19 => self.db.flush(),
            _ => {
                let length = self.rng.below(3_000);
                let key = format!("scratch{}", self.rng.below(1_000));
                self.db.put(key, self.rng.bytes(length))
            }
        }
    }
}

#[test]
fn threads_that_use_everything_lose_nothing() {
    let watchdog = Watchdog::new(Duration::from_secs(300), "threads that use everything");
    campaign("threads_that_use_everything_lose_nothing", scaled(20), |seed| {
        watchdog.feed(format!("threads that use everything, seed {seed}"));
        let budget = MemoryBudget::new(1 << 20);
        let options = Options::new()
            .create_if_missing(true)
            .write_buffer_size(64 << 10)
            .max_file_size(1 << 20)
            .range_delete_batch(if seed.is_multiple_of(2) { 0 } else { 64 })
            .memory_budget(Some(budget))
            .env(Arc::new(MemEnv::new()));
        let db = Db::open("/db", options).expect("opens");
        for number in 0..ACCOUNTS {
            db.put(account(number), Counter::encode(START)).expect("a put");
        }
        let counted = AtomicU64::new(0);
        std::thread::scope(|scope| {
            for id in 0..4 {
                let rng = Rng::new(seed ^ (id as u64) << 32);
                let mut thread = Thread { db: &db, rng, id, counted: &counted };
                scope.spawn(move || {
                    for _ in 0..150 {
                        thread.act().expect("no failure");
                    }
                });
            }
        });
        let count = money(db.get("count").expect("a read"));
        assert_eq!(count as u64, counted.load(Ordering::Relaxed));
        assert_eq!(db.keyspaces().expect("names"), ["bank"]);
        db.close().map_err(|error| error.to_string())
    });
}
