"""Steps of a scenario that wait by a clock."""

from __future__ import annotations

import time
from types import SimpleNamespace

import pytest

from fencepost.harness.run.stage import NotAsScheduled, Stage
from fencepost.workloads.scenarios.scenario import NoteTime, Scenario, TtlByClock


class Jumping:
    """A client whose wall clock is off by `offset_s`."""

    offset_s = 0.0

    def look_at_clock(self, clock, mark):
        assert (clock, mark) == ("wall", {})
        return self.offset_s - 0.001, self.offset_s + 0.001


def stage(client, ttl_ms):
    site = SimpleNamespace(client=lambda name: client, clients=["client-3"])
    running = SimpleNamespace(site=site, director=None, recorder=None, say=lambda text: None)
    return Stage(Scenario("s", "C3", "", "", "none", (), {}, ttl_ms=ttl_ms), running)


def test_a_ttl_is_waited_for_by_the_client_s_clock_and_cut_short_by_its_jump():
    client = Jumping()
    waits = stage(client, 80)
    begun = time.monotonic()
    waits._step(NoteTime("client-3"))
    waits._step(TtlByClock("client-3"))
    assert time.monotonic() - begun >= 0.08
    jumps = stage(client, 3_600_000)
    jumps._step(NoteTime("client-3"))
    client.offset_s = 3601.0
    jumps._step(TtlByClock("client-3"))  # or it waits for an hour


def test_who_has_noted_no_time_waits_for_none():
    with pytest.raises(NotAsScheduled, match="has noted no time"):
        stage(Jumping(), 80)._step(TtlByClock("client-3"))
