//! Decides which dictionary a table has, if any.
//!
//! Training costs about as much as compressing a table of 2 MiB does, so that the tables of one
//! compaction share a dictionary for as long as it serves them.

use std::sync::Arc;

use crate::base::locks::Mutex;

use super::block_buffer::BlockBuffer;
use super::compression::{Compression, Compressor, ZSTD_LEVEL};
use super::dictionary::TrainedDictionary;

/// So many bytes of blocks for one of the dictionary; within bounds, for a table of 1 MiB, the
/// smallest that may be configured, should not end while its blocks wait.
const BYTES_PER_DICTIONARY_BYTE: usize = 32;
const LEAST_SAMPLED: usize = 256 << 10;
const MOST_SAMPLED: usize = 1 << 20;

/// Fewer blocks say little about others.
const LEAST_BLOCKS: usize = 8;
/// A dictionary is at most this share of what it was trained on.
const LEAST_SAMPLE_SHARE: usize = 16;
/// Smaller ones gain nothing: the trainer's tables take some hundred bytes of them.
const LEAST_DICTIONARY: usize = 1 << 10;

/// Blocks that are compressed to see what a dictionary gains.
const MOST_TRIED: usize = 32;
/// A dictionary that gains less than this share costs the reads more than it is worth.
const LEAST_GAIN: f64 = 0.03;
/// A dictionary serves the next table if it gains this share of what it gained in its own.
const LASTING: f64 = 0.8;

/// After `n` tables in a row that gained nothing the next 2^n do without; `n` ends here.
const MOST_FAILURES: u32 = 6;

/// Whether a table is to have a dictionary.
#[derive(Clone)]
pub(crate) struct DictionarySettings {
    /// Bytes at most.
    bytes: usize,
    tables: Arc<Mutex<Tables>>,
}

/// What became of the tables so far.
#[derive(Default)]
struct Tables {
    /// The last dictionary that gained, and how much.
    last: Option<(Arc<TrainedDictionary>, f64)>,
    /// How many in a row gained nothing.
    failures: u32,
    /// So many do without one.
    without: u32,
}

impl DictionarySettings {
    /// Of tables that may share dictionaries of at most `bytes` bytes; `None` for no bytes.
    pub(crate) fn new(bytes: usize) -> Option<Self> {
        (bytes > 0).then(|| DictionarySettings { bytes, tables: Arc::default() })
    }

    /// Bytes of blocks of the next table that wait for a dictionary. 0: it has none. Called once
    /// for a table.
    pub(super) fn sampled(&self) -> usize {
        let mut tables = self.tables.lock();
        if tables.without > 0 {
            tables.without -= 1;
            return 0;
        }
        self.bytes.saturating_mul(BYTES_PER_DICTIONARY_BYTE).clamp(LEAST_SAMPLED, MOST_SAMPLED)
    }

    /// The dictionary for a table that begins with `blocks`, or consists of them.
    pub(super) fn choose(&self, blocks: &BlockBuffer) -> Option<Arc<TrainedDictionary>> {
        let is_zstd = |compression| compression == Compression::Zstd;
        let blocks_of_zstd = blocks.blocks().filter(|block| is_zstd(block.compression));
        let samples: Vec<_> = blocks_of_zstd.map(|block| block.contents).collect();
        if samples.len() < LEAST_BLOCKS {
            return None;
        }
        let mut trial = Trial::new(&samples);
        let last = self.tables.lock().last.clone();
        if let Some((dictionary, gain)) = last {
            let present = trial.gain(&dictionary);
            if present >= LASTING * gain {
                return trial.pays(present, &dictionary).then_some(dictionary);
            }
        }
        let sizes: Vec<_> = samples.iter().map(|sample| sample.len()).collect();
        let all = samples.concat();
        let most = self.bytes.min(all.len() / LEAST_SAMPLE_SHARE);
        if most < LEAST_DICTIONARY {
            return None;
        }
        let trained = TrainedDictionary::train(&all, &sizes, most, ZSTD_LEVEL).map(Arc::new);
        let gain = trained.as_ref().map_or(0.0, |trained| trial.gain(trained));
        let trained = trained.filter(|trained| trial.pays(gain, trained));
        let mut tables = self.tables.lock();
        if let Some(trained) = &trained {
            tables.last = Some((Arc::clone(trained), gain));
            tables.failures = 0;
        } else if blocks.is_full() {
            // One that would not pay in a small table may pay in the next.
            tables.failures = (tables.failures + 1).min(MOST_FAILURES);
            tables.without = 1 << tables.failures;
        }
        trained
    }
}

