//! Keys, values and random numbers.

/// Bytes of the pool of values, at least.
const POOL_SIZE: usize = 1 << 20;
/// Values that the pool holds at least, before it starts over.
const POOL_VALUES: usize = 16;
/// Half of a piece of the pool: each half stands there twice, so that a compressor halves it.
const HALF_PIECE: usize = 50;

const STREAM_STEP: u64 = 0x9E37_79B9_7F4A_7C15;
const PARETO_SHAPE: f64 = 1.5;
const ZIPFIAN_THETA: f64 = 0.99;

fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// Random numbers: splitmix64, a stream for every benchmark and thread.
#[derive(Clone)]
pub(crate) struct Random {
    state: u64,
}

impl Random {
    pub(crate) fn stream(seed: u64, benchmark: u64, thread: u64) -> Self {
        let state = mix(mix(mix(seed).wrapping_add(benchmark)).wrapping_add(thread));
        Random { state }
    }

    #[inline]
    pub(crate) fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(STREAM_STEP);
        mix(self.state)
    }

    /// What `next` returns after so many more calls.
    #[inline]
    fn at(&self, before: u64) -> u64 {
        mix(self.state.wrapping_add(STREAM_STEP.wrapping_mul(before.wrapping_add(1))))
    }

    #[inline]
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    /// At least 0, below 1.
    #[inline]
    fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 * 2f64.powi(-53)
    }
}

/// Which key comes next.
#[derive(Clone)]
pub(crate) enum Keys {
    InOrder,
    Below(u64),
    /// The random keys below this that a fill drew from its stream, as often as it did.
    Put(Random, u64),
    Pareto(Pareto),
    Zipfian(ScrambledZipfian),
}

impl Keys {
    /// The key of operation `i`.
    #[inline]
    pub(crate) fn at(&self, i: u64, random: &mut Random) -> u64 {
        match self {
            Keys::InOrder => i,
            Keys::Below(bound) => random.below(*bound),
            Keys::Put(filled, bound) => filled.at(random.below(*bound)) % bound,
            Keys::Pareto(pareto) => pareto.next(random),
            Keys::Zipfian(zipfian) => zipfian.key(random),
        }
    }
}

/// basho_bench's `pareto_int` with shape 1.5.
#[derive(Clone)]
pub(crate) struct Pareto {
    num: u64,
    scale: f64,
}

impl Pareto {
    pub(crate) fn new(num: u64, mean_fraction: f64) -> Self {
        Pareto { num, scale: num as f64 * mean_fraction * 0.5 }
    }

    #[inline]
    fn next(&self, random: &mut Random) -> u64 {
        let factor = (1.0 - random.unit()).powf(-1.0 / PARETO_SHAPE) - 1.0;
        (factor * self.scale).floor() as u64 % self.num
    }
}

/// Gray et al., "Quickly generating billion-record synthetic databases" (SIGMOD 1994), with YCSB's
/// theta.
#[derive(Clone)]
pub(crate) struct Zipfian {
    num: u64,
    zeta: f64,
    eta: f64,
}

impl Zipfian {
    pub(crate) fn new(num: u64) -> Self {
        Self::of(num, (1..=num).map(|i| 1.0 / (i as f64).powf(ZIPFIAN_THETA)).sum())
    }

    fn of(num: u64, zeta: f64) -> Self {
        let zeta_of_two = 1.0 + 0.5f64.powf(ZIPFIAN_THETA);
        let eta = (1.0 - (2.0 / num as f64).powf(1.0 - ZIPFIAN_THETA)) / (1.0 - zeta_of_two / zeta);
        Zipfian { num, zeta, eta }
    }

    #[inline]
    pub(crate) fn rank(&self, random: &mut Random) -> u64 {
        let unit = random.unit();
        let scaled = unit * self.zeta;
        let last = self.num - 1;
        if scaled < 1.0 {
            return 0;
        }
        if scaled < 1.0 + 0.5f64.powf(ZIPFIAN_THETA) {
            return last.min(1);
        }
        let rank =
            self.num as f64 * (self.eta * unit - self.eta + 1.0).powf(1.0 / (1.0 - ZIPFIAN_THETA));
        last.min(rank as u64)
    }
}

