"""Locks of simulated threads: who owns them, and what ends a wait."""

from __future__ import annotations

import threading

import pytest

from fencepost.hunt.intercept import patches
from fencepost.hunt.intercept.context import Place, enter
from fencepost.hunt.intercept.threads import Lock, RLock
from fencepost.hunt.sim.world import MS, Node, World


def played(*works):
    """Run these functions of a world side by side, each in a thread of its own."""
    patches.put()
    world, node = World(), Node("client-1", 0)
    place = Place(world, None, {}, None, None, None, {})
    for work in works:
        world.start(node, lambda work=work: work(world), 0)
    enter(place)
    try:
        world.run()
    finally:
        enter(None)


@pytest.mark.parametrize("kind", [Lock, RLock])
def test_a_wait_for_a_lock_ends_at_its_timeout_or_with_its_release_and_once(kind):
    lock, seen = kind(), []

    def holder(world):
        with lock:
            world.sleep(100 * MS)
        world.sleep(100 * MS)

    def waits(world):
        seen.append((lock.acquire(timeout=0.05), world.now // MS))
        seen.append((lock.acquire(timeout=0.5), world.now // MS))
        # The wake-up at the timeout that has not passed ends no later wait.
        world.sleep(1000 * MS)
        seen.append(world.now // MS)

    played(holder, waits)
    assert seen == [(False, 50), (True, 100), 1100]


def test_a_thread_may_take_its_reentrant_lock_again_and_another_one_only_after_the_last_release():
    lock, seen = RLock(), []

    def holder(world):
        with lock, lock:
            world.sleep(10 * MS)
        lock.acquire()
        lock.acquire()
        lock.release()
        world.sleep(10 * MS)
        lock.release()
        seen.append(("released", world.now // MS))

    def other(world):
        world.sleep(15 * MS)
        seen.append(lock.acquire(blocking=False))
        with pytest.raises(RuntimeError, match="un-acquired"):
            lock.release()
        lock.acquire()
        seen.append(("taken", world.now // MS))
        lock.release()

    played(holder, other)
    assert seen == [False, ("released", 20), ("taken", 20)]
    assert not lock.locked()


def test_a_condition_gives_its_reentrant_lock_back_while_it_waits():
    condition, seen = threading.Condition(RLock()), []

    def waits(world):
        with condition, condition:
            seen.append(condition.wait(1))
            seen.append(world.now // MS)

    def notifies(world):
        world.sleep(5 * MS)
        with condition:
            condition.notify()
            world.sleep(5 * MS)

    played(waits, notifies)
    assert seen == [True, 10]


def test_outside_of_a_simulation_its_owner_is_the_thread():
    lock = RLock()
    with lock, lock:
        assert lock.locked()
    assert not lock.locked()
    with pytest.raises(RuntimeError, match="un-acquired"):
        lock.release()
