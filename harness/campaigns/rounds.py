"""Rounds of runs on real servers: what a matrix and a sweep have in common.

Both have cells, each of which is a test. A round runs every cell once, with a seed of its own. It
goes through one kind of server after another, each on a cluster that stays up meanwhile, and
through a kind's cells in random order: what warms up, wears out or fills up in the course of an
hour shall not look like a property of a lock.

Where several lanes are asked for, so many cells run at a time, each lane on a cluster of its own.
Which cells there are, and their seeds, stay the same.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from random import Random
from typing import Any, Generic, Protocol, TypeVar

import msgspec

from fencepost.harness.campaigns.executors import Gone
from fencepost.harness.campaigns.tally import tally
from fencepost.harness.errors import BadArguments, Crashed
from fencepost.harness.judge.judge import Outcome
from fencepost.harness.remote.remote import RemoteError
from fencepost.harness.results import results
from fencepost.harness.servers.kinds import KINDS
from fencepost.harness.spec.spec import Spec
from fencepost.node.kind import Kind
from fencepost.strictjson import decode

UP_S = 12.0
"""What a cluster takes to come up, on two processors, of a kind that needs long."""

_SLOWER = 1.3
"""How much longer a run takes beside another one, on two processors."""


def around(kind: str) -> float:
    """Estimate what a run on this kind of server takes in addition to its clients' work (s)."""
    return KINDS[kind].around_s if kind in KINDS else Kind.around_s


def round_s(kinds: Sequence[str], time_s: float, lanes: int = 1) -> float:
    """How long a round takes, about, of cells on these kinds of servers, if the clients of each run
    work for so long and so many cells run at a time."""
    each_s = sum(time_s + around(kind) for kind in kinds)
    if lanes > 1:
        each_s *= _SLOWER / lanes
    return each_s + UP_S * len(set(kinds)) / lanes


class Cell(Protocol):
    """`spec` is None where the cell cannot be run."""

    @property
    def name(self) -> str: ...
    @property
    def kind(self) -> str: ...
    @property
    def spec(self) -> Spec | None: ...


C = TypeVar("C", bound=Cell)


class Rounds(Generic[C]):
    """Cells, each with the runs that it has had."""

    def __init__(self, cells: Sequence[C], seed: int, known: Mapping[str, Any]) -> None:
        self.cells = list(cells)
        self.seed = seed
        self.runs: dict[str, list[dict[str, Any]]] = {
            cell.name: list(known.get(cell.name, ())) for cell in self.cells
        }

    @property
    def testable(self) -> list[C]:
        return [cell for cell in self.cells if cell.spec is not None]

    @property
    def done(self) -> int:
        """How many rounds are over: so many runs each cell has at least."""
        return min((len(self.runs[cell.name]) for cell in self.testable), default=0)

    def left(self, number: int) -> Iterator[tuple[str, list[C]]]:
        """What is left of a round, from 1: the kinds of servers, each with its cells in the order
        in which they are run."""
        left = [cell for cell in self.testable if len(self.runs[cell.name]) < number]
        random = Random(f"{self.seed}/order/{number}")
        kinds = sorted({cell.kind for cell in self.testable})
        random.shuffle(kinds)
        for kind in kinds:
            # Of all its cells, so that those that are left have the same order as ever.
            order = [cell for cell in self.testable if cell.kind == kind]
            random.shuffle(order)
            if mine := [cell for cell in order if cell in left]:
                yield kind, mine


class Board(Protocol[C]):
    """Rounds of something that is written to a folder."""

    @property
    def rounds(self) -> Rounds[C]: ...

    def seeded(self, cell: C, number: int) -> Spec:
        """The test of a cell in a round."""

    def takes_s(self, cell: C) -> float:
        """What a run of it takes, about."""

    def add(self, cell: C, spec: Spec, number: int, outcome: Outcome | None, why: str) -> None:
        """Keep what came of a run, or why it did not come about, and write it."""


def row(folder: Path, spec: Spec, number: int, outcome: Outcome | None, why: str) -> dict[str, Any]:
    """What is kept of a run; its folder is named from `folder`."""
    found: dict[str, Any] = {"round": number, "seed": spec.seed}
    if outcome is None:
        return found | {"crashed": why}
    return found | {"run": os.path.relpath(outcome.folder, folder)} | tally(outcome)


def find(name: str, of: str, file: str) -> Path:
    """The folder of a stored matrix (`of`), by its path, or by TIME or `latest` in the results
    folder. `file` is what each has.

    Raises:
        BadArguments: there is none.
    """
    for path in (Path(name), results.root() / name, results.root() / of / name):
        for folder in (path, path / "latest", path.parent):
            is_one = (folder / file).is_file()
            if is_one and (folder != path.parent or path.name == file):
                return folder.resolve()
    raise BadArguments(
        f"{name!r} is no {of} (a folder with {file}); `fencepost {of}` makes one in "
        f"{results.root() / of}"
    )


