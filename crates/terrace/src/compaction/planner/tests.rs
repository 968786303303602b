//! Which compaction is chosen, from versions made up for it.

use std::sync::atomic::Ordering;

use super::*;
use crate::base::internal_key::{EntryKind, InternalOrder, encode};
use crate::compaction::inputs::{DEEPEST_FLUSH_LEVEL, PlanSettings};
use crate::compaction::level_0::BaseLevel;
use crate::compaction::limits::one_run_allowance;
use crate::compaction::plan::Reservation;
use crate::version::edit::{NewFile, VersionEdit};
use crate::version::file_meta::Contents;

const MB: u64 = 1 << 20;

/// Level, number, megabytes, first and last key.
type File = (usize, u64, u64, &'static str, &'static str);

fn version(files: &[File]) -> Version {
    let key = |text: &str| encode(text.as_bytes(), 9, EntryKind::Value);
    let file = |&(level, number, size, from, to): &File| NewFile {
        level,
        number,
        size: size * MB,
        smallest: key(from),
        largest: key(to),
        values: Vec::new(),
        codecs: Default::default(),
    };
    let edit =
        VersionEdit { new_files: files.iter().map(file).collect(), ..VersionEdit::default() };
    let order = InternalOrder::new(KeyOrder::default());
    Version::default().apply(&edit, &order, &Arc::default()).expect("a version")
}

fn settings(is_write_idle: bool) -> PlanSettings {
    let read_triggered_bytes = is_write_idle.then_some(0);
    PlanSettings {
        keys: KeyOrder::default(),
        max_file_size: 2 * MB,
        oldest_snapshot: 100,
        range_delete_bytes: 0,
        read_triggered_bytes,
        ahead_of_reads: true,
        gathers: false,
        expired_before: 0,
    }
}

fn reservation(files: &[u64], output_level: usize, from: &str, to: &str) -> Reservation {
    Reservation { id: 1, files: files.to_vec(), output_level, from: from.into(), to: to.into() }
}

/// A plan in short: levels, the numbers of its inputs, and whether it only moves a file.
type Chosen = (Reason, usize, usize, Vec<u64>, Vec<u64>, bool);

fn chosen(plan: Option<Plan>) -> Option<Chosen> {
    let numbers = |files: &[Arc<FileMeta>]| files.iter().map(|file| file.number).collect();
    let shown = |plan: Plan| {
        let [upper, lower] = &plan.inputs;
        (
            plan.reason,
            plan.level,
            plan.output_level,
            numbers(upper),
            numbers(lower),
            plan.is_trivial_move,
        )
    };
    plan.map(shown)
}

fn pick(version: &Version, is_write_idle: bool, busy: &[Reservation]) -> Option<Chosen> {
    chosen(Planner { version, settings: &settings(is_write_idle), busy }.pick())
}

fn file(version: &Version, number: u64) -> &Arc<FileMeta> {
    version.files().find(|(_, file)| file.number == number).expect("a file").1
}

#[test]
fn level_0_is_compacted_when_it_has_four_files() {
    assert_eq!(pick(&version(&[]), false, &[]), None);
    let mut files =
        vec![(0, 7, 1, "a", "m"), (0, 8, 1, "c", "d"), (0, 9, 1, "x", "z"), (1, 5, 1, "l", "p")];
    assert_eq!(pick(&version(&files), false, &[]), None);
    files.push((0, 10, 1, "k", "n"));
    // The oldest, with all that it shares keys with, directly or through others.
    let expected = (Reason::Size, 0, 1, vec![10, 8, 7], vec![5], false);
    assert_eq!(pick(&version(&files), false, &[]), Some(expected));
    let busy = [reservation(&[7, 5], 1, "a", "p")];
    assert_eq!(pick(&version(&files), false, &busy), None, "three of the four are left, too few");
}

