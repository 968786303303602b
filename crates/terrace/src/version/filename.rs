//! The names of a database's files. They are LevelDB's, and that of value files; files with other
//! names are never touched.

use crate::base::mutation::mutated;

/// Names the newest MANIFEST.
pub(crate) const CURRENT: &str = "CURRENT";
/// Locked by the process that has the database open.
pub(crate) const LOCK: &str = "LOCK";
/// Messages for people, and those of the previous open.
pub(crate) const INFO_LOG: &str = "LOG";
pub(crate) const OLD_INFO_LOG: &str = "LOG.old";
/// The directory that keeps damaged files. A foreign name to LevelDB, which leaves it alone.
pub(crate) const LOST_DIR: &str = "lost";

/// The greatest number that a file may have: numbers are handed out upwards for as long as the
/// database exists.
pub(crate) const MAX_NUMBER: u64 = u64::MAX / 2;

/// No database is opened that has used a greater one: more are left than one open can need.
pub(crate) const LAST_NUMBER: u64 = MAX_NUMBER - (1 << 40);

/// The kind of a file of the database.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum FileKind {
    Current,
    Lock,
    InfoLog,
    Manifest,
    Log,
    Table,
    Values,
    Temp,
}

pub(crate) fn log(number: u64) -> String {
    format!("{number:06}.log")
}

pub(crate) fn table(number: u64) -> String {
    format!("{number:06}.ldb")
}

/// A file of values that tables point at. A name that LevelDB does not know.
pub(crate) fn values(number: u64) -> String {
    format!("{number:06}.vlog")
}

/// The name tables had before LevelDB 1.14. Only read.
pub(crate) fn old_table(number: u64) -> String {
    format!("{number:06}.sst")
}

/// The names that the file of a table may have, in the order in which one may follow another: a
/// table that was removed while it is being read may go by that of a temporary file.
pub(crate) fn names_of_table(number: u64) -> [String; 3] {
    [table(number), old_table(number), temp(number)]
}

pub(crate) fn manifest(number: u64) -> String {
    format!("MANIFEST-{number:06}")
}

pub(crate) fn temp(number: u64) -> String {
    format!("{number:06}.dbtmp")
}

/// The kind and number of a file with this name, if it is one of a database's own.
pub(crate) fn parse(name: &str) -> Option<(FileKind, u64)> {
    match name {
        CURRENT => return Some((FileKind::Current, 0)),
        LOCK => return Some((FileKind::Lock, 0)),
        INFO_LOG | OLD_INFO_LOG => return Some((FileKind::InfoLog, 0)),
        _ => {}
    }
    if let Some(number) = name.strip_prefix("MANIFEST-") {
        return parse_number(number).map(|number| (FileKind::Manifest, number));
    }
    let (number, suffix) = name.split_once('.')?;
    let kind = match suffix {
        "log" => FileKind::Log,
        "ldb" | "sst" => FileKind::Table,
        "vlog" => FileKind::Values,
        "dbtmp" => FileKind::Temp,
        _ => return None,
    };
    parse_number(number).map(|number| (kind, number))
}

/// Digits only, and as many as a name is made with: another one with the same number is no name for
/// that file.
fn parse_number(digits: &str) -> Option<u64> {
    let number = digits.parse().ok()?;
    (format!("{number:06}") == digits).then_some(number)
}

/// The MANIFEST's number that the contents of CURRENT name; `None` if they name anything else, a
/// path above all.
pub(crate) fn parse_current(contents: &[u8]) -> Option<u64> {
    let name = std::str::from_utf8(contents).ok()?.strip_suffix('\n')?;
    let name = if mutated("current-names-no-path") { name.rsplit('/').next()? } else { name };
    match parse(name) {
        Some((FileKind::Manifest, number)) => Some(number),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_names_parse_and_others_do_not() {
        for (name, expected) in [
            ("000007.log", (FileKind::Log, 7)),
            ("000100.sst", (FileKind::Table, 100)),
            ("1234567.ldb", (FileKind::Table, 1_234_567)),
            ("18446744073709551615.ldb", (FileKind::Table, u64::MAX)),
            ("000012.vlog", (FileKind::Values, 12)),
            ("MANIFEST-000003", (FileKind::Manifest, 3)),
            ("000005.dbtmp", (FileKind::Temp, 5)),
            ("CURRENT", (FileKind::Current, 0)),
            ("LOG.old", (FileKind::InfoLog, 0)),
        ] {
            assert_eq!(parse(name), Some(expected), "{name}");
        }
        for name in [
            "",
            "foo",
            ".log",
            "100",
            "100.",
            "000100.bar",
            "+00001.log",
            "100.sst",
            "7.log",
            "0000007.ldb",
            "MANIFEST-",
            "MANIFEST-3",
            "MANIFEST-00003x",
            "LOCKED",
            "18446744073709551616.log",
            "000001.log.old",
            "lost",
        ] {
            assert_eq!(parse(name), None, "{name}");
        }
    }

    #[test]
    fn current_names_a_manifest_in_the_same_directory() {
        assert_eq!(parse_current(b"MANIFEST-000002\n"), Some(2));
        for contents in [
            &b"MANIFEST-000002"[..],
            b"../evil/MANIFEST-000002\n",
            b"\n",
            b"",
            b"000002.log\n",
            b"\xff\n",
        ] {
            assert_eq!(parse_current(contents), None);
        }
    }
}
