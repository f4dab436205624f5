"""Provides a simulated client with its clock, network, threads and failpoints."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from random import Random

from fencepost.hunt.models.http import Pool
from fencepost.hunt.sim.link import Dialled, SimLink
from fencepost.hunt.sim.protocols import Run
from fencepost.hunt.sim.record import Outbox
from fencepost.hunt.sim.world import Node, Reaper, Wake, World
from fencepost.workloads.client.machine import Machine


class Failpoints:
    """Counts each failpoint that a client reaches as a step."""

    def __init__(self, world: World) -> None:
        self._world = world

    def reach(self, name: str) -> None:
        world = self._world
        world.step += 1
        if world.step >= world.decision:
            world.decide_here()


class Mutex:
    """Excludes threads of one client from each other; a thread waits in virtual time."""

    __slots__ = ("_taken", "_waiting", "_world")

    def __init__(self, world: World) -> None:
        self._world = world
        self._taken = False
        self._waiting: deque[Wake] = deque()

    def __enter__(self) -> None:
        while self._taken:
            self._wait()
        self._taken = True

    def _wait(self) -> None:
        running = self._world.running
        assert running is not None
        turn = Wake(running)
        self._waiting.append(turn)
        try:
            self._world.wait()
        finally:
            turn.off = True
            if turn in self._waiting:
                self._waiting.remove(turn)

    def __exit__(self, *_: object) -> None:
        self._taken = False
        if self._waiting:
            self._world.at(self._world.now, self._waiting.popleft())


def simulated(run: Run, node: Node, out: Outbox) -> Machine:
    """Create the machine of the client on this node; `out` is its process."""
    world = run.world

    def connect(name: str, timeout_s: float) -> SimLink:
        return SimLink(run.network, node, run.nodes[name], round(timeout_s * 1e9))

    def sleep(seconds: float) -> None:
        world.sleep(round(seconds * 1e9))

    def chance(seed: str) -> Random:
        # Seeding with an integer is cheap, with a string it is not.
        return Random(run.schedule.at(0) * 1_000_003 + out.process)

    def background(work: Callable[[], None]) -> None:
        run.begin(node, work)

    def mutex() -> Mutex:
        return Mutex(world)

    def address(name: str) -> tuple[str, int]:
        return name, run.nodes[name].port

    pools: dict[str, Pool] = {}

    def pool(host: str, port: int) -> Pool:
        found = pools.get(host)
        if found is None:
            found = pools[host] = Pool(run.network, node, run.nodes[host])
        return found

    def dial(protocol: str, host: str, port: int, connect_s: float, read_s: float) -> Dialled:
        # No bytes are encoded: the server receives the decoded command.
        times = round(connect_s * 1e9), round(read_s * 1e9)
        return Dialled(run.network, node, run.nodes[host], *times)

    def end_threads() -> None:
        _end_threads(world, node)

    return Machine(sleep, chance, connect, address, background, mutex, pool, dial, end_threads)


def _end_threads(world: World, node: Node) -> None:
    """End every task of a client but the calling one."""
    me = world.running
    others = [task for task in world.tasks if task.node is node and task is not me]

    def end() -> None:
        for task in others:
            world.running = task
            task.kill()
        world.running = None

    if any(not task.over for task in others):
        world.at(world.now, Reaper(world.nowhere, end))
        world.sleep(0)
