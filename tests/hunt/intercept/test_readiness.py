"""A task that waits for files is woken once, and by nothing that comes later."""

from __future__ import annotations

from fencepost.hunt.intercept.context import Place, enter
from fencepost.hunt.intercept.readiness import Poll, number, poke, select
from fencepost.hunt.sim.world import MS, Node, Timer, World


class File:
    def __init__(self, place):
        self.watchers, self.ready = [], False
        self.number = number(self, place)

    def fileno(self):
        return self.number

    def readable(self):
        return self.ready

    def writable(self):
        return False


def test_a_late_wake_up_does_not_end_the_next_wait_of_its_task():
    world, node, slept = World(), Node("client-1", 0), []
    place = Place(world, None, {}, None, None, None, {})
    file = File(place)

    def work():
        assert select([file], [], [], None) == ([file], [], [])
        begun = world.now
        world.sleep(100 * MS)
        slept.append(world.now - begun)

    def ends():
        poke(file, place, 5 * MS)  # the server has gone, which is noticed later
        file.ready = True
        poke(file, place)

    world.start(node, work, 0)
    world.at(MS, Timer(node, ends))
    # Without another event the sleep would take no switch.
    world.at(50 * MS, Timer(node, lambda: None))
    enter(place)
    try:
        world.run()
    finally:
        enter(None)
    assert slept == [100 * MS]


def test_a_wait_ends_at_its_timeout():
    world, node, seen = World(), Node("client-1", 0), []
    place = Place(world, None, {}, None, None, None, {})
    file = File(place)
    world.start(node, lambda: seen.append((select([file], [], [], 0.5), world.now)), 0)
    enter(place)
    try:
        world.run()
    finally:
        enter(None)
    assert seen == [(([], [], []), 500 * MS)]


def test_poll_reports_what_select_reports():
    world, node, seen = World(), Node("client-1", 0), []
    place = Place(world, None, {}, None, None, None, {})
    quiet, ready = File(place), File(place)
    ready.ready = True

    def work():
        poll = Poll()
        poll.register(quiet, 1)
        seen.append((poll.poll(500), world.now))
        poll.register(ready)
        seen.append((poll.poll(), world.now))
        poll.unregister(ready)
        seen.append((poll.poll(0), world.now))

    world.start(node, work, 0)
    enter(place)
    try:
        world.run()
    finally:
        enter(None)
    assert seen == [([], 500 * MS), ([(ready.number, 1)], 500 * MS), ([], 500 * MS)]
