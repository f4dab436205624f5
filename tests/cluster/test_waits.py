"""The order in which the model of Redis serves waiting clients, compared with a real server
(tests/hunt/models/redis_waits.py)."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from fencepost.harness.cluster.provision import brought_up
from fencepost.harness.servers.kinds import KINDS
from fencepost.harness.servers.server import Server
from fencepost.harness.servers.wait import START_S
from tests.cluster.test_models import drawn_from
from tests.hunt.models.redis_waits import play

STEPS = 1_500


@pytest.fixture
def address() -> Iterator[tuple[str, int]]:
    with brought_up(["redis-1"], print) as found:
        Server(found.remote("redis-1"), KINDS["redis"], {}).wait_ready(timeout_s=START_S)
        yield found.address("redis-1"), 6379


def test_clients_that_wait_for_a_list_or_a_sorted_set_are_answered_as_by_redis(
    address: tuple[str, int],
) -> None:
    seed, random = drawn_from()
    ends = play(address, random, STEPS)
    # How often a wait times out depends on the draw: draw more until each end was seen often.
    for _ in range(3):
        if min(ends.values()) > 5:
            break
        more = play(address, random, STEPS)
        ends = {end: count + more[end] for end, count in ends.items()}
    assert min(ends.values()) > 5, (seed, ends)
