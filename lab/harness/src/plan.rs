//! What is run, under which settings.

/// The memory an engine may use for its data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Memory {
    pub(crate) write_buffer: u64,
    pub(crate) cache: u64,
}

/// Whether a section is about writing or reading; a configuration may divide its memory differently for the two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Write,
    Read,
}

/// An amount of memory and its division.
#[derive(Debug)]
pub(crate) struct Configuration {
    pub(crate) name: &'static str,
    write: Memory,
    read: Memory,
}

impl Configuration {
    pub(crate) fn memory(&self, kind: Kind) -> Memory {
        match kind {
            Kind::Write => self.write,
            Kind::Read => self.read,
        }
    }
}

const MIB: u64 = 1 << 20;

const fn memory(write_buffer_mib: u64, cache_mib: u64) -> Memory {
    Memory { write_buffer: write_buffer_mib * MIB, cache: cache_mib * MIB }
}

/// The two configurations of the comparison of 2011, and LevelDB's defaults.
pub(crate) const CONFIGURATIONS: [Configuration; 3] = [
    Configuration { name: "4MB", write: memory(2, 2), read: memory(2, 2) },
    Configuration { name: "default", write: memory(4, 8), read: memory(4, 8) },
    Configuration { name: "128MB", write: memory(120, 8), read: memory(8, 120) },
];

/// Benchmarks that run one after the other in one process on one database.
#[derive(Debug)]
pub(crate) struct Section {
    pub(crate) name: &'static str,
    pub(crate) kind: Kind,
    /// Makes the database that the section is about; not reported.
    preparation: &'static [&'static str],
    /// What is reported. A name may repeat where one pass is short.
    measured: &'static [&'static str],
    /// Reads are this fraction of the entries.
    reads_divisor: u64,
}

impl Section {
    /// Every benchmark, in order.
    pub(crate) fn benchmarks(&self) -> Vec<&'static str> {
        [self.preparation, self.measured].concat()
    }

    /// How many of the benchmarks only prepare.
    pub(crate) fn prepared(&self) -> usize {
        self.preparation.len()
    }

    pub(crate) fn reads(&self, num: u64) -> u64 {
        (num / self.reads_divisor).max(1)
    }
}

/// A database written at random whose background work is done.
const SETTLED: &[&str] = &["fillrandom", "waitcompact"];

pub(crate) const SECTIONS: [Section; 8] = [
    Section {
        name: "ordered",
        kind: Kind::Write,
        preparation: &[],
        measured: &["fillseq", "fillseqbatch"],
        reads_divisor: 1,
    },
    Section {
        name: "random",
        kind: Kind::Write,
        preparation: &[],
        measured: &["fillrandom", "overwrite"],
        reads_divisor: 1,
    },
    Section { name: "batches", kind: Kind::Write, preparation: &[], measured: &["fillrandbatch"], reads_divisor: 1 },
    Section { name: "sync", kind: Kind::Write, preparation: &[], measured: &["fillsync"], reads_divisor: 1 },
    Section {
        name: "large",
        kind: Kind::Write,
        preparation: &[],
        measured: &["fill100K", "fill100Krandom"],
        reads_divisor: 1,
    },
    Section {
        name: "reads",
        kind: Kind::Read,
        preparation: SETTLED,
        measured: &[
            "readrandom",
            "readmissing",
            "readhot",
            "readseq",
            "readseq",
            "readseq",
            "readreverse",
            "readreverse",
            "readreverse",
            "seekrandom",
        ],
        reads_divisor: 1,
    },
    Section {
        name: "mixed",
        kind: Kind::Read,
        preparation: SETTLED,
        measured: &["readwhilewriting"],
        reads_divisor: 5,
    },
    Section {
        name: "deletes",
        kind: Kind::Write,
        preparation: SETTLED,
        measured: &["deleterandom", "deleteseq", "compact"],
        reads_divisor: 1,
    },
];

/// The order of the report.
pub(crate) const BENCHMARKS: [&str; 18] = [
    "fillseq",
    "fillseqbatch",
    "fillrandom",
    "fillrandbatch",
    "overwrite",
    "fillsync",
    "fill100K",
    "fill100Krandom",
    "readrandom",
    "readmissing",
    "readhot",
    "readseq",
    "readreverse",
    "seekrandom",
    "readwhilewriting",
    "deleterandom",
    "deleteseq",
    "compact",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_report_shows_all_that_is_measured() {
        for name in SECTIONS.iter().flat_map(|section| section.measured) {
            assert!(BENCHMARKS.contains(name), "{name}");
        }
        for name in BENCHMARKS {
            assert_eq!(SECTIONS.iter().filter(|section| section.measured.contains(&name)).count(), 1, "{name}");
        }
    }

    #[test]
    fn every_configuration_spends_what_its_name_says() {
        for (configuration, total) in CONFIGURATIONS.iter().zip([4, 12, 128]) {
            for kind in [Kind::Write, Kind::Read] {
                let memory = configuration.memory(kind);
                assert_eq!(memory.write_buffer + memory.cache, total * MIB, "{}", configuration.name);
            }
        }
    }
}
