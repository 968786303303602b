//! One side of a hand-over: `handovers terrace|rusty read DIR` prints the digest of all entries;
//! `write DIR SEED close|kill` changes the database, prints the digest of what it then holds, and
//! ends that way. `tools/handovers/run` compares.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;

use rusty_leveldb::{LdbIterator, WriteBatch as RustyBatch};
use terrace::{Compression, Db, Options, WriteOptions};

type Entries = BTreeMap<Vec<u8>, Vec<u8>>;
type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

/// The operations of both engines.
trait Engine: Sized {
    fn open(dir: &Path) -> Outcome<Self>;
    fn entries(&mut self) -> Outcome<Entries>;
    fn put(&mut self, key: &[u8], value: &[u8], sync: bool) -> Outcome<()>;
    fn delete(&mut self, key: &[u8]) -> Outcome<()>;
    fn close(self) -> Outcome<()>;
}

struct Terrace(Db);

impl Engine for Terrace {
    fn open(dir: &Path) -> Outcome<Self> {
        // Small enough for tables and for logs of several memtables.
        let options = Options::new().create_if_missing(true).paranoid_checks(true).write_buffer_size(1 << 20);
        let compressed = std::env::var_os("UNCOMPRESSED").is_none();
        let compression = if compressed { Compression::Snappy } else { Compression::None };
        Ok(Terrace(Db::open(dir, options.compression(compression))?))
    }

    fn entries(&mut self) -> Outcome<Entries> {
        self.0.iter()?.map(|entry| Ok(entry.map(|(key, value)| (key.to_vec(), value.to_vec()))?)).collect()
    }

    fn put(&mut self, key: &[u8], value: &[u8], sync: bool) -> Outcome<()> {
        Ok(self.0.put_with(key, value, if sync { WriteOptions::sync() } else { WriteOptions::new() })?)
    }

    fn delete(&mut self, key: &[u8]) -> Outcome<()> {
        Ok(self.0.delete(key)?)
    }

    fn close(self) -> Outcome<()> {
        Ok(self.0.close()?)
    }
}

struct Rusty(rusty_leveldb::DB);

impl Engine for Rusty {
    fn open(dir: &Path) -> Outcome<Self> {
        let options = rusty_leveldb::Options { write_buffer_size: 1 << 20, ..Default::default() };
        Ok(Rusty(rusty_leveldb::DB::open(dir, options)?))
    }

    fn entries(&mut self) -> Outcome<Entries> {
        let mut iter = self.0.new_iter()?;
        Ok(std::iter::from_fn(|| iter.next().map(|(key, value)| (key.to_vec(), value.to_vec()))).collect())
    }

    fn put(&mut self, key: &[u8], value: &[u8], sync: bool) -> Outcome<()> {
        let mut batch = RustyBatch::default();
        batch.put(key, value);
        Ok(self.0.write(batch, sync)?)
    }

    fn delete(&mut self, key: &[u8]) -> Outcome<()> {
        Ok(self.0.delete(key)?)
    }

    fn close(mut self) -> Outcome<()> {
        Ok(self.0.close()?)
    }
}

/// FNV-1a of all keys and values, and how many entries there are.
fn digest(entries: &Entries) -> String {
    let bytes = entries.iter().flat_map(|(key, value)| key.iter().chain(value));
    let hash =
        bytes.fold(0xcbf2_9ce4_8422_2325_u64, |hash, &byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3));
    format!("{} {hash:016x}", entries.len())
}

fn xorshift(state: &mut u64) -> u64 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    *state
}

fn write<E: Engine>(dir: &Path, seed: u64, kill: bool) -> Outcome<()> {
    let mut random = seed.wrapping_mul(7919).wrapping_add(13);
    let largest = [60, 300, 3_000, 20_000, 90_000][seed as usize % 5];
    let mut engine = E::open(dir)?;
    let mut entries = engine.entries()?;
    let operations = 200 + xorshift(&mut random) % 400;
    for number in 0..operations {
        let key = format!("{:06}", xorshift(&mut random) % 500).into_bytes();
        if xorshift(&mut random) % 6 == 0 {
            engine.delete(&key)?;
            entries.remove(&key);
        }
        let value = vec![xorshift(&mut random) as u8; (xorshift(&mut random) % largest) as usize + 1];
        // rusty-leveldb keeps writes in the process until one is synced.
        let sync = number + 1 == operations || xorshift(&mut random) % 50 == 0;
        engine.put(&key, &value, sync)?;
        entries.insert(key, value);
    }
    println!("{}", digest(&entries));
    std::io::stdout().flush()?;
    if kill {
        // SAFETY: ends the process.
        unsafe { libc::kill(libc::getpid(), libc::SIGKILL) };
    }
    engine.close()
}

fn run<E: Engine>(arguments: &[&str]) -> Outcome<()> {
    match arguments {
        ["read", dir] => {
            let mut engine = E::open(Path::new(dir))?;
            println!("{}", digest(&engine.entries()?));
            engine.close()
        }
        ["write", dir, seed, how @ ("close" | "kill")] => write::<E>(Path::new(dir), seed.parse()?, *how == "kill"),
        _ => Err("handovers terrace|rusty read DIR | write DIR SEED close|kill".into()),
    }
}

fn main() -> Outcome<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments.split_first() {
        Some((&"terrace", rest)) => run::<Terrace>(rest),
        Some((&"rusty", rest)) => run::<Rusty>(rest),
        _ => Err("terrace or rusty?".into()),
    }
}
