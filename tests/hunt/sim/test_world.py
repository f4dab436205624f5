"""Virtual time: when events happen, and that they repeat exactly."""

from __future__ import annotations

import gc
from concurrent.futures import ThreadPoolExecutor
from contextvars import ContextVar
from random import Random

import pytest

from fencepost.hunt.faults.registry import table
from fencepost.hunt.lock_error import LockError
from fencepost.hunt.models.redis.server import RedisServer
from fencepost.hunt.run import Run
from fencepost.hunt.search.draw import Drawer
from fencepost.hunt.sim import record
from fencepost.hunt.sim.network import Network
from fencepost.hunt.sim.schedule import Schedule
from fencepost.hunt.sim.unknown import Unknown
from fencepost.hunt.sim.world import Node, Timer, World
from tests.hunt.processes import assert_same_digest

pytestmark = pytest.mark.slow


def test_events_happen_in_order_of_time_and_then_of_their_making():
    world, seen = World(), []
    for name, at in (("late", 9), ("first", 5), ("second", 5)):
        world.at(at, Timer(world.nowhere, lambda name=name: seen.append((world.now, name))))
    world.run()
    assert seen == [(5, "first"), (5, "second"), (9, "late")]


def test_a_sleeping_task_lets_others_run():
    world, seen = World(), []

    def sleeper(name, ns):
        def work():
            for _ in range(2):
                world.sleep(ns)
                seen.append((world.now, name))

        return work

    node = Node("client-1", 0)
    world.start(node, sleeper("slow", 30), 0)
    world.start(node, sleeper("fast", 20), 0)
    world.run()
    assert seen == [(20, "fast"), (30, "slow"), (40, "fast"), (60, "slow")]


def test_nothing_on_a_paused_node_continues_before_its_pause_ends():
    world, seen = World(), []
    node = Node("client-1", 0)

    def work():
        world.sleep(10)
        seen.append(world.now)

    world.start(node, work, 0)
    world.at(5, Timer(world.nowhere, lambda: setattr(node, "paused_until", 100)))
    world.run()
    assert seen == [100]


def test_a_task_that_is_stopped_runs_no_further():
    world, seen = World(), []

    def work():
        try:
            world.sleep(10)
            seen.append("went on")
        finally:
            seen.append("ended")

    world.start(Node("client-1", 0), work, 0)
    world.at(5, Timer(world.nowhere, lambda: setattr(world, "over", True)))
    world.run()
    world.stop()
    assert seen == ["ended"]


def test_a_task_that_is_killed_before_it_begins_does_nothing():
    world, seen = World(), []
    task = world.start(Node("client-1", 0), lambda: seen.append("began"), 5)
    world.at(1, Timer(world.nowhere, task.kill))
    world.run()
    assert seen == [] and task.over


def test_a_task_that_waits_while_it_is_stopped_prevents_no_other_from_ending():
    """Its thread is not reused either: it is in the middle of that task's code."""

    def work(seen):
        try:
            seen["world"].sleep(10)
        finally:
            seen["world"].sleep(10)
            seen["went on"] = True

    for _ in range(3):
        world = World()
        seen = {"world": world}
        world.start(Node("client-1", 0), lambda seen=seen: work(seen), 0)
        world.at(5, Timer(world.nowhere, lambda world=world: setattr(world, "over", True)))
        world.run()
        world.stop()
        world.forget()
        assert "went on" not in seen


def alone(work):
    world = World()
    world.start(Node("client-1", 0), lambda: work(world), 0)
    world.run()
    world.stop()


def test_an_exception_of_a_task_is_raised_by_its_own_run_and_the_next_one_is_unaffected():
    def fails(world):
        world.sleep(5)
        raise KeyError("mine")

    seen = []
    for _ in range(3):
        with pytest.raises(KeyError, match="mine"):
            alone(fails)
        alone(lambda world: (world.sleep(1), seen.append(world.now)))
    assert seen == [1, 1, 1]


def test_a_context_variable_of_a_task_is_not_set_in_the_next_one():
    name, seen = ContextVar("name", default="nobody"), []

    def work(world):
        world.sleep(1)
        seen.append(name.get())
        name.set("somebody")

    alone(work)
    alone(work)
    assert seen == ["nobody", "nobody"]


def test_runs_of_several_threads_do_not_interfere():
    def work():
        seen = []
        for _ in range(50):
            alone(lambda world: (world.sleep(1), seen.append(world.now)))
        return seen

    with ThreadPoolExecutor(4) as pool:
        found = [pool.submit(work) for _ in range(4)]
    assert [one.result() for one in found] == [[1] * 50] * 4
    assert work() == [1] * 50


def test_a_run_without_faults_keeps_every_promise(setting):
    one = setting("redlock")
    run = Run(one, Schedule(), table(one)).execute()
    assert run.injected == []
    assert run.came_back
    assert [row[3] for row in run.rows if row[2] == "ok" and row[3] == "write"] == ["write"] * 2


def drawn(one, count, seed=7):
    """Return this number of schedules of a setting, each as it ran."""
    actions, random = table(one), Random(seed)
    drawer = Drawer(one, actions, 300, {})
    for _ in range(count):
        schedule, aims = drawer.draw(random)
        yield Run(one, schedule, actions, aims=aims).execute()


@pytest.mark.parametrize("lock", ["redlock", "redis", "redis-replicated", "broken-no-ttl"])
def test_a_run_is_replayed_from_its_list_of_integers(setting, lock):
    one = setting(lock)
    for run in drawn(one, 40):
        numbers = run.exact_schedule.numbers(len(one.clients))
        again = Run(one, Schedule.of(numbers, len(one.clients)), table(one)).execute()
        assert record.lines(again.rows) == record.lines(run.rows)


