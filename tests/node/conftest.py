"""The programs of compose/node, which a node runs with nothing but Python's own library."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from targets import Target

NODE = Path(__file__).parents[2] / "compose" / "node"
sys.path.insert(0, str(NODE))


@pytest.fixture
def target():
    found = Target()
    yield found
    found.end()


@pytest.fixture
def busy():
    """One whose threads do nothing but look at the clock."""
    found = Target(spinning=2)
    yield found
    found.end()
