//! Logs on a real file system: what a reader finds, and what the system has of them.

use std::fs;
use std::path::PathBuf;
use std::sync::mpsc::channel;

use super::*;
use crate::env::system_call::ScatterCopy;
use crate::env::{CreateOptions, PosixEnv, posix_file};

fn create(path: &Path, expected_size: u64) -> MappedLog {
    let file = posix_file::create(path, CreateOptions::default()).unwrap();
    MappedLog::new(&SyncedFile::new(file, path), expected_size).unwrap()
}

/// A place where logs are mapped; `None`, and a loud word, if there is none.
fn place() -> Option<tempfile::TempDir> {
    let dir = tempfile::tempdir().unwrap();
    if !may_map(&File::open(dir.path()).unwrap()) {
        skip(
            "mapped-logs",
            format_args!("the file system of {} does not take them", dir.path().display()),
        );
        return None;
    }
    Some(dir)
}

fn xorshift(state: &mut u64) -> u64 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    *state
}

#[test]
fn holds_what_was_appended_then_zeros_then_nothing() {
    let Some(dir) = place() else { return };
    let seed = 0x5eed_0003_u64;
    println!("seed {seed:#x}");
    let mut random = seed;
    for round in 0..60 {
        let path = dir.path().join(format!("{round}.log"));
        // Small expectations end in `write`.
        let expected_size = [0, 1 << 16, 1 << 20, 4 << 20][round % 4];
        let mut log = create(&path, expected_size);
        let mut appended = Vec::new();
        let sizes = [10, 300, 70_000, 600_000][xorshift(&mut random) as usize % 4];
        for step in 0..xorshift(&mut random) % 200 {
            let size = xorshift(&mut random) as usize % sizes;
            let record: Vec<u8> = (0..size).map(|_| xorshift(&mut random) as u8).collect();
            if xorshift(&mut random).is_multiple_of(3) {
                let pieces = record.chunks(xorshift(&mut random) as usize % 5000 + 3);
                log.append_parts(&mut pieces.map(IoSlice::new).collect::<Vec<_>>(), &[]).unwrap();
            } else {
                log.append(&record).unwrap();
            }
            appended.extend_from_slice(&record);
            if step % 50 == 7 {
                log.sync().unwrap();
            }
            if appended.len() > 3 << 20 {
                break;
            }
        }
        let contents = fs::read(&path).unwrap();
        assert!(contents.starts_with(&appended), "round {round}");
        assert!(contents[appended.len()..].iter().all(|&byte| byte == 0), "round {round}");
        assert!(
            expected_size > 1 << 16 || appended.len() < 1 << 20 || log.plain.is_some(),
            "round {round}"
        );
        Box::new(log).close().unwrap();
        assert!(fs::read(&path).unwrap() == appended, "round {round}");
        fs::remove_file(&path).unwrap();
    }
}

/// Lets the pool prepare beyond `ready`, which it comes to while the writer does nothing: as soon as
/// it has come to other jobs.
fn wait_for_preparation(region: &LogRegion, ready: usize) {
    for _ in 0..1_000_000 {
        if region.ready() > ready {
            break;
        }
        let (done, finished) = channel();
        pool::shared().schedule(Priority::Flush, Box::new(move || done.send(()).unwrap()));
        finished.recv().unwrap();
    }
}

#[test]
fn every_window_is_prepared_before_it_is_needed() {
    let Some(dir) = place() else { return };
    let mut log = create(&dir.path().join("log"), 4 << 20);
    let region = log.shared.region.clone();
    let record = [1; 1 << 10];
    let mut windows = 0;
    while region.ready() < log.shared.expected {
        let ready = region.ready();
        while log.cursor.end_with(record.len()) <= ready {
            log.append(&record).unwrap();
        }
        wait_for_preparation(&region, ready);
        assert!(
            region.ready() > ready,
            "after {windows} windows nobody prepared what is behind {ready}"
        );
        windows += 1;
    }
    assert!(windows >= 5, "{windows} windows");
}

/// Bytes of the mapping at `base` that the process has in memory.
fn resident(base: usize) -> Option<usize> {
    let maps = fs::read_to_string("/proc/self/smaps").ok()?;
    let mapping = maps.split_once(&format!("\n{base:x}-"))?.1;
    let size = mapping.split_once("\nRss:")?.1.split_once(" kB")?.0;
    Some(size.trim().parse::<usize>().ok()? << 10)
}

