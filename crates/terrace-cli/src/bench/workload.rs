//! The benchmarks by name.

/// One item of `--benchmarks`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Measure.
    Run(Benchmark),
    /// Print the engine's counters.
    Stats,
}

/// A workload, the first twenty in the order of `lab/WORKLOADS.md`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Benchmark {
    FillSeq,
    FillRandom,
    Overwrite,
    FillSeqBatch,
    FillRandBatch,
    FillSync,
    Fill100K,
    Fill100KRandom,
    ReadSeq,
    ReadReverse,
    ReadRandom,
    ReadMissing,
    ReadHot,
    SeekRandom,
    ReadWhileWriting,
    DeleteSeq,
    DeleteRandom,
    Compact,
    WaitCompact,
    BulkLoad,
    MultiReadRandom,
}

use Benchmark::*;

const ALL: [(&str, Benchmark); 21] = [
    ("fillseq", FillSeq),
    ("fillrandom", FillRandom),
    ("overwrite", Overwrite),
    ("fillseqbatch", FillSeqBatch),
    ("fillrandbatch", FillRandBatch),
    ("fillsync", FillSync),
    ("fill100K", Fill100K),
    ("fill100Krandom", Fill100KRandom),
    ("readseq", ReadSeq),
    ("readreverse", ReadReverse),
    ("readrandom", ReadRandom),
    ("readmissing", ReadMissing),
    ("readhot", ReadHot),
    ("seekrandom", SeekRandom),
    ("readwhilewriting", ReadWhileWriting),
    ("deleteseq", DeleteSeq),
    ("deleterandom", DeleteRandom),
    ("compact", Compact),
    ("waitcompact", WaitCompact),
    ("bulkload", BulkLoad),
    ("multireadrandom", MultiReadRandom),
];

impl Step {
    pub(super) fn parse(name: &str) -> Result<Self, String> {
        if name == "stats" {
            return Ok(Step::Stats);
        }
        match ALL.iter().find(|(known, _)| *known == name) {
            Some((_, benchmark)) => Ok(Step::Run(*benchmark)),
            None => Err(format!("unknown benchmark {name}; `terrace bench --help` lists them")),
        }
    }
}

impl Benchmark {
    pub(super) fn name(self) -> &'static str {
        ALL[self as usize].0
    }

    /// The place in the list of `lab/WORKLOADS.md`, from 1.
    pub(super) fn number(self) -> u64 {
        match self {
            BulkLoad => 21,
            MultiReadRandom => 42,
            other => other as u64 + 1,
        }
    }

    /// What seeds its random numbers: fillrandbatch puts the keys of fillrandom.
    pub(super) fn stream(self) -> u64 {
        match self {
            FillRandBatch => FillRandom.number(),
            other => other.number(),
        }
    }

    /// Whether the benchmark begins with an empty database.
    pub(super) fn is_fill(self) -> bool {
        matches!(
            self,
            FillSeq
                | FillRandom
                | FillSeqBatch
                | FillRandBatch
                | FillSync
                | Fill100K
                | Fill100KRandom
                | BulkLoad
        )
    }

    /// Whether it counts the keys that it found.
    pub(super) fn counts_found(self) -> bool {
        matches!(
            self,
            ReadRandom | ReadMissing | ReadHot | MultiReadRandom | SeekRandom | ReadWhileWriting
        )
    }

    /// Whether it is one long call, whatever the number of threads.
    pub(super) fn is_single_call(self) -> bool {
        matches!(self, Compact | WaitCompact | BulkLoad)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_lead_to_benchmarks_and_back() {
        for (at, (name, benchmark)) in ALL.into_iter().enumerate() {
            assert_eq!(Step::parse(name), Ok(Step::Run(benchmark)));
            let number = match name {
                "bulkload" => 21,
                "multireadrandom" => 42,
                _ => at as u64 + 1,
            };
            assert_eq!((benchmark.name(), benchmark.number()), (name, number));
        }
        assert!(Step::parse("fillsequential").is_err());
    }
}
