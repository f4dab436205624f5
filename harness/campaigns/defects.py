"""Plays the catalogue of lock defects (`fencepost defects --play`): who finds which defect, and how
soon?

A row is one class of a defect, played in one way (defect_plays.py). Long histories and hunts are
played from several seeds, and need no servers: they are the first round. Runs on real servers are
the second one.

The kept file (docs/defects.json) has the cells of the table: new ones for the plays that ran, the
old ones for the others.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import msgspec

from fencepost import processors
from fencepost.harness.campaigns import defect_plays as plays
from fencepost.harness.campaigns import kept
from fencepost.harness.campaigns.campaign import Campaign
from fencepost.harness.campaigns.defect_plays import PLAYS
from fencepost.harness.campaigns.executors import Execute, Executor, Processes
from fencepost.harness.campaigns.item import Item, around
from fencepost.harness.errors import BadArguments, choose
from fencepost.harness.spec.spec import Spec
from fencepost.report import defect_scores
from fencepost.workloads.contract.catalogue import LOCK, TWIN, Listed, catalogue
from fencepost.workloads.contract.defect import FAMILIES

SEEDS = 5
WAYS = tuple(PLAYS)
"""The ways to play a defect: history, hunt, servers."""
_SERVERS = "servers"
_HISTORY_S = 0.8
"""The usual time of one history with its verdicts (s)."""


def chosen(names: Sequence[str]) -> dict[str, Listed]:
    """Return the defects of these names, or of the families of these names; all if there are none.

    Raises:
        BadArguments: there is no such defect or family, or a file of the catalogue is malformed.
    """
    try:
        found = catalogue()
    except ValueError as error:
        raise BadArguments(f"the catalogue cannot be read: {error}") from error
    for name in names:
        choose("defect", name, [*FAMILIES, *found])
    return {
        name: one
        for name, one in found.items()
        if not names or name in names or one.defect.family in names
    }


@dataclass(frozen=True)
class Plan:
    """Defects to play. `names`: of defects or families, all if empty; `by`: the ways, from WAYS;
    `seeds`: how many for histories and hunts, from `seed` on."""

    seed: int
    names: tuple[str, ...] = ()
    by: tuple[str, ...] = WAYS
    seeds: int = SEEDS
    kind: ClassVar[str] = "defects"

    @cached_property
    def _defects(self) -> dict[str, Listed]:
        return chosen(self.names)

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @cached_property
    def _cells(self) -> list[tuple[dict[str, Any], Listed]]:
        return [
            (_row(one, way, lock), one)
            for one in self._defects.values()
            for way in self.by
            for lock in one.classes
        ]

    def rows(self) -> list[dict[str, Any]]:
        return [row for row, _ in self._cells]

    def items(self, number: int) -> list[Item]:
        # The engine ends at a round without items.
        rounds = [found for found in (self._played(False), self._played(True)) if found]
        return rounds[number - 1] if number <= len(rounds) else []

    def _played(self, on_servers: bool) -> list[Item]:
        return [
            item
            for row, listed in self._cells
            if (row["way"] == _SERVERS) == on_servers and not row["reason"]
            for item in self._items(row, listed)
        ]

    def _items(self, row: Mapping[str, Any], listed: Listed) -> Iterator[Item]:
        way, lock, name = row["way"], row["class"], listed.defect.name
        twin, asked, title = lock == TWIN, (name, lock), f"{name}, {lock}"
        if way == _SERVERS:
            spec = plays.of_servers(listed, lock, self.seed)
            takes_s = spec.time_s + around(spec.lock_type.kind)
            yield Item(row["key"], PLAYS[way], 1, self.seed, spec.lock_type.kind, (spec,),
                       asked=asked, title=title, takes_s=takes_s)  # fmt: skip
            return
        takes_s = _HISTORY_S * (plays.OF_TWIN if twin else 2)
        if way == "hunt":
            takes_s = plays.TWIN_HUNT_S if twin else plays.HUNT_S / 4
        # A twin is hunted from one seed: a clean hunt takes its whole time.
        for number in range(1 if twin and way == "hunt" else self.seeds):
            yield Item(row["key"], PLAYS[way], number + 1, self.seed + number, asked=asked,
                       title=title, takes_s=takes_s, leaves=False)  # fmt: skip

    def line(self, item: Item, found: Any) -> dict[str, Any]:
        line: dict[str, Any] = found.to_json()
        return line


def from_json(stored: Mapping[str, Any]) -> Plan:
    """Return a stored plan. Raise BadArguments if one of its defects no longer exists."""
    found = msgspec.convert(stored, Plan)
    chosen(found.names)
    return found


def _row(listed: Listed, way: str, lock: str) -> dict[str, Any]:
    defect = listed.defect
    return {
        "key": f"{defect.name}/{way}/{lock}",
        "defect": defect.name,
        "family": FAMILIES[defect.family],
        "what": defect.what,
        "checker": defect.checker,
        "way": way,
        "class": lock,
        "reason": _reason(listed, way, lock),
    }


def _reason(listed: Listed, way: str, lock: str) -> str:
    """Return why a class cannot be played in this way; '' if it can."""
    defect = listed.defect
    if defect.hidden:
        return defect.hidden
    if way == "hunt" and defect.hunt:
        return defect.hunt
    try:
        made: Spec
        if way == _SERVERS:
            made = plays.of_servers(listed, lock, 1)
        else:
            made = (plays.of_hunt if way == "hunt" else plays.of_histories)(listed, lock, 1).spec
        if lock == LOCK and (why := made.checkers.get(defect.checker)):
            return f"{defect.checker}: {why}"
    except BadArguments as error:
        return str(error)
    return ""


class Lanes:
    """Runs simulations in processes, as many at a time as there are cores or as requested, and real
    runs on clusters. No round has both."""

    def __init__(self, found: Campaign, clusters: Executor, parallel: int | None) -> None:
        self._clusters, self._found = clusters, found
        left = len(self._simulations)
        self._processes = Processes(parallel or processors.count(), left) if left else None

    @property
    def _simulations(self) -> list[Item]:
        return [item for item in self._found.left(1) if not item.specs]

    @property
    def lanes(self) -> int:
        if self._processes is not None and self._simulations:
            return self._processes.lanes
        return self._clusters.lanes

    @property
    def up_s(self) -> float:
        return self._clusters.up_s

    def place(self, items: Sequence[Item]) -> AbstractContextManager[Execute]:
        if self._processes is None or any(item.specs for item in items):
            return self._clusters.place(items)
        return self._processes.place(items)

    def stop(self) -> None:
        self._clusters.stop()
        if self._processes is not None:
            self._processes.stop()

    def close(self) -> None:
        if self._processes is not None:
            self._processes.close()


def keep(path: Path, folder: Path) -> None:
    """Merge the cells of a play into a kept file. A way that was not played keeps its old cell;
    defects that no longer exist are removed.

    Raises:
        BadArguments: the file has another format, or cannot be written.
    """
    known = {row["defect"]: row for row in kept.read(path, "defect", "defects", "cells")}
    for row in defect_scores.table(folder):
        before = known.get(row.defect, {}).get("cells", {})
        cells = {way: asdict(cell) for way, cell in row.cells.items() if cell.state != "not played"}
        known[row.defect] = {"defect": row.defect, "cells": {**before, **cells}}
    kept.write(path, [known[name] for name in catalogue() if name in known])
