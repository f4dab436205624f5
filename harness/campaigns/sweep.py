"""The sweep: one lock, with a setting along one side and a fault along the other."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from random import Random
from typing import Any, ClassVar

import msgspec

from fencepost import commandline
from fencepost.harness.campaigns.axes import AXES, Axis
from fencepost.harness.campaigns.item import Item, around, in_random_order, test
from fencepost.harness.campaigns.tally import tally
from fencepost.harness.errors import BadArguments, choose
from fencepost.harness.judge.judge import Outcome
from fencepost.harness.spec.make import lock_options, make
from fencepost.harness.spec.spec import Spec, layout_of
from fencepost.harness.spec.validation import validate
from fencepost.nemesis import schedule as schedules
from fencepost.nemesis.schedule import Scheduled
from fencepost.workloads.locks.registry import LOCKS

STEPS = "6x6"
FAULTS = 4
"""So many faults come in a run, one after the other."""
_MOST_STEPS = 12
# Before the first fault clients get going, and between two of them there are some holds.
_BEFORE_S, _BETWEEN_S = 1.0, 1.0
# What a fault takes beside its time: until its client has come to its place, its receipts.
_BESIDE_S = 0.75
_CLIENTS = 5


@dataclass(frozen=True)
class Side:
    """An axis with its values, in the axis' own unit, rising."""

    axis: str
    values: tuple[float, ...]

    @property
    def of(self) -> Axis:
        return AXES[self.axis]

    def shown(self, value: float) -> str:
        return self.of.form.describe(value)


@dataclass(frozen=True)
class Plan:
    """What a sweep is to run: one of `x` and `y` is a setting, the other one is of a fault. `steps`
    is what was asked for, of which values that fell on one another may have left fewer."""

    lock: str
    options: Mapping[str, Any]
    guard: str
    x: Side
    y: Side
    steps: str
    seed: int
    server: Mapping[str, str]

    kind: ClassVar[str] = "sweep"

    @cached_property
    def cells(self) -> list[Cell]:
        return cells(self)

    def to_json(self) -> dict[str, Any]:
        sides = {"x": _side_json(self.x), "y": _side_json(self.y)}
        return {**asdict(self), **sides, "faults": FAULTS, "command": command(self)}

    def rows(self) -> list[dict[str, Any]]:
        return [
            {
                "key": cell.name,
                "x": cell.x,
                "y": cell.y,
                "x_shown": self.x.shown(cell.x),
                "y_shown": self.y.shown(cell.y),
                "nemesis": list(cell.spec.nemesis) if cell.spec else [],
                "reason": cell.reason,
            }
            for cell in self.cells
        ]

    def items(self, number: int) -> list[Item]:
        ordered = in_random_order(self.cells, self.seed, number)
        return [self._item(cell, seeded(self, cell, number), number) for cell, _ in ordered]

    def _item(self, cell: Cell, spec: Spec, number: int) -> Item:
        sides = ((self.x, cell.x), (self.y, cell.y))
        return Item(
            cell.name,
            test,
            number,
            spec.seed,
            cell.kind,
            (spec,),
            schedule=schedule(self, cell, spec),
            title=", ".join(f"{side.of.title} {side.shown(value)}" for side, value in sides),
            takes_s=takes_s(cell),
        )

    def line(self, folder: Path, item: Item, found: Outcome) -> dict[str, Any]:
        return tally(found)


def _side_json(side: Side) -> dict[str, Any]:
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
    usual = LOCKS[plan.lock].read_options({})
    changed = {name: value for name, value in plan.options.items() if usual.get(name) != value}
    return commandline.command(
        "sweep",
        plan.lock,
        commandline.lock_options(changed),
        commandline.option("x", _ends(plan.x)),
        commandline.option("y", _ends(plan.y)),
        commandline.option("steps", plan.steps),
        commandline.option("guard", plan.guard if plan.guard != "none" else ""),
        commandline.settings({"server": plan.server, "seed": plan.seed}, "server", "seed"),
    )


