"""Uses Debian's plyvel on whichever libleveldb the loader finds. Arguments: a directory, and "everything" or "round N".
"""
import faulthandler
import os
import sys

import plyvel


def everything(root):
    path = os.path.join(root, "db")
    try:
        plyvel.DB(path)
    except plyvel.Error as error:
        print(type(error).__name__, "does not exist" in str(error))
    db = plyvel.DB(path, create_if_missing=True, lru_cache_size=1 << 20, bloom_filter_bits=10, block_size=1024,
                   write_buffer_size=1 << 16, max_open_files=80, compression=None)
    try:
        plyvel.DB(path)
    except plyvel.IOError as error:
        print(type(error).__name__)
    db.put(b"a", b"1", sync=True)
    print(db.get(b"a"), db.get(b"b"), db.get(b"b", b"default"))
    db.delete(b"a")
    with db.write_batch(transaction=True, sync=True) as batch:
        for i in range(3000):
            batch.put(b"key%06d" % i, b"value%d" % i)
        batch.delete(b"key000007")
    try:
        with db.write_batch(transaction=True) as batch:
            batch.put(b"never", b"written")
            raise ValueError
    except ValueError:
        print("rolled back", db.get(b"never"))
    snapshot = db.snapshot()
    db.put(b"key000001", b"new")
    print(snapshot.get(b"key000001"), db.get(b"key000001"))
    for options in [dict(start=b"key000005", stop=b"key000010"), dict(prefix=b"key00299"),
                    dict(start=b"key000005", stop=b"key000010", include_start=False, include_stop=True, reverse=True),
                    dict(reverse=True, include_value=False, stop=b"key000003"),
                    dict(include_key=False, start=b"key002995"), dict(start=b"x")]:
        print(list(db.iterator(**options)))
        print(list(snapshot.iterator(fill_cache=False, verify_checksums=True, **options)))
    iterator = db.iterator()
    print(next(iterator), next(iterator), iterator.prev(), iterator.prev())
    iterator.seek(b"key001")
    print(next(iterator))
    iterator.seek_to_stop()
    print(iterator.prev())
    raw = db.raw_iterator()
    raw.seek(b"key000007")
    print(raw.valid(), raw.item())
    raw.seek_to_last()
    print(raw.item())
    raw.next()
    print(raw.valid())
    raw.close()
    prefixed = db.prefixed_db(b"pre:")
    prefixed.put(b"x", b"y")
    print(list(prefixed), db.get(b"pre:x"))
    db.compact_range()
    db.compact_range(start=b"key000100", stop=b"key000200")
    print(db.approximate_size(b"key000000", b"key003000") > 10000, db.get_property(b"leveldb.num-files-at-level0"),
          db.get_property(b"nope"), len(db.get_property(b"leveldb.stats")) > 50)
    snapshot.close()
    db.close()
    print(db.closed)
    db = plyvel.DB(path)
    print(sum(1 for _ in db))
    del db
    plyvel.repair_db(path)
    db = plyvel.DB(path, paranoid_checks=True)
    print(sum(1 for _ in db), db.get(b"key000001"))
    db.close()
    plyvel.destroy_db(path)

    def backwards(a, b):
        return (a < b) - (a > b)

    path = os.path.join(root, "backwards")
    db = plyvel.DB(path, create_if_missing=True, comparator=backwards, comparator_name=b"backwards")
    for i in range(100):
        db.put(b"%03d" % i, b"x")
    db.compact_range()
    print(list(db.iterator(start=b"010", stop=b"005")))
    db.close()
    # plyvel closes a database with the interpreter's lock, which the comparator takes: nothing may
    # still compare then.
    faulthandler.dump_traceback_later(120, exit=True)
    for number in range(20):
        path = os.path.join(root, "backwards%d" % number)
        db = plyvel.DB(path, create_if_missing=True, comparator=backwards, comparator_name=b"backwards")
        for i in range(100):
            db.put(b"%03d" % i, b"x")
        if number % 2:
            for i in range(100):
                db.delete(b"%03d" % i)
        db.close()
        plyvel.DB(path, comparator=backwards, comparator_name=b"backwards").close()
    faulthandler.cancel_dump_traceback_later()
    try:
        plyvel.DB(path)
    except plyvel.Error as error:
        print(type(error).__name__)
    print("done")


def turn(path, number):
    db = plyvel.DB(path, create_if_missing=True, write_buffer_size=1 << 16)
    for earlier in range(number):
        for i in range(1000):
            assert db.get(b"%03d/%04d" % (i, earlier)) == b"%d" % (i * earlier), (i, earlier)
    for i in range(1000):
        db.put(b"%03d/%04d" % (i, number), b"%d" % (i * number), sync=i % 100 == 0)
    db.put(b"gone", b"soon")
    db.delete(b"gone")
    if number % 3 == 2:
        db.compact_range()
    print(sum(1 for _ in db), "entries")
    db.close()


if sys.argv[2] == "everything":
    everything(sys.argv[1])
else:
    turn(sys.argv[1], int(sys.argv[2].split()[1]))
