//! `lab compare`: intervals, verdicts, machines.

use lab_harness::compare::{Comparison, Verdict, compare};
use lab_harness::run::{Chart, Costs, Measurements, Run};

use crate::data;

const COSTS: Costs =
    Costs { write_ns: 900.0, page_fault_ns: 500.0, fdatasync_us: 700.0, memory_ns: 90.0 };

/// A run of two engines and two cells with these rates of Terrace in the first, round by round;
/// LevelDB's are a thousand everywhere.
fn run(rates: &[f64]) -> (Run, Measurements) {
    let cells =
        vec![data::cell("fillseq", "Sequential writes"), data::cell("readrandom", "Random reads")];
    let section = data::section("one", "One", "Words.", Chart::Bars, serde_json::json!({}), cells);
    let engines = data::only(&["terrace", "leveldb"]);
    let mut run = data::run("small", "Small", "nowhere", vec![section], engines);
    run.rounds = u32::try_from(rates.len()).expect("few rounds");
    run.machine.costs = Some(COSTS);
    let measured = data::measure(&run, 1, false);
    let measurements = measured.iter().cloned().map(|mut measurement| {
        let is_first = measurement.engine == "terrace" && measurement.cell == 0;
        let rate = if is_first { rates[measurement.round as usize] } else { 1000.0 };
        measurement.result.as_mut().expect("a result").ops_per_sec = rate;
        measurement
    });
    let measurements = measurements.collect();
    (run, measurements)
}

fn of<'a>(
    comparison: &'a Comparison,
    engine: &str,
    cell: usize,
) -> &'a lab_harness::compare::Compared {
    let found = comparison.cells.iter().find(|c| c.engine == engine && c.cell == cell);
    found.expect("compared")
}

#[test]
fn an_interval_tells_a_difference_from_chance() {
    let slow = run(&[96.0, 97.0, 98.0, 100.0, 102.0, 103.0, 104.0]);
    let fast = run(&[144.0, 146.0, 148.0, 150.0, 152.0, 154.0, 156.0]);
    let wild = run(&[60.0, 70.0, 90.0, 110.0, 120.0, 130.0, 300.0]);
    let comparison = compare(&slow, &fast).expect("comparable");
    let cell = of(&comparison, "terrace", 0);
    assert_eq!((cell.ratio, cell.interval), (1.5, Some((144.0 / 104.0, 156.0 / 96.0))));
    assert_eq!(
        (cell.verdict, cell.distinct, cell.terrace.is_none()),
        (Verdict::Faster, true, true)
    );
    // The other engine is as fast as it was, so that Terrace gains on it within each round.
    let other = of(&comparison, "leveldb", 0);
    let change = other.terrace.expect("a ratio to Terrace");
    assert_eq!((change.before, change.after, change.change), (0.1, 0.15, 0.15 / 0.1));
    assert_eq!((other.ratio, other.verdict), (1.0, Verdict::Unclear));
    assert_eq!(comparison.engines[0].faster, 1);
    assert!(comparison.text().contains("1.385 to 1.625"), "{}", comparison.text());

    let back = compare(&fast, &slow).expect("comparable");
    assert_eq!(of(&back, "terrace", 0).verdict, Verdict::Slower);
    let unclear = compare(&slow, &wild).expect("comparable");
    assert_eq!(of(&unclear, "terrace", 0).verdict, Verdict::Unclear);

    // Six rounds are too few for it, and then the rounds themselves tell.
    let few = compare(&run(&[99.0; 6]), &run(&[150.0; 6])).expect("comparable");
    let cell = of(&few, "terrace", 0);
    assert_eq!((cell.verdict, cell.interval, cell.distinct), (Verdict::TooFewRounds, None, true));
}

#[test]
fn what_was_cut_short_counts_in_nothing() {
    let first = run(&[100.0; 7]);
    let mut second = run(&[150.0; 7]);
    second.1 = second
        .1
        .iter()
        .cloned()
        .map(|mut measurement| {
            let cut = measurement.cell == 0 && measurement.engine == "terrace";
            measurement.result.as_mut().expect("a result").truncated = cut;
            measurement
        })
        .collect();
    let comparison = compare(&first, &second).expect("comparable");
    let cell = of(&comparison, "terrace", 0);
    assert!(cell.cut && cell.verdict == Verdict::CutShort);
    assert_eq!((comparison.engines[0].cells, comparison.engines[0].ratio), (1, 1.0));
    assert_eq!(comparison.ratios.all, 1);
    assert!(comparison.text().contains("which count in nothing: 1"), "{}", comparison.text());
}

#[test]
fn two_machines_are_told_apart_by_name_and_by_cost() {
    let first = run(&[100.0]);
    let same = compare(&first, &first).expect("comparable");
    assert!(same.machines.alike && !same.text().contains("MACHINES DIFFER"), "{}", same.text());

    let mut dear = run(&[100.0]);
    dear.0.machine.costs = Some(Costs { write_ns: 1800.0, ..COSTS });
    let comparison = compare(&first, &dear).expect("comparable");
    let text = comparison.text();
    assert!(!comparison.machines.alike && text.contains("THE MACHINES DIFFER"), "{text}");
    let cost = "cost of a write of 128 bytes: 900 ns, then 1800 ns (2.00 times)";
    assert!(text.contains(cost), "{text}");

    let mut other = run(&[100.0]);
    other.0.machine.cpu = "Another".to_owned();
    other.0.machine.costs = None;
    let text = compare(&first, &other).expect("comparable").text();
    for words in ["processor: AMD EPYC 7B13, then Another", "not recorded", "THE MACHINES DIFFER"] {
        assert!(text.contains(words), "{text}");
    }
    let json = serde_json::to_value(comparison).expect("JSON");
    assert_eq!(json["machines"]["alike"], false);
    assert_eq!(json["machines"]["costs"][0]["ratio"], 2.0);
    assert_eq!(json["cells"][0]["verdict"], "too-few-rounds");
}

#[test]
fn runs_without_a_cell_in_common_are_refused() {
    let first = run(&[100.0]);
    let mut second = run(&[100.0]);
    second.0.sections[0].id = "two".to_owned();
    let problem = compare(&first, &second).expect_err("nothing in common");
    assert!(problem.contains("no cell"), "{problem}");
}
