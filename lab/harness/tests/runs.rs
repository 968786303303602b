//! Whole runs with engines that only pretend: what is run, in which order, and what is left on
//! disk.

mod common;

use std::fs;

use common::{CELLS, Lab, failed_in_part, refused, stdout, succeeded};
use lab_harness::run::{Debt, Status};

#[test]
fn a_run_is_complete_and_in_turns() {
    let lab = Lab::with(&["fast"]);
    let output = lab.run(&[]);
    succeeded(&output);
    let text = stdout(&output);
    assert!(
        text.contains("report.html") && text.contains("0.50") && text.contains("fake-fast"),
        "{text}"
    );

    let (run, measurements) = lab.results();
    assert!(run.complete && run.rounds == 2 && run.seconds > 0.0);
    let ids: Vec<&str> = run.engines.iter().map(|engine| engine.id.as_str()).collect();
    assert_eq!(ids, ["terrace", "fake-fast"]);
    assert_eq!(measurements.iter().count(), CELLS * 2 * 2);
    assert!(measurements.iter().all(|m| m.status == Status::Ok && m.reason.is_none()));
    let write = measurements.get("writes", 1, "terrace", 1).expect("measured");
    assert_eq!(write.debt, Some(Debt { seconds: 0.01, bytes_written: 7 }));
    let read = measurements.get("reads", 0, "terrace", 1).expect("measured");
    assert_eq!(read.debt, None);
    let fill = measurements.get("fills", 0, "fake-fast", 0).expect("measured");
    assert_eq!(fill.series.len(), 1);

    // Tested before anything is measured; then in turns, the other one first in the next group and
    // round.
    let group = |name| {
        [
            format!("{name} fillrandom waitcompact"),
            format!("{name} overwrite waitcompact"),
            format!("{name} readseq"),
            format!("{name} readrandom"),
            format!("{name} readrandom"),
        ]
    };
    let fills = |name| vec![format!("{name} fillseq waitcompact")];
    let (own, other) = ("terrace", "fast");
    let mut expected = vec![format!("{own} selftest"), format!("{other} selftest")];
    expected
        .extend(group(own).into_iter().chain(group(other)).chain(fills(other)).chain(fills(own)));
    expected
        .extend(group(other).into_iter().chain(group(own)).chain(fills(own)).chain(fills(other)));
    assert_eq!(lab.trace(), expected);
    assert!(!lab.out().join("DB").exists(), "databases are removed");
    let results = fs::read(lab.out().join("results.json")).expect("results.json");
    let results: serde_json::Value = serde_json::from_slice(&results).expect("JSON");
    assert_eq!(results["figures"].as_array().map(Vec::len), Some(CELLS * 2));
    assert_eq!(results["figures"][1]["ops_per_sec"]["middle"], 2000.0);
    assert_eq!(results["measurements"].as_array().map(Vec::len), Some(CELLS * 2 * 2));
    assert!(lab.out().join("logs/fake-fast.txt").exists());
}

#[test]
fn a_part_of_a_suite() {
    let lab = Lab::new();
    succeeded(&lab.run(&["--sections", "reads", "--reps", "1", "--num", "50"]));
    let (run, measurements) = lab.results();
    let sections: Vec<&str> = run.sections.iter().map(|section| section.id.as_str()).collect();
    assert_eq!(sections, ["reads"]);
    assert_eq!((run.num, measurements.iter().count()), (50, 3));
    // A database that is read has to be written all the same.
    assert_eq!(
        lab.trace()[1..3],
        ["terrace fillrandom waitcompact", "terrace overwrite waitcompact"]
    );
    // The rest of the run is of the same part, and of the same engines.
    lab.engine("fake", "script = 'fake.sh'");
    succeeded(&lab.run(&["--resume", "--reps", "2"]));
    assert_eq!(lab.results().1.iter().count(), 6);
}

