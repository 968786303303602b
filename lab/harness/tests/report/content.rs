//! The report of invented runs: what is in it, and that nothing odd in the data breaks it.

use std::fs;
use std::path::Path;

use lab_harness::report::{self, Source};
use lab_harness::run::{
    Axis, Baseline, Cell, Chart, Directory, DriverResult, Engine, Measurement, Measurements,
    Published, Run,
};
use tempfile::TempDir;

use crate::read::{Report, check, escaped, read, report};
use crate::{data, suites};

#[test]
fn every_suite_is_shown_in_full() {
    for run in suites::all() {
        let measurements = data::measure(&run, 7, true);
        let report = report(&run, &measurements);
        let cells: usize = run.sections.iter().map(|section| section.cells.len()).sum();
        assert_eq!(report.csv.lines().count(), 1 + cells * run.engines.len(), "{}", run.suite);
        for text in [
            &run.title,
            &run.command,
            &run.machine.cpu,
            &run.machine.file_system,
            &run.source,
            &run.began,
        ] {
            assert!(report.page.contains(&escaped(text)), "{}: {text}", run.suite);
        }
        for engine in &run.engines {
            let words = [
                Some(&engine.title),
                Some(&engine.settings),
                engine.missing.as_ref(),
                engine.weaker.as_ref(),
            ];
            for text in words.into_iter().flatten() {
                assert!(report.page.contains(&escaped(text)), "{}: {text}", run.suite);
            }
        }
        for section in &run.sections {
            assert!(
                report.page.contains(&escaped(&section.title)),
                "{}: {}",
                run.suite,
                section.title
            );
            let charts =
                report.charts.iter().filter(|(name, _)| name.starts_with(&section.id)).count();
            assert!(charts > 0, "{}: no chart of {}", run.suite, section.id);
        }
        assert!(report.charts.iter().any(|(name, _)| name == "summary.svg"), "{}", run.suite);
    }
}

#[test]
fn the_suites_of_the_lab_can_be_reported() {
    for mut run in suites::real() {
        run.rounds = run.rounds.min(2);
        let measurements = data::measure(&run, 7, true);
        if let Some(kept) = std::env::var_os("LAB_SCREENSHOTS") {
            let dir = Path::new(&kept).join(&run.suite);
            fs::create_dir_all(&dir).expect("a directory");
            report::write(&run, &measurements, &dir).expect("a report");
        }
        let report = report(&run, &measurements);
        for section in &run.sections {
            for published in &section.published {
                let label = format!("{}: ", escaped(&published.engine));
                assert!(
                    report.page.contains(&label),
                    "{}: {}: {}",
                    run.suite,
                    section.id,
                    published.engine
                );
            }
        }
    }
}

#[test]
fn what_is_missing_is_explained() {
    let run = suites::leveldb_2011();
    let report = report(&run, &data::measure(&run, 7, true));
    for words in [
        "cannot: its batches are single writes",
        "failed: exit status 3: InnoDB: Error 139, row size too large",
        "out of time: killed 30 s after its time limit of 60 s",
        "round 2: failed: killed by signal 9",
        "cut short in 3 of 3 rounds",
        "not available: its library is in no package registry",
    ] {
        assert!(report.page.contains(words), "{words}");
    }
}

#[test]
fn published_figures_stand_beside_the_new_ones() {
    let run = suites::leveldb_2011();
    let measured = report(&run, &data::measure(&run, 7, true));
    let then = measured.charts.iter().filter(|(name, _)| name.ends_with("-then.svg")).count();
    assert_eq!(then, 10);
    for words in ["LevelDB: 4,030,000 (published)", "Then: Random reads", "Now: Random reads"] {
        assert!(measured.page.contains(words), "{words}");
    }
    let run = suites::wiredtiger_2012();
    let relative = report(&run, &data::measure(&run, 7, true));
    for words in ["WT B-tree: over 2.00× (published)", "LevelDB = 1", "LevelDB: 1.00× (published)"]
    {
        assert!(relative.page.contains(words), "{words}");
    }
}

