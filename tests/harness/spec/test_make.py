"""Every spec is made in one place, and validated there."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fencepost.harness.errors import BadArguments
from fencepost.harness.execute.scripted import of_hunt
from fencepost.harness.spec.make import make
from fencepost.settings import SETTINGS
from fencepost.workloads.locks.registry import LOCKS
from fencepost.workloads.scenarios.scenario import Scenario


def test_what_is_not_given_has_its_default():
    spec = make("redlock", {}, {})
    assert spec.name == spec.lock == "redlock"
    assert spec.options == LOCKS["redlock"].read_options({})
    assert all(getattr(spec, name) == setting.default for name, setting in SETTINGS.items())


def test_a_setting_is_text_under_its_word_and_a_value_under_its_field():
    text = make("redis", {"token": "incr"}, {"ttl": "3s", "time": "90", "nemesis": "pause,kill"})
    typed = make(
        "redis", {"token": "incr"}, {"ttl_ms": 3000, "time_s": 90.0, "nemesis": ("pause", "kill")}
    )
    assert text == typed
    assert (text.ttl_ms, text.time_s, text.nemesis) == (3000, 90.0, ("pause", "kill"))


def test_options_that_are_complete_and_typed_stay_as_they_are():
    for lock in LOCKS.values():
        if lock.program or lock.server:
            continue
        options = lock.read_options({})
        settings = {"ttl_ms": max(4000, lock.least_ttl_ms)}
        assert make(lock.name, options, settings).options == options


@pytest.mark.parametrize(
    ("lock", "options", "settings", "why"),
    [
        ("", {}, {}, "which LOCK"),
        ("redlok", {}, {}, "there is no lock 'redlok'"),
        ("redis", {"retrys": 1}, {}, "has no option retrys"),
        ("redis", {}, {"tim": "3s"}, "there is no setting 'tim'"),
        ("redis", {}, {"ttl": "soon"}, "^TTL 'soon'"),
        ("redis", {}, {"ttl_ms": 50}, "TTL 50 ms is out of range"),
        ("redis", {}, {"ttl_ms": 10**400}, r"TTL \(a huge number\) is out of range"),
        ("redis", {}, {"locks": 10**400}, r"locks \(a huge number\) is out of range"),
        ("redis", {}, {"guard": "fenced"}, "guard fenced needs"),
        ("redis", {}, {"nemesis": ("partition:none",)}, "partition"),
        ("redis", {}, {"work": {"rest": 1}}, "there is no setting of work 'rest'"),
        ("redis", {}, {"contention": "9"}, "contention"),
        ("redis", {}, {"servers": "r1"}, "--compose"),
    ],
)
def test_a_spec_that_makes_no_sense_is_refused(lock, options, settings, why):
    with pytest.raises(BadArguments, match=why):
        make(lock, options, settings)


def test_the_length_of_a_scenario_is_that_of_its_steps():
    with pytest.raises(BadArguments, match="time 0"):
        make("redis", {}, {"time_s": 0})
    assert make("redis", {}, {"time_s": 0}, scenario={"name": "x"}).time_s == 0


def test_the_test_of_a_hunted_scenario_is_validated():
    scenario = Scenario("stop", ("C0",), "", "", "none", (), {}, clients=2, ttl_ms=8000)
    hunted = make("redis", {}, {})
    assert of_hunt(hunted, scenario, 3).seed == 3
    with pytest.raises(BadArguments, match="guard fenced needs"):
        of_hunt(hunted, replace(scenario, guard="fenced"), 3)