#[test]
fn large_files_of_level_0_skip_levels_that_have_no_room_for_them() {
    let level_0 = |size| (7..11).map(move |number| (0, number, size, "a", "z"));
    let with = |size, others: &[File]| {
        version(&level_0(size).chain(others.iter().copied()).collect::<Vec<_>>())
    };
    let all = || vec![10, 9, 8, 7];
    let to = |level, below: &[u64]| Some((Reason::Size, 0, level, all(), below.to_vec(), false));
    // Three times what level 1 may hold, and a quarter of what lies below.
    assert_eq!(pick(&with(7, &[]), false, &[]), to(1, &[]));
    assert_eq!(pick(&with(8, &[]), false, &[]), to(2, &[]));
    let base = |version: &Version| {
        let planner = Planner { version, settings: &settings(false), busy: &[] };
        match planner.base_level(std::slice::from_ref(file(version, 7))) {
            Some(BaseLevel::At(level)) => Some(level),
            _ => None,
        }
    };
    assert_eq!(base(&with(10, &[(2, 5, 160, "c", "d")])), Some(2));
    assert_eq!(base(&with(10, &[(2, 5, 161, "c", "d")])), Some(1));
    // Up to a GiB of what lies below, and however much itself.
    let large = |below| {
        let files = level_0(240).chain([(0, 11, 1, "a", "z"), (3, 6, below, "c", "d")]);
        base(&version(&files.collect::<Vec<_>>()))
    };
    assert_eq!((large(1024), large(1025)), (Some(3), Some(2)));
    // Level 2 as well.
    assert_eq!(pick(&with(24, &[]), false, &[]), to(2, &[]));
    assert_eq!(pick(&with(25, &[(3, 5, 400, "c", "d")]), false, &[]), to(3, &[5]));
    // What is older goes before, if it is less.
    let older = [(1, 4, 5, "c", "d"), (1, 6, 5, "k", "l"), (2, 5, 30, "c", "d")];
    let before = Some((Reason::Skipped, 1, 2, vec![4, 6], vec![5], false));
    assert_eq!(pick(&with(10, &older), false, &[]), before);
    let more = with(10, &[(1, 4, 41, "c", "d")]);
    assert_eq!(base(&more), Some(1), "it is more");
    // A small one beside large ones changes nothing.
    let beside: Vec<_> = level_0(8).chain([(0, 11, 1, "a", "z")]).collect();
    let plan = pick(&version(&beside), false, &[]).expect("a plan");
    assert_eq!((plan.1, plan.2), (0, 2));
    // Many small ones stay in the usual shape.
    let many: Vec<_> = (7..27).map(|number| (0, number, 7, "a", "z")).collect();
    let plan = pick(&version(&many), false, &[]).expect("a plan");
    assert_eq!((plan.1, plan.2), (0, 1));
    // Or is about to come.
    let busy = [reservation(&[99], 1, "k", "l")];
    assert_eq!(pick(&with(10, &[]), false, &busy), None);
    let busy = [reservation(&[4, 6, 5], 2, "c", "l")];
    assert_eq!(pick(&with(10, &older), false, &busy), None);
}

#[test]
fn files_of_level_0_that_would_skip_older_entries_are_left() {
    let mut files = vec![(0, 7, 30, "a", "c"), (2, 5, 2, "b", "o"), (1, 4, 2, "m", "n")];
    files.extend((8..11).map(|number| (0, number, 5, "m", "p")));
    let expected = (Reason::Size, 0, 2, vec![7], vec![5], false);
    assert_eq!(pick(&version(&files), false, &[]), Some(expected));
}

/// As [`pick`], while much is written and nothing read.
fn pick_in_load(version: &Version, busy: &[Reservation]) -> Option<Chosen> {
    let settings = PlanSettings { gathers: true, ..settings(false) };
    chosen(Planner { version, settings: &settings, busy }.pick())
}