/// Cells of two engines at given rates: Terrace and LevelDB, and Kyoto, which promises less.
fn two_cells(rates: [[f64; 3]; 2]) -> (Run, Measurements) {
    let cells =
        vec![data::cell("fillseq", "Sequential writes"), data::cell("readrandom", "Random reads")];
    let section = data::section("one", "One", "Words.", Chart::Bars, serde_json::json!({}), cells);
    let mut run = data::run(
        "small",
        "Small",
        "nowhere",
        vec![section],
        data::only(&["terrace", "leveldb", "kyoto"]),
    );
    run.rounds = 1;
    let mut measurements = Measurements::new();
    for measurement in data::measure(&run, 1, false).iter() {
        let mut measurement = measurement.clone();
        let engine = run
            .engines
            .iter()
            .position(|engine| engine.id == measurement.engine)
            .expect("an engine");
        measurement.result.as_mut().expect("a result").ops_per_sec =
            rates[measurement.cell][engine];
        measurements.add(measurement);
    }
    (run, measurements)
}

#[test]
fn the_levels_of_a_tree_are_shown_where_they_are_known() {
    let label = "Levels before: files, size";
    let (run, measurements) = two_cells([[2000.0, 1000.0, 4000.0], [999.0, 1000.0, 500.0]]);
    assert!(!report(&run, &measurements).page.contains(label));
    let mut with_levels = Measurements::new();
    for measurement in measurements.iter() {
        let mut measurement = measurement.clone();
        if measurement.engine == "leveldb" && measurement.cell == 1 {
            let line = r#"{"levels":[[2,4100000],[0,0],[31,60000000]]}"#;
            let read: DriverResult = serde_json::from_str(line).expect("a line");
            measurement.result.as_mut().expect("a result").levels = read.levels;
        }
        with_levels.add(measurement);
    }
    let page = report(&run, &with_levels).page;
    for words in [label, "L0 2, 4.10 MB; L2 31, 60 MB"] {
        let at = page.find(label).map(|at| &page[at..at + 300]);
        assert!(page.contains(words), "{words}: {at:?}");
    }
}

#[test]
fn device_reads_and_writes_are_shown_per_operation_where_there_are_any() {
    let (run, measurements) = two_cells([[2000.0, 1000.0, 4000.0], [999.0, 1000.0, 500.0]]);
    let changed = |cell: usize, change: fn(&mut DriverResult)| {
        let mut changed = Measurements::new();
        for measurement in measurements.iter() {
            let mut measurement = measurement.clone();
            let result = measurement.result.as_mut().expect("a result");
            (result.ops, result.bytes_written) = (1000, 150_000);
            if measurement.cell == cell && measurement.engine == "leveldb" {
                change(result);
            }
            if let Some(debt) = &mut measurement.debt {
                debt.bytes_written = 50_000;
            }
            changed.add(measurement);
        }
        report(&run, &changed)
    };
    let headers = |report: &Report| {
        let headers = report.packed[0]["headers"].as_array().expect("headers").clone();
        let names = headers.iter().map(|header| header[0].as_str().expect("a name").to_owned());
        names.filter(|name| name.ends_with("/op")).collect::<Vec<_>>()
    };
    // With what was written for debt, 200 bytes.
    let cached = changed(1, |_| {});
    assert_eq!(headers(&cached), ["ns/op", "Written/op"]);
    assert!(cached.page.contains("200 B") && !cached.plain.contains("device read"));
    let read = changed(1, |result| result.bytes_read = 8_600_000);
    assert_eq!(headers(&read), ["ns/op", "Written/op", "Device read/op"]);
    assert!(read.plain.contains("device read 8,600 B/op") && !read.plain.contains(" requests/op"));
    let counted = |result: &mut DriverResult| {
        (result.bytes_read, result.device_reads) = (8_600_000, Some(2_100));
        (result.device_writes, result.device_bytes_written) = (Some(500), Some(1_300_000));
    };
    let reads = changed(1, counted);
    let with_requests =
        ["ns/op", "Written/op", "Device read/op", "Reads/op", "Device written/op", "Writes/op"];
    assert_eq!(headers(&reads), with_requests);
    assert!(reads.plain.contains("device read 8,600 B in 2.10 requests/op"));
    assert!(!reads.plain.contains("device wrote"));
    let line =
        reads.csv.lines().find(|line| line.contains("readrandom,") && line.contains(",leveldb,"));
    let line = line.expect("LevelDB's reads");
    // Of reads, which put nothing off.
    assert!(line.ends_with(",150,8600,2.1,0.5,1300"), "{line}");
    let writes = changed(0, counted);
    assert!(writes.plain.contains("device wrote 1,300 B in 0.500 requests/op"));
}

