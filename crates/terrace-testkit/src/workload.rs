//! A deterministic history of writes, defined once here and once in `leveldb/peer.cc`, so that what
//! one program wrote can be checked by the other without either trusting its own reading.
//!
//! Operation `i` of a seed is a function of seed and `i` alone. Any run of operations can therefore
//! be done by any program, and [`State`] knows what must be there after the first `n`. The history
//! holds puts of new keys (65 in 100), overwrites (20) and deletes (15); binary keys of 0 to 200
//! bytes, among them the empty key, runs of `0xff` and long shared prefixes; values of 0 to 200
//! bytes, some up to 64 KiB and one in ten thousand up to 1 MiB, of which a quarter does not
//! compress.

use std::collections::BTreeMap;

/// One operation of a [`Workload`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Store the value of this operation under a key.
    Put {
        /// The key.
        key: Vec<u8>,
        /// The value.
        value: Vec<u8>,
    },
    /// Remove a key, which may not be there.
    Delete {
        /// The key.
        key: Vec<u8>,
    },
}

/// The history of one seed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Workload {
    seed: u64,
}

impl Workload {
    /// The history of `seed`.
    pub fn new(seed: u64) -> Self {
        Workload { seed }
    }

    /// The seed.
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// Operation `index`, counted from 0.
    pub fn operation(&self, index: u64) -> Operation {
        let (put, id) = self.kind(index);
        let key = self.key(id);
        if put {
            Operation::Put { key, value: self.value(index) }
        } else {
            Operation::Delete { key }
        }
    }

    /// Whether operation `index` is a put, and the number of its key.
    fn kind(&self, index: u64) -> (bool, u64) {
        let mut random = Random::new(self.seed, Purpose::Operation, index);
        match random.next() % 100 {
            0..65 => (true, index),
            roll => (roll < 85, random.next() % (index + 1)),
        }
    }

    fn key(&self, id: u64) -> Vec<u8> {
        let mut random = Random::new(self.seed, Purpose::Key, id);
        match random.next() % 16 {
            0..4 => decimal(id),
            4..10 => decimal(random.next() % 10_000_000_000_000_000),
            10..13 => {
                let length = random.next() % 201;
                random.bytes(length as usize, 1)
            }
            13 => {
                let length = random.next() % 9;
                (0..length).map(|_| b"\x00\x61\xfe\xff"[(random.next() & 3) as usize]).collect()
            }
            14 => [&[0xff; 100], &id.to_be_bytes()[..]].concat(),
            _ => [&b"prefix"[..], &[0; 40], &id.to_be_bytes()].concat(),
        }
    }

    fn value(&self, index: u64) -> Vec<u8> {
        let mut random = Random::new(self.seed, Purpose::Value, index);
        let class = random.next() % 10_000;
        let roll = random.next();
        let length = match class {
            0 => roll % ((1 << 20) + 1),
            1..11 => roll % ((1 << 16) + 1),
            11..511 => 0,
            _ => 1 + roll % 200,
        };
        let repeat = 1 + random.next() % 4;
        random.bytes(length as usize, repeat as usize)
    }
}

fn decimal(number: u64) -> Vec<u8> {
    format!("{number:016}").into_bytes()
}

/// The live entries after the first operations of a history: for every key the put that wrote it
/// last.
#[derive(Clone, Debug)]
pub struct State {
    workload: Workload,
    done: u64,
    live: BTreeMap<Vec<u8>, u64>,
}

impl State {
    /// The state before the first operation: empty.
    pub fn new(workload: Workload) -> Self {
        State { workload, done: 0, live: BTreeMap::new() }
    }

    /// The operations done so far.
    pub fn done(&self) -> u64 {
        self.done
    }

    /// Does the operations up to, but not including, number `end`.
    pub fn advance(&mut self, end: u64) {
        for index in self.done..end {
            let (put, id) = self.workload.kind(index);
            let key = self.workload.key(id);
            if put {
                self.live.insert(key, index);
            } else {
                self.live.remove(&key);
            }
        }
        self.done = self.done.max(end);
    }

