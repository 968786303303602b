"""Types of the extension module; what it does is in the docstrings of the classes themselves."""

import os
from collections.abc import Callable, Iterable, Mapping
from types import GenericAlias, TracebackType
from typing import Generic, Literal, NoReturn, TypedDict, TypeVar, final, overload, type_check_only

from typing_extensions import Buffer, Self

__version__: str

_T = TypeVar("_T")
_Item = TypeVar("_Item", covariant=True)
_Name = str | bytes | os.PathLike[str] | os.PathLike[bytes]

@type_check_only
class LevelStats(TypedDict):
    level: int
    files: int
    bytes: int
    compactions: int
    seconds: float
    bytes_read: int
    bytes_written: int

@type_check_only
class Stats(TypedDict):
    levels: list[LevelStats]
    memtable_bytes: int
    immutable_memtables: int
    user_bytes_written: int
    flush_bytes_written: int
    load_bytes_written: int
    compaction_bytes_read: int
    compaction_bytes_written: int
    write_amplification: float
    live_bytes: int
    space_amplification: float
    cache_capacity: int
    cache_used: int
    memory_budget_bytes: int
    memory_used_bytes: int
    cache_hits: int
    cache_misses: int
    filter_checked: int
    filter_useful: int
    open_tables: int
    table_memory_bytes: int
    value_files: int
    value_file_bytes: int
    value_bytes_used: int
    is_extended: bool
    snapshots: int
    oldest_snapshot_seconds: float | None
    stall_count: int
    stall_micros: int
    rate_limited_micros: int
    sequence: int
    pending_compaction_bytes: int
    running_compactions: int
    background_error: str | None

@type_check_only
class CheckpointReport(TypedDict):
    tables: int
    value_files: int
    linked: int
    table_bytes: int
    value_bytes: int
    sequence: int

@type_check_only
class VerifyReport(TypedDict):
    is_clean: bool
    files: int
    blocks: int
    entries: int
    bytes: int
    log_records: int
    problems: list[tuple[str, str]]
    notes: list[tuple[str, str]]

@type_check_only
class RepairReport(TypedDict):
    tables: int
    logs: int
    log_entries: int
    entries: int
    moved: list[str]
    problems: list[tuple[str, str]]

