#!/usr/bin/env python3
"""An engine program of the lab in Python: dbm.dumb, of Python's own library.

The example of docs/benchmark-your-own.md. Everything that a program has to do is in lab/WORKLOADS.md.
"""

import argparse
import bisect
import dbm.dumb
import json
import os
import platform
import resource
import shutil
import sys
import time

MASK = (1 << 64) - 1
STEP = 0x9E3779B97F4A7C15
MARK = "LAB-BENCHMARK"
DESCRIPTION = {
    "engine": "python-dbm",
    "title": "Python's dbm.dumb",
    "version": platform.python_version(),
    "variants": [{"name": "", "title": "Python's dbm.dumb"}],
    "asynchronous": "the value is written to its file by write(); the index stays in the process until close",
    "synchronous": "cannot be had",
    "settings": "it has none: an index of all keys in memory, values in one file",
    "limits": ["it keeps no order: the self-test sorts the keys in the program", "one thread"],
    "unsupported": {},
}
# Name and number of what this program can run; whether the database is emptied first.
BENCHMARKS = {
    "fillseq": (1, True), "fillrandom": (2, True), "overwrite": (3, False), "readrandom": (11, False),
    "readmissing": (12, False), "readhot": (13, False), "deleteseq": (16, False), "deleterandom": (17, False),
    "compact": (18, False), "waitcompact": (19, False), "cold": (22, False), "selftest": (31, True), "readhit": (43, False),
}


def mix(z):
    z = ((z ^ z >> 30) * 0xBF58476D1CE4E5B9) & MASK
    z = ((z ^ z >> 27) * 0x94D049BB133111EB) & MASK
    return z ^ z >> 31


class Random:
    """splitmix64."""

    def __init__(self, seed, benchmark, thread):
        self.state = mix((mix((mix(seed) + benchmark) & MASK) + thread) & MASK)

    def next(self):
        self.state = (self.state + STEP) & MASK
        return mix(self.state)

    def at(self, before):
        """What next returns after so many more calls."""
        return mix((self.state + (before + 1) * STEP) & MASK)


class Pool:
    """Values that shrink to half."""

    def __init__(self, seed, size):
        random, text = Random(seed, 0, 0), bytearray()
        length = max(1 << 20, 16 * size)
        while len(text) < length:
            text += bytes(32 + random.next() % 95 for _ in range(50)) * 2
        self.text, self.at = bytes(text[:length]), 0

    def value(self, size):
        if self.at + size > len(self.text):
            self.at = 0
        self.at += size
        return self.text[self.at - size : self.at]


class Engine:
    def __init__(self, directory):
        self.directory, self.db = directory, None

    def open(self):
        if self.db is None:
            os.makedirs(self.directory, exist_ok=True)
            if not os.listdir(self.directory):
                open(os.path.join(self.directory, MARK), "w").close()
            self.db = dbm.dumb.open(os.path.join(self.directory, "data"), "c")

    def close(self):
        if self.db is not None:
            self.db.close()
            self.db = None

    def destroy(self):
        self.close()
        if os.path.isdir(self.directory) and os.listdir(self.directory):
            if not os.path.exists(os.path.join(self.directory, MARK)):
                sys.exit(f"python-dbm: {self.directory} is not the lab's: it has no {MARK}")
            shutil.rmtree(self.directory)


class Digest:
    """FNV-1a over what was found."""

    def __init__(self):
        self.hash = 0xCBF29CE484222325

    def add(self, data):
        for byte in data:
            self.hash = ((self.hash ^ byte) * 0x100000001B3) & MASK

    def sized(self, data):
        self.add(len(data).to_bytes(4, "little") + data)


def selftest(engine, flags, pool, key):
    """Two passes of random operations; what is found becomes a digest."""
    random, digest = Random(flags.seed, 31, 0), Digest()

    def put(number):
        size = random.next() % 300
        at = random.next() % 1_000_000
        engine.db[key(number)] = pool.text[at : at + size]

    def delete(number):
        if key(number) in engine.db:
            del engine.db[key(number)]

    def entries(keys):
        for name in keys:
            digest.sized(name)
            digest.sized(engine.db[name])

    for _ in range(2):
        engine.close()
        engine.open()
        for _ in range(10_000):
            what, number = random.next() % 10, random.next() % 5000
            if what <= 4:
                put(number)
            elif what <= 6:
                delete(number)
            elif what == 7:
                for _ in range(10):
                    change = delete if random.next() % 3 == 0 else put
                    change(random.next() % 5000)
            elif what == 8:
                value = engine.db.get(key(number))
                digest.add(b"\0" if value is None else b"\1")
                if value is not None:
                    digest.sized(value)
            else:
                keys = sorted(engine.db.keys())
                found = keys[bisect.bisect_left(keys, key(number)) :][:5]
                entries(found)
                if len(found) < 5:
                    digest.add(b"\2")
        keys = sorted(engine.db.keys())
        entries(keys)
        digest.add(b"\2")
        entries(reversed(keys))
        digest.add(b"\2")
    return f"{digest.hash:016x}"


