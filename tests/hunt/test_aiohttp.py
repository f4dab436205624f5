"""aiohttp runs unmodified in hunts, and its runs can be repeated."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import pytest

from fencepost.harness.hunting.hunts import described
from fencepost.hunt.faults.registry import table
from fencepost.hunt.run import Run
from fencepost.hunt.search.twin import difference, moments
from fencepost.hunt.sim.schedule import Schedule

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(find_spec("aiohttp") is None, reason="aiohttp is not installed"),
]

LOCK = Path(__file__).parent / "locks_aiohttp.py"


def test_a_lock_on_aiohttp_runs_and_its_runs_can_be_repeated():
    setting = described(f"{LOCK}:Lock", {}, {"seed": 1}, servers="etcd:1").setting
    rows = Run(setting, Schedule(), table(setting)).execute().rows
    ended = {row[2:4] for row in rows}
    assert {("ok", "acquire"), ("ok", "write"), ("ok", "release")} <= ended
    drawn = Schedule((3,), ((9, 2), (40, 5)))
    assert difference(moments(setting, drawn), moments(setting, drawn)) is None
