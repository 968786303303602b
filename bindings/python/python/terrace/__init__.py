"""Terrace: an embedded, ordered, persistent key-value store on LevelDB's files.

Everything that plyvel 1.5 has is here under the same name, so that
``import terrace as plyvel`` is all that a program needs to change.
"""

from ._errors import (
    BusyError,
    ConflictError,
    CorruptionError,
    Error,
    IOError,
    IteratorInvalidError,
    NotSupportedError,
)
from ._terrace import (
    DB,
    Iterator,
    ManyIterator,
    PrefixedDB,
    RawIterator,
    Snapshot,
    Transaction,
    TransactionIterator,
    WriteBatch,
    __version__,
    destroy_db,
    repair_db,
    verify_db,
)

#: The release of LevelDB whose files and behaviour these are.
__leveldb_version__ = "1.23"

__all__ = [
    "BusyError",
    "ConflictError",
    "CorruptionError",
    "DB",
    "Error",
    "IOError",
    "Iterator",
    "IteratorInvalidError",
    "ManyIterator",
    "NotSupportedError",
    "PrefixedDB",
    "RawIterator",
    "Snapshot",
    "Transaction",
    "TransactionIterator",
    "WriteBatch",
    "__leveldb_version__",
    "__version__",
    "destroy_db",
    "repair_db",
    "verify_db",
]
