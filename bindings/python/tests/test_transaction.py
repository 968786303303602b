"""Transactions."""

import random
import threading

import pytest

import terrace


def test_a_commit_is_atomic_and_seen_afterwards(db: terrace.DB) -> None:
    db[b"a"] = b"1"
    with db.transaction() as transaction:
        transaction[b"b"] = b"2"
        del transaction[b"a"]
        assert transaction.get(b"b") == b"2" and b"a" not in transaction
        assert list(transaction) == [(b"b", b"2")]
        assert len(transaction) == 2
        assert list(db) == [(b"a", b"1")]
    assert list(db) == [(b"b", b"2")]
    with pytest.raises(RuntimeError):
        transaction.get(b"b")


def test_an_exception_rolls_back(db: terrace.DB) -> None:
    with pytest.raises(ZeroDivisionError):
        with db.transaction() as transaction:
            transaction[b"a"] = b"1"
            raise ZeroDivisionError
    assert list(db) == []
    with db.transaction() as transaction:
        transaction[b"a"] = b"1"
        transaction.rollback()
        transaction.rollback()
    assert list(db) == []


def test_conflicts_raise(db: terrace.DB) -> None:
    first, second = db.transaction(), db.transaction()
    first.put(b"a", b"1")
    second.put(b"a", b"2")
    first.commit()
    with pytest.raises(terrace.ConflictError):
        second.commit()
    assert db[b"a"] == b"1"
    third = db.transaction()
    assert third.get_for_update(b"a", b"none") == b"1"
    third[b"b"] = b"3"
    db[b"a"] = b"4"
    with pytest.raises(terrace.Error):
        third.commit()
    assert b"b" not in db


def test_savepoints(db: terrace.DB) -> None:
    transaction = db.transaction()
    transaction[b"a"] = b"1"
    transaction.set_savepoint()
    transaction[b"a"] = b"2"
    transaction[b"b"] = b"3"
    transaction.rollback_to_savepoint()
    with pytest.raises(terrace.Error, match="savepoint"):
        transaction.rollback_to_savepoint()
    transaction.commit()
    assert list(db) == [(b"a", b"1")]


def test_transact_runs_again_after_conflicts(db: terrace.DB) -> None:
    db[b"count"] = b"0"

    def increment(transaction: terrace.Transaction) -> int:
        count = int(transaction.get_for_update(b"count", b"0")) + 1
        transaction.put(b"count", b"%d" % count)
        return count

    def work() -> None:
        for _ in range(200):
            db.transact(increment)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert db[b"count"] == b"800"


def test_transact_gives_up_after_its_retries(db: terrace.DB) -> None:
    calls = []

    def work(transaction: terrace.Transaction) -> None:
        calls.append(1)
        transaction[b"a"] = b"1"
        db[b"a"] = b"%d" % len(calls)

    with pytest.raises(terrace.ConflictError):
        db.transact(work, retries=3)
    assert len(calls) == 4

    def fail(transaction: terrace.Transaction) -> None:
        transaction[b"b"] = b"1"
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        db.transact(fail)
    assert b"b" not in db


@pytest.mark.parametrize("run", range(10))
def test_iterators_see_the_transactions_own_writes(
    db: terrace.DB, chance: random.Random, run: int
) -> None:
    def key() -> bytes:
        return b"%04d" % chance.randrange(2000)

    model = {key(): b"old" for _ in range(chance.randrange(1500))}
    db.update(model)
    transaction = db.transaction()
    for _ in range(chance.randrange(1000)):
        changed = key()
        if chance.random() < 0.3:
            transaction.delete(changed)
            model.pop(changed, None)
        else:
            transaction.put(changed, b"own")
            model[changed] = b"own"
    start, stop = sorted((key(), key()))
    entries = [entry for entry in sorted(model.items()) if start <= entry[0] < stop]
    assert list(transaction.iterator(start=start, stop=stop)) == entries
    assert list(transaction.iterator(start=start, stop=stop, reverse=True)) == entries[::-1]
    assert list(transaction.iterator(include_value=False)) == sorted(model)
    with transaction.iterator() as iterator:
        transaction.commit()
        with pytest.raises(RuntimeError):
            list(iterator)
