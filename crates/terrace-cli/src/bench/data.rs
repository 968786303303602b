//! Keys, values and random numbers, the same in every engine program of the lab.

/// Bytes of a key: a number in decimal digits with leading zeros.
pub(super) const KEY_SIZE: usize = 16;

const POOL_SIZE: usize = 1 << 20;
/// Values that the pool holds at least, before it starts over.
const POOL_VALUES: usize = 16;
/// Half of a piece of the pool: each half stands there twice, so that a compressor halves it.
const HALF_PIECE: usize = 50;

const STREAM_STEP: u64 = 0x9E37_79B9_7F4A_7C15;

fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// Random numbers: splitmix64, a stream for every benchmark and thread.
pub(super) struct Random {
    state: u64,
}

impl Random {
    pub(super) fn stream(seed: u64, benchmark: u64, thread: u64) -> Self {
        let state = mix(mix(mix(seed).wrapping_add(benchmark)).wrapping_add(thread));
        Random { state }
    }

    #[inline]
    pub(super) fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(STREAM_STEP);
        mix(self.state)
    }

    #[inline]
    pub(super) fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }
}

/// A key, and room for the dot that makes it one that is not there.
#[derive(Clone)]
pub(super) struct Key {
    bytes: [u8; KEY_SIZE + 1],
    length: usize,
}

impl AsRef<[u8]> for Key {
    fn as_ref(&self) -> &[u8] {
        &self.bytes[..self.length]
    }
}

impl Key {
    pub(super) fn new() -> Self {
        Key { bytes: [b'.'; KEY_SIZE + 1], length: KEY_SIZE }
    }

    /// Keys that sort right behind existing ones and are never there.
    pub(super) fn missing() -> Self {
        Key { length: KEY_SIZE + 1, ..Self::new() }
    }

    #[inline]
    pub(super) fn set(&mut self, mut number: u64) -> &[u8] {
        for byte in self.bytes[..KEY_SIZE].iter_mut().rev() {
            *byte = b'0' + (number % 10) as u8;
            number /= 10;
        }
        &self.bytes[..self.length]
    }
}

/// Where values are cut from.
pub(super) struct ValuePool {
    bytes: Vec<u8>,
    value_size: usize,
}

impl ValuePool {
    pub(super) fn new(seed: u64, value_size: usize) -> Self {
        let size = POOL_SIZE.max(value_size.saturating_mul(POOL_VALUES));
        let mut random = Random::stream(seed, 0, 0);
        let mut bytes = Vec::with_capacity(size + 2 * HALF_PIECE);
        while bytes.len() < size {
            let half: [u8; HALF_PIECE] = std::array::from_fn(|_| b' ' + random.below(95) as u8);
            bytes.extend_from_slice(&half);
            bytes.extend_from_slice(&half);
        }
        bytes.truncate(size);
        ValuePool { bytes, value_size }
    }

    pub(super) fn value_size(&self) -> usize {
        self.value_size
    }

    /// The value at `position`, which moves on; at the end of the pool it starts over.
    #[inline]
    pub(super) fn next(&self, position: &mut usize) -> &[u8] {
        if *position + self.value_size > self.bytes.len() {
            *position = 0;
        }
        let value = &self.bytes[*position..*position + self.value_size];
        *position += self.value_size;
        value
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_and_values_have_their_shape() {
        assert_eq!(Key::new().set(1234), b"0000000000001234");
        assert_eq!(Key::missing().set(0), b"0000000000000000.");
        let pool = ValuePool::new(301, 100);
        let mut position = 0;
        let value = pool.next(&mut position).to_vec();
        assert_eq!(value[..50], value[50..]);
        assert!(value.iter().all(|byte| (b' '..=b'~').contains(byte)));
        position = (1 << 20) - 99;
        assert_eq!(pool.next(&mut position), value);
        assert_eq!(ValuePool::new(1, 100_000).bytes.len(), 1_600_000);
    }

    /// The first numbers of splitmix64 from state 0, as its author publishes them.
    #[test]
    fn random_numbers_are_splitmix64() {
        let mut random = Random { state: 0 };
        assert_eq!([random.next(), random.next()], [0xE220_A839_7B1D_CDAF, 0x6E78_9E6A_A1B9_65F4]);
    }
}