#[test]
fn what_is_given_back_takes_no_memory_and_loses_no_byte() {
    let Some(dir) = place() else { return };
    let path = dir.path().join("log");
    let mut log = create(&path, 8 << 20);
    let record: Vec<u8> = (0..10_007_u32).map(|at| at as u8 | 1).collect();
    let mut expected = Vec::new();
    while expected.len() < 5 << 20 {
        log.append(&record).unwrap();
        expected.extend_from_slice(&record);
    }
    let region = &log.shared.region;
    // Nobody prepares beside this.
    let closed = log.shared.preparation.lock();
    let Some(before) = resident(region.address()) else {
        skip("smaps", "/proc/self/smaps does not tell");
        return;
    };
    region.give_back(log.cursor.position());
    let after = resident(region.address()).unwrap();
    drop(closed);
    assert!(after <= before && after < 2 << 20, "{before} bytes, then {after}");
    assert!(fs::read(&path).unwrap().starts_with(&expected));
    log.append(&record).unwrap();
    expected.extend_from_slice(&record);
    Box::new(log).close().unwrap();
    assert!(fs::read(&path).unwrap() == expected);
}

#[test]
fn of_a_small_log_among_many_the_process_has_only_the_page_that_is_being_filled() {
    let Some(dir) = place() else { return };
    let others = (0..FEW_LOGS).map(|other| create(&dir.path().join(other.to_string()), 1 << 20));
    let _others: Vec<_> = others.collect();
    let mut log = create(&dir.path().join("log"), 8 << 20);
    let region = log.shared.region.clone();
    let fill_to = |log: &mut MappedLog, end: usize| {
        while log.cursor.position() < end {
            log.append(&[7; 100]).unwrap();
        }
    };
    // Past the place where the third window is asked for, and before the next one.
    for ready in [64 << 10, 128 << 10] {
        fill_to(&mut log, ready / 2 + 8_000);
        wait_for_preparation(&region, ready);
        drop(log.shared.preparation.lock());
    }
    let page = rustix::param::page_size();
    for end in (90_000..120_000).step_by(3_000) {
        fill_to(&mut log, end);
        let Some(resident) = resident(region.address()) else {
            skip("smaps", "/proc/self/smaps does not tell");
            return;
        };
        assert!(resident <= page, "{resident} bytes at {end}");
    }
}

/// As the test kit's `skip`, which a packaged crate does not have.
fn skip(what: &str, reason: impl std::fmt::Display) {
    let allowed = std::env::var("TERRACE_MAY_SKIP").unwrap_or_default();
    let is_allowed = allowed.split_whitespace().any(|allowed| allowed == what);
    assert!(
        std::env::var_os("CI").is_none() || is_allowed,
        "under CI, {what} is missing: {reason}"
    );
    let name = std::thread::current().name().unwrap_or("a test").to_owned();
    use std::io::Write as _;
    let _ = writeln!(io::stderr(), "SKIPPED: {name}: no {what}: {reason}");
}

/// Whether logs can be zeroed out in `dir`; a loud word if not.
fn is_zeroed_out(dir: &Path) -> bool {
    let mut log = create(&dir.join("probe"), 1 << 20);
    log.append(&[1; 1000]).unwrap();
    let zeroed_out = log.zero_out();
    if !zeroed_out {
        skip(
            "mapped-logs",
            format_args!(
                "the file system of {} does not say what is in memory only",
                dir.display()
            ),
        );
    }
    zeroed_out
}

