//! Recorded traces: the calls of a program on a database, by the drop-in `libleveldb`.
//! `lab/WORKLOADS.md` specifies the format.

use std::fmt;
use std::fs;
use std::path::Path;

/// The beginning of a trace.
const MAGIC: &[u8] = b"terrace trace 1\n";
/// Added to the kind of a write that waited for the disk.
const SYNC: u8 = 0x80;

/// No value may be larger, so that a broken trace makes nobody take all memory.
const LARGEST_VALUE: u64 = 64 << 20;
/// Nor may the values of a batch, which engines collect.
const LARGEST_BATCH: u64 = 1 << 30;

/// A trace in memory.
#[derive(Clone, Debug, Default)]
pub struct Trace {
    bytes: Vec<u8>,
    largest_value: usize,
}

/// A call.
#[derive(Clone, Debug)]
pub struct Record<'a> {
    /// Microseconds since the record before.
    pub micros: u64,
    /// Whether it waited for the disk.
    pub synchronous: bool,
    /// What was called.
    pub call: Call<'a>,
}

/// What was called.
#[derive(Clone, Debug)]
pub enum Call<'a> {
    /// Nothing: an entry that was there when the trace began.
    Entry(Put<'a>),
    /// A write of one operation.
    Write(Operation<'a>),
    /// A write of several.
    Batch(Batch<'a>),
    /// A get of a key.
    Get(&'a [u8]),
    /// A scan from somewhere and its steps.
    Scan(Start<'a>, u64),
}

impl Call<'_> {
    /// How many operations this counts as.
    #[must_use]
    pub fn operations(&self) -> u64 {
        match self {
            Call::Entry(_) => 0,
            Call::Batch(batch) => batch.len(),
            Call::Write(_) | Call::Get(_) | Call::Scan(..) => 1,
        }
    }

    fn largest_value(&self) -> usize {
        match self {
            Call::Entry(put) | Call::Write(Operation::Put(put)) => put.size,
            Call::Batch(batch) => batch.clone().map(|change| change.size()).max().unwrap_or(0),
            Call::Write(Operation::Delete(_)) | Call::Get(_) | Call::Scan(..) => 0,
        }
    }
}

/// A key, and the bytes that its value has.
#[derive(Clone, Copy, Debug)]
pub struct Put<'a> {
    /// The key.
    pub key: &'a [u8],
    /// Bytes of the value.
    pub size: usize,
}

/// One change.
#[derive(Clone, Copy, Debug)]
pub enum Operation<'a> {
    /// A put.
    Put(Put<'a>),
    /// A deletion of a key.
    Delete(&'a [u8]),
}

impl Operation<'_> {
    fn size(&self) -> usize {
        match self {
            Operation::Put(put) => put.size,
            Operation::Delete(_) => 0,
        }
    }
}

/// Where a scan begins, and which way it goes.
#[derive(Clone, Copy, Debug)]
pub enum Start<'a> {
    /// Forwards from the first entry.
    First,
    /// Backwards from the last entry.
    Last,
    /// Forwards from the first entry whose key is not before this one.
    From(&'a [u8]),
    /// Backwards from there.
    BackFrom(&'a [u8]),
}

/// Why a trace cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Broken {
    offset: usize,
    what: &'static str,
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "broken at byte {}: {}", self.offset, self.what)
    }
}

impl std::error::Error for Broken {}

impl Trace {
    /// Reads a trace and checks every record. What the end of the file cuts off is dropped: the
    /// program that was traced may have been killed.
    ///
    /// # Errors
    /// Names the file, and the byte at which it is broken.
    pub fn open(path: &Path) -> Result<Trace, String> {
        let name = path.display();
        let bytes = fs::read(path).map_err(|error| format!("{name}: {error}"))?;
        if !bytes.starts_with(MAGIC) {
            return Err(format!("{name}: not a trace of version 1"));
        }
        let mut trace = Trace { bytes, largest_value: 0 };
        let (mut records, mut largest) = (trace.records(), 0);
        for record in &mut records {
            match record {
                Ok(record) => largest = record.call.largest_value().max(largest),
                Err(problem) if problem.what == CUT_OFF => break,
                Err(problem) => return Err(format!("{name}: {problem}")),
            }
        }
        let end = records.complete;
        trace.bytes.truncate(end);
        trace.largest_value = largest;
        Ok(trace)
    }

