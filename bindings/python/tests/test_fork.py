"""A fork: the child may read what its parent opened, and open other databases."""

import os
import pathlib
import subprocess
import sys

import terrace


CHILD = """
import os, sys, terrace

path = sys.argv[1]
db = terrace.DB(path, create_if_missing=True)
db.update((b"%04d" % number, b"parent") for number in range(2000))
db.flush()
db.put(b"log", b"parent")
snapshot, iterator = db.snapshot(), db.iterator()
next(iterator)
child = os.fork()
if child == 0:
    code = 1
    try:
        assert db.get(b"0001") == db[b"log"] == snapshot.get(b"log") == b"parent"
        assert sum(1 for _ in iterator) == 2000
        assert sum(len(part) for part in db.iter_many()) == 2001
        assert db.get_many([b"0001", b"x"]) == [b"parent", None]
        for write in (lambda: db.put(b"a", b"child"), lambda: db.delete(b"log"), db.flush,
                      lambda: db.update({b"a": b"child"}), db.compact_range):
            try:
                write()
            except terrace.NotSupportedError as error:
                assert "fork" in str(error)
            else:
                assert False, write
        with terrace.DB(path + "-child", create_if_missing=True) as own:
            own.update((b"%04d" % number, b"child") for number in range(2000))
            own.compact_range()
            assert sum(1 for _ in own) == 2000
        db.close()
        code = 0
    finally:
        os._exit(code)
assert os.waitpid(child, 0)[1] == 0
db.put(b"after", b"parent")
db.close()
with terrace.DB(path) as db:
    assert sum(1 for _ in db) == 2002 and db.verify()["is_clean"]
"""


def test_a_child_reads_and_does_not_write(directory: pathlib.Path) -> None:
    command = [sys.executable, "-c", CHILD, str(directory)]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert (ran.returncode, ran.stderr) == (0, "")


CLOSING = """
import os, sys, threading, terrace

blocks, entered, go_on = threading.Event(), threading.Event(), threading.Event()

def order(a, b):
    if blocks.is_set() and threading.current_thread() is not threading.main_thread():
        entered.set()
        go_on.wait()
    return (a > b) - (a < b)

db = terrace.DB(sys.argv[1], create_if_missing=True, comparator=order, comparator_name=b"order")
for _ in range(2):
    db.update((b"%04d" % number, b"parent") for number in range(100))
    db.flush()

def compact():
    try:
        while True:
            db.compact_range()
    except (RuntimeError, terrace.Error):
        pass

compaction, close = threading.Thread(target=compact), threading.Thread(target=db.close)
blocks.set()
compaction.start()
entered.wait()
close.start()
close.join(0.2)
assert close.is_alive()
child = os.fork()
if child == 0:
    # The thread that closes is the parent's.
    db.close()
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
blocks.clear()
go_on.set()
db.close()
close.join(60)
assert not close.is_alive()
compaction.join()
"""


def test_a_child_does_not_wait_for_a_close_of_its_parent(directory: pathlib.Path) -> None:
    command = [sys.executable, "-W", "ignore", "-c", CLOSING, str(directory)]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert (ran.returncode, ran.stderr) == (0, "")


BUSY = """
import os, sys, threading, terrace

path = sys.argv[1]
db = terrace.DB(path, create_if_missing=True, write_buffer_size=64 << 10)
stop = threading.Event()

def work():
    number = 0
    while not stop.is_set():
        db.put(b"%06d" % (number % 5000), bytes(100))
        list(db.iterator(stop=b"000050"))
        number += 1

threads = [threading.Thread(target=work, daemon=True) for _ in range(3)]
for thread in threads:
    thread.start()
for _ in range(20):
    child = os.fork()
    if child == 0:
        code = 1
        try:
            try:
                db.get(b"000001")
                next(db.iterator(), None)
            except terrace.NotSupportedError as error:
                # The parent's compactions go on, and may have removed a table since the fork that
                # was not open then.
                assert "removed a table" in str(error)
            with terrace.DB(path + "-%d" % os.getpid(), create_if_missing=True) as own:
                own.put(b"a", b"1")
            terrace.destroy_db(path + "-%d" % os.getpid())
            code = 0
        finally:
            os._exit(code)
    assert os.waitpid(child, 0)[1] == 0
stop.set()
for thread in threads:
    thread.join()
assert db.verify()["is_clean"]
"""


def test_forks_beside_busy_threads(directory: pathlib.Path) -> None:
    command = [sys.executable, "-c", BUSY, str(directory)]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert not list(directory.parent.glob(f"{directory.name}-*")) and os.path.isdir(directory)
