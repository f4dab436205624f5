"""The sweep: one lock, with a setting along one side and a fault along the other.

Or two settings, and one fault that stays the same. Electors have long reigns, and rest between two
faults until another candidate can have taken over.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from random import Random
from typing import Any, ClassVar

import msgspec

from fencepost import commandline
from fencepost.harness.campaigns.axes import AXES, OF_FAULTS, SETTINGS, Axis
from fencepost.harness.campaigns.item import Item, around, in_random_order, test
from fencepost.harness.campaigns.tally import tally
from fencepost.harness.errors import BadArguments, choose
from fencepost.harness.judge.judge import Outcome
from fencepost.harness.spec.make import lock_options, make
from fencepost.harness.spec.spec import Spec, layout_of
from fencepost.harness.spec.validation import validate
from fencepost.nemesis import schedule as schedules
from fencepost.nemesis.schedule import Scheduled
from fencepost.nemesis.targets import HOLDER
from fencepost.workloads.electors.arithmetic import cannot_work
from fencepost.workloads.locks.registry import LOCKS

STEPS = "6x6"
FAULTS = 4
"""The number of faults in a run, one after another."""
_MOST_STEPS = 12
# Time for clients to start before the first fault, and for some holds between two faults.
_BEFORE_S, _BETWEEN_S = 1.0, 1.0
# Time of a fault beyond its duration: until its client has reached its place, and its receipts.
_BESIDE_S = 0.75
_CLIENTS = 5
_CANDIDATES = 2
_OF_ELECTORS: Mapping[str, Any] = {
    "concurrency": _CANDIDATES, "hold": "30ttl..30ttl", "liveness_bound_s": 15.0,
}  # fmt: skip
_LEASES = 3
"""Time for a take-over: before the first fault, and between two faults."""


@dataclass(frozen=True)
class Side:
    """An axis with its values, in the axis' own unit, ascending."""

    axis: str
    values: tuple[float, ...]

    @property
    def of(self) -> Axis:
        return AXES[self.axis]

    def shown(self, value: float) -> str:
        return self.of.form.describe(value)


@dataclass(frozen=True)
class Plan:
    """The plan of a sweep: one of `x` and `y` is a setting, the other one belongs to a fault. If
    both are settings, `fault` is the axis of a fault with its only value (`pause=3s`).

    `steps` are the requested numbers of values; rounding may have merged some of the values.
    """

    lock: str
    options: Mapping[str, Any]
    guard: str
    x: Side
    y: Side
    steps: str
    seed: int
    server: Mapping[str, str]
    fault: str = ""

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
        title = ", ".join(f"{side.of.title} {side.shown(value)}" for side, value in sides)
        return Item(cell.name, test, number, spec.seed, cell.kind, (spec,), title=title,
                    schedule=schedule(self, cell, spec), takes_s=takes_s(cell))  # fmt: skip

    def line(self, item: Item, found: Outcome) -> dict[str, Any]:
        return tally(found)


def _side_json(side: Side) -> dict[str, Any]:
    return {
        "axis": side.axis,
        "values": list(side.values),
        "title": side.of.title,
        "what": side.of.what,
        "shown": [side.shown(value) for value in side.values],
        "fault": side.of.injects is not None,
    }


def command(plan: Plan) -> str:
    """Return the command line that repeats it."""
    usual = LOCKS[plan.lock].read_options({})
    changed = {name: value for name, value in plan.options.items() if usual.get(name) != value}
    return commandline.command(
        "sweep",
        plan.lock,
        commandline.lock_options(changed),
        commandline.option("x", _ends(plan.x)),
        commandline.option("y", _ends(plan.y)),
        commandline.option("fault", plan.fault),
        commandline.option("steps", plan.steps),
        commandline.option("guard", plan.guard if plan.guard != "none" else ""),
        commandline.settings({"server": plan.server, "seed": plan.seed}, "server", "seed"),
    )


def _ends(side: Side) -> str:
    unit = side.of.form.unit
    return f"{side.axis}={side.values[0]:g}{unit}..{side.values[-1]:g}{unit}"