/// Files of one megabyte in level 0, whose next numbers were kept free.
fn flushed(numbers: std::ops::Range<u64>, others: &[File]) -> Version {
    let files = numbers.clone().map(|number| (0, 2 * number, 1, "a", "z"));
    let version = version(&files.chain(others.iter().copied()).collect::<Vec<_>>());
    numbers.for_each(|number| file(&version, 2 * number).set_has_successor(true));
    version
}

#[test]
fn level_0_gathers_half_of_the_database_in_a_load() {
    let large = |count: u64, size| {
        version(&(0..count).map(|number| (0, 10 + number, size, "a", "z")).collect::<Vec<_>>())
    };
    let inputs = |chosen: Option<Chosen>| chosen.map(|chosen| chosen.3.len());
    // At least 30 MB.
    assert_eq!(inputs(pick_in_load(&large(7, 4), &[])), None);
    assert_eq!(inputs(pick(&large(7, 4), false, &[])), Some(7), "not in a load");
    assert_eq!(inputs(pick_in_load(&large(8, 4), &[])), Some(8));
    // Or 36 files.
    assert_eq!(inputs(pick_in_load(&large(35, 0), &[])), None);
    assert_eq!(inputs(pick_in_load(&large(36, 0), &[])), Some(36));
    // And 512 MB at most.
    let beside = |size, count| {
        let mut files: Vec<File> =
            (0..count).map(|number| (0, 10 + number, 30, "a", "z")).collect();
        files.push((6, 5, size, "0", "0"));
        inputs(pick_in_load(&version(&files), &[]))
    };
    assert_eq!((beside(200, 6), beside(200, 7)), (None, Some(7)));
    assert_eq!((beside(9_000, 17), beside(9_000, 18)), (None, Some(18)));
}

#[test]
fn many_small_files_become_one_of_level_0() {
    // Eleven are few.
    assert_eq!(pick_in_load(&flushed(10..21, &[]), &[]), None);
    let all = |numbers: std::ops::Range<u64>| {
        let files: Vec<_> = numbers.rev().map(|number| 2 * number).collect();
        Some((Reason::SmallFiles, 0, 0, files, vec![], false))
    };
    assert_eq!(pick_in_load(&flushed(10..22, &[]), &[]), all(10..22));
    // Not what small ones have become, and nothing older than that, which would come to lie above.
    let merged = [(0, 19, 9, "a", "z"), (0, 18, 1, "a", "z"), (1, 3, 1, "a", "z")];
    assert_eq!(pick_in_load(&flushed(10..22, &merged), &[]), all(10..22));
    // Beside a compaction of older ones.
    let busy = [reservation(&[20, 22, 24], 1, "a", "z")];
    let beside = flushed(10..25, &[]);
    assert_eq!(pick(&beside, false, &busy), all(13..25));
    assert_eq!(pick(&flushed(10..24, &[]), false, &busy), None, "eleven are left");
    // And one after the other.
    let both = [busy[0].clone(), Reservation { id: 2, ..reservation(&[48], 0, "a", "z") }];
    assert_eq!(pick(&flushed(10..37, &[]), false, &both), None);
    // A file whose next number is taken is older than the one that they become.
    file(&beside, 48).set_has_successor(false);
    assert_eq!(pick(&beside, false, &busy), None);
    let more = flushed(9..25, &[]);
    file(&more, 48).set_has_successor(false);
    let busy = [reservation(&[18, 20], 1, "a", "z")];
    let plan = pick(&more, false, &busy);
    assert_eq!(plan, all(11..24));
    let planner = Planner { version: &more, settings: &settings(false), busy: &busy };
    assert_eq!(planner.pick().and_then(|plan| plan.first_number()), Some(47));
    // Without one that was flushed since the database was opened no number is free.
    let found: Vec<File> = (10..22).map(|number| (0, number, 1, "a", "z")).collect();
    assert_eq!(pick_in_load(&version(&found), &[]), None);
}

