"""A slow server is waited for and named; one that has ended is not waited for."""

from __future__ import annotations

import pytest

from fencepost.harness.errors import Crashed
from fencepost.harness.remote.remote import Result
from fencepost.harness.servers import wait
from fencepost.harness.servers.kinds import KINDS
from fencepost.harness.servers.server import Server
from tests.harness.memory import Cluster, Node


class Slow(Node):
    """A node whose server serves only after this number of requests."""

    serves_after = 0

    def run(self, argv, **how):
        if "health" in argv:
            self.serves_after -= 1
            return Result(int(self.serves_after > 0), "", "")
        return super().run(argv, **how)


@pytest.fixture
def node():
    return Slow(Cluster(), "redis-1")


@pytest.fixture
def server(node, monkeypatch):
    monkeypatch.setattr(wait, "_SLOW_S", 0.0)
    monkeypatch.setattr(wait, "_LOOK_S", 0.001)
    return Server(node, KINDS["redis"], {})


def test_a_server_that_is_slow_to_serve_is_named_and_waited_for(node, server):
    node.serves_after = 5
    said = []
    server.wait_ready(said.append)
    assert said
    assert said[0].startswith("waiting for redis on redis-1, for ")


def test_a_server_that_has_ended_is_not_waited_for(node, server):
    node.serves_after = 10**9
    node.processes.clear()
    with pytest.raises(Crashed, match="redis-1: redis has ended"):
        server.wait_ready()


def test_a_node_that_has_started_no_server_yet_is_waited_for(node, server):
    """It is as slow as its machine: a missing pid file does not prove that it has ended."""
    node.serves_after = 5
    node.files.clear()
    server.wait_ready()
    assert node.serves_after == 0


def test_a_wait_has_an_end():
    assert not wait.until(lambda: False, 0.0)
    assert wait.until(lambda: True, 0.0)
