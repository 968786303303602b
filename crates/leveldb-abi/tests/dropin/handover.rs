//! One database by turns with LevelDB and with Terrace, by programs that are killed: nothing
//! acknowledged is lost, and what is found is a prefix of the history, to the byte.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use terrace_testkit::campaign;
use terrace_testkit::rng::Rng;
use terrace_testkit::scale::scaled;

use crate::libraries::{compiled, libraries};

/// The contents that one process found, and its writes before it was killed.
struct Turn {
    /// Writes in the database when it was opened; nothing if the process did not get that far.
    found: Option<u64>,
    /// Writes acknowledged in the end.
    acknowledged: Option<u64>,
}

/// When a process is killed.
#[derive(Clone, Copy, Debug)]
enum Moment {
    /// While it opens the database, or shortly before or after.
    Early(Duration),
    /// After so many lines.
    After(usize),
}

/// Lets the program go on with a history and kills it.
fn turn(program: &Path, library: &Path, db: &Path, seed: u64, opened: u64, moment: Moment) -> Turn {
    let mut run = Command::new(program);
    run.arg(db).arg(seed.to_string()).arg(opened.to_string());
    run.env("LD_LIBRARY_PATH", library.parent().unwrap())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = run.spawn().unwrap();
    let mut output = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
    let mut said: Vec<String> = match moment {
        Moment::Early(delay) => {
            thread::sleep(delay);
            Vec::new()
        }
        Moment::After(lines) => output.by_ref().take(lines).collect(),
    };
    child.kill().unwrap();
    // The rest of its output before it died. A line is one call of write: there are no halves.
    said.extend(output);
    let ended = child.wait_with_output().unwrap();
    let error = String::from_utf8_lossy(&ended.stderr);
    assert!(error.is_empty() && ended.status.code().is_none(), "{}: {error}", ended.status);
    let found = said
        .first()
        .map(|line| line.strip_prefix("found ").expect("the first line").parse().unwrap());
    let acknowledged = said.iter().skip(1).next_back().map(|line| line.parse().unwrap());
    Turn { found, acknowledged }
}

/// The bit of the program's options that is `paranoid_checks`.
const PARANOID: u64 = 32;

#[test]
fn nothing_acknowledged_is_lost_between_killed_processes_of_either_library() {
    let Some(libraries) = libraries() else { return };
    let program = compiled("handover.cc", &[]);
    let seed = campaign::seed();
    println!("TERRACE_SEED={seed}");
    let mut random = Rng::new(seed);
    let both = [libraries.debian.clone(), libraries.swapped()];
    let kills = scaled(400).max(12);
    let (mut kill, mut during_open, mut handed_over, mut writes) = (0, 0, 0, 0);
    while kill < kills {
        let dir = tempfile::tempdir().unwrap();
        let db = dir.path().join("db");
        let (history, turns) = (random.next_u64(), 10.min(kills - kill));
        let (mut acknowledged, mut last) = (0, None);
        for number in 0..turns {
            let library = random.below(2);
            let moment = match random.one_in(5) {
                true => Moment::Early(Duration::from_micros(random.between(0, 30_000) as u64)),
                false => Moment::After(random.between(1, 600)),
            };
            // LevelDB with `paranoid_checks` refuses logs of killed processes: its own with
            // `reuse_logs`, and such as were prepared ahead.
            let opened =
                if library == 0 { random.next_u64() & !PARANOID } else { random.next_u64() };
            let context = format!(
                "seed {seed}, history {history}, turn {number}, {}",
                both[library].display()
            );
            println!("{context}: {moment:?}, options {opened}");
            let turn = turn(&program, &both[library], &db, history, opened, moment);
            kill += 1;
            match turn.found {
                // One write may have been on its way.
                Some(found) => {
                    assert!(
                        (acknowledged..=acknowledged + 1).contains(&found),
                        "{context}: {acknowledged} acknowledged, {found} found"
                    );
                    handed_over += u64::from(last.is_some_and(|last| last != library));
                    last = Some(library);
                    acknowledged = turn.acknowledged.unwrap_or(found);
                }
                None => during_open += 1,
            }
        }
        writes += acknowledged;
    }
    println!(
        "{kills} kills, {during_open} of them during the open; {handed_over} times handed over; \
         {writes} writes, none lost"
    );
    assert!(handed_over > 0);
}
