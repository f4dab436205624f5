"""ZooKeeper's answers to `srvr` show which modes serve, and which lead."""

from __future__ import annotations

import pytest

from fencepost.harness.servers import zookeeper


@pytest.mark.parametrize(
    ("mode", "serves", "leads"),
    [
        ("leader", True, True),
        ("follower", True, False),
        ("observer", True, False),
        ("standalone", True, True),
        ("read-only", False, False),  # cut off from its quorum, it grants nothing
    ],
)
def test_a_server_serves_that_knows_of_a_quorum_or_needs_none(monkeypatch, mode, serves, leads):
    said = f"Zookeeper version: 3.8.0-1, built on x\nLatency min/avg/max: 0/0.0/0\nMode: {mode}\n"
    monkeypatch.setattr(zookeeper, "_four_letters", lambda word: said)
    assert (zookeeper.KIND.health(), zookeeper.KIND.leads()) == (serves, leads)


def test_a_server_outside_its_quorum_does_not_serve(monkeypatch):
    said = "This ZooKeeper instance is not currently serving requests\n"
    monkeypatch.setattr(zookeeper, "_four_letters", lambda word: said)
    assert not zookeeper.KIND.health()
    assert not zookeeper.KIND.leads()
