"""The matrix: each lock under each fault with each guard, on real servers, and what came of it.

The cells that can be tested (matrix_plan.py) are run in rounds, each run with a seed of its own,
which follows from the matrix' seed. A round goes through one kind of server after another, each on
a cluster that stays up meanwhile, and through a kind's cells in random order: what warms up, wears
out or fills up in the course of an hour shall not look like a property of a lock.

matrix.json is written after each run, so that a matrix that ends early leaves what it found, and
goes on with what is missing.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import msgspec

from fencepost.harness.cluster.cluster import Cluster
from fencepost.harness.errors import BadArguments, Crashed
from fencepost.harness.remote.remote import RemoteError
from fencepost.harness.run import results
from fencepost.harness.run.judge import Outcome
from fencepost.harness.run.matrix_plan import UP_S, Cell, Plan, around, cells, plan, seeded
from fencepost.harness.run.spec import Spec
from fencepost.harness.run.tally import tally
from fencepost.report import matrix as report
from fencepost.strictjson import decode

SCHEMA = 1
FILE = "matrix.json"


class Matrix:
    """The cells of a plan with their runs, as matrix.json in `folder` has them."""

    def __init__(self, folder: Path, asked: Plan, runs: Mapping[str, Any] | None = None) -> None:
        self.folder = folder
        self.plan = asked
        self.cells = cells(asked)
        known = runs or {}
        self.runs: dict[str, list[dict[str, Any]]] = {
            cell.name: list(known.get(cell.name, ())) for cell in self.cells
        }
        self.versions: dict[str, dict[str, str]] = dict(known.get("", {}))

    @property
    def testable(self) -> list[Cell]:
        return [cell for cell in self.cells if cell.spec is not None]

    @property
    def rounds(self) -> int:
        """How many rounds are over: so many runs each cell has at least."""
        return min((len(self.runs[cell.name]) for cell in self.testable), default=0)

    def round(self, number: int) -> Iterator[tuple[str, list[Cell]]]:
        """What is left of a round, from 1: the kinds of servers, each with its cells in the order
        in which they are run."""
        left = [cell for cell in self.testable if len(self.runs[cell.name]) < number]
        random = Random(f"{self.plan.seed}/order/{number}")
        kinds = sorted({cell.kind for cell in self.testable})
        random.shuffle(kinds)
        for kind in kinds:
            # Of all its cells, so that those that are left have the same order as ever.
            order = [cell for cell in self.testable if cell.kind == kind]
            random.shuffle(order)
            if mine := [cell for cell in order if cell in left]:
                yield kind, mine

    def add(self, cell: Cell, spec: Spec, number: int, outcome: Outcome | None, why: str) -> None:
        """Keep what came of a run, or why it did not come about, and write matrix.json."""
        row: dict[str, Any] = {"round": number, "seed": spec.seed}
        if outcome is None:
            row["crashed"] = why
        else:
            row["run"] = os.path.relpath(outcome.folder, self.folder)
            row |= tally(outcome)
            self.versions[cell.lock] = results.read_test(outcome.folder).get("versions") or {}
        self.runs[cell.name].append(row)
        self.write()

    def to_json(self) -> dict[str, Any]:
        rows = [
            {
                "lock": cell.lock,
                "fault": cell.fault,
                "guard": cell.guard,
                "nemesis": list(cell.spec.nemesis) if cell.spec else [],
                "ttl_ms": cell.spec.ttl_ms if cell.spec else None,
                "options": dict(cell.spec.options) if cell.spec else {},
                "reason": cell.reason,
                "runs": self.runs[cell.name],
            }
            for cell in self.cells
        ]
        described = {"schema": SCHEMA, "plan": self.plan.to_json(), "versions": self.versions}
        return described | {"cells": report.with_sums(rows)}

    def write(self) -> None:
        results.write(self.folder / FILE, self.to_json())

    def render(self) -> Path:
        """Write the page and the table beside matrix.json; returns the page's path."""
        self.write()
        return report.render(self.folder)


def create(asked: Plan) -> Matrix:
    """A matrix of which nothing was run yet, in a folder of its own."""
    made = Matrix(results.create("matrix"), asked)
    made.write()
    return made


