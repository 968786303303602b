"""Everything that is closed raises RuntimeError, and closing is never wrong."""

import collections.abc
import itertools
import pathlib
import random
import subprocess
import sys
import threading
import time
import typing

import pytest

import terrace

Call = collections.abc.Callable[[], object]


def reads(name: str, thing: typing.Any) -> dict[str, Call]:
    """Returns every way to read."""
    return {
        f"{name}.get": lambda: thing.get(b"a"),
        f"{name}.getitem": lambda: thing[b"a"],
        f"{name}.contains": lambda: b"a" in thing,
        f"{name}.get_many": lambda: thing.get_many([b"a"]),
        f"{name}.iter": lambda: iter(thing),
        f"{name}.iterator": lambda: thing.iterator(),
        f"{name}.iter_many": lambda: thing.iter_many(),
        f"{name}.keys": lambda: thing.keys(),
        f"{name}.values": lambda: thing.values(),
        f"{name}.items": lambda: thing.items(),
    }


def writes(name: str, thing: typing.Any) -> dict[str, Call]:
    """Returns every way to write."""
    return {
        f"{name}.put": lambda: thing.put(b"a", b"1"),
        f"{name}.delete": lambda: thing.delete(b"a"),
        f"{name}.setitem": lambda: thing.__setitem__(b"a", b"1"),
        f"{name}.delitem": lambda: thing.__delitem__(b"a"),
        f"{name}.update": lambda: thing.update({}),
        f"{name}.write_batch": lambda: thing.write_batch(),
        f"{name}.snapshot": lambda: thing.snapshot(),
    }


def calls(db: terrace.DB) -> dict[str, Call]:
    """Returns every way to use a database and what was made of it, by names."""
    prefixed, snapshot, batch = db.prefixed_db(b"a"), db.snapshot(), db.write_batch()
    iterator, many, raw = db.iterator(), db.iter_many(), db.raw_iterator()
    transaction = db.transaction()
    own = transaction.iterator()
    found = reads("db", db) | reads("prefixed", prefixed) | reads("snapshot", snapshot)
    found |= writes("db", db) | writes("prefixed", prefixed)
    found |= {
        "db.transaction": db.transaction,
        "db.transact": lambda: db.transact(lambda transaction: None),
        "db.raw_iterator": db.raw_iterator,
        "db.get_property": lambda: db.get_property(b"leveldb.stats"),
        "db.compact_range": db.compact_range,
        "db.create_keyspace": lambda: db.create_keyspace("a"),
        "db.keyspace": lambda: db.keyspace("a"),
        "db.keyspaces": db.keyspaces,
        "db.drop_keyspace": lambda: db.drop_keyspace("a"),
        "db.delete_range": db.delete_range,
        "db.flush": db.flush,
        "db.sync": db.sync,
        "db.wait_idle": db.wait_idle,
        "db.approximate_size": lambda: db.approximate_size(b"a", b"b"),
        "db.approximate_sizes": lambda: db.approximate_sizes((b"a", b"b")),
        "db.stats": db.stats,
        "db.checkpoint": lambda: db.checkpoint("never"),
        "db.verify": db.verify,
        "snapshot.raw_iterator": snapshot.raw_iterator,
        "batch.put": lambda: batch.put(b"a", b"1"),
        "batch.delete": lambda: batch.delete(b"a"),
        "batch.clear": batch.clear,
        "batch.write": batch.write,
        "batch.len": lambda: len(batch),
        "batch.size": batch.approximate_size,
        "batch.append": lambda: batch.append(batch),
        "batch.enter": batch.__enter__,
        "batch.exit": lambda: batch.__exit__(None, None, None),
        "iterator.next": lambda: next(iterator),
        "iterator.prev": iterator.prev,
        "iterator.seek": lambda: iterator.seek(b"a"),
        "iterator.seek_to_start": iterator.seek_to_start,
        "iterator.seek_to_stop": iterator.seek_to_stop,
        "many.next": lambda: next(many),
        "raw.valid": raw.valid,
        "raw.next": raw.next,
        "raw.prev": raw.prev,
        "raw.key": raw.key,
        "raw.value": raw.value,
        "raw.item": raw.item,
        "raw.seek": lambda: raw.seek(b"a"),
        "raw.seek_to_first": raw.seek_to_first,
        "raw.seek_to_last": raw.seek_to_last,
        "transaction.get": lambda: transaction.get(b"a"),
        "transaction.get_for_update": lambda: transaction.get_for_update(b"a"),
        "transaction.put": lambda: transaction.put(b"a", b"1"),
        "transaction.delete": lambda: transaction.delete(b"a"),
        "transaction.iter": lambda: iter(transaction),
        "transaction.len": lambda: len(transaction),
        "transaction.commit": transaction.commit,
        "transaction.savepoint": transaction.set_savepoint,
        "own.next": lambda: next(own),
    }
    return found


def test_after_close_everything_raises(directory: pathlib.Path) -> None:
    db = terrace.DB(directory, create_if_missing=True)
    db.update({b"a": b"1", b"b": b"2"})
    found = calls(db)
    db.close()
    db.close()
    assert db.closed
    for name, call in found.items():
        with pytest.raises(RuntimeError):
            call()
            print(f"{name} does not raise")
    # It is closed, and not only says so.
    terrace.DB(directory).close()


def test_objects_may_go_in_any_order(directory: pathlib.Path, chance: random.Random) -> None:
    for _ in range(200):
        db: typing.Any = terrace.DB(directory, create_if_missing=True)
        db.put(b"a", b"1")
        things = [db, db.iterator(), db.iter_many(), db.raw_iterator(), db.snapshot()]
        things += [db.write_batch(), db.transaction(), db.prefixed_db(b"a")]
        things += [things[4].iterator(), things[6].iterator(), things[7].iterator()]
        del db
        chance.shuffle(things)
        while things:
            if chance.random() < 0.2:
                getattr(chance.choice(things), "close", int)()
            things.pop()


