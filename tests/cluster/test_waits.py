"""The order in which the model of Redis serves waiting clients, compared with a real server
(tests/hunt/models/redis_waits.py)."""

from __future__ import annotations

from fencepost.harness.cluster.compose import ComposeCluster
from tests.cluster.conftest import emptied
from tests.cluster.test_models import drawn_from
from tests.hunt.models.redis_waits import play

SERVERS = ["redis-1"]
STEPS = 1_500


def test_clients_that_wait_for_a_list_or_a_sorted_set_are_answered_as_by_redis(
    cluster: ComposeCluster,
) -> None:
    emptied(cluster, "redis")
    address = cluster.address("redis-1"), 6379
    seed, random = drawn_from()
    ends = play(address, random, STEPS)
    # How often a wait times out depends on the draw: draw more until each end was seen often.
    for _ in range(3):
        if min(ends.values()) > 5:
            break
        more = play(address, random, STEPS)
        ends = {end: count + more[end] for end, count in ends.items()}
    assert min(ends.values()) > 5, (seed, ends)