/// Compresses some of the blocks, to see what dictionaries gain.
struct Trial<'a> {
    tried: Vec<&'a [u8]>,
    compressor: Compressor,
    output: Vec<u8>,
    /// Bytes of those tried without a dictionary, and of all blocks by their share.
    plain: f64,
    all: f64,
}

impl<'a> Trial<'a> {
    fn new(samples: &[&'a [u8]]) -> Self {
        let step = samples.len().div_ceil(MOST_TRIED);
        let tried: Vec<_> = samples.iter().step_by(step).copied().collect();
        let mut trial = Trial {
            tried,
            compressor: Compressor::new(),
            output: Vec::new(),
            plain: 0.0,
            all: 0.0,
        };
        trial.plain = trial.compressed(None);
        let share = samples.len() as f64 / trial.tried.len() as f64;
        trial.all = trial.plain * share;
        trial
    }

    fn compressed(&mut self, dictionary: Option<&TrainedDictionary>) -> f64 {
        let mut bytes = 0;
        for contents in &self.tried {
            let bound = Compressor::bound(Compression::Zstd, contents.len());
            self.output.resize(bound.map_or(0, |(_, longest)| longest), 0);
            let size = match dictionary {
                Some(dictionary) => {
                    dictionary.compress(&mut self.compressor, contents, &mut self.output)
                }
                None => self.compressor.compress(Compression::Zstd, contents, &mut self.output),
            };
            bytes += size.unwrap_or(contents.len()).min(contents.len());
        }
        bytes as f64
    }

    /// The share of the bytes that a dictionary saves, its own not counted.
    fn gain(&mut self, dictionary: &TrainedDictionary) -> f64 {
        1.0 - self.compressed(Some(dictionary)) / self.plain.max(1.0)
    }

    /// Whether the blocks save more than the dictionary takes.
    fn pays(&self, gain: f64, dictionary: &TrainedDictionary) -> bool {
        gain >= LEAST_GAIN && gain * self.all > dictionary.bytes().len() as f64
    }
}

#[cfg(all(test, feature = "zstd"))]
mod tests {
    use super::*;
    use crate::base::random::Random;

    fn buffer(block: impl Fn(u64) -> Vec<u8>, count: u64) -> BlockBuffer {
        let mut buffer = BlockBuffer::new(LEAST_SAMPLED);
        (0..count).for_each(|number| buffer.push(&block(number), Compression::Zstd));
        buffer
    }

    fn alike(number: u64) -> Vec<u8> {
        let entry = |at: u64| {
            let mut random = Random(number * 64 + at + 1);
            let mut field = |name: &str| format!("\"{name}\":{},", random.below(1000));
            ["customer_number", "warehouse", "quantity", "discount", "delivery_days"]
                .map(&mut field)
                .concat()
        };
        (0..40).flat_map(|at| entry(at).into_bytes()).collect()
    }

    fn noise(number: u64) -> Vec<u8> {
        Random(number + 1).bytes(4096, 256)
    }

    #[test]
    fn tables_share_a_dictionary_while_it_gains() {
        let settings = DictionarySettings::new(2 << 10).expect("bytes");
        let first = settings.choose(&buffer(alike, 100)).expect("a dictionary");
        let next = settings.choose(&buffer(|number| alike(number + 1000), 100)).expect("one");
        assert!(Arc::ptr_eq(&first, &next));
        // Other data needs another one.
        let other = |number| {
            let text = String::from_utf8(alike(number)).expect("text");
            text.replace(['_', '"'], "=-").to_uppercase().into_bytes()
        };
        let other = settings.choose(&buffer(other, 100)).expect("a dictionary");
        assert!(!Arc::ptr_eq(&first, &other));
    }

    #[test]
    fn what_gains_nothing_is_not_stored() {
        let settings = DictionarySettings::new(2 << 10).expect("bytes");
        assert!(settings.choose(&buffer(noise, 3)).is_none());
        assert!(settings.choose(&buffer(alike, 9)).is_none(), "a small table");
        assert!(settings.sampled() > 0);
        let first = settings.choose(&buffer(alike, 100)).expect("a dictionary");
        for without in [2, 4, 8, 16, 32, 64, 64] {
            assert!(settings.choose(&buffer(noise, 100)).is_none());
            assert!((0..without).all(|_| settings.sampled() == 0));
            assert!(settings.sampled() > 0, "another trial");
        }
        let next = settings.choose(&buffer(|number| alike(number + 1000), 100)).expect("one");
        assert!(Arc::ptr_eq(&first, &next));
        assert!(DictionarySettings::new(0).is_none());
    }
}