@dataclass(frozen=True)
class Cell:
    """A value of each axis; `spec` is None for an inapplicable cell, with a `reason`."""

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
    fault: str = "",
) -> Plan:
    """Return the plan for these arguments.

    Raises:
        BadArguments: there is no such lock, guard or axis, a range is invalid, or no cell can run.
    """
    choose("lock", lock, LOCKS)
    count = re.fullmatch(r"(\d+)x(\d+)", steps.strip())
    if count is None or not all(2 <= int(n) <= _MOST_STEPS for n in count.groups()):
        raise BadArguments(
            f"steps {steps!r}: write {STEPS}, with 2 to {_MOST_STEPS} values on each axis"
        )
    whole = LOCKS[lock].whole_seconds
    along, up = (_side(one, int(n), whole) for one, n in zip((x, y), count.groups(), strict=True))
    _must_have_a_fault([along.axis, up.axis], fault)
    found = lock_options(lock, options or {})
    return _possible(
        Plan(lock, found, guard, along, up, steps.strip(), seed, dict(server or {}), fault)
    )


def _must_have_a_fault(axes: Sequence[str], fault: str) -> None:
    """Raise BadArguments unless exactly one of the axes and `fault` is of a fault."""
    if fault:
        _fixed(fault)
    faults = [name for name in axes if name in OF_FAULTS] + [fault] * bool(fault)
    if len(faults) == 1:
        return
    settings, injected = ", ".join(SETTINGS), ", ".join(OF_FAULTS)
    if not faults:
        raise BadArguments(
            f"{' and '.join(axes)}: one axis must be a setting ({settings}), and the other one of "
            f"a fault ({injected}); or name a fault for all cells (for example: --fault pause=3s)"
        )
    raise BadArguments(
        f"{' and '.join(faults)}: a sweep has one fault; its other axes are settings ({settings})"
    )


def _fixed(text: str) -> tuple[Axis, float]:
    """Return the axis and the value of a fault that stays the same."""
    name, _, value = text.partition("=")
    axis = AXES[choose("fault", name.strip(), OF_FAULTS)]
    try:
        found = axis.form.read(value)
    except ValueError as error:
        raise BadArguments(f"fault {axis.name}: {error}") from error
    show = axis.form.describe
    if not axis.least <= found <= axis.most:
        raise BadArguments(
            f"fault {axis.name}={show(found)} is out of range ({show(axis.least)} to "
            f"{show(axis.most)})"
        )
    return axis, found


def from_json(stored: Mapping[str, Any]) -> Plan:
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
    _must_have_a_fault([asked.x.axis, asked.y.axis], asked.fault)
    every = cells(asked)
    if not any(cell.spec for cell in every):
        raise BadArguments(f"{lock} cannot be swept with these arguments: {every[-1].reason}")
    return asked


def _side(text: str, steps: int, whole: bool) -> Side:
    name, _, ends = text.partition("=")
    axis = AXES[choose("axis", name.strip(), AXES)]
    first, dots, last = ends.partition("..")
    if not (first and dots and last):
        raise BadArguments(
            f"axis {text!r}: write {axis.name}=FROM..TO (for example: ttl=0.5s..10s)"
        )
    try:
        low, high = axis.form.read(first), axis.form.read(last)
    except ValueError as error:
        raise BadArguments(f"axis {axis.name}: {error}") from error
    show = axis.form.describe
    if not axis.least <= low < high <= axis.most:
        raise BadArguments(
            f"axis {axis.name}={show(low)}..{show(high)} is out of range or not ascending "
            f"({show(axis.least)} to {show(axis.most)})"
        )
    grid = (whole and axis.name == "ttl") or axis.name == "clients"
    return Side(axis.name, values(low, high, steps, axis.even, grid))


def values(low: float, high: float, steps: int, even: bool, whole: bool) -> tuple[float, ...]:
    """Return `steps` values between these ends, at equal differences or equal ratios, rounded to
    two digits; fewer, if rounding to integers merges some."""
    shares = [n / (steps - 1) for n in range(steps)]
    found = [low + (high - low) * s if even else low * (high / low) ** s for s in shares]
    rounded = [round(v) if whole else float(f"{v:.2g}" if not even else f"{v:.3g}") for v in found]
    # Keep the ends exactly as given.
    rounded[0], rounded[-1] = low, high
    return tuple(dict.fromkeys(map(float, rounded)))


