"""Errors of the engine and the system as exceptions."""

import errno
import os
import pathlib
import subprocess
import sys

import pytest

import terrace


def test_the_classes_are_plyvels_and_pythons() -> None:
    assert issubclass(terrace.IOError, OSError)
    assert issubclass(terrace.BusyError, terrace.IOError)
    for name in terrace.__all__:
        found = getattr(terrace, name)
        if isinstance(found, type) and issubclass(found, Exception):
            assert issubclass(found, terrace.Error) and found.__module__ == "terrace"


def test_a_locked_database_is_busy(db: terrace.DB, directory: pathlib.Path) -> None:
    with pytest.raises(terrace.BusyError, match=str(directory)):
        terrace.DB(directory)
    with pytest.raises(terrace.IOError):
        terrace.destroy_db(directory)
    with pytest.raises(terrace.BusyError):
        terrace.repair_db(directory)
    code = "import sys, terrace; terrace.DB(sys.argv[1])"
    other = subprocess.run(
        [sys.executable, "-c", code, directory], capture_output=True, text=True, check=False
    )
    assert other.returncode == 1 and "terrace.BusyError: busy" in other.stderr


def test_a_missing_database(directory: pathlib.Path) -> None:
    with pytest.raises(terrace.Error, match="create_if_missing"):
        terrace.DB(directory)
    with pytest.raises(terrace.Error):
        terrace.repair_db(directory)
    with pytest.raises(terrace.Error):
        terrace.verify_db(directory)
    terrace.destroy_db(directory)


def test_an_error_of_the_system_has_its_number(tmp_path: pathlib.Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"")
    with pytest.raises(terrace.IOError, match=str(file)) as raised:
        terrace.DB(file / "db", create_if_missing=True)
    assert raised.value.errno == errno.ENOTDIR


def table(directory: pathlib.Path) -> pathlib.Path:
    with terrace.DB(directory, create_if_missing=True, compression=None) as db:
        db.update((b"%05d" % number, bytes(100)) for number in range(1000))
        db.flush()
    (found,) = directory.glob("*.ldb")
    return found


def test_damage_names_file_and_offset(directory: pathlib.Path) -> None:
    file = table(directory)
    damaged = bytearray(file.read_bytes())
    damaged[50_000] ^= 1
    file.write_bytes(damaged)
    with terrace.DB(directory) as db:
        with pytest.raises(terrace.CorruptionError, match=rf"{file.name}.*offset \d+"):
            db.get_many([b"%05d" % number for number in range(1000)])
        with pytest.raises(terrace.CorruptionError, match=file.name):
            list(db.iter_many())
        # What comes before the damage is returned first.
        read = []
        with pytest.raises(terrace.CorruptionError, match=file.name):
            for key, _ in db:
                read.append(key)
        assert read == [b"%05d" % number for number in range(len(read))] and 300 < len(read) < 500
        # So it is in a transaction. There, too, the error ends it.
        entries = db.transaction().iterator(include_value=False)
        for key in read:
            assert next(entries) == key
        with pytest.raises(terrace.CorruptionError, match=file.name):
            next(entries)
        assert list(entries) == []
        lists = db.iter_many(10_000)
        assert len(next(lists)) == len(read)
        with pytest.raises(terrace.CorruptionError, match=file.name):
            next(lists)
        with pytest.raises(terrace.CorruptionError, match=file.name):
            raw = db.raw_iterator()
            raw.seek_to_first()
            while raw.valid():
                raw.next()
        report = db.verify()
        assert not report["is_clean"] and report["problems"][0][0] == file.name
    assert not terrace.verify_db(directory)["is_clean"]
    repaired = terrace.repair_db(directory)
    assert repaired["problems"] and repaired["entries"] > 900
    with terrace.DB(directory) as db:
        assert sum(1 for _ in db) == repaired["entries"] and db.verify()["is_clean"]


def test_a_read_only_database_takes_no_writes(directory: pathlib.Path) -> None:
    table(directory)
    with (
        terrace.DB(directory, read_only=True) as db,
        terrace.DB(directory, read_only=True) as other,
    ):
        assert db.get(b"00001") == other.get(b"00001") == bytes(100)
        with pytest.raises(terrace.NotSupportedError, match="read-only"):
            db.put(b"a", b"1")
        with pytest.raises(terrace.NotSupportedError):
            db.update({b"a": b"1"})


