"""The model of ZooKeeper has the same dialogues as the leader of a real ensemble.

tests/hunt/models/zookeeper_dialogue.py draws and compares them. The test prints its seeds;
FENCEPOST_MODEL_SEED sets the first one.
"""

from __future__ import annotations

import os
import socket
import time

import pytest

from fencepost.harness.cluster.compose import ComposeCluster
from tests.cluster.conftest import emptied
from tests.hunt.models import zookeeper_dialogue as dialogue

SERVERS = ("zookeeper-1", "zookeeper-2", "zookeeper-3")
PORT = 2181
DIALOGUES, STEPS = 10, 300


@pytest.fixture(scope="module")
def leader(cluster: ComposeCluster) -> tuple[str, int]:
    emptied(cluster, "zookeeper")
    addresses = [(cluster.address(node), PORT) for node in SERVERS]
    (found,) = (one for one in addresses if b"Mode: leader" in _state(one))
    return found


def _state(address: tuple[str, int]) -> bytes:
    with socket.create_connection(address, 10) as link:
        link.sendall(b"srvr")
        return b"".join(iter(lambda: link.recv(4096), b""))


def test_random_dialogues_with_the_leader_are_those_with_the_model(
    leader: tuple[str, int],
) -> None:
    first = int(os.environ.get("FENCEPOST_MODEL_SEED") or time.time_ns() % 1_000_000)
    for seed in range(first, first + DIALOGUES):
        print(f"seed {seed}")
        # The leader looks each minute for containers to delete.
        dialogue.compare(leader, seed, STEPS, containers=False)
