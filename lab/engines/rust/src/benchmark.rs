//! The benchmarks by name. What they do is in `lab/WORKLOADS.md`.

use crate::{Engine, Failure, Result};

/// The kind of one operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Put,
    PutSync,
    PutLarge,
    PutBatch,
    Delete,
    Get,
    GetWhilePutting,
    Scan,
    ScanBackwards,
    Seek,
    /// So many gets in a hundred, else puts.
    Mix(u64),
    /// The same with gets of what was put last and puts of new keys.
    Latest(u64),
    /// So many short scans in a hundred, else puts of new keys.
    ShortScans(u64),
    /// So many gets in a hundred, else a get and a put of one key.
    GetAndPut(u64),
    /// Puts of the next key, each with a deletion of the first one there is.
    Queue,
    /// RocksDB's model of production traffic.
    Graph,
    /// A recorded trace.
    Replay,
    /// Deletes of the keys from one on.
    DeleteRange,
    /// Puts of entries that expire.
    PutExpiring,
    CreateKeyspaces,
    /// Puts in one keyspace after the other.
    PutKeyspaces,
    /// Gets in keyspaces at random.
    GetKeyspaces,
    /// Gets of several keys at once.
    MultiGet,
    BulkLoad,
    Compact,
    WaitCompact,
    Cold,
    SelfTest,
}

impl Kind {
    /// What an engine lacks for it, if anything.
    pub(crate) fn missing<E: Engine>(self) -> Option<&'static str> {
        match self {
            PutExpiring if !E::EXPIRES => Some("entries do not expire"),
            CreateKeyspaces | PutKeyspaces | GetKeyspaces if !E::HAS_KEYSPACES => {
                Some("it has no keyspaces, or the lab does not use them")
            }
            _ => None,
        }
    }
}

/// How keys are chosen.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Choice {
    InOrder,
    Random,
    Missing,
    Hot,
    /// What fillrandom put.
    Put,
    /// Pareto, with this mean as a fraction of all keys.
    Pareto(f64),
    Zipfian,
}

/// A workload.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Benchmark {
    pub(crate) name: &'static str,
    /// The place in the table of `lab/WORKLOADS.md`.
    pub(crate) number: u64,
    pub(crate) kind: Kind,
    pub(crate) keys: Choice,
    /// Begins with an empty database.
    pub(crate) empty: bool,
    /// Runs for `--duration`.
    pub(crate) timed: bool,
}

use Choice::{Hot, InOrder, Missing, Pareto, Random, Zipfian};
use Kind::*;

/// The numbers of the benchmarks of these names.
pub(crate) const FILL_RANDOM: u64 = 2;
const FILL_RAND_BATCH: u64 = 5;

/// In the order of their numbers, from 1.
const ALL: [(&str, Kind, Choice); 43] = [
    ("fillseq", Put, InOrder),
    ("fillrandom", Put, Random),
    ("overwrite", Put, Random),
    ("fillseqbatch", PutBatch, InOrder),
    ("fillrandbatch", PutBatch, Random),
    ("fillsync", PutSync, Random),
    ("fill100K", PutLarge, InOrder),
    ("fill100Krandom", PutLarge, Random),
    ("readseq", Scan, InOrder),
    ("readreverse", ScanBackwards, InOrder),
    ("readrandom", Get, Random),
    ("readmissing", Get, Missing),
    ("readhot", Get, Hot),
    ("seekrandom", Seek, Random),
    ("readwhilewriting", GetWhilePutting, Random),
    ("deleteseq", Delete, InOrder),
    ("deleterandom", Delete, Random),
    ("compact", Compact, InOrder),
    ("waitcompact", WaitCompact, InOrder),
    ("fillseqsync", PutSync, InOrder),
    ("bulkload", BulkLoad, InOrder),
    ("cold", Cold, InOrder),
    ("readpareto", Mix(100), Pareto(0.2)),
    ("mixedpareto", Mix(90), Pareto(0.2)),
    ("writepareto", Mix(0), Pareto(0.0001)),
    ("ycsba", Mix(50), Zipfian),
    ("ycsbb", Mix(95), Zipfian),
    ("ycsbc", Mix(100), Zipfian),
    ("ycsbd", Latest(95), Zipfian),
    ("ycsbe", ShortScans(95), Zipfian),
    ("selftest", SelfTest, Random),
    ("ycsbf", GetAndPut(50), Zipfian),
    ("readwriterandom", Mix(50), Random),
    ("queue", Queue, InOrder),
    ("mixgraph", Graph, Random),
    ("replay", Replay, InOrder),
    ("deleterange", DeleteRange, Random),
    ("fillexpiring", PutExpiring, Random),
    ("createkeyspaces", CreateKeyspaces, InOrder),
    ("fillkeyspaces", PutKeyspaces, Random),
    ("readkeyspaces", GetKeyspaces, Random),
    ("multireadrandom", MultiGet, Random),
    ("readhit", Get, Choice::Put),
];