#[test]
fn ratios_are_stated_as_they_are() {
    let (run, measurements) = two_cells([[2000.0, 1000.0, 4000.0], [999.0, 1000.0, 500.0]]);
    let report = report(&run, &measurements);
    for words in [
        // √(2.0 × 0.999), cut; Kyoto's faster writes promise less.
        "Terrace leads 1 of 2 cells; its geometric mean is 1.41× the best of the rest",
        "One round only",
        "Where Terrace is not the fastest",
        "Faster, but promising less: Kyoto TreeDB (0.50×).",
        "0.99×",
    ] {
        assert!(report.page.contains(words), "{words}");
    }
    let (run, measurements) = two_cells([[2000.0, 1000.0, 4000.0], [1000.0, 1000.0, 500.0]]);
    let report = self::report(&run, &measurements);
    assert!(report.page.contains("Terrace leads all 2 cells"));
    assert!(
        report
            .page
            .contains("There is no cell in which an engine is faster that promises as much.")
    );
}

/// Two sections of Terrace and LevelDB with one round; the second varies the first.
fn varied(rates: [[f64; 2]; 2]) -> (Run, Measurements) {
    let section = |id: &str, benchmark: &str| {
        let cells = vec![data::cell(benchmark, "Writes")];
        data::section(id, id, "Words.", Chart::Bars, serde_json::json!({}), cells)
    };
    let mut sections = vec![section("first", "fillseq"), section("varied", "fillseqbatch")];
    let benchmarks = [("fillseqbatch".to_owned(), "fillseq".to_owned())].into();
    sections[1].baseline = Some(Baseline { section: "first".to_owned(), benchmarks });
    for (section, value) in sections.iter_mut().zip([800.0, 1000.0]) {
        section.published = vec![Published {
            benchmark: section.cells[0].benchmark.clone(),
            engine: "LevelDB".to_owned(),
            value,
            relative_to: None,
            x: None,
            setting: None,
            note: None,
        }];
    }
    let engines = data::only(&["terrace", "leveldb"]);
    let run = Run { rounds: 1, ..data::run("small", "Small", "nowhere", sections, engines) };
    let mut measurements = Measurements::new();
    for measurement in data::measure(&run, 1, false).iter() {
        let mut measurement = measurement.clone();
        let section = usize::from(measurement.section == "varied");
        let engine = usize::from(measurement.engine == "leveldb");
        measurement.result.as_mut().expect("a result").ops_per_sec = rates[section][engine];
        measurements.add(measurement);
    }
    (run, measurements)
}

#[test]
fn a_section_that_varies_another_shows_each_rate_over_the_baselines() {
    let (run, measurements) = varied([[2000.0, 1000.0], [3000.0, 250.0]]);
    let whole = report(&run, &measurements);
    let chart = |report: &Report, name: &str| {
        let found = report.charts.iter().find(|(file, _)| file == name);
        found.expect(name).1.clone()
    };
    let (now, then) =
        (chart(&whole, "varied-fillseqbatch.svg"), chart(&whole, "varied-fillseqbatch-then.svg"));
    for words in ["3,000 · 1.50×", "250 · 0.25×", "op/s · × baseline"] {
        assert!(now.contains(words), "{words}: {now}");
    }
    for words in ["1,000 · 1.25×", "op/s · × baseline"] {
        assert!(then.contains(words), "{words}: {then}");
    }
    for words in ["baseline 1.50×", "baseline 0.25×", "; baseline: the rate ÷ the same"] {
        assert!(whole.plain.contains(words), "{words}");
    }
    for name in ["first-fillseq.svg", "first-fillseq-then.svg"] {
        assert!(!chart(&whole, name).contains("baseline"), "{name}");
    }
    let head: Vec<&str> = whole.csv.lines().next().expect("a head").split(',').collect();
    let place = head.iter().position(|name| *name == "baseline_ratio").expect("the column");
    let ratios: Vec<&str> = whole
        .csv
        .lines()
        .filter(|line| line.contains(",varied,"))
        .filter_map(|line| line.rsplit(',').nth(head.len() - 1 - place))
        .collect();
    assert_eq!(ratios, ["1.5", "0.25"]);

    // Of a part of the baseline the ratio is marked, of an incomplete database there is none.
    let changed = |change: fn(&mut Measurement)| {
        let mut changed = Measurements::new();
        for measurement in measurements.iter() {
            let mut measurement = measurement.clone();
            if measurement.section == "first" && measurement.engine == "terrace" {
                change(&mut measurement);
            }
            changed.add(measurement);
        }
        report(&run, &changed)
    };
    let cut = changed(|m| m.result.as_mut().expect("a result").truncated = true);
    let now = chart(&cut, "varied-fillseqbatch.svg");
    assert!(now.contains("3,000 · 1.50×*") && now.contains("* cut short, in no mean"), "{now}");
    assert!(cut.plain.contains("baseline 1.50×*") && cut.plain.contains("baseline 0.25×"));
    let partial = changed(|m| m.partial = true);
    assert!(!partial.plain.contains("1.50×") && partial.plain.contains("baseline 0.25×"));
}

