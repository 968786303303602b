//! Numbers in README.md are those of their sources.

use std::collections::HashMap;
use std::fs;
use std::path::Path;

use terrace::Options;

fn repository(file: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(file);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The text on one line.
fn words(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The number that stands before `noun`, as it is written.
fn number_before<'a>(text: &'a str, noun: &str) -> &'a str {
    let (before, _) = text.split_once(noun).unwrap_or_else(|| panic!("no {noun:?}"));
    before.rsplit([' ', '*']).next().expect("a word")
}

#[test]
fn memory_in_the_readme_is_that_of_the_defaults() {
    let readme = words(&repository("README.md"));
    let defaults = format!("{:?}", Options::default());
    let default = |option: &str| {
        let (_, value) = defaults.split_once(&format!(" {option}: ")).expect(option);
        value.split(',').next().expect("a value").parse::<usize>().expect(option)
    };
    let (cache, buffer) = (default("block_cache_size") >> 20, default("write_buffer_size") >> 20);
    let bits = default("table_filter_bits");
    for said in [
        format!("a block cache of {cache} MiB (`block_cache_size`)"),
        format!("memtables of {buffer} MiB (`write_buffer_size`)"),
        format!("({bits} bits a key, `table_filter_bits`)"),
    ] {
        assert!(readme.contains(&said), "README.md does not say {said:?}");
    }
}

#[test]
fn figures_of_tests_in_the_readme_are_those_of_the_campaign() {
    let (readme, campaign) = (words(&repository("README.md")), repository("docs/reliability.md"));
    let shutdowns = number_before(&readme, " file-system shutdowns").replace(',', "");
    let of_each = shutdowns.parse::<usize>().expect("a number") / 2;
    for reached in [
        format!("| {} states, ", number_before(&readme, " crash states")),
        format!("| {} kills, ", number_before(&readme, " SIGKILLs")),
        format!("| {of_each} of ext4 and {of_each} of xfs, "),
        format!("| {} histories of four hand-overs |", number_before(&readme, " random histories")),
    ] {
        assert!(campaign.contains(&reached), "docs/reliability.md does not say {reached:?}");
    }
}

/// The fields of a line, some of them in quotation marks.
fn fields(line: &str) -> Vec<String> {
    let mut fields = vec![String::new()];
    let mut quoted = false;
    for character in line.chars() {
        match character {
            '"' => quoted = !quoted,
            ',' if !quoted => fields.push(String::new()),
            _ => fields.last_mut().expect("a field").push(character),
        }
    }
    fields
}

/// Cells of results.csv by section, benchmark and engine.
fn results() -> HashMap<[String; 3], HashMap<String, String>> {
    let text = repository("docs/results/leveldb-2011/results.csv");
    let mut lines = text.lines().map(fields);
    let names = lines.next().expect("names of columns");
    let cells = lines.map(|values| {
        let cell: HashMap<_, _> = names.iter().cloned().zip(values).collect();
        (["section", "benchmark", "engine"].map(|name| cell[name].clone()), cell)
    });
    cells.collect()
}

/// A number as the table shows it: small ones with a decimal, thousands set apart.
fn shown(number: f64) -> String {
    if number < 20.0 {
        return format!("{number:.1}");
    }
    let digits = format!("{number:.0}");
    match digits.len() {
        4.. => format!("{},{}", &digits[..digits.len() - 3], &digits[digits.len() - 3..]),
        _ => digits,
    }
}

#[test]
fn the_table_of_speed_in_the_readme_is_in_the_results() {
    let (readme, results) = (repository("README.md"), results());
    let columns = [
        ("Terrace", "terrace"),
        ("LevelDB", "leveldb"),
        ("RocksDB", "rocksdb"),
        ("fjall", "fjall"),
        ("LMDB", "lmdb-writemap"),
    ];
    let header = readme.lines().find(|line| line.contains(", writemap |")).expect("the header");
    for (name, engine) in columns {
        let version = &results[&["1-baseline", "fillseq", engine].map(str::to_owned)]["version"];
        let version = version.splitn(3, '.').take(2).collect::<Vec<_>>().join(".");
        assert!(header.contains(&format!("| {name} {version}")), "{name} {version}: {header}");
    }
    let rows = [
        ("Sequential writes", "1-baseline", "fillseq", "rate", 1e3),
        ("Random writes", "1-baseline", "fillrandom", "rate", 1e3),
        ("Random writes, batches of 1,000", "2b-batches", "fillrandbatch", "rate", 1e3),
        ("Synchronous random writes", "2c-synchronous", "fillsync", "rate", 1e3),
        ("Sequential reads", "1-baseline", "readseq", "rate", 1e3),
        ("Random reads, a third of the keys missing", "1-baseline", "readrandom", "rate", 1e3),
        ("Peak memory of random writes, MB", "1-baseline", "fillrandom", "peak_memory_bytes", 1e6),
    ];
    let filtered = "the same, bloom filters in all LSM trees";
    let rows = rows.into_iter().chain([(filtered, "1-baseline", "readrandom", "rate", 1e3)]);
    for (title, section, benchmark, column, unit) in rows {
        let start = format!("| {title} | ");
        let row = readme.lines().find_map(|line| line.strip_prefix(&start)).expect(title);
        let said = row.trim_end_matches(" |").split(" | ");
        let said = said.map(|cell| cell.trim_end_matches([' ', '†', '‡']).trim_matches('*'));
        let measured = columns.map(|(_, engine)| {
            let engine = match engine {
                "leveldb" | "rocksdb" if title == filtered => format!("{engine}-filter"),
                _ => engine.to_owned(),
            };
            let cell = &results[&[section.to_owned(), benchmark.to_owned(), engine]];
            cell[column].parse::<f64>().expect(column) / unit
        });
        let measured = measured.map(|number| match column {
            "rate" => shown(number),
            _ => format!("{number:.0}"),
        });
        assert_eq!(said.collect::<Vec<_>>(), measured, "{title}");
    }
}