@type_check_only
class _Reads:
    @overload
    def get(
        self,
        key: Buffer,
        default: None = None,
        *,
        verify_checksums: bool | None = None,
        fill_cache: bool | None = None,
    ) -> bytes | None: ...
    @overload
    def get(
        self,
        key: Buffer,
        default: _T,
        *,
        verify_checksums: bool | None = None,
        fill_cache: bool | None = None,
    ) -> bytes | _T: ...
    @overload
    def get_many(
        self, keys: Iterable[Buffer], default: None = None, *, fill_cache: bool | None = None
    ) -> list[bytes | None]: ...
    @overload
    def get_many(
        self, keys: Iterable[Buffer], default: _T, *, fill_cache: bool | None = None
    ) -> list[bytes | _T]: ...
    def __getitem__(self, key: Buffer, /) -> bytes: ...
    def __contains__(self, key: Buffer, /) -> bool: ...
    def __iter__(self) -> Iterator[tuple[bytes, bytes]]: ...
    @overload
    def iterator(
        self,
        *,
        reverse: bool | None = False,
        start: Buffer | None = None,
        stop: Buffer | None = None,
        include_start: bool | None = True,
        include_stop: bool | None = False,
        prefix: Buffer | None = None,
        include_key: Literal[True] = True,
        include_value: Literal[True] = True,
        verify_checksums: bool | None = False,
        fill_cache: bool | None = True,
    ) -> Iterator[tuple[bytes, bytes]]: ...
    @overload
    def iterator(
        self,
        *,
        reverse: bool | None = False,
        start: Buffer | None = None,
        stop: Buffer | None = None,
        include_start: bool | None = True,
        include_stop: bool | None = False,
        prefix: Buffer | None = None,
        include_key: Literal[True] = True,
        include_value: Literal[False] | None,
        verify_checksums: bool | None = False,
        fill_cache: bool | None = True,
    ) -> Iterator[bytes]: ...
    @overload
    def iterator(
        self,
        *,
        reverse: bool | None = False,
        start: Buffer | None = None,
        stop: Buffer | None = None,
        include_start: bool | None = True,
        include_stop: bool | None = False,
        prefix: Buffer | None = None,
        include_key: Literal[False] | None,
        include_value: Literal[True] = True,
        verify_checksums: bool | None = False,
        fill_cache: bool | None = True,
    ) -> Iterator[bytes]: ...
    @overload
    def iterator(
        self,
        *,
        reverse: bool | None = False,
        start: Buffer | None = None,
        stop: Buffer | None = None,
        include_start: bool | None = True,
        include_stop: bool | None = False,
        prefix: Buffer | None = None,
        include_key: Literal[False] | None,
        include_value: Literal[False] | None,
        verify_checksums: bool | None = False,
        fill_cache: bool | None = True,
    ) -> Iterator[None]: ...
    @overload
    def iter_many(
        self,
        size: int = 1000,
        *,
        reverse: bool | None = False,
        start: Buffer | None = None,
        stop: Buffer | None = None,
        include_start: bool | None = True,
        include_stop: bool | None = False,
        prefix: Buffer | None = None,
        include_key: Literal[True] = True,
        include_value: Literal[True] = True,
        verify_checksums: bool | None = False,
        fill_cache: bool | None = True,
    ) -> ManyIterator[tuple[bytes, bytes]]: ...
    @overload
    def iter_many(
        self,
        size: int = 1000,
        *,
        reverse: bool | None = False,
        start: Buffer | None = None,
        stop: Buffer | None = None,
        include_start: bool | None = True,
        include_stop: bool | None = False,
        prefix: Buffer | None = None,
        include_key: Literal[True] = True,
        include_value: Literal[False] | None,
        verify_checksums: bool | None = False,
        fill_cache: bool | None = True,
    ) -> ManyIterator[bytes]: ...
    @overload
    def iter_many(
        self,
        size: int = 1000,
        *,
        reverse: bool | None = False,
        start: Buffer | None = None,
        stop: Buffer | None = None,
        include_start: bool | None = True,
        include_stop: bool | None = False,
        prefix: Buffer | None = None,
        include_key: Literal[False] | None,
        include_value: Literal[True] = True,
        verify_checksums: bool | None = False,
        fill_cache: bool | None = True,
    ) -> ManyIterator[bytes]: ...
    @overload
    def iter_many(
        self,
        size: int = 1000,
        *,
        reverse: bool | None = False,
        start: Buffer | None = None,
        stop: Buffer | None = None,
        include_start: bool | None = True,
        include_stop: bool | None = False,
        prefix: Buffer | None = None,
        include_key: Literal[False] | None,
        include_value: Literal[False] | None,
        verify_checksums: bool | None = False,
        fill_cache: bool | None = True,
    ) -> ManyIterator[None]: ...
    def keys(self) -> Iterator[bytes]: ...
    def values(self) -> Iterator[bytes]: ...
    def items(self) -> Iterator[tuple[bytes, bytes]]: ...
    def __reduce__(self) -> NoReturn: ...

@type_check_only
class _Writes(_Reads):
    def put(self, key: Buffer, value: Buffer, *, sync: bool | None = None) -> None: ...
    def delete(self, key: Buffer, *, sync: bool | None = None) -> None: ...
    def __setitem__(self, key: Buffer, value: Buffer, /) -> None: ...
    def __delitem__(self, key: Buffer, /) -> None: ...
    def update(
        self,
        other: Mapping[bytes, Buffer] | Iterable[Iterable[Buffer]],
        *,
        sync: bool | None = None,
    ) -> None: ...
    def write_batch(
        self, *, transaction: bool | None = None, sync: bool | None = None
    ) -> WriteBatch: ...
    def snapshot(self) -> Snapshot: ...
    def prefixed_db(self, prefix: Buffer) -> PrefixedDB: ...