def _ends(side: Side) -> str:
    unit = side.of.form.unit
    return f"{side.axis}={side.values[0]:g}{unit}..{side.values[-1]:g}{unit}"


@dataclass(frozen=True)
class Cell:
    """A value of each axis; `spec` None where that cannot be, for a `reason`."""

    x: float
    y: float
    spec: Spec | None
    reason: str = ""

    @property
    def name(self) -> str:
        return f"{self.x!r}/{self.y!r}"

    @property
    def kind(self) -> str:
        return self.spec.lock_type.kind if self.spec else ""


def plan(
    lock: str,
    x: str,
    y: str,
    seed: int,
    steps: str = STEPS,
    options: Mapping[str, Any] | None = None,
    guard: str = "none",
    server: Mapping[str, str] | None = None,
) -> Plan:
    """The sweep that was asked for.

    Raises:
        BadArguments: there is no such lock, guard or axis, a range makes no sense, or none of the
            cells could be run.
    """
    choose("lock", lock, LOCKS)
    count = re.fullmatch(r"(\d+)x(\d+)", steps.strip())
    if count is None or not all(2 <= int(n) <= _MOST_STEPS for n in count.groups()):
        raise BadArguments(f"steps {steps!r}: write {STEPS}, of 2 to {_MOST_STEPS} along each side")
    whole = LOCKS[lock].whole_seconds
    along, up = (_side(one, int(n), whole) for one, n in zip((x, y), count.groups(), strict=True))
    faults = [side.axis for side in (along, up) if side.of.strikes]
    if len(faults) != 1:
        settings = ", ".join(name for name, axis in AXES.items() if axis.sets)
        strikes = ", ".join(name for name, axis in AXES.items() if axis.strikes)
        raise BadArguments(
            f"{along.axis} and {up.axis}: one side is a setting ({settings}), and the "
            f"other one is of a fault ({strikes})"
        )
    found = lock_options(lock, options or {})
    return _possible(Plan(lock, found, guard, along, up, steps.strip(), seed, dict(server or {})))


def again(stored: Mapping[str, Any]) -> Plan:
    """Return a stored plan.

    Raises:
        BadArguments: its lock or one of its axes no longer exists.
    """
    return _possible(msgspec.convert(stored, Plan))


def _possible(asked: Plan) -> Plan:
    """Return the plan. Raise BadArguments if none of its cells can run."""
    lock = choose("lock", asked.lock, LOCKS)
    for side in (asked.x, asked.y):
        choose("axis", side.axis, AXES)
    every = cells(asked)
    if not any(cell.spec for cell in every):
        raise BadArguments(f"{lock} cannot be swept so: {every[-1].reason}")
    return asked


def _side(text: str, steps: int, whole: bool) -> Side:
    name, _, ends = text.partition("=")
    axis = AXES[choose("axis", name.strip(), AXES)]
    first, dots, last = ends.partition("..")
    if not (first and dots and last):
        raise BadArguments(f"axis {text!r}: write {axis.name}=FROM..TO, ttl=0.5s..10s say")
    try:
        low, high = axis.form.read(first), axis.form.read(last)
    except ValueError as error:
        raise BadArguments(f"axis {axis.name}: {error}") from error
    show = axis.form.describe
    if not axis.least <= low < high <= axis.most:
        raise BadArguments(
            f"axis {axis.name}={show(low)}..{show(high)} is out of range, or does not rise "
            f"({show(axis.least)} to {show(axis.most)})"
        )
    grid = (whole and axis.name == "ttl") or axis.name == "clients"
    return Side(axis.name, values(low, high, steps, axis.even, grid))


