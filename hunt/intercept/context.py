"""Determines whether code runs in a simulated client or outside of the simulation."""

from __future__ import annotations

import random
import sys
from _thread import get_ident
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import import_module
from types import FrameType
from typing import TYPE_CHECKING, Any

from greenlet import GreenletExit, getcurrent

from fencepost.hunt.sim.unknown import Unknown

if TYPE_CHECKING:
    from collections.abc import Callable

    from fencepost.hunt.sim.network import Network, Server
    from fencepost.hunt.sim.world import Node, Task, World
    from fencepost.workloads.client.sockets import Sockets


@dataclass
class Place:
    """The simulated world that replaces the real one.

    `fail` ends the run with an error, even if the code under test catches it. `thread` starts a
    thread of a client; `end` ends a client's process, in these words. `sockets` count the bytes
    that clients send, for those that are watched. `numbered`: how many objects of each client have
    a number (numbers.py). `locks`: replacements of module locks, by the original's id and the
    client (threads.py). `files`: sockets by their numbers (readiness.py). `running_loops`,
    `own_loops`: the event loop that runs in a task, and the one that was set for it; `loops`: all
    that ran (loops.py). `named`: how many threads and tasks of a client have a name of a template.
    """

    world: World
    network: Network
    servers: Mapping[str, Server]
    fail: Callable[[BaseException], None]
    thread: Callable[[Node, Callable[[], None]], Task]
    end: Callable[[Node, str], None]
    sockets: Mapping[Node, Sockets]
    ident: int = field(default_factory=get_ident)
    """The only thread that simulates; code in other threads runs outside."""
    numbered: Counter[int] = field(default_factory=Counter)
    locks: dict[tuple[int, int], Any] = field(default_factory=dict)
    files: list[Any] = field(default_factory=list)
    running_loops: dict[Task, Any] = field(default_factory=dict)
    own_loops: dict[Task, Any] = field(default_factory=dict)
    named: Counter[tuple[int, str]] = field(default_factory=Counter)
    loops: list[Any] = field(default_factory=list)

    @property
    def task(self) -> Task:
        task = self.world.running
        assert task is not None
        return task

    def name(self, template: str) -> str:
        """Return the next name for a thread or task of the client: each process has its count."""
        key = self.task.node.index, template
        self.named[key] += 1
        return template % self.named[key]

    def unknown(self, words: str) -> Unknown:
        """Return the error for a feature that is not simulated, and end the run with it."""
        error = Unknown(words)
        self.fail(error)
        return error

    def step(self) -> int:
        """Take a step; return the time (ns)."""
        world = self.world
        if world.stopped or world.running is None or world.running.over:
            raise GreenletExit
        world.step += 1
        if world.step >= world.decision:
            world.decide_here()
        return world.now


_place: Place | None = None
# The thread that destroys objects of ended runs, if one does.
_dying: int | None = None


def destroying(begins: bool) -> None:
    """Note that objects of ended runs are destroyed: their destructors get no further than their
    next call of something that is simulated, as in a process that ends."""
    global _dying
    _dying = get_ident() if begins else None


def _in_destructor() -> bool:
    """Return whether a destructor calls: callbacks of the garbage collector do as well."""
    frame: FrameType | None = sys._getframe(2)
    while frame is not None and frame.f_code.co_name != "__del__":
        frame = frame.f_back
    return frame is not None


def enter(place: Place | None) -> None:
    """Set the world in which tasks run; None: there is none."""
    global _place
    _place = place


def here() -> Place | None:
    """Return the world of the calling code, or None outside of one."""
    place = _place
    if _dying is not None and get_ident() == _dying and _in_destructor():
        raise GreenletExit
    if place is None or place.world.running is None or getcurrent() is place.world.hub:
        return None
    if get_ident() != place.ident:
        return None
    return place


def either(real: Callable[..., Any], simulated: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that calls the second one in a simulated client, and otherwise the first
    one."""

    def chosen(*args: Any, **more: Any) -> Any:
        return real(*args, **more) if here() is None else simulated(*args, **more)

    return chosen


def load(module: str) -> None:
    """Import a library before a run, unless it is loaded.

    Otherwise the import would use steps and random numbers in the first run of a process only.
    """
    if module in sys.modules:
        return
    state = random.getstate()
    try:
        import_module(module)
    finally:
        random.setstate(state)
