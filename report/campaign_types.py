"""The types of a campaign's fields, of every kind of campaign.

Pages and tables rely on them, so files are checked where they are read. A field may be missing, and
an unknown field is kept: each planner adds its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, UnsetType

# No real figure is larger, and a huge one cannot be computed with.
_Count = Annotated[int, msgspec.Meta(ge=0, le=2**53)]
_Figure = Annotated[float, msgspec.Meta(ge=-1e15, le=1e15)]
_Valid = bool | Literal["unknown"] | None
_Word = str | UnsetType
_Words = list[str] | UnsetType
_Verdicts = dict[str, _Valid] | UnsetType
_Versions = dict[str, str] | UnsetType


class _Side(msgspec.Struct):
    axis: str | UnsetType = UNSET
    title: str | UnsetType = UNSET
    what: str | UnsetType = UNSET
    values: list[_Figure] | UnsetType = UNSET
    shown: _Words = UNSET
    fault: bool | UnsetType = UNSET

    def __post_init__(self) -> None:
        if self.values is UNSET or self.shown is UNSET or len(self.values) != len(self.shown):
            raise ValueError("it has another number of values than of shown ones")


class _Plan(msgspec.Struct):
    seed: int | UnsetType = UNSET
    lock: str | UnsetType = UNSET
    locks: _Words = UNSET
    faults: list[str] | int | UnsetType = UNSET
    guards: _Words = UNSET
    columns: dict[str, dict[str, str]] | UnsetType = UNSET
    x: _Side | UnsetType = UNSET
    y: _Side | UnsetType = UNSET
    time_s: _Figure | UnsetType = UNSET
    ttl_ms: _Figure | UnsetType = UNSET
    clients: _Count | UnsetType = UNSET
    command: str | UnsetType = UNSET
    fault: str | UnsetType = UNSET
    baseline: str | UnsetType = UNSET
    versions: _Versions | None = UNSET

    def __post_init__(self) -> None:
        if self.x is UNSET and isinstance(self.faults, int):  # a sweep has their number
            raise ValueError("`faults` is not a list")


class _LockCost(msgspec.Struct):
    lock: str
    ms: _Figure | None
    trips: _Figure
    rate: _Figure | UnsetType | None = UNSET


class _Cost(msgspec.Struct):
    locks: list[_LockCost]
    published: str | UnsetType = UNSET


class _Leaders(msgspec.Struct):
    reigns: _Count
    overlaps: _Count
    overlap_longest_s: _Figure
    overlap_total_s: _Figure
    clock_error_s: _Figure
    without_leader_s: _Figure
    changes_without_cause: _Count
    beats_after_stopped: _Count
    took_s: dict[str, list[_Figure]]


class _Line(msgspec.Struct, kw_only=True):
    row: str
    number: int
    seed: int | UnsetType | None = UNSET
    run: _Word = UNSET
    crashed: _Word = UNSET
    versions: _Versions | None = UNSET
    # Of a matrix or a sweep.
    valid: _Valid | UnsetType = UNSET
    checkers: _Verdicts = UNSET
    service: _Verdicts = UNSET
    questions: _Verdicts = UNSET
    holds: _Count | UnsetType = UNSET
    granted: _Count | UnsetType = UNSET
    violations: dict[str, _Count] | UnsetType = UNSET
    first_s: dict[str, _Figure | None] | UnsetType = UNSET
    work_s: _Figure | UnsetType = UNSET
    longest_s: _Figure | UnsetType = UNSET
    longest_calm_s: _Figure | UnsetType = UNSET
    leaders: _Leaders | UnsetType = UNSET
    # Of a suite.
    expected: _Verdicts = UNSET
    observed: _Verdicts = UNSET
    as_expected: bool | UnsetType = UNSET
    carried_out: bool | UnsetType = UNSET
    why: str | UnsetType = UNSET
    counts: dict[str, tuple[_Count, _Count]] | UnsetType = UNSET
    cost: _Cost | UnsetType = UNSET
    # Of a track record.
    outcome: Literal["seen", "not seen", "not played"] | UnsetType = UNSET
    said: str | UnsetType = UNSET
    # Of a play of the catalogue.
    found: bool | UnsetType = UNSET
    tried: _Count | UnsetType = UNSET
    seconds: _Figure | UnsetType | None = UNSET
    accused: _Words = UNSET
    lacks: _Words = UNSET
    cannot: str | UnsetType = UNSET
    # Of a bench.
    phases: dict[str, dict[str, _Figure | None]] | UnsetType = UNSET
    trips: dict[str, _Figure] | UnsetType = UNSET
    # Of a campaign of hunts.
    schedules: _Count | UnsetType = UNSET
    schedule: list[_Count] | UnsetType | None = UNSET
    broken: _Words = UNSET
    strikes: _Count | UnsetType = UNSET
    story: _Words = UNSET
    struck: dict[str, _Count] | UnsetType = UNSET
    covered: list[list[str]] | UnsetType = UNSET
    states: list[int] | UnsetType = UNSET
    inherent: _Words = UNSET
    failure: str | UnsetType = UNSET


class _Share(msgspec.Struct):
    count: _Count
    of: _Count
    low: _Figure
    high: _Figure


class _Rate(msgspec.Struct):
    published: str | UnsetType = UNSET
    shares: dict[str, _Share] | UnsetType = UNSET


class _Row(msgspec.Struct, kw_only=True):
    key: str
    runs: list[_Line]
    lock: _Word = UNSET
    fault: _Word = UNSET
    guard: _Word = UNSET
    nemesis: _Words = UNSET
    ttl_ms: _Figure | UnsetType | None = UNSET
    options: dict[str, Any] | UnsetType = UNSET
    reason: _Word = UNSET
    x: _Figure | UnsetType = UNSET
    y: _Figure | UnsetType = UNSET
    x_shown: _Word = UNSET
    y_shown: _Word = UNSET
    test: _Word = UNSET
    scenario: _Word = UNSET
    claim: _Word = UNSET
    source: _Word = UNSET
    what: _Word = UNSET
    expected: _Verdicts = UNSET
    rate: _Rate | UnsetType = UNSET
    defect: _Word = UNSET
    family: _Word = UNSET
    checker: _Word = UNSET
    way: _Word = UNSET
    klass: _Word = msgspec.field(default=UNSET, name="class")
    software: _Word = UNSET
    where: _Word = UNSET
    command: _Word = UNSET


class _Table(msgspec.Struct):
    plan: _Plan
    rows: list[_Row]
    versions: dict[str, dict[str, str]]


def must_be_typed(
    plan: Mapping[str, Any], rows: Sequence[Mapping[str, Any]], versions: Mapping[str, Any]
) -> None:
    """Raise ValueError if a field has another type; the text names it."""
    msgspec.convert({"plan": plan, "rows": rows, "versions": versions}, _Table)


def must_be_a_line(line: Mapping[str, Any]) -> None:
    """Raise ValueError if a line belongs to no row, or one of its fields has another type."""
    msgspec.convert(line, _Line)
