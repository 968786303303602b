//! Signals: before SIGINT, SIGTERM or SIGHUP ends the command, its temporary files go; and
//! in the shell SIGINT ends a scan instead of the session.
//!
//! 1. A signal that was ignored when the command started, as under `nohup`, stays ignored.
//! 2. The process ends by the signal, so that its parent sees which one it was.
//! 3. Only files whose loss cannot matter are removed: nothing durable names them.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, Once, PoisonError};
use std::thread;

use signal_hook::consts::signal::SIGXFSZ;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::directory::{FileType, list_files};
use crate::failure::{Failure, Result};

/// How often removal is tried while the command's threads still make files.
const REMOVALS: usize = 100;

static WATCH: Once = Once::new();
static TEMPORARY: Mutex<Vec<Temporary>> = Mutex::new(Vec::new());
/// Whether the first SIGINT asks the current command to end, and nothing more.
static IS_POLITE: AtomicBool = AtomicBool::new(false);
static IS_INTERRUPTED: AtomicBool = AtomicBool::new(false);
static IS_ENDING: AtomicBool = AtomicBool::new(false);

/// The files that a signal removes.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Temporary {
    /// A file, or a directory and all that is in it.
    Path(PathBuf),
    /// The temporary files in a database's directory.
    FilesIn(PathBuf),
}

/// Keeps something registered for removal until it is dropped.
pub(crate) struct Registered(Temporary);

impl Drop for Registered {
    fn drop(&mut self) {
        let mut registered = temporary();
        if let Some(at) = registered.iter().position(|other| *other == self.0) {
            registered.swap_remove(at);
        }
    }
}

/// Makes a temporary file or directory that a signal removes, at whatever moment it comes.
pub(crate) fn make_temporary<T: AsRef<Path>>(
    make: impl FnOnce() -> io::Result<T>,
) -> io::Result<(T, Registered)> {
    watch();
    // A signal that comes now waits until the file is registered.
    let mut registered = temporary_unless_ending();
    let made = make()?;
    let what = Temporary::Path(absolute(made.as_ref()));
    registered.push(what.clone());
    Ok((made, Registered(what)))
}

/// Runs `make`, which makes a registered directory again if it is gone: a signal waits until `make`
/// has ended. Where nothing is registered, it does not wait.
pub(crate) fn make_uninterrupted<T>(make: impl FnOnce() -> T) -> T {
    let _registered = Some(temporary_unless_ending()).filter(|registered| !registered.is_empty());
    make()
}

/// Has a signal remove the temporary files of the database in `path`, which this process has open
/// for writing.
pub(crate) fn remove_temporary_files_at_signal(path: &Path) -> Registered {
    watch();
    let what = Temporary::FilesIn(absolute(path));
    temporary_unless_ending().push(what.clone());
    Registered(what)
}

/// A working directory that cannot be told is one that does not change either.
fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}

/// Does not return if the process ends.
fn temporary_unless_ending() -> MutexGuard<'static, Vec<Temporary>> {
    let registered = temporary();
    if !IS_ENDING.load(Ordering::Relaxed) {
        return registered;
    }
    drop(registered);
    loop {
        thread::park();
    }
}

fn temporary() -> MutexGuard<'static, Vec<Temporary>> {
    TEMPORARY.lock().unwrap_or_else(PoisonError::into_inner)
}

/// From now on the first SIGINT during a command ends that command, if it [checks](check), and the
/// second one the process.
pub(crate) fn interrupt_commands() {
    IS_POLITE.store(true, Ordering::Relaxed);
    watch();
}

/// Forgets an interrupt that came too late for the last command.
pub(crate) fn forget_interrupt() {
    IS_INTERRUPTED.store(false, Ordering::Relaxed);
}

/// Fails if the current command is to end; does not return if the process ends.
pub(crate) fn check() -> Result<()> {
    while IS_ENDING.load(Ordering::Relaxed) {
        // A file that is created now would not be removed any more.
        thread::park();
    }
    match IS_INTERRUPTED.load(Ordering::Relaxed) {
        true => Err(Failure::Interrupted),
        false => Ok(()),
    }
}

/// Has a write behind the limit of a file's size (`ulimit -f`) fail, where the signal for it would
/// end the process: a full limit is a failure as a full disk is.
pub(crate) fn survive_file_size_limit() {
    // Without a handler the signal ends the process as ever.
    let _ = signal_hook::flag::register(SIGXFSZ, Arc::default());
}

fn watch() {
    WATCH.call_once(|| {
        let watched = [SIGINT, SIGTERM, SIGHUP].into_iter().filter(|&signal| !is_ignored(signal));
        // Without the watch signals end the process as ever, and temporary files stay.
        if let Ok(mut signals) = Signals::new(watched) {
            let _ = thread::Builder::new().name("signals".into()).spawn(move || {
                signals.forever().for_each(receive);
            });
        }
    });
}

fn receive(signal: i32) {
    let is_first = signal == SIGINT
        && IS_POLITE.load(Ordering::Relaxed)
        && !IS_INTERRUPTED.swap(true, Ordering::Relaxed);
    if is_first {
        return;
    }
    IS_ENDING.store(true, Ordering::Relaxed);
    // Held until the end: a command that fails for want of its files cannot end the process first,
    // nor make them again.
    let registered = temporary();
    registered.iter().for_each(remove);
    let _ = signal_hook::low_level::emulate_default_handler(signal);
}

fn remove(what: &Temporary) {
    for _ in 0..REMOVALS {
        let is_gone = match what {
            Temporary::Path(path) if path.is_dir() => std::fs::remove_dir_all(path).is_ok(),
            Temporary::Path(path) => std::fs::remove_file(path).is_ok() || !path.exists(),
            Temporary::FilesIn(directory) => {
                let mut files = list_files(directory).unwrap_or_default();
                files.retain(|file| file.file_type == FileType::Temporary);
                files
                    .iter()
                    .for_each(|file| drop(std::fs::remove_file(directory.join(&file.name))));
                files.is_empty()
            }
        };
        if is_gone {
            return;
        }
    }
}

/// Whether the process was started with `signal` ignored, as far as the system tells.
fn is_ignored(signal: i32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    mask >> (signal - 1) & 1 == 1
}
