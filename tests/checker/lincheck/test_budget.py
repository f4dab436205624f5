"""Limits on time and memory hold, and a check that exceeds one names it."""

import time

import pytest

from fencepost.checker.lincheck import budget, check
from fencepost.checker.lincheck.budget import Budget, Exhausted
from fencepost.checker.lincheck.search import CHECK_EVERY


@pytest.fixture
def clock(monkeypatch):
    """Freeze time at 100 s and memory in use at 5 MB until the test changes them."""
    now = {"s": 100.0, "bytes": 5_000_000}
    monkeypatch.setattr(time, "monotonic", lambda: now["s"])
    monkeypatch.setattr(budget, "resident", lambda: now["bytes"])
    return now


def test_without_limits_nothing_is_ever_spent(clock):
    unlimited = Budget.starting_now()
    clock["s"], clock["bytes"] = 1e9, 1 << 60
    unlimited.spend("anywhere")
    assert unlimited == Budget(None, None, None, None)
    assert unlimited.left() is None


def test_the_timeout_expires_after_the_limit_and_not_on_it(clock):
    limited = Budget.starting_now(time_limit=2.5)
    assert limited.left() == 2.5
    clock["s"] = 102.5
    limited.spend("here")
    assert limited.left() == 0
    clock["s"] = 102.6
    with pytest.raises(Exhausted, match=r"^time limit of 2.5 s reached in this test$") as caught:
        limited.spend("in this test")
    assert caught.value.reason == str(caught.value)


def test_memory_is_counted_from_now_on_in_mb(clock):
    limited = Budget.starting_now(memory_limit=1.5)
    clock["bytes"] = 6_500_000
    limited.spend("here")
    clock["bytes"] = 6_500_001
    with pytest.raises(Exhausted, match=r"^memory limit of 1.5 MB reached in this test$"):
        limited.spend("in this test")


def test_memory_in_use_is_the_system_s_figure_in_bytes():
    held = budget.resident()
    block = bytearray(50_000_000)
    assert 40_000_000 < budget.resident() - held < 60_000_000
    del block


def test_where_only_the_peak_of_memory_is_known_the_peak_counts(monkeypatch, tmp_path):
    held = budget.resident()
    monkeypatch.setattr(budget, "_STATM", tmp_path / "none")
    monkeypatch.setattr("sys.platform", "linux")
    assert held * 0.5 < budget.resident() < held * 100
    peak = budget.resident()
    monkeypatch.setattr("sys.platform", "darwin")  # this system counts in bytes
    assert budget.resident() * 1024 == peak


def test_reading_checks_the_limits_periodically(monkeypatch):
    looked = []
    monkeypatch.setattr(Budget, "spend", lambda self, where: looked.append(where))
    event = {"process": "nemesis", "type": "info", "f": "none"}
    check([event] * 2500, "register", time_limit=100)
    assert looked == [f"after reading {count} events" for count in (0, 1024, 2048)]
    looked.clear()
    check([event] * 2500, "register", memory_limit=100)
    assert len(looked) == 3
    looked.clear()
    check([event] * 2500, "register")
    assert looked == []


def test_a_search_checks_the_limits_periodically(monkeypatch):
    looked = []
    monkeypatch.setattr(Budget, "spend", lambda self, where: looked.append(where))
    write = [{"process": 1, "type": kind, "f": "write", "value": 1} for kind in ("invoke", "ok")]
    check(write * 1100, "register", fast=False)
    told = {f"after {count} events of an object" for count in (0, 1024, 2048)}
    among = "with 1 configurations at one return"
    assert told | {among} == set(looked)
    assert [looked.count(one) for one in (*told, among)] == [1, 1, 1, 1100 // CHECK_EVERY]
