"""Transactions: threads move money between accounts, and none is lost."""

import random
import tempfile
import threading

import terrace

ACCOUNTS = 10


def transfer(db: terrace.DB, source: bytes, target: bytes, amount: int) -> bool:
    """Moves `amount`, if there is as much. Returns whether there was."""

    def work(transaction: terrace.Transaction) -> bool:
        left = int(transaction.get_for_update(source, b"0")) - amount
        if left < 0:
            return False
        more = int(transaction.get_for_update(target, b"0")) + amount
        transaction[source] = b"%d" % left
        transaction[target] = b"%d" % more
        return True

    # Runs again where somebody else has changed one of the accounts meanwhile.
    return db.transact(work)


def main(directory: str) -> None:
    with terrace.DB(directory, create_if_missing=True) as db:
        names = [b"account/%d" % number for number in range(ACCOUNTS)]
        db.update((name, b"100") for name in names)

        def trade() -> None:
            for _ in range(500):
                source, target = random.sample(names, 2)
                transfer(db, source, target, random.randrange(50))

        threads = [threading.Thread(target=trade) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        balances = [int(balance or b"0") for balance in db.get_many(names)]
        print("balances:", balances)
        assert sum(balances) == 100 * ACCOUNTS and min(balances) >= 0


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as scratch:
        main(scratch)
