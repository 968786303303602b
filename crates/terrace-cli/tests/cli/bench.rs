//! bench: every benchmark runs, and its figures have the lab's form.

use crate::tool::{Tool, state_of};

const FIELDS: [&str; 12] = [
    "ops",
    "seconds",
    "micros_per_op",
    "ops_per_sec",
    "mb_per_sec",
    "p50_us",
    "p99_us",
    "p999_us",
    "max_us",
    "cpu_seconds",
    "bytes_written",
    "disk_bytes",
];

#[test]
fn every_benchmark_reports_every_field() {
    let tool = Tool::new();
    let names = "fillseq,fillrandom,overwrite,fillseqbatch,fillrandbatch,fillsync,fill100K,fill100Krandom,fillseq,readseq,\
                 readreverse,readrandom,readmissing,readhot,seekrandom,readwhilewriting,waitcompact,compact,deleteseq,\
                 deleterandom,multireadrandom";
    for threads in ["1", "3"] {
        let lines = tool
            .run(&["bench", "--num=3000", "--json", "--threads", threads, "--benchmarks", names])
            .json_lines();
        assert!(
            lines
                .iter()
                .map(|line| line["benchmark"].as_str().expect("a name"))
                .eq(names.split(','))
        );
        for line in &lines {
            assert_eq!(line["engine"], "terrace");
            for field in FIELDS {
                assert!(
                    line[field].as_f64().is_some_and(|number| number >= 0.0),
                    "{field} of {line}"
                );
            }
        }
        assert!(
            lines[0]["p50_us"].as_f64() > Some(0.0)
                && lines[0]["max_us"].as_f64() >= lines[0]["p99_us"].as_f64()
        );
        let ops = |at: usize| lines[at]["ops"].as_u64();
        assert_eq!((ops(0), ops(3), ops(5), ops(6)), (Some(3000), Some(3000), Some(30), Some(3)));
        let found = |at: usize| lines[at]["found"].as_u64();
        assert_eq!((found(11), found(12), found(13)), (Some(3000), Some(0), Some(3000)));
        // After deleterandom.
        assert_eq!(lines[20]["ops"], 3000);
        assert!(lines[15]["writer_ops_per_sec"].is_number());
    }
    // The temporary database is gone.
    assert_eq!(tool.path("").read_dir().expect("a directory").count(), 0);
    std::fs::write(tool.path("file"), "").expect("written");
    for benchmark in ["--benchmarks=fillseq", "--benchmarks=readrandom"] {
        tool.run(&["bench", "--db=file", benchmark])
            .fails(2, "file is a file, not a database directory");
    }
}

#[test]
fn a_database_of_ones_own_is_kept() {
    let tool = Tool::new();
    tool.ok(&["bench", "--db=db", "--num=500", "--benchmarks=fillseq", "--json"]);
    assert_eq!(tool.ok(&["scan", "db", "--count"]), "500\n");
    assert_eq!(tool.ok(&["scan", "db", "--keys-only", "--limit", "1"]), "0000000000000000\n");
    let text =
        tool.ok(&["bench", "--db=db", "--num=500", "--benchmarks=readrandom,stats", "--histogram"]);
    for part in ["readrandom", "micros/op", "(500 of 500 found)", "average", "99.9%"] {
        assert!(text.contains(part), "{part} is not in\n{text}");
    }
    tool.ok(&[
        "bench",
        "--db=db",
        "--num=600",
        "--benchmarks=fillseq",
        "--use_existing_db",
        "--value_size=10",
    ]);
    assert_eq!(tool.ok(&["scan", "db", "--count"]), "600\n");
    let fill = [
        "bench",
        "--db=db",
        "--num=100",
        "--benchmarks=fillrandom",
        "--bloom_bits=10",
        "--compression=none",
    ];
    tool.ok(&[&fill[..], &["--yes"]].concat());
    assert!(tool.ok(&["scan", "db", "--count"]).trim().parse::<u32>().expect("a number") <= 100);
}

#[test]
fn a_database_that_was_there_is_destroyed_on_request_alone() {
    let tool = Tool::new();
    tool.sample("db");
    let before = state_of(&tool.path("db"));
    for (arguments, message) in [
        (&[][..], "fillseq would first remove the database db; add --yes"),
        (
            &["--benchmarks=readseq,bulkload"],
            "bulkload would first remove the database db; add --yes",
        ),
        // Wrong options are found before anything is destroyed for them.
        (&["--benchmarks=fillseq", "--yes", "--background_threads=65"], "background_threads is 65"),
        (&["--benchmarks=fillseq", "--yes", "--table_filter_bits=33"], "table_filter_bits is 33"),
        (&["--benchmarks=fillseq,fillsequence", "--yes"], "unknown benchmark"),
    ] {
        tool.run(&[&["bench", "--db=db", "--num=10"], arguments].concat()).fails(2, message);
        assert!(state_of(&tool.path("db")) == before, "{arguments:?} changed the database");
    }
    tool.ok(&["bench", "--db=db", "--num=10", "--benchmarks=fillseq,fillseq", "--yes"]);
    assert_eq!(tool.ok(&["scan", "db", "--count"]), "10\n");
    // A run may destroy its own database, and where there is no database nothing has to be
    // asked.
    std::fs::create_dir(tool.path("new")).expect("created");
    std::fs::write(tool.path("new/notes.txt"), "mine").expect("written");
    tool.ok(&["bench", "--db=new", "--num=10", "--benchmarks=fillseq,fillrandom,fillseq"]);
    assert_eq!(tool.ok(&["scan", "new", "--count"]), "10\n");
    assert_eq!(std::fs::read(tool.path("new/notes.txt")).expect("readable"), b"mine");
}

#[test]
fn wrong_options_are_refused() {
    let tool = Tool::new();
    tool.run(&["bench", "--benchmarks=fillsequence"]).fails(2, "unknown benchmark fillsequence");
    tool.run(&["bench", "--num=0"]).fails(2, "it must be at least 1");
    tool.run(&["bench", "--num=-1"]).fails(2, "the number is out of range");
    tool.run(&["bench", "--reads=many"]).fails(2, "this takes a whole number");
    tool.run(&["bench", "--threads=2000"]).fails(2, "it must be from 1 to 1024");
    tool.run(&["bench", "--num=many"]).fails(2, "invalid value");
    tool.run(&["bench", "--value_size=0"]).fails(2, "--value_size");
    tool.run(&["bench", "--value_size=-1"]).fails(2, "invalid value '-1' for '--value_size");
    tool.run(&["bench", "--value_log=0"]).fails(2, "'--value_log <SIZE>': it must be at least 1");
    for number in ["--num", "--reads", "--threads", "--seed"] {
        let ran = tool.run(&["bench", number, "-1"]);
        assert!(!ran.stderr.contains("tip"), "{ran:?}");
        ran.fails(2, &format!("'-1' for '{number} <N>'"));
    }
    tool.run(&["bench", "--compression=lzma"]).fails(2, "invalid value");
    tool.run(&["bench", "--wat"]).fails(2, "unexpected argument");
    assert_eq!(tool.path("").read_dir().expect("a directory").count(), 0);
    std::fs::write(tool.path("file"), "").expect("written");
    for benchmark in ["--benchmarks=fillseq", "--benchmarks=readrandom"] {
        tool.run(&["bench", "--db=file", benchmark])
            .fails(2, "file is a file, not a database directory");
    }
}
