//! Filters: small summaries that save reads of blocks which cannot hold a key.
//!
//! A filter may say "perhaps" about a key that is not there; it never says "no" about one that is.
//! It is written with a table and found again by its policy's name, so that a table whose filter
//! was made by another policy is read without one.

mod bloom;

pub use bloom::BloomFilterPolicy;

/// Makes and reads filters.
///
/// Called from any thread, background threads included. An implementation must not panic. Its
/// [`name`](FilterPolicy::name) is stored with every filter: change the name whenever the encoding
/// changes.
///
/// ```
/// # use terrace::*;
/// /// Knows the first bytes of keys.
/// struct FirstByte;
///
/// impl FilterPolicy for FirstByte {
///     fn name(&self) -> &str {
///         "first-byte"
///     }
///
///     fn create_filter(&self, keys: &[&[u8]], dst: &mut Vec<u8>) {
///         dst.extend(keys.iter().filter_map(|key| key.first()));
///     }
///
///     fn key_may_match(&self, key: &[u8], filter: &[u8]) -> bool {
///         key.first().is_none_or(|first| filter.contains(first))
///     }
/// }
///
/// let options = Options::new().filter_policy(Some(std::sync::Arc::new(FirstByte)));
/// # let _ = options;
/// # Ok::<_, terrace::Error>(())
/// ```
pub trait FilterPolicy: Send + Sync {
    /// The name under which filters of this encoding are stored.
    fn name(&self) -> &str;

    /// The name as it is stored: the bytes of [`name`](FilterPolicy::name), unless a C program's
    /// name is not UTF-8.
    fn name_bytes(&self) -> &[u8] {
        self.name().as_bytes()
    }

    /// Appends to `dst` a filter of `keys`, which may hold duplicates. What `dst` holds already
    /// stays as it is.
    fn create_filter(&self, keys: &[&[u8]], dst: &mut Vec<u8>);

    /// Whether `key` may be among the keys that `filter` was made of. Must be true if it is, and
    /// may be true if it is not. `filter` comes from a file: any bytes are possible, and must be
    /// read without a panic.
    fn key_may_match(&self, key: &[u8], filter: &[u8]) -> bool;
}