def operation_of(name, engine, flags, pool, key):
    """One operation of a benchmark; it returns whether it found its key."""
    random, db = Random(flags.seed, BENCHMARKS[name][0], 0), engine.db
    below = max(flags.num // 100, 1) if name == "readhot" else flags.num
    number = (lambda i: i) if name.endswith("seq") else (lambda i: random.next() % below)
    if name == "readhit":
        filled = Random(flags.seed, BENCHMARKS["fillrandom"][0], 0)
        number = lambda i: filled.at(random.next() % below) % below

    def put(i):
        db[key(number(i))] = pool.value(flags.value_size)

    def get(i):
        return db.get(key(number(i)) + (b"." if name == "readmissing" else b"")) is not None

    def delete(i):
        name = key(number(i))
        if name in db:
            del db[name]

    return {"fil": put, "ove": put, "rea": get, "del": delete}[name[:3]]


def drop_pages(directory):
    """Throws the files of a directory out of the page cache."""
    os.sync()
    for name in os.listdir(directory):
        with open(os.path.join(directory, name), "rb") as file:
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def run(name, engine, flags, pool, key):
    empty = BENCHMARKS[name][1]
    if empty:
        engine.destroy()
    engine.open()
    result = {"benchmark": name, "engine": "python-dbm"}
    if name == "cold":
        engine.close()
        drop_pages(engine.directory)
    before, latencies, found = resource.getrusage(resource.RUSAGE_SELF), [], 0
    begin = last = time.perf_counter()
    if name == "selftest":
        result["digest"], ops = selftest(engine, flags, pool, key), 20_000
    elif name in ("compact", "waitcompact", "cold"):
        if name != "cold":
            engine.close()
        engine.open()
        ops = 1
    else:
        operation, wanted, ops = operation_of(name, engine, flags, pool, key), flags.num, 0
        if name.startswith("read"):
            wanted = flags.reads or flags.num
        while ops < wanted and not (flags.time_limit and last - begin > flags.time_limit):
            found += bool(operation(ops))
            ops += 1
            now = time.perf_counter()
            latencies.append(now - last)
            last = now
        if ops < wanted:
            result["truncated"] = True
    seconds = max(time.perf_counter() - begin, 1e-9)
    after = resource.getrusage(resource.RUSAGE_SELF)
    files = [os.path.join(engine.directory, file) for file in os.listdir(engine.directory)]
    result.update(ops=ops, seconds=seconds, micros_per_op=seconds * 1e6 / max(ops, 1), ops_per_sec=ops / seconds)
    result.update(
        cpu_seconds=after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime,
        disk_bytes=sum(os.stat(file).st_blocks * 512 for file in files),
        peak_memory_bytes=after.ru_maxrss * 1024,
    )
    if latencies:
        latencies.sort()
        result["mean_us"], result["max_us"] = seconds * 1e6 / ops, latencies[-1] * 1e6
        for field, part in ("p50_us", 0.5), ("p75_us", 0.75), ("p90_us", 0.9), ("p95_us", 0.95), ("p99_us", 0.99), (
            "p999_us", 0.999), ("p9999_us", 0.9999):
            result[field] = latencies[min(int(part * len(latencies)), len(latencies) - 1)] * 1e6
    if name.startswith("read"):
        result["found"] = found
    return result


def main():
    parser = argparse.ArgumentParser()
    for flag in ("benchmarks", "db", "variant", "compression"):
        parser.add_argument(f"--{flag}", default="")
    for flag, default in ("num", 1_000_000), ("reads", 0), ("key_size", 16), ("value_size", 100), ("seed", 301), ("threads", 1), ("value_size_max", 0):
        parser.add_argument(f"--{flag}", type=int, default=default)
    for flag in "time_limit", "rate", "write_rate":
        parser.add_argument(f"--{flag}", type=float, default=0)
    for flag in "json", "describe", "version":
        parser.add_argument(f"--{flag}", action="store_true")
    # Settings that it has no use for are taken all the same.
    flags, _ = parser.parse_known_args()
    if flags.describe or flags.version:
        print(json.dumps(DESCRIPTION) if flags.describe else f"python-dbm {DESCRIPTION['version']}")
        return
    pool, engine = Pool(flags.seed, flags.value_size), Engine(flags.db)

    def key(number):
        return str(number).zfill(flags.key_size).encode()

    for name in flags.benchmarks.split(","):
        if flags.rate > 0 or flags.write_rate > 0 or flags.threads > 1 or flags.value_size_max > 0:
            reason = "this example has one thread, values of one size and no open loop"
            line = {"benchmark": name, "engine": "python-dbm", "unsupported": reason}
        elif name in BENCHMARKS:
            line = run(name, engine, flags, pool, key)
        else:
            line = {"benchmark": name, "engine": "python-dbm", "unsupported": "this example has no such benchmark"}
        print(json.dumps(line), flush=True)
    engine.close()


if __name__ == "__main__":
    main()
