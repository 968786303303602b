//! Invented runs of all six suites: as many engines and sections as real ones have, figures that
//! could be real, and every kind of missing figure. Deterministic: the same seed gives the same
//! run.

use lab_harness::run::{
    Cell, Chart, Debt, DriverResult, Durability, Engine, Figure, Interval, Machine, Measurement,
    Measurements, Run, Section, Status,
};
use serde_json::{Map, Value};

/// splitmix64.
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// From 0 to 1.
    pub(crate) fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Around 1, by a fraction either way.
    pub(crate) fn around(&mut self, fraction: f64) -> f64 {
        1.0 + (self.unit() * 2.0 - 1.0) * fraction
    }
}

pub(crate) fn engine(id: &str, title: &str, version: &str) -> Engine {
    Engine {
        id: id.to_owned(),
        title: title.to_owned(),
        version: version.to_owned(),
        asynchronous: "the write is in the operating system's cache when the call returns".to_owned(),
        synchronous: "the log is on the disk (fdatasync) when the call returns".to_owned(),
        settings: "cache_size is the block cache, write_buffer_size the memtable; everything else is the default"
            .to_owned(),
        ..Engine::default()
    }
}

/// Sixteen columns, two of them without a program.
pub(crate) fn engines() -> Vec<Engine> {
    let mut all = vec![
        engine("terrace", "Terrace", "0.1.0"),
        engine("dropin", "LevelDB API over Terrace", "0.1.0"),
        engine("leveldb", "LevelDB", "1.23"),
        engine("rocksdb", "RocksDB", "9.10.0"),
        engine("sqlite", "SQLite", "3.46.1"),
        engine("kyoto", "Kyoto TreeDB", "1.2.80"),
        engine("wiredtiger", "WiredTiger B-tree", "3.2.1"),
        engine("wiredtiger-lsm", "WiredTiger LSM", "3.2.1"),
        engine("bdb", "Berkeley DB", "5.3.28"),
        engine("innodb", "InnoDB", "11.8.3"),
        engine("lmdb", "LMDB", "0.9.31"),
        engine("lmdb-writemap", "LMDB, WRITEMAP", "0.9.31"),
        engine("fjall", "fjall", "3.0.1"),
        engine("redb", "redb", "3.1.0"),
        Engine {
            missing: Some("its library is in no package registry".to_owned()),
            ..engine("bangdb", "BangDB", "")
        },
        Engine {
            missing: Some(
                "it is part of Riak, an Erlang server, and has no ordered scan".to_owned(),
            ),
            ..engine("bitcask", "Bitcask", "")
        },
    ];
    for (id, weaker) in [
        (
            "kyoto",
            "writes stay in the process until the page cache is written; a killed process loses them",
        ),
        ("redb", "Durability::None: a commit is not written until the next one that is durable"),
    ] {
        let engine = all.iter_mut().find(|engine| engine.id == id).expect("an engine");
        engine.weaker = Some(weaker.to_owned());
        engine.limits = vec!["one writer at a time".to_owned(), "no compression".to_owned()];
    }
    all
}

pub(crate) fn cell(benchmark: &str, label: &str) -> Cell {
    Cell {
        benchmark: benchmark.to_owned(),
        label: label.to_owned(),
        unit: "op/s".to_owned(),
        paced: false,
        x: None,
        setting: None,
        durability: Durability::Asynchronous,
        writes: !benchmark.starts_with("read")
            && !benchmark.starts_with("seek")
            && benchmark != "ycsbc",
    }
}

pub(crate) fn section(
    id: &str,
    title: &str,
    description: &str,
    chart: Chart,
    settings: Value,
    cells: Vec<Cell>,
) -> Section {
    let settings = settings.as_object().cloned().unwrap_or_else(Map::new);
    let (id, title, description) = (id.to_owned(), title.to_owned(), description.to_owned());
    Section {
        id,
        title,
        description,
        chart,
        settings,
        cells,
        published: Vec::new(),
        baseline: None,
    }
}

pub(crate) fn run(
    suite: &str,
    title: &str,
    source: &str,
    sections: Vec<Section>,
    engines: Vec<Engine>,
) -> Run {
    Run {
        schema: 1,
        suite: suite.to_owned(),
        title: title.to_owned(),
        source: source.to_owned(),
        command: format!(
            "lab run {suite} --num 1000000 --reps 3 --time-limit 60 --out out/{suite}"
        ),
        began: "2026-11-21T10:00:00Z".to_owned(),
        seconds: 4127.0,
        complete: true,
        num: 1_000_000,
        rounds: 3,
        precision: None,
        seed: 301,
        time_limit: 60.0,
        budget: None,
        duration: 0.0,
        short: false,
        figure: Figure::Median,
        notes: Vec::new(),
        machine: Machine {
            cpu: "AMD EPYC 7B13".to_owned(),
            cores: 2,
            memory_mib: 24_105,
            kernel: "Linux 6.12.41".to_owned(),
            file_system: "ext4 on /dev/vda".to_owned(),
            costs: None,
        },
        engines,
        sections,
    }
}

