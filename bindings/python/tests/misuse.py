"""Uses the package wrongly at random, on many threads: nothing but exceptions may come of it.

    python tests/misuse.py [--seconds 600] [--seed N]

Not a test of pytest's. Every thread calls methods of objects that may be closed already, or closed
by another thread meanwhile, with arguments of right and wrong types. The program fails if an
exception is of another class than documented, or, by its own death, if anything crashes.
"""

import argparse
import collections
import faulthandler
import os
import pathlib
import random
import sys
import tempfile
import threading
import time
import typing

import terrace

EXPECTED = (
    terrace.Error,
    RuntimeError,
    TypeError,
    ValueError,
    KeyError,
    OverflowError,
    StopIteration,
    AttributeError,
    MemoryError,
)
#: Methods that take a database, or all of the fuzzer, out of the game.
LEFT_OUT = {"__class__", "__init_subclass__", "__new__", "__del__", "__dir__", "__sizeof__"}


def backwards(a: bytes, b: bytes) -> int:
    return (a < b) - (a > b)


class Fuzzer:
    """Objects that threads share, and what is done with them."""

    def __init__(self, directory: str, seed: int) -> None:
        self.directory = pathlib.Path(directory)
        self.seed = seed
        self.objects: list[typing.Any] = []
        self.lock = threading.Lock()
        self.calls: collections.Counter[str] = collections.Counter()
        self.raised: collections.Counter[str] = collections.Counter()
        self.failures: list[str] = []

    def argument(self, chance: random.Random) -> typing.Any:
        """Returns what a method may be called with, or should not be."""
        with self.lock:
            thing = chance.choice(self.objects) if self.objects else None
        number = b"%d" % chance.randrange(300)
        return chance.choice(
            [
                number,
                number,
                number,
                number,
                b"",
                bytearray(number),
                memoryview(number + number)[:: chance.choice((1, 2, -1))],
                chance.randbytes(chance.choice((1, 100, 100_000))),
                bytes(chance.choice((1 << 20, 9 << 20))) if chance.random() < 0.01 else b"x",
                number.decode(),
                None,
                chance.randrange(-3, 2000),
                1 << 70,
                1.5,
                True,
                [number, number],
                {number: number},
                [(number, b"pair")],
                iter([number, 5]),
                ValueError,
                self.directory / "other",
                backwards,
                thing,
            ]
        )

    def keywords(self, chance: random.Random) -> dict[str, typing.Any]:
        names = (
            "start stop prefix reverse include_start include_stop include_key include_value "
            "fill_cache verify_checksums sync transaction default size retries nonsense"
        ).split()
        chosen = chance.sample(names, chance.choice((0, 0, 0, 1, 2)))
        values = (True, False, b"1", b"2", None, 3, "text")
        return {name: chance.choice(values) for name in chosen}

    def open(self, chance: random.Random) -> None:
        """Opens a database, one that is open already more often than not."""
        options: dict[str, typing.Any] = {"create_if_missing": True}
        name = chance.choice(("a", "b", "compared"))
        if name == "compared":
            options |= {"comparator": backwards, "comparator_name": b"test.backwards"}
        options["write_buffer_size"] = chance.choice((None, 64 << 10, 0))
        options["lru_cache_size"] = chance.choice((None, 0, 1 << 20))
        options["compression"] = chance.choice(("snappy", None, "zip"))
        options["read_only"] = chance.random() < 0.1
        self.keep(terrace.DB(self.directory / name, **options), chance)

    def keep(self, thing: typing.Any, chance: random.Random) -> None:
        if type(thing).__module__ != "terrace":
            return
        with self.lock:
            self.objects.append(thing)
            while len(self.objects) > 40:
                self.objects.pop(chance.randrange(len(self.objects)))

    def step(self, chance: random.Random) -> None:
        with self.lock:
            thing = chance.choice(self.objects) if self.objects else None
        if thing is None or chance.random() < 0.02:
            self.open(chance)
            return
        if chance.random() < 0.001:
            function = chance.choice((terrace.repair_db, terrace.destroy_db, terrace.verify_db))
            function(self.directory / chance.choice(("a", "b")))
            return
        names = [name for name in dir(thing) if name not in LEFT_OUT]
        name = chance.choice(names)
        if name in ("close", "__exit__") and isinstance(thing, terrace.DB):
            if chance.random() < 0.9:
                return
        if name == "checkpoint":
            thing.checkpoint(self.directory / f"copy-{chance.randrange(1 << 60)}")
            return
        method = getattr(thing, name)
        if not callable(method):
            return
        arguments = [self.argument(chance) for _ in range(chance.choice((0, 1, 1, 2, 2, 3)))]
        self.calls[f"{type(thing).__name__}.{name}"] += 1
        self.keep(method(*arguments, **self.keywords(chance)), chance)

    def work(self, number: int, until: float) -> None:
        chance = random.Random(self.seed * 1000 + number)
        while time.monotonic() < until and not self.failures:
            try:
                self.step(chance)
            except EXPECTED as error:
                self.raised[type(error).__name__] += 1
            except BaseException as error:  # what pyo3 makes of a panic, too
                self.failures.append(repr(error))


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 32))
    arguments = parser.parse_args()
    print(f"seed {arguments.seed}", flush=True)
    faulthandler.enable()
    with tempfile.TemporaryDirectory(prefix="terrace-misuse-") as directory:
        fuzzer = Fuzzer(directory, arguments.seed)
        until = time.monotonic() + arguments.seconds
        # A deadlock is a failure, too.
        faulthandler.dump_traceback_later(arguments.seconds + 120, exit=True)
        threads = [
            threading.Thread(target=fuzzer.work, args=(number, until)) for number in range(4)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        fuzzer.objects.clear()
        for name in ("a", "b"):
            if os.path.isdir(os.path.join(directory, name, "lost")):
                continue
            try:
                assert terrace.verify_db(os.path.join(directory, name))["is_clean"], name
            except terrace.Error as error:
                assert "no database" in str(error), error
        faulthandler.cancel_dump_traceback_later()
    total = sum(fuzzer.calls.values())
    print(f"{total} calls of {len(fuzzer.calls)} methods; raised: {dict(fuzzer.raised)}")
    for failure in fuzzer.failures:
        print(f"failed: {failure}")
    return 1 if fuzzer.failures or total == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
