"""The mapping protocol, many keys at once, and prefixes."""

import copy
import pathlib
import pickle
import random
import typing

import pytest

import terrace


def test_items_are_set_read_and_removed(db: terrace.DB) -> None:
    db[b"apple"] = b"red"
    assert db[b"apple"] == b"red"
    assert b"apple" in db
    del db[b"apple"]
    assert b"apple" not in db
    with pytest.raises(KeyError) as raised:
        db[b"apple"]
    assert raised.value.args == (b"apple",)
    with pytest.raises(KeyError):
        del db[b"apple"]


def test_keys_values_and_items_are_in_order(db: terrace.DB) -> None:
    db.update({b"b": b"2", b"a": b"1"})
    db.update([(b"c", bytearray(b"3"))])
    assert list(db.keys()) == [b"a", b"b", b"c"]
    assert list(db.values()) == [b"1", b"2", b"3"]
    assert list(db.items()) == [(b"a", b"1"), (b"b", b"2"), (b"c", b"3")]
    assert dict(db.items()) == {b"a": b"1", b"b": b"2", b"c": b"3"}
    assert dict(db) == dict(db.items())


def test_pairs_are_any_iterables_of_two(db: terrace.DB) -> None:
    db.update([[b"a", b"1"], iter((b"b", b"2"))])
    assert list(db) == [(b"a", b"1"), (b"b", b"2")]
    db.flush()
    sizes = db.approximate_sizes((b"a", b"z"), [b"a", b"z"], iter((b"a", b"z")))
    assert sizes[0] > 0 and sizes == [sizes[0]] * 3
    for wrong in ([], [b"a"], (b"a",), [b"a", b"b", b"c"], (b"a", b"b", b"c")):
        with pytest.raises(ValueError):
            db.update([wrong])
        with pytest.raises(ValueError):
            db.approximate_sizes(wrong)
    for bad in (7, None, [b"a", "text"], b"ab", "ab"):
        with pytest.raises(TypeError):
            db.update([bad])  # type: ignore[list-item]
        with pytest.raises(TypeError):
            db.approximate_sizes(bad)  # type: ignore[arg-type]


def test_an_update_is_atomic(db: terrace.DB) -> None:
    with pytest.raises(TypeError):
        db.update([(b"a", b"1"), (b"b", "text")])  # type: ignore[list-item]
    assert list(db) == []


