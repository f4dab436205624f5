"""The matrix: each lock under each fault with each guard, on real servers.

The plan finds inapplicable cells before anything starts, and gives the reason for each. All runs
have the same length, and the same lease if the lock permits it, so that they can be compared.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from random import Random
from typing import Any, ClassVar

import msgspec

from fencepost.harness.campaigns.item import Item, around, in_random_order, round_s, test
from fencepost.harness.campaigns.tally import tally
from fencepost.harness.errors import BadArguments, choose
from fencepost.harness.judge.judge import Outcome
from fencepost.harness.servers.kinds import independent
from fencepost.harness.spec.make import make
from fencepost.harness.spec.spec import Spec, layout_of, schedule_of
from fencepost.harness.spec.validation import validate
from fencepost.nemesis.families import FAMILIES, check, columns
from fencepost.nemesis.fault_spec import families
from fencepost.settings import SETTINGS
from fencepost.workloads.locks.registry import LOCKS
from fencepost.workloads.resources.registry import GUARDS

GUARD_ROWS = ("none", "fenced")
QUICK = "14m"
"""The budget of a quick matrix."""
_USUAL_S, _SHORTEST_S, _LONGEST_S, _MOST_S = 20.0, 2.5, 60.0, 600.0
_TTL_MS, _QUICK_TTL_MS = 2000, 1000
# Clients take a while to start, and two clients show as much as five.
_CLIENTS, _QUICK_CLIENTS = 5, 3
# With the default holds and rests a run of some seconds has one or two holds a second. These give
# three times as many, and some of them still end after their leases.
_QUICK_HOLD, _QUICK_THINK = "0..1.1ttl", "0..20ms"
# In most seeds, a fault of each family occurs within the time of a run.
_TRIES = 50


@dataclass(frozen=True)
class Plan:
    """The plan of a matrix.

    `time_s`: how long the clients of each run work. `ttl_ms`: the lease, or the shortest that the
    lock supports if that is longer. `hold` and `think`: how long clients hold the lock, and rest,
    as in a test. `aim`: faults wait for their trigger.
    """

    locks: tuple[str, ...]
    faults: tuple[str, ...]
    guards: tuple[str, ...]
    seed: int
    time_s: float
    ttl_ms: int
    clients: int = _CLIENTS
    hold: str = SETTINGS["hold"].default
    think: str = SETTINGS["think"].default
    aim: bool = False

    kind: ClassVar[str] = "matrix"

    @cached_property
    def cells(self) -> list[Cell]:
        return cells(self)

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self), "columns": columns_of(self.faults)}

    def rows(self) -> list[dict[str, Any]]:
        return [
            {
                "key": cell.name,
                "lock": cell.lock,
                "fault": cell.fault,
                "guard": cell.guard,
                "nemesis": list(cell.spec.nemesis) if cell.spec else [],
                "ttl_ms": cell.spec.ttl_ms if cell.spec else None,
                "options": dict(cell.spec.options) if cell.spec else {},
                "reason": cell.reason,
            }
            for cell in self.cells
        ]

    def items(self, number: int) -> list[Item]:
        return [
            self._item(cell, seeded(cell, self.seed, number), number)
            for cell, _ in in_random_order(self.cells, self.seed, number)
        ]

    def _item(self, cell: Cell, spec: Spec, number: int) -> Item:
        title = f"{spec.lock}, {','.join(spec.nemesis) or 'no fault'}, guard {spec.guard}"
        takes_s = self.time_s + around(cell.kind)
        return Item(
            cell.name, test, number, spec.seed, cell.kind, (spec,), title=title, takes_s=takes_s
        )

    def line(self, item: Item, found: Outcome) -> dict[str, Any]:
        return tally(found)


@dataclass(frozen=True)
class Cell:
    """One lock under one fault with one guard; `spec` is None for an inapplicable cell, with a
    `reason`."""

    lock: str
    fault: str
    guard: str
    spec: Spec | None
    reason: str = ""

    @property
    def name(self) -> str:
        return f"{self.lock}/{self.fault}/{self.guard}"

    @property
    def kind(self) -> str:
        return LOCKS[self.lock].kind


def plan(
    locks: Sequence[str],
    faults: Sequence[str],
    guards: Sequence[str],
    seed: int,
    time_s: float | None = None,
    budget_s: float | None = None,
    quick: bool = False,
    lanes: int = 1,
    aim: bool = False,
) -> Plan:
    """Return the plan for these arguments, with defaults for missing ones. The length of a run is
    chosen so that one round fits the budget, with `lanes` cells at a time.

    Raises:
        BadArguments: there is no such lock, fault or guard.
    """
    chosen = tuple(choose("lock", name, LOCKS) for name in locks) or tuple(usual_locks())
    asked_for = tuple(map(_fault, faults)) or usual_faults()
    rows = tuple(choose("guard", name, GUARDS) for name in guards)
    rows = rows or (GUARD_ROWS[:1] if quick else GUARD_ROWS)
    if time_s is not None and not 1 <= time_s <= _MOST_S:
        raise BadArguments(f"time {time_s:g} s is out of range (1 s to {_MOST_S / 60:.0f} min)")
    chosen, asked_for, rows = map(_each_once, (chosen, asked_for, rows))
    asked = Plan(chosen, asked_for, rows, seed, time_s or _USUAL_S, _TTL_MS, aim=aim)
    if quick:
        asked = replace(
            asked,
            ttl_ms=_QUICK_TTL_MS,
            clients=_QUICK_CLIENTS,
            hold=_QUICK_HOLD,
            think=_QUICK_THINK,
        )
    found = cells(asked)
    for entry in asked.faults:
        column = [cell for cell in found if cell.fault == entry]
        if not any(cell.spec for cell in column):
            raise BadArguments(f"fault {entry}: {column[0].reason}")
    if time_s is None and budget_s is not None:
        asked = replace(asked, time_s=_fitting(found, budget_s, lanes))
    return asked


def from_json(stored: Mapping[str, Any]) -> Plan:
    """Return a stored plan.

    Raises:
        BadArguments: one of its locks, faults or guards no longer exists.
    """
    found = msgspec.convert(stored, Plan)
    plan(found.locks, found.faults, found.guards, found.seed, found.time_s, aim=found.aim)
    return found


def _fault(entry: str) -> str:
    """Return the entry if it is one of `--nemesis`, `none` or `all`; raise BadArguments if not.
    Each cell decides whether its lock's servers can have it."""
    for family in families([] if entry in ("none", "all") else [entry]):
        choose("fault", family, ("none", "all", *FAMILIES))
    return entry


