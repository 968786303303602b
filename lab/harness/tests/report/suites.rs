//! The six suites, as far as the report can tell them apart from the real ones.

use std::path::Path;

use lab_harness::run::{Axis, Cell, Chart, Durability, Figure, Published, Run};
use lab_harness::suite::{Form, Plan, Scale, Suite, load_all};
use serde_json::json;

use crate::data::{cell, engines, only, run, section};

fn published(benchmark: &str, figures: &[(&str, f64)]) -> Vec<Published> {
    let one = |(engine, value): &(&str, f64)| Published {
        benchmark: benchmark.to_owned(),
        engine: (*engine).to_owned(),
        value: *value,
        relative_to: None,
        x: None,
        setting: None,
        note: None,
    };
    figures.iter().map(one).collect()
}

fn with_x(benchmark: &str, label: &str, name: &str, values: &[f64]) -> Vec<Cell> {
    let one = |value: &f64| Cell {
        x: Some(Axis { name: name.to_owned(), value: *value }),
        ..cell(benchmark, label)
    };
    values.iter().map(one).collect()
}

/// The suites, named as the lab names them.
pub(crate) fn all() -> Vec<Run> {
    vec![leveldb_2011(), wiredtiger_2012(), bangdb_2012(), configurations(), basho_2011(), modern()]
}

/// The lab's own suites, as they are run in full.
pub(crate) fn real() -> Vec<Run> {
    in_form(Form::full)
}

/// The same in their short form.
pub(crate) fn short() -> Vec<Run> {
    in_form(Form::short)
}

fn in_form(form: fn(&Suite) -> Form) -> Vec<Run> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../suites");
    let runs = load_all(&dir).expect("suites").into_iter().map(|suite| {
        let form = form(&suite);
        let plan = Plan::of(&suite, &form, &Scale::NONE, &[]).expect("a plan");
        let (num, rounds, time_limit, duration) =
            (form.num, form.rounds, form.time_limit, form.duration);
        let wanted = |id: &str| {
            let matches = |name: &String| {
                name.strip_suffix('*').map_or(name == id, |start| id.starts_with(start))
            };
            let all = |name: &String| name == "all";
            suite.engines.is_empty() || suite.engines.iter().any(|e| all(e) || matches(e))
        };
        let columns = engines().into_iter().filter(|engine| wanted(&engine.id)).collect();
        let run = run(&suite.name, &suite.title, &suite.source, plan.sections, columns);
        Run {
            num,
            rounds,
            time_limit,
            duration,
            short: form.short,
            figure: suite.figure,
            notes: [suite.notes, plan.notes].concat(),
            ..run
        }
    });
    runs.collect()
}