def test_keys_and_values_may_be_anything_with_a_buffer(db: terrace.DB) -> None:
    db.put(bytearray(b"a"), memoryview(b"1"))
    db.put(memoryview(b"xbx")[1:2], memoryview(b"2b2b")[::2])
    assert db.get_many([memoryview(b"a"), bytearray(b"b")]) == [b"1", b"22"]
    for wrong in ("text", 1, None, [1], object()):
        with pytest.raises(TypeError, match="bytes-like"):
            db.put(wrong, b"")  # type: ignore[arg-type]
        with pytest.raises(TypeError, match="bytes-like"):
            db.put(b"", wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize("prefix", [b"", b"p", b"\xff", b"\xff\xff"])
def test_many_keys_are_read_as_one_by_one(
    db: terrace.DB, prefix: bytes, chance: random.Random
) -> None:
    part = db.prefixed_db(prefix)
    model = {b"%d" % chance.randrange(1000): b"%d" % number for number in range(500)}
    part.update(model)
    db.flush()
    part.update({key: b"new" for key in list(model)[::3]})
    keys = [b"%d" % number for number in range(1000)]
    expected = [part.get(key) for key in keys]
    assert part.get_many(keys) == expected
    assert part.get_many(iter(keys), b"none") == [
        b"none" if value is None else value for value in expected
    ]
    assert part.snapshot().get_many(keys) == expected
    assert part.get_many([]) == []


def test_entries_come_in_lists(db: terrace.DB) -> None:
    entries = [(b"%04d" % number, b"%d" % number) for number in range(2500)]
    db.update(entries)
    assert [len(part) for part in db.iter_many()] == [1000, 1000, 500]
    parts = list(db.iter_many(7, start=b"0010", stop=b"0030", include_value=False))
    assert parts == [
        [b"%04d" % number for number in range(low, min(low + 7, 30))] for low in (10, 17, 24)
    ]
    backwards = [entry for part in db.iter_many(999, reverse=True) for entry in part]
    assert backwards == entries[::-1]
    assert list(db.iter_many(prefix=b"x")) == []
    with pytest.raises(ValueError):
        db.iter_many(0)
    with pytest.raises(TypeError):
        db.iter_many(sideways=True)  # type: ignore[call-overload]
    with db.iter_many(10) as lists:
        next(lists)
    with pytest.raises(RuntimeError):
        next(lists)


def test_a_list_of_large_values_ends_early(db: terrace.DB) -> None:
    for number in range(30):
        db.put(b"%02d" % number, bytes(1 << 20))
    lengths = [len(part) for part in db.iter_many()]
    assert lengths == [8, 8, 8, 6]


def test_a_prefix_is_a_database_of_its_own(db: terrace.DB) -> None:
    fruit = db.prefixed_db(b"fruit/")
    red = fruit.prefixed_db(b"red/")
    red[b"apple"] = b"1"
    fruit[b"\xff\xff"] = b"2"
    db[b"fruit0"] = b"no"
    assert list(fruit) == [(b"red/apple", b"1"), (b"\xff\xff", b"2")]
    assert list(red.keys()) == [b"apple"]
    assert red.prefix == b"fruit/red/" and red.db is db
    assert b"apple" in red and red[b"apple"] == b"1"
    with pytest.raises(KeyError) as raised:
        red[b"pear"]
    assert raised.value.args == (b"pear",)
    assert list(terrace.PrefixedDB(db=db, prefix=b"fruit/red/")) == [(b"apple", b"1")]
    with red.write_batch() as batch:
        batch[b"cherry"] = b"3"
        del batch[b"apple"]
        assert len(batch) == 2
    assert list(red.snapshot()) == [(b"cherry", b"3")]


def test_keyspaces_are_made_found_and_dropped(db: terrace.DB) -> None:
    users = db.create_keyspace("users")
    users[b"7"] = b"Ada"
    db.create_keyspace("mails")[b"ada@example.org"] = b"7"
    assert db.keyspaces() == ["mails", "users"]
    assert db[b"!users!7"] == b"Ada" and users.prefix == b"!users!"
    assert list(db.keyspace("users")) == [(b"7", b"Ada")]
    with pytest.raises(terrace.Error, match="users"):
        db.create_keyspace("users")
    with pytest.raises(terrace.Error, match="no keyspace"):
        db.keyspace("absent")
    with pytest.raises(terrace.Error):
        db.create_keyspace("a name with spaces")
    assert db.drop_keyspace("users") and not db.drop_keyspace("users")
    assert db.keyspaces() == ["mails"] and list(users) == []


def test_a_range_is_removed_in_one_step(db: terrace.DB) -> None:
    db.update((b"%04d" % number, b"") for number in range(3000))
    before = db.snapshot()
    db.delete_range(start=b"0010", stop=b"2990")
    kept = [b"%04d" % number for number in (*range(10), *range(2990, 3000))]
    assert list(db.keys()) == kept
    db.delete_range(stop=b"0005", sync=True)
    assert list(db.keys()) == kept[5:]
    db.delete_range()
    assert list(db) == [] and sum(1 for _ in before.keys()) == 3000


def test_nothing_can_be_pickled_or_copied(db: terrace.DB) -> None:
    objects: list[typing.Any] = [
        db,
        db.prefixed_db(b"a"),
        db.write_batch(),
        db.snapshot(),
        db.iterator(),
        db.iter_many(),
        db.raw_iterator(),
        db.transaction(),
    ]
    for thing in objects:
        name = type(thing).__name__
        with pytest.raises(TypeError, match=f"cannot pickle or copy a terrace.{name}"):
            pickle.dumps(thing)
        with pytest.raises(TypeError):
            copy.copy(thing)


def test_names_are_paths(tmp_path: pathlib.Path) -> None:
    names: list[typing.Any] = [
        str(tmp_path / "text"),
        bytes(tmp_path / "bytes"),
        tmp_path / "path",
        bytes(tmp_path / "x") + b"\xff\xfe",
    ]
    for name in names:
        with terrace.DB(name, create_if_missing=True) as db:
            assert db.name is name
            assert repr(name) in repr(db)
            db[b"a"] = b"1"
        assert "(closed)" in repr(db)
        assert terrace.verify_db(name)["is_clean"]
    with pytest.raises(ValueError):
        terrace.DB("a\0b", create_if_missing=True)
