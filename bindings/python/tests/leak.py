"""Opens, closes and iterates over and over: memory must not grow. Not a test of pytest's.

    python tests/leak.py [--cycles 1000000]

A cycle makes and drops every kind of object; every hundredth opens and closes a database as well.
Prints the resident memory ten times and fails if it has grown by more than 4 MiB since the first
tenth.
"""

import argparse
import pathlib
import sys
import tempfile
import time

import terrace


def resident() -> int:
    """Returns the bytes of this process in memory."""
    pages = int(pathlib.Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096


def use(db: terrace.DB, number: int) -> None:
    """Makes and drops one of everything."""
    key = b"%03d" % (number % 1000)
    iterator = db.iterator(start=key)
    next(iterator, None)
    if number % 2:
        iterator.close()
    next(db.iter_many(3, reverse=True), None)
    raw = db.raw_iterator()
    raw.seek(key)
    snapshot = db.snapshot()
    snapshot.get(key)
    next(snapshot.iterator(include_value=False), None)
    transaction = db.transaction()
    transaction[key] = b"own"
    next(iter(transaction), None)
    transaction.rollback()
    batch = db.prefixed_db(b"p").write_batch()
    batch.put(key, key)
    db.get_many([key, b"absent"])
    try:
        db[b"absent"]
    except KeyError:
        pass
    try:
        terrace.DB(bytes(20))
    except (terrace.Error, ValueError):
        pass


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--cycles", type=int, default=1_000_000)
    cycles = parser.parse_args().cycles
    sizes: list[int] = []
    with tempfile.TemporaryDirectory(prefix="terrace-leak-") as directory:
        keep = terrace.DB(directory + "/keep", create_if_missing=True)
        keep.update((b"%03d" % number, bytes(100)) for number in range(1000))
        keep.flush()
        begin = time.monotonic()
        for number in range(cycles):
            if number % 100 == 0:
                with terrace.DB(directory + "/db", create_if_missing=True) as db:
                    db.put(b"same", bytes(100))
                    pending = db.iterator()
                    use(db, number)
                del pending
            use(keep, number)
            if (number + 1) % max(cycles // 10, 1) == 0:
                sizes.append(resident())
                seconds = time.monotonic() - begin
                print(f"{number + 1} cycles, {seconds:.0f} s: {sizes[-1] >> 10} KiB", flush=True)
        keep.close()
    if sizes[-1] - sizes[0] > 4 << 20:
        print(f"memory grew by {(sizes[-1] - sizes[0]) >> 10} KiB")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