/// A compaction of level 2 would begin after the other for as long as that level is full.
#[test]
fn level_0_is_not_kept_from_level_2_again_and_again() {
    let mut files: Vec<File> = (7..11).map(|number| (0, number, 24, "a", "z")).collect();
    files.extend([(2, 4, 60, "a", "c"), (2, 5, 60, "d", "f"), (2, 12, 50, "h", "i")]);
    files.push((3, 6, 300, "a", "c"));
    let busy = [reservation(&[4, 6], 3, "a", "c")];
    assert_eq!(pick(&version(&files), false, &busy), None, "not table 5");
    let mut older = files.clone();
    older.push((1, 13, 5, "b", "d"));
    assert_eq!(
        pick(&version(&older), false, &busy),
        None,
        "nor while table 13 is to be compacted first"
    );
    let newer = (11..13).map(|number| (0, 10 + number, 1, "a", "z"));
    let with_newer: Vec<_> = files.iter().copied().chain(newer).collect();
    let [down] = &busy;
    let within = Reservation { id: 2, ..reservation(&[21, 22], 0, "a", "z") };
    let busy_within = [down.clone(), within];
    assert_eq!(
        pick(&version(&with_newer), false, &busy_within),
        None,
        "nor while newer files become one within level 0"
    );
    files.retain(|(level, ..)| *level > 0);
    let moved = Some((Reason::Size, 2, 3, vec![5], vec![], true));
    assert_eq!(pick(&version(&files), false, &busy), moved);
}

#[test]
fn a_full_level_moves_down_where_that_is_cheapest() {
    let mut files = vec![(1, 5, 6, "a", "c"), (1, 6, 6, "e", "g"), (2, 7, 9, "a", "c")];
    // Nothing is in the way of the second: it moves.
    assert_eq!(
        pick(&version(&files), false, &[]),
        Some((Reason::Size, 1, 2, vec![6], vec![], true))
    );
    // It would come to lie over too much.
    files.push((3, 8, 21, "f", "f"));
    assert_eq!(
        pick(&version(&files), false, &[]),
        Some((Reason::Size, 1, 2, vec![6], vec![], false))
    );
    // Another compaction writes its range into the level below; a range beside it does not
    // conflict.
    let over = [reservation(&[99], 2, "f", "k")];
    assert_eq!(
        pick(&version(&files), false, &over),
        Some((Reason::Size, 1, 2, vec![5], vec![7], false))
    );
    for (from, to) in [("h", "k"), ("b", "d")] {
        let beside = [reservation(&[99], 2, from, to)];
        assert_eq!(
            pick(&version(&files), false, &beside).expect("a plan").3,
            [6],
            "{from} to {to}"
        );
    }
    let elsewhere = [reservation(&[99], 3, "f", "k")];
    assert_eq!(pick(&version(&files), false, &elsewhere).expect("a plan").3, [6]);
    let both = [reservation(&[99], 2, "a", "z")];
    assert_eq!(pick(&version(&files), false, &both), None);
}

#[test]
fn more_of_the_upper_level_comes_along_where_it_costs_little() {
    let planner = |version: &Version| {
        let settings = settings(false);
        let range = ManualRange { from: Some(b"a"), to: Some(b"b"), reached: None };
        chosen(Planner { version, settings: &settings, busy: &[] }.manual(1, false, &range))
    };
    let along = version(&[(1, 5, 1, "a", "b"), (1, 6, 1, "c", "d"), (2, 7, 1, "a", "d")]);
    assert_eq!(planner(&along), Some((Reason::Manual, 1, 2, vec![5, 6], vec![7], false)));
    // Not where it would read fifty megabytes, nor where it takes in more of the lower level.
    let large = version(&[(1, 5, 1, "a", "b"), (1, 6, 50, "c", "d"), (2, 7, 1, "a", "d")]);
    assert_eq!(planner(&large), Some((Reason::Manual, 1, 2, vec![5], vec![7], false)));
    let wide = version(&[
        (1, 5, 1, "a", "b"),
        (1, 6, 1, "c", "f"),
        (2, 7, 1, "a", "d"),
        (2, 8, 1, "e", "g"),
    ]);
    assert_eq!(planner(&wide), Some((Reason::Manual, 1, 2, vec![5], vec![7], false)));
}

