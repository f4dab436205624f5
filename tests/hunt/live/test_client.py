"""The times of a program's events, by its own clock."""

from __future__ import annotations

import time
from types import SimpleNamespace

from fencepost.hunt.live import world as live_world
from fencepost.hunt.live.client import RealClient
from fencepost.hunt.live.clocks import Clocks
from fencepost.hunt.live.world import RealWorld
from fencepost.hunt.sim.world import MS


class Clock:
    jumps, later_ns = True, 0

    def stand(self, shown_ns):
        pass


def event(time_ns, type, f):
    return {"time": time_ns, "process": 0, "type": type, "f": f, "value": {}}


def test_a_program_that_reads_the_real_clock_is_not_mistaken_when_that_meets_the_time_of_the_run():
    world = RealWorld()
    world.begin(Clocks([Clock()], time.monotonic_ns() - MS))
    node = SimpleNamespace(name="client-1", out=SimpleNamespace(process=0))
    program = SimpleNamespace(clock=Clock(), reads_real=False)
    rows = []
    client = RealClient(node, program, world, rows)

    def tell(type, f):
        client.hear(event(time.monotonic_ns() - world.origin_ns, type, f))

    tell("invoke", "close")  # time stands, and the real clock is ahead of it
    world.jump(400 * MS)
    tell("invoke", "close")
    # By chance, the real clock shows the run's time.
    world.now = world._shown(time.monotonic_ns() - world.origin_ns) + MS // 4
    world.clocks.stand(world.now)
    assert world.shows(time.monotonic_ns() - world.origin_ns)
    before = world.now
    tell("invoke", "close")
    world.jump(9000 * MS)
    tell("ok", "close")
    assert [row[0] for row in rows] == [MS, 400 * MS, before, 9000 * MS]


def test_events_of_a_client_that_works_while_time_catches_up_stay_in_order(monkeypatch):
    real = [10**12]
    monkeypatch.setattr(live_world, "time", SimpleNamespace(monotonic_ns=lambda: real[0]))
    world, clock = RealWorld(), Clock()
    base_ns = real[0] - MS
    world.begin(Clocks([clock], base_ns))
    node = SimpleNamespace(name="client-1", out=SimpleNamespace(process=0))
    rows = []
    client = RealClient(node, SimpleNamespace(clock=clock, reads_real=False), world, rows)

    def passes(really, now):
        real[0] += really * MS
        world.jump(now * MS)
        world.clocks.stand(world.now)

    def tell(type, f, shown):
        client.hear(event(base_ns + shown * MS - world.origin_ns, type, f))

    passes(3_000, 300)
    passes(2_000, 1_000)
    tell("invoke", "renewed", 1_000)
    # It got no processor for long, and read its clock before time caught up.
    passes(1_500, 2_500)
    tell("ok", "renewed", 1_000)
    tell("invoke", "close", 1_000)
    tell("ok", "close", 2_500)
    assert [row[0] // MS for row in rows] == [1_000, 1_000, 1_000, 2_500]