def cells(asked: Plan) -> list[Cell]:
    """Return all cells, row by row. Those that cannot run have the reason."""
    return [_cell(asked, x, y) for y in asked.y.values for x in asked.x.values]


def _cell(asked: Plan, x: float, y: float) -> Cell:
    try:
        spec = _spec(asked, x, y)
    except (BadArguments, ValueError) as error:
        return Cell(x, y, None, str(error))
    return Cell(x, y, spec)


def _spec(asked: Plan, x: float, y: float) -> Spec:
    """Return the test of a cell, without its seed."""
    axis, value = _fault_of(asked, x, y)
    elector = LOCKS[asked.lock].elector
    settings: dict[str, Any] = {
        "guard": asked.guard,
        "server": asked.server,
        "concurrency": _CLIENTS,
        "segment_s": 3600.0,
        **axis.work,
        **(_OF_ELECTORS if elector else {}),
    }
    options = dict(asked.options)
    for side, one in ((asked.x, x), (asked.y, y)):
        if side.of.sets:
            settings |= side.of.sets(one)
        if side.of.option:
            options[side.of.option] = round(one * 1000)
    name = f"sweep-{asked.lock}"
    spec = make(asked.lock, options, settings, name=name, scheduled=True)
    if elector and (why := cannot_work(spec.ttl_ms, spec.options)):
        raise BadArguments(why)
    faults = _faults(spec, axis, value)
    return validate(replace(spec, nemesis=(faults[0].family,), time_s=_time_s(spec, faults)))


def _fault_of(asked: Plan, x: float, y: float) -> tuple[Axis, float]:
    if asked.fault:
        return _fixed(asked.fault)
    return (asked.x.of, x) if asked.x.of.injects else (asked.y.of, y)


def seeded(asked: Plan, cell: Cell, number: int) -> Spec:
    """Return a cell's test in one round; its seed derives from the sweep's seed, the cell and the
    round."""
    assert cell.spec is not None
    random = Random(f"{asked.seed}/{cell.name}/{number}")
    spec = replace(cell.spec, seed=random.randrange(1_000_000_000))
    return replace(spec, time_s=_time_s(spec, schedule(asked, cell, spec)))


def schedule(asked: Plan, cell: Cell, spec: Spec) -> list[Scheduled]:
    """Return the faults of a run, drawn from its seed."""
    return _faults(spec, *_fault_of(asked, cell.x, cell.y))


def _faults(spec: Spec, axis: Axis, value: float) -> list[Scheduled]:
    """Return the faults. Raise ValueError if the lock's servers cannot have such a fault."""
    assert axis.injects is not None
    random, layout = Random(f"{spec.seed}/sweep"), layout_of(spec)
    rows, at_s = [], _BEFORE_S + _take_over_s(spec)
    for _ in range(FAULTS):
        # Random, so that it can hit any moment of a lease.
        at_s += random.uniform(0, layout.ttl_s)
        row = axis.injects(value, layout, random)
        if spec.lock_type.elector and row["arguments"].get("point"):
            row["targets"] = [HOLDER]  # only a leader comes to a write
        rows.append({"at_s": round(at_s, 3), **row})
        at_s += row["duration_s"] + _BESIDE_S + _BETWEEN_S + _take_over_s(spec)
    return schedules.from_rows(rows, layout, spec.seed)


def _take_over_s(spec: Spec) -> float:
    """Return how long an elector may need until another candidate leads; 0 for a lock."""
    return _LEASES * spec.ttl_ms / 1000 if spec.lock_type.elector else 0.0


def _time_s(spec: Spec, faults: Sequence[Scheduled]) -> float:
    """Return how long clients must work for the last of these faults to last its full time."""
    last = faults[-1]
    until_s = last.at_s + last.duration_s + _BESIDE_S + _BETWEEN_S
    return round(until_s + _take_over_s(spec), 1)


def takes_s(cell: Cell) -> float:
    """Estimate the time of a run."""
    return cell.spec.time_s + around(cell.kind) if cell.spec else 0.0


def round_s(found: Sequence[Cell]) -> float:
    """Estimate the time of a round of these cells."""
    return sum(map(takes_s, found))