class Run(msgspec.Struct):
    """What is needed of a stored run to go on: it came about (`run`, its folder) or `crashed`."""

    round: int
    seed: int
    run: str = ""
    crashed: str = ""


F = TypeVar("F")


@contextmanager
def stored(path: Path, schema: int, shape: type[F]) -> Iterator[tuple[dict[str, Any], F]]:
    """A file to go on with: as it is, and what is typed of it. What is then found wrong with it
    within the context is an error of this file.

    Raises:
        BadArguments: it cannot be read or used.
    """
    try:
        rows = decode(path.read_bytes())
        file = msgspec.convert(rows, shape)
        if rows["schema"] != schema:
            raise ValueError(f"its version is {rows['schema']}, and this fencepost knows {schema}")
        yield rows, file
    except OSError as error:
        raise BadArguments(f"{path} cannot be read: {error.strerror}") from error
    except (ValueError, KeyError, TypeError) as error:
        raise BadArguments(f"{path} cannot be gone on with: {error}") from error


K = TypeVar("K")
"""Where runs are carried out: a cluster, say."""
BringUp = Callable[[Sequence[Spec]], AbstractContextManager[K]]
CarryOut = Callable[[C, Spec, K], Outcome]
Say = Callable[[C, int, dict[str, Any]], None]


def carry_out(
    board: Board[C], rounds: int | None, budget_s: float | None, up: BringUp[K],
    run: CarryOut[C, K], say: Say[C], lanes: int = 1,
) -> bool:  # fmt: skip
    """Run what is missing, so many rounds or as many as the budget permits; returns whether all of
    the last round was run. `up` brings a cluster up for tests, `run` carries a cell's out on it.

    A run that does not come about is kept as such, and the next one has a new cluster.
    """
    end = None if budget_s is None else time.monotonic() + budget_s
    number = board.rounds.done + 1
    while rounds is None or number <= rounds:
        if not _Round(board, number, end, up, run, say).carry_out(lanes):
            return False
        number += 1
    return True


class _Round(Generic[C, K]):
    """What is left of one round.

    A lane takes a kind of server that no other lane has, so that as few clusters as can be come up.
    Once there is none, it joins another lane's kind with a cluster of its own, where enough is left
    to be worth that.
    """

    def __init__(
        self, board: Board[C], number: int, end: float | None, up: BringUp[K], run: CarryOut[C, K],
        say: Say[C],
    ) -> None:  # fmt: skip
        self._board, self._number, self._end = board, number, end
        self._up, self._run, self._say = up, run, say
        self._todo = dict(board.rounds.left(number))
        self._fresh = list(self._todo)
        self._lock = threading.Lock()
        self._whole, self._stopped = True, False

    def carry_out(self, lanes: int) -> bool:
        """Run it; whether there was time for all."""
        if lanes == 1:
            self._lane()
            return self._whole
        with ThreadPoolExecutor(lanes) as pool:
            tasks = [pool.submit(self._lane) for _ in range(lanes)]
            try:
                for task in as_completed(tasks):
                    task.result()
            finally:
                # Interrupted, or one lane has failed: the others end with what they are running.
                self._stopped = True
        return self._whole

    def _lane(self) -> None:
        while (kind := self._next_kind()) is not None:
            self._cells_of(kind)

    def _next_kind(self) -> str | None:
        with self._lock:
            if self._stopped or not self._whole:
                return None
            if self._fresh:
                return self._fresh.pop(0)
            left_s = {
                kind: sum(map(self._board.takes_s, todo)) for kind, todo in self._todo.items()
            }
            most = max(left_s, key=lambda kind: left_s[kind], default="")
            return most if left_s.get(most, 0.0) > 2 * UP_S else None

    def _cells_of(self, kind: str) -> None:
        """Run cells of one kind until none is left."""
        cells = self._board.rounds.testable
        specs = [cell.spec for cell in cells if cell.kind == kind and cell.spec]
        with ExitStack() as stack:
            cluster: K | None = None
            while (cell := self._next(kind, cluster is not None)) is not None:
                spec = self._board.seeded(cell, self._number)
                if cluster is None:
                    cluster = stack.enter_context(self._up(specs))
                outcome, why = None, ""
                try:
                    outcome = self._run(cell, spec, cluster)
                except Gone:
                    raise
                except (Crashed, RemoteError) as error:
                    why = str(error)
                with self._lock:
                    self._board.add(cell, spec, self._number, outcome, why)
                    self._say(cell, self._number, self._board.rounds.runs[cell.name][-1])
                if outcome is None or outcome.results["run_notes"]:
                    # Something of it may be left.
                    stack.close()
                    cluster = None

    def _next(self, kind: str, is_up: bool) -> C | None:
        """The next cell of a kind, if there is one, and time for it."""
        with self._lock:
            todo = self._todo[kind]
            if not todo or self._stopped or not self._whole:
                return None
            over_s = time.monotonic() + self._board.takes_s(todo[0])
            if self._end is not None and over_s + (0.0 if is_up else UP_S) > self._end:
                self._whole = False
                return None
            return todo.pop(0)
