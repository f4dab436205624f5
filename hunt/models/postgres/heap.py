"""Tables with row versions, as PostgreSQL keeps them: a change adds a version and marks the old.

A version is visible to a snapshot if its creator had committed by then (or is the reader itself),
and its deleter had not. `Server.commits` counts commits; a snapshot is that count.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from fencepost.hunt.models.postgres.syntax import Expr
from fencepost.hunt.models.postgres.types import Type

Row = tuple[Any, ...]


class Xact:
    """A transaction, or a part of one since a savepoint (`parent`). `committed`: the number of its
    commit; `aborted`: it was rolled back."""

    __slots__ = ("aborted", "committed", "locks", "name", "number", "parent", "touched", "undo")

    def __init__(self, number: int = 0, parent: Xact | None = None, name: str = "") -> None:
        self.parent = parent
        self.number = number
        self.name = name
        self.committed = 0
        self.aborted = False
        # Locks that end with it, and the tables that it has changed.
        self.locks: list[tuple[Any, int]] = []
        self.touched: dict[Any, None] = {}
        self.undo: list[Any] = []

    @property
    def top(self) -> Xact:
        found = self
        while found.parent is not None:
            found = found.parent
        return found

    @property
    def dead(self) -> bool:
        found: Xact | None = self
        while found is not None:
            if found.aborted:
                return True
            found = found.parent
        return False

    @property
    def running(self) -> bool:
        return not self.dead and not self.top.committed


class Version:
    """A version of a row. `xmax`: what deleted or updated it, `next`: the version after an update.
    `lockers`: parts of transactions that have locked it, and how strongly."""

    __slots__ = ("lockers", "next", "strength", "values", "xmax", "xmin")

    def __init__(self, values: Row, xmin: Xact) -> None:
        self.values = values
        self.xmin = xmin
        self.xmax: Xact | None = None
        self.strength = 3
        self.next: Version | None = None
        self.lockers: dict[Xact, int] = {}

    @property
    def ended(self) -> Xact | None:
        """Return what deleted or updated it, unless that was rolled back."""
        if self.xmax is not None and self.xmax.dead:
            self.xmax, self.next = None, None
        return self.xmax

    def visible(self, snapshot: int, me: Xact) -> bool:
        if not _seen(self.xmin, snapshot, me):
            return False
        return self.ended is None or not _seen(self.ended, snapshot, me)

    def in_the_way(self, strength: int, me: Xact) -> list[Xact]:
        """Return the running transactions, or parts of them, whose locks conflict."""
        found: dict[Xact, None] = {}
        ended = self.ended
        runs = ended is not None and ended.running and ended.top is not me
        if ended is not None and runs and self.strength + strength >= 3:
            found[ended] = None
        for one, held in list(self.lockers.items()):
            if not one.running:
                del self.lockers[one]
            elif one.top is not me and held + strength >= 3:
                found[one] = None
        return list(found)

    def others(self, me: Xact) -> dict[Xact, int]:
        """Return the locks of other sessions."""
        return {
            one: held for one, held in self.lockers.items() if one.running and one.top is not me
        }

    def locked_by(self, me: Xact) -> bool:
        return any(one.top is me and one.running for one in self.lockers)


def _seen(xact: Xact, snapshot: int, me: Xact) -> bool:
    if xact.dead:
        return False
    top = xact.top
    return top is me or 0 < top.committed <= snapshot


@dataclass(frozen=True)
class TableColumn:
    name: str
    type: Type
    length: int = 0
    not_null: bool = False
    default: Expr = None


@dataclass(frozen=True)
class Key:
    """A unique key: its name, and the places of its columns."""

    name: str
    places: tuple[int, ...]
    primary: bool = False


_oids = count(16384)


@dataclass(eq=False)
class Table:
    name: str
    columns: tuple[TableColumn, ...]
    keys: list[Key]
    oid: int
    creator: Xact | None = None
    versions: list[Version] = field(default_factory=list)

    def place(self, name: str) -> int:
        for place, column in enumerate(self.columns):
            if column.name == name:
                return place
        return -1

    def prune(self) -> None:
        """Forget the versions that no snapshot can see any more."""
        self.versions = [
            one
            for one in self.versions
            if not one.xmin.dead and (one.ended is None or not one.ended.top.committed)
        ]

    def with_key(self, key: Key, values: Sequence[Any]) -> list[Version]:
        """Return the versions that have the same key."""
        wanted = [values[place] for place in key.places]
        if any(value is None for value in wanted):
            return []
        return [one for one in self.versions if [one.values[p] for p in key.places] == wanted]


@dataclass(eq=False)
class Sequence_:
    """A sequence. `logged`: the value from which it continues after a crash."""

    name: str
    value: int = 0
    logged: int = 0
    left: int = 0

    def next(self) -> int:
        if self.left == 0:
            self.logged, self.left = self.value + 33, 33
        self.value += 1
        self.left -= 1
        return self.value

    def crash(self) -> None:
        if self.left:
            self.value, self.left = self.logged, 0
