"""Steps of a scenario that wait by a clock."""

from __future__ import annotations

import time
from dataclasses import replace
from types import SimpleNamespace

import pytest

from fencepost.harness.execute.stage import NotAsScheduled, Stage
from fencepost.workloads.scenarios.scenario import (
    Begin,
    NoteTime,
    Pass,
    Reach,
    Scenario,
    Timed,
    TtlByClock,
)


class Jumping:
    """A client whose wall clock is off by `offset_s`."""

    offset_s = 0.0

    def look_at_clock(self, clock, mark):
        assert (clock, mark) == ("wall", {})
        return self.offset_s - 0.001, self.offset_s + 0.001


def stage(client, ttl_ms):
    site = SimpleNamespace(client=lambda name: client, clients=["client-3"])
    running = SimpleNamespace(site=site, director=None, recorder=None, say=lambda text: None)
    return Stage(Scenario("s", ("C3",), "", "", "none", (), {}, ttl_ms=ttl_ms), running)


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


def test_a_client_without_a_noted_time_does_not_wait():
    with pytest.raises(NotAsScheduled, match="has not noted a time"):
        stage(Jumping(), 80)._step(TtlByClock("client-3"))


def test_a_step_that_lasts_as_long_as_it_did_makes_none_after_it_late(monkeypatch):
    now, slept = [100.0], []

    def sleep(seconds):
        slept.append(round(seconds, 3))
        now[0] += seconds

    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    monkeypatch.setattr(time, "sleep", sleep)
    lasts = stage(Jumping(), 80)
    lasts._step(Timed(Pass(2.0), 0.0, lasts_s=2.0))
    lasts._step(Timed(Pass(0.0), 3.0, waits=True))
    assert slept == [2.0, 1.0, 0.0]
    slept.clear()
    late = stage(Jumping(), 80)
    late._step(Timed(Pass(2.0), 0.0))
    late._step(Timed(Pass(0.0), 3.0, waits=True))
    assert slept == [2.0, 3.0, 0.0]


class Stops:
    """A client that never reaches its failpoint."""

    def __init__(self):
        self.armed = set()

    def arm(self, point):
        self.armed.add(point)

    def disarm(self, point):
        self.armed.discard(point)

    def begin(self, f, value): ...

    def wait_begun(self, timeout_s):
        return True

    def wait_failpoint(self, point, timeout_s):
        return False

    def describe(self):
        return "it is in no op"

    def finish(self, timeout_s):
        assert not self.armed  # or it would stop without a step that waits for it
        return "ok", {"hold": "0-1", "deadline": None}


def test_failpoints_are_disarmed_once_the_schedule_has_failed():
    client, healed = Stops(), []
    playing = stage(client, 80)
    playing._director = SimpleNamespace(heal_faults=lambda: healed.append(True))
    playing._scenario = replace(
        playing._scenario,
        steps=(
            Begin("client-3", "acquire", None, ("step-2", "step-9")),
            Reach("client-3", "step-2"),
        ),
    )
    playing._value = lambda client, f: {}
    playing._completed = lambda client, f, done: done[0]
    playing._attempt = lambda *about, **more: "ok"
    with pytest.raises(NotAsScheduled, match="did not reach step-2"):
        playing.perform()
    assert healed == [True]