#[test]
fn a_recycled_log_is_reused_under_another_name() {
    let Some(dir) = place() else { return };
    if !is_zeroed_out(dir.path()) {
        return;
    }
    let seed = 0x5eed_0004_u64;
    println!("seed {seed:#x}");
    let mut random = seed;
    let mut name = dir.path().join("0.log");
    let mut log = create(&name, 4 << 20);
    for round in 1..=30_usize {
        let mut appended = Vec::new();
        let sizes = [300, 100_000][round / 3 % 2];
        let end = xorshift(&mut random) as usize % (6 << 20);
        while appended.len() < end {
            let record = vec![round as u8; xorshift(&mut random) as usize % sizes + 1];
            match record.len() < 32 << 10 {
                true => log.append(&record).unwrap(),
                false => log.append_parts(&mut [IoSlice::new(&record)], &[]).unwrap(),
            }
            appended.extend_from_slice(&record);
        }
        let contents = fs::read(&name).unwrap();
        assert!(contents.starts_with(&appended), "round {round}");
        assert!(contents[appended.len()..].iter().all(|&byte| byte == 0), "round {round}");
        if log.plain.is_some() {
            // It outgrew its mapping.
            assert!(!log.zero_out());
            fs::remove_file(&name).unwrap();
            log = create(&name, 4 << 20);
            continue;
        }
        // The system may have written it out of its own accord.
        if !log.zero_out() {
            assert!(
                !system_call::is_in_memory_only(log.shared.region.file.file.as_fd()),
                "round {round}"
            );
            fs::remove_file(&name).unwrap();
            log = create(&name, 4 << 20);
            continue;
        }
        assert!(fs::read(&name).unwrap().iter().all(|&byte| byte == 0), "round {round}");
        let next = dir.path().join(format!("{round}.log"));
        fs::rename(&name, &next).unwrap();
        log.set_path(&next);
        assert_eq!(log.shared.region.file.path(), next);
        name = next;
    }
    log.append(b"the end").unwrap();
    Box::new(log).close().unwrap();
    assert_eq!(fs::read(&name).unwrap(), b"the end");
}

#[test]
fn a_log_that_others_may_see_is_not_zeroed_out() {
    let Some(dir) = place() else { return };
    if !is_zeroed_out(dir.path()) {
        return;
    }
    let written = |name: &str, size: usize| {
        let mut log = create(&dir.path().join(name), 16 << 20);
        (0..size / 1000).for_each(|_| log.append(&[1; 1000]).unwrap());
        log
    };
    let mut synced = written("synced", 100_000);
    synced.sync().unwrap();
    synced.append(&[1; 1000]).unwrap();
    assert!(!synced.zero_out(), "on the disk");
    let mut written_back = written("written back", 100_000);
    File::open(dir.path().join("written back")).unwrap().sync_all().unwrap();
    assert!(!written_back.zero_out(), "on the disk by somebody else's hand");
    let mut linked = written("linked", 100_000);
    fs::hard_link(dir.path().join("linked"), dir.path().join("backup")).unwrap();
    assert!(!linked.zero_out(), "somebody's backup");
    assert!(
        !written("large", LARGEST_RECYCLED + 1000).zero_out(),
        "too large to be kept in memory"
    );
}

/// Appends `record` in parts, of which the first and the middle one are headers.
fn append_in_parts(log: &mut MappedLog, record: &[u8]) {
    let (first, rest) = record.split_at(7);
    let (payload, rest) = rest.split_at(rest.len() / 2);
    let (second, rest) = rest.split_at(7);
    let mut parts = [first, payload, &[], second, rest].map(IoSlice::new);
    log.append_parts(&mut parts, &[0, 3]).unwrap();
}

#[test]
fn what_comes_in_parts_is_stored_while_there_is_room() {
    let Some(dir) = place() else { return };
    let path = dir.path().join("log");
    let mut log = create(&path, 2 << 20);
    let record: Vec<u8> = (0..100_003_u32).map(|at| at as u8 | 1).collect();
    let mut expected = Vec::new();
    let stores = ScatterCopy::new().is_ok();
    for number in 0..60 {
        log.append(b"a small one").unwrap();
        append_in_parts(&mut log, &record);
        expected.extend_from_slice(&[b"a small one", &record[..]].concat());
        let contents = fs::read(&path).unwrap();
        assert!(contents.starts_with(&expected), "record {number}");
        assert!(contents[expected.len()..].iter().all(|&byte| byte == 0), "record {number}");
        let is_outgrown = expected.len() > (2 << 20) + (2 << 18) + RESERVE;
        assert_eq!(log.is_prepared(), stores && !is_outgrown, "record {number}");
        assert!(log.is_prepared() || contents.len() == expected.len(), "record {number}");
    }
    Box::new(log).close().unwrap();
    assert!(fs::read(&path).unwrap() == expected);
}

