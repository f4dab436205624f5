"""Items of a campaign: one piece of work each, with or without a cluster.

A planner (matrix.py, sweep.py, suite.py, track_record.py, hunts.py, costs.py) makes them, the
engine (engine.py) schedules them, and an executor (executors.py, dask_executor.py) runs them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from random import Random
from typing import Any, Protocol, TypeVar

from fencepost.harness.cluster.cluster import Cluster
from fencepost.harness.execute.progress import Progress
from fencepost.harness.execute.run import run
from fencepost.harness.judge.judge import Outcome
from fencepost.harness.servers.kinds import KINDS
from fencepost.harness.spec.spec import Spec
from fencepost.nemesis.schedule import Scheduled
from fencepost.node.kind import Kind
from fencepost.workloads.scenarios.scenario import Scenario

UP_S = 12.0
"""The time that a cluster of a slow kind takes to start, on two processors (s)."""
_SLOWER = 1.3
"""The slowdown of a run next to another one, on two processors."""


class Watcher(Protocol):
    """Shows the progress of items; the module `screen` is one."""

    def say(self, text: str) -> None: ...
    def progress(
        self, title: str, time_s: float | None = None
    ) -> AbstractContextManager[Progress]: ...


class Hushed:
    """Shows nothing: a terminal has room for one view, and a worker has no terminal. A run's
    harness.log has its messages."""

    def say(self, text: str) -> None:
        pass

    @contextmanager
    def progress(self, title: str, time_s: float | None = None) -> Iterator[Progress]:
        yield lambda status: None


def _settled(found: Any) -> bool:
    return True


@dataclass(frozen=True)
class Item:
    """The `number`th run of a row, from 1.

    `does` runs it on the cluster with the nodes of `specs`, or on None if it has no specs. A worker
    on another machine may call it, so it is a function of a module, and its arguments and result
    can be pickled. If it leaves files (`leaves`), its result has a `folder`. `asked`: further
    arguments.

    `kind`: items of one kind share a cluster. `tries`: the most attempts, until `settled` accepts a
    result. `takes_s`: an estimate of its duration.
    """

    row: str
    does: Does
    number: int = 1
    seed: int = 0
    kind: str = ""
    specs: tuple[Spec, ...] = ()
    scenario: Scenario | None = None
    schedule: list[Scheduled] | None = None
    asked: Any = None
    title: str = ""
    takes_s: float = 0.0
    tries: int = 1
    settled: Callable[[Any], bool] = _settled
    leaves: bool = True

    @property
    def key(self) -> tuple[str, int]:
        return self.row, self.number

    @property
    def spec(self) -> Spec:
        return self.specs[0]


Does = Callable[[Item, Cluster | None, Watcher], Any]


class Plan(Protocol):
    """The rows and items of a campaign. `kind`: one of report/older_files.FILES."""

    @property
    def kind(self) -> str: ...

    @property
    def seed(self) -> int: ...

    def to_json(self) -> dict[str, Any]:
        """Return everything that is needed to make the plan again."""

    def rows(self) -> list[dict[str, Any]]:
        """Return the rows, each with a `key`; a row that cannot run has a `reason`."""

    def items(self, number: int) -> Sequence[Item]:
        """Return the items of a round, from 1, in the order in which they run; none after the last
        round."""

    def line(self, item: Item, found: Any) -> Mapping[str, Any]:
        """Return the fields of a line for the result of an item."""


def test(item: Item, cluster: Cluster | None, watcher: Watcher) -> Outcome:
    """Run a test on the cluster, and judge it."""
    assert cluster is not None
    title = item.title or item.spec.name
    with watcher.progress(title, item.spec.time_s or None) as progress:
        return run(item.spec, cluster, progress, item.scenario, item.schedule)


def around(kind: str) -> float:
    """Estimate the time of a run on this kind of server beyond its clients' work (s)."""
    return KINDS[kind].around_s if kind in KINDS else Kind.around_s


def round_s(kinds: Sequence[str], time_s: float, lanes: int = 1) -> float:
    """Estimate the time of a round with an item on each of these kinds of servers, if the clients
    of a run work for `time_s` and `lanes` items run at a time."""
    each_s = sum(time_s + around(kind) for kind in kinds)
    if lanes > 1:
        each_s *= _SLOWER / lanes
    return each_s + UP_S * len(set(kinds)) / lanes


class Cell(Protocol):
    """A cell of a table; `spec` is None if it cannot run."""

    @property
    def name(self) -> str: ...
    @property
    def kind(self) -> str: ...
    @property
    def spec(self) -> Spec | None: ...


C = TypeVar("C", bound=Cell)


def in_random_order(cells: Sequence[C], seed: int, number: int) -> list[tuple[C, Spec]]:
    """Return the cells of a round that can run, one kind of server after another. The seed and the
    number of the round determine the order of kinds, and of cells within a kind."""
    random = Random(f"{seed}/order/{number}")
    found = [(cell, cell.spec) for cell in cells if cell.spec is not None]
    kinds = sorted({cell.kind for cell, _ in found})
    random.shuffle(kinds)
    ordered = []
    for kind in kinds:
        order = [one for one in found if one[0].kind == kind]
        random.shuffle(order)
        ordered += order
    return ordered