#[test]
fn odd_values_are_drawn() {
    for odd in [0.0, 1e-300, 1e300, f64::MAX, f64::NAN, f64::INFINITY] {
        for others in [0.0, 1000.0, 1e300] {
            let (run, measurements) = two_cells([[odd, others, 3.0], [others, odd, odd]]);
            report(&run, &measurements);
        }
    }
    let run = suites::basho_2011();
    let mut odd = Measurements::new();
    for measurement in data::measure(&run, 1, false).iter() {
        let mut measurement = measurement.clone();
        measurement.series.truncate(40);
        for (at, interval) in measurement.series.iter_mut().enumerate() {
            interval.second = [0.0, -1.0, 1e300, f64::NAN, 5.0][at % 5];
            interval.ops = [0, u64::MAX, 1][at % 3];
            interval.max_us = [f64::INFINITY, 0.0, -1.0][at % 3];
        }
        odd.add(measurement);
    }
    report(&run, &odd);
}

#[test]
fn words_from_data_stay_words() {
    const HOSTILE: &str = "</title></script><script>alert(1)</script>\"'&{{ 7*7 }}{% raw %}";
    let mut run = suites::leveldb_2011();
    let measurements = {
        run.engines[2].id = "leveldb\"><b>".to_owned();
        for engine in &mut run.engines[2..6] {
            engine.title = HOSTILE.to_owned();
            engine.weaker = Some(HOSTILE.to_owned());
            engine.limits = vec![HOSTILE.to_owned()];
        }
        run.engines[6].missing = Some(HOSTILE.to_owned());
        run.engines[7].disqualified = Some(HOSTILE.to_owned());
        (run.title, run.suite, run.command) =
            (HOSTILE.to_owned(), HOSTILE.to_owned(), HOSTILE.to_owned());
        run.notes = vec![HOSTILE.to_owned()];
        let section = &mut run.sections[0];
        (section.id, section.title) = ("../<up>/".to_owned(), HOSTILE.to_owned());
        section.settings.insert(HOSTILE.to_owned(), HOSTILE.into());
        section.cells[0] = Cell { setting: Some(HOSTILE.to_owned()), ..section.cells[0].clone() };
        section.cells[1].x = Some(Axis { name: HOSTILE.to_owned(), value: f64::NAN });
        section.published[0].engine = HOSTILE.to_owned();
        data::measure(&run, 7, true)
    };
    let report = report(&run, &measurements);
    assert!(!report.page.contains("<script>alert"), "a script got through");
    assert!(report.page.contains("{{ 7*7 }}"), "a template got filled in");
    assert!(
        report.charts.iter().all(|(name, text)| !name.contains('/') && !text.contains("<script"))
    );
}

