//! The directory of a run: reading and writing its two files.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde::Serialize;

use super::{Measurement, Measurements, Run, SCHEMA};

/// The name of the description.
pub const RUN: &str = "run.json";
/// The name of the measurements.
pub const MEASUREMENTS: &str = "measurements.jsonl";

/// A directory with a run in it.
#[derive(Clone, Debug)]
pub struct Directory {
    path: PathBuf,
}

impl Directory {
    /// The run in `path`; nothing is read or written yet.
    #[must_use]
    pub fn new(path: &Path) -> Directory {
        Directory { path: path.to_owned() }
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether there is a run here.
    #[must_use]
    pub fn holds_a_run(&self) -> bool {
        self.path.join(RUN).exists() || self.path.join(MEASUREMENTS).exists()
    }

    /// Reads both files.
    ///
    /// # Errors
    /// Names the file, and the line of a measurement that cannot be read. Only a last line without
    /// its end, which an interrupted run leaves behind, is dropped without a word.
    pub fn read(&self) -> Result<(Run, Measurements), String> {
        Ok((self.read_run()?, self.read_measurements()?))
    }

    /// Reads `run.json`.
    ///
    /// # Errors
    /// Names the file.
    pub fn read_run(&self) -> Result<Run, String> {
        let path = self.path.join(RUN);
        let text = fs::read_to_string(&path).map_err(|e| match e.kind() {
            io::ErrorKind::NotFound => {
                format!("{}: there is no run here ({RUN} is missing)", self.path.display())
            }
            _ => format!("{}: {e}", path.display()),
        })?;
        let schema = serde_json::from_str::<serde_json::Value>(&text)
            .map_err(|e| format!("{}: not a run: {e}", path.display()))?
            .get("schema")
            .and_then(serde_json::Value::as_u64);
        match schema {
            Some(schema) if schema == u64::from(SCHEMA) => {}
            Some(schema) => {
                return Err(format!(
                    "{}: schema {schema}; this program reads schema {SCHEMA}",
                    path.display()
                ));
            }
            None => return Err(format!("{}: not a run: it has no schema", path.display())),
        }
        serde_json::from_str(&text).map_err(|e| format!("{}: not a run: {e}", path.display()))
    }

    /// Reads `measurements.jsonl`; none if there is no such file.
    ///
    /// # Errors
    /// Names the file, and the line that cannot be read.
    pub fn read_measurements(&self) -> Result<Measurements, String> {
        let path = self.path.join(MEASUREMENTS);
        let bytes = match fs::read(&path) {
            Ok(bytes) => bytes,
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Measurements::new()),
            Err(e) => return Err(format!("{}: {e}", path.display())),
        };
        let mut measurements = Measurements::new();
        // The rest behind the last line's end is an unfinished line.
        for (at, line) in bytes.split_inclusive(|byte| *byte == b'\n').enumerate() {
            let Some(line) = line.strip_suffix(b"\n") else { break };
            let measurement: Measurement = serde_json::from_slice(line).map_err(|e| {
                format!("{}, line {}: not a measurement: {e}", path.display(), at + 1)
            })?;
            measurements.add(measurement);
        }
        Ok(measurements)
    }

    /// Writes `run.json`, whole or not at all.
    ///
    /// # Errors
    /// Names the file.
    pub fn write_run(&self, run: &Run) -> Result<(), String> {
        write_whole(&self.path.join(RUN), &json(run)?)
    }

    /// Opens `measurements.jsonl` to append to it. A line without its end is cut off first.
    ///
    /// # Errors
    /// Names the file.
    pub fn appender(&self) -> Result<Appender, String> {
        let path = self.path.join(MEASUREMENTS);
        let open = || -> io::Result<File> {
            let file = OpenOptions::new().create(true).append(true).open(&path)?;
            let bytes = fs::read(&path)?;
            let whole = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
            file.set_len(whole as u64)?;
            Ok(file)
        };
        let file = open().map_err(|e| format!("{}: {e}", path.display()))?;
        Ok(Appender { path, file })
    }
}

/// Appends measurements.
#[derive(Debug)]
pub struct Appender {
    path: PathBuf,
    file: File,
}

impl Appender {
    /// Appends one, in a single write.
    ///
    /// # Errors
    /// Names the file.
    pub fn append(&mut self, measurement: &Measurement) -> Result<(), String> {
        let failed = |e: &dyn std::fmt::Display| format!("{}: {e}", self.path.display());
        let mut line = serde_json::to_vec(measurement).map_err(|e| failed(&e))?;
        line.push(b'\n');
        let length = self.file.metadata().map_err(|e| failed(&e))?.len();
        self.file.write_all(&line).map_err(|e| {
            // Half a line would make the next one unreadable.
            let _ = self.file.set_len(length);
            failed(&e)
        })
    }
}

fn json(value: &impl Serialize) -> Result<Vec<u8>, String> {
    let mut bytes = serde_json::to_vec_pretty(value).map_err(|e| e.to_string())?;
    bytes.push(b'\n');
    Ok(bytes)
}

/// Writes a file so that a reader, or a full disk, never leaves half of it in the place of an
/// earlier one.
///
/// # Errors
/// Names the file.
pub fn write_whole(path: &Path, bytes: &[u8]) -> Result<(), String> {
    let mut new = path.as_os_str().to_owned();
    new.push(".new");
    let new = PathBuf::from(new);
    fs::write(&new, bytes).and_then(|()| fs::rename(&new, path)).map_err(|e| {
        let _ = fs::remove_file(&new);
        format!("{}: {e}", path.display())
    })
}