def columns_of(faults: Sequence[str]) -> dict[str, dict[str, str]]:
    """Return how a report names these faults, for families that have a title."""
    found = (column for column in columns() if column.entry in faults)
    return {one.entry: {"title": one.title, "sentence": one.sentence} for one in found}


def usual_faults() -> tuple[str, ...]:
    """Return the default faults of a matrix. `all` means all others of a matrix together."""
    return ("none", *(column.entry for column in columns()), "all")


def usual_locks() -> list[str]:
    """Return every sound lock: all but the deliberately broken ones."""
    return [name for name, lock in LOCKS.items() if lock.sound]


def _each_once(names: Sequence[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(names))


def _fitting(found: Sequence[Cell], budget_s: float, lanes: int) -> float:
    """Return how long the clients of each run may work, so that one round of all cells fits the
    budget."""
    kinds = kinds_of(found)
    fixed_s = round_s(kinds, 0.0, lanes)
    of_each_s = round_s(kinds, 1.0, lanes) - fixed_s
    each_s = (budget_s - fixed_s) / max(of_each_s, 1e-9)
    return round(min(max(each_s, _SHORTEST_S), _LONGEST_S), 1)


def kinds_of(found: Sequence[Cell]) -> list[str]:
    """Return the kind of server of each cell that can run."""
    return [cell.kind for cell in found if cell.spec is not None]


def cells(asked: Plan) -> list[Cell]:
    """Return all cells, in the order of the table. Those that cannot run have the reason."""
    return [
        _cell(asked, lock, fault, guard)
        for lock in asked.locks
        for guard in asked.guards
        for fault in asked.faults
    ]


def _cell(asked: Plan, lock: str, fault: str, guard: str) -> Cell:
    try:
        spec = _spec(asked, lock, guard)
        entries = _entries(fault, asked, spec)
        spec = validate(replace(spec, nemesis=entries, aim=asked.aim and bool(entries)))
    except BadArguments as error:
        return Cell(lock, fault, guard, None, _reason(str(error), fault))
    return Cell(lock, fault, guard, spec)


def _spec(asked: Plan, lock: str, guard: str) -> Spec:
    """Return the test of a lock with a guard, without faults. If the guard needs a token that the
    lock gives on request, request it."""
    found = LOCKS[lock]
    options = found.read_options({})
    if not GUARDS[guard].serves(found, options):
        for token in found.tokens():
            if GUARDS[guard].serves(found, options | {"token": token}):
                options |= {"token": token}
                break
    # A client that waits for servers that do not answer must not use up its lease.
    waits_ms = options.get("node_timeout_ms", 0) * (found.servers if independent(found.kind) else 1)
    ttl_ms = max(asked.ttl_ms, found.least_ttl_ms, found.usual_ttl_ms)
    if waits_ms >= ttl_ms:
        ttl_ms = 2 * waits_ms
    if found.whole_seconds:
        ttl_ms = -(-ttl_ms // 1000) * 1000
    settings = {
        "guard": guard,
        "time_s": asked.time_s,
        "ttl_ms": ttl_ms,
        "concurrency": asked.clients,
        "hold": SETTINGS["hold"].default if found.elector else asked.hold,
        "think": asked.think,
        "interval_s": round(min(5.0, asked.time_s / 4), 2),
        "segment_s": 3600.0,
    }
    return make(lock, options, settings, name=f"matrix-{lock}")


def _entries(fault: str, asked: Plan, spec: Spec) -> tuple[str, ...]:
    """Return the `--nemesis` entries of a column; of `all`, those that this lock's servers
    support."""
    if fault == "none":
        return ()
    if fault != "all":
        return (fault,)
    others = [one for one in asked.faults if one not in ("none", "all")] or [
        column.entry for column in columns()
    ]
    found = tuple(one for one in others if _possible(one, spec))
    if not found:
        raise BadArguments("none of the other faults can be injected into its servers")
    return found


def _possible(entry: str, spec: Spec) -> bool:
    try:
        check([entry], layout_of(spec))
    except ValueError:
        return False
    return True


def _reason(text: str, fault: str) -> str:
    """Return why a cell is inapplicable, without the hints for mistyped arguments."""
    return text.removeprefix(f"nemesis {fault}: ").partition(". Locks that do:")[0]


def seeded(cell: Cell, seed: int, number: int) -> Spec:
    """Return a cell's test in one round. Seeds derive from the matrix' seed, the cell and the
    round. Take the first that draws a fault of each family, or the one that draws most of them. For
    all families at once, ask only for as many as fit a run: faults on the same server come one
    after another. Triggered faults are drawn during the run, so the first seed and every family are
    used."""
    assert cell.spec is not None
    random = Random(f"{seed}/{cell.name}/{number}")
    if cell.spec.aim:
        return replace(cell.spec, seed=random.randrange(1_000_000_000))
    wanted = set(cell.spec.families)
    tried: list[tuple[Spec, set[str]]] = []
    for _ in range(_TRIES):
        spec = replace(cell.spec, seed=random.randrange(1_000_000_000))
        drawn = {fault.family for fault in schedule_of(spec)} & wanted if wanted else set()
        tried.append((spec, drawn))
        if drawn == wanted:
            break
    best, drawn = max(tried, key=lambda one: len(one[1]))
    if cell.fault != "all":
        return best
    return replace(best, nemesis=tuple(e for e in best.nemesis if drawn.issuperset(families([e]))))