pub(crate) fn leveldb_2011() -> Run {
    let synchronous = |cell: Cell| Cell { durability: Durability::Synchronous, ..cell };
    let memory = |cache: u64, buffer: u64| json!({"cache_size": cache << 20, "write_buffer_size": buffer << 20, "value_size": 100, "compression": "snappy"});
    let mut sections = vec![
        section(
            "1-baseline",
            "Baseline, 4 MB of memory",
            "Keys of 16 bytes, values of 100 bytes that compress to half; every engine may use 4 MB.",
            Chart::Bars,
            memory(2, 2),
            vec![
                cell("readseq", "Sequential reads"),
                cell("readrandom", "Random reads"),
                cell("fillseq", "Sequential writes"),
                cell("fillrandom", "Random writes"),
            ],
        ),
        section(
            "2A-large",
            "Large values",
            "1,000 values of 100,000 bytes into an empty database.",
            Chart::Bars,
            json!({"value_size": 100_000}),
            vec![
                cell("fill100K", "Sequential writes of 100 kB"),
                cell("fill100Krandom", "Random writes of 100 kB"),
            ],
        ),
        section(
            "2B-batches",
            "Batches",
            "1,000 batches of 1,000 entries.",
            Chart::Bars,
            json!({"batch": 1000}),
            vec![
                cell("fillseqbatch", "Sequential batches"),
                cell("fillrandbatch", "Random batches"),
            ],
        ),
        section(
            "2C-synchronous",
            "Synchronous writes",
            "10,000 writes, each on the disk before the call returns.",
            Chart::Bars,
            memory(2, 2),
            vec![
                synchronous(cell("fillseqsync", "Sequential synchronous writes")),
                synchronous(cell("fillsync", "Random synchronous writes")),
            ],
        ),
        section(
            "2D-uncompressed",
            "No compression",
            "The baseline without compression.",
            Chart::Bars,
            json!({"compression": "none"}),
            vec![cell("fillseq", "Sequential writes"), cell("fillrandom", "Random writes")],
        ),
        section(
            "3A-caches",
            "Larger caches",
            "128 MB for every engine.",
            Chart::Bars,
            memory(120, 8),
            vec![
                cell("readseq", "Sequential reads"),
                cell("readrandom", "Random reads"),
                cell("readreverse", "Reverse reads"),
            ],
        ),
    ];
    let then = |benchmark, l, k, s| {
        published(benchmark, &[("LevelDB", l), ("Kyoto TreeDB", k), ("SQLite3", s)])
    };
    sections[0].published = [
        then("readseq", 4.03e6, 1.01e6, 383e3),
        then("readrandom", 129e3, 151e3, 134e3),
        then("fillseq", 779e3, 342e3, 48.6e3),
        then("fillrandom", 164e3, 88.5e3, 9860.0),
    ]
    .concat();
    sections[1].published =
        [then("fill100K", 1100.0, 1000.0, 1600.0), then("fill100Krandom", 480.0, 1100.0, 1600.0)]
            .concat();
    sections[2].published = [("fillseqbatch", 840e3, 124e3), ("fillrandbatch", 221e3, 22e3)]
        .iter()
        .flat_map(|(b, l, s)| published(b, &[("LevelDB", *l), ("SQLite3", *s)]))
        .collect();
    sections[3].published =
        [then("fillseqsync", 100.0, 7.0, 88.0), then("fillsync", 100.0, 8.0, 88.0)].concat();
    run(
        "leveldb-2011",
        "LevelDB, SQLite3 and Kyoto Cabinet TreeDB, 2011",
        "LevelDB Benchmarks, Google, July 2011; six-core Xeon X5650, ext3 and ext4 on 7,200 rpm disks",
        sections,
        engines(),
    )
}

pub(crate) fn wiredtiger_2012() -> Run {
    let mut one = section(
        "load",
        "Loading, writing, reading",
        "128 MB of cache, snappy.",
        Chart::Bars,
        json!({"cache_size": 128 << 20}),
        vec![
            cell("bulkload", "Sequential insert, bulk load"),
            cell("fillrandom", "Random insert"),
            cell("readseq", "Sequential read"),
            cell("readreverse", "Reverse read"),
            cell("readrandom", "Random read"),
        ],
    );
    let relative = |benchmark: &str, engine: &str, value: f64, note: Option<&str>| Published {
        relative_to: Some("LevelDB".to_owned()),
        note: note.map(str::to_owned),
        ..published(benchmark, &[(engine, value)]).remove(0)
    };
    one.published = vec![
        relative("bulkload", "WT B-tree", 1.86, None),
        relative("bulkload", "WT LSM", 1.12, None),
        relative("fillrandom", "WT LSM", 1.10, None),
        relative("readseq", "WT B-tree", 1.71, None),
        relative("readseq", "WT LSM", 1.47, None),
        relative("readreverse", "WT B-tree", 2.0, Some("over")),
        relative("readrandom", "WT B-tree", 2.22, None),
        relative("readrandom", "WT LSM", 1.6, Some("almost")),
    ];
    let mut run = run(
        "wiredtiger-2012",
        "WiredTiger's LSM and B-tree against LevelDB, 2012",
        "WiredTiger's wiki, 2012; ratios only",
        vec![one],
        engines(),
    );
    run.rounds = 5;
    run.figure = Figure::MeanWithoutExtremes;
    run
}

pub(crate) fn bangdb_2012() -> Run {
    let sizes = [1e5, 3e5, 1e6, 2e6, 4e6, 5e6, 7e6, 1e7];
    let threads: Vec<f64> = (1..=10).map(f64::from).collect();
    let sweep = |name: &str, values: &[f64]| {
        [
            with_x("fillrandom", "Random writes", name, values),
            with_x("readrandom", "Random reads", name, values),
        ]
        .concat()
    };
    let sections = vec![
        section(
            "A-fits",
            "Everything fits the buffers",
            "4 threads, 100k to 10M operations.",
            Chart::Threads,
            json!({"threads": 4, "cache_size": 1 << 30}),
            sweep("entries", &sizes),
        ),
        section(
            "C-threads",
            "Threads",
            "1 to 10 threads.",
            Chart::Threads,
            json!({"cache_size": 1 << 30}),
            sweep("threads", &threads),
        ),
    ];
    let chosen = ["terrace", "dropin", "leveldb", "bdb", "rocksdb", "sqlite", "lmdb", "bangdb"];
    let mut run = run(
        "bangdb-2012",
        "BangDB, Berkeley DB and LevelDB, 2012",
        "IQLECT's paper, without figures in its text",
        sections,
        only(&chosen),
    );
    run.notes = vec!["Section B is scaled down: 384 MB of buffer and 768 MB of data instead of 1.5 GB and 3 GB, because this machine has 24 GB of memory.".to_owned()];
    run
}

