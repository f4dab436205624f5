"""Warnings about a test before it starts."""

from __future__ import annotations

import sys

import pytest

from fencepost.harness.command import app, test
from fencepost.harness.spec.make import make
from fencepost.harness.spec.needs import warn_of_numbers


def said(lock, options, ttl_ms):
    heard = []
    warn_of_numbers(make(lock, options, {"ttl_ms": ttl_ms}), heard.append)
    return heard


def test_an_election_whose_numbers_cannot_be_safe_is_warned_of():
    [line] = said("kubernetes-client", {"renew_deadline_ms": 2500}, 2000)
    assert "cannot be safe" in line and "make renew_deadline_ms shorter than the lease" in line


def test_a_lease_that_the_retry_period_uses_up_is_warned_of():
    [line] = said("kubernetes-client", {}, 2000)
    assert "stops 2500 ms after its last renewal" in line and "2000 ms (the lease)" in line


@pytest.mark.parametrize(
    ("lock", "ttl_ms"), [("kubernetes-client", 3000), ("kazoo-election", 2000), ("redis", 2000)]
)
def test_other_tests_are_not_warned_of(lock, ttl_ms):
    assert said(lock, {}, ttl_ms) == []


def test_fencepost_test_says_it_before_it_starts_a_cluster(monkeypatch, capsys):
    def no_cluster(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(test, "cluster_for", no_cluster)
    words = ("kubernetes-client", "-o", "renew_deadline_ms=2500", "--ttl", "2s")
    monkeypatch.setattr(sys, "argv", ["fencepost", "test", *words])
    app.run()
    found = capsys.readouterr()
    assert "cannot be safe" in " ".join((found.out + found.err).split())
