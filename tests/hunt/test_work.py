"""When the clients of a run ask for the lock again."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from fencepost.hunt.sim.world import MS
from fencepost.hunt.work import BETWEEN, granted

LEASE = 2000 * MS


class World:
    def __init__(self):
        self.now = 0

    def sleep(self, ns):
        self.now += ns


class Client:
    """Refuses the lock after some time of its own."""

    def __init__(self, world, waits_ns):
        self.world, self.waits_ns = world, waits_ns
        self.asked = []

    def apply(self, f, value):
        self.asked.append(self.world.now)
        self.world.now += self.waits_ns
        return "fail", {}


def asked(live, waits_ms, hasty=0):
    """Return when a client that is refused asks, in ms."""
    world = World()
    client = Client(world, waits_ms * MS)
    setting = SimpleNamespace(ttl_ns=LEASE, live=live)
    node = SimpleNamespace(begins=lambda f: None, activity="")
    assert granted(client, setting, world, node, LEASE * 5 // 4, LEASE * 3 // 4, hasty) is None
    return [at // MS for at in client.asked]


def test_a_simulated_client_rests_after_each_refusal():
    assert asked(live=False, waits_ms=0) == [0, 1500]
    assert asked(live=False, waits_ms=1000) == [0]


@pytest.mark.parametrize("waits_ms", [0, 20, 1000, 1400])
def test_a_program_that_waits_for_the_lock_by_itself_asks_at_the_same_time(waits_ms):
    assert asked(live=True, waits_ms=waits_ms) == [0, 1500]


def test_a_program_that_waits_for_longer_rests_a_little_all_the_same():
    assert asked(live=True, waits_ms=1600) == [0, 1600 + BETWEEN // MS]


@pytest.mark.parametrize("live", [False, True])
def test_a_client_in_a_hurry_asks_again_at_once(live):
    assert asked(live, waits_ms=100, hasty=2)[:3] == [0, 120, 240]
