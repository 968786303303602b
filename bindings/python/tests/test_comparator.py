"""An order of keys that is a function in Python."""

import pathlib
import random
import subprocess
import sys
import threading

import pytest

import terrace


def backwards(a: bytes, b: bytes) -> int:
    return (a < b) - (a > b)


def test_keys_are_in_the_functions_order(directory: pathlib.Path, chance: random.Random) -> None:
    options = {"comparator": backwards, "comparator_name": b"test.backwards"}
    model = {b"%05d" % chance.randrange(100_000): b"%d" % number for number in range(3000)}
    with terrace.DB(directory, create_if_missing=True, **options) as db:  # type: ignore[arg-type]
        entries = list(model.items())
        db.update(entries[:1500])
        db.flush()
        for key, value in entries[1500:]:
            db.put(key, value)
        assert list(db.iterator(include_value=False)) == sorted(model, reverse=True)
    with terrace.DB(directory, **options) as db:  # type: ignore[arg-type]
        db.compact_range()
        assert [entry for part in db.iter_many(64) for entry in part] == sorted(
            model.items(), reverse=True
        )
        expected = sorted((key for key in model if b"2" < key <= b"7"), reverse=True)
        assert list(db.iterator(start=b"7", stop=b"2", include_value=False)) == expected
        with db.transaction() as transaction:
            transaction[b"zzz"] = b"first"
            assert next(iter(transaction)) == (b"zzz", b"first")
        assert db.get_many([b"zzz", entries[0][0]]) == [b"first", entries[0][1]]
        assert db.verify()["is_clean"]
    assert terrace.verify_db(directory, **options)["is_clean"]
    assert terrace.repair_db(directory, **options)["problems"] == []
    with pytest.raises(terrace.Error, match="comparator"):
        terrace.DB(directory)
    terrace.destroy_db(directory)


def test_background_threads_compare_beside_busy_ones(directory: pathlib.Path) -> None:
    """Nobody waits for the GIL with a lock that somebody with the GIL waits for."""
    with terrace.DB(
        directory,
        create_if_missing=True,
        write_buffer_size=64 << 10,
        comparator=backwards,
        comparator_name=b"test.backwards",
    ) as db:

        def write(name: int) -> None:
            for number in range(1500):
                db.put(b"%d/%d" % (number % 700, name), bytes(200))

        def read() -> None:
            for number in range(60):
                next(db.iterator())
                db.snapshot().get(b"%d/1" % number)
                list(db.iter_many(50, stop=b"69"))
                db.stats()

        threads = [threading.Thread(target=write, args=(name,)) for name in range(3)]
        threads += [threading.Thread(target=read) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sum(1 for _ in db) == 2100
        assert db.verify()["is_clean"]
        for number in range(500):
            db.put(b"%d" % number, bytes(500))
        # Closed while background threads compare.


class Spoiled(Exception):
    pass


@pytest.mark.parametrize("moment", ["put", "get", "scan", "background"])
def test_an_exception_of_the_function_is_raised_and_ends_writing(
    directory: pathlib.Path, moment: str
) -> None:
    spoiled = threading.Event()

    def compare(a: bytes, b: bytes) -> int:
        if spoiled.is_set():
            raise Spoiled
        return (a > b) - (a < b)

    db = terrace.DB(
        directory, create_if_missing=True, comparator=compare, comparator_name=b"test.spoiled"
    )
    expected = {b"%03d" % number: bytes(100) for number in range(200)}
    db.update(expected)
    db.flush()
    for number in range(200, 300):
        expected[b"%03d" % number] = b"log"
        db.put(b"%03d" % number, b"log")
    iterator = db.iterator()
    next(iterator)
    spoiled.set()
    with pytest.raises(Spoiled):
        if moment == "put":
            db.put(b"0", b"1")
        elif moment == "get":
            db.get(b"0")
        elif moment == "scan":
            list(iterator)
        else:
            db.compact_range()
    spoiled.clear()
    for _ in range(2):
        with pytest.raises(terrace.Error, match="the comparator test.spoiled has raised"):
            db.put(b"0", b"1")
        with pytest.raises(terrace.Error):
            db.get(b"0")
    try:
        db.close()
    except terrace.Error as error:
        assert "has to be opened again" in str(error)
    assert db.closed
    with terrace.DB(directory, comparator=compare, comparator_name=b"test.spoiled") as db:
        found = dict(db)
        # The put may have reached the log before its place was looked for.
        if moment == "put":
            found.pop(b"0", None)
        assert found == expected
        assert db.verify()["is_clean"]


def test_a_function_that_returns_no_number(directory: pathlib.Path) -> None:
    db = terrace.DB(
        directory,
        create_if_missing=True,
        comparator=lambda a, b: "less",  # type: ignore[arg-type, return-value]
        comparator_name=b"test.text",
    )
    with pytest.raises(TypeError):
        db.update({b"a": b"", b"b": b""})
    with pytest.raises(terrace.Error):
        db.get(b"a")


def test_a_name_is_bytes_like(directory: pathlib.Path) -> None:
    with pytest.raises(TypeError, match="a bytes-like object is required, not 'str'"):
        terrace.DB(
            directory,
            create_if_missing=True,
            comparator=lambda a, b: (a > b) - (a < b),
            comparator_name="test.text",  # type: ignore[arg-type]
        )


def test_databases_are_not_used_within_the_function(directory: pathlib.Path) -> None:
    def compare(a: bytes, b: bytes) -> int:
        db.get(a)
        return (a > b) - (a < b)

    db = terrace.DB(
        directory, create_if_missing=True, comparator=compare, comparator_name=b"test.curious"
    )
    with pytest.raises(RuntimeError, match="a comparator must not use a database"):
        db.update({b"a": b"", b"b": b""})


@pytest.mark.parametrize(
    "ending",
    [
        "pass",
        "sys.exit(0)",
        "db.close()",
        "del db",
        "threading.Thread(target=busy, daemon=True).start()",
        "threading.Thread(target=busy, daemon=True).start(); sys.exit(0)",
    ],
)
def test_a_program_may_end_with_a_database_open(directory: pathlib.Path, ending: str) -> None:
    code = f"""
import sys, threading, terrace
db = terrace.DB(sys.argv[1], create_if_missing=True, write_buffer_size=64 << 10,
    comparator=lambda a, b: (a > b) - (a < b), comparator_name=b"test.end")
plain = terrace.DB(sys.argv[1] + "2", create_if_missing=True)
iterator = plain.iterator()
def busy():
    number = 0
    while True:
        number += 1
        try:
            plain.put(b"%d" % number, bytes(100))
            db.put(b"%d" % number, bytes(100))
        except RuntimeError:
            pass
for number in range(3000):
    db.put(b"%d" % (number * 7919 % 3000), bytes(100))
    plain.put(b"%d" % number, b"")
{ending}
"""
    command = [sys.executable, "-c", code, str(directory)]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert terrace.verify_db(str(directory) + "2")["is_clean"]
