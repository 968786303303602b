//! Operators that fold an operand into a value, and those that are built in.

use crate::base::coding::{get_length_prefixed, put_length_prefixed};
use crate::base::error::{Error, Result};

/// Folds an operand into the value of a key: see [`Db::merge`](crate::Db::merge).
///
/// ```
/// use terrace::{MergeOperator, Result};
///
/// /// Keeps the greater one, byte by byte.
/// struct Greatest;
///
/// impl MergeOperator for Greatest {
///     fn merge(&self, _: &[u8], value: Option<&[u8]>, operand: &[u8]) -> Result<Vec<u8>> {
///         Ok(value.unwrap_or_default().max(operand).to_vec())
///     }
/// }
/// # fn main() -> Result<()> {
/// # let options = terrace::Options::new().env(std::sync::Arc::new(terrace::MemEnv::new()));
/// # let db = terrace::Db::open("/greatest.db", options.create_if_missing(true))?;
///
/// db.merge("highest", "0210", &Greatest)?;
/// db.merge("highest", "0190", &Greatest)?;
/// assert_eq!(db.get("highest")?.as_deref(), Some(&b"0210"[..]));
/// # db.close()
/// # }
/// ```
pub trait MergeOperator {
    /// Returns the new value of `key`, which has `value`, or none.
    ///
    /// Called on the thread that merges, and again if others have written the key in between, in
    /// the end with the key locked: for the same arguments it returns the same.
    ///
    /// # Errors
    /// Any error ends the write, and nothing is changed.
    fn merge(&self, key: &[u8], value: Option<&[u8]>, operand: &[u8]) -> Result<Vec<u8>>;
}

/// Adds numbers. Value and operand are signed 64-bit integers, little-endian; no value counts as 0.
///
/// A sum out of range is [`InvalidArgument`](crate::ErrorKind::InvalidArgument), and so is a value
/// or an operand that has not eight bytes.
///
/// ```
/// # use terrace::*;
/// # let options = Options::new().env(std::sync::Arc::new(MemEnv::new()));
/// # let db = Db::open("/db", options.create_if_missing(true))?;
/// db.merge("visits", Counter::encode(1), &Counter)?;
/// db.merge("visits", Counter::encode(-3), &Counter)?;
/// let visits = db.get("visits")?.expect("it was merged");
/// assert_eq!(Counter::decode(&visits)?, -2);
/// # Ok::<_, terrace::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct Counter;

impl Counter {
    /// Returns the bytes of a number.
    ///
    /// ```
    /// # use terrace::*;
    /// assert_eq!(Counter::decode(&Counter::encode(42))?, 42);
    /// # Ok::<_, terrace::Error>(())
    /// ```
    pub fn encode(number: i64) -> [u8; 8] {
        number.to_le_bytes()
    }

    /// Returns the number that `bytes` stand for.
    ///
    /// ```
    /// # use terrace::*;
    /// # let options = Options::new().env(std::sync::Arc::new(MemEnv::new()));
    /// # let db = Db::open("/db", options.create_if_missing(true))?;
    /// db.merge("visits", Counter::encode(1), &Counter)?;
    /// let visits = db.get("visits")?.unwrap_or_default();
    /// assert_eq!(Counter::decode(&visits)?, 1);
    /// # Ok::<_, terrace::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`InvalidArgument`](crate::ErrorKind::InvalidArgument) if there are not eight of them.
    pub fn decode(bytes: &[u8]) -> Result<i64> {
        let bytes = bytes.try_into().map_err(|_| {
            Error::invalid_argument(format!("a counter has 8 bytes, not {}", bytes.len()))
        })?;
        Ok(i64::from_le_bytes(bytes))
    }
}

impl MergeOperator for Counter {
    fn merge(&self, _: &[u8], value: Option<&[u8]>, operand: &[u8]) -> Result<Vec<u8>> {
        let present = value.map_or(Ok(0), Counter::decode)?;
        let operand = Counter::decode(operand)?;
        let sum = present.checked_add(operand).ok_or_else(|| {
            Error::invalid_argument(format!("{present} + {operand} is out of a counter's range"))
        })?;
        Ok(Counter::encode(sum).to_vec())
    }
}

