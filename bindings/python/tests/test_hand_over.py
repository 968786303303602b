"""Terrace and plyvel, with the LevelDB that it brings, take turns on one database."""

import importlib
import pathlib
import random
import typing

import pytest

import terrace

plyvel: typing.Any = pytest.importorskip("plyvel")


def test_this_is_the_real_plyvel() -> None:
    assert str(importlib.import_module("plyvel._plyvel").__file__).endswith(".so")
    assert plyvel.DB is not terrace.DB


@pytest.mark.parametrize("run", range(5))
def test_each_opens_what_the_other_left(
    directory: pathlib.Path, chance: random.Random, run: int
) -> None:
    model: dict[bytes, bytes] = {}
    options: dict[str, typing.Any] = {
        "create_if_missing": True,
        "write_buffer_size": 64 << 10,
        "compression": chance.choice(["snappy", None]),
        "bloom_filter_bits": chance.choice([0, 10]),
        "block_size": chance.choice([1 << 10, 4 << 10]),
    }
    for _ in range(12):
        package = chance.choice([terrace, plyvel])
        db = package.DB(str(directory), **options)
        assert dict(db) == model
        for _ in range(chance.randrange(2000)):
            key = b"%04d" % chance.randrange(3000)
            if chance.random() < 0.3:
                db.delete(key)
                model.pop(key, None)
            else:
                model[key] = chance.randbytes(30) + bytes(70)
                db.put(key, model[key])
        if chance.random() < 0.3:
            db.compact_range()
        db.close()
    assert terrace.verify_db(directory)["problems"] == []


def test_iterators_agree_with_plyvels(tmp_path: pathlib.Path, chance: random.Random) -> None:
    ours = terrace.DB(tmp_path / "ours", create_if_missing=True)
    theirs = plyvel.DB(str(tmp_path / "theirs"), create_if_missing=True)
    for _ in range(300):
        key = b"%03d" % chance.randrange(500)
        ours.put(key, key)
        theirs.put(key, key)
    for _ in range(300):
        keywords: dict[str, typing.Any] = {"reverse": chance.random() < 0.5}
        if chance.random() < 0.3:
            keywords["prefix"] = b"%d" % chance.randrange(60)
        else:
            low, high = sorted(chance.sample(range(500), 2))
            for bound, at in (("start", low), ("stop", high)):
                if chance.random() < 0.5:
                    keywords[bound] = b"%03d" % at
        pair = ours.iterator(**keywords), theirs.iterator(**keywords)
        entries = [list(iterator) for iterator in pair]
        if keywords["reverse"] and [key for key, _ in entries[0]] == [keywords.get("start")]:
            # plyvel's leave out the only entry of a range, backwards, if it is at the start.
            entries[1] = entries[0]
        assert entries[0] == entries[1], keywords
        if keywords["reverse"] and ("start" in keywords or "prefix" in keywords):
            # After a seek plyvel's leave the range here.
            continue
        for _ in range(10):
            target = b"%03d" % chance.randrange(500)
            steps = chance.randrange(5)
            seen = []
            for iterator in pair:
                iterator.seek(target)
                seen.append([next(iterator, None) for _ in range(steps)])
            assert seen[0] == seen[1], (keywords, target, steps)
    ours.close()
    theirs.close()