/// YCSB's `ScrambledZipfianGenerator`: ranks among ten billion items, whatever the database holds,
/// scattered over its keys.
#[derive(Clone)]
pub(crate) struct ScrambledZipfian {
    num: u64,
    ranks: Zipfian,
}

impl ScrambledZipfian {
    const RANKS: u64 = 10_000_000_000;
    /// Of so many items, as YCSB has it.
    const ZETA: f64 = 26.469_028_201_783_02;

    pub(crate) fn new(num: u64) -> Self {
        ScrambledZipfian { num, ranks: Zipfian::of(Self::RANKS, Self::ZETA) }
    }

    #[inline]
    pub(crate) fn key(&self, random: &mut Random) -> u64 {
        mix(self.ranks.rank(random)) % self.num
    }
}

/// RocksDB's model of production traffic: Cao et al., "Characterizing, Modeling, and Benchmarking
/// RocksDB Key-Value Workloads at Facebook" (FAST 2020), with the parameters that RocksDB's own
/// documentation gives for it. `lab/WORKLOADS.md` has every formula.
#[derive(Clone)]
pub(crate) struct MixGraph {
    num: u64,
    range: u64,
    /// What is sought in the ranges up to each, the hottest first.
    heat: [f64; Self::RANGES],
}

impl MixGraph {
    pub(crate) const GETS: u64 = 85;
    pub(crate) const PUTS: u64 = 14;
    const RANGES: usize = 30;
    const GREATEST_VALUE: f64 = 1024.0;
    const LONGEST_SCAN: f64 = 10_000.0;

    pub(crate) fn new(num: u64) -> Self {
        let mut sum = 0.0;
        let heat = std::array::from_fn(|i| {
            let place = (i + 1) as f64;
            sum += 14.18 * (-2.917 * place).exp() + 0.0164 * (-0.08082 * place).exp();
            sum
        });
        MixGraph { num, range: (num / Self::RANGES as u64).max(1), heat }
    }

    #[inline]
    pub(crate) fn key(&self, random: &mut Random) -> u64 {
        let heat = random.unit() * self.heat[Self::RANGES - 1];
        let rank = self.heat[..Self::RANGES - 1].iter().take_while(|sum| heat >= **sum).count();
        let start = (7 * rank as u64 + 3) % Self::RANGES as u64 * self.range;
        let place = (random.unit() / 0.002312).powf(1.0 / 0.3467).ceil();
        (start + mix(place as u64) % self.range) % self.num
    }

    #[inline]
    pub(crate) fn value_size(random: &mut Random) -> usize {
        Self::pareto(random, 0.2615, 25.45, Self::GREATEST_VALUE) as usize
    }

    #[inline]
    pub(crate) fn steps(random: &mut Random) -> u64 {
        Self::pareto(random, 2.517, 14.236, Self::LONGEST_SCAN)
    }

    /// The generalised Pareto distribution, from 1 to `most`.
    #[inline]
    fn pareto(random: &mut Random, k: f64, sigma: f64, most: f64) -> u64 {
        let value = sigma * ((1.0 - random.unit()).powf(-k) - 1.0) / k;
        // At most 2^(53 k) / k times sigma, which 64 bits do not hold for scans.
        1 + (value % most) as u64
    }
}

/// A key, and room for the dot that makes it one that is not there.
#[derive(Clone)]
pub(crate) struct Key {
    bytes: Vec<u8>,
    length: usize,
}

impl Key {
    pub(crate) fn new(size: u64) -> Self {
        let length = size as usize;
        Key { bytes: vec![b'.'; length + 1], length }
    }

    /// Keys that sort right behind existing ones and are never there.
    pub(crate) fn missing(size: u64) -> Self {
        let mut key = Key::new(size);
        key.length += 1;
        key
    }

