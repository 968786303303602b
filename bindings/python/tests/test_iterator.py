"""Iterators beside a model: a sorted list, and a position between two of its entries."""

import bisect
import pathlib
import random
import typing

import pytest

import terrace

Entry = tuple[bytes, bytes]


class Model:
    """What an iterator does, for one range and direction."""

    def __init__(
        self,
        entries: list[Entry],
        *,
        reverse: bool,
        start: bytes | None,
        stop: bytes | None,
        include_start: bool,
        include_stop: bool,
    ) -> None:
        self.reverse, self.start, self.stop = reverse, start, stop
        self.entries = [
            (key, value)
            for key, value in entries
            if (start is None or key > start or (include_start and key == start))
            and (stop is None or key < stop or (include_stop and key == stop))
        ]
        self.at = len(self.entries) if reverse else 0

    def step(self, forward: bool) -> Entry | None:
        if forward:
            if self.at == len(self.entries):
                return None
            self.at += 1
            return self.entries[self.at - 1]
        if self.at == 0:
            return None
        self.at -= 1
        return self.entries[self.at]

    def next(self) -> Entry | None:
        return self.step(not self.reverse)

    def prev(self) -> Entry | None:
        return self.step(self.reverse)

    def seek(self, target: bytes) -> None:
        if self.start is not None:
            target = max(target, self.start)
        if self.stop is not None:
            target = min(target, self.stop)
        self.at = bisect.bisect_left([key for key, _ in self.entries], target)


def key(chance: random.Random) -> bytes:
    return b"%03d" % chance.randrange(400) + bytes(chance.choices(b"\x00a\xff", k=2))


def fill(db: terrace.DB, chance: random.Random) -> list[Entry]:
    """Fills tables and memtable; now and then with values that are not read ahead."""
    model: dict[bytes, bytes] = {}
    for number in range(chance.randrange(600)):
        if chance.random() < 0.2 and model:
            gone = chance.choice(list(model))
            del model[gone]
            db.delete(gone)
        else:
            size = 20_000 if chance.random() < 0.1 else chance.randrange(50)
            new = key(chance)
            model[new] = chance.randbytes(8) + bytes(size)
            db.put(new, model[new])
        if number % 150 == 149:
            db.flush()
    return sorted(model.items())


def take(step: object) -> object:
    assert callable(step)
    try:
        return step()
    except StopIteration:
        return None


@pytest.mark.parametrize("run", range(30))
def test_iterators_do_what_the_model_does(
    db: terrace.DB, chance: random.Random, run: int
) -> None:
    entries = fill(db, chance)
    source = db.snapshot() if chance.random() < 0.3 else db
    for _ in range(20):
        reverse, include_start, include_stop = (chance.random() < 0.5 for _ in range(3))
        start = key(chance) if chance.random() < 0.5 else None
        stop = key(chance) if chance.random() < 0.5 else None
        # Bounds that are keys.
        if start is not None and entries and chance.random() < 0.3:
            start = chance.choice(entries)[0]
        if stop is not None and entries and chance.random() < 0.3:
            stop = chance.choice(entries)[0]
        if start is not None and stop is not None and start > stop:
            start, stop = stop, start
        model = Model(
            entries,
            reverse=reverse,
            start=start,
            stop=stop,
            include_start=include_start,
            include_stop=include_stop,
        )
        iterator = source.iterator(
            reverse=reverse,
            start=start,
            stop=stop,
            include_start=include_start,
            include_stop=include_stop,
        )
        for _ in range(60):
            choice = chance.random()
            if choice < 0.5:
                for _ in range(chance.choice((1, 1, 3, 40))):
                    assert take(iterator.__next__) == model.next()
            elif choice < 0.8:
                for _ in range(chance.choice((1, 1, 3, 40))):
                    assert take(iterator.prev) == model.prev()
            elif choice < 0.9:
                target = key(chance)
                iterator.seek(target)
                model.seek(target)
            elif choice < 0.95:
                iterator.seek_to_start()
                model.at = 0
            else:
                iterator.seek_to_stop()
                model.at = len(model.entries)


def test_an_iterator_reads_the_moment_it_was_made(db: terrace.DB) -> None:
    db.update((b"%04d" % number, b"old") for number in range(1000))
    iterator, lists, raw = db.iterator(), db.iter_many(100), db.raw_iterator()
    with db.write_batch() as batch:
        for number in range(1000):
            batch.put(b"%04d" % number, b"new")
        batch.put(b"0000.", b"new")
    assert {value for _, value in iterator} == {b"old"}
    assert sum(len(part) for part in lists) == 1000
    raw.seek_to_first()
    raw.next()
    assert raw.item() == (b"0001", b"old")


def test_closing_an_iterator_twice_is_fine(db: terrace.DB) -> None:
    for iterator in (db.iterator(), db.raw_iterator(), db.iter_many(), db.snapshot()):
        iterator.close()
        iterator.close()


def test_iterators_outlive_the_names_of_their_database(directory: pathlib.Path) -> None:
    iterator = terrace.DB(directory, create_if_missing=True).iterator()
    with pytest.raises(terrace.IOError):
        terrace.DB(directory)
    assert list(iterator) == []
    del iterator
    terrace.DB(directory).close()


def test_unknown_keywords_are_refused(db: terrace.DB) -> None:
    with pytest.raises(TypeError, match="unexpected keyword argument 'sideways'"):
        db.iterator(sideways=True)  # type: ignore[call-overload]
    with pytest.raises(TypeError, match="unexpected keyword argument 'sideways'"):
        terrace.DB("x", sideways=True)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="unexpected keyword argument 'sideways'"):
        terrace.DB("x", sideways=None)  # type: ignore[call-arg]


def test_flags_are_what_they_are_for_plyvel(db: terrace.DB, directory: pathlib.Path) -> None:
    """Bools, and `None` for false; but `paranoid_checks` is anything."""
    db.update({b"a": b"1", b"b": b"2"})
    wrong: typing.Any
    for wrong in (1, 0, "x", []):
        with pytest.raises(TypeError, match="'reverse' must be a bool, not"):
            db.iterator(reverse=wrong)
        with pytest.raises(TypeError, match="sync"):
            db.put(b"a", b"1", sync=wrong)
        with pytest.raises(TypeError, match="'create_if_missing' must be a bool, not"):
            terrace.DB("x", create_if_missing=wrong)
    assert list(db.iterator(include_key=None)) == [b"1", b"2"]
    assert list(db.iterator(include_value=None)) == [b"a", b"b"]
    assert list(db.iterator(start=b"a", include_start=None)) == [(b"b", b"2")]
    assert list(db.iterator(reverse=None, stop=None, fill_cache=None, include_stop=None)) == [
        (b"a", b"1"),
        (b"b", b"2"),
    ]
    db.close()
    for value in (1, 0, "x", None, True):
        terrace.DB(directory, paranoid_checks=value).close()
