//! System calls of the real environment that fail, through `strace -e inject`: whichever it is, the
//! process lives on, each write is either acknowledged or an error, and nothing that was
//! acknowledged is lost.
//!
//! The process under test is this program. It tells what it does by datagrams, whose calls nothing
//! is injected into.

use std::env;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio, exit};
use std::time::{Duration, Instant};

use terrace::{Db, Options, ReadAccess, WriteOptions};
use terrace_testkit::campaign::campaign;
use terrace_testkit::rng::Rng;
use terrace_testkit::scale::scaled;
use terrace_testkit::skip::skip;

/// The directory of the database and the sockets, in the process under test.
const DIR: &str = "TERRACE_FAILING_CALLS_DIR";
/// The seed of its settings.
const SETTINGS: &str = "TERRACE_FAILING_CALLS_SETTINGS";
const PUTS: u32 = 150;
const TIMEOUT: Duration = Duration::from_secs(120);
/// How often the test looks whether the process still exists.
const LOOK: Duration = Duration::from_millis(200);

/// Calls, and the errors that Linux documents for them. Not `mmap`: memory that the allocator does
/// not get ends a process. Not `close`: its errors change nothing, but the standard library panics
/// at that of a directory, which Linux never returns.
const FAILURES: &[(&str, &[&str])] = &[
    ("openat", &["EIO", "EMFILE", "ENOSPC", "EACCES"]),
    ("read", &["EIO", "EINTR"]),
    ("pread64", &["EIO", "EINTR"]),
    ("write", &["EIO", "ENOSPC", "EINTR"]),
    ("pwrite64", &["EIO", "ENOSPC", "EINTR"]),
    ("fdatasync", &["EIO", "ENOSPC"]),
    ("fsync", &["EIO", "ENOSPC"]),
    ("msync", &["EIO"]),
    ("ftruncate", &["EIO", "ENOSPC"]),
    ("fallocate", &["EIO", "ENOSPC", "EOPNOTSUPP"]),
    ("rename", &["EIO", "ENOSPC"]),
    ("unlink", &["EIO", "EACCES"]),
    ("mkdir", &["EIO", "ENOSPC"]),
    ("getdents64", &["EIO"]),
    ("statx", &["EIO"]),
    ("fstat", &["EIO"]),
    ("lseek", &["EIO"]),
    ("fcntl", &["EAGAIN", "EIO"]),
    ("flock", &["EIO"]),
    ("madvise", &["EIO", "EAGAIN"]),
    ("clone3", &["EAGAIN"]),
];

fn value(number: u32) -> Vec<u8> {
    format!("{number:04}").repeat(1 + (number as usize * 37) % 400).into_bytes()
}

fn options(settings: u64) -> Options {
    let mut random = Rng::new(settings);
    Options::new()
        .create_if_missing(true)
        .write_buffer_size(64 << 10)
        .block_cache_size(0)
        .reuse_logs(random.one_in(2))
        .mapped_log(random.one_in(2))
        .read_access(*random.pick(&[ReadAccess::Auto, ReadAccess::Pread]))
}

/// The process under test.
#[test]
fn process_under_test() {
    let Some(dir) = env::var_os(DIR).map(PathBuf::from) else { return };
    let settings = env::var(SETTINGS).expect("settings").parse().expect("a number");
    let socket = UnixDatagram::bind(dir.join("child")).expect("binds");
    // By `sendto`: what goes to a connected socket goes by `write`.
    let tell = |text: String| {
        socket.send_to(text.as_bytes(), dir.join("parent")).expect("is heard");
    };
    tell("ready".to_owned());
    socket.recv(&mut [0]).expect("is told to begin");
    for round in 0..2 {
        let opened = (0..3).find_map(|_| {
            Db::open(dir.join("db"), options(settings))
                .map_err(|error| tell(format!("open: {error}")))
                .ok()
        });
        let Some(db) = opened else { break };
        for number in round * PUTS..(round + 1) * PUTS {
            let written = if number % 4 == 0 {
                db.put_with(number.to_be_bytes(), value(number), WriteOptions::sync())
            } else {
                db.put(number.to_be_bytes(), value(number))
            };
            match written {
                Ok(()) => tell(format!("acknowledged {number}")),
                Err(error) => tell(format!("put: {error}")),
            }
            let earlier = number / 2;
            match db.get(earlier.to_be_bytes()) {
                Ok(Some(found)) if found != value(earlier) => tell(format!("wrong {earlier}")),
                Ok(_) => (),
                Err(error) => tell(format!("get: {error}")),
            }
            if number % 50 == 20 {
                let result =
                    if number % 100 == 20 { db.flush() } else { db.compact_range::<&[u8]>(..) };
                result.unwrap_or_else(|error| tell(format!("flush: {error}")));
            }
        }
        db.close().unwrap_or_else(|error| tell(format!("close: {error}")));
    }
    tell("done".to_owned());
    // Before the test harness has something to write, which might fail.
    exit(0);
}

