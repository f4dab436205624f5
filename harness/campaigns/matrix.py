"""The matrix: each lock under each fault with each guard, on real servers, and what came of it.

The cells that can be tested (matrix_plan.py) are run in rounds (rounds.py), each run with a seed of
its own, which follows from the matrix' seed. matrix.json is written after each run, so that a
matrix that ends early leaves what it found, and goes on with what is missing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec

from fencepost.harness.campaigns import rounds
from fencepost.harness.campaigns.matrix_plan import Cell, Plan, cells, plan, seeded
from fencepost.harness.campaigns.rounds import Rounds, Run, around, stored
from fencepost.harness.judge.judge import Outcome
from fencepost.harness.results import results
from fencepost.harness.spec.spec import Spec
from fencepost.report.pages import matrix as report

SCHEMA = 1
FILE = "matrix.json"


class Matrix:
    """The cells of a plan with their runs, as matrix.json in `folder` has them."""

    def __init__(self, folder: Path, asked: Plan, runs: Mapping[str, Any] | None = None) -> None:
        self.folder = folder
        self.plan = asked
        self.rounds = Rounds(cells(asked), asked.seed, runs or {})
        self.versions: dict[str, dict[str, str]] = dict((runs or {}).get("", {}))

    def seeded(self, cell: Cell, number: int) -> Spec:
        return seeded(cell, self.plan.seed, number)

    def takes_s(self, cell: Cell) -> float:
        return self.plan.time_s + around(cell.kind)

    def add(self, cell: Cell, spec: Spec, number: int, outcome: Outcome | None, why: str) -> None:
        """Keep what came of a run, or why it did not come about, and write matrix.json."""
        self.rounds.runs[cell.name].append(rounds.row(self.folder, spec, number, outcome, why))
        if outcome is not None:
            self.versions[cell.lock] = results.read_test(outcome.folder).get("versions") or {}
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
                "runs": self.rounds.runs[cell.name],
            }
            for cell in self.rounds.cells
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


class _Cell(msgspec.Struct):
    lock: str
    fault: str
    guard: str
    runs: list[Run]


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
    return rounds.find(name, "matrix", FILE)


def resumed(name: str) -> Matrix:
    """A matrix as it was left.

    Raises:
        BadArguments: there is none, or its matrix.json cannot be used.
    """
    folder = find(name)
    with stored(folder / FILE, SCHEMA, _File) as (rows, file):
        asked = plan(
            file.plan.locks, file.plan.faults, file.plan.guards, file.plan.seed, file.plan.time_s,
            aim=file.plan.aim,
        )  # fmt: skip
        asked = replace(
            asked,
            ttl_ms=file.plan.ttl_ms,
            clients=file.plan.clients,
            hold=file.plan.hold,
            think=file.plan.think,
        )
        runs = {f"{c['lock']}/{c['fault']}/{c['guard']}": c["runs"] for c in rows["cells"]}
        found = Matrix(folder, asked, runs | {"": file.versions})
        found.to_json()
    return found
