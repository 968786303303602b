//! A transfer between accounts: a rule that holds whatever happens at the same time, and a business
//! error that keeps its type.
//!
//! `transact` reads one moment of the database and writes all or nothing. If another write came in
//! between, the closure is called again.
//!
//! `cargo run --example transactions`

use terrace::{Db, Options, Transaction};

/// Why a transfer did not happen.
#[derive(Debug)]
pub(crate) enum Refused {
    /// The account has less than was asked for.
    NotEnough { balance: u64 },
    /// The database failed.
    Database(terrace::Error),
}

impl From<terrace::Error> for Refused {
    fn from(error: terrace::Error) -> Self {
        Refused::Database(error)
    }
}

fn balance(transaction: &mut Transaction, account: &str) -> terrace::Result<u64> {
    let bytes = transaction.get_for_update(account)?.unwrap_or_default();
    Ok(bytes.try_into().map_or(0, u64::from_be_bytes))
}

fn transfer(db: &Db, from: &str, to: &str, amount: u64) -> Result<(), Refused> {
    db.transact(|transaction| {
        let balance_from = balance(transaction, from)?;
        let rest =
            balance_from.checked_sub(amount).ok_or(Refused::NotEnough { balance: balance_from })?;
        let balance_to = balance(transaction, to)?;
        transaction.put(from, rest.to_be_bytes());
        transaction.put(to, (balance_to + amount).to_be_bytes());
        Ok(())
    })
}

pub(crate) fn main() -> Result<(), Refused> {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let db = Db::open(dir.path().join("accounts"), Options::new().create_if_missing(true))?;
    db.put("alice", 100_u64.to_be_bytes())?;
    std::thread::scope(|scope| {
        let transfers: Vec<_> = (0..4)
            .map(|_| scope.spawn(|| (0..25).try_for_each(|_| transfer(&db, "alice", "bob", 1))))
            .collect();
        transfers.into_iter().try_for_each(|thread| thread.join().expect("no panic"))
    })?;
    match transfer(&db, "alice", "bob", 1) {
        Err(Refused::NotEnough { balance: 0 }) => {}
        Err(Refused::Database(error)) => return Err(error.into()),
        other => panic!("alice has nothing left: {other:?}"),
    }
    assert_eq!(db.get("bob")?, Some(100_u64.to_be_bytes().to_vec()));
    println!("100 transfers by 4 threads: bob has 100");
    Ok(db.close()?)
}