def test_a_directory_that_cannot_be_written(tmp_path: pathlib.Path) -> None:
    if os.geteuid() == 0:
        code = "import pytest, sys; sys.exit(pytest.main(sys.argv[1:]))"
        name = f"{__file__}::test_a_directory_that_cannot_be_written_without_rights"
        capabilities = ["setpriv", "--bounding-set=-dac_override", "--inh-caps=-dac_override"]
        if subprocess.run([*capabilities, "true"], capture_output=True, check=False).returncode:
            pytest.skip("setpriv does not work here")
        command = [*capabilities, sys.executable, "-c", code, "-q", "-p", "no:cacheprovider", name]
        ran = subprocess.run(command, capture_output=True, text=True, check=False)
        assert ran.returncode == 0 and "1 passed" in ran.stdout, ran.stdout + ran.stderr
    else:
        test_a_directory_that_cannot_be_written_without_rights(tmp_path)


def test_a_directory_that_cannot_be_written_without_rights(tmp_path: pathlib.Path) -> None:
    empty, full = tmp_path / "empty", tmp_path / "full"
    empty.mkdir()
    table(full)
    for directory in (empty, full):
        directory.chmod(0o500)
        if os.access(directory, os.W_OK):
            pytest.skip("this process may write anywhere")
    for create in (False, True):
        with pytest.raises(terrace.IOError) as raised:
            terrace.DB(empty, create_if_missing=create)
        assert raised.value.errno == errno.EACCES
    with pytest.raises(terrace.IOError) as raised:
        with terrace.DB(full) as db:
            db.put(b"a", b"1")
    assert raised.value.errno == errno.EACCES
    with pytest.raises(terrace.IOError):
        terrace.destroy_db(full)
    with terrace.DB(full, read_only=True) as db:
        assert sum(1 for _ in db) == 1000


def test_options_out_of_range(directory: pathlib.Path) -> None:
    with pytest.raises(terrace.Error, match="background_threads"):
        terrace.DB(directory, create_if_missing=True, background_threads=0)
    with pytest.raises(terrace.Error, match="value_log"):
        terrace.DB(directory, create_if_missing=True, value_log=0)
    with pytest.raises(OverflowError):
        terrace.DB(directory, create_if_missing=True, write_buffer_size=-1)
    with pytest.raises(ValueError, match="recovery_mode"):
        terrace.DB(directory, recovery_mode="wishful")  # type: ignore[arg-type]
    with terrace.DB(directory, create_if_missing=True, bloom_filter_bits=-1) as db:
        db[b"a"] = b"1"
    with pytest.raises(terrace.Error):
        terrace.DB(directory, error_if_exists=True)
    for mode in ("prefix", "strict", "salvage"):
        terrace.DB(directory, recovery_mode=mode, reuse_logs=True, table_filter_bits=0).close()


def test_large_keys_and_values(db: terrace.DB) -> None:
    key, value = bytes(5 << 20), bytes(40 << 20)
    db.put(key, value)
    assert db.get(key) == value and db[key] == value and key in db
    assert db.get_many([key, key + b"."]) == [value, None]
    assert next(db.iterator()) == (key, value)
    assert next(db.iter_many()) == [(key, value)]
    iterator = db.iterator()
    iterator.seek(key)
    assert next(iterator) == iterator.prev() == (key, value)
    raw = db.raw_iterator()
    raw.seek_to_last()
    assert raw.item() == (key, value)
    db.delete(key)
    assert list(db) == []


def small_file_system(directory: pathlib.Path) -> bool:
    """Mounts eight megabytes at `directory`. False without the right to."""
    directory.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=8m", "terrace-test", str(directory)]
    try:
        return subprocess.run(mount, capture_output=True, check=False).returncode == 0
    except FileNotFoundError:
        return False


def test_a_full_disk(tmp_path: pathlib.Path) -> None:
    place = tmp_path / "small"
    if not small_file_system(place):
        pytest.skip("no right to mount a small file system")
    try:
        acknowledged = 0
        db = terrace.DB(place / "db", create_if_missing=True, compression=None)
        with pytest.raises(terrace.IOError) as raised:
            while True:
                db.put(b"%06d" % acknowledged, bytes(20_000))
                acknowledged += 1
        assert raised.value.errno == errno.ENOSPC
        assert 100 < acknowledged < 500
        assert db.get(b"%06d" % (acknowledged - 1)) == bytes(20_000)
        try:
            db.close()
        except terrace.IOError as error:
            assert error.errno == errno.ENOSPC
        assert db.closed
        with terrace.DB(place / "db", read_only=True) as db:
            assert sum(1 for _ in db) in (acknowledged, acknowledged + 1)
    finally:
        subprocess.run(["umount", "-l", str(place)], check=True)
