"""Provide the programs of node, which a node runs with Python's standard library only."""

from __future__ import annotations

import os

import pytest

from fencepost.node import cpu, processes, vdso
from tests.targets import Target


@pytest.fixture(autouse=True)
def own(monkeypatch):
    """Hide all processes but the tests' own: others may belong to a cluster, or to another run."""
    for program in (cpu, vdso):
        monkeypatch.setattr(program, "everyone", lambda: list(processes.family(os.getpid())))


@pytest.fixture
def target():
    found = Target()
    yield found
    found.end()


@pytest.fixture
def busy():
    """Start a process whose threads only read the clock."""
    found = Target(spinning=2)
    yield found
    found.end()