#[test]
fn of_several_passes_the_median_counts() {
    let lab = Lab::with(&["uneven", "crashread"]);
    let suites = lab.dir().join("suites");
    let tiny = fs::read_to_string(suites.join("tiny.toml")).expect("a suite");
    let passes = tiny
        .replace(r#""readseq", section = "reads""#, r#""readseq", section = "reads", passes = 3"#);
    fs::write(suites.join("passes.toml"), passes).expect("write");
    failed_in_part(&lab.lab(&["run", "passes", "--reps", "1", "--out", &lab.out_text()]));
    let (_, measurements) = lab.results();
    assert_eq!(measurements.iter().count(), CELLS * 3);
    assert!(
        lab.trace().contains(&"terrace readseq readseq readseq".to_owned()),
        "{:?}",
        lab.trace()
    );
    let rate = |engine| {
        let read = measurements.get("reads", 0, engine, 0).expect("a measurement");
        (read.status, read.result.as_ref().map(|result| result.ops_per_sec))
    };
    assert_eq!(rate("fake-uneven"), (Status::Ok, Some(1500.0)), "of 1,500, 2,500 and 500");
    assert_eq!(rate("fake-crashread"), (Status::Failed, None));

    // A benchmark that changes the database differs the second time.
    fs::write(
        suites.join("passes.toml"),
        tiny.replace(r#""overwrite""#, r#"{ benchmark = "overwrite", passes = 2 }"#),
    )
    .expect("write");
    refused(&lab.lab(&["run", "passes"]), &["overwrite", "2 times in a row"]);
}

#[test]
fn rounds_until_the_ratios_are_known() {
    let lab = Lab::with(&["noisy", "cannot"]);
    refused(&lab.run(&["--precision", "0"]), &["--precision"]);
    refused(&lab.run(&["--precision", "five"]), &["--precision"]);
    succeeded(&lab.run(&["--precision", "5", "--reps", "7"]));
    // Six rounds are the least. One engine overwrites now fast and now slowly, and the group with
    // that goes on.
    let rounds = |section, engine| lab.results().1.of(section, 0, engine).len();
    assert_eq!((rounds("writes", "terrace"), rounds("writes", "fake-noisy")), (7, 7));
    assert_eq!((rounds("reads", "fake-cannot"), rounds("fills", "fake-noisy")), (7, 6));
    assert!(lab.results().0.complete);
    let report = fs::read_to_string(lab.out().join("report.html")).expect("a report");
    assert!(report.contains("medians of up to 7 rounds, until the ratios were known to within 5%"));
    // The run keeps its precision, until another is asked for.
    succeeded(&lab.run(&["--resume", "--reps", "8"]));
    assert_eq!((rounds("writes", "terrace"), rounds("fills", "terrace")), (8, 6));
    let calls = lab.trace().len();
    succeeded(&lab.run(&["--resume", "--precision", "900", "--reps", "9"]));
    assert_eq!((lab.trace().len(), rounds("writes", "terrace")), (calls, 8));
}

#[test]
fn resuming_measures_what_is_left() {
    let lab = Lab::with(&["fast"]);
    succeeded(&lab.run(&["--reps", "1"]));
    let before = lab.results().1;
    let calls = lab.trace().len();
    // Nothing is left.
    succeeded(&lab.run(&["--resume"]));
    assert_eq!(lab.trace().len(), calls);
    assert_eq!(lab.results().1, before);
    // One more round.
    succeeded(&lab.run(&["--resume", "--reps", "2"]));
    let (run, after) = lab.results();
    assert_eq!((run.rounds, after.iter().count()), (2, CELLS * 4));
    assert!(before.iter().all(|m| after.get(&m.section, m.cell, &m.engine, m.round) == Some(m)));
    // A last line without its end was never finished: its cell is measured again.
    let path = lab.out().join("measurements.jsonl");
    let text = fs::read_to_string(&path).expect("read");
    fs::write(&path, &text[..text.len() - 20]).expect("write");
    succeeded(&lab.run(&["--resume"]));
    assert_eq!(lab.results().1.iter().count(), CELLS * 4);
    assert!(lab.results().0.complete);
}

#[test]
fn a_part_of_the_engines_does_not_complete_a_run() {
    let lab = Lab::with(&["fast", "crashread"]);
    failed_in_part(&lab.run(&["--reps", "1"]));
    assert!(lab.results().0.complete, "what fails has its reason");
    // A round more, of one engine: the others miss it.
    failed_in_part(&lab.run(&["--resume", "--reps", "2", "--engines", "fake-fast"]));
    let (run, measurements) = lab.results();
    assert_eq!((run.engines.len(), measurements.iter().count()), (3, CELLS * 4));
    assert!(!run.complete);
    failed_in_part(&lab.run(&["--resume", "--engines", "terrace,fake-crashread"]));
    assert!(lab.results().0.complete);
    // A session with nothing to do does not unsay it, though it has forgotten what others failed
    // in.
    failed_in_part(&lab.run(&["--resume", "--engines", "terrace"]));
    assert!(lab.results().0.complete);
}

#[test]
fn reports_are_written_anew_and_pooled() {
    let lab = Lab::with(&["fast"]);
    succeeded(&lab.run(&["--reps", "1"]));
    let first = lab.out_text();
    succeeded(&lab.lab(&["report", &first]));
    let second = lab.root().join("second").display().to_string();
    succeeded(&lab.lab(&["run", "tiny", "--reps", "2", "--out", &second]));
    refused(&lab.lab(&["report", &first, &second]), &["--out"]);
    let pooled = lab.root().join("pooled").display().to_string();
    succeeded(&lab.lab(&["report", &first, &second, "--out", &pooled]));
    let (run, measurements) =
        lab_harness::run::Directory::new(pooled.as_ref()).read().expect("a run");
    assert_eq!((run.rounds, measurements.iter().count()), (3, CELLS * 2 * 3));

    // Other suites stand beside it on one page.
    let suite = lab.dir().join("suites/tiny.toml");
    fs::copy(&suite, lab.dir().join("suites/other.toml")).expect("copy");
    let other = lab.root().join("other").display().to_string();
    succeeded(&lab.lab(&["run", "other", "--reps", "1", "--out", &other]));
    let page = lab.root().join("page").display().to_string();
    succeeded(&lab.lab(&["report", &first, &other, &second, "--out", &page]));
    assert!(lab.root().join("page/report.html").exists());
    refused(&lab.lab(&["report", &first, "--out", &second]), &["there is a run here already"]);

    let summary = lab.lab(&["summary", &first, &other, &second, "--benchmarks", "overwrite"]);
    succeeded(&summary);
    let text = stdout(&summary);
    assert!(text.contains("### Tiny (tiny)") && text.contains("### Tiny (other)"), "{text}");
    assert!(text.contains("| Fake (fake-fast) 1.0 | 0.50× (0/6) | 2,000 (0.50×) |"), "{text}");
    refused(&lab.lab(&["summary", &first, "--benchmarks", "fly"]), &["\"fly\""]);
    refused(&lab.lab(&["summary", &page]), &["there is no run here"]);
    refused(&lab.lab(&["compare", &first, &other]), &["different suites", "tiny", "other"]);
}

#[test]
fn comparing_two_runs() {
    let lab = Lab::with(&["fast"]);
    succeeded(&lab.run(&["--reps", "1"]));
    let second = lab.root().join("second").display().to_string();
    succeeded(&lab.lab(&["run", "tiny", "--reps", "1", "--num", "500", "--out", &second]));
    let output = lab.lab(&["compare", &lab.out_text(), &second]);
    succeeded(&output);
    let text = stdout(&output);
    assert!(
        text.contains("different: entries: 1000, then 500")
            && text.contains("6 of 6 ratios within 10%"),
        "{text}"
    );
    let output = lab.lab(&["compare", "--json", &lab.out_text(), &second]);
    succeeded(&output);
    let json: serde_json::Value = serde_json::from_str(&stdout(&output)).expect("JSON");
    assert_eq!(json["cells"].as_array().map(Vec::len), Some(CELLS * 2));
    assert_eq!(json["engines"][0]["ratio"], 1.0);
}

#[test]
fn the_list_has_suites_sections_engines_and_what_they_lack() {
    let lab = Lab::with(&["fast"]);
    lab.engine("gone", "missing = 'not available'");
    lab.engine(
        "unbuilt",
        "sources = ['a.cc']\nprobe = 'no/such/header.h'\npackages = ['libnosuch-dev']",
    );
    let output = lab.lab(&["list"]);
    succeeded(&output);
    let text = stdout(&output);
    for words in [
        "tiny",
        "reads",
        "fake-fast",
        "can be run",
        "not available",
        "apt-get install libnosuch-dev",
    ] {
        assert!(text.contains(words), "{words}: {text}");
    }
}

#[test]
fn engines_are_described_with_their_builds() {
    let lab = Lab::new();
    // A compiled program has a build; a script has none.
    let source =
        "int main() { __builtin_puts(\"{\\\"title\\\":\\\"C\\\",\\\"version\\\":\\\"7\\\"}\"); }";
    lab.engine("compiled", "sources = ['bench.cc']");
    fs::write(lab.dir().join("engines/compiled/bench.cc"), source).expect("write");
    fs::create_dir_all(lab.dir().join("engines/common")).expect("create");
    lab.engine("alike", "title = 'Built otherwise'\nlike = 'compiled'\nlibraries = ['-O0']");
    lab.engine("unbuilt", "sources = ['bench.cc']\nbuilt = 'out/peers/unbuilt'");
    let output = lab.lab(&["describe", "terrace,compiled*,unbuilt"]);
    succeeded(&output);
    let text = stdout(&output);
    for said in [
        "terrace: Fake 1.0\n",
        "alike: Built otherwise 7\n",
        "out/peers/unbuilt is missing; `tools/build-peers unbuilt` makes it",
    ] {
        assert!(text.contains(said), "{said:?} is not in: {text}");
    }
    assert_eq!(text.matches("without assertions").count(), 2, "{text}");
}

#[test]
fn an_engine_that_has_to_be_asked_for_is_run_by_its_name_alone() {
    let lab = Lab::new();
    lab.engine("extra", "script = 'fake.sh'\nasked_for = true");
    for (ids, described) in [("all", false), ("extra", true), ("extra*", true)] {
        let output = lab.lab(&["describe", ids]);
        succeeded(&output);
        assert_eq!(stdout(&output).contains("extra:"), described, "{ids}");
    }
}

#[test]
fn a_replay_is_a_run_like_any_other() {
    let lab = Lab::with(&["fast"]);
    let sample = concat!(env!("CARGO_MANIFEST_DIR"), "/../trace/sample.trace");
    let output = lab.lab(&["trace", "show", sample]);
    succeeded(&output);
    let shown = stdout(&output);
    for words in
        ["11 operations", "3 entries were there", "1 writes waited", "1 scans go backwards"]
    {
        assert!(shown.contains(words), "{shown}");
    }
    let out = lab.out().display().to_string();
    let replay = ["trace", "replay", sample, "--out", &out, "--engines", "terrace,fake-fast"];
    succeeded(&lab.lab(&[&replay[..], &["--reps", "1"]].concat()));
    let (run, measurements) = lab.results();
    assert_eq!((run.suite.as_str(), run.num, measurements.iter().count()), ("trace", 11, 2));
    assert!(
        run.title.ends_with(": sample")
            && run.notes.iter().any(|note| note.contains("11 operations"))
    );
    assert_eq!(lab.trace()[2..], ["terrace replay waitcompact", "fast replay waitcompact"]);
    succeeded(&lab.lab(&[&replay[..], &["--resume", "--reps", "2"]].concat()));
    assert_eq!(lab.results().1.iter().count(), 4);
}