/// Starts the process under test, stopped before it opens its database, with `strace` attached.
/// None if that may not be.
fn start(dir: &Path, settings: u64, socket: &UnixDatagram, inject: &str) -> Option<[Child; 2]> {
    let mut child = Command::new(env::current_exe().expect("this program"))
        .args(["--exact", "failing_calls::process_under_test", "--nocapture"])
        .env(DIR, dir)
        .env(SETTINGS, settings.to_string())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("starts");
    let mut ready = [0; 5];
    while socket.recv(&mut ready).is_err() {
        assert!(
            child.try_wait().expect("is a child").is_none(),
            "the process under test does not start"
        );
    }
    let strace = Command::new("strace")
        .args(["-f", "-p", &child.id().to_string(), "-o", "/dev/null", "-e", inject])
        .stderr(Stdio::piped())
        .spawn();
    let attached = strace.map(|mut strace| {
        let mut line = String::new();
        let mut said = BufReader::new(strace.stderr.take().expect("piped"));
        said.read_line(&mut line).expect("strace says something");
        (strace, said, line)
    });
    match attached {
        Ok((mut strace, said, line)) if line.contains("attached") => {
            strace.stderr = Some(said.into_inner());
            Some([child, strace])
        }
        other => {
            skip(
                "right",
                format_args!("strace cannot be attached: {:?}", other.map(|(_, _, line)| line)),
            );
            child.kill().expect("is there");
            child.wait().expect("ends");
            None
        }
    }
}

/// The output of the process before it ended.
fn listen(socket: &UnixDatagram, child: &mut Child) -> Result<Vec<String>, String> {
    let mut told = Vec::new();
    let (mut last, mut ended) = (Instant::now(), false);
    loop {
        let mut buffer = [0; 1000];
        match socket.recv(&mut buffer) {
            Ok(count) if &buffer[..count] == b"done" => return Ok(told),
            Ok(count) => {
                told.push(String::from_utf8_lossy(&buffer[..count]).into_owned());
                last = Instant::now();
            }
            // What it told last has been read by the second time.
            Err(_) if ended => return Err(format!("it died: {told:?}")),
            Err(_) if last.elapsed() > TIMEOUT => return Err(format!("it hangs: {told:?}")),
            Err(_) => ended = child.try_wait().map_err(|error| error.to_string())?.is_some(),
        }
    }
}

/// Runs the process with one failure. Whether it met it cannot be told from outside; how many
/// errors it told is.
fn run(seed: u64) -> Result<Option<usize>, String> {
    let mut random = Rng::new(seed);
    let (call, errors) = *random.pick(FAILURES);
    let longest = *random.pick(&[3, 20, 200]);
    let error = *random.pick(errors);
    // An interrupted call is repeated: for ever, if it always is interrupted.
    let again = if error == "EINTR" { "+2" } else { *random.pick(&["", "", "+", "+2"]) };
    let inject = format!("inject={call}:error={error}:when={}{again}", random.between(1, longest));
    let scratch = tempfile::tempdir().map_err(|error| error.to_string())?;
    let socket =
        UnixDatagram::bind(scratch.path().join("parent")).map_err(|error| error.to_string())?;
    socket.set_read_timeout(Some(LOOK)).map_err(|error| error.to_string())?;
    let settings = random.next_u64();
    let Some([mut child, mut strace]) = start(scratch.path(), settings, &socket, &inject) else {
        return Ok(None);
    };
    socket.send_to(b"!", scratch.path().join("child")).map_err(|error| error.to_string())?;
    let told = listen(&socket, &mut child);
    if told.is_err() {
        let _ = child.kill();
    }
    let mut said = String::new();
    let _ = child.stderr.take().expect("piped").read_to_string(&mut said);
    let status = child.wait().map_err(|error| error.to_string())?;
    let _ = strace.wait();
    let context = |error: String| format!("{inject}: {error}\n{status}: {said}");
    let told = told.map_err(context)?;
    if !status.success() || said.contains("panicked") {
        return Err(context(format!("{told:?}")));
    }
    // The disk is well again.
    let db = Db::open(scratch.path().join("db"), options(settings))
        .map_err(|error| context(error.to_string()))?;
    for text in &told {
        if text.starts_with("wrong") {
            return Err(context(text.clone()));
        }
        let Some(number) = text.strip_prefix("acknowledged ") else { continue };
        let number: u32 = number.parse().map_err(|_| text.clone())?;
        let found = db.get(number.to_be_bytes()).map_err(|error| context(error.to_string()))?;
        if found.as_deref() != Some(&value(number)) {
            return Err(context(format!("{number} was acknowledged; {told:?}")));
        }
    }
    for entry in db.iter().map_err(|error| context(error.to_string()))? {
        let (key, found) = entry.map_err(|error| context(error.to_string()))?;
        let number = u32::from_be_bytes(key[..].try_into().map_err(|_| "a key that nobody wrote")?);
        if found != value(number) {
            return Err(context(format!("the value of {number}")));
        }
    }
    db.put("healed", "").map_err(|error| context(error.to_string()))?;
    db.close().map_err(|error| context(error.to_string()))?;
    Ok(Some(told.iter().filter(|text| !text.starts_with("acknowledged")).count()))
}

#[test]
fn a_system_call_that_fails_ends_no_process_and_loses_nothing_acknowledged() {
    let (mut runs, mut errors) = (0, 0);
    campaign("failing_system_calls", scaled(60), |seed| {
        if let Some(told) = run(seed)? {
            runs += 1;
            errors += told;
        }
        Ok(())
    });
    println!("failing_system_calls: {runs} processes, {errors} errors told");
}
