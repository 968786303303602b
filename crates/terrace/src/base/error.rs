//! The errors of every layer: a few kinds, each with a message that says what, where and why.

use std::fmt;
use std::io;
use std::path::Path;
use std::sync::Arc;

/// The kind of an error: enough to decide what to do next.
///
/// ```
/// # use terrace::*;
/// # let options = Options::new().env(std::sync::Arc::new(MemEnv::new()));
/// match Db::open("/nowhere", options) {
///     Ok(_) => println!("it is open"),
///     Err(error) if error.kind() == ErrorKind::Busy => println!("another program has it"),
///     Err(error) => println!("{error}"),
/// }
/// # Ok::<_, terrace::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// Something that was asked for by name does not exist.
    NotFound,
    /// Bytes on disk are not what they must be. The message names the file and, where known, the
    /// offset.
    Corruption,
    /// The request is meaningful, but this build, file system or database cannot do it.
    NotSupported,
    /// An argument or option is out of range. Nothing was changed.
    InvalidArgument,
    /// The operating system refused an operation. The message names the operation and the path.
    Io,
    /// Another owner holds a resource, for example the database's lock.
    Busy,
    /// Others have written a key that a transaction writes or has read for update. The transaction
    /// changed nothing; run it again. A prepared one that is overtaken can only be rolled back.
    Conflict,
    /// A transaction waited for others that waited for it, and had to give way. It changed nothing
    /// and has given its locks up; run it again.
    Deadlock,
    /// A lock was not to be had in time.
    TimedOut,
    /// The database was closed, or the keyspace dropped.
    Closed,
}

impl fmt::Display for ErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ErrorKind::NotFound => "not found",
            ErrorKind::Corruption => "corruption",
            ErrorKind::NotSupported => "not supported",
            ErrorKind::InvalidArgument => "invalid argument",
            ErrorKind::Io => "I/O error",
            ErrorKind::Busy => "busy",
            ErrorKind::Conflict => "conflict",
            ErrorKind::Deadlock => "deadlock",
            ErrorKind::TimedOut => "timed out",
            ErrorKind::Closed => "closed",
        })
    }
}

/// An error of the database. Cheap to clone, because one background failure is returned to many
/// callers.
///
/// ```
/// # use terrace::*;
/// # let options = Options::new().env(std::sync::Arc::new(MemEnv::new()));
/// let error = Db::open("/nowhere", options).unwrap_err();
/// assert_eq!(error.kind(), ErrorKind::InvalidArgument);
/// assert!(error.message().contains("/nowhere"));
/// let error: std::io::Error = error.into(); // for `?` beside other input and output
/// assert_eq!(error.kind(), std::io::ErrorKind::InvalidInput);
/// # Ok::<_, terrace::Error>(())
/// ```
#[derive(Clone)]
pub struct Error(Arc<Inner>);

struct Inner {
    kind: ErrorKind,
    message: String,
    source: Option<io::Error>,
}

