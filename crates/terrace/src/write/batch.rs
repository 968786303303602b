//! A batch of operations that take effect together or not at all: the payload of one record of the
//! log.
//!
//! The bytes are LevelDB's: 8 bytes sequence number of the first operation, 4 bytes number of
//! operations, then each operation as its kind, its length-prefixed key and, for a put, its
//! length-prefixed value. An empty batch in a split record is a durability mark (`docs/format.md`).

use crate::base::coding::put_varint64;
use crate::base::error::{Error, Result};
use crate::base::internal_key::{EntryKind, check_entry_size};

use super::batch_view::{BatchView, HEADER_SIZE, Operation};

/// The longest batch, exclusive: LevelDB's lengths have 32 bits.
const LIMIT: u64 = 1 << 32;

/// Puts and deletes that are applied together: all of them or, after a crash or an error, none.
///
/// Later operations win over earlier ones on the same key. A batch can be written any number of
/// times.
///
/// # Example
/// ```
/// # use terrace::*;
/// # let options = Options::new().create_if_missing(true).env(std::sync::Arc::new(MemEnv::new()));
/// # let db = Db::open("/db", options)?;
/// db.put("apple", "red")?;
/// let mut batch = WriteBatch::new();
/// batch.put("pear", "green");
/// batch.delete("apple");
/// db.write(&batch)?; // both or neither
/// assert!(db.contains_key("pear")? && !db.contains_key("apple")?);
/// # Ok::<_, terrace::Error>(())
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct WriteBatch {
    bytes: Vec<u8>,
    /// Why the batch cannot be written, if an operation was too large.
    oversized: Option<String>,
}

impl Default for WriteBatch {
    fn default() -> Self {
        Self::new()
    }
}

impl std::fmt::Debug for WriteBatch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "WriteBatch({} operations, {} bytes)", self.len(), self.bytes.len())
    }
}

impl WriteBatch {
    /// An empty batch.
    pub fn new() -> Self {
        WriteBatch { bytes: vec![0; HEADER_SIZE], oversized: None }
    }

    /// Sets `key` to `value`.
    ///
    /// If they have 8 MiB less than 4 GiB together, or more, every write of this batch fails with
    /// `InvalidArgument`: no table could hold them.
    ///
    /// ```
    /// # use terrace::*;
    /// let mut batch = WriteBatch::new();
    /// batch.put("apple", "red");
    /// batch.put("apple", "green"); // the last one counts
    /// # Ok::<_, terrace::Error>(())
    /// ```
    pub fn put(&mut self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) {
        let (key, value) = (key.as_ref(), value.as_ref());
        if self.begin(EntryKind::Value, key.len(), value.len()) {
            self.extend(key);
            self.extend(value);
        }
    }

    /// Removes `key`. Removing an absent key is no error. Too large a key is one, as with
    /// [`put`](Self::put).
    ///
    /// ```
    /// # use terrace::*;
    /// let mut batch = WriteBatch::new();
    /// batch.delete("apple");
    /// assert_eq!(batch.len(), 1);
    /// # Ok::<_, terrace::Error>(())
    /// ```
    pub fn delete(&mut self, key: impl AsRef<[u8]>) {
        let key = key.as_ref();
        if self.begin(EntryKind::Deletion, key.len(), 0) {
            self.extend(key);
        }
    }

    fn begin(&mut self, kind: EntryKind, key: usize, value: usize) -> bool {
        if let Err(error) = check_entry_size(key, value) {
            self.oversized.get_or_insert_with(|| error.message().to_owned());
            return false;
        }
        let count = self.count().wrapping_add(1);
        if count == 0 {
            self.oversized.get_or_insert("a batch of 2^32 operations".to_owned());
            return false;
        }
        self.bytes[8..HEADER_SIZE].copy_from_slice(&count.to_le_bytes());
        self.bytes.push(kind as u8);
        true
    }

    fn extend(&mut self, part: &[u8]) {
        put_varint64(&mut self.bytes, part.len() as u64);
        self.bytes.extend_from_slice(part);
    }

