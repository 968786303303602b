"""What the tests share."""

import collections.abc
import os
import pathlib
import random

import pytest

import terrace


@pytest.fixture
def directory(tmp_path: pathlib.Path) -> pathlib.Path:
    """Returns a directory that does not exist yet."""
    return tmp_path / "db"


@pytest.fixture
def db(directory: pathlib.Path) -> collections.abc.Iterator[terrace.DB]:
    """Returns an empty database."""
    with terrace.DB(directory, create_if_missing=True) as db:
        yield db


@pytest.fixture
def chance() -> random.Random:
    """Returns a source of randomness; its seed is shown where a test fails."""
    seed = int(os.environ.get("TERRACE_SEED") or random.randrange(1 << 32))
    print(f"TERRACE_SEED={seed}")
    return random.Random(seed)
