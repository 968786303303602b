//! The bloom filter that LevelDB builds in, byte for byte.
//!
//! A filter is an array of bits followed by one byte, the number of probes. One 32-bit hash of the
//! key is the first probe; the others follow at a distance which is that hash rotated.

use super::FilterPolicy;

/// LevelDB's name of this encoding.
const NAME: &str = "leveldb.BuiltinBloomFilter2";

/// More probes than this mark an encoding of the future, which matches everything.
const MAX_PROBES: u8 = 30;

/// More bits a key than this gain nothing and only risk the size of a filter.
const MAX_BITS_PER_KEY: usize = 4096;

/// LevelDB's bloom filter: about 1% of false positives at 10 bits a key.
///
/// ```
/// # use terrace::*;
/// let policy = BloomFilterPolicy::new(10);
/// let mut filter = Vec::new();
/// policy.create_filter(&[b"apple", b"banana"], &mut filter);
/// assert!(policy.key_may_match(b"apple", &filter));
/// # Ok::<_, terrace::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct BloomFilterPolicy {
    bits_per_key: usize,
    probes: u8,
}

impl BloomFilterPolicy {
    /// A filter of about `bits_per_key` bits for each key; 10 is a good value. Clipped to at most
    /// 4,096.
    pub fn new(bits_per_key: usize) -> Self {
        let bits_per_key = bits_per_key.min(MAX_BITS_PER_KEY);
        // The best number of probes is the density times ln 2. LevelDB rounds down, and so must its
        // equal.
        let probes = ((bits_per_key as f64 * 0.69) as u8).clamp(1, MAX_PROBES);
        BloomFilterPolicy { bits_per_key, probes }
    }
}

impl FilterPolicy for BloomFilterPolicy {
    fn name(&self) -> &str {
        NAME
    }

    fn create_filter(&self, keys: &[&[u8]], dst: &mut Vec<u8>) {
        // Few keys in few bits would match nearly everything.
        let bytes = keys.len().saturating_mul(self.bits_per_key).max(64).div_ceil(8);
        let start = dst.len();
        dst.resize(start + bytes, 0);
        let bits = bytes as u64 * 8;
        let array = &mut dst[start..];
        for key in keys {
            for bit in probe_positions(key, bits, self.probes) {
                array[bit / 8] |= 1 << (bit % 8);
            }
        }
        dst.push(self.probes);
    }

    fn key_may_match(&self, key: &[u8], filter: &[u8]) -> bool {
        let Some((&probes, array)) = filter.split_last() else { return false };
        if array.is_empty() {
            return false;
        }
        if probes > MAX_PROBES {
            return true;
        }
        probe_positions(key, array.len() as u64 * 8, probes)
            .all(|bit| array[bit / 8] & (1 << (bit % 8)) != 0)
    }
}

/// The bits of an array of `bits` bits that stand for `key`. `bits` is not zero.
#[inline]
fn probe_positions(key: &[u8], bits: u64, probes: u8) -> impl Iterator<Item = usize> {
    let first = hash(key);
    let step = first.rotate_right(17);
    let narrow = u32::try_from(bits).ok();
    (0..probes).scan(first, move |probe, _| {
        let bit = match narrow {
            Some(bits) => (*probe % bits) as usize,
            None => *probe as usize,
        };
        *probe = probe.wrapping_add(step);
        Some(bit)
    })
}

/// LevelDB's hash of short keys, with the seed that its bloom filter uses.
fn hash(data: &[u8]) -> u32 {
    const SEED: u32 = 0xbc9f_1d34;
    const MULTIPLIER: u32 = 0xc6a4_a793;
    let mut hash = SEED ^ (data.len() as u32).wrapping_mul(MULTIPLIER);
    let (words, rest) = data.as_chunks::<4>();
    for word in words {
        hash = hash.wrapping_add(u32::from_le_bytes(*word)).wrapping_mul(MULTIPLIER);
        hash ^= hash >> 16;
    }
    if !rest.is_empty() {
        let mut tail = [0u8; 4];
        tail[..rest.len()].copy_from_slice(rest);
        hash = hash.wrapping_add(u32::from_le_bytes(tail)).wrapping_mul(MULTIPLIER);
        hash ^= hash >> 24;
    }
    hash
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filter_of(policy: BloomFilterPolicy, keys: &[&[u8]]) -> Vec<u8> {
        let mut filter = Vec::new();
        policy.create_filter(keys, &mut filter);
        filter
    }

    #[test]
    fn golden_bytes_written_by_leveldb() {
        // leveldb::NewBloomFilterPolicy(10)->CreateFilter, LevelDB 1.23.
        let policy = BloomFilterPolicy::new(10);
        let keys: [&[u8]; 4] = [b"hello", b"world", b"", &[0xff, 0x80, 0x7f]];
        assert_eq!(hex(&filter_of(policy, &keys)), "19508445661059d006");
        let long: Vec<Vec<u8>> = (0..20u32).map(|n| format!("key{n:05}").into_bytes()).collect();
        let long: Vec<&[u8]> = long.iter().map(Vec::as_slice).collect();
        assert_eq!(
            hex(&filter_of(policy, &long)),
            "c1108cc94014511740c31551c1411087480ac944411151405006"
        );
        assert_eq!(hex(&filter_of(BloomFilterPolicy::new(0), &keys[..1])), "004000000000000001");
    }

    fn hex(bytes: &[u8]) -> String {
        bytes.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    #[test]
    fn never_denies_a_member_and_seldom_admits_a_stranger() {
        let policy = BloomFilterPolicy::new(10);
        let keys: Vec<[u8; 4]> = (0..10_000u32).map(u32::to_le_bytes).collect();
        let refs: Vec<&[u8]> = keys.iter().map(|key| &key[..]).collect();
        let filter = filter_of(policy, &refs);
        assert!(refs.iter().all(|key| policy.key_may_match(key, &filter)));
        let admitted = (1_000_000..1_010_000u32)
            .filter(|n| policy.key_may_match(&n.to_le_bytes(), &filter))
            .count();
        assert!(admitted < 200, "{admitted} of 10,000 strangers admitted");
    }

    #[test]
    fn foreign_filters_do_not_panic() {
        let policy = BloomFilterPolicy::new(10);
        assert!(!policy.key_may_match(b"k", b""));
        assert!(!policy.key_may_match(b"k", &[6]));
        assert!(policy.key_may_match(b"k", &[0, 31]));
        assert!(policy.key_may_match(b"k", &[0, 0]));
        assert!(!filter_of(policy, &[]).is_empty());
        assert!(!policy.key_may_match(b"k", &filter_of(policy, &[])));
    }
}
