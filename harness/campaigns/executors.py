"""Executors on this machine: clusters for tests, processes for simulations. dask_executor.py has
those on other machines.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from pathlib import Path
from typing import Any, Protocol

from fencepost import processors
from fencepost.harness.campaigns.item import UP_S, Hushed, Item, Watcher
from fencepost.harness.cluster.cluster import Cluster
from fencepost.harness.errors import BadArguments, Crashed, choose
from fencepost.harness.remote.remote import RemoteError
from fencepost.harness.spec.needs import cluster_for
from fencepost.harness.spec.spec import Spec
from fencepost.hunt.search.pool import pool

Execute = Callable[[Item], Any]
"""Runs an item, and returns the result of its function."""

ENGINES = ("local", "dask")
_LOOKS_EVERY_S = 0.5


class Gone(Crashed):
    """The executor has ended or was lost: no further item can run."""


class Executor(Protocol):
    """Runs items, as many at a time as it has lanes."""

    @property
    def lanes(self) -> int: ...

    @property
    def up_s(self) -> float:
        """The time that one more lane costs before its first item (s): its cluster's start."""

    def place(self, items: Sequence[Item]) -> AbstractContextManager[Execute]:
        """Provide a place for items like these within the block: a cluster with the nodes of all of
        them, if they need nodes."""

    def stop(self) -> None:
        """Abandon running items, if they can be abandoned."""

    def close(self) -> None: ...


class Place:
    """The place where a lane runs one item after another: after a crash it is a new one."""

    def __init__(self, executor: Executor, items: Sequence[Item]) -> None:
        self._executor, self._items = executor, items
        self._stack = ExitStack()
        self._execute: Execute | None = None

    @property
    def is_up(self) -> bool:
        return self._execute is not None

    def come_up(self) -> None:
        """Provide the place, unless it is up. Raise Crashed if its cluster does not start."""
        if self._execute is None:
            self._execute = self._stack.enter_context(self._executor.place(self._items))

    def run(self, item: Item) -> tuple[Any, str]:
        """Run an item; return its result and "", or None and the reason if it crashed.

        Raises:
            Gone: no further item can run.
        """
        assert self._execute is not None
        try:
            return self._execute(item), ""
        except Gone:
            raise
        except (Crashed, RemoteError) as error:
            self.leave()
            return None, str(error)

    def leave(self) -> None:
        """Let the next item run in a new place: this one may not be clean."""
        self._stack.close()
        self._execute = None

    def __enter__(self) -> Place:
        return self

    def __exit__(self, *_: object) -> None:
        self.leave()


def scheduler_of(name: str, scheduler: str | None) -> str:
    """Return the address of the scheduler of this engine, or "" for the local engine.

    Raises:
        BadArguments: there is no such engine, or it lacks a scheduler, or cannot have one.
    """
    if choose("engine", name, ENGINES) == "local":
        if scheduler is not None:
            raise BadArguments("--scheduler is for --engine dask")
        return ""
    if not scheduler:
        raise BadArguments("--engine dask needs --scheduler ADDRESS (tcp://HOST:8786)")
    return scheduler


class Clusters:
    """Runs items on this machine, or on the hosts of a file; each lane has its own cluster."""

    up_s = UP_S

    def __init__(
        self,
        watcher: Watcher,
        lanes: int = 1,
        leave_up: bool = False,
        remote: str = "docker",
        hosts: Path | None = None,
    ) -> None:
        self.lanes = lanes
        self._say = watcher.say
        self._watcher = watcher if lanes == 1 else Hushed()
        self._how = (leave_up, remote, hosts)

    @contextmanager
    def place(self, items: Sequence[Item]) -> Iterator[Execute]:
        specs = [spec for item in items for spec in item.specs]
        with self._up(specs) as cluster:
            yield lambda item: item.does(item, cluster, self._watcher)

    def _up(self, specs: Sequence[Spec]) -> AbstractContextManager[Cluster | None]:
        return cluster_for(specs, self._say, *self._how) if specs else nullcontext()

    def stop(self) -> None:
        """Let each run complete: its faults have to be healed."""
        self._say("Stopping: the present runs end first, so that their faults are healed")

    def close(self) -> None:
        pass


class Processes:
    """Runs items that need no cluster, each in its own process: `lanes` at a time (default: one per
    core), and no more than there are items."""

    up_s = 0.0

    def __init__(self, lanes: int | None, items: int) -> None:
        self.lanes = max(min(lanes or processors.count(), items), 1)
        self._pool = pool(self.lanes, _begin) if self.lanes > 1 else None
        self._over = False

    @contextmanager
    def place(self, items: Sequence[Item]) -> Iterator[Execute]:
        yield self._execute if self._pool else alone

    def _execute(self, item: Item) -> Any:
        assert self._pool is not None
        result = self._pool.apply_async(alone, (item,))
        while not self._over:
            result.wait(_LOOKS_EVERY_S)
            if result.ready():
                return result.get()
        raise Gone("the processes of this campaign have been ended")

    def stop(self) -> None:
        self._over = True

    def close(self) -> None:
        self._over = True
        if self._pool is not None:
            self._pool.terminate()
            self._pool.join()


def alone(item: Item) -> Any:
    """Run an item that needs no cluster, in this process."""
    return item.does(item, None, Hushed())


def _begin() -> None:
    """Prepare nothing: an item needs no set-up."""