/// The ratios of Terrace's rates to an engine's, which all cells have, none of them cut short.
fn ratios(engine: &str) -> Vec<f64> {
    let results = results();
    let of_engine = results.iter().filter(|([_, _, name], _)| name == engine);
    let ratios: Vec<f64> = of_engine
        .map(|([section, benchmark, _], cell)| {
            let terrace = &results[&[section, benchmark, "terrace"].map(str::to_owned)];
            assert!(cell["reason"].is_empty() && terrace["reason"].is_empty(), "{cell:?}");
            let rate =
                |cell: &HashMap<String, String>| cell["rate"].parse::<f64>().expect("a rate");
            rate(terrace) / rate(cell)
        })
        .collect();
    assert_eq!(ratios.len(), 20, "{engine}");
    ratios
}

#[test]
fn the_means_in_the_readme_are_those_of_the_results() {
    let words = repository("README.md").split_whitespace().collect::<Vec<_>>().join(" ");
    let mean = |engine| {
        let ratios = ratios(engine);
        (ratios.iter().map(|ratio| ratio.ln()).sum::<f64>() / ratios.len() as f64).exp()
    };
    let least = |engine| ratios(engine).into_iter().fold(f64::MAX, f64::min);
    let fast = format!(
        "{:.1} times the throughput of LevelDB 1.23 and {:.1} times that of RocksDB 11.12, with \
         bloom filters in every engine",
        mean("leveldb-filter"),
        mean("rocksdb-filter")
    );
    // Not rounded up.
    let tenths = |ratio: f64| (ratio * 10.0).floor() / 10.0;
    let least = format!(
        "The lowest ratios, of synchronous writes with filters, are {:.1} and {:.1}.",
        tenths(least("leveldb-filter")),
        tenths(least("rocksdb-filter"))
    );
    let unfiltered = format!(
        "{:.1} and {:.1} if LevelDB and RocksDB have no filters",
        mean("leveldb"),
        mean("rocksdb")
    );
    let debian = format!(
        "Over Debian's builds (LevelDB 1.23, RocksDB 7.8) the means are {:.1} and {:.1}.",
        mean("leveldb-debian"),
        mean("rocksdb-debian")
    );
    for claim in [fast, least, unfiltered, debian] {
        assert!(words.contains(&claim), "{claim}");
    }
}

/// Operations of a benchmark in the comparison of 2011 with a million entries.
fn operations(benchmark: &str) -> f64 {
    match benchmark {
        "fill100K" | "fill100Krandom" => 1e3,
        "fillsync" | "fillseqsync" => 1e4,
        _ => 1e6,
    }
}

#[test]
fn the_means_with_write_debt_are_those_of_the_results() {
    let (text, results) = (words(&repository("docs/performance.md")), results());
    let number = |cell: &HashMap<String, String>, column: &str| cell[column].parse::<f64>().ok();
    // With the time for write debt, and without.
    let means = |engine: &str| {
        let mut sums = [0.0, 0.0];
        let mut cells = 0.0;
        for ([section, benchmark, _], cell) in
            results.iter().filter(|([_, _, name], _)| name == engine)
        {
            let terrace = &results[&[section, benchmark, "terrace"].map(str::to_owned)];
            let Some(debts) = number(terrace, "debt_seconds").zip(number(cell, "debt_seconds"))
            else {
                continue;
            };
            let seconds = [terrace, cell]
                .map(|cell| operations(benchmark) / number(cell, "rate").expect("a rate"));
            sums[0] += ((seconds[1] + debts.1) / (seconds[0] + debts.0)).ln();
            sums[1] += (seconds[1] / seconds[0]).ln();
            cells += 1.0;
        }
        assert_eq!(cells, 12.0, "{engine}");
        sums.map(|sum: f64| (sum / cells).exp())
    };
    let ([leveldb, leveldb_without], [rocksdb, rocksdb_without]) =
        (means("leveldb-filter"), means("rocksdb-filter"));
    let said = format!(
        "the mean of the 12 cells that write is {leveldb:.1} over LevelDB and {rocksdb:.1} over \
         RocksDB, both with filters, instead of {leveldb_without:.1} and {rocksdb_without:.1}:"
    );
    assert!(text.contains(&said), "{said}");
}