    #[inline]
    pub(crate) fn set(&mut self, mut number: u64) -> &[u8] {
        let digits = self.bytes.len() - 1;
        for byte in self.bytes[..digits].iter_mut().rev() {
            *byte = b'0' + (number % 10) as u8;
            number /= 10;
        }
        &self.bytes[..self.length]
    }
}

/// Where values are cut from.
pub(crate) struct ValuePool {
    bytes: Vec<u8>,
    size: usize,
    /// Sizes to choose from beside `size`.
    spread: u64,
}

impl ValuePool {
    pub(crate) fn new(seed: u64, size: u64, size_max: u64) -> Self {
        let size_max = size_max.max(size);
        let bytes_needed = POOL_SIZE.max((size_max as usize).saturating_mul(POOL_VALUES));
        let mut random = Random::stream(seed, 0, 0);
        let mut bytes = Vec::with_capacity(bytes_needed + 2 * HALF_PIECE);
        while bytes.len() < bytes_needed {
            let half: [u8; HALF_PIECE] = std::array::from_fn(|_| b' ' + random.below(95) as u8);
            bytes.extend_from_slice(&half);
            bytes.extend_from_slice(&half);
        }
        bytes.truncate(bytes_needed);
        ValuePool { bytes, size: size as usize, spread: size_max - size }
    }

    /// The value at `position`, which moves on; at the end of the pool it starts over.
    #[inline]
    pub(crate) fn next(&self, position: &mut usize, random: &mut Random) -> &[u8] {
        let size = if self.spread == 0 {
            self.size
        } else {
            self.size + random.below(self.spread + 1) as usize
        };
        self.cut(position, size)
    }

    /// The next value, of this size.
    #[inline]
    pub(crate) fn cut(&self, position: &mut usize, size: usize) -> &[u8] {
        if *position + size > self.bytes.len() {
            *position = 0;
        }
        let value = &self.bytes[*position..*position + size];
        *position += size;
        value
    }

