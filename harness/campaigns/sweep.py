"""A sweep: one lock over a grid of a setting and a fault, on real servers, and where safety ends.

Its cells (sweep_plan.py) are run in rounds, as those of a matrix are (rounds.py). sweep.json is
written after each run, so that a sweep that ends early leaves what it found, and goes on with what
is missing.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from fencepost.harness.campaigns import rounds, sweep_plan
from fencepost.harness.campaigns.rounds import Rounds, Run, stored
from fencepost.harness.campaigns.sweep_plan import FAULTS, Cell, Plan, Side, cells, seeded
from fencepost.harness.judge.judge import Outcome
from fencepost.harness.results import results
from fencepost.harness.spec.spec import Spec
from fencepost.report.pages import sweep as report
from fencepost.report.pages.sweep import FILE
from fencepost.workloads.locks.registry import LOCKS

SCHEMA = 1


class Sweep:
    """The cells of a plan with their runs, as sweep.json in `folder` has them."""

    def __init__(self, folder: Path, asked: Plan, runs: Mapping[str, Any] | None = None) -> None:
        self.folder = folder
        self.plan = asked
        self.rounds = Rounds(cells(asked), asked.seed, runs or {})
        self.versions: dict[str, str] = dict((runs or {}).get("", {}))

    def seeded(self, cell: Cell, number: int) -> Spec:
        return seeded(self.plan, cell, number)

    def takes_s(self, cell: Cell) -> float:
        return sweep_plan.takes_s(cell)

    def add(self, cell: Cell, spec: Spec, number: int, outcome: Outcome | None, why: str) -> None:
        """Keep what came of a run, or why it did not come about, and write sweep.json."""
        self.rounds.runs[cell.name].append(rounds.row(self.folder, spec, number, outcome, why))
        if outcome is not None:
            self.versions = results.read_test(outcome.folder).get("versions") or {}
        self.write()

    def to_json(self) -> dict[str, Any]:
        plan = self.plan
        rows = [
            {
                "x": cell.x,
                "y": cell.y,
                "x_shown": plan.x.shown(cell.x),
                "y_shown": plan.y.shown(cell.y),
                "nemesis": list(cell.spec.nemesis) if cell.spec else [],
                "reason": cell.reason,
                "runs": self.rounds.runs[cell.name],
            }
            for cell in self.rounds.cells
        ]
        described = plan.to_json() | {
            "x": _side(plan.x),
            "y": _side(plan.y),
            "faults": FAULTS,
            "command": command(plan),
        }
        found = {"schema": SCHEMA, "plan": described, "versions": self.versions}
        return found | {"cells": report.with_sums(rows)}

    def write(self) -> None:
        results.write(self.folder / FILE, self.to_json())

    def render(self) -> Path:
        """Write the page and the table beside sweep.json; returns the page's path."""
        self.write()
        return report.render(self.folder)


def _side(side: Side) -> dict[str, Any]:
    return {
        "axis": side.axis,
        "values": list(side.values),
        "title": side.of.title,
        "what": side.of.what,
        "shown": [side.shown(value) for value in side.values],
        "fault": side.of.strikes is not None,
    }


def command(plan: Plan) -> str:
    """The command line that makes it again."""
    words = ["fencepost", "sweep", plan.lock]
    usual = LOCKS[plan.lock].read_options({})
    for name, value in plan.options.items():
        if usual.get(name) != value:
            words += ["-o", f"{name}={value}"]
    for option, side in (("--x", plan.x), ("--y", plan.y)):
        form = side.of.form
        ends = "..".join(f"{value:g}{form.unit}" for value in (side.values[0], side.values[-1]))
        words += [option, f"{side.axis}={ends}"]
    words += ["--steps", plan.steps]
    words += ["--guard", plan.guard] if plan.guard != "none" else []
    words += [word for pair in plan.server.items() for word in ("--server", "=".join(pair))]
    return shlex.join([*words, "--seed", str(plan.seed)])


def create(asked: Plan) -> Sweep:
    """A sweep of which nothing was run yet, in a folder of its own."""
    made = Sweep(results.create("sweep"), asked)
    made.write()
    return made


class _Cell(msgspec.Struct):
    x: float
    y: float
    runs: list[Run]


class _File(msgspec.Struct):
    schema: int
    plan: Plan
    cells: list[_Cell]
    versions: dict[str, str] = {}


def find(name: str) -> Path:
    """The folder of a sweep, by its path, or by TIME or `latest` in the results folder.

    Raises:
        BadArguments: there is none.
    """
    return rounds.find(name, "sweep", FILE)


def resumed(name: str) -> Sweep:
    """A sweep as it was left.

    Raises:
        BadArguments: there is none, or its sweep.json cannot be used.
    """
    folder = find(name)
    with stored(folder / FILE, SCHEMA, _File) as (rows, file):
        asked = sweep_plan.again(file.plan)
        names = {(cell.x, cell.y): cell.name for cell in cells(asked)}
        runs = {names[float(c["x"]), float(c["y"])]: c["runs"] for c in rows["cells"]}
        found = Sweep(folder, asked, runs | {"": file.versions})
        found.to_json()
    return found