#[test]
fn unfinished_and_empty_runs_are_reported() {
    let mut run = suites::leveldb_2011();
    run.complete = false;
    let half: Measurements = data::measure(&run, 7, true)
        .iter()
        .filter(|m| m.cell == 0 && m.round == 0)
        .cloned()
        .collect();
    let unfinished = report(&run, &half);
    assert!(unfinished.page.contains("This run is not complete."));
    assert!(unfinished.page.contains("not run: the run ended before it was measured"));

    let nothing = report(&run, &Measurements::new());
    assert!(nothing.page.contains("No cell has a figure of both Terrace and another engine"));

    let alone = Run { engines: data::only(&["terrace"]), ..suites::leveldb_2011() };
    let alone = report(&alone, &data::measure(&alone, 7, false));
    assert!(
        alone.page.contains("nothing to compare")
            && alone.page.contains("no other engine to compare with")
    );

    let without = Run { engines: data::only(&["leveldb", "rocksdb"]), ..suites::modern() };
    let without = report(&without, &data::measure(&without, 7, false));
    assert!(without.page.contains("Terrace is not among the engines of this run"));

    let bare = Run { engines: Vec::new(), sections: Vec::new(), ..suites::modern() };
    report(&bare, &Measurements::new());
    let no_cells =
        Run { sections: suites::modern().sections, engines: Vec::new(), ..suites::modern() };
    report(&no_cells, &Measurements::new());
}

#[test]
fn engines_of_one_title_are_told_apart() {
    let mut run = suites::wiredtiger_2012();
    run.engines[1].title = "LevelDB".to_owned();
    let report = report(&run, &data::measure(&run, 7, true));
    assert!(
        report.page.contains(">LevelDB (dropin)<") && report.page.contains(">LevelDB (leveldb)<")
    );
    let own = data::measure(&run, 7, true);
    let rate = |engine| own.rate(run.figure, "load", 0, engine).expect("a rate").middle;
    // The source's ratios refer to the real one.
    let ratio = (rate("terrace") / rate("leveldb") * 100.0).floor() / 100.0;
    assert!(report.page.contains(&format!(" · {ratio:.2}×</text>")), "{ratio}");
}

#[test]
fn more_engines_than_colours() {
    let mut run = suites::modern();
    let more = (0..40).map(|n| Engine {
        id: format!("more-{n}"),
        title: format!("More {n}"),
        ..run.engines[2].clone()
    });
    run.engines.extend(more.collect::<Vec<_>>());
    run.rounds = 1;
    report(&run, &data::measure(&run, 3, false));
}

#[test]
fn several_suites_share_a_page() {
    let dir = TempDir::new().expect("a directory");
    let source = |run: Run, names: &[&str]| {
        let paths: Vec<_> = names.iter().map(|name| dir.path().join(name)).collect();
        paths.iter().for_each(|path| fs::create_dir_all(path).expect("a directory"));
        Source { measurements: data::measure(&run, 1, true), run, paths }
    };
    let sources =
        [source(suites::modern(), &["a", "b c"]), source(suites::configurations(), &["d"])];
    let out = dir.path().join("out");
    fs::create_dir(&out).expect("a directory");
    report::write_together(&sources, &out).expect("a report");
    let together = read(&out);
    check(&together);
    let raw = fs::read_to_string(out.join("report.html")).expect("a report");
    assert_eq!(raw.matches("<script type=\"text/plain\" class=\"article\">").count(), 2);
    assert!(!raw.contains("<!--pack") && raw.contains("<a href=\"../b%20c/report.html\">"));
    assert_eq!(together.page.matches("<article class=\"suite\"").count(), 2);
    assert!(together.page.contains("<a href=\"#configurations\">configurations</a>"));
    for link in ["\"../a/run.json\"", "\"../b%20c/results.json\"", "\"../d/measurements.jsonl\""] {
        assert!(together.page.contains(link), "{link}");
    }
    assert!(together.charts.iter().any(|(name, _)| name == "configurations-summary.svg"));
    assert!(report::write_together(&[], &out).is_err());
}

#[test]
fn a_run_read_back_gives_the_same_report() {
    let dir = TempDir::new().expect("a directory");
    let run = suites::configurations();
    let measurements = data::measure(&run, 5, true);
    let directory = Directory::new(dir.path());
    directory.write_run(&run).expect("a run");
    let mut appender = directory.appender().expect("an appender");
    measurements.iter().for_each(|measurement| appender.append(measurement).expect("a line"));
    let (read_run, read_measurements) = directory.read().expect("a run");
    assert_eq!(report(&run, &measurements).page, report(&read_run, &read_measurements).page);
}

