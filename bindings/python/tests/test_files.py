"""Checkpoints, checks, repairs, statistics."""

import collections.abc
import pathlib
import typing

import pytest

import terrace


def test_a_checkpoint_is_a_database_of_its_own(db: terrace.DB, tmp_path: pathlib.Path) -> None:
    db.update((b"%04d" % number, bytes(100)) for number in range(1000))
    db.flush()
    db[b"later"] = b"1"
    report = db.checkpoint(tmp_path / "copy")
    assert report["tables"] == 2 and report["linked"] == 1 and report["sequence"] == 1001
    db[b"latest"] = b"2"
    with terrace.DB(tmp_path / "copy") as copy:
        assert sum(1 for _ in copy) == 1001 and copy[b"later"] == b"1"
        assert copy.verify()["is_clean"]
    with pytest.raises(terrace.Error):
        db.checkpoint(tmp_path / "copy")


def test_statistics_are_dictionaries(db: terrace.DB) -> None:
    snapshot = db.snapshot()
    db.update((b"%04d" % number, bytes(100)) for number in range(1000))
    db.flush()
    db.get(b"0001")
    stats = db.stats()
    assert stats["sequence"] == 1000 and stats["snapshots"] == 1
    assert stats["user_bytes_written"] > 100_000
    assert len(stats["levels"]) == 7
    assert sum(level["files"] for level in stats["levels"]) == 1
    age = stats["oldest_snapshot_seconds"]
    assert age is not None and age >= 0 and stats["background_error"] is None
    snapshot.close()
    stats = db.stats()
    assert stats["snapshots"] == 0 and stats["oldest_snapshot_seconds"] is None


def test_large_values_go_to_value_files(directory: pathlib.Path) -> None:
    large, small = bytes(5000), bytes(10)
    with terrace.DB(directory, create_if_missing=True, value_log=4096) as db:
        db.update({b"large": large, b"small": small})
        db.flush()
        stats = db.stats()
        assert stats["value_files"] == 1 and stats["value_bytes_used"] == 5000
    with terrace.DB(directory) as db:
        assert db[b"large"] == large and db[b"small"] == small
        assert len(list(directory.glob("*.vlog"))) == 1


def test_tables_with_lz4(directory: pathlib.Path) -> None:
    entries = [(b"key%04d" % number, b"value " * 20) for number in range(1000)]
    with terrace.DB(directory, create_if_missing=True, compression="lz4") as db:
        db.update(entries)
        db.flush()
        assert db.stats()["is_extended"]
    with terrace.DB(directory) as db:
        assert list(db) == entries
        db.compact_range()
    with pytest.raises(ValueError, match="compression"):
        terrace.DB(directory, compression="lz5")  # type: ignore[arg-type]
    try:
        terrace.DB(directory, compression="zstd").close()
    except terrace.Error as error:
        # A build without the feature.
        assert "zstd" in str(error)


def test_reports_have_the_fields_of_their_types(
    db: terrace.DB, directory: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    """Compares with the stubs, which nothing else holds to the truth there."""
    stubs = (pathlib.Path(terrace.__file__).parent / "_terrace.pyi").read_text()

    def fields(name: str) -> set[str]:
        body = stubs.split(f"class {name}(TypedDict):\n")[1].split("\n\n")[0]
        return {line.split(":")[0].strip() for line in body.splitlines()}

    reports: dict[str, collections.abc.Mapping[str, typing.Any]] = {
        "Stats": db.stats(),
        "LevelStats": db.stats()["levels"][0],
        "CheckpointReport": db.checkpoint(tmp_path / "copy"),
        "VerifyReport": db.verify(),
    }
    db.close()
    reports["RepairReport"] = terrace.repair_db(directory)
    for name, report in reports.items():
        assert set(report) == fields(name), name


def test_properties_are_leveldbs(db: terrace.DB) -> None:
    db.put(b"a", b"1")
    db.flush()
    sstables = db.get_property(b"leveldb.sstables")
    assert sstables is not None and b"--- level 0 ---" in sstables
    assert db.get_property(b"leveldb.approximate-memory-usage") is not None
    assert db.get_property(b"leveldb.nothing") is None
    assert db.get_property(b"\xff") is None
    assert db.get_property(bytearray(b"leveldb.nothing")) is None
    with pytest.raises(TypeError, match="a bytes-like object is required, not 'str'"):
        db.get_property("leveldb.stats")  # type: ignore[arg-type]


def test_sizes_grow_with_what_is_on_disk(db: terrace.DB) -> None:
    db.update((b"%04d" % number, bytes(1000)) for number in range(1000))
    db.compact_range()
    whole, half = db.approximate_sizes((b"", b"a"), (b"", b"0500"))
    assert 0 < half < whole == db.approximate_size(b"", b"a")


def test_syncs_and_waits(db: terrace.DB) -> None:
    db.put(b"a", b"1", sync=True)
    db.put(b"b", b"2")
    db.sync()
    db.delete(b"a", sync=True)
    with db.write_batch(sync=True) as batch:
        batch.put(b"c", b"3")
    db.update({b"d": b"4"}, sync=True)
    with db.transaction(sync=True) as transaction:
        transaction[b"e"] = b"5"
    db.wait_idle()
    assert list(db.keys()) == [b"b", b"c", b"d", b"e"]


def test_batches_may_be_added_to_each_other_and_themselves(db: terrace.DB) -> None:
    first, second = db.write_batch(), db.prefixed_db(b"p").write_batch()
    first.put(b"a", b"1")
    second.put(b"b", b"2")
    first.append(second)
    first.append(first)
    assert len(first) == 4 and bool(db.write_batch())
    first.write()
    assert list(db) == [(b"a", b"1"), (b"pb", b"2")]
