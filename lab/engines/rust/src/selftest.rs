//! Random operations whose results are folded into one number, which is the same for every engine
//! that is right.
//!
//! The script is a pure function of its seed.

use std::ops::ControlFlow;

use crate::data::{Key, Random, ValuePool};
use crate::engine::{Durability, Operation, Operations, Session, Start};
use crate::{Result, benchmark};

const OPERATIONS: u64 = 10_000;
const KEYS: u64 = 5000;
const VALUE_SIZES: u64 = 300;
const POSITIONS: u64 = 1_000_000;
const BATCH: u64 = 10;
const STEPS: u64 = 5;

/// Passes between which the database is closed and opened again.
pub(crate) const NUM_PASSES: u64 = 2;

/// Operations of all passes.
pub(crate) const ALL_OPERATIONS: u64 = NUM_PASSES * OPERATIONS;

/// FNV-1a over what reads return.
struct Digest(u64);

impl Digest {
    fn byte(&mut self, byte: u8) {
        self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x100_0000_01B3);
    }

    fn bytes(&mut self, bytes: &[u8]) {
        for byte in (bytes.len() as u32).to_le_bytes().iter().chain(bytes) {
            self.byte(*byte);
        }
    }

    fn missing(&mut self) {
        self.byte(0);
    }

    fn value(&mut self, value: &[u8]) {
        self.byte(1);
        self.bytes(value);
    }

    fn entry(&mut self, key: &[u8], value: &[u8]) {
        self.bytes(key);
        self.bytes(value);
    }

    fn end_of_scan(&mut self) {
        self.byte(2);
    }
}

/// The operations, and what came of them so far.
pub(crate) struct Script {
    random: Random,
    pool: ValuePool,
    key: Key,
    digest: Digest,
}

/// Where a value is cut from the pool.
struct Value {
    size: usize,
    position: usize,
}

impl Script {
    /// The script of a seed.
    pub(crate) fn new(seed: u64, key_size: u64) -> Result<Self> {
        Ok(Script {
            random: Random::stream(seed, benchmark::find("selftest")?.number, 0),
            pool: ValuePool::new(seed, 1, 0),
            key: Key::new(key_size),
            digest: Digest(0xCBF2_9CE4_8422_2325),
        })
    }

    /// Half of the script.
    pub(crate) fn pass(&mut self, session: &mut impl Session) -> Result<()> {
        for _ in 0..OPERATIONS {
            self.operation(session)?;
        }
        for start in [Start::First, Start::Last] {
            session.scan(start, |key, value| {
                self.digest.entry(key, value);
                ControlFlow::Continue(())
            })?;
            self.digest.end_of_scan();
        }
        Ok(())
    }

    /// The digest as it is reported.
    pub(crate) fn digest(&self) -> String {
        format!("{:016x}", self.digest.0)
    }

    fn operation(&mut self, session: &mut impl Session) -> Result<()> {
        let what = self.random.below(10);
        let number = self.random.below(KEYS);
        match what {
            0..=4 => {
                let Value { size, position } = next_value(&mut self.random);
                session.put(
                    self.key.set(number),
                    self.pool.at(position, size),
                    Durability::Asynchronous,
                )
            }
            5 | 6 => session.delete(self.key.set(number)),
            7 => {
                let (random, pool, key) = (&mut self.random, &self.pool, &mut self.key);
                session.write_batch(&mut RandomBatch { random, pool, key, left: BATCH })
            }
            8 => {
                if session.get(self.key.set(number), |value| self.digest.value(value))?.is_none() {
                    self.digest.missing();
                }
                Ok(())
            }
            _ => {
                let mut left = STEPS;
                session.scan(Start::Key(self.key.set(number)), |key, value| {
                    self.digest.entry(key, value);
                    left -= 1;
                    if left == 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
                })?;
                if left > 0 {
                    self.digest.end_of_scan();
                }
                Ok(())
            }
        }
    }
}

fn next_value(random: &mut Random) -> Value {
    let size = random.below(VALUE_SIZES) as usize;
    Value { size, position: random.below(POSITIONS) as usize }
}

struct RandomBatch<'a> {
    random: &'a mut Random,
    pool: &'a ValuePool,
    key: &'a mut Key,
    left: u64,
}

impl Operations for RandomBatch<'_> {
    fn next(&mut self) -> Option<Operation<'_>> {
        self.left = self.left.checked_sub(1)?;
        let is_delete = self.random.below(3) == 0;
        let number = self.random.below(KEYS);
        if is_delete {
            return Some(Operation::Delete(self.key.set(number)));
        }
        let Value { size, position } = next_value(self.random);
        Some(Operation::Put(self.key.set(number), self.pool.at(position, size)))
    }
}
