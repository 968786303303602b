//! Everything that reads bytes from disk, fed with arbitrary bytes: no panic, no endless loop, no
//! memory out of proportion, and no state that contradicts itself.
//!
//! Built for `fuzz/` with `--cfg fuzzing`, and for tests: they replay the corpus that is kept
//! there.

use std::path::Path;
use std::sync::Arc;

use crate::base::comparator::KeyOrder;
use crate::base::error::ErrorKind;
use crate::base::internal_key::InternalOrder;
use crate::env::{Env, MemEnv, ReadAccess};
use crate::filter::BloomFilterPolicy;
use crate::log::{LogItem, LogReader};
use crate::table::fuzzing as table_fuzzing;
use crate::version::edit::VersionEdit;
use crate::version::version::Version;
use crate::write::batch::WriteBatch;
use crate::write::batch_view::Operation;

use super::transaction::prepared_record;
use super::{Db, Options, RecoveryMode, repair, verify};

/// A target: its name, the safety that it removes where builds can (see `base/mutation.rs`;
/// checksums keep a fuzzer out), and what it does with its input.
pub struct Target {
    /// The name, which its corpus has too.
    pub name: &'static str,
    /// The value of `TERRACE_MUTANT`.
    pub removed: &'static str,
    /// Panics if something is wrong.
    pub run: fn(&[u8]),
}

/// All targets of this crate.
pub const TARGETS: [Target; 8] = [
    Target { name: "log", removed: "log-checksum", run: log },
    Target { name: "edit", removed: "", run: edit },
    Target { name: "block", removed: "", run: table_fuzzing::block },
    Target { name: "filter", removed: "", run: table_fuzzing::filter },
    Target { name: "compression", removed: "", run: table_fuzzing::compression },
    Target { name: "table", removed: "block-checksum", run: table_fuzzing::table },
    Target { name: "batch", removed: "", run: batch },
    Target { name: "directory", removed: "block-checksum,log-checksum", run: directory },
];

/// Reads a log to its end, with and without tolerance of gaps.
fn log(data: &[u8]) {
    let env = MemEnv::new();
    env.write("log", data.to_vec());
    for tolerant in [false, true] {
        let file = env.open_random(Path::new("log"), ReadAccess::Pread).expect("it is there");
        let mut reader = LogReader::new(file, "log".to_owned());
        if tolerant {
            reader = reader.tolerating_gaps();
        }
        let (mut items, mut last_end) = (0, 0);
        loop {
            items += 1;
            assert!(items <= data.len() + 2, "more items than bytes");
            match reader.next().expect("memory can be read") {
                LogItem::Record { begin, offset, end, data: payload, .. } => {
                    assert!(
                        last_end <= begin
                            && begin <= offset
                            && offset + payload.len() as u64 <= end
                            && end <= data.len() as u64
                    );
                    last_end = end;
                }
                LogItem::Damage { offset, length, .. } => {
                    assert!(offset + length <= data.len() as u64)
                }
                LogItem::End { offset, .. } => {
                    assert_eq!(offset, last_end);
                    break;
                }
            }
        }
    }
}

/// Decodes a record of a MANIFEST, which must survive being encoded again, and applies it.
fn edit(data: &[u8]) {
    let Ok(edit) = VersionEdit::decode(data) else { return };
    let again = VersionEdit::decode(&edit.encode()).expect("what was encoded can be decoded");
    assert_eq!(again.new_files, edit.new_files);
    assert_eq!(again.deleted_files, edit.deleted_files);
    let order = InternalOrder::new(KeyOrder::default());
    let _ = Version::default().apply(&edit, &order, &Arc::default());
}

/// Takes a batch in LevelDB's form.
fn batch(data: &[u8]) {
    prepared_record::decode_arbitrary(data);
    let Ok(batch) = WriteBatch::from_bytes(data.to_vec()) else { return };
    let mut copy = WriteBatch::new();
    for operation in batch.iter() {
        match operation.expect("a batch is checked as a whole") {
            Operation::Put { key, value } => copy.put(key, value),
            Operation::Delete { key } => copy.delete(key),
        }
    }
    assert_eq!(copy.len(), batch.len());
    copy.append(&batch);
    assert_eq!(copy.len(), 2 * batch.len());
}

/// The files of a packed directory: each a byte for its kind, one for its number, two for its
/// length, and its bytes.
fn unpack(mut data: &[u8]) -> Vec<(String, Vec<u8>)> {
    let mut files = Vec::new();
    while let Some((&[kind, number, low, high], rest)) = data.split_first_chunk::<4>() {
        let length = usize::from(u16::from_le_bytes([low, high])).min(rest.len());
        let name = match kind % 6 {
            0 => "CURRENT".to_owned(),
            1 => format!("MANIFEST-{number:06}"),
            2 => format!("{number:06}.log"),
            3 => format!("{number:06}.ldb"),
            4 => format!("{number:06}.sst"),
            _ => format!("{number:06}.dbtmp"),
        };
        files.push((name, rest[..length].to_vec()));
        data = &rest[length..];
    }
    files
}