def test_every_history_pairs_and_its_time_never_goes_back(setting):
    for run in drawn(setting("redis", options={"watchdog": "true"}), 60):
        history = record.to_history(run.rows)
        history.calls()
        times = [op.time for op in history]
        assert times == sorted(times)


HISTORIES = """
import hashlib
import gc
from concurrent.futures import ThreadPoolExecutor
from contextvars import ContextVar
from random import Random
from fencepost.harness.spec.simulation import setting_of
from fencepost.harness.spec import from_arguments
from fencepost.hunt.sim import record
from fencepost.hunt.faults.registry import table
from fencepost.hunt.search.draw import Drawer
from fencepost.hunt.run import Run

spec = from_arguments.spec("redlock", {}, {"concurrency": 2, "seed": 1})
one = setting_of(spec, None, None, False)
actions, random, found = table(one), Random("bytes"), hashlib.sha256()
drawer = Drawer(one, actions, 300, {})
for _ in range(30):
    schedule, aims = drawer.draw(random)
    found.update(record.lines(Run(one, schedule, actions, aims=aims).execute().rows))
print(found.hexdigest())
"""


def test_histories_are_the_same_bytes_in_every_process():
    assert_same_digest(HISTORIES)


class Raises:
    def __init__(self, env, nodes, options):
        self.env = env

    def acquire(self, name, ttl_ns):
        self.env.sleep(1)
        return {}["missing"]

    def close(self): ...


class Loops(Raises):
    def acquire(self, name, ttl_ns):
        while True:
            self.env.now()


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (Raises, "KeyError: 'missing'.*step"),
        (Loops, "a loop without a sleep .*test_world"),
    ],
)
def test_a_lock_that_raises_or_loops_is_reported_with_the_place(setting, monkeypatch, wrong, said):
    from dataclasses import replace

    from fencepost.workloads.locks import registry

    one = setting("redis")
    monkeypatch.setattr(registry, "LOCKS", {"redis": replace(registry.LOCKS["redis"], make=wrong)})
    with pytest.raises((LockError, Unknown), match=said):
        Run(one, Schedule(), table(one)).execute()


def test_a_power_loss_takes_unsynced_writes_from_the_first_second_on():
    world = World()
    server = RedisServer("redis-1", 0, Network(world, None), "everysec")
    for second in (0, 2):
        world.now = second * 1_000_000_000 + 1
        assert server.handle(("SET", f"early-{second}", "x")) == "OK"
        assert server.handle(("SET", f"late-{second}", "x")) == "OK"
        server.crash(power=True)
        server.start()
    # The first write of a later second is synced at once, with all before it.
    assert set(server.store.values) == {"early-2"}


@pytest.mark.parametrize("lock", ["redlock", "redis", "etcd", "chubby"])
def test_a_run_leaves_no_reference_cycles_for_the_collector(setting, lock):
    one = setting(lock)
    actions = table(one)
    Run(one, Schedule(), actions).execute()
    # Objects that the process holds already do not count: a finalizer can release more
    # cycles after the collection that called it.
    gc.collect()
    gc.freeze()
    gc.set_debug(gc.DEBUG_SAVEALL)
    try:
        Run(one, Schedule(), actions).execute()
        gc.collect()
        assert [type(each) for each in gc.garbage] == []
    finally:
        gc.set_debug(0)
        gc.garbage.clear()


def test_an_exception_of_an_event_is_not_raised_in_the_task_that_polled_it():
    world, caught = World(), []

    class Wrong:
        node, off = Node("redis-1", 1), False

        def due(self):
            raise ValueError("wrong")

    def work():
        try:
            world.sleep(10)
        except Exception as error:
            caught.append(error)

    world.start(Node("client-1", 0), work, 0)
    world.at(5, Wrong())
    with pytest.raises(ValueError, match="wrong"):
        world.run()
    assert caught == []


def test_a_client_killed_while_it_waits_stops_there(setting):
    one = setting("redis", "kill")
    kills = [n for n, action in enumerate(table(one), 1) if action.client == 0]
    whole = Run(one, Schedule(), table(one)).execute()
    steps = [row[7] for row in whole.rows if row[1] == 0 and row[2] == "invoke"]
    for step in range(steps[0] + 1, steps[1]):
        run = Run(one, Schedule((), ((step, kills[0]),)), table(one)).execute()
        mine = [row for row in run.rows if row[1] == 0]
        assert [row[2] for row in mine] == ["invoke", "info"]
        assert mine[-1][5].kind == "killed"


def left():
    """Return how deep code may still recurse."""

    def deeper(count):
        try:
            return deeper(count + 1)
        except RecursionError:
            return count

    return deeper(0)


def test_tasks_that_start_one_another_have_the_same_depth_in_each_run():
    """A greenlet counts its recursion from where it was started, and is used again."""
    depths = []
    for _ in range(30):
        world = World()
        node = Node("client-1", 0)

        def outer(many, world=world, node=node):
            try:
                if many:
                    world.start(node, lambda: outer(many - 1), world.now)
                    world.sleep(10)
                else:
                    depths.append(left())
                    world.sleep(5)
            finally:
                world.sleep(1)  # one that is being killed is never resumed

        world.start(node, lambda: outer(8), 0)
        world.at(3, Timer(world.nowhere, lambda world=world: [t.kill() for t in world.tasks]))
        world.run()
    assert len(depths) == 30
    # The first run starts some of its greenlets within others.
    assert len(set(depths[12:])) == 1