/// Appends the operand to the value, with a separator in between where there is a value.
///
/// ```
/// # use terrace::*;
/// # let options = Options::new().env(std::sync::Arc::new(MemEnv::new()));
/// # let db = Db::open("/db", options.create_if_missing(true))?;
/// let lines = Append::new().separator("\n");
/// db.merge("log", "opened", &lines)?;
/// db.merge("log", "closed", &lines)?;
/// assert_eq!(db.get("log")?.as_deref(), Some(&b"opened\nclosed"[..]));
/// # Ok::<_, terrace::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Append {
    separator: Vec<u8>,
}

impl Append {
    /// Appends without a separator.
    pub fn new() -> Self {
        Self::default()
    }

    /// Puts `separator` between what is appended.
    ///
    /// ```
    /// # use terrace::*;
    /// # let options = Options::new().env(std::sync::Arc::new(MemEnv::new()));
    /// # let db = Db::open("/db", options.create_if_missing(true))?;
    /// db.merge("path", "usr", &Append::new().separator("/"))?;
    /// db.merge("path", "lib", &Append::new().separator("/"))?;
    /// assert_eq!(db.get("path")?.as_deref(), Some(&b"usr/lib"[..]));
    /// # Ok::<_, terrace::Error>(())
    /// ```
    #[must_use]
    pub fn separator(mut self, separator: impl Into<Vec<u8>>) -> Self {
        self.separator = separator.into();
        self
    }
}

impl MergeOperator for Append {
    fn merge(&self, _: &[u8], value: Option<&[u8]>, operand: &[u8]) -> Result<Vec<u8>> {
        Ok(match value {
            Some(value) => [value, &self.separator, operand].concat(),
            None => operand.to_vec(),
        })
    }
}

/// Unites sets of byte strings. A set is its elements in ascending order, each after its length as
/// a varint32; [`encode`](SetUnion::encode) makes one.
///
/// A value or an operand that is no set is
/// [`InvalidArgument`](crate::ErrorKind::InvalidArgument).
///
/// ```
/// use terrace::SetUnion;
/// # fn main() -> terrace::Result<()> {
/// # let options = terrace::Options::new().env(std::sync::Arc::new(terrace::MemEnv::new()));
/// # let db = terrace::Db::open("/sets.db", options.create_if_missing(true))?;
///
/// db.merge("tags", SetUnion::encode(["red", "round"]), &SetUnion)?;
/// let tags = db.merge("tags", SetUnion::encode(["fruit", "red"]), &SetUnion)?;
/// assert_eq!(SetUnion::decode(&tags)?, [&b"fruit"[..], b"red", b"round"]);
/// # db.close()
/// # }
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct SetUnion;

impl SetUnion {
    /// Returns the bytes of the set of `elements`, in any order and as often as they come.
    ///
    /// ```
    /// # use terrace::*;
    /// assert_eq!(SetUnion::encode(["b", "a", "b"]), SetUnion::encode(["a", "b"]));
    /// # Ok::<_, terrace::Error>(())
    /// ```
    pub fn encode<E: AsRef<[u8]>>(elements: impl IntoIterator<Item = E>) -> Vec<u8> {
        let elements: Vec<_> = elements.into_iter().collect();
        let mut sorted: Vec<_> = elements.iter().map(AsRef::as_ref).collect();
        sorted.sort_unstable();
        sorted.dedup();
        let mut bytes = Vec::new();
        sorted.into_iter().for_each(|element| put_length_prefixed(&mut bytes, element));
        bytes
    }

    /// Returns the elements of a set, ascending.
    ///
    /// ```
    /// # use terrace::*;
    /// let set = SetUnion::encode(["round", "red"]);
    /// assert_eq!(SetUnion::decode(&set)?, [&b"red"[..], b"round"]);
    /// # Ok::<_, terrace::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`InvalidArgument`](crate::ErrorKind::InvalidArgument) if `bytes` are no set.
    pub fn decode(bytes: &[u8]) -> Result<Vec<&[u8]>> {
        let (mut rest, mut elements) = (bytes, Vec::new());
        while !rest.is_empty() {
            let element = get_length_prefixed(&mut rest)
                .filter(|element| elements.last().is_none_or(|last| last < element))
                .ok_or_else(|| Error::invalid_argument("the bytes are no set of byte strings"))?;
            elements.push(element);
        }
        Ok(elements)
    }
}

impl MergeOperator for SetUnion {
    fn merge(&self, _: &[u8], value: Option<&[u8]>, operand: &[u8]) -> Result<Vec<u8>> {
        let (present, added) =
            (SetUnion::decode(value.unwrap_or_default())?, SetUnion::decode(operand)?);
        Ok(SetUnion::encode(present.into_iter().chain(added)))
    }
}
