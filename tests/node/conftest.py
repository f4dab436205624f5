"""The programs of compose/node, which a node runs with nothing but Python's own library."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from targets import Target

NODE = Path(__file__).parents[2] / "compose" / "node"
sys.path.insert(0, str(NODE))

import cpu  # noqa: E402
import processes  # noqa: E402
import vdso  # noqa: E402


@pytest.fixture(autouse=True)
def own(monkeypatch):
    """Nothing but the tests' own processes: others may be of a cluster, or of another run."""
    for program in (cpu, vdso):
        monkeypatch.setattr(program, "everyone", lambda: list(processes.family(os.getpid())))


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