    /// The bytes at a place of the pool.
    pub(crate) fn at(&self, position: usize, size: usize) -> &[u8] {
        &self.bytes[position..position + size]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_and_values_have_their_shape() {
        assert_eq!(Key::new(16).set(1234), b"0000000000001234");
        assert_eq!(Key::missing(8).set(42), b"00000042.");
        let mut random = Random::stream(1, 1, 0);
        let pool = ValuePool::new(301, 100, 0);
        let mut position = 0;
        let value = pool.next(&mut position, &mut random).to_vec();
        assert_eq!(value[..50], value[50..]);
        position = POOL_SIZE - 99;
        assert_eq!(pool.next(&mut position, &mut random), value);
        assert_eq!(ValuePool::new(1, 100_000, 0).bytes.len(), 1_600_000);
        let pool = ValuePool::new(301, 100, 400);
        let sizes: Vec<usize> =
            (0..10_000).map(|_| pool.next(&mut position, &mut random).len()).collect();
        assert_eq!((sizes.iter().min(), sizes.iter().max()), (Some(&100), Some(&400)));
    }

    /// The first numbers of splitmix64 from state 0, as its author publishes them.
    #[test]
    fn random_numbers_are_splitmix64() {
        let mut random = Random { state: 0 };
        assert_eq!([random.next(), random.next()], [0xE220_A839_7B1D_CDAF, 0x6E78_9E6A_A1B9_65F4]);
    }

    #[test]
    fn production_traffic_is_as_its_paper_models_it() {
        const NUM: u64 = 300_000;
        const DRAWS: usize = 200_000;
        let graph = MixGraph::new(NUM);
        let mut random = Random::stream(301, 35, 0);
        let keys: Vec<u64> = (0..DRAWS).map(|_| graph.key(&mut random)).collect();
        // The hottest of thirty ranges, the fourth of the key space, has four fifths of all.
        let share = |range: u64| {
            keys.iter().filter(|key| **key / (NUM / 30) == range).count() as f64 / DRAWS as f64
        };
        assert!((share(3) - 0.79).abs() < 0.01, "{}", share(3));
        assert!((share(10) - 0.056).abs() < 0.005, "{}", share(10));
        // The most sought key of that range: 0.002312 of its draws.
        let hottest = 3 * (NUM / 30) + mix(1) % (NUM / 30);
        let most = keys.iter().filter(|key| **key == hottest).count() as f64 / DRAWS as f64;
        assert!((0.0015..0.0025).contains(&most), "{most}");
        let mean = (0..DRAWS).map(|_| MixGraph::value_size(&mut random)).sum::<usize>() as f64
            / DRAWS as f64;
        assert!((33.0..36.0).contains(&mean), "{mean}");
        let mut steps: Vec<u64> = (0..DRAWS).map(|_| MixGraph::steps(&mut random)).collect();
        steps.sort_unstable();
        // The median of the generalised Pareto distribution is sigma (2^k - 1) / k.
        let median = 1.0 + 14.236 * (2f64.powf(2.517) - 1.0) / 2.517;
        assert!((steps[DRAWS / 2] as f64 / median - 1.0).abs() < 0.1, "{}", steps[DRAWS / 2]);
        assert!(steps[0] == 1 && steps[DRAWS - 1] <= 10_000);
        assert!(MixGraph::new(7).key(&mut random) < 7);

        // As the driver in C++ draws them.
        for (num, expected) in [
            (7, 0x7B9F_3EC2_0ACA_E2B5),
            (20_000, 0xD82B_75D0_DBEA_AACD),
            (1_000_000, 0xB4F8_1DBC_7BED_666C),
        ] {
            let graph = MixGraph::new(num);
            let mut random = Random::stream(301, 35, 0);
            let mut digest = 0;
            for _ in 0..100_000 {
                digest = mix(digest ^ graph.key(&mut random));
                digest = mix(digest ^ MixGraph::value_size(&mut random) as u64);
                digest = mix(digest ^ MixGraph::steps(&mut random));
            }
            assert_eq!(digest, expected, "{num}");
        }
    }

    #[test]
    fn skewed_keys_are_skewed_as_specified() {
        const NUM: u64 = 10_000;
        const DRAWS: u64 = 200_000;
        let mut random = Random::stream(301, 23, 0);
        // P(rank 0) of a zipfian distribution is 1 / zeta.
        let zipfian = Zipfian::new(NUM);
        let first =
            (0..DRAWS).filter(|_| zipfian.rank(&mut random) == 0).count() as f64 / DRAWS as f64;
        assert!((first * zipfian.zeta - 1.0).abs() < 0.03, "{first} of {}", 1.0 / zipfian.zeta);
        assert_eq!(Zipfian::new(1).rank(&mut random), 0);
        // The first of YCSB's ten billion ranks has one draw in 26.5, however few keys there are.
        let scrambled = ScrambledZipfian::new(NUM);
        let keys: Vec<u64> = (0..DRAWS).map(|_| scrambled.key(&mut random)).collect();
        let most = keys.iter().filter(|key| **key == mix(0) % NUM).count() as f64 / DRAWS as f64;
        assert!((most * ScrambledZipfian::ZETA - 1.0).abs() < 0.05, "{most}");
        assert!(keys.iter().all(|key| *key < NUM));
        // The median of (1 - u)^(-2/3) - 1 is 2^(2/3) - 1.
        let pareto = Pareto::new(NUM, 0.2);
        let mut keys: Vec<u64> = (0..DRAWS).map(|_| pareto.next(&mut random)).collect();
        keys.sort_unstable();
        let median = keys[keys.len() / 2] as f64;
        // With basho_bench's fraction, four fifths of all draws are of the first fifth of the keys.
        let first_fifth = keys.iter().filter(|key| **key < NUM / 5).count() as f64 / DRAWS as f64;
        assert!((first_fifth - 0.82).abs() < 0.02, "{first_fifth}");
        assert!((median / (1000.0 * (2f64.powf(2.0 / 3.0) - 1.0)) - 1.0).abs() < 0.05, "{median}");
    }
}