    /// Removes every operation and keeps the buffer.
    ///
    /// ```
    /// # use terrace::*;
    /// # let options = Options::new().env(std::sync::Arc::new(MemEnv::new()));
    /// # let db = Db::open("/db", options.create_if_missing(true))?;
    /// let mut batch = WriteBatch::new();
    /// for number in 0..10_000_u32 {
    ///     batch.put(number.to_be_bytes(), "value");
    ///     if batch.len() == 1000 {
    ///         db.write(&batch)?;
    ///         batch.clear();
    ///     }
    /// }
    /// assert_eq!(db.iter()?.count(), 10_000);
    /// # Ok::<_, terrace::Error>(())
    /// ```
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.bytes.resize(HEADER_SIZE, 0);
        self.oversized = None;
    }

    /// The number of operations.
    ///
    /// ```
    /// # use terrace::*;
    /// let mut batch = WriteBatch::new();
    /// assert!(batch.is_empty());
    /// batch.put("apple", "red");
    /// batch.delete("apple");
    /// assert_eq!(batch.len(), 2); // operations, not keys
    /// ```
    pub fn len(&self) -> usize {
        self.count() as usize
    }

    /// Whether there is no operation.
    pub fn is_empty(&self) -> bool {
        self.count() == 0
    }

    /// The bytes that this batch takes in the log.
    ///
    /// ```
    /// # use terrace::*;
    /// # let options = Options::new().env(std::sync::Arc::new(MemEnv::new()));
    /// # let db = Db::open("/db", options.create_if_missing(true))?;
    /// let mut batch = WriteBatch::new();
    /// batch.put("apple", "red");
    /// if batch.approximate_size() > 1 << 20 {
    ///     db.write(&batch)?; // a megabyte at a time
    /// }
    /// # Ok::<_, terrace::Error>(())
    /// ```
    pub fn approximate_size(&self) -> usize {
        self.bytes.len()
    }

    /// Adds the operations of `other` behind those of this batch.
    ///
    /// ```
    /// # use terrace::*;
    /// let (mut all, mut more) = (WriteBatch::new(), WriteBatch::new());
    /// all.put("apple", "red");
    /// more.delete("apple");
    /// all.append(&more);
    /// assert_eq!(all.len(), 2);
    /// # Ok::<_, terrace::Error>(())
    /// ```
    pub fn append(&mut self, other: &WriteBatch) {
        let count = self.count().checked_add(other.count());
        if let Some(reason) = &other.oversized {
            self.oversized.get_or_insert_with(|| reason.clone());
        }
        let Some(count) = count else {
            self.oversized.get_or_insert("a batch of 2^32 operations".to_owned());
            return;
        };
        self.bytes[8..HEADER_SIZE].copy_from_slice(&count.to_le_bytes());
        self.bytes.extend_from_slice(&other.bytes[HEADER_SIZE..]);
    }

    /// The operations in order.
    ///
    /// ```
    /// # use terrace::*;
    /// let mut batch = WriteBatch::new();
    /// batch.put("apple", "red");
    /// for operation in batch.iter() {
    ///     match operation? {
    ///         Operation::Put { key, value } => println!("{key:?} = {value:?}"),
    ///         Operation::Delete { key } => println!("{key:?} is gone"),
    ///     }
    /// }
    /// # Ok::<_, terrace::Error>(())
    /// ```
    ///
    /// # Errors
    /// `Corruption` for an operation that does not decode, which no batch of this interface has.
    pub fn iter(&self) -> impl Iterator<Item = Result<Operation<'_>>> {
        self.view().operations()
    }

    /// The batch as LevelDB stores it.
    ///
    /// ```
    /// # use terrace::*;
    /// let mut batch = WriteBatch::new();
    /// batch.put("apple", "red");
    /// let sent = batch.as_bytes().to_vec();
    /// assert_eq!(WriteBatch::from_bytes(sent)?, batch);
    /// # Ok::<_, terrace::Error>(())
    /// ```
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Takes a batch in LevelDB's form, checking every operation.
    ///
    /// ```
    /// # use terrace::*;
    /// assert_eq!(WriteBatch::from_bytes(vec![7]).unwrap_err().kind(), ErrorKind::Corruption);
    /// # Ok::<_, terrace::Error>(())
    /// ```
    ///
    /// # Errors
    /// `Corruption` if it is none; `InvalidArgument` if a key and value are too large for
    /// [`put`](Self::put).
    pub fn from_bytes(bytes: Vec<u8>) -> Result<Self> {
        BatchView::parse_unnumbered(&bytes)?.numbered()?;
        Ok(WriteBatch { bytes, oversized: None })
    }

    /// Whether this batch can be written.
    pub(crate) fn check(&self) -> Result<()> {
        if let Some(reason) = &self.oversized {
            return Err(Error::invalid_argument(reason.clone()));
        }
        check_size(self.bytes.len())
    }

    /// The operations, without a sequence number.
    pub(crate) fn view(&self) -> BatchView<'_> {
        BatchView::of_checked(self.count(), &self.bytes[HEADER_SIZE..])
    }

    fn count(&self) -> u32 {
        self.bytes[8..].first_chunk().map_or(0, |count| u32::from_le_bytes(*count))
    }
}