pub(crate) fn configurations() -> Run {
    let settings = [
        None,
        Some("sync"),
        Some("max_open_files=10"),
        Some("write_buffer_size=64 MiB"),
        Some("write_buffer_size=512 MiB"),
    ];
    let cells = |benchmarks: &[(&str, &str)]| -> Vec<Cell> {
        let of = |(benchmark, label): &(&str, &str)| {
            let (benchmark, label) = ((*benchmark).to_owned(), (*label).to_owned());
            settings.map(|setting| Cell {
                setting: setting.map(str::to_owned),
                ..cell(&benchmark, &label)
            })
        };
        benchmarks.iter().flat_map(of).collect()
    };
    let sections = vec![
        section(
            "1M",
            "LevelDB's settings at 1M entries",
            "LevelDB's own benchmark under each setting.",
            Chart::Settings,
            json!({"num": 1_000_000}),
            cells(&[
                ("fillseq", "Sequential writes"),
                ("fillrandom", "Random writes"),
                ("readrandom", "Random reads"),
                ("readseq", "Sequential reads"),
            ]),
        ),
        section(
            "analytics",
            "Application: analytics",
            "Bulk load, reads, range queries.",
            Chart::Settings,
            json!({}),
            cells(&[("bulkload", "Bulk load"), ("seekrandom", "Range queries")]),
        ),
    ];
    run(
        "configurations",
        "An analysis of LevelDB's settings",
        "An analysis of LevelDB's performance, without figures in its text",
        sections,
        only(&["terrace", "leveldb"]),
    )
}

pub(crate) fn basho_2011() -> Run {
    let mut cells = vec![
        cell("readpareto", "Reads only"),
        cell("mixedpareto", "90% reads, 10% writes"),
        cell("writepareto", "Writes only, narrow"),
    ];
    cells[1].writes = true;
    let sections = vec![section(
        "steady",
        "Steady load",
        "On a database of ten million items, each phase for ten minutes.",
        Chart::Series,
        json!({"items": 10_000_000, "minutes": 10}),
        cells,
    )];
    let mut run = run(
        "basho-2011",
        "LevelDB and InnoDB under steady load, 2011",
        "Basho's blog, July 2011; curves without figures",
        sections,
        only(&["terrace", "leveldb", "innodb", "rocksdb"]),
    );
    (run.rounds, run.duration) = (1, 600.0);
    run
}

pub(crate) fn modern() -> Run {
    let one_of = |names: &[(&str, &str)]| names.iter().map(|(b, l)| cell(b, l)).collect::<Vec<_>>();
    let threads = [1.0, 2.0, 4.0, 8.0, 10.0];
    let sections = vec![
        section(
            "scans",
            "Seeks and short scans",
            "Seek and ten steps.",
            Chart::Bars,
            json!({}),
            one_of(&[
                ("seekrandom", "Seek and 10 steps"),
                ("readmissing", "Missing keys"),
                ("readhot", "Hot range"),
            ]),
        ),
        section(
            "ycsb",
            "YCSB",
            "The six mixes.",
            Chart::Bars,
            json!({}),
            one_of(&[
                ("ycsba", "A: half reads, half updates"),
                ("ycsbb", "B: 95% reads"),
                ("ycsbc", "C: reads only"),
                ("ycsbd", "D: latest"),
                ("ycsbe", "E: short ranges"),
                ("ycsbf", "F: read-modify-write"),
            ]),
        ),
        section(
            "threads",
            "Threads",
            "1 to 10 threads.",
            Chart::Threads,
            json!({}),
            [
                with_x("readrandom", "Random reads", "threads", &threads),
                with_x("readwhilewriting", "Reads while writing", "threads", &threads),
            ]
            .concat(),
        ),
    ];
    run("modern", "What today's users add", "no published figures", sections, engines())
}