/// How fast an engine is at a benchmark, on an invented but plausible scale.
fn speed(engine: &str, benchmark: &str) -> f64 {
    let base = match benchmark {
        "readseq" => 6.0e6,
        "readreverse" => 4.5e6,
        "readrandom" | "readmissing" => 4.2e5,
        "readhot" | "ycsbc" | "readpareto" => 7.5e5,
        "seekrandom" => 1.6e5,
        "fillseq" | "fillseqbatch" | "bulkload" => 9.0e5,
        "fillsync" | "fillseqsync" => 950.0,
        "fill100K" | "fill100Krandom" => 4.1e3,
        name if name.starts_with("ycsb") => 3.2e5,
        _ => 3.4e5,
    };
    let write = !benchmark.starts_with("read") && benchmark != "seekrandom" && benchmark != "ycsbc";
    let factor = match engine {
        "terrace" => 1.75,
        "dropin" => 1.55,
        "leveldb" => 1.0,
        "rocksdb" => 0.9,
        "sqlite" => {
            if write {
                0.11
            } else {
                0.5
            }
        }
        "kyoto" => {
            if write {
                1.9
            } else {
                0.95
            }
        }
        "wiredtiger" => {
            if write {
                0.8
            } else {
                1.2
            }
        }
        "wiredtiger-lsm" => {
            if write {
                0.95
            } else {
                0.75
            }
        }
        "bdb" => {
            if write {
                0.31
            } else {
                0.72
            }
        }
        "innodb" => {
            if write {
                0.09
            } else {
                0.21
            }
        }
        "lmdb" => {
            if write {
                0.35
            } else {
                1.7
            }
        }
        "lmdb-writemap" => {
            if write {
                0.62
            } else {
                1.72
            }
        }
        "fjall" => 0.84,
        "redb" => {
            if write {
                0.55
            } else {
                1.35
            }
        }
        _ => 0.6,
    };
    let name_hash = engine
        .bytes()
        .chain(benchmark.bytes())
        .fold(7_u64, |h, b| h.wrapping_mul(31).wrapping_add(b.into()));
    base * factor * (0.75 + (name_hash % 1000) as f64 / 2000.0)
}

/// Measurements of every cell of a run. With `gaps` some fail in each of the ways in which a cell
/// can.
pub(crate) fn measure(run: &Run, seed: u64, gaps: bool) -> Measurements {
    let mut random = Random(seed);
    let mut all = Measurements::new();
    for round in 0..run.rounds {
        for section in &run.sections {
            for at in 0..section.cells.len() {
                for engine in &run.engines {
                    all.add(measurement(run, (section, at), engine, round, gaps, &mut random));
                }
            }
        }
    }
    all
}

