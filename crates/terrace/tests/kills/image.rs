//! A file system in a file, on a loop device, whose power can be cut.
#![allow(unsafe_code)]

use std::fs::File;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, PoisonError};

use terrace_testkit::skip::skip;

/// Which file system.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Kind {
    Ext4,
    Xfs,
}

/// A mounted image; unmounted when dropped.
pub(crate) struct Image {
    file: PathBuf,
    mounted: PathBuf,
}

/// `_IOR('X', 125, u32)`: ext4's `EXT4_IOC_SHUTDOWN`, which is xfs's `XFS_IOC_GOINGDOWN`.
const SHUT_DOWN: libc::c_ulong = 0x8004_587d;
/// Nothing is written out, not even the journal.
const WITHOUT_FLUSHING: u32 = 2;
/// How a file system can be shut down: everything is written out before, or the journal, or
/// nothing.
pub(crate) const SHUTDOWN_FLAGS: [u32; 3] = [0, 1, WITHOUT_FLUSHING];

/// Held while a process is started, and while a file of an image is open: between fork and
/// exec a new process has every open file of this one, and a file system with an open file is too
/// busy to be unmounted.
static FORKS: Mutex<()> = Mutex::new(());

pub(crate) fn spawn(command: &mut Command) -> std::io::Result<Child> {
    // It returns when the process runs its own program.
    let _held = FORKS.lock().unwrap_or_else(PoisonError::into_inner);
    command.spawn()
}

fn run(program: &str, arguments: &[&str]) -> Result<(), String> {
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    match spawn(&mut command).and_then(Child::wait_with_output) {
        Ok(output) if output.status.success() => Ok(()),
        Ok(output) => Err(format!("{program}: {}", String::from_utf8_lossy(&output.stderr).trim())),
        Err(error) => Err(format!("{program}: {error}")),
    }
}

fn text(path: &Path) -> &str {
    path.to_str().expect("a path in UTF-8")
}

impl Image {
    /// An empty file system under `scratch`; `None`, and a loud word, where that cannot be done.
    pub(crate) fn make(kind: Kind, scratch: &Path) -> Option<Image> {
        let image = Image { file: scratch.join("image"), mounted: scratch.join("mounted") };
        match image.prepare(kind) {
            Ok(()) => Some(image),
            Err(reason) => {
                skip("loop-device", format_args!("no {kind:?} to cut the power of: {reason}"));
                None
            }
        }
    }

    fn prepare(&self, kind: Kind) -> Result<(), String> {
        // The least that mkfs.xfs takes.
        let (size, mkfs, force) = match kind {
            Kind::Ext4 => (128 << 20, "mkfs.ext4", "-F"),
            Kind::Xfs => (320 << 20, "mkfs.xfs", "-f"),
        };
        let file = File::create(&self.file).map_err(|error| error.to_string())?;
        file.set_len(size).map_err(|error| error.to_string())?;
        run(mkfs, &["-q", force, text(&self.file)])?;
        std::fs::create_dir(&self.mounted).map_err(|error| error.to_string())?;
        self.mount()
    }

    fn mount(&self) -> Result<(), String> {
        run("mount", &["-o", "loop", text(&self.file), text(&self.mounted)])
    }

    /// Where it is mounted.
    pub(crate) fn mounted(&self) -> PathBuf {
        self.mounted.clone()
    }

    /// From now on nothing reaches the disk.
    pub(crate) fn cut_power(&mut self) -> Result<(), String> {
        self.shut_down(WITHOUT_FLUSHING)
    }

    /// Shuts the file system down; `how` is one of [`SHUTDOWN_FLAGS`].
    pub(crate) fn shut_down(&mut self, how: u32) -> Result<(), String> {
        let _held = FORKS.lock().unwrap_or_else(PoisonError::into_inner);
        let root = File::open(&self.mounted).map_err(|error| error.to_string())?;
        // SAFETY: the request reads one u32 through the pointer, which is there.
        let done = unsafe { libc::ioctl(root.as_raw_fd(), SHUT_DOWN, &raw const how) };
        if done == 0 {
            Ok(())
        } else {
            Err(format!("shutdown: {}", std::io::Error::last_os_error()))
        }
    }

    /// The power is back. Everything that had files open there has ended.
    pub(crate) fn mount_again(&mut self) -> Result<(), String> {
        run("umount", &[text(&self.mounted)])?;
        self.mount()
    }
}

impl Drop for Image {
    fn drop(&mut self) {
        // Lazily: after a failed test something may still be open there.
        let mut command = Command::new("umount");
        command.arg("-l").arg(&self.mounted).stderr(Stdio::null());
        let _ = spawn(&mut command).and_then(|mut child| child.wait());
    }
}
