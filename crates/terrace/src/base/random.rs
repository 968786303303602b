//! Random numbers for tests.

/// xorshift64*: the seed is all there is to it.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) as usize % bound
    }

    pub(crate) fn bytes(&mut self, length: usize, alphabet: usize) -> Vec<u8> {
        (0..length).map(|_| self.below(alphabet) as u8).collect()
    }
}
