"""Gives each simulated thread a running event loop of its own.

asyncio keeps it by the thread of the operating system, and all simulated threads share one.
"""

from __future__ import annotations

import asyncio
from asyncio import events, futures, tasks
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Any

from fencepost.hunt.intercept import numbers
from fencepost.hunt.intercept.context import here
from fencepost.hunt.sim.clock import MONOTONIC_NS
from fencepost.hunt.sim.world import World

_RUNNING, _SET = events._get_running_loop, events._set_running_loop
_CURRENT, _ALL = tasks.current_task, tasks.all_tasks
_GET, _PUT, _NEW = events.get_event_loop, events.set_event_loop, events.new_event_loop
_TIME = asyncio.BaseEventLoop.time


def _running() -> Any:
    place = here()
    return _RUNNING() if place is None else place.running_loops.get(place.task)


def _set_running(loop: Any) -> None:
    place = here()
    if place is None:
        _SET(loop)
        return
    place.running_loops[place.task] = loop
    if loop is not None and loop not in place.loops:
        place.loops.append(loop)


def _must_run() -> Any:
    loop = _running()
    if loop is None:
        raise RuntimeError("no running event loop")
    return loop


def _event_loop(stacklevel: int = 0) -> Any:
    place = here()
    if place is None:
        return _GET()
    loop = _running() or place.own_loops.get(place.task)
    if loop is None:
        loop = place.own_loops[place.task] = _new_event_loop()
    return loop


def _new_event_loop() -> Any:
    """Return a loop of Python's own: that of another policy (uvloop's) connects outside of it."""
    place = here()
    return _NEW() if place is None else _Loop(place.world)


def _set_event_loop(loop: Any) -> None:
    place = here()
    if place is None:
        _PUT(loop)
    else:
        place.own_loops[place.task] = loop


def _current_task(loop: Any = None) -> Any:
    return _CURRENT(_must_run() if loop is None else loop)


def _all_tasks(loop: Any = None) -> Any:
    return _ALL(_must_run() if loop is None else loop)


def _time(loop: Any) -> float:
    """Return the time of a loop without a step: a loop reads it twice for each of its rounds."""
    place = here()
    return float(_TIME(loop)) if place is None else (MONOTONIC_NS + place.world.now) / 1e9


class _Loop(asyncio.SelectorEventLoop):
    """Python's own loop with its world at hand: each round reads the time twice."""

    def __init__(self, world: World) -> None:
        self._world = world
        super().__init__()

    def time(self) -> float:
        return (MONOTONIC_NS + self._world.now) / 1e9


def end(loops: Iterable[Any]) -> None:
    """End the tasks that are left of event loops whose run has ended. Otherwise they are destroyed
    later, in the middle of another run, and report that they were pending."""
    for loop in loops:
        for task in _ALL(loop):
            task._log_destroy_pending = False  # type: ignore[attr-defined]
            with suppress(BaseException):  # whatever the code under test does at its end
                task.get_coro().close()


class _Task(numbers.Numbered, asyncio.Task):  # type: ignore[type-arg]
    """A task whose place in a set does not depend on its address in memory, and whose name does
    not depend on the tasks of other clients."""

    __slots__ = ("numbered",)

    def __init__(self, coro: Any, *, name: Any = None, **more: Any) -> None:
        if name is None and (place := here()) is not None:
            name = place.name("Task-%d")
        super().__init__(coro, name=name, **more)


_FUTURE = asyncio.Future


class _AnyFuture(type):
    """Each future and task is an instance of the replacement, which a library that is imported
    later takes for asyncio's own class (tornado does)."""

    def __instancecheck__(cls, one: object) -> bool:
        return isinstance(one, _FUTURE)


class _Future(numbers.Numbered, asyncio.Future, metaclass=_AnyFuture):  # type: ignore[type-arg]
    """The same of a future."""

    __slots__ = ("numbered",)


def places() -> Iterator[tuple[Any, str, Any]]:
    """Yield each owner, the name to replace in it, and the replacement (patches.py)."""
    replaced: dict[Any, dict[str, Any]] = {
        events: {
            "_get_running_loop": _running, "_set_running_loop": _set_running,
            "get_running_loop": _must_run, "get_event_loop": _event_loop,
            "_get_event_loop": _event_loop, "set_event_loop": _set_event_loop,
            "new_event_loop": _new_event_loop,
        },
        tasks: {"current_task": _current_task, "all_tasks": _all_tasks, "Task": _Task},
        futures: {"Future": _Future},
        asyncio.BaseEventLoop: {"time": _time},
    }  # fmt: skip
    for owner, names in replaced.items():
        for name, stand_in in names.items():
            if not hasattr(owner, name):
                continue  # of another version of Python
            yield owner, name, stand_in
            if hasattr(asyncio, name):
                yield asyncio, name, stand_in
