"""Terrace beside plyvel, in one process and by turns.

    python benchmarks/compare.py [--entries 200000] [--rounds 7] [--json FILE]

Needs plyvel. Each round measures every operation with both packages, one directly after the other
and in alternating order; what is printed are medians, and the median of the rounds' ratios. Keys
have 16 bytes and values 100, half of which compress, as in LevelDB's ``db_bench``.
"""

import argparse
import collections.abc
import importlib
import itertools
import json
import os
import random
import shutil
import statistics
import sys
import tempfile
import time
import types
import typing

import terrace

plyvel: typing.Any = importlib.import_module("plyvel")

Operation = collections.abc.Callable[[typing.Any], int]


class Workload:
    """The entries, and what is measured with them."""

    def __init__(self, entries: int, seed: int) -> None:
        chance = random.Random(seed)
        self.keys = [b"%016d" % number for number in range(entries)]
        self.shuffled = self.keys[:]
        chance.shuffle(self.shuffled)
        half = [chance.randbytes(50) for _ in range(1000)]
        self.values = [part + part for part in half]

    def pairs(
        self, keys: list[bytes]
    ) -> collections.abc.Iterator[tuple[bytes, bytes]]:
        return zip(keys, itertools.cycle(self.values))

    def put(self, db: typing.Any) -> int:
        """Puts every key in random order."""
        put = db.put
        for key, value in self.pairs(self.shuffled):
            put(key, value)
        return len(self.shuffled)

    def batch(self, db: typing.Any) -> int:
        """Puts every key in random order, in batches of a thousand."""
        for at in range(0, len(self.shuffled), 1000):
            batch = db.write_batch()
            put = batch.put
            for key, value in self.pairs(self.shuffled[at : at + 1000]):
                put(key, value)
            batch.write()
        return len(self.shuffled)

    def get(self, db: typing.Any) -> int:
        """Gets every second key in random order."""
        get = db.get
        keys = self.shuffled[::2]
        for key in keys:
            get(key)
        return len(keys)

    def get_missing(self, db: typing.Any) -> int:
        """Gets keys that are not there, from between those that are."""
        get = db.get
        keys = [key + b"." for key in self.shuffled[::2]]
        for key in keys:
            get(key)
        return len(keys)

    def iterate(self, db: typing.Any) -> int:
        """Iterates over everything."""
        count = 0
        for _key, _value in db.iterator():
            count += 1
        return count

    def iterate_keys(self, db: typing.Any) -> int:
        """Iterates over every key."""
        count = 0
        for _key in db.iterator(include_value=False):
            count += 1
        return count

    def reverse(self, db: typing.Any) -> int:
        """Iterates over everything backwards."""
        count = 0
        for _key, _value in db.iterator(reverse=True):
            count += 1
        return count

    def short_scans(self, db: typing.Any) -> int:
        """Makes iterators and takes ten entries of each; counts iterators."""
        starts = self.shuffled[: len(self.shuffled) // 20]
        for start in starts:
            list(itertools.islice(db.iterator(start=start), 10))
        return len(starts)

    def many(self, db: typing.Any) -> int:
        """Reads everything in lists of a thousand; plyvel's come of ``itertools.islice``."""
        count = 0
        if isinstance(db, terrace.DB):
            for entries in db.iter_many(1000):
                count += len(entries)
            return count
        iterator = db.iterator()
        while entries := list(itertools.islice(iterator, 1000)):
            count += len(entries)
        return count

    def get_many(self, db: typing.Any) -> int:
        """Gets every second key in random order, a hundred at a time; plyvel one by one."""
        keys = self.shuffled[::2]
        for at in range(0, len(keys), 100):
            if isinstance(db, terrace.DB):
                db.get_many(keys[at : at + 100])
            else:
                [db.get(key) for key in keys[at : at + 100]]
        return len(keys)


#: Operations on an empty database, and on a full one.
WRITES = ("put", "batch")
READS = (
    "get",
    "get_missing",
    "iterate",
    "iterate_keys",
    "reverse",
    "short_scans",
    "many",
    "get_many",
)
PACKAGES: tuple[types.ModuleType, ...] = (terrace, plyvel)


def nanoseconds(operation: Operation, db: typing.Any) -> float:
    """Returns how long the operation takes for each of what it counts."""
    begin = time.perf_counter_ns()
    count = operation(db)
    return (time.perf_counter_ns() - begin) / count


def measure(
    workload: Workload, directory: str, rounds: int
) -> dict[str, list[tuple[float, float]]]:
    """Returns the rounds of each operation: nanoseconds with Terrace and with plyvel."""
    results: dict[str, list[tuple[float, float]]] = {}
    for number in range(rounds):
        order = PACKAGES if number % 2 == 0 else PACKAGES[::-1]
        for name in WRITES:
            taken = {}
            for package in order:
                path = os.path.join(directory, package.__name__)
                shutil.rmtree(path, ignore_errors=True)
                db = package.DB(path, create_if_missing=True)
                taken[package] = nanoseconds(getattr(workload, name), db)
                db.close()
            results.setdefault(name, []).append((taken[terrace], taken[plyvel]))
        open_databases = {}
        for package in order:
            db = package.DB(os.path.join(directory, package.__name__))
            db.compact_range()
            open_databases[package] = db
        for name in READS:
            taken = {}
            for package in order:
                db = open_databases[package]
                taken[package] = nanoseconds(getattr(workload, name), db)
            results.setdefault(name, []).append((taken[terrace], taken[plyvel]))
        for db in open_databases.values():
            db.close()
    return results


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--entries", type=int, default=200_000)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seed", type=int, default=301)
    parser.add_argument("--json", help="write every round to this file")
    arguments = parser.parse_args()
    workload = Workload(arguments.entries, arguments.seed)
    with tempfile.TemporaryDirectory(prefix="terrace-benchmark-") as directory:
        results = measure(workload, directory, arguments.rounds)
    print(f"{arguments.entries} entries, medians of {arguments.rounds} rounds, ns")
    print(f"{'operation':12} {'terrace':>9} {'plyvel':>9} {'ratio':>6}  lowest")
    for name, rounds in results.items():
        ours, theirs = (statistics.median(side) for side in zip(*rounds))
        ratios = [plyvel_takes / ours_takes for ours_takes, plyvel_takes in rounds]
        ratio = statistics.median(ratios)
        print(f"{name:12} {ours:9.0f} {theirs:9.0f} {ratio:6.2f} {min(ratios):7.2f}")
    if arguments.json:
        with open(arguments.json, "w", encoding="utf-8") as file:
            json.dump(results, file)
    return 0


if __name__ == "__main__":
    sys.exit(main())
