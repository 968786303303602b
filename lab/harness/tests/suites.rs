//! The suites of the lab, as they are planned. Nothing is run here.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use lab_harness::engine::discover;
use lab_harness::run::{Chart, Figure};
use lab_harness::suite::{Form, Plan, Role, Scale, Suite, load_all};

fn suites() -> Vec<Suite> {
    load_all(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../suites")).expect("suites")
}

fn suite(name: &str) -> Suite {
    suites()
        .into_iter()
        .find(|suite| suite.name == name)
        .unwrap_or_else(|| panic!("no suite {name}"))
}

fn full(suite: &Suite) -> Plan {
    Plan::of(suite, &Form::full(suite), &Scale::NONE, &[]).expect("a plan")
}

fn flags(plan: &Plan, section: &str, cell: usize, engine: &str, num: u64) -> Vec<String> {
    let place = plan.sections.iter().position(|one| one.id == section).expect("a section");
    let role = Role::Cell { section: place, cell };
    let mut steps = plan.groups.iter().flat_map(|group| &group.steps);
    steps.find(|step| step.role == role).expect("a step").settings(engine).flags(num)
}

#[test]
fn all_suites_can_be_planned_in_every_form() {
    let suites = suites();
    let names: Vec<&str> = suites.iter().map(|suite| suite.name.as_str()).collect();
    let expected = [
        "against-all",
        "against-leveldb",
        "bangdb-2012",
        "basho-2011",
        "configurations",
        "larger-than-memory",
        "leveldb-2011",
        "modern",
        "scale",
        "wiredtiger-2012",
    ];
    assert_eq!(names, expected);
    for suite in &suites {
        for form in [Form::full(suite), Form::short(suite)] {
            let plan = Plan::of(suite, &form, &Scale { memory: 0.3 }, &[]).expect(&suite.name);
            // Every cell is measured at one place, whatever its passes.
            let mut roles: Vec<Role> =
                plan.groups.iter().flat_map(|group| &group.steps).map(|step| step.role).collect();
            roles.dedup();
            let cells: usize = plan.sections.iter().map(|section| section.cells.len()).sum();
            assert_eq!(
                roles.iter().filter(|role| matches!(role, Role::Cell { .. })).count(),
                cells,
                "{}",
                suite.name
            );
            for section in &plan.sections {
                let unique: BTreeSet<String> =
                    section.cells.iter().map(|cell| format!("{cell:?}")).collect();
                assert_eq!(unique.len(), section.cells.len(), "{} {}", suite.name, section.id);
                assert!(
                    section.chart != Chart::Threads
                        || section.cells.iter().all(|cell| cell.x.is_some())
                );
                assert!(
                    section.chart != Chart::Settings
                        || section.cells.iter().all(|cell| cell.setting.is_some())
                );
            }
        }
        // Any section can be run alone.
        for section in &full(suite).sections {
            let only = [section.id.clone()];
            let plan = Plan::of(suite, &Form::full(suite), &Scale::NONE, &only).expect(&suite.name);
            assert_eq!((plan.sections.len(), &plan.sections[0]), (1, section));
        }
    }
}

/// `make bench-all` has two hours, builds of the peers included.
#[test]
fn the_short_forms_leave_room_for_builds_in_two_hours() {
    let all = suites();
    let run_by_it = all.iter().filter(|suite| !suite.name.starts_with("against-"));
    let minutes: f64 = run_by_it.map(|suite| suite.short.budget.expect(&suite.name)).sum();
    assert!(minutes <= 106.0, "{minutes}");
}

#[test]
fn the_comparison_of_2011() {
    let plan = full(&suite("leveldb-2011"));
    let published: usize = plan.sections.iter().map(|section| section.published.len()).sum();
    // 3 engines in 18 cells; TreeDB has no batches.
    assert_eq!(published, 3 * 18 - 2);
    let baseline = flags(&plan, "1-baseline", 1, "leveldb", 1_000_000);
    assert_eq!(
        baseline[..4],
        ["--num=1000000", "--reads=1000000", "--cache_size=2097152", "--write_buffer_size=2097152"]
    );
    // As on the source's page, all but the baseline and large values have a ratio to the baseline.
    let with_baseline = plan.sections.iter().filter(|section| section.baseline.is_some());
    let with_baseline: Vec<&str> = with_baseline.map(|section| section.id.as_str()).collect();
    let ids: Vec<&str> = plan.sections.iter().map(|section| section.id.as_str()).collect();
    assert_eq!(with_baseline, ids[2..]);
    // Read on the baseline's database, with the section's own memory.
    let larger = flags(&plan, "3a-larger-caches", 1, "leveldb", 1_000_000);
    assert!(larger.contains(&"--cache_size=125829120".to_owned()), "{larger:?}");
    assert!(
        flags(&plan, "3b-reads-no-compression", 0, "leveldb", 1)
            .contains(&"--compression=none".to_owned())
    );
    // The source's SQLite and TreeDB had pages of 1 KB, and so has every step that works on their
    // databases.
    let pages = |engine: &str| {
        let steps = plan.groups.iter().flat_map(|group| &group.steps);
        steps.filter(|step| step.settings(engine).number("block_size") == Some(1024.0)).count()
    };
    let all: usize = plan.groups.iter().map(|group| group.steps.len()).sum();
    assert_eq!([pages("sqlite"), pages("kyoto"), pages("leveldb")], [all, all, 0]);
    // A step that makes a database for other cells has more time.
    let patient = |group: usize, step: usize| plan.groups[group].steps[step].patient;
    assert!(!patient(0, 0) && patient(1, 0) && !patient(1, 2));
}

#[test]
fn a_baseline_is_another_section_with_the_benchmarks_that_are_named() {
    for (baseline, problem) in [
        ("{ section = \"none\" }", "the baseline \"none\" is no other section"),
        ("{ section = \"2b-batches\" }", "the baseline \"2b-batches\" is no other section"),
        (
            "{ section = \"1-baseline\", benchmarks = { fillseqbatch = \"fillsync\" } }",
            "baseline: 1-baseline has no fillsync",
        ),
        (
            "{ section = \"1-baseline\", benchmarks = { fillsync = \"fillseq\" } }",
            "baseline: 2b-batches has no fillsync",
        ),
    ] {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../suites/leveldb-2011.toml");
        let text = fs::read_to_string(path).expect("the suite");
        let start = "baseline = { section = \"1-baseline\", benchmarks = { fillseqbatch";
        let line = text.lines().find(|line| line.starts_with(start)).expect("a baseline");
        let text = text.replace(line, &format!("baseline = {baseline}"));
        let error = lab_harness::suite::parse("leveldb-2011", &text).expect_err(problem);
        assert!(error.contains(&format!("section 2b-batches: {problem}")), "{error}");
    }
}

#[test]
fn five_runs_without_the_extremes() {
    let suite = suite("wiredtiger-2012");
    assert_eq!((suite.rounds, suite.figure), (5, Figure::MeanWithoutExtremes));
    assert!(
        full(&suite)
            .sections
            .iter()
            .all(|section| section.published.iter().all(|p| p.relative_to.is_some()))
    );
}

#[test]
fn memory_and_data_shrink_together() {
    let suite = suite("bangdb-2012");
    let plan = Plan::of(&suite, &Form::full(&suite), &Scale { memory: 0.5 }, &[]).expect("a plan");
    let overflow = flags(&plan, "b-overflow", 6, "leveldb", suite.num);
    for flag in
        ["--num=6000000", "--cache_size=536870912", "--write_buffer_size=268435456", "--threads=1"]
    {
        assert!(overflow.contains(&flag.to_owned()), "{flag}: {overflow:?}");
    }
    assert!(flags(&plan, "b-overflow", 6, "bdb", suite.num).contains(&"--threads=4".to_owned()));
    assert!(plan.notes.iter().any(|note| note.contains("are 50% of")), "{:?}", plan.notes);
    // So do entries: of a tenth of them a tenth of the memory.
    let tenth = Form { num: suite.num / 10, ..Form::full(&suite) };
    let plan = Plan::of(&suite, &tenth, &Scale::NONE, &[]).expect("a plan");
    let overflow = flags(&plan, "b-overflow", 6, "leveldb", tenth.num);
    assert!(
        overflow.contains(&"--num=1200000".to_owned())
            && overflow.contains(&"--cache_size=107374182".to_owned())
    );
}

#[test]
fn threads_are_measured_with_as_few_and_as_many_operations_as_in_the_source() {
    let suite = suite("bangdb-2012");
    let plan = full(&suite);
    for (section, entries) in [("c-threads-tenth", 100_000), ("c-threads", 1_000_000)] {
        for (cell, threads) in [(0, 1), (11, 10)] {
            let flags = flags(&plan, section, cell, "leveldb", suite.num);
            for flag in [format!("--num={entries}"), format!("--threads={threads}")] {
                assert!(flags.contains(&flag), "{section}: {flag}: {flags:?}");
            }
        }
    }
}

#[test]
fn steady_load_runs_for_its_time() {
    let suite = suite("basho-2011");
    let form = Form { duration: 600.0, num: 10_000_000, ..Form::full(&suite) };
    let plan = Plan::of(&suite, &form, &Scale::NONE, &[]).expect("a plan");
    let reads = flags(&plan, "2-reads", 0, "innodb", form.num);
    for flag in ["--num=10000000", "--duration=600.0", "--interval=1.0", "--threads=4"] {
        assert!(reads.contains(&flag.to_owned()), "{flag}: {reads:?}");
    }
    // So it is in a full hour: a stall of one second would not be seen in longer intervals.
    let plan = full(&suite);
    assert!(flags(&plan, "2-reads", 0, "innodb", 1).contains(&"--interval=1.0".to_owned()));
}

#[test]
fn settings_are_measured_with_ten_times_the_entries_as_well() {
    let suite = suite("configurations");
    let plan = full(&suite);
    let cells = |id: &str| -> BTreeSet<(Option<&str>, &str)> {
        let section = plan.sections.iter().find(|section| section.id == id).expect("a section");
        let cells = section.cells.iter();
        cells.map(|cell| (cell.setting.as_deref(), cell.benchmark.as_str())).collect()
    };
    assert_eq!(cells("settings-tenfold"), cells("settings"));
}

#[test]
fn steady_load_is_measured_at_a_fixed_rate_as_well() {
    let suite = suite("basho-2011");
    let plan = full(&suite);
    for section in &plan.sections {
        let fixed = section.id == "5-open-loop";
        assert!(section.cells.iter().all(|cell| cell.paced == fixed), "{}", section.id);
    }
    let section = plan.sections.last().expect("a section");
    let cells: BTreeSet<&str> = section.cells.iter().map(|cell| cell.benchmark.as_str()).collect();
    assert_eq!(cells.into_iter().collect::<Vec<_>>(), ["fillseq", "mixedpareto", "readpareto"]);
    // On the same database, as the closed loop before it.
    let closed = flags(&plan, "2-reads", 0, "innodb", suite.num);
    let mut open = flags(&plan, "5-open-loop", 0, "innodb", suite.num);
    open.retain(|flag| flag != "--rate=20000");
    assert_eq!(open, closed);
    let load = flags(&plan, "5-open-loop", 2, "innodb", suite.num);
    for flag in ["--num=10000000", "--threads=1", "--rate=20000", "--interval=1.0"] {
        assert!(load.contains(&flag.to_owned()), "{flag}: {load:?}");
    }
}

#[test]
fn against_leveldb_has_every_workload_with_three_amounts_of_memory() {
    let plan = full(&suite("against-leveldb"));
    for section in plan.sections.iter().filter(|section| section.id != "sizes") {
        let cells: BTreeSet<&str> =
            section.cells.iter().map(|cell| cell.benchmark.as_str()).collect();
        assert_eq!((section.cells.len(), cells.len()), (19, 19), "{}", section.id);
    }
}

#[test]
fn every_size_of_values_has_as_many_bytes() {
    let suite = suite("against-leveldb");
    let plan = full(&suite);
    let section = plan.sections.iter().find(|section| section.id == "sizes").expect("a section");
    let number = |flags: &[String], name: &str| -> f64 {
        let of = |flag: &String| flag.strip_prefix(name)?.parse().ok();
        flags.iter().find_map(of).expect("a number")
    };
    let mut seen = BTreeSet::new();
    for (at, cell) in section.cells.iter().enumerate() {
        let flags = flags(&plan, "sizes", at, "leveldb", suite.num);
        let size = number(&flags, "--value_size=");
        let bytes = number(&flags, "--num=") * (16.0 + size);
        assert!((100e6..120e6).contains(&bytes), "{}: {flags:?}", cell.benchmark);
        let x = cell.x.as_ref().expect("a size");
        assert_eq!((x.name.as_str(), x.value), ("bytes", size));
        seen.insert((cell.benchmark.clone(), size as u64));
    }
    let benchmarks = ["deleterandom", "fillrandom", "overwrite", "readrandom"];
    let expected = benchmarks
        .iter()
        .flat_map(|name| [100, 1000, 10_000, 100_000].map(|size| ((*name).to_owned(), size)));
    assert_eq!(seen, expected.collect());
}

/// A sweep's name and its points' values go together.
#[test]
fn a_point_of_a_sweep_has_a_setting_or_a_value() {
    let text = fs::read_to_string(
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../suites/against-leveldb.toml"),
    )
    .expect("read");
    for (found, wrong) in [
        ("sweep.name = \"value_size\"\n", ""),
        ("{ value = 100 },", "{ setting = \"100 B\" },"),
        ("{ value = 100 },", "{ value = 100, setting = \"100 B\" },"),
    ] {
        let suite: Suite = toml::from_str(&text.replace(found, wrong)).expect("TOML");
        let problem = Plan::of(&suite, &Form::full(&suite), &Scale::NONE, &[]).expect_err(wrong);
        assert!(problem.contains("sizes") && problem.contains("a point has"), "{problem}");
    }
}

/// Of a database that one thread filled at random, with values of one size and as many entries.
#[test]
fn readhit_reads_what_its_group_has_put() {
    let mut with_it = BTreeSet::new();
    for suite in suites() {
        for group in full(&suite).groups {
            let of = |name: &str| group.steps.iter().find(|step| step.workload.name == name);
            let Some(read) = of("readhit") else { continue };
            let (fill, num) = (of("fillrandom").expect(&suite.name), suite.num);
            assert_eq!(group.steps[0].workload.name, "fillrandom", "{}", suite.name);
            for engine in ["terrace", "sqlite"] {
                let (read, fill) = (read.settings(engine), fill.settings(engine));
                assert_eq!(read.entries(num), fill.entries(num), "{}", suite.name);
                assert!(fill.number("threads").unwrap_or(1.0) <= 1.0, "{}", suite.name);
                assert!(fill.number("value_size_max").is_none(), "{}", suite.name);
            }
            with_it.insert(suite.name.clone());
        }
    }
    let expected = ["against-all", "against-leveldb", "leveldb-2011"];
    assert_eq!(with_it.into_iter().collect::<Vec<_>>(), expected);
}

#[test]
fn an_open_loop_is_paced_and_its_database_is_not() {
    let suite = suite("modern");
    let plan = full(&suite);
    let section = plan.sections.iter().find(|s| s.id == "open-loop").expect("a section");
    assert!(section.cells.iter().all(|cell| cell.paced && cell.unit == "p99"));
    let others = plan.sections.iter().filter(|section| section.id != "open-loop");
    assert!(others.flat_map(|section| &section.cells).all(|cell| !cell.paced));
    let reads = flags(&plan, "open-loop", 0, "terrace", 1_000_000);
    for flag in ["--num=200000", "--reads=200000", "--rate=20000"] {
        assert!(reads.iter().any(|known| known == flag), "{flag}: {reads:?}");
    }
    let prepared =
        plan.groups.iter().flat_map(|group| &group.steps).filter(|step| step.role == Role::Prepare);
    for step in prepared {
        let flags = step.settings("terrace").flags(1_000_000);
        assert!(flags.iter().all(|flag| !flag.starts_with("--rate")), "{flags:?}");
    }
}

#[test]
fn readers_stand_beside_a_writer_of_three_paces() {
    let suite = suite("modern");
    let plan = full(&suite);
    let section = plan.sections.iter().find(|s| s.id == "mixed").expect("a section");
    let cells = section.cells.iter().enumerate();
    let beside = cells.filter(|(_, cell)| cell.benchmark == "readwhilewriting");
    let paces: Vec<Option<String>> = beside
        .map(|(at, _)| {
            let flags = flags(&plan, "mixed", at, "terrace", suite.num);
            flags.iter().find_map(|flag| Some(flag.strip_prefix("--write_rate=")?.to_owned()))
        })
        .collect();
    let expected = [None, Some("20000"), Some("100000"), Some("250000")];
    assert_eq!(paces, expected.map(|pace| pace.map(str::to_owned)));
}

#[test]
fn the_first_scan_comes_before_all_other_reads() {
    let suite = suite("modern");
    let plan = full(&suite);
    let place = plan.sections.iter().position(|s| s.id == "first-scan").expect("a section");
    let is_first = |role: Role| matches!(role, Role::Cell { section, .. } if section == place);
    let mut groups = plan.groups.iter();
    let group = groups.find(|group| group.steps.iter().any(|step| is_first(step.role)));
    let steps = &group.expect("a group").steps[..5];
    let names: Vec<&str> = steps.iter().map(|step| step.workload.name).collect();
    assert_eq!(names, ["fillrandom", "waitcompact", "readseq", "readseq", "readrandom"]);
    // What makes a database has a process of its own, and so has what has other flags.
    let cache = |step: usize| steps[step].settings("lmdb").number("cache_size");
    assert!(steps[0].makes_database() && is_first(steps[2].role) && is_first(steps[3].role));
    assert!(cache(2) > cache(4) && cache(2) > Some(116.0 * suite.num as f64));
}

#[test]
fn short_scans_begin_with_a_database_of_their_own() {
    let suite = suite("modern");
    let plan = full(&suite);
    let steps = |name| {
        plan.groups.iter().find(|group| group.steps.iter().any(|step| step.workload.name == name))
    };
    let group = steps("ycsbe").expect("a group");
    let names: Vec<&str> = group.steps.iter().map(|step| step.workload.name).collect();
    assert_eq!(names, ["fillseq", "waitcompact", "ycsbe", "waitcompact"]);
    assert!(
        group.steps.iter().all(|step| step.settings("terrace").entries(suite.num) == suite.num / 5)
    );
}

#[test]
fn a_multiple_of_reads_is_for_what_reads() {
    let suite =
        fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../suites/modern.toml"))
            .expect("read");
    let text = suite.replace(
        "cells = [\"ycsbe\"]",
        "cells = [{ benchmark = \"ycsbe\", settings = { reads_times = 0.2 } }]",
    );
    let suite: Suite = toml::from_str(&text).expect("TOML");
    let problem = Plan::of(&suite, &Form::full(&suite), &Scale::NONE, &[])
        .expect_err("a setting without a meaning");
    assert!(problem.contains("ycsbe") && problem.contains("reads_times"), "{problem}");
}

#[test]
fn the_default_filters_of_engines_are_noted() {
    for suite in suites() {
        let asked =
            full(&suite).sections.iter().all(|section| section.settings.contains_key("bloom_bits"));
        let said = suite
            .notes
            .iter()
            .any(|note| note.contains("Terrace") && note.contains("10 bits a key"));
        assert!(asked || said, "{}", suite.name);
    }
}

#[test]
fn the_page_about_fairness_names_every_column() {
    let lab = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let page = fs::read_to_string(lab.join("README.md")).expect("read");
    let (_, fairness) = page.split_once("## Fairness").expect("a section");
    let fairness = fairness.split("\n## ").next().unwrap_or_default();
    for manifest in discover(&lab).expect("engines") {
        for id in manifest.columns().into_iter().map(|column| column.id) {
            assert!(fairness.contains(&format!("`{id}`")), "{id} is not in the page");
        }
    }
}

#[test]
fn data_fit_the_buffers_where_they_should() {
    let suite = suite("bangdb-2012");
    let plan = full(&suite);
    let largest = |section: &str| {
        let section = plan.sections.iter().find(|one| one.id == section).expect("a section");
        let entries = section
            .cells
            .iter()
            .filter_map(|cell| cell.x.as_ref())
            .map(|x| x.value)
            .fold(0.0, f64::max);
        // Keys of 24 bytes, values of 250 in the mean; of random keys 63 % are different ones.
        entries * 274.0 * 0.632
    };
    let gigabyte = f64::from(1 << 30);
    assert!(largest("a-fits") < gigabyte && largest("b-overflow") > 1.5 * gigabyte);
    let flags = flags(&plan, "a-fits", 0, "bdb", suite.num);
    for flag in ["--cache_size=1073741824", "--write_buffer_size=0"] {
        assert!(flags.contains(&flag.to_owned()), "{flags:?}");
    }
}

#[test]
fn settings_for_an_engine_lie_over_each_other() {
    let suite: Suite = toml::from_str(
        r#"
title = "t"
source = "s"
num = 10
rounds = 1
time_limit = 1
short = { num = 1, rounds = 1, time_limit = 1 }
for_engine = { a = { block_size = 1, threads = 1, batch = 1, bloom_bits = 1 } }
[[section]]
id = "one"
title = "t"
description = "d"
chart = "bars"
settings = { bloom_bits = 5 }
for_engine = { a = { block_size = 2, threads = 2, batch = 2 }, b = { threads = 7 } }
[[section.group]]
for_engine = { a = { block_size = 3, threads = 3 } }
prepare = ["fillseq"]
cells = [{ benchmark = "readseq", for_engine = { a = { block_size = 4 } } }, "readrandom"]
"#,
    )
    .expect("TOML");
    let plan = full(&suite);
    let of = |step: usize, engine: &str| {
        let settings = plan.groups[0].steps[step].settings(engine);
        ["block_size", "threads", "batch", "bloom_bits"]
            .map(|name| settings.number(name).unwrap_or(0.0))
    };
    assert_eq!(of(0, "a"), [3.0, 3.0, 2.0, 1.0]);
    assert_eq!(of(1, "a"), [4.0, 3.0, 2.0, 1.0]);
    assert_eq!(of(2, "a"), [3.0, 3.0, 2.0, 1.0]);
    assert_eq!(of(1, "b"), [0.0, 7.0, 0.0, 5.0]);
    assert_eq!(of(1, "c"), [0.0, 0.0, 0.0, 5.0]);
}
