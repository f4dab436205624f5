"""A server behind Sentinel: the processes of its node, and when it serves."""

from __future__ import annotations

import pytest

from fencepost.harness.servers import redis, sentinel
from fencepost.node.kind import Start


@pytest.fixture(autouse=True)
def servers(monkeypatch, tmp_path):
    monkeypatch.setattr(sentinel, "_SERVERS", tmp_path / "servers")
    return tmp_path / "servers"


def start(tmp_path, **changed):
    settings = {"SERVERS": "5", "FIRST": "10.0.0.1", "CLOCK": "fake", **changed}
    return Start("redis-2", str(tmp_path), "7.0", settings, ("0.0.0.0",))


def test_a_sentinel_watches_the_first_server_and_needs_most_of_the_others(tmp_path):
    shell, c, words = sentinel.KIND.command(start(tmp_path, PRIMARY="10.0.0.1"))
    assert (shell, c) == ("sh", "-c")
    # The pid of the node's server is that of Redis, and the sentinel ends with it.
    assert " & exec redis-server " in words and "--pdeathsig KILL" in words
    assert words.endswith("--replicaof 10.0.0.1 6379")
    assert "connected_slaves:4" in words
    conf = (tmp_path / "sentinel.conf").read_text()
    assert "sentinel monitor fencepost 10.0.0.1 6379 3\n" in conf


def test_a_restarted_sentinel_keeps_its_configuration(tmp_path):
    sentinel.KIND.command(start(tmp_path))
    conf = tmp_path / "sentinel.conf"
    conf.write_text("sentinel monitor fencepost 10.0.0.4 6379 3\n")
    sentinel.KIND.command(start(tmp_path))
    assert conf.read_text() == "sentinel monitor fencepost 10.0.0.4 6379 3\n"


@pytest.mark.parametrize(
    ("replicas", "sentinels", "serves"), [("4", "4", True), ("3", "4", False), ("4", "2", False)]
)
def test_it_serves_once_its_sentinel_knows_all_others(
    monkeypatch, servers, replicas, sentinels, serves
):
    servers.write_text("5\n")
    monkeypatch.setattr(redis, "health", lambda: True)
    known = ["name", "fencepost", "num-slaves", replicas, "num-other-sentinels", sentinels]
    monkeypatch.setattr(redis, "ask", lambda words, port: known)
    assert sentinel.KIND.health() is serves


def test_it_does_not_serve_where_its_server_does_not(monkeypatch):
    monkeypatch.setattr(redis, "health", lambda: False)
    assert sentinel.KIND.health() is False
