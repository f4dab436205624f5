"""The programs of node, which a node runs with nothing but Python's own library."""

from __future__ import annotations

import os

import pytest

from fencepost.node import cpu, processes, vdso
from tests.targets import Target


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
