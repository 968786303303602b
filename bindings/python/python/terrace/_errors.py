"""The exceptions of the package: plyvel's, and a few below them."""


class Error(Exception):
    """What every error of a database is, except for the use of something closed."""


class IOError(Error, OSError):
    """The operating system refused something. The text names the operation and the path; `errno`
    is set where the system gave a number."""


class BusyError(IOError):
    """The database is open elsewhere."""


class CorruptionError(Error):
    """Bytes on disk are not what they must be. The text names the file and, where known, the
    offset."""


class ConflictError(Error):
    """Others have written a key that a transaction writes or has read for update. Nothing has
    happened: run the transaction again."""


class NotSupportedError(Error):
    """The database cannot do it: it was opened read-only, or by the parent of this process."""


class IteratorInvalidError(Error):
    """A `RawIterator` is at no entry."""


for _class in (
    Error,
    IOError,
    BusyError,
    CorruptionError,
    ConflictError,
    NotSupportedError,
    IteratorInvalidError,
):
    _class.__module__ = "terrace"