def test_a_close_beside_readers_and_writers(directory: pathlib.Path) -> None:
    for _ in range(20):
        db = terrace.DB(directory, create_if_missing=True)
        db.update((b"%d" % number, bytes(100)) for number in range(1000))
        started = threading.Barrier(7)

        def work(use: collections.abc.Callable[[], object]) -> None:
            started.wait()
            with pytest.raises(RuntimeError):
                while True:
                    use()

        iterator = itertools.cycle(range(1000))
        uses: list[collections.abc.Callable[[], object]] = [
            lambda: db.put(b"%d" % next(iterator), b"x"),
            lambda: db.get(b"17"),
            lambda: list(db.iterator()),
            lambda: list(db.iter_many(100)),
            lambda: db.snapshot().get(b"3"),
            lambda: db.get_many([b"1", b"2"]),
        ]
        threads = [threading.Thread(target=work, args=(use,)) for use in uses]
        for thread in threads:
            thread.start()
        started.wait()
        time.sleep(0)
        db.close()
        for thread in threads:
            thread.join()


def test_every_close_waits_until_the_database_is_closed(directory: pathlib.Path) -> None:
    blocks, entered, go_on = threading.Event(), threading.Event(), threading.Event()

    def order(a: bytes, b: bytes) -> int:
        if blocks.is_set():
            entered.set()
            go_on.wait()
        return (a > b) - (a < b)

    options: dict[str, typing.Any] = {"comparator": order, "comparator_name": b"test.order"}
    db = terrace.DB(directory, create_if_missing=True, **options)
    for _ in range(2):
        db.update((b"%d" % number, bytes(100)) for number in range(100))
        db.flush()

    def compact() -> None:
        with pytest.raises((RuntimeError, terrace.Error)):
            while True:
                db.compact_range()

    blocks.set()
    compaction = threading.Thread(target=compact)
    compaction.start()
    assert entered.wait(60)
    closes = [threading.Thread(target=db.close) for _ in range(3)]
    for close in closes:
        close.start()
        close.join(0.1)
    assert [close.is_alive() for close in closes] == [True] * 3
    blocks.clear()
    go_on.set()
    closes.pop().join()
    terrace.DB(directory, **options).close()
    for thread in (*closes, compaction):
        thread.join()


# With this switch interval a daemon thread that released the GIL in close does not get it back,
# unless it closes its database before the main thread takes the GIL. So there are 20 of them.
CLOSED_AT_EXIT = """
import sys, threading, terrace

class Owner:
    def __init__(self, db):
        self.db = db

    def __del__(self):
        self.db.close()
        print("closed", flush=True)

paths = (sys.argv[1] + str(number) for number in range(20))
owners = [Owner(terrace.DB(path, create_if_missing=True)) for path in paths]
sys.setswitchinterval(1000)
for owner in owners:
    threading.Thread(target=owner.db.close, daemon=True).start()
"""


def test_a_finalizer_does_not_wait_for_a_daemon_thread_to_return_from_close(
    directory: pathlib.Path,
) -> None:
    command = [sys.executable, "-c", CLOSED_AT_EXIT, str(directory)]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=20, check=False)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "closed\n" * 20, "")


def test_threads_may_share_an_iterator(db: terrace.DB) -> None:
    db.update((b"%05d" % number, b"") for number in range(20_000))
    iterator = db.iterator(include_value=False)
    seen: list[list[bytes]] = [[] for _ in range(4)]

    def work(mine: list[bytes]) -> None:
        mine.extend(iterator)

    threads = [threading.Thread(target=work, args=(mine,)) for mine in seen]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(itertools.chain(*seen)) == [b"%05d" % number for number in range(20_000)]
    assert all(mine == sorted(mine) for mine in seen)


def test_four_threads_write_and_read(db: terrace.DB) -> None:
    def work(name: int) -> None:
        for number in range(3000):
            key = b"%d/%05d" % (name, number)
            db.put(key, key)
            assert db.get(key) == key
        part = db.prefixed_db(b"%d/" % name)
        assert [len(entries) for entries in part.iter_many()] == [1000, 1000, 1000]

    threads = [threading.Thread(target=work, args=(name,)) for name in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(1 for _ in db.keys()) == 12_000


CLOSED_BY_A_FINALIZER = """
import sys
import terrace
db = terrace.DB(sys.argv[1], create_if_missing=True)
db.update((b"%05d" % number, b"") for number in range(5_000))
transaction = db.transaction()

class Owner:
    def __init__(self, rows):
        # A cycle, for the collector of garbage.
        self.rows, self.me = rows, self

    def __del__(self):
        self.rows.close()

for open_rows in [db.iterator, db.iter_many, lambda: db.raw_iterator(), transaction.iterator]:
    rows = Owner(open_rows()).rows
    kept = []
    try:
        if hasattr(rows, "item"):
            rows.seek_to_first()
            while rows.valid():
                kept.append([rows.item()])
                rows.next()
        else:
            for row in rows:
                kept.append([row])
    except RuntimeError:
        pass
print("ended")
"""


def test_a_finalizer_may_close_the_iterator_that_is_being_read(directory: pathlib.Path) -> None:
    """Up to Python 3.11 a collection begins wherever a container is made."""
    command = [sys.executable, "-c", CLOSED_BY_A_FINALIZER, str(directory)]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "ended\n", "")