@final
class DB(_Writes):
    def __new__(
        cls,
        name: _Name,
        *,
        create_if_missing: bool | None = False,
        error_if_exists: bool | None = False,
        paranoid_checks: object = None,
        write_buffer_size: int | None = None,
        max_open_files: int | None = None,
        lru_cache_size: int | None = None,
        block_size: int | None = None,
        block_restart_interval: int | None = None,
        max_file_size: int | None = None,
        compression: Literal["snappy", "lz4", "zstd"] | None = "snappy",
        bloom_filter_bits: int | None = 0,
        comparator: Callable[[bytes, bytes], int] | None = None,
        comparator_name: Buffer | None = None,
        read_only: bool | None = False,
        recovery_mode: Literal["prefix", "strict", "salvage"] | None = "prefix",
        reuse_logs: bool | None = False,
        background_threads: int | None = 2,
        table_filter_bits: int | None = 10,
        compaction_rate_limit: int | None = 0,
        value_log: int | None = None,
    ) -> Self: ...
    @property
    def name(self) -> _Name: ...
    @property
    def closed(self) -> bool: ...
    def close(self) -> None: ...
    def __enter__(self) -> Self: ...
    def __exit__(
        self,
        exc_type: type[BaseException] | None = None,
        _exc_value: BaseException | None = None,
        _traceback: TracebackType | None = None,
    ) -> None: ...
    def sync(self) -> None: ...
    def transaction(self, *, sync: bool | None = None) -> Transaction: ...
    def transact(
        self,
        work: Callable[[Transaction], _T],
        *,
        retries: int | None = None,
        sync: bool | None = None,
    ) -> _T: ...
    def create_keyspace(self, name: str) -> PrefixedDB: ...
    def keyspace(self, name: str) -> PrefixedDB: ...
    def keyspaces(self) -> list[str]: ...
    def drop_keyspace(self, name: str) -> bool: ...
    def delete_range(
        self,
        *,
        start: Buffer | None = None,
        stop: Buffer | None = None,
        sync: bool | None = None,
    ) -> None: ...
    def raw_iterator(
        self, *, verify_checksums: bool | None = None, fill_cache: bool | None = None
    ) -> RawIterator: ...
    def get_property(self, name: Buffer) -> bytes | None: ...
    def compact_range(
        self, *, start: Buffer | None = None, stop: Buffer | None = None
    ) -> None: ...
    def flush(self) -> None: ...
    def wait_idle(self) -> None: ...
    def approximate_size(self, start: Buffer, stop: Buffer) -> int: ...
    def approximate_sizes(self, *ranges: Iterable[Buffer]) -> list[int]: ...
    def stats(self) -> Stats: ...
    def checkpoint(self, name: _Name) -> CheckpointReport: ...
    def verify(self) -> VerifyReport: ...

@final
class PrefixedDB(_Writes):
    def __new__(cls, *, db: DB, prefix: Buffer) -> Self: ...
    @property
    def db(self) -> DB: ...
    @property
    def prefix(self) -> bytes: ...

@final
class Snapshot(_Reads):
    def raw_iterator(
        self, *, verify_checksums: bool | None = None, fill_cache: bool | None = None
    ) -> RawIterator: ...
    def close(self) -> None: ...
    def release(self) -> None: ...
    def __enter__(self) -> Self: ...
    def __exit__(self, *_exception: object) -> Literal[False]: ...

@final
class WriteBatch:
    def put(self, key: Buffer, value: Buffer) -> None: ...
    def delete(self, key: Buffer) -> None: ...
    def __setitem__(self, key: Buffer, value: Buffer, /) -> None: ...
    def __delitem__(self, key: Buffer, /) -> None: ...
    def __len__(self) -> int: ...
    def __bool__(self) -> bool: ...
    def clear(self) -> None: ...
    def write(self) -> None: ...
    def approximate_size(self) -> int: ...
    def append(self, source: WriteBatch) -> None: ...
    def __enter__(self) -> Self: ...
    def __exit__(
        self,
        exc_type: type[BaseException] | None = None,
        _exc_value: BaseException | None = None,
        _traceback: TracebackType | None = None,
    ) -> None: ...
    def __reduce__(self) -> NoReturn: ...

@final
class Iterator(Generic[_Item]):
    def __iter__(self) -> Self: ...
    def __next__(self) -> _Item: ...
    def prev(self) -> _Item: ...
    def seek_to_start(self) -> None: ...
    def seek_to_stop(self) -> None: ...
    def seek(self, target: Buffer) -> None: ...
    def close(self) -> None: ...
    def __enter__(self) -> Self: ...
    def __exit__(self, *_exception: object) -> Literal[False]: ...
    def __reduce__(self) -> NoReturn: ...
    @classmethod
    def __class_getitem__(cls, item: object) -> GenericAlias: ...

@final
class ManyIterator(Generic[_Item]):
    def __iter__(self) -> Self: ...
    def __next__(self) -> list[_Item]: ...
    def close(self) -> None: ...
    def __enter__(self) -> Self: ...
    def __exit__(self, *_exception: object) -> Literal[False]: ...
    def __reduce__(self) -> NoReturn: ...
    @classmethod
    def __class_getitem__(cls, item: object) -> GenericAlias: ...

