"""Every published schedule is complete: its names exist, and each of its ops completes."""

from __future__ import annotations

from collections import Counter
from typing import get_args

import pytest

from fencepost.checker.checkers import CHECKERS, sound
from fencepost.checker.verdict import Verdict
from fencepost.checker.why.link import Sort
from fencepost.nemesis.failpoints import ALL_FAILPOINTS
from fencepost.nemesis.families import FAMILIES
from fencepost.settings import SETTINGS
from fencepost.workloads.locks.registry import LOCKS
from fencepost.workloads.resources.registry import GUARDS
from fencepost.workloads.scenarios.caused import NAMING, causes, unnamed
from fencepost.workloads.scenarios.expectations import KEPT
from fencepost.workloads.scenarios.registry import SUITES
from fencepost.workloads.scenarios.scenario import (
    Begin,
    Do,
    Finish,
    Heal,
    Inject,
    LeaseOver,
    NoteTime,
    Scenario,
    TtlByClock,
    plain,
)

ALL = [
    (scenario.lock or suite.lock, scenario)
    for suite in SUITES.values()
    for scenario in suite.scenarios
]
every_scenario = pytest.mark.parametrize(
    ("suite", "scenario"), ALL, ids=[f"{suite}-{s.name}-{s.guard}" for suite, s in ALL]
)


def servers(suite):
    return {f"{LOCKS[suite].kind}-{n + 1}" for n in range(LOCKS[suite].servers)} | {"storage"}


def clients(scenario):
    return {f"client-{n + 1}" for n in range(scenario.clients)}


def test_a_scenario_that_breaks_no_promise_expects_what_a_calm_run_does():
    calm = sound({"lock": {"token": False}})
    assert KEPT.items() <= calm.items()
    # Nothing is published about server logs; a checker of a package is not a scenario's concern.
    assert "server-log" in calm.keys() - KEPT.keys()


@every_scenario
def test_the_cause_of_a_violation_is_one_of_its_faults_or_a_kind_of_cause(suite, scenario):
    if not any(scenario.expected.get(name) is False for name in NAMING):
        return
    faults = {step.name for step in map(plain, scenario.steps) if isinstance(step, Inject)}
    assert set(causes(scenario)) <= faults | set(get_args(Sort))


def test_evidence_that_names_another_cause_than_the_scenario_s_is_found():
    pause = Inject("pause", "pause", ("client-1",))
    scenario = Scenario("s", ("C1",), "", "", "none", (pause,), {"mutual_exclusion": False})

    def said(**link):
        evidence = [{"what": "two holders.", "cause": [{"sort": "kept-by-fault", **link}]}]
        return unnamed(scenario, {"mutual_exclusion": Verdict(False, "", evidence)})

    assert said(family="pause", nodes=["client-1"]) == []
    assert said(family="pause", nodes=["client-2"])
    assert said(family="clock", nodes=["client-1"])
    assert said() == ["mutual_exclusion should name pause, but reports: two holders."]


def test_a_name_and_a_guard_name_one_scenario():
    for suite in SUITES.values():
        counts = Counter((entry.name, getattr(entry, "guard", "")) for entry in suite.entries)
        assert set(counts.values()) == {1}


def test_each_schedule_is_played_without_a_guard_and_with_one():
    guards = {}
    for scenario in SUITES["redlock"].scenarios:
        guards.setdefault(scenario.name, []).append(scenario.guard)
    others = {
        "slow-network-after-look": ["deadline", "fenced"],
        "random-value-compared": ["compare-and-set"],
        "random-value-shown": ["new-value"],
    }
    for name, found in guards.items():
        assert found == others.get(name, ["none", "fenced"])


@every_scenario
def test_everything_that_a_scenario_names_exists(suite, scenario):
    nodes = servers(suite) | clients(scenario)
    assert scenario.guard in GUARDS
    for name, value in scenario.settings.items():
        SETTINGS[name].check(value)
    assert set(scenario.expected) <= set(CHECKERS)
    assert set(scenario.options) <= set(LOCKS[suite].options)
    for step in scenario.steps:
        if isinstance(step, Inject):
            assert step.family in FAMILIES
            assert set(step.targets) <= nodes
            for link in step.arguments.get("links", ()):
                assert set(link) <= set(step.targets)
            assert step.arguments.get("point") in (None, *ALL_FAILPOINTS)
        elif isinstance(step, Do | Begin | Finish | LeaseOver | NoteTime | TtlByClock):
            assert step.client in clients(scenario)
        if isinstance(step, Begin):
            assert step.stop_at in (None, *ALL_FAILPOINTS)
        if isinstance(step, Do | Begin):
            assert step.f in ("acquire", "extend", "release", "read", "write")


@every_scenario
def test_every_fault_is_healed_once_and_no_other_is(suite, scenario):
    on, seen = [], []
    for step in scenario.steps:
        if isinstance(step, Inject):
            assert step.name not in seen
            on.append(step.name)
            seen.append(step.name)
        elif isinstance(step, Heal):
            on.remove(step.name)
    assert on == []


@every_scenario
def test_a_client_does_one_thing_at_a_time_and_completes_its_ops(suite, scenario):
    begun = set()
    for step in scenario.steps:
        if isinstance(step, Begin):
            assert step.client not in begun
            begun.add(step.client)
        elif isinstance(step, Finish):
            begun.remove(step.client)
        elif isinstance(step, Do):
            assert step.client not in begun
    assert begun == set()


@every_scenario
def test_a_pause_at_a_point_follows_the_op_that_stops_there(suite, scenario):
    for before, step in zip(scenario.steps, scenario.steps[1:], strict=False):
        if isinstance(step, Inject) and step.arguments.get("point"):
            assert isinstance(before, Begin)
            assert (before.client, before.stop_at) == (step.targets[0], step.arguments["point"])


@every_scenario
def test_every_scenario_has_a_description_a_source_and_times(suite, scenario):
    assert len(scenario.source) > 10
    assert scenario.what.endswith(".")
    assert scenario.expected
    for words in scenario.to_json()["steps"]:
        assert words[0] == words[0].upper() or words.startswith(tuple(clients(scenario)))
        assert words.endswith(".")
        assert "  " not in words and "(" not in words


@every_scenario
def test_a_fence_is_given_tokens(suite, scenario):
    options = LOCKS[suite].read_options({}) | dict(scenario.options)
    for name, value in scenario.options.items():
        choices = LOCKS[suite].options[name].choices
        assert not choices or value in choices
    if scenario.guard == "fenced":
        assert LOCKS[suite].has_token(options)
    if "fencing" in scenario.expected:
        assert LOCKS[suite].has_token(options)


@every_scenario
def test_a_server_whose_clock_is_to_jump_is_started_for_it(suite, scenario):
    families = [step.family for step in scenario.steps if isinstance(step, Inject)]
    assert set(scenario.families) == set(families)
    assert scenario.to_json()["families"] == scenario.families