    /// Bytes of the largest value.
    #[must_use]
    pub fn largest_value(&self) -> usize {
        self.largest_value
    }

    /// Operations in all: those of a batch count each, entries that were there do not.
    #[must_use]
    pub fn operations(&self) -> u64 {
        self.records().flatten().map(|record| record.call.operations()).sum()
    }

    /// The records in their order. Ends after the first that is broken.
    #[must_use]
    pub fn records(&self) -> Records<'_> {
        let at = MAGIC.len().min(self.bytes.len());
        Records { reader: Reader { bytes: &self.bytes, at }, complete: at, failed: false }
    }
}

/// The records of a trace.
#[derive(Clone, Debug)]
pub struct Records<'a> {
    reader: Reader<'a>,
    /// Where the last whole record ends.
    complete: usize,
    failed: bool,
}

impl<'a> Iterator for Records<'a> {
    type Item = Result<Record<'a>, Broken>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.failed || self.reader.at == self.reader.bytes.len() {
            return None;
        }
        let record = self.reader.record();
        match record {
            Ok(_) => self.complete = self.reader.at,
            Err(_) => self.failed = true,
        }
        Some(record)
    }
}

/// The changes of a batch, already checked.
#[derive(Clone, Debug)]
pub struct Batch<'a> {
    reader: Reader<'a>,
    left: u64,
}

impl Batch<'_> {
    /// How many are left.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.left
    }

    /// Whether none is left.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.left == 0
    }
}

impl<'a> Iterator for Batch<'a> {
    type Item = Operation<'a>;

    fn next(&mut self) -> Option<Operation<'a>> {
        self.left = self.left.checked_sub(1)?;
        self.reader.operation().ok()
    }
}

const CUT_OFF: &str = "the record is cut off";

