"""Reads, writes and scans.

    python quickstart.py [directory]
"""

import sys
import tempfile

import terrace


def main(directory: str) -> None:
    with terrace.DB(directory, create_if_missing=True) as db:
        db[b"apple"] = b"red"
        db.put(b"pear", b"green", sync=True)  # on the disk when this returns
        assert db[b"apple"] == b"red"
        assert db.get(b"plum", b"unknown") == b"unknown"

        # Both or neither.
        with db.write_batch() as batch:
            batch.put(b"cherry", b"dark")
            batch.delete(b"pear")

        before = db.snapshot()
        db[b"apple"] = b"yellow"
        assert before[b"apple"] == b"red"

        for key, value in db.iterator(start=b"b", reverse=True):
            print(key.decode(), value.decode())

        # Many at a time: the fastest way to read everything.
        db.update((b"number/%04d" % number, b"%d" % number**2) for number in range(5000))
        numbers = db.prefixed_db(b"number/")
        total = 0
        for values in numbers.iter_many(1000, include_key=False):
            total += sum(map(int, values))
        print("sum of squares:", total)
        assert numbers.get_many([b"0003", b"nine"]) == [b"9", None]

        stats = db.stats()
        print("writes:", stats["sequence"], "bytes:", stats["user_bytes_written"])
        assert db.verify()["is_clean"]


if __name__ == "__main__":
    if len(sys.argv) > 1:
        main(sys.argv[1])
    else:
        with tempfile.TemporaryDirectory() as scratch:
            main(scratch)
