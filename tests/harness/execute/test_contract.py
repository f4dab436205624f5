"""`fencepost check` on a cluster in memory: each step detects its own defect."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest

from fencepost.harness.execute import contract, contract_turns
from fencepost.harness.execute.contract import Trial
from fencepost.harness.execute.run_once import run_once
from fencepost.harness.execute.timed import Played
from fencepost.harness.results import results
from fencepost.nemesis import kill
from tests.harness.disturbed import SPEC
from tests.harness.memory import STOPPED

pytestmark = pytest.mark.slow

SILENT = "a request without an answer is not reported as certain"
LATE = "a late release does not end another's hold"


@pytest.fixture
def checked(cluster, monkeypatch):
    """Return the results of checking the cluster's lock service, by step."""
    for module, name, seconds in (
        (contract, "_BACK_S", 0.6), (contract, "_HANG_S", 0.3), (contract, "_HELD_UP_S", 0.02),
        (contract, "_MARGIN_S", 0.05), (contract_turns, "TURN_S", 0.3),
        (contract_turns, "_AGAIN_S", 0.01),
        (kill, "_GONE_S", 0.02),
    ):  # fmt: skip
        monkeypatch.setattr(module, name, seconds)
    silent_while_stopped(cluster)

    def run(**changed):
        found = []

        def play(running):
            trial = Trial(running)
            trial.play()
            found.extend(trial.found)
            return Played()

        folder = results.create("check")
        spec = replace(SPEC, ttl_ms=400, nemesis=("pause", "kill"), **changed)
        ended = run_once(folder, spec, cluster, lambda status: None, [], play=play)
        assert ended.failure is None, ended.failure
        return {one.what: one for one in found}

    return run


def silent_while_stopped(cluster):
    server = cluster.remote("redis-1")

    def answers(node, f):
        while f == "acquire" and STOPPED in server.processes.values():
            time.sleep(0.002)

    cluster.service.answers = answers


def test_a_sound_lock_keeps_the_contract_but_for_requests_without_a_timeout(checked):
    found = checked()
    assert {what: one.valid for what, one in found.items()} == {
        "a free lock is granted": True,
        "a held lock is refused, for certain": True,
        "a held lock is released": True,
        "a released lock is granted to another": True,
        "an extension keeps the lock": True,
        "a lease that is not released ends, but not early": True,
        LATE: True,
        "its deadline is no later than its lease": True,
        SILENT: False,
        "it can be killed, and the lock is granted again": True,
        "tokens rise": "unknown",
        "it closes when its input ends": True,
    }
    assert "give its requests a timeout" in found[SILENT].how


def test_a_lock_that_is_granted_twice_is_not_checked_further(checked, cluster):
    cluster.service.broken = True
    found = checked()
    one = found["a held lock is refused, for certain"]
    assert (one.valid, one.how) == (False, "client-1 held it, and client-2 was answered ok")
    assert list(found)[-1] == "the check continues after a held lock, and its release"


def test_a_release_that_deletes_another_client_s_lock_is_detected(checked, cluster, monkeypatch):
    service = cluster.service
    monkeypatch.setattr(service, "release", lambda lock, _: service._held.pop(lock, None) or True)
    found = checked()
    assert found[LATE].valid is False
    assert "release only your own hold" in found[LATE].how


def test_a_lock_without_an_expiry_is_found(checked, cluster, monkeypatch):
    acquire = cluster.service.acquire

    def forever(lock, hold, ttl_ns):
        until = acquire(lock, hold, ttl_ns * 1000)
        return None if until is None else until - ttl_ns * 999

    monkeypatch.setattr(cluster.service, "acquire", forever)
    found = checked()
    one = found["a lease that is not released ends, but not early"]
    assert one.valid is False
    assert "give the lock a TTL on the server" in one.how


def test_a_deadline_later_than_the_server_s_ttl_is_found(checked, cluster, monkeypatch):
    acquire = cluster.service.acquire

    def shorter(lock, hold, ttl_ns):
        until = acquire(lock, hold, ttl_ns // 2)
        return None if until is None else until + ttl_ns // 2

    monkeypatch.setattr(cluster.service, "acquire", shorter)
    one = checked()["a lease that is not released ends, but not early"]
    assert one.valid is False
    assert "the server's TTL is shorter than the client's lease" in one.how


def test_a_release_that_does_nothing_is_found(checked, cluster, monkeypatch):
    monkeypatch.setattr(cluster.service, "release", lambda lock, hold: True)
    one = checked()["a released lock is granted to another"]
    assert one.valid is False
    assert "it stays held until its lease expires" in one.how