#[derive(Clone, Debug)]
struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    fn broken<T>(&self, what: &'static str) -> Result<T, Broken> {
        Err(Broken { offset: self.at, what })
    }

    fn record(&mut self) -> Result<Record<'a>, Broken> {
        let kind = self.byte()?;
        let micros = self.number()?;
        let call = match kind & !SYNC {
            1 => Call::Entry(self.put()?),
            2 => Call::Write(Operation::Put(self.put()?)),
            3 => Call::Write(Operation::Delete(self.key()?)),
            4 => Call::Batch(self.batch()?),
            5 => Call::Get(self.key()?),
            6 => {
                let start = self.start()?;
                Call::Scan(start, self.number()?)
            }
            _ => return self.broken("there is no such kind of record"),
        };
        Ok(Record { micros, synchronous: kind & SYNC != 0, call })
    }

    fn batch(&mut self) -> Result<Batch<'a>, Broken> {
        let left = self.number()?;
        let batch = Batch { reader: self.clone(), left };
        let mut bytes = 0;
        for _ in 0..left {
            bytes += self.operation()?.size() as u64;
            if bytes > LARGEST_BATCH {
                return self.broken("the values of a batch have more than 1 GiB");
            }
        }
        Ok(batch)
    }

    fn operation(&mut self) -> Result<Operation<'a>, Broken> {
        match self.byte()? {
            2 => self.put().map(Operation::Put),
            3 => self.key().map(Operation::Delete),
            _ => self.broken("a batch has puts and deletions only"),
        }
    }

    fn start(&mut self) -> Result<Start<'a>, Broken> {
        Ok(match self.byte()? {
            0 => Start::First,
            1 => Start::Last,
            2 => Start::From(self.key()?),
            3 => Start::BackFrom(self.key()?),
            _ => return self.broken("a scan cannot begin like this"),
        })
    }

    fn put(&mut self) -> Result<Put<'a>, Broken> {
        let key = self.key()?;
        match self.number()? {
            size @ 0..=LARGEST_VALUE => Ok(Put { key, size: size as usize }),
            _ => self.broken("a value has more than 64 MiB"),
        }
    }

    fn key(&mut self) -> Result<&'a [u8], Broken> {
        let length = self.number()?;
        let rest = &self.bytes[self.at..];
        match usize::try_from(length).ok().and_then(|length| rest.get(..length)) {
            Some(key) => {
                self.at += key.len();
                Ok(key)
            }
            None => self.broken(CUT_OFF),
        }
    }

    fn number(&mut self) -> Result<u64, Broken> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            number |= u64::from(byte & 0x7F) << shift;
            if byte < 0x80 {
                return Ok(number);
            }
        }
        self.broken("a number has more than 64 bits")
    }

    fn byte(&mut self) -> Result<u8, Broken> {
        match self.bytes.get(self.at) {
            Some(byte) => {
                self.at += 1;
                Ok(*byte)
            }
            None => self.broken(CUT_OFF),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What tests of engine programs replay.
    const SAMPLE: &[u8] = include_bytes!("../sample.trace");

    fn open(records: &[u8]) -> Result<Trace, String> {
        static NUMBER: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let name = format!("lab-trace-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        fs::write(&path, [MAGIC, records].concat()).expect("a file");
        let trace = Trace::open(&path);
        fs::remove_file(&path).expect("removed");
        trace
    }

    #[test]
    fn records_are_read_in_order() {
        let trace = open(&SAMPLE[MAGIC.len()..]).expect("a trace");
        assert_eq!((trace.operations(), trace.largest_value()), (11, 200));
        let records: Vec<_> = trace.records().map(|record| record.expect("whole")).collect();
        assert_eq!(records.len(), 13);
        assert!(matches!(&records[0].call, Call::Entry(Put { key: b"a", size: 100 })));
        assert!(records[4].synchronous && records[4].micros == 300);
        assert!(matches!(&records[4].call, Call::Write(Operation::Put(put)) if put.size == 128));
        let Call::Batch(batch) = &records[6].call else { panic!("{:?}", records[6]) };
        let changes: Vec<_> = batch.clone().collect();
        assert!(matches!(&changes[..], [Operation::Put(_), Operation::Delete(b"c")]));
        assert!(matches!(&records[7].call, Call::Get(b"a")));
        assert!(matches!(&records[9].call, Call::Scan(Start::First, 9)));
        assert!(matches!(&records[12].call, Call::Scan(Start::BackFrom(b"b"), 0)));
    }

    #[test]
    fn a_cut_leaves_the_records_before_it() {
        let records = &SAMPLE[MAGIC.len()..];
        let mut before = 0;
        for end in 0..=records.len() {
            let trace = open(&records[..end]).expect("what is whole");
            assert!(trace.records().all(|record| record.is_ok()), "cut at {end}");
            let whole = trace.records().count();
            assert!(whole == before || whole == before + 1, "cut at {end}");
            before = whole;
        }
        assert_eq!(before, 13);
    }

    #[test]
    fn what_is_wrong_is_named_with_its_place() {
        let large_put = [2, 0, 0x80, 0x80, 0x80, 0x20];
        let large_batch = [&[4, 0, 17][..], &large_put.repeat(17)].concat();
        for (records, what) in [
            (&large_batch[..], "more than 1 GiB"),
            (&[9, 0], "no such kind"),
            (&[6, 0, 7, 0], "cannot begin like this"),
            (&[4, 0, 1, 5, 0], "puts and deletions only"),
            (&[5, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1], "64 bits"),
            (&[2, 0, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 1], "more than 64 MiB"),
        ] {
            let problem = open(records).expect_err(what);
            assert!(problem.contains(what) && problem.contains("at byte"), "{problem}");
        }
        let path = std::env::temp_dir().join(format!("lab-no-trace-{}", std::process::id()));
        fs::write(&path, b"something else").expect("a file");
        assert!(Trace::open(&path).expect_err("refused").ends_with("not a trace of version 1"));
        fs::remove_file(&path).expect("removed");
    }
}