/// LevelDB may end a table between two versions of a key. Where the first of them is a tombstone, a
/// compaction drops it when nothing deeper has the key, and so has to see the second.
#[test]
fn all_versions_of_a_key_of_the_output_level_are_compacted() {
    let file = |(level, number): (usize, u64), from: (&str, u64), to: (&str, u64)| {
        let key =
            |(text, sequence): (&str, u64)| encode(text.as_bytes(), sequence, EntryKind::Value);
        let (smallest, largest) = (key(from), key(to));
        let (values, codecs) = Default::default();
        NewFile { level, number, size: MB, smallest, largest, values, codecs }
    };
    let new_files = vec![
        file((1, 5), ("b", 20), ("d", 20)),
        file((2, 6), ("c", 10), ("k", 10)),
        file((2, 7), ("k", 5), ("p", 5)),
        file((2, 8), ("p", 4), ("t", 4)),
        file((2, 9), ("u", 4), ("z", 4)),
    ];
    let edit = VersionEdit { new_files, ..VersionEdit::default() };
    let order = InternalOrder::new(KeyOrder::default());
    let version = Version::default().apply(&edit, &order, &Arc::default()).expect("a version");
    let planner = Planner { version: &version, settings: &settings(false), busy: &[] };
    let plan = chosen(planner.manual(1, false, &ManualRange::default())).expect("a plan");
    assert_eq!((plan.3, plan.4), (vec![5], vec![6, 7, 8]));
}

#[test]
fn a_manual_compaction_ends_at_the_bottom() {
    let deep = version(&[(6, 5, 1, "a", "b"), (6, 6, 60, "c", "d"), (6, 7, 1, "e", "f")]);
    let settings = settings(false);
    let planner = Planner { version: &deep, settings: &settings, busy: &[] };
    let all = ManualRange::default();
    assert_eq!(chosen(planner.manual(6, false, &all)), None);
    // In steps.
    let steps = planner.manual_steps(6, true, &all);
    assert_eq!(steps, [Some(b"d".to_vec()), Some(b"f".to_vec())]);
    let first = ManualRange { to: steps[0].as_deref(), ..all };
    assert_eq!(
        chosen(planner.manual(6, true, &first)),
        Some((Reason::Manual, 6, 6, vec![5, 6], vec![], false))
    );
    let beyond = ManualRange { from: Some(b"x"), ..all };
    assert_eq!(chosen(planner.manual(6, true, &beyond)), None);
}

/// Under an order that is not bytewise nobody knows the next key.
#[test]
fn a_step_of_a_manual_compaction_is_not_taken_twice() {
    // The first was written by the step before, which ended at c.
    let deep = version(&[(6, 5, 60, "a", "c"), (6, 6, 60, "d", "f"), (6, 7, 1, "g", "h")]);
    let settings = settings(false);
    let planner = Planner { version: &deep, settings: &settings, busy: &[] };
    let rest = ManualRange { reached: Some(b"c"), ..ManualRange::default() };
    let steps = planner.manual_steps(6, true, &rest);
    assert_eq!(steps, [Some(b"f".to_vec()), Some(b"h".to_vec())]);
    let next = ManualRange { to: steps[0].as_deref(), ..rest };
    let plan = chosen(planner.manual(6, true, &next)).expect("a plan");
    assert_eq!(plan.3, [6]);
    let last = ManualRange { reached: Some(b"h"), ..rest };
    assert_eq!(chosen(planner.manual(6, true, &last)), None);
}