@final
class RawIterator:
    def valid(self) -> bool: ...
    def seek_to_first(self) -> None: ...
    def seek_to_last(self) -> None: ...
    def seek(self, target: Buffer) -> None: ...
    def next(self) -> None: ...
    def prev(self) -> None: ...
    def key(self) -> bytes: ...
    def value(self) -> bytes: ...
    def item(self) -> tuple[bytes, bytes]: ...
    def close(self) -> None: ...
    def __enter__(self) -> Self: ...
    def __exit__(self, *_exception: object) -> Literal[False]: ...
    def __reduce__(self) -> NoReturn: ...

@final
class Transaction:
    @overload
    def get(self, key: Buffer, default: None = None) -> bytes | None: ...
    @overload
    def get(self, key: Buffer, default: _T) -> bytes | _T: ...
    @overload
    def get_for_update(self, key: Buffer, default: None = None) -> bytes | None: ...
    @overload
    def get_for_update(self, key: Buffer, default: _T) -> bytes | _T: ...
    def put(self, key: Buffer, value: Buffer) -> None: ...
    def delete(self, key: Buffer) -> None: ...
    def __getitem__(self, key: Buffer, /) -> bytes: ...
    def __setitem__(self, key: Buffer, value: Buffer, /) -> None: ...
    def __delitem__(self, key: Buffer, /) -> None: ...
    def __contains__(self, key: Buffer, /) -> bool: ...
    def __len__(self) -> int: ...
    def __bool__(self) -> bool: ...
    def __iter__(self) -> TransactionIterator[tuple[bytes, bytes]]: ...
    @overload
    def iterator(
        self,
        *,
        reverse: bool | None = False,
        start: Buffer | None = None,
        stop: Buffer | None = None,
        include_start: bool | None = True,
        include_stop: bool | None = False,
        prefix: Buffer | None = None,
        include_key: Literal[True] = True,
        include_value: Literal[True] = True,
    ) -> TransactionIterator[tuple[bytes, bytes]]: ...
    @overload
    def iterator(
        self,
        *,
        reverse: bool | None = False,
        start: Buffer | None = None,
        stop: Buffer | None = None,
        include_start: bool | None = True,
        include_stop: bool | None = False,
        prefix: Buffer | None = None,
        include_key: Literal[True] = True,
        include_value: Literal[False] | None,
    ) -> TransactionIterator[bytes]: ...
    @overload
    def iterator(
        self,
        *,
        reverse: bool | None = False,
        start: Buffer | None = None,
        stop: Buffer | None = None,
        include_start: bool | None = True,
        include_stop: bool | None = False,
        prefix: Buffer | None = None,
        include_key: Literal[False] | None,
        include_value: Literal[True] = True,
    ) -> TransactionIterator[bytes]: ...
    @overload
    def iterator(
        self,
        *,
        reverse: bool | None = False,
        start: Buffer | None = None,
        stop: Buffer | None = None,
        include_start: bool | None = True,
        include_stop: bool | None = False,
        prefix: Buffer | None = None,
        include_key: Literal[False] | None,
        include_value: Literal[False] | None,
    ) -> TransactionIterator[None]: ...
    def set_savepoint(self) -> None: ...
    def rollback_to_savepoint(self) -> None: ...
    def commit(self) -> None: ...
    def rollback(self) -> None: ...
    def __enter__(self) -> Self: ...
    def __exit__(
        self,
        exc_type: type[BaseException] | None = None,
        _exc_value: BaseException | None = None,
        _traceback: TracebackType | None = None,
    ) -> None: ...
    def __reduce__(self) -> NoReturn: ...

@final
class TransactionIterator(Generic[_Item]):
    def __iter__(self) -> Self: ...
    def __next__(self) -> _Item: ...
    def close(self) -> None: ...
    def __enter__(self) -> Self: ...
    def __exit__(self, *_exception: object) -> Literal[False]: ...
    def __reduce__(self) -> NoReturn: ...
    @classmethod
    def __class_getitem__(cls, item: object) -> GenericAlias: ...

def repair_db(name: _Name, **options: object) -> RepairReport: ...
def destroy_db(name: _Name) -> None: ...
def verify_db(name: _Name, **options: object) -> VerifyReport: ...
