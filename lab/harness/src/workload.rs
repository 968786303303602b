//! Properties of the benchmarks of `lab/WORKLOADS.md`.

/// A benchmark.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Workload {
    /// Its name.
    pub name: &'static str,
    /// In words, where a suite gives no label.
    pub label: &'static str,
    /// Whether it begins with an empty database, so that nothing before it matters.
    pub empty: bool,
    /// Whether it changes the database.
    pub writes: bool,
    /// Whether every write waits for the disk.
    pub synchronous: bool,
    /// Whether it runs for `duration` instead of a number of operations.
    pub timed: bool,
}

impl Workload {
    /// The one with a name.
    #[must_use]
    pub fn named(name: &str) -> Option<&'static Workload> {
        WORKLOADS.iter().find(|workload| workload.name == name)
    }

    /// Whether it leaves background work behind, which is then measured as its debt.
    #[must_use]
    pub fn leaves_debt(&self) -> bool {
        self.writes && !matches!(self.name, "compact" | "waitcompact" | "selftest")
    }

    /// Whether what it leaves in the database follows from its seed alone: not where time, or the
    /// order in which threads come, decides.
    #[must_use]
    pub fn is_repeatable(&self, threads: u64) -> bool {
        let one_kind = match self.name {
            "queue" => false,
            "overwrite" | "deleteseq" | "deleterandom" | "deleterange" | "fillkeyspaces" => true,
            _ => self.empty,
        };
        !self.timed && self.name != "readwhilewriting" && (threads <= 1 || one_kind)
    }

    /// Whether its operations are counted by `reads`, and not by the entries.
    #[must_use]
    pub fn counts_reads(&self) -> bool {
        let other = matches!(self.name, "readpareto" | "ycsbc" | "cold");
        (!self.writes && !other) || self.name == "readwhilewriting"
    }

    /// Whether it is about the database as a whole: its one operation cannot be cut short.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        matches!(self.name, "compact" | "waitcompact" | "cold" | "createkeyspaces" | "selftest")
    }
}

const fn fill(name: &'static str, label: &'static str) -> Workload {
    Workload { name, label, empty: true, writes: true, synchronous: false, timed: false }
}

const fn write(name: &'static str, label: &'static str) -> Workload {
    Workload { name, label, empty: false, writes: true, synchronous: false, timed: false }
}

const fn read(name: &'static str, label: &'static str) -> Workload {
    Workload { name, label, empty: false, writes: false, synchronous: false, timed: false }
}

const fn synchronous(workload: Workload) -> Workload {
    Workload { synchronous: true, ..workload }
}

const fn timed(workload: Workload) -> Workload {
    Workload { timed: true, ..workload }
}

/// All of them, in the order of `WORKLOADS.md`.
pub const WORKLOADS: [Workload; 43] = [
    fill("fillseq", "Sequential writes"),
    fill("fillrandom", "Random writes"),
    write("overwrite", "Random overwrites"),
    fill("fillseqbatch", "Sequential writes in batches"),
    fill("fillrandbatch", "Random writes in batches"),
    synchronous(fill("fillsync", "Random writes, synchronous")),
    fill("fill100K", "Sequential writes of 100,000 bytes"),
    fill("fill100Krandom", "Random writes of 100,000 bytes"),
    read("readseq", "Sequential reads"),
    read("readreverse", "Reverse reads"),
    read("readrandom", "Random reads"),
    read("readmissing", "Random reads of missing keys"),
    read("readhot", "Random reads of 1% of the keys"),
    read("seekrandom", "Random seeks and ten steps"),
    write("readwhilewriting", "Random reads beside a writer"),
    write("deleteseq", "Sequential deletes"),
    write("deleterandom", "Random deletes"),
    write("compact", "Compaction of everything"),
    write("waitcompact", "Work put off"),
    synchronous(fill("fillseqsync", "Sequential writes, synchronous")),
    fill("bulkload", "Bulk load"),
    read("cold", "Cold start"),
    timed(read("readpareto", "Reads, pareto")),
    timed(write("mixedpareto", "90% reads, 10% writes, pareto")),
    timed(write("writepareto", "Writes, narrow pareto")),
    write("ycsba", "YCSB A: 50% reads, 50% updates"),
    write("ycsbb", "YCSB B: 95% reads, 5% updates"),
    read("ycsbc", "YCSB C: reads"),
    write("ycsbd", "YCSB D: reads of the latest, 5% inserts"),
    write("ycsbe", "YCSB E: short scans, 5% inserts"),
    fill("selftest", "Self-test"),
    write("ycsbf", "YCSB F: 50% reads, 50% read, modify, write"),
    write("readwriterandom", "Random reads and writes, half each"),
    fill("queue", "Queue: put last, take first"),
    write("mixgraph", "Production mix: 85% reads, 14% writes, 1% scans"),
    fill("replay", "A recorded trace"),
    write("deleterange", "Deletes of ranges of a hundred keys"),
    timed(fill("fillexpiring", "Random writes that expire after a second")),
    fill("createkeyspaces", "Creation of keyspaces"),
    write("fillkeyspaces", "Random writes in many keyspaces"),
    read("readkeyspaces", "Random reads in many keyspaces"),
    read("multireadrandom", "Random reads of 64 keys at once"),
    read("readhit", "Random reads of keys that exist"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_that_of_the_specification() {
        let page = include_str!("../../WORKLOADS.md");
        for (at, workload) in WORKLOADS.iter().enumerate() {
            let start = format!("| {} | {} |", at + 1, workload.name);
            let row = page
                .lines()
                .find(|line| line.starts_with(&start))
                .unwrap_or_else(|| panic!("no row {start}"));
            let cells: Vec<&str> = row.split('|').map(str::trim).collect();
            assert_eq!(cells[3] == "empty", workload.empty, "{row}");
            assert_eq!(cells[4].starts_with("*timed*"), workload.timed, "{row}");
            assert_eq!(cells[4].contains("synchronous"), workload.synchronous, "{row}");
        }
    }
}