#[test]
fn a_step_of_a_manual_compaction_is_bounded_by_what_it_moves_and_by_what_it_rewrites() {
    let steps = |version: &Version, level, in_place, range: ManualRange<'_>| {
        let planner = Planner { version, settings: &settings(false), busy: &[] };
        let ends = planner.manual_steps(level, in_place, &range).into_iter();
        ends.map(|end| end.map(|end| String::from_utf8(end).expect("text"))).collect::<Vec<_>>()
    };
    let ends = |ends: &[&str]| ends.iter().map(|end| Some(end.to_string())).collect::<Vec<_>>();
    let all = ManualRange::default();
    let files = version(&[
        (1, 5, 1, "a", "c"),
        (1, 6, 1, "d", "f"),
        (1, 7, 30, "g", "i"),
        (1, 8, 30, "k", "m"),
        (1, 9, 1, "p", "r"),
        (2, 10, 90, "a", "b"),
        (2, 11, 90, "e", "e"),
        (2, 12, 20, "q", "z"),
    ]);
    // Behind 180 MB below, and behind 60 MB of its own.
    assert_eq!(steps(&files, 1, false, all), ends(&["f", "m", "r"]));
    assert_eq!(steps(&files, 1, true, all), ends(&["m", "r"]));
    let part = ManualRange { from: Some(b"e"), to: Some(b"l"), ..all };
    assert_eq!(steps(&files, 1, false, part), ends(&["l"]));
    assert_eq!(steps(&files, 3, false, all), ends(&[]));
    // Level 0 goes in one piece.
    assert_eq!(steps(&files, 0, false, all), [None]);
    assert_eq!(steps(&files, 0, false, part), ends(&["l"]));
}

/// What came into a level since its steps were chosen goes along, and adds none.
#[test]
fn a_step_of_a_manual_compaction_takes_all_up_to_its_end() {
    let files = version(&[(1, 5, 90, "a", "c"), (1, 6, 90, "d", "f"), (1, 7, 90, "g", "i")]);
    let planner = Planner { version: &files, settings: &settings(false), busy: &[] };
    let step = ManualRange { to: Some(b"f"), ..ManualRange::default() };
    assert_eq!(chosen(planner.manual(1, false, &step)).expect("a plan").3, [5, 6]);
}

/// Beside a manual compaction.
#[test]
fn what_is_due_is_asked_for_alone() {
    let mut files: Vec<File> = (0..12).map(|at| (0, 60 - 2 * at, 1, "a", "z")).collect();
    let picks = |files: &[File], busy: &[Reservation]| {
        let (version, settings) = (version(files), settings(true));
        version.levels[0].iter().for_each(|file| file.set_has_successor(true));
        let planner = Planner { version: &version, settings: &settings, busy };
        (planner.pick_due(), planner.pick_due_within_level_0())
    };
    let (due, within) = picks(&files, &[]);
    assert_eq!(due.map(|plan| (plan.level, plan.output_level)), Some((0, 1)));
    assert_eq!(within.map(|plan| (plan.level, plan.output_level)), Some((0, 0)));
    let (due, _) = picks(&files, &[reservation(&[], 1, "c", "d")]);
    assert_eq!(due.map(|plan| (plan.level, plan.output_level)), Some((0, 0)));
    // A read-triggered compaction would do.
    files.truncate(3);
    assert_eq!(pick(&version(&files), true, &[]).expect("a plan").0, Reason::ReadTriggered);
    let (due, within) = picks(&files, &[]);
    assert!(due.is_none() && within.is_none());
}

#[test]
fn lookups_without_a_hit_trigger_a_compaction_while_nothing_is_written() {
    let version = version(&[(2, 5, 1, "a", "c"), (6, 6, 1, "a", "c"), (6, 7, 1, "x", "z")]);
    assert_eq!(pick(&version, true, &[]).expect("one run is the aim").0, Reason::ReadTriggered);
    file(&version, 6).seeks_left.store(0, Ordering::Relaxed);
    assert_eq!(
        pick(&version, true, &[]).expect("nothing is below the bottom").0,
        Reason::ReadTriggered
    );
    file(&version, 5).seeks_left.store(-1, Ordering::Relaxed);
    assert_eq!(pick(&version, true, &[]), Some((Reason::Seeks, 2, 3, vec![5], vec![], true)));
    assert_eq!(pick(&version, false, &[]), None);
    assert_eq!(pick(&version, true, &[reservation(&[99], 4, "x", "z")]), None);
}

