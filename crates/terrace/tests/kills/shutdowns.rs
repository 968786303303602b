//! File systems that shut down, or fill up, under a process that writes and reads: the process gets
//! errors, never a signal.

use std::fs::File;
use std::io::Write;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use terrace::{Db, Options, ReadAccess, WriteOptions};
use terrace_testkit::campaign::campaign;
use terrace_testkit::rng::{Rng, mix};
use terrace_testkit::scale::scaled;
use terrace_testkit::watchdog::Watchdog;

use crate::image::{Image, Kind, SHUTDOWN_FLAGS, spawn};
use crate::worker::{self, Worker};

/// The database of `seed`. Tables are read with `pread`, so that a signal can only come from the
/// log.
pub(crate) fn options(seed: u64) -> Options {
    let write_buffer_size = [64 << 10, 512 << 10, 4 << 20][mix(seed) as usize % 3];
    Options::new()
        .create_if_missing(true)
        .write_buffer_size(write_buffer_size)
        .read_access(ReadAccess::Pread)
        .mapped_log(true)
}

/// Writes, while a second thread reads, until a write fails.
pub(crate) fn write_until_error(
    db: &Db,
    seed: u64,
    acknowledged: impl Fn(u64),
) -> terrace::Result<()> {
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut rng = Rng::new(!seed);
            while !is_over.load(Ordering::Relaxed) {
                let _ = db.get(key(rng.below(20_000) as u64));
            }
        });
        let mut rng = Rng::new(seed);
        let result = (0..).try_for_each(|number| {
            // Now and then a record that is written and not stored, and a sync, after which pages
            // are write-protected.
            let length = if rng.one_in(500) { 100_000 } else { rng.below(300) };
            let sync = seed.is_multiple_of(2) && rng.one_in(100);
            db.put_with(key(number % 20_000), vec![number as u8; length], WriteOptions { sync })?;
            acknowledged(number);
            Ok(())
        });
        is_over.store(true, Ordering::Relaxed);
        result
    })
}

fn key(number: u64) -> [u8; 8] {
    mix(number).to_be_bytes()
}

fn shutdowns(kind: Kind, test: &str) {
    worker::run_if_asked();
    let watchdog = Watchdog::new(Duration::from_secs(120), test.to_owned());
    let scratch = tempfile::tempdir().expect("a directory");
    let Some(mut image) = Image::make(kind, scratch.path()) else { return };
    let mut count = 0;
    campaign(test, scaled(200), |seed| {
        watchdog.feed(format!("{test}: seed {seed}"));
        let path = image.mounted().join(format!("db-{seed}"));
        let mut rng = Rng::new(seed);
        let mut worker = Worker::start_for_shutdown(test, &path, seed);
        worker.wait_for(rng.below(4_000) as u64)?;
        image.shut_down(SHUTDOWN_FLAGS[rng.below(SHUTDOWN_FLAGS.len())])?;
        let status = worker.wait_for_end()?;
        image.mount_again()?;
        std::fs::remove_dir_all(&path).map_err(|error| error.to_string())?;
        count += 1;
        match (status.signal(), status.success()) {
            (Some(signal), _) => Err(format!("KILLED by signal {signal}")),
            (None, true) => Ok(()),
            (None, false) => Err(format!("the worker ended with {status}")),
        }
    });
    println!("{test}: {count} shutdowns of {kind:?}, 0 signals");
}

/// Takes all the space that a file system has left.
fn fill(path: &Path) -> Result<(), String> {
    let mut file = File::create(path).map_err(|error| error.to_string())?;
    for length in [1 << 20, 4 << 10] {
        while file.write_all(&vec![1; length]).is_ok() {}
    }
    // Space that was promised and not taken goes back when the file is written out.
    let _ = file.sync_all();
    Ok(())
}

/// A live database is copied as `cp` does by default, which on XFS lets both share their blocks;
/// then the disk fills up.
fn copies_on_a_full_disk(kind: Kind, test: &str) {
    worker::run_if_asked();
    let watchdog = Watchdog::new(Duration::from_secs(120), test.to_owned());
    let scratch = tempfile::tempdir().expect("a directory");
    let Some(image) = Image::make(kind, scratch.path()) else { return };
    let mut count = 0;
    campaign(test, scaled(20), |seed| {
        watchdog.feed(format!("{test}: seed {seed}"));
        let path = image.mounted().join(format!("db-{seed}"));
        let (copy, ballast) = (image.mounted().join("copy"), image.mounted().join("ballast"));
        let mut rng = Rng::new(seed);
        let mut worker = Worker::start_for_shutdown(test, &path, seed);
        worker.wait_for(rng.below(4_000) as u64)?;
        // Files are removed while `cp` copies: a missed one does no harm.
        let mut copying = Command::new("cp");
        copying.args(["-r", "--reflink=auto"]).args([&path, &copy]).stderr(Stdio::null());
        spawn(&mut copying)
            .and_then(|mut copying| copying.wait())
            .map_err(|error| error.to_string())?;
        fill(&ballast)?;
        let status = worker.wait_for_end()?;
        std::fs::remove_file(&ballast).map_err(|error| error.to_string())?;
        for directory in [&path, &copy] {
            std::fs::remove_dir_all(directory).map_err(|error| error.to_string())?;
        }
        // ext4 gives removed blocks back when its journal has been written.
        File::open(image.mounted())
            .and_then(|root| root.sync_all())
            .map_err(|error| error.to_string())?;
        count += 1;
        match (status.signal(), status.success()) {
            (Some(signal), _) => Err(format!("KILLED by signal {signal}")),
            (None, true) => Ok(()),
            (None, false) => Err(format!("the worker ended with {status}")),
        }
    });
    println!("{test}: {count} copies on {kind:?}, 0 signals");
}

#[test]
fn a_copy_of_a_live_database_on_a_full_ext4_is_an_error_and_not_a_signal() {
    copies_on_a_full_disk(
        Kind::Ext4,
        "shutdowns::a_copy_of_a_live_database_on_a_full_ext4_is_an_error_and_not_a_signal",
    );
}

#[test]
fn a_copy_of_a_live_database_on_a_full_xfs_is_an_error_and_not_a_signal() {
    copies_on_a_full_disk(
        Kind::Xfs,
        "shutdowns::a_copy_of_a_live_database_on_a_full_xfs_is_an_error_and_not_a_signal",
    );
}

#[test]
fn a_shutdown_of_ext4_is_an_error_and_not_a_signal() {
    shutdowns(Kind::Ext4, "shutdowns::a_shutdown_of_ext4_is_an_error_and_not_a_signal");
}

#[test]
fn a_shutdown_of_xfs_is_an_error_and_not_a_signal() {
    shutdowns(Kind::Xfs, "shutdowns::a_shutdown_of_xfs_is_an_error_and_not_a_signal");
}