    /// The live keys.
    pub fn len(&self) -> usize {
        self.live.len()
    }

    /// Whether nothing is live.
    pub fn is_empty(&self) -> bool {
        self.live.is_empty()
    }

    /// The value of a key.
    pub fn get(&self, key: &[u8]) -> Option<Vec<u8>> {
        self.live.get(key).map(|&index| self.workload.value(index))
    }

    /// Every entry in bytewise order of keys. Values are made anew on every pass.
    pub fn entries(&self) -> impl DoubleEndedIterator<Item = (&[u8], Vec<u8>)> {
        self.live.iter().map(|(key, &index)| (key.as_slice(), self.workload.value(index)))
    }

    /// The digest of the entries in bytewise order, or in the reverse of it.
    pub fn digest(&self, reverse: bool) -> Digest {
        let mut digest = Digest::default();
        let mut add = |(key, value): (&[u8], Vec<u8>)| digest.add(key, &value);
        if reverse {
            self.entries().rev().for_each(&mut add);
        } else {
            self.entries().for_each(&mut add);
        }
        digest
    }
}

/// A count and a 64-bit hash over entries in order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Digest {
    count: u64,
    hash: u64,
}

impl Digest {
    /// Takes in the next entry.
    pub fn add(&mut self, key: &[u8], value: &[u8]) {
        self.count += 1;
        self.absorb(key);
        self.absorb(value);
    }

    /// The entries taken in.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The hash over all of them.
    pub fn hash(&self) -> u64 {
        mix(self.hash)
    }

    fn absorb(&mut self, bytes: &[u8]) {
        self.hash = mix(self.hash ^ bytes.len() as u64);
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            let hash = self.hash ^ u64::from_le_bytes(word);
            self.hash = hash.rotate_left(29).wrapping_mul(0x9FB2_1C65_1E98_DF25);
        }
    }
}

/// The purpose of a random number, so that streams of one seed do not meet.
enum Purpose {
    Operation = 1,
    Key = 2,
    Value = 3,
}

/// splitmix64.
struct Random {
    state: u64,
}

impl Random {
    fn new(seed: u64, purpose: Purpose, index: u64) -> Self {
        Random { state: mix(mix(mix(seed).wrapping_add(purpose as u64)).wrapping_add(index)) }
    }

    fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        mix(self.state)
    }

    /// Random words, each `repeat` times, cut to `length` bytes.
    fn bytes(&mut self, length: usize, repeat: usize) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(length + 32);
        while bytes.len() < length {
            let word = self.next().to_le_bytes();
            for _ in 0..repeat {
                bytes.extend_from_slice(&word);
            }
        }
        bytes.truncate(length);
        bytes
    }
}

fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn holds_what_it_promises() {
        let workload = Workload::new(1);
        let mut keys = Vec::new();
        let mut values = Vec::new();
        let mut deletes = 0;
        for index in 0..30_000 {
            match workload.operation(index) {
                Operation::Put { key, value } => {
                    keys.push(key);
                    values.push(value.len());
                }
                Operation::Delete { .. } => deletes += 1,
            }
        }
        assert!((4_000..5_000).contains(&deletes));
        assert!(keys.iter().any(Vec::is_empty) && keys.iter().any(|key| key.len() > 195));
        assert!(values.contains(&0) && values.iter().any(|&length| length > 1 << 16));
        let mut state = State::new(workload);
        state.advance(30_000);
        assert!((10_000..20_000).contains(&state.len()));
    }

    #[test]
    fn states_do_not_depend_on_the_steps() {
        let workload = Workload::new(9);
        let mut at_once = State::new(workload);
        at_once.advance(2_000);
        let mut in_steps = State::new(workload);
        for end in [1, 10, 10, 777, 2_000] {
            in_steps.advance(end);
        }
        assert_eq!(at_once.digest(false), in_steps.digest(false));
        assert_ne!(at_once.digest(false), at_once.digest(true));
        let (key, value) = at_once.entries().next_back().expect("an entry");
        assert_eq!(at_once.get(key), Some(value));
    }
}