/// Whether a batch of so many bytes can be written.
pub(crate) fn check_size(size: usize) -> Result<()> {
    if size as u64 >= LIMIT {
        return Err(Error::invalid_argument(format!(
            "a batch of {size} bytes; the limit is below {LIMIT}"
        )));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::error::ErrorKind;
    use crate::base::internal_key::{MAX_ENTRY_SIZE, MAX_SEQUENCE, TAG_SIZE};
    use crate::write::batch_view::encode_mark;
    use crate::write::single_frame::SingleFrame;

    /// The most bytes that key and value may have.
    const LARGEST: usize = MAX_ENTRY_SIZE - TAG_SIZE;

    #[test]
    fn batches_keep_operations_in_order_and_append() {
        let mut batch = WriteBatch::new();
        batch.put("a", "1");
        batch.delete("b");
        let mut other = WriteBatch::new();
        other.put("c", "");
        other.append(&batch);
        let operations: Vec<_> = other.iter().map(|op| op.expect("decodes")).collect();
        let expected = [
            Operation::Put { key: b"c", value: b"" },
            Operation::Put { key: b"a", value: b"1" },
            Operation::Delete { key: b"b" },
        ];
        assert_eq!(operations, expected);
        assert_eq!(other.len(), 3);
        assert_eq!(WriteBatch::from_bytes(other.as_bytes().to_vec()).expect("checks"), other);
        other.clear();
        assert!(other.is_empty() && other.approximate_size() == HEADER_SIZE);
    }

    #[test]
    fn damaged_batches_are_refused_as_a_whole() {
        let mut batch = WriteBatch::new();
        batch.put("key", "value");
        for length in 0..batch.as_bytes().len() {
            assert!(BatchView::parse(&batch.as_bytes()[..length]).is_err());
        }
        let mut unknown = batch.as_bytes().to_vec();
        unknown[HEADER_SIZE] = 7;
        assert!(BatchView::parse(&unknown).is_err());
        let mut miscounted = batch.as_bytes().to_vec();
        miscounted[8] = 2;
        assert!(BatchView::parse(&miscounted).is_err());
        miscounted[8] = 0;
        assert!(BatchView::parse(&miscounted).is_err());
        // Sequence numbers have 56 bits.
        for (sequence, fits) in [(MAX_SEQUENCE, true), (MAX_SEQUENCE + 1, false), (u64::MAX, false)]
        {
            let mut late = batch.as_bytes().to_vec();
            late[..8].copy_from_slice(&sequence.to_le_bytes());
            assert_eq!(BatchView::parse(&late).is_ok(), fits, "{sequence}");
            assert!(BatchView::parse_unnumbered(&late).is_ok());
        }
    }

    /// Nothing of these four gigabytes is ever touched: they cost no memory.
    #[test]
    fn what_no_table_can_hold_is_refused() {
        let huge = vec![0u8; LIMIT as usize];
        let refused = |batch: &WriteBatch, what: &str| {
            let error = batch.check().expect_err("too large");
            assert!(
                error.kind() == ErrorKind::InvalidArgument && error.message().contains(what),
                "{error}"
            );
        };
        let mut batch = WriteBatch::new();
        batch.put("a", "1");
        batch.check().expect("small");
        batch.put("k", &huge);
        refused(&batch, "a key and value of 4294967297 bytes");
        batch.delete(&huge);
        assert_eq!(batch.len(), 1, "nothing of it was taken");
        let mut other = WriteBatch::new();
        other.append(&batch);
        refused(&other, "a key and value of 4294967297 bytes");
        other.clear();
        let small = WriteBatch::new();
        other.append(&small);
        other.check().expect("forgotten");
        other.delete(&huge);
        refused(&other, "a key and value of 4294967296 bytes");
        other.clear();
        // All that is refused is refused before it is copied.
        other.put("key", &huge[..LARGEST - 2]);
        other.put(&huge[..LARGEST], "v");
        other.delete(&huge[..LARGEST + 1]);
        assert_eq!(other.approximate_size(), HEADER_SIZE);
        refused(&other, "a key and value of 4286578680 bytes");

        let refused = |key: &[u8], value: Option<&[u8]>| match SingleFrame::new(key, value) {
            Ok(_) => panic!("{} bytes and more were taken", key.len()),
            Err(error) => assert!(
                error.kind() == ErrorKind::InvalidArgument && error.message().contains("limit")
            ),
        };
        refused(&huge, None);
        refused(b"key", Some(&huge[64..]));
        refused(&huge[..LARGEST + 1], None);
        refused(b"key", Some(&huge[..LARGEST - 2]));
        assert!(SingleFrame::new(&huge[..LARGEST], None).is_ok());
        assert!(SingleFrame::new(b"key", Some(&huge[..LARGEST - 3])).is_ok());
        assert!(check_size(huge.len()).is_err() && check_size(huge.len() - 1).is_ok());
    }

    /// A log may hold what is no longer taken.
    #[test]
    fn an_entry_above_the_table_limit_is_refused_in_a_decoded_batch_too() {
        for (length, fits) in [(LARGEST, true), (LARGEST + 1, false)] {
            // Zeros are a key, a value and the rest of every length.
            let put = [&[EntryKind::Value as u8, 1, 0][..], &varint(length - 1)].concat();
            let deletion = [&[EntryKind::Deletion as u8][..], &varint(length)].concat();
            for (operation, rest) in [(put, length - 1), (deletion, length)] {
                let mut bytes = vec![0u8; HEADER_SIZE + operation.len() + rest];
                bytes[8] = 1;
                bytes[HEADER_SIZE..HEADER_SIZE + operation.len()].copy_from_slice(&operation);
                assert!(BatchView::parse(&bytes).is_ok(), "{length}");
                let kind = |outcome: Result<()>| outcome.err().map(|error| error.kind());
                let expected = (!fits).then_some(ErrorKind::InvalidArgument);
                assert_eq!(
                    kind(BatchView::parse_unnumbered(&bytes).map(drop)),
                    expected,
                    "{length}"
                );
                assert_eq!(kind(WriteBatch::from_bytes(bytes).map(drop)), expected, "{length}");
            }
        }
    }

    fn varint(value: usize) -> Vec<u8> {
        let mut bytes = Vec::new();
        put_varint64(&mut bytes, value as u64);
        bytes
    }

    #[test]
    fn a_batch_counts_to_32_bits() {
        let full = || {
            let mut batch = WriteBatch::new();
            batch.bytes[8..HEADER_SIZE].copy_from_slice(&u32::MAX.to_le_bytes());
            batch
        };
        let mut one = WriteBatch::new();
        one.put("k", "v");
        let (mut grown, mut appended) = (full(), full());
        grown.delete("k");
        appended.append(&one);
        for batch in [grown, appended] {
            let error = batch.check().expect_err("too many");
            assert!(
                error.kind() == ErrorKind::InvalidArgument
                    && error.message().contains("2^32 operations")
            );
            assert_eq!((batch.len(), batch.approximate_size()), (u32::MAX as usize, HEADER_SIZE));
        }
    }

    #[test]
    fn a_single_frame_makes_the_same_bytes() {
        for length in [0, 1, 127, 128, 20_000] {
            let (key, value) = (vec![b'k'; length], vec![b'v'; length]);
            let mut batch = WriteBatch::new();
            batch.put(&key, &value);
            let mut expected = batch.as_bytes().to_vec();
            expected[..8].copy_from_slice(&77u64.to_le_bytes());
            let mut frame = SingleFrame::new(&key, Some(&value)).expect("fits");
            let (head, middle) = frame.around(77);
            assert_eq!([head, &key, middle, &value].concat(), expected);
            assert_eq!(frame.len() + 2 * length, expected.len());

            batch.clear();
            batch.delete(&key);
            let mut frame = SingleFrame::new(&key, None).expect("fits");
            let (head, middle) = frame.around(0);
            assert_eq!([head, &key, middle].concat(), batch.as_bytes());
        }
    }

    #[test]
    fn marks_are_split_empty_batches() {
        let mark = encode_mark(41);
        let view = BatchView::parse(&mark).expect("parses");
        assert_eq!(
            (view.durability_mark(true), view.durability_mark(false), view.count),
            (Some(41), None, 0)
        );
        let mut batch = WriteBatch::new();
        batch.delete("k");
        assert_eq!(batch.view().durability_mark(true), None);
    }
}
