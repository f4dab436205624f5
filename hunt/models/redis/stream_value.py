"""A Redis stream: its entries by their IDs, and its consumer groups (t_stream.c of Redis 7.0)."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from fencepost.hunt.models.redis.replies import NoList

ID = tuple[int, int]
Entry = list[Any]
LAST: ID = (2**64 - 1, 2**64 - 1)


@dataclass
class Pending:
    """An entry that a consumer has not acknowledged. `since_ms`: when it was delivered last."""

    consumer: str
    since_ms: int
    times: int


@dataclass
class Group:
    """A consumer group: the last entry given to it, how many entries it has read (None: unknown),
    its consumers with the times (ms) at which they were seen last, and its pending entries."""

    last: ID
    read: int | None = None
    consumers: dict[str, int] = field(default_factory=dict)
    pending: dict[ID, Pending] = field(default_factory=dict)

    def of(self, consumer: str) -> list[ID]:
        """Return the entries that are pending for a consumer, in order."""
        return sorted(one for one, its in self.pending.items() if its.consumer == consumer)


class Stream:
    """The value of a key. `last`: the highest ID ever used. `added`: the number of entries ever
    added. `deleted`: the highest ID that XDEL has deleted."""

    def __init__(self, of: Stream | None = None) -> None:
        self.entries: dict[ID, list[str]] = dict(of.entries) if of else {}
        self.added: int = of.added if of else 0
        self.last: ID = of.last if of else (0, 0)
        self.deleted: ID = of.deleted if of else (0, 0)
        self.groups: dict[str, Group] = {}
        for name, group in (of.groups if of else {}).items():
            pending = {one: replace(its) for one, its in group.pending.items()}
            self.groups[name] = Group(group.last, group.read, dict(group.consumers), pending)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Stream) and self.__dict__ == other.__dict__

    __hash__ = None  # type: ignore[assignment]  # it changes

    @property
    def first(self) -> ID:
        """The lowest ID; 0-0: it has no entry."""
        return next(iter(self.entries), (0, 0))

    def has_gap_from(self, one: ID) -> bool:
        """Whether XDEL may have deleted an entry with this ID or a later one."""
        deleted = self.deleted
        return bool(self.entries) and any(deleted) and deleted >= max(one, self.first)

    def distance(self, one: ID) -> int | None:
        """Return how many entries were added up to this ID; None: unknown."""
        if not self.added:
            return 0
        if one == self.last or (not self.entries and one < self.last):
            return self.added
        if one > self.last or (any(self.deleted) and self.deleted >= self.first):
            return None
        if one > self.first:
            return None
        return self.added - len(self.entries) + (one == self.first)

    def between(self, first: ID, last: ID) -> list[ID]:
        return [one for one in self.entries if first <= one <= last]

    def shown(self, one: ID) -> Entry:
        """Return an entry as replies have it; a deleted one has no fields."""
        return [words(one), self.entries.get(one, NoList())]


def words(one: ID) -> str:
    return f"{one[0]}-{one[1]}"