/// Packs the files of a directory for [`TARGETS`]' `directory`; `None` if one does not fit.
pub fn pack(mode: u8, files: &[(String, Vec<u8>)]) -> Option<Vec<u8>> {
    let mut packed = vec![mode];
    for (name, bytes) in files {
        let digits: String = name.chars().filter(char::is_ascii_digit).collect();
        let kind = match name.as_str() {
            "CURRENT" => 0,
            name if name.starts_with("MANIFEST-") => 1,
            name if name.ends_with(".log") => 2,
            name if name.ends_with(".ldb") => 3,
            name if name.ends_with(".sst") => 4,
            _ => continue,
        };
        let number: u8 = if digits.is_empty() { 0 } else { digits.parse().ok()? };
        let [low, high] = u16::try_from(bytes.len()).ok()?.to_le_bytes();
        packed.extend_from_slice(&[kind, number, low, high]);
        packed.extend_from_slice(bytes);
    }
    Some(packed)
}

/// Examples for other targets in the files of a sound database: the target's name and the input.
pub fn parts(name: &str, bytes: &[u8]) -> Vec<(&'static str, Vec<u8>)> {
    if name.ends_with(".ldb") {
        let whole = [("table", bytes.to_vec())];
        return whole.into_iter().chain(table_fuzzing::parts(bytes)).collect();
    }
    let payload = if name.ends_with(".log") { "batch" } else { "edit" };
    let env = MemEnv::new();
    env.write("log", bytes.to_vec());
    let file = env.open_random(Path::new("log"), ReadAccess::Pread).expect("it is there");
    let mut reader = LogReader::new(file, "log".to_owned());
    let mut parts = vec![("log", bytes.to_vec())];
    while let Ok(item) = reader.next() {
        match item {
            LogItem::Record { data, .. } => parts.push((payload, data.to_vec())),
            LogItem::Damage { .. } => {}
            LogItem::End { .. } => break,
        }
    }
    parts
}

/// Opens a directory, reads and changes what is there, and checks and repairs it.
fn directory(data: &[u8]) {
    let Some((&mode, data)) = data.split_first() else { return };
    let dir = Path::new("/db");
    let fresh = || {
        let env = MemEnv::new();
        env.create_dir(dir, 0o755).expect("memory");
        unpack(data).into_iter().for_each(|(name, bytes)| env.write(dir.join(name), bytes));
        env
    };
    let options = |env: MemEnv| {
        let recovery = match mode >> 1 & 3 {
            1 => RecoveryMode::Strict,
            2 => RecoveryMode::Salvage,
            _ => RecoveryMode::Prefix,
        };
        Options::new()
            .env(Arc::new(env))
            .create_if_missing(mode & 1 == 1)
            .recovery_mode(recovery)
            .reuse_logs(mode & 8 != 0)
            .read_access(if mode & 16 == 0 { ReadAccess::Mapped } else { ReadAccess::Pread })
            .filter_policy(Some(Arc::new(BloomFilterPolicy::new(10))))
            .write_buffer_size(1 << 16)
    };
    let no_panic =
        |error: &crate::Error| assert!(!error.to_string().contains("a panic while"), "{error}");
    let use_it = |db: &Db| {
        let read = |db: &Db| -> crate::Result<()> {
            let mut keys = Vec::new();
            for entry in db.iter()?.take(2_000) {
                keys.push(entry?.0);
            }
            db.iter()?.rev().take(200).try_for_each(|entry| entry.map(drop))?;
            for key in keys.iter().step_by(keys.len() / 8 + 1) {
                db.get(key)?;
            }
            Ok(())
        };
        let outcome = read(db)
            .and_then(|()| db.put("key", "value"))
            .and_then(|()| db.flush())
            .and_then(|()| db.compact_range::<&[u8]>(..))
            .and_then(|()| read(db));
        outcome.unwrap_or_else(|error| no_panic(&error));
    };
    let env = fresh();
    match Db::open(dir, options(env)) {
        Ok(db) => {
            use_it(&db);
            db.close().unwrap_or_else(|error| no_panic(&error));
        }
        Err(error) => no_panic(&error),
    }
    let env = fresh();
    verify(dir, &options(env.clone())).map_or_else(|error| no_panic(&error), drop);
    match repair(dir, &options(env.clone())) {
        Ok(_) => {
            let db = Db::open(dir, options(env).recovery_mode(RecoveryMode::Prefix))
                .expect("a repaired database opens");
            use_it(&db);
        }
        Err(error) => {
            no_panic(&error);
            assert_ne!(error.kind(), ErrorKind::NotSupported);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// The inputs that fuzzing has kept, in every build.
    #[test]
    fn the_corpus_is_harmless() {
        let package = Path::new(env!("CARGO_MANIFEST_DIR"));
        // Cargo writes this file into packages alone, which have no corpus with them.
        if package.join("Cargo.toml.orig").exists() {
            return;
        }
        let corpus = package.join("../../fuzz/corpus");
        for target in &TARGETS {
            let mut count = 0;
            for entry in fs::read_dir(corpus.join(target.name)).expect("a corpus") {
                let path = entry.expect("an entry").path();
                let data = fs::read(&path).expect("an input");
                println!("{}", path.display());
                (target.run)(&data);
                count += 1;
            }
            assert!(count > 0, "{}: no corpus", target.name);
            println!("{}: {count} inputs", target.name);
        }
    }
}
