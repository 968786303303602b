//! The self-test's expected result: the operations of `lab/WORKLOADS.md` on a model.

use std::collections::BTreeMap;

const POOL_SIZE: usize = 1 << 20;
const OPERATIONS: u32 = 10_000;
const KEYS: u64 = 5_000;
/// The self-test's number among the benchmarks.
const NUMBER: u64 = 31;

/// The digest that an engine has to report, in 16 hexadecimal digits.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Digests {
    /// If it can hold values of zero bytes.
    pub exact: String,
    /// If one byte stands for zero.
    pub without_empty: String,
}

impl Digests {
    /// For a seed.
    #[must_use]
    pub fn of(seed: u64) -> Digests {
        Digests { exact: digest(seed, 0), without_empty: digest(seed, 1) }
    }

    /// Whether an engine's digest is right. Its `limits` have to say that it has no empty values,
    /// if it has none.
    #[must_use]
    pub fn accepts(&self, digest: &str, limits: &[String]) -> bool {
        let without_empty =
            || limits.iter().any(|limit| ["empty", "zero"].iter().any(|word| limit.contains(word)));
        digest == self.exact || (digest == self.without_empty && without_empty())
    }
}

fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

struct Random {
    state: u64,
}

impl Random {
    fn stream(seed: u64, benchmark: u64, thread: u64) -> Random {
        Random { state: mix(mix(mix(seed).wrapping_add(benchmark)).wrapping_add(thread)) }
    }

    fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        mix(self.state)
    }

    fn key(&mut self) -> u64 {
        self.next() % KEYS
    }
}

fn pool(seed: u64) -> Vec<u8> {
    let mut random = Random::stream(seed, 0, 0);
    let mut pool = Vec::with_capacity(POOL_SIZE + 100);
    while pool.len() < POOL_SIZE {
        let half: Vec<u8> = (0..50).map(|_| b' ' + (random.next() % 95) as u8).collect();
        pool.extend_from_slice(&half);
        pool.extend_from_slice(&half);
    }
    pool.truncate(POOL_SIZE);
    pool
}

struct Fnv {
    state: u64,
}

impl Fnv {
    fn bytes(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.state = (self.state ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }

    fn sized(&mut self, bytes: &[u8]) {
        self.bytes(&(bytes.len() as u32).to_le_bytes());
        self.bytes(bytes);
    }

    fn entry(&mut self, key: u64, value: &[u8]) {
        self.sized(format!("{key:016}").as_bytes());
        self.sized(value);
    }
}

/// Where a value lies in the pool. Its length is drawn before its place.
fn value(random: &mut Random, shortest: usize) -> (usize, usize) {
    let length = (random.next() % 300) as usize;
    let at = (random.next() % 1_000_000) as usize;
    (at, at + length.max(shortest))
}

fn digest(seed: u64, shortest: usize) -> String {
    let pool = pool(seed);
    let mut model: BTreeMap<u64, (usize, usize)> = BTreeMap::new();
    let mut random = Random::stream(seed, NUMBER, 0);
    let mut fnv = Fnv { state: 0xcbf2_9ce4_8422_2325 };
    for _pass in 0..2 {
        for _ in 0..OPERATIONS {
            let what = random.next() % 10;
            let key = random.key();
            match what {
                0..=4 => {
                    model.insert(key, value(&mut random, shortest));
                }
                5 | 6 => {
                    model.remove(&key);
                }
                7 => {
                    for _ in 0..10 {
                        if random.next().is_multiple_of(3) {
                            model.remove(&random.key());
                        } else {
                            let key = random.key();
                            model.insert(key, value(&mut random, shortest));
                        }
                    }
                }
                8 => match model.get(&key) {
                    Some(&(from, to)) => {
                        fnv.bytes(&[1]);
                        fnv.sized(&pool[from..to]);
                    }
                    None => fnv.bytes(&[0]),
                },
                _ => scan(&mut fnv, &pool, model.range(key..), 5),
            }
        }
        scan(&mut fnv, &pool, model.iter(), usize::MAX);
        scan(&mut fnv, &pool, model.iter().rev(), usize::MAX);
    }
    format!("{:016x}", fnv.state)
}

/// Takes in a scan of so many entries, and its end if that comes first.
fn scan<'a>(
    fnv: &mut Fnv,
    pool: &[u8],
    mut entries: impl Iterator<Item = (&'a u64, &'a (usize, usize))>,
    steps: usize,
) {
    for _ in 0..steps {
        match entries.next() {
            Some((key, &(from, to))) => fnv.entry(*key, &pool[from..to]),
            None => return fnv.bytes(&[2]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_right_digest_is_accepted() {
        let digests = Digests::of(301);
        assert_ne!(digests.exact, digests.without_empty);
        assert_ne!(digests, Digests::of(302));
        assert!(digests.accepts(&digests.exact, &[]));
        assert!(!digests.accepts("0000000000000000", &[]));
        assert!(!digests.accepts(&digests.without_empty, &[]));
        assert!(digests.accepts(&digests.without_empty, &["no empty values".to_owned()]));
    }
}