/// The result of every fallible call in this crate.
///
/// ```
/// # use terrace::*;
/// fn rename(db: &Db, from: &str, to: &str) -> Result<()> {
///     if let Some(value) = db.get(from)? {
///         let mut batch = WriteBatch::new();
///         batch.delete(from);
///         batch.put(to, value);
///         db.write(&batch)?;
///     }
///     Ok(())
/// }
/// # Ok::<_, terrace::Error>(())
/// ```
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    fn new(kind: ErrorKind, message: String, source: Option<io::Error>) -> Self {
        Error(Arc::new(Inner { kind, message, source }))
    }

    /// Something named in the request does not exist.
    pub fn not_found(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::NotFound, message.into(), None)
    }

    /// Damaged bytes. Name the file and the offset in `message`.
    pub fn corruption(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Corruption, message.into(), None)
    }

    /// A meaningful request that cannot be served here.
    pub fn not_supported(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::NotSupported, message.into(), None)
    }

    /// An argument or option out of range.
    ///
    /// ```
    /// # use terrace::*;
    /// let error = Error::invalid_argument("no such colour"); // for a merge operator of one's own
    /// assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    /// # Ok::<_, terrace::Error>(())
    /// ```
    pub fn invalid_argument(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::InvalidArgument, message.into(), None)
    }

    /// Another owner holds a resource.
    pub fn busy(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Busy, message.into(), None)
    }

    /// The database was closed.
    pub fn closed(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Closed, message.into(), None)
    }

    /// Others have written meanwhile.
    pub fn conflict(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Conflict, message.into(), None)
    }

    /// Transactions wait for one another.
    pub fn deadlock(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Deadlock, message.into(), None)
    }

    /// A lock was not to be had in time.
    pub fn timed_out(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::TimedOut, message.into(), None)
    }

    /// An I/O failure without an operating-system error behind it.
    pub fn io_message(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Io, message.into(), None)
    }

    /// Memory lacks for what was to be read: nothing is said of the bytes on disk.
    pub(crate) fn out_of_memory(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Io, message.into(), Some(io::ErrorKind::OutOfMemory.into()))
    }

    /// Whether memory lacked, Terrace's or the operating system's (ENOMEM).
    pub(crate) fn is_out_of_memory(&self) -> bool {
        let source = self.0.source.as_ref();
        source.is_some_and(|source| source.kind() == io::ErrorKind::OutOfMemory)
    }

    /// The operating system refused `operation` on `path`.
    ///
    /// A missing file becomes [`ErrorKind::NotFound`]; everything else is [`ErrorKind::Io`].
    ///
    /// ```
    /// # use terrace::*;
    /// use std::io;
    /// use std::path::Path;
    ///
    /// // For an `Env` of one's own.
    /// let missing = io::Error::from(io::ErrorKind::NotFound);
    /// let error = Error::io("open", Path::new("/db/CURRENT"), missing);
    /// assert_eq!(error.kind(), ErrorKind::NotFound);
    /// assert!(error.message().starts_with("open /db/CURRENT: "));
    /// ```
    pub fn io(operation: &str, path: &Path, source: io::Error) -> Self {
        let kind = match source.kind() {
            io::ErrorKind::NotFound => ErrorKind::NotFound,
            _ => ErrorKind::Io,
        };
        let message = format!("{operation} {}: {source}", path.display());
        Self::new(kind, message, Some(source))
    }

    /// The same error, its message prefixed with where it was met.
    ///
    /// ```
    /// # use terrace::*;
    /// let error = Error::invalid_argument("no such colour").context("line 7");
    /// assert_eq!(error.message(), "line 7: no such colour");
    /// # Ok::<_, terrace::Error>(())
    /// ```
    #[must_use]
    pub fn context(self, place: impl fmt::Display) -> Self {
        let message = format!("{place}: {}", self.0.message);
        let source = self.0.source.as_ref().map(clone_io);
        Self::new(self.0.kind, message, source)
    }

    /// The coarse kind.
    ///
    /// ```
    /// # use terrace::*;
    /// fn is_worth_another_try(error: &Error) -> bool {
    ///     matches!(error.kind(), ErrorKind::Conflict | ErrorKind::Deadlock | ErrorKind::TimedOut)
    /// }
    /// # let _ = is_worth_another_try;
    /// # Ok::<_, terrace::Error>(())
    /// ```
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// The message without the kind.
    ///
    /// ```
    /// # use terrace::*;
    /// let error = Error::invalid_argument("no such colour");
    /// assert_eq!(error.message(), "no such colour");
    /// assert_eq!(error.to_string(), "invalid argument: no such colour");
    /// ```
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// The operating system's error number, where one is behind this error.
    ///
    /// ```
    /// # use terrace::*;
    /// # let options = Options::new().env(std::sync::Arc::new(MemEnv::new()));
    /// let error = Db::open("/nowhere", options).unwrap_err();
    /// assert_eq!(error.raw_os_error(), None); // the engine's own, no call of the system failed
    /// ```
    pub fn raw_os_error(&self) -> Option<i32> {
        self.0.source.as_ref().and_then(io::Error::raw_os_error)
    }

    /// Whether the device or quota is full (ENOSPC, EDQUOT).
    ///
    /// ```
    /// # use terrace::*;
    /// # let options = Options::new().env(std::sync::Arc::new(MemEnv::new()));
    /// # let db = Db::open("/db", options.create_if_missing(true))?;
    /// match db.put("apple", "red") {
    ///     Err(error) if error.is_out_of_space() => println!("make room and go on"),
    ///     result => result?,
    /// }
    /// # Ok::<_, terrace::Error>(())
    /// ```
    pub fn is_out_of_space(&self) -> bool {
        matches!(self.raw_os_error(), Some(libc::ENOSPC | libc::EDQUOT))
    }

    /// Whether the process or system ran out of file descriptors (EMFILE, ENFILE).
    ///
    /// ```
    /// # use terrace::*;
    /// # let options = Options::new().env(std::sync::Arc::new(MemEnv::new()));
    /// # let db = Db::open("/db", options.create_if_missing(true))?;
    /// match db.get("apple") {
    ///     Err(error) if error.is_out_of_descriptors() => println!("raise `ulimit -n`"),
    ///     result => drop(result?),
    /// }
    /// # Ok::<_, terrace::Error>(())
    /// ```
    pub fn is_out_of_descriptors(&self) -> bool {
        matches!(self.raw_os_error(), Some(libc::EMFILE | libc::ENFILE))
    }
}

fn clone_io(error: &io::Error) -> io::Error {
    match error.raw_os_error() {
        Some(code) => io::Error::from_raw_os_error(code),
        None => io::Error::new(error.kind(), error.to_string()),
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.0.kind, self.0.message)
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Error")
            .field("kind", &self.0.kind)
            .field("message", &self.0.message)
            .finish()
    }
}

/// The message has the operating system's error in it, so there is no
/// [`source`](std::error::Error::source) that would repeat it; [`Error::raw_os_error`] has the
/// number, and [`io::Error::from`] the rest.
impl std::error::Error for Error {}

impl From<Error> for io::Error {
    fn from(error: Error) -> Self {
        let kind = match (&error.0.source, error.kind()) {
            (Some(source), _) => source.kind(),
            (None, ErrorKind::NotFound) => io::ErrorKind::NotFound,
            (None, ErrorKind::Corruption) => io::ErrorKind::InvalidData,
            (None, ErrorKind::NotSupported) => io::ErrorKind::Unsupported,
            (None, ErrorKind::InvalidArgument) => io::ErrorKind::InvalidInput,
            (None, ErrorKind::Busy) => io::ErrorKind::ResourceBusy,
            (None, ErrorKind::Deadlock) => io::ErrorKind::Deadlock,
            (None, ErrorKind::TimedOut) => io::ErrorKind::TimedOut,
            (None, ErrorKind::Io | ErrorKind::Conflict | ErrorKind::Closed) => io::ErrorKind::Other,
        };
        io::Error::new(kind, error)
    }
}
