"""A copy of a database in use, and what to do about damage.

    python backup.py [directory]
"""

import pathlib
import sys
import tempfile

import terrace


def main(directory: pathlib.Path) -> None:
    with terrace.DB(directory / "db", create_if_missing=True) as db:
        db.update((b"%05d" % number, bytes(100)) for number in range(10_000))
        report = db.checkpoint(directory / "copy")
        print(f"copied {report['tables']} tables, {report['linked']} of them by links")

    # The copy is a database of its own; LevelDB opens it, too.
    found = terrace.verify_db(directory / "copy")
    print(f"checked {found['entries']} entries in {found['blocks']} blocks")
    for file, message in found["problems"]:
        print(f"{file}: {message}")
    if not found["is_clean"]:
        terrace.repair_db(directory / "copy")

    with terrace.DB(directory / "copy", read_only=True) as copy:
        assert sum(1 for _ in copy.keys()) == 10_000
        try:
            copy.put(b"a", b"1")
        except terrace.NotSupportedError as error:
            print("as expected:", error)
    terrace.destroy_db(directory / "copy")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        main(pathlib.Path(sys.argv[1]))
    else:
        with tempfile.TemporaryDirectory() as scratch:
            main(pathlib.Path(scratch))