fn measurement(
    run: &Run,
    (section, at): (&Section, usize),
    engine: &Engine,
    round: u32,
    gaps: bool,
    random: &mut Random,
) -> Measurement {
    let cell = &section.cells[at];
    let mut m = Measurement {
        section: section.id.clone(),
        cell: at,
        engine: engine.id.clone(),
        round,
        status: Status::Ok,
        reason: None,
        partial: false,
        debt: None,
        result: None,
        series: Vec::new(),
    };
    let gap = match (engine.id.as_str(), cell.benchmark.as_str()) {
        _ if engine.missing.is_some() => {
            Some((Status::Missing, engine.missing.clone().unwrap_or_default()))
        }
        _ if engine.disqualified.is_some() => {
            Some((Status::Disqualified, engine.disqualified.clone().unwrap_or_default()))
        }
        _ if !gaps => None,
        ("kyoto", "fillseqbatch" | "fillrandbatch") => {
            Some((Status::Unsupported, "its batches are single writes".to_owned()))
        }
        ("innodb", "fill100Krandom") => Some((
            Status::Failed,
            "exit status 3: InnoDB: Error 139, row size too large".to_owned(),
        )),
        ("bdb", "fillrandom") if section.id.contains("2D") => {
            Some((Status::Timeout, "killed 30 s after its time limit of 60 s".to_owned()))
        }
        ("fjall", "readreverse") if round == 1 => {
            Some((Status::Failed, "killed by signal 9".to_owned()))
        }
        _ => None,
    };
    if let Some((status, reason)) = gap {
        m.status = status;
        m.reason = Some(reason);
        return m;
    }
    let noise = if engine.id == "wiredtiger" { 0.14 } else { 0.035 };
    let threads =
        cell.x.as_ref().filter(|axis| axis.name == "threads").map_or(1.0, |axis| axis.value);
    let scaling =
        if engine.id == "sqlite" { 1.0 / threads.powf(0.15) } else { threads.min(4.0).powf(0.7) };
    let cliff = match cell.x.as_ref().filter(|axis| axis.name != "threads") {
        Some(axis) if engine.id == "bdb" && axis.value > 4e6 => 0.08,
        Some(axis) => 1.0 / (axis.value / 1e5).max(1.0).powf(0.12),
        None => 1.0,
    };
    let setting = match cell.setting.as_deref() {
        Some("sync") => 0.01,
        Some("max_open_files=10") if cell.benchmark == "readrandom" => 0.42,
        Some("write_buffer_size=64 MiB") => 1.22,
        Some("write_buffer_size=512 MiB") => 0.91,
        _ => 1.0,
    };
    let rate =
        speed(&engine.id, &cell.benchmark) * random.around(noise) * scaling * cliff * setting;
    let us = threads * 1e6 / rate;
    let truncated = gaps && engine.id == "innodb" && rate < 5e4;
    let ops = if truncated { (rate * run.time_limit) as u64 } else { run.num };
    let seconds = ops as f64 / rate;
    let tail = if cell.writes { 40.0 } else { 9.0 } * random.around(0.5);
    m.status = if truncated { Status::Truncated } else { Status::Ok };
    m.reason = truncated.then(|| format!("cut short after {} s", run.time_limit));
    m.debt = cell
        .writes
        .then(|| Debt { seconds: random.unit() * 3.0, bytes_written: random.next() % 90_000_000 });
    m.result = Some(DriverResult {
        benchmark: cell.benchmark.clone(),
        engine: engine.id.clone(),
        ops,
        seconds,
        micros_per_op: us,
        ops_per_sec: rate,
        mb_per_sec: rate * 116.0 / 1_048_576.0,
        mean_us: us,
        p50_us: us * 0.72,
        p75_us: us * 0.95,
        p90_us: us * 1.25,
        p95_us: us * 1.6,
        p99_us: us * 2.9,
        p999_us: us * tail,
        p9999_us: us * tail * 4.0,
        max_us: us * tail * 30.0 + 1500.0,
        cpu_seconds: seconds * random.around(0.2) * threads.min(2.0),
        bytes_written: if cell.writes {
            (ops as f64 * 190.0 * random.around(0.3)) as u64
        } else {
            0
        },
        disk_bytes: (run.num as f64 * 71.0 * random.around(0.3)) as u64,
        peak_memory_bytes: (24e6 * random.around(0.6)) as u64,
        truncated,
        writer_ops_per_sec: (cell.benchmark == "readwhilewriting").then_some(rate * 0.3),
        ..DriverResult::default()
    });
    if section.chart == Chart::Series {
        let seconds = match run.duration {
            0.0 if run.short => run.time_limit,
            0.0 => 600.0,
            duration => duration,
        };
        let seconds = seconds as u32;
        m.series = intervals(&cell.benchmark, engine, rate, seconds, random);
    }
    m
}

/// Second by second, with stalls where an engine has them.
fn intervals(
    benchmark: &str,
    engine: &Engine,
    rate: f64,
    seconds: u32,
    random: &mut Random,
) -> Vec<Interval> {
    let stalls = engine.id == "leveldb" || engine.id == "innodb";
    let one = |second: u32, random: &mut Random| {
        let wave = 1.0 + 0.12 * (f64::from(second) / 37.0).sin();
        let dip = if second % 97 < 6 { 0.55 } else { 1.0 };
        let stalled = stalls && (second % 171 < 2 || (310..318).contains(&second));
        let ops = if stalled { 0 } else { (rate * wave * dip * random.around(0.1)) as u64 };
        let us = 1e6 / (rate * wave * dip);
        let busy = f64::from(u32::from(ops > 0));
        Interval {
            series: benchmark.to_owned(),
            second: f64::from(second + 1),
            ops,
            mean_us: us * busy,
            p50_us: us * 0.7 * busy,
            p95_us: us * 2.0 * random.around(0.2) * busy,
            p99_us: us * 5.0 * random.around(0.3) * busy,
            p999_us: us * 60.0 * random.around(0.4) * busy,
            max_us: us * 900.0 * random.around(0.8) * busy,
        }
    };
    (0..seconds).map(|second| one(second, random)).collect()
}

pub(crate) fn only(ids: &[&str]) -> Vec<Engine> {
    engines().into_iter().filter(|engine| ids.contains(&engine.id.as_str())).collect()
}