#[test]
fn a_read_triggered_compaction_makes_one_run_where_it_pays() {
    let cheap = version(&[(0, 5, 1, "a", "m"), (1, 6, 4, "b", "c")]);
    assert_eq!(
        pick(&cheap, true, &[]),
        Some((Reason::ReadTriggered, 0, 1, vec![5], vec![6], false))
    );
    let dear = version(&[(0, 5, 1, "a", "m"), (1, 6, 5, "b", "c")]);
    assert_eq!(pick(&dear, true, &[]), None);
    let after_reads_worth = |megabytes: u64| {
        let settings =
            PlanSettings { read_triggered_bytes: Some(megabytes * MB), ..settings(true) };
        chosen(Planner { version: &dear, settings: &settings, busy: &[] }.pick())
    };
    assert_eq!(after_reads_worth(5), None, "that is not all there is");
    assert_eq!(after_reads_worth(6), Some((Reason::ReadTriggered, 0, 1, vec![5], vec![6], false)));
    let not_ahead = |version: &Version, megabytes: u64| {
        let settings = PlanSettings {
            read_triggered_bytes: Some(megabytes * MB),
            ahead_of_reads: false,
            ..settings(true)
        };
        chosen(Planner { version, settings: &settings, busy: &[] }.pick())
    };
    assert_eq!(not_ahead(&cheap, 4), None);
    assert_eq!(not_ahead(&cheap, 5), Some((Reason::ReadTriggered, 0, 1, vec![5], vec![6], false)));
    let deeper = version(&[
        (1, 6, 1, "b", "c"),
        (2, 7, 5, "a", "d"),
        (2, 8, 1, "x", "z"),
        (3, 9, 4, "x", "y"),
    ]);
    assert_eq!(
        pick(&deeper, true, &[]),
        Some((Reason::ReadTriggered, 2, 3, vec![7], vec![], true))
    );
    assert_eq!(pick(&deeper, false, &[]), None);
}

#[test]
fn what_a_range_delete_left_becomes_one_run_if_it_is_little() {
    assert_eq!(one_run_allowance(40, 10), 40);
    assert_eq!(one_run_allowance(39, 10), 0, "not little");
    assert_eq!(one_run_allowance(1000, 10), 80, "each level once, and what overlaps");
    assert_eq!(one_run_allowance(1000, 0), 0);
    let left = version(&[(0, 5, 1, "a", "m"), (1, 6, 5, "b", "c")]);
    let with = |version: &Version, range_delete_bytes| {
        let settings = PlanSettings { range_delete_bytes, ..settings(false) };
        chosen(Planner { version, settings: &settings, busy: &[] }.pick())
    };
    assert_eq!(with(&left, 0), None);
    assert_eq!(with(&left, 1), Some((Reason::RangeDelete, 0, 1, vec![5], vec![6], false)));
    let one_run = version(&[(2, 5, 1, "a", "b"), (2, 6, 1, "c", "d")]);
    assert_eq!(with(&one_run, 1), None);
}