def values(low: float, high: float, steps: int, even: bool, whole: bool) -> tuple[float, ...]:
    """So many values from one to the other, at equal differences or at equal ratios, of two digits
    each; fewer, where they have to be whole and fall on one another."""
    shares = [n / (steps - 1) for n in range(steps)]
    found = [low + (high - low) * s if even else low * (high / low) ** s for s in shares]
    rounded = [round(v) if whole else float(f"{v:.2g}" if not even else f"{v:.3g}") for v in found]
    # The ends are those that were asked for.
    rounded[0], rounded[-1] = low, high
    return tuple(dict.fromkeys(map(float, rounded)))


def cells(asked: Plan) -> list[Cell]:
    """All cells, row by row. Those that cannot be run say why."""
    return [_cell(asked, x, y) for y in asked.y.values for x in asked.x.values]


def _cell(asked: Plan, x: float, y: float) -> Cell:
    try:
        spec = _spec(asked, x, y)
    except (BadArguments, ValueError) as error:
        return Cell(x, y, None, str(error))
    return Cell(x, y, spec)


def _spec(asked: Plan, x: float, y: float) -> Spec:
    """The test of a cell, but for its seed."""
    strike, value = _fault_of(asked, x, y)
    settings: dict[str, Any] = {
        "guard": asked.guard,
        "server": asked.server,
        "concurrency": _CLIENTS,
        "segment_s": 3600.0,
        **strike.work,
    }
    for side, one in ((asked.x, x), (asked.y, y)):
        if side.of.sets:
            settings |= side.of.sets(one)
    name = f"sweep-{asked.lock}"
    spec = make(asked.lock, asked.options, settings, name=name, scheduled=True)
    faults = _faults(spec, strike, value)
    return validate(replace(spec, nemesis=(faults[0].family,), time_s=_time_s(faults)))


def _fault_of(asked: Plan, x: float, y: float) -> tuple[Axis, float]:
    return (asked.x.of, x) if asked.x.of.strikes else (asked.y.of, y)


def seeded(asked: Plan, cell: Cell, number: int) -> Spec:
    """A cell's test in one round, with a seed that follows from the sweep's, the cell and the
    round."""
    assert cell.spec is not None
    random = Random(f"{asked.seed}/{cell.name}/{number}")
    spec = replace(cell.spec, seed=random.randrange(1_000_000_000))
    return replace(spec, time_s=_time_s(schedule(asked, cell, spec)))


def schedule(asked: Plan, cell: Cell, spec: Spec) -> list[Scheduled]:
    """The faults of a run, from its seed."""
    return _faults(spec, *_fault_of(asked, cell.x, cell.y))


def _faults(spec: Spec, strike: Axis, value: float) -> list[Scheduled]:
    """Raises ValueError where the lock's servers cannot have such a fault."""
    assert strike.strikes is not None
    random, layout = Random(f"{spec.seed}/sweep"), layout_of(spec)
    rows, at_s = [], _BEFORE_S
    for _ in range(FAULTS):
        # At any moment of a lease.
        at_s += random.uniform(0, layout.ttl_s)
        struck = strike.strikes(value, layout, random)
        rows.append(
            {
                "at_s": round(at_s, 3),
                "duration_s": struck.duration_s,
                "family": struck.family,
                "targets": struck.targets,
                "arguments": dict(struck.arguments),
            }
        )
        at_s += struck.duration_s + _BESIDE_S + _BETWEEN_S
    return schedules.from_rows(rows, layout, spec.seed)


def _time_s(faults: Sequence[Scheduled]) -> float:
    """For how long clients have to work so that the last of these lasts as long as it should."""
    last = faults[-1]
    return round(last.at_s + last.duration_s + _BESIDE_S + _BETWEEN_S, 1)


def takes_s(cell: Cell) -> float:
    """What a run of it takes, about."""
    return cell.spec.time_s + around(cell.kind) if cell.spec else 0.0


def round_s(found: Sequence[Cell]) -> float:
    """What a round of these cells takes, about."""
    return sum(map(takes_s, found))