class _Run(msgspec.Struct):
    round: int
    seed: int
    run: str = ""
    crashed: str = ""


class _Cell(msgspec.Struct):
    lock: str
    fault: str
    guard: str
    runs: list[_Run]


class _File(msgspec.Struct):
    schema: int
    plan: Plan
    cells: list[_Cell]
    versions: dict[str, dict[str, str]] = {}


def find(name: str) -> Path:
    """The folder of a matrix, by its path, or by TIME or `latest` in the results folder.

    Raises:
        BadArguments: there is none.
    """
    for path in (Path(name), results.root() / name, results.root() / "matrix" / name):
        for folder in (path, path / "latest", path.parent):
            is_one = (folder / FILE).is_file()
            if is_one and (folder != path.parent or path.name == FILE):
                return folder.resolve()
    raise BadArguments(
        f"{name!r} is no matrix (a folder with {FILE}); `fencepost matrix` makes one in "
        f"{results.root() / 'matrix'}"
    )


def resumed(name: str) -> Matrix:
    """A matrix as it was left.

    Raises:
        BadArguments: there is none, or its matrix.json cannot be used.
    """
    folder = find(name)
    path = folder / FILE
    try:
        rows = decode(path.read_bytes())
        file = msgspec.convert(rows, _File)
        if file.schema != SCHEMA:
            raise ValueError(f"its version is {file.schema}, and this fencepost knows {SCHEMA}")
        asked = plan(
            file.plan.locks, file.plan.faults, file.plan.guards, file.plan.seed, file.plan.time_s
        )
        asked = replace(asked, ttl_ms=file.plan.ttl_ms, clients=file.plan.clients)
        runs = {f"{c['lock']}/{c['fault']}/{c['guard']}": c["runs"] for c in rows["cells"]}
        found = Matrix(folder, asked, runs | {"": file.versions})
        found.to_json()
    except OSError as error:
        raise BadArguments(f"{path} cannot be read: {error.strerror}") from error
    except (ValueError, KeyError, TypeError) as error:
        raise BadArguments(f"{path} cannot be gone on with: {error}") from error
    return found


BringUp = Callable[[Sequence[Spec]], AbstractContextManager[Cluster]]
CarryOut = Callable[[Spec, Cluster], Outcome]
Say = Callable[[Cell, int, dict[str, Any]], None]


def carry_out(
    matrix: Matrix, rounds: int | None, budget_s: float | None, up: BringUp, run: CarryOut, say: Say
) -> bool:
    """Run what is missing, so many rounds or as many as the budget permits; returns whether all of
    the last round was run. `up` brings a cluster up for tests, `run` carries one out on it.

    A run that does not come about is kept as such, and the next one has a new cluster.
    """
    end = None if budget_s is None else time.monotonic() + budget_s
    number = matrix.rounds + 1
    while rounds is None or number <= rounds:
        for kind, todo in matrix.round(number):
            if not _kind(matrix, number, kind, todo, end, up, run, say):
                return False
        number += 1
    return True


def _kind(
    matrix: Matrix, number: int, kind: str, todo: Sequence[Cell], end: float | None,
    up: BringUp, run: CarryOut, say: Say,
) -> bool:  # fmt: skip
    """The cells of one kind of server in one round; whether there was time for all of them."""
    specs = [cell.spec for cell in matrix.testable if cell.kind == kind and cell.spec]
    takes_s = matrix.plan.time_s + around(kind)
    with ExitStack() as stack:
        cluster: Cluster | None = None
        for cell in todo:
            over_s = time.monotonic() + takes_s + (0.0 if cluster else UP_S)
            if end is not None and over_s > end:
                return False
            spec = seeded(cell, matrix.plan.seed, number)
            cluster = cluster or stack.enter_context(up(specs))
            outcome, why = None, ""
            try:
                outcome = run(spec, cluster)
            except (Crashed, RemoteError) as error:
                why = str(error)
            matrix.add(cell, spec, number, outcome, why)
            say(cell, number, matrix.runs[cell.name][-1])
            if outcome is None or outcome.results["run_notes"]:
                # Something of it may be left.
                stack.close()
                cluster = None
    return True