#[test]
fn obsolete_tombstones_trigger_a_compaction() {
    let version = version(&[
        (0, 4, 1, "p", "q"),
        (3, 5, 1, "a", "c"),
        (5, 6, 1, "b", "b"),
        (6, 7, 1, "x", "z"),
    ]);
    let learn = |number, deletions, largest_sequence| {
        file(&version, number).learn(Contents {
            entries: 10,
            deletions,
            largest_sequence,
            half_expired: u64::MAX,
        });
    };
    learn(4, 0, 50);
    learn(5, 4, 50);
    learn(6, 0, 50);
    learn(7, 10, 101);
    assert_eq!(pick(&version, false, &[]), None, "too few, none, or visible in a snapshot");
    learn(5, 5, 100);
    // Something is hidden deeper: on the way down to it.
    assert_eq!(pick(&version, false, &[]), Some((Reason::Tombstones, 3, 4, vec![5], vec![], true)));
    learn(5, 0, 100);
    learn(7, 10, 100);
    // Nothing is: rewritten in place.
    assert_eq!(
        pick(&version, false, &[]),
        Some((Reason::Tombstones, 6, 6, vec![7], vec![], false))
    );
    learn(7, 0, 100);
    learn(4, 10, 100);
    assert_eq!(
        pick(&version, false, &[]),
        Some((Reason::Tombstones, 0, 1, vec![4], vec![], false))
    );
    assert_eq!(pick(&version, false, &[reservation(&[99], 5, "f", "g")]), None);
}

#[test]
fn a_new_table_goes_as_deep_as_nothing_is_in_its_way() {
    let settings = settings(false);
    let level = |files: &[File], busy: &[Reservation], deepest| {
        Planner { version: &version(files), settings: &settings, busy }
            .level_for(b"d", b"f", deepest)
    };
    assert_eq!(level(&[], &[], DEEPEST_FLUSH_LEVEL), 2);
    assert_eq!(level(&[], &[], NUM_LEVELS - 1), 6);
    assert_eq!(level(&[(0, 5, 1, "a", "e")], &[], 2), 0);
    assert_eq!(level(&[(0, 5, 1, "a", "c"), (1, 6, 1, "g", "h"), (2, 7, 1, "f", "f")], &[], 2), 1);
    // Not over more than ten tables' worth.
    assert_eq!(level(&[(2, 7, 20, "f", "f")], &[], 2), 1);
    assert_eq!(level(&[(2, 7, 21, "f", "f")], &[], 2), 0);
    for (output_level, from, to, expected) in
        [(1, "f", "g", 0), (1, "a", "d", 0), (1, "g", "h", 2), (1, "a", "c", 2), (2, "e", "e", 1)]
    {
        let busy = [reservation(&[99], output_level, from, to)];
        assert_eq!(level(&[], &busy, 2), expected, "{output_level}, {from} to {to}");
    }
}

#[test]
fn expired_entries_trigger_a_compaction() {
    let version = version(&[
        (0, 3, 1, "p", "q"),
        (2, 4, 1, "a", "c"),
        (2, 5, 1, "d", "f"),
        (2, 6, 1, "g", "i"),
        (3, 7, 1, "h", "h"),
    ]);
    let learn = |number, half_expired| {
        let contents = Contents { entries: 10, deletions: 0, largest_sequence: 50, half_expired };
        file(&version, number).learn(contents);
    };
    let pick = |expired_before, busy: &[Reservation]| {
        let settings = PlanSettings { expired_before, ..settings(false) };
        chosen(Planner { version: &version, settings: &settings, busy }.pick())
    };
    for (number, half) in [(4, 20), (5, 30), (6, 90), (7, u64::MAX)] {
        learn(number, half);
    }
    assert_eq!(pick(0, &[]), None, "nothing has expired");
    assert_eq!(pick(19, &[]), None);
    assert_eq!(pick(25, &[]), Some((Reason::Expired, 2, 2, vec![4], vec![], false)));
    // Neighbours go together.
    assert_eq!(pick(40, &[]), Some((Reason::Expired, 2, 2, vec![4, 5], vec![], false)));
    assert_eq!(pick(40, &[reservation(&[99], 5, "x", "y")]), None);
    for number in [4, 5] {
        learn(number, u64::MAX);
    }
    // Down to what it lies above, and never as it is.
    assert_eq!(pick(100, &[]), Some((Reason::Expired, 2, 3, vec![6], vec![7], false)));
    learn(6, u64::MAX);
    learn(3, 100);
    assert_eq!(pick(100, &[]), Some((Reason::Expired, 0, 1, vec![3], vec![], false)));
}