#[test]
fn what_comes_in_parts_ends_a_log_that_is_synced() {
    let Some(dir) = place() else { return };
    let path = dir.path().join("log");
    let mut log = create(&path, 8 << 20);
    log.append(b"a small one").unwrap();
    assert!(log.is_prepared() && fs::metadata(&path).unwrap().len() == FIRST_WINDOW as u64);
    log.sync().unwrap();
    let record: Vec<u8> = (0..100_003_u32).map(|at| at as u8 | 1).collect();
    append_in_parts(&mut log, &record);
    log.append(b"another").unwrap();
    let expected = [b"a small one", &record[..], b"another"].concat();
    assert!(!log.is_prepared() && fs::read(&path).unwrap() == expected);
    Box::new(log).close().unwrap();
    assert!(fs::read(&path).unwrap() == expected);
}

/// Large values are written, and a few of them among small ones do not end the mapping.
#[test]
fn a_log_of_large_records_is_written() {
    let Some(dir) = place() else { return };
    for (small, is_mapped) in [(0, false), (200, true)] {
        let path = dir.path().join(format!("log {small}"));
        let mut log = create(&path, 16 << 20);
        let mut expected = Vec::new();
        for record in 0..100_u8 {
            for _ in 0..small {
                log.append(&[record; 150]).unwrap();
                expected.extend([record; 150]);
            }
            let large = vec![record; 100_000];
            append_in_parts(&mut log, &large);
            expected.extend(large);
            assert!(log.plain.is_none() || expected.len() > LARGEST_RECYCLED);
        }
        assert_eq!(log.plain.is_none(), is_mapped, "{small} small ones");
        Box::new(log).close().unwrap();
        assert!(fs::read(&path).unwrap() == expected, "{small} small ones");
    }
}

#[test]
fn what_would_have_to_wait_for_space_is_known_before() {
    let Some(dir) = place() else { return };
    let mut log = create(&dir.path().join("log"), 8 << 20);
    assert!(log.takes_at_once(FIRST_WINDOW) && !log.takes_at_once(FIRST_WINDOW + 1));
    log.append(&[1; 60_000]).unwrap();
    assert!(log.takes_at_once(5_000));
    log.sync().unwrap();
    // A large one would be written, once the thread that prepares has been waited for.
    assert!(log.takes_at_once(1_000) && !log.takes_at_once(5_000));
    append_in_parts(&mut log, &[1; 10_000]);
    assert!(!log.is_prepared() && log.takes_at_once(1 << 20));
}

#[test]
fn filler_and_what_follows_it_are_stored_like_anything_else() {
    let Some(dir) = place() else { return };
    for filler in (1..20).chain([100, 70_000]) {
        for length in (1..20).chain([300, 65_536, 1 << 20]) {
            let path = dir.path().join(format!("{filler} {length}"));
            // A mapping of half a megabyte.
            let mut log = create(&path, 1 << 16);
            let data: Vec<u8> = (0..filler + length).map(|at| at as u8 | 1).collect();
            log.append(&[7; 60_000]).unwrap();
            log.append_filled(&data, filler).unwrap();
            log.append(b"behind").unwrap();
            let expected = [&[7; 60_000], &data[..], b"behind"].concat();
            assert!(fs::read(&path).unwrap().starts_with(&expected), "{filler} {length}");
            assert_eq!(log.is_prepared(), expected.len() < 1 << 19, "{filler} {length}");
            Box::new(log).close().unwrap();
            assert!(fs::read(&path).unwrap() == expected, "{filler} {length}");
            fs::remove_file(&path).unwrap();
        }
    }
}

#[test]
fn syncs_go_on_beside_appends() {
    let Some(dir) = place() else { return };
    let path = dir.path().join("log");
    let mut log = create(&path, 4 << 20);
    let syncer = log.syncer().unwrap();
    let (stop, stopped) = channel::<()>();
    let thread = std::thread::spawn(move || {
        while stopped.try_recv().is_err() {
            syncer.sync().unwrap();
        }
        syncer.sync().unwrap();
    });
    for number in 0..20_000_u64 {
        log.append(&[number.to_le_bytes(); 16].concat()).unwrap();
    }
    stop.send(()).unwrap();
    thread.join().unwrap();
    Box::new(log).close().unwrap();
    let contents = fs::read(&path).unwrap();
    assert!((0..20_000_u64).flat_map(|number| [number.to_le_bytes(); 16].concat()).eq(contents));
}