pub(crate) fn find(name: &str) -> Result<Benchmark> {
    let Some(at) = ALL.iter().position(|(known, ..)| *known == name) else {
        return Err(Failure::usage(format!(
            "there is no benchmark '{name}'; lab/WORKLOADS.md lists them"
        )));
    };
    let (name, kind, keys) = ALL[at];
    Ok(Benchmark {
        name,
        number: at as u64 + 1,
        kind,
        keys,
        empty: name.starts_with("fill") && kind != PutKeyspaces
            || matches!(kind, BulkLoad | SelfTest | Queue | Replay | CreateKeyspaces),
        timed: matches!(keys, Pareto(_)) || kind == PutExpiring,
    })
}

impl Benchmark {
    /// Whether it counts the keys that it found.
    pub(crate) fn counts_found(&self) -> bool {
        match self.kind {
            Get | GetWhilePutting | GetKeyspaces | MultiGet | Seek => true,
            Latest(_) | GetAndPut(_) | Queue | Graph | Replay => true,
            Mix(gets) => gets > 0,
            _ => false,
        }
    }

    /// Seeds its random numbers. fillrandbatch puts what fillrandom puts.
    pub(crate) fn stream(&self) -> u64 {
        match self.number {
            FILL_RAND_BATCH => FILL_RANDOM,
            number => number,
        }
    }

    /// Whether its keys are those of keyspaces.
    pub(crate) fn is_in_keyspaces(&self) -> bool {
        matches!(self.kind, PutKeyspaces | GetKeyspaces)
    }

    /// Whether it is done by one thread, whatever the number of threads.
    pub(crate) fn is_single(&self) -> bool {
        matches!(
            self.kind,
            BulkLoad | Compact | WaitCompact | Cold | SelfTest | Replay | CreateKeyspaces
        )
    }

    /// Operations of all threads; a timed benchmark has no such number.
    pub(crate) fn operations(&self, num: u64, reads: u64) -> u64 {
        /// Entries for each synchronous write, and for each large value.
        const SYNC_SHARE: u64 = 100;
        const LARGE_SHARE: u64 = 1000;
        /// The same for each range that is deleted.
        const RANGE_SHARE: u64 = 100;
        match self.kind {
            PutSync => (num / SYNC_SHARE).max(1),
            PutLarge => (num / LARGE_SHARE).max(1),
            DeleteRange => (num / RANGE_SHARE).max(1),
            Get | GetKeyspaces | GetWhilePutting | MultiGet => reads,
            Seek | Scan | ScanBackwards => reads,
            _ => num,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_lead_to_benchmarks() {
        for (at, (name, ..)) in ALL.iter().enumerate() {
            assert_eq!(find(name).unwrap().number, at as u64 + 1);
        }
        assert!(find("fillsequential").is_err());
        let number = |name| find(name).unwrap().number;
        assert_eq!([number("readpareto"), number("selftest"), number("queue")], [23, 31, 34]);
        let stream = |name| find(name).unwrap().stream();
        assert_eq!([stream("fillrandbatch"), stream("fillrandom"), number("fillrandom")], [2; 3]);
        assert_eq!(stream("readhit"), 43);
    }
}