#[test]
fn an_older_report_is_replaced() {
    let dir = TempDir::new().expect("a directory");
    let run = suites::leveldb_2011();
    report::write(&run, &data::measure(&run, 7, true), dir.path()).expect("a report");
    fs::write(dir.path().join("charts/notes.txt"), "mine").expect("a file");
    let run = Run { sections: run.sections[..1].to_vec(), ..run };
    report::write(&run, &data::measure(&run, 7, true), dir.path()).expect("a report");
    let stale = dir.path().join("charts/2A-large-1.svg");
    assert!(!stale.exists());
    assert!(dir.path().join("charts/notes.txt").exists());
}

#[test]
fn a_directory_that_cannot_be_written_is_named() {
    let dir = TempDir::new().expect("a directory");
    let file = dir.path().join("file");
    fs::write(&file, "").expect("a file");
    let run = suites::configurations();
    let error =
        report::write(&run, &Measurements::new(), &file).expect_err("a file is no directory");
    assert!(error.contains("file"), "{error}");
}

#[test]
fn names_hold_when_cells_come_and_go() {
    let mut run = suites::leveldb_2011();
    let before = report(&run, &data::measure(&run, 7, true));
    run.sections[0].cells.remove(0);
    let after = report(&run, &data::measure(&run, 7, true));
    let name = "leveldb-2011-1-baseline-fillseq";
    for text in [format!("id=\"{name}\""), format!("href=\"#{name}\"")] {
        assert!(before.page.contains(&text) && after.page.contains(&text), "{text}");
    }
    assert!(before.page.contains("id=\"leveldb-2011-engine-rocksdb\""));
    let files =
        |report: &Report| report.charts.iter().map(|(name, _)| name.clone()).collect::<Vec<_>>();
    let (before, after) = (files(&before), files(&after));
    assert!(after.iter().all(|name| before.contains(name)), "{after:?}");
    for name in
        ["1-baseline-fillseq.svg", "1-baseline-fillseq-then.svg", "1-baseline-fillseq-latency.svg"]
    {
        assert!(after.iter().any(|file| file == name), "{name}: {after:?}");
    }
}

#[test]
fn what_a_reader_should_know_stands_on_top() {
    let run = suites::leveldb_2011();
    let report = report(&run, &data::measure(&run, 7, true));
    let (top, _) = report.page.split_once("<dl class=\"facts\">").expect("facts");
    for words in [
        "<dt>Cut short</dt>",
        "InnoDB 6",
        "<dt>Spread</dt>",
        "scatter over the rounds by more than 10%",
        "<dt>Promise less †</dt>",
        "<dt>No figures</dt>",
        "With the time for it on both sides",
    ] {
        assert!(top.contains(words), "{words}");
    }
    // Three rounds are three dots.
    let chart = report.charts.iter().find(|(name, _)| name == "1-baseline-fillseq.svg");
    let dots = chart.expect("a chart").1.split("class=\"rounds\" d=\"").nth(1).expect("dots");
    assert_eq!(dots.split('"').next().expect("a path").matches('M').count(), 3);
}

#[test]
fn debt_counts_on_both_sides() {
    let (run, measurements) = two_cells([[2000.0, 1000.0, 1.0], [4000.0, 500.0, 1.0]]);
    let mut changed = Measurements::new();
    for measurement in measurements.iter() {
        let mut measurement = measurement.clone();
        let seconds = if measurement.engine == "terrace" { 3.0 } else { 0.0 };
        if let Some(debt) = &mut measurement.debt {
            debt.seconds = seconds;
        }
        let result = measurement.result.as_mut().expect("a result");
        (result.ops, result.seconds) = (2000, 2000.0 / result.ops_per_sec);
        changed.add(measurement);
    }
    let page = report(&run, &changed).page;
    for words in [
        // 2,000 operations in 1 s and 3 s of debt, beside 2 s without.
        "Terrace’s mean over the one cell that writes is 0.50× the best of the rest, instead of 2.00×",
        "0.50× the best of the rest, LevelDB, with the time for write debt on both sides",
        "<b>debt 0.50×</b>",
    ] {
        assert!(page.contains(words), "{words}");
    }
}

