//! A device that really cannot read: a file system on a loop device whose image was cut off under
//! it. Needs root.
//!
//! The test runs its own program once for each way of reading, because one of them is expected to
//! die.

use std::fs::{self, File, OpenOptions};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, Stdio};

use terrace::{Compression, Db, ErrorKind, Options, ReadAccess};
use terrace_testkit::skip::skip;

const SIGBUS: i32 = 7;
const EIO: i32 = 5;
/// 40 MB of them, so that no device reads ahead from one to the next that is asked for.
const KEYS: u32 = 20_000;
/// In the environment of the program that reads: how, and the image.
const ACCESS: &str = "BAD_DEVICE_ACCESS";
const IMAGE: &str = "BAD_DEVICE_IMAGE";
const MOUNTED: &str = "BAD_DEVICE_MOUNTED";

fn key(number: u32) -> Vec<u8> {
    format!("key{number:06}").into_bytes()
}

fn options() -> Options {
    Options::new()
        .create_if_missing(true)
        .compression(Compression::None)
        .max_file_size(64 << 20)
        .block_cache_size(0)
}

fn run(program: &str, arguments: &[&Path]) -> Result<(), String> {
    let mut command = Command::new(program);
    match program {
        "mkfs.ext4" => command.args(["-q", "-F"]),
        "mount" => command.args(["-o", "loop"]),
        _ => &mut command,
    };
    let output =
        command.args(arguments).stdin(Stdio::null()).output().map_err(|error| error.to_string())?;
    let message = String::from_utf8_lossy(&output.stderr);
    if output.status.success() { Ok(()) } else { Err(format!("{program}: {}", message.trim())) }
}

/// Unmounts.
struct Mounted<'a>(&'a Path);

impl Drop for Mounted<'_> {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(self.0).stderr(Stdio::null()).status();
    }
}

fn mount<'a>(image: &Path, dir: &'a Path) -> Result<Mounted<'a>, String> {
    run("mount", &[image, dir]).map(|()| Mounted(dir))
}

/// The program that reads. Part of the test below: it does nothing by itself.
#[test]
fn reader() {
    let Ok(access) = std::env::var(ACCESS) else { return };
    let path = |name| std::env::var_os(name).expect("set").into();
    let (image, mounted): (std::path::PathBuf, std::path::PathBuf) = (path(IMAGE), path(MOUNTED));
    let check = access.ends_with("check");
    let access = match access.as_str() {
        "auto" | "auto, check" => ReadAccess::Auto,
        "pread" => ReadAccess::Pread,
        _ => ReadAccess::Mapped,
    };
    let db =
        Db::open(mounted.join("db"), options().read_only(true).read_access(access)).expect("opens");
    assert!(db.get(key(0)).expect("reads").is_some());
    OpenOptions::new()
        .write(true)
        .open(image)
        .and_then(|image| image.set_len(0))
        .expect("cuts the image off");
    if check {
        let report = db.verify().map(|report| report.is_clean());
        assert!(!report.unwrap_or(false), "the device cannot read");
    }
    for number in [KEYS / 2, KEYS / 2, KEYS / 4] {
        let error = db.get(key(number)).expect_err("the device cannot read");
        assert_eq!((error.kind(), error.raw_os_error()), (ErrorKind::Io, Some(EIO)), "{error}");
        assert!(error.message().contains(".ldb") && error.message().contains("offset"), "{error}");
    }
    let scanned =
        db.iter().expect("iterates").find_map(Result::err).expect("the device cannot read");
    assert_eq!(scanned.kind(), ErrorKind::Io, "{scanned}");
    // What is in memory can still be read.
    assert!(db.get(key(0)).is_ok() || access == ReadAccess::Auto);
}

#[test]
fn a_device_that_cannot_read_is_an_error_unless_tables_are_mapped_unchecked() {
    let scratch = tempfile::tempdir().expect("a directory");
    let (original, image, dir) = (
        scratch.path().join("original"),
        scratch.path().join("image"),
        scratch.path().join("mounted"),
    );
    fs::create_dir(&dir).expect("creates");
    File::create(&original).and_then(|file| file.set_len(192 << 20)).expect("creates");
    let mounted = match run("mkfs.ext4", &[&original]).and_then(|()| mount(&original, &dir)) {
        Ok(mounted) => mounted,
        Err(reason) => {
            skip("loop-device", format_args!("no file system to cut off: {reason}"));
            return;
        }
    };
    let db = Db::open(dir.join("db"), options()).expect("creates");
    for number in 0..KEYS {
        db.put(key(number), format!("{number:02000}")).expect("writes");
    }
    db.compact_range::<&[u8]>(..).expect("compacts");
    db.close().expect("closes");
    drop(mounted);
    let ways = [("pread", None), ("auto", None), ("auto, check", None), ("mapped", Some(SIGBUS))];
    for (access, signal) in ways {
        fs::copy(&original, &image).expect("copies");
        let _mounted = mount(&image, &dir).expect("mounts");
        let program = std::env::current_exe().expect("a program");
        let reader = Command::new(program)
            .args(["--exact", "reader", "--nocapture"])
            .envs([
                (ACCESS, access.as_ref()),
                (IMAGE, image.as_os_str()),
                (MOUNTED, dir.as_os_str()),
            ])
            .output()
            .expect("runs");
        let (out, err) =
            (String::from_utf8_lossy(&reader.stdout), String::from_utf8_lossy(&reader.stderr));
        assert_eq!(reader.status.signal(), signal, "{access}: {out}{err}");
        assert_eq!(reader.status.success(), signal.is_none(), "{access}: {out}{err}");
    }
}
