"""`fencepost check` of an elector, on a cluster in memory whose locks stand for leases."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fencepost.harness.execute import contract_turns, elector_contract
from fencepost.harness.execute.elector_contract import ElectorTrial
from fencepost.harness.execute.run_once import run_once
from fencepost.harness.execute.timed import Played
from fencepost.harness.results import results
from fencepost.nemesis import kill
from tests.harness.disturbed import SPEC

pytestmark = pytest.mark.slow

STOPS = "a leader that cannot renew stops within its lease"


@pytest.fixture
def checked(cluster, monkeypatch):
    """Return the results of checking the cluster's service, by step."""
    for module, name, seconds in (
        (elector_contract, "_BACK_S", 0.6), (elector_contract, "_LEASES", 0.5),
        (contract_turns, "_AGAIN_S", 0.01), (kill, "_GONE_S", 0.02),
    ):  # fmt: skip
        monkeypatch.setattr(module, name, seconds)

    def run(**options):
        found = []

        def play(running):
            trial = ElectorTrial(running)
            trial.play()
            found.extend(trial.found)
            return Played()

        spec = replace(SPEC, ttl_ms=400, nemesis=("pause", "kill"))
        spec = replace(spec, options=spec.options | options)
        folder = results.create("check")
        ended = run_once(folder, spec, cluster, lambda status: None, [], play=play)
        assert ended.failure is None, ended.failure
        return {one.what: one for one in found}

    return run


def test_a_service_that_names_deadlines_keeps_the_contract(checked):
    assert {what: one.valid for what, one in checked().items()} == {
        "its numbers can be safe": "unknown",
        "a candidate is elected": True,
        "no other candidate leads meanwhile": True,
        "another candidate leads after it resigns": True,
        STOPS: True,
        "it can be killed, and another candidate leads": True,
        "it closes when its input ends": True,
    }


def test_numbers_that_cannot_be_safe_are_named(checked):
    found = checked(renew_deadline_ms=400)["its numbers can be safe"]
    assert found.valid is False and "shorter than the lease" in found.how


def test_two_leaders_end_the_check(checked, cluster):
    cluster.service.broken = True
    found = checked()
    assert found["no other candidate leads meanwhile"].valid is False
    assert list(found)[-1] == "the check continues after a second candidate"


def test_a_leader_without_a_deadline_that_is_not_told_to_stop_is_found(
    checked, cluster, monkeypatch
):
    acquire = cluster.service.acquire

    def long(lock, hold, ttl_ns):
        until = acquire(lock, hold, ttl_ns)
        return None if until is None else until + 10**10

    monkeypatch.setattr(cluster.service, "acquire", long)
    found = checked()[STOPS]
    assert found.valid is False and "call stopped" in found.how
