"""Runs pytest with Terrace under the name of plyvel."""

import sys

import pytest

import terrace

sys.modules["plyvel"] = terrace
sys.exit(pytest.main(sys.argv[1:]))