#[test]
fn a_forked_child_leaves_the_file_alone() {
    let Some(dir) = place() else { return };
    let path = dir.path().join("log");
    let mut log = create(&path, 1 << 20);
    log.append(&[1; 100]).unwrap();
    // What a fork looks like from within the child.
    let shared = Arc::get_mut(&mut log.shared).unwrap();
    shared.generation += 1;
    Box::new(log).close().unwrap();
    assert_eq!(fs::metadata(&path).unwrap().len(), FIRST_WINDOW as u64);
}

/// A file system of `size` bytes; unmounted when dropped.
struct Small(PathBuf);

impl Small {
    fn mount(dir: &Path, size: &str) -> Option<Small> {
        let options = format!("size={size}");
        let mounted = std::process::Command::new("mount")
            .args(["-t", "tmpfs", "-o", &options, "none"])
            .arg(dir)
            .stderr(std::process::Stdio::null())
            .status();
        match mounted {
            Ok(status) if status.success() => Some(Small(dir.into())),
            _ => {
                skip("mount", "no right to mount a small file system");
                None
            }
        }
    }
}

impl Drop for Small {
    fn drop(&mut self) {
        // Lazily: a thread that prepared a log may have it open for a moment longer.
        let _ = std::process::Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

#[test]
fn a_full_disk_is_an_error_not_a_signal() {
    let dir = tempfile::tempdir().unwrap();
    let Some(small) = Small::mount(dir.path(), "600k") else { return };
    let env = PosixEnv::shared();
    let path = small.0.join("log");
    let mut log = env.create_log(&path, CreateOptions::default(), 4 << 20).unwrap();
    let mut appended = Vec::new();
    let error = loop {
        let record = [appended.len() as u8 | 1; 1000];
        match log.append(&record) {
            Ok(()) => appended.extend_from_slice(&record),
            Err(error) => break error,
        }
    };
    assert!(error.is_out_of_space(), "{error}");
    assert!(appended.len() >= 500_000, "only {} bytes found room", appended.len());
    assert!(fs::read(&path).unwrap().starts_with(&appended));
    log.close().unwrap();
    // The same for records that are written. On a disk of its own: a thread that prepared the first
    // log may have it open for a moment longer, and with it its space.
    let dir = tempfile::tempdir().unwrap();
    let Some(small) = Small::mount(dir.path(), "600k") else { return };
    let path = small.0.join("log");
    let mut log = env.create_log(&path, CreateOptions::default(), 4 << 20).unwrap();
    let record = [9; 50_000];
    let written = (0..100)
        .take_while(|_| log.append_parts(&mut [IoSlice::new(&record)], &[]).is_ok())
        .count();
    assert!((9..=12).contains(&written), "{written} records");
    assert!(fs::read(&path).unwrap()[..written * record.len()].iter().all(|&byte| byte == 9));
    log.close().unwrap();
    // No room for a first window: created all the same, and the first append fails or not by
    // itself.
    fs::write(small.0.join("ballast"), vec![1; 8 << 10]).unwrap_or_default();
    let mut log =
        env.create_log(&small.0.join("second"), CreateOptions::default(), 4 << 20).unwrap();
    let error = (0..700).find_map(|_| log.append(&[7; 1000]).err()).unwrap();
    assert!(error.is_out_of_space(), "{error}");
    log.close().unwrap();
}

/// A sync that failed may have lost pages, be it the one of a new window, of which nobody else is
/// told.
#[test]
fn nothing_is_appended_behind_a_window_whose_sync_failed() {
    let Some(dir) = place() else { return };
    let big = vec![7; 2 * FIRST_WINDOW];
    type Append = fn(&mut MappedLog, &[u8]) -> Result<()>;
    let appends: [Append; 3] = [
        |log, data| log.append(data),
        |log, data| log.append_parts(&mut [IoSlice::new(data)], &[]),
        |log, data| log.append_filled(data, 0),
    ];
    for (at, append) in appends.into_iter().enumerate() {
        let mut log = create(&dir.path().join(format!("{at}.log")), 4 << 20);
        log.append(b"before").unwrap();
        log.shared.region.file.fail(io::Error::from_raw_os_error(libc::EIO));
        for _ in 0..2 {
            let error = append(&mut log, &big).unwrap_err();
            assert_eq!(error.raw_os_error(), Some(libc::EIO), "{at}: {error}");
        }
    }
}