#[test]
fn an_open_loop_is_compared_by_latency() {
    let (mut run, mut measurements) = two_cells([[2000.0, 1000.0, 1.0], [4000.0, 500.0, 1.0]]);
    let closed = report(&run, &measurements);
    assert!(closed.page.contains("Terrace leads all 2 cells"));
    run.sections[0].cells[0].paced = true;
    let p99 = |engine: &str| if engine == "terrace" { 120.0 } else { 3400.0 };
    measurements = measurements
        .iter()
        .cloned()
        .map(|mut measurement| {
            let result = measurement.result.as_mut().expect("a result");
            result.p99_us = p99(&measurement.engine);
            measurement
        })
        .collect();
    let open = report(&run, &measurements);
    for words in [
        // Equal rates are no ratio, and in no mean.
        "Terrace leads all 1 cells; its geometric mean is 8.00×",
        "One cell has nothing to compare.",
        "p99 is compared, less is better. Terrace: 120 µs; the best of the rest: 3.40 ms, LevelDB",
        "p99, less is better",
    ] {
        assert!(open.page.contains(words), "{words}");
    }
    let source = Source { run, measurements, paths: Vec::new() };
    let brief = report::markdown(&[source], &[]).expect("a page");
    assert!(!brief.contains("Sequential writes") && brief.contains("Random reads"), "{brief}");
}

#[test]
fn what_was_cut_short_is_hollow_and_in_no_mean() {
    let (run, measurements) = two_cells([[2000.0, 1000.0, 1.0], [4000.0, 500.0, 1.0]]);
    let cut = |engine: &str| {
        let mut changed = Measurements::new();
        for measurement in measurements.iter() {
            let mut measurement = measurement.clone();
            let result = measurement.result.as_mut().expect("a result");
            result.truncated = measurement.cell == 0 && measurement.engine == engine;
            changed.add(measurement);
        }
        report(&run, &changed)
    };
    let of = |report: &Report| {
        let summary = report.charts.iter().find(|(name, _)| name == "summary.svg");
        summary.expect("a chart").1.matches("\"hollow\"").count()
    };
    let whole = report(&run, &measurements);
    assert!(whole.page.contains("its geometric mean is 4.00×"), "√(2 × 8)");
    assert_eq!(of(&whole), 0);
    // LevelDB's cell is left out, in its row and in that of the best; Terrace's in every row.
    let theirs = cut("leveldb");
    assert!(theirs.page.contains("its geometric mean is 8.00×"));
    assert!(theirs.page.contains("One cell was cut short and counts in nothing."));
    assert_eq!((of(&theirs), of(&cut("terrace"))), (2, 3));
}

/// A round that was cut short did other work than the others, which are most.
#[test]
fn a_round_that_was_cut_short_does_not_count_beside_whole_ones() {
    let (mut run, measurements) = two_cells([[2000.0, 1000.0, 1.0], [4000.0, 500.0, 1.0]]);
    run.rounds = 3;
    let with_cut = |cut_rounds: u32| {
        let mut rounds = Measurements::new();
        for measurement in measurements.iter() {
            for round in 0..3 {
                let mut of_round = measurement.clone();
                of_round.round = round;
                if round < cut_rounds && of_round.cell == 0 && of_round.engine == "leveldb" {
                    let result = of_round.result.as_mut().expect("a result");
                    (result.truncated, result.ops_per_sec) = (true, 10.0 * result.ops_per_sec);
                }
                rounds.add(of_round);
            }
        }
        rounds
    };
    let one = with_cut(1);
    let page = report(&run, &one).page;
    assert!(page.contains("its geometric mean is 4.00×"), "√(2 × 8)");
    assert!(!page.contains("was cut short and counts in nothing"));
    assert_eq!(one.ratios("one", 0, "terrace", "leveldb"), [2.0, 2.0]);
    // Most were cut short: the cell is.
    let two = with_cut(2);
    assert!(report(&run, &two).page.contains("One cell was cut short and counts in nothing."));
    assert_eq!(two.ratios("one", 0, "terrace", "leveldb").len(), 3);
}
