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
    """A consumer group: the last entry given to it, its consumers, and its pending entries."""

    last: ID
    consumers: dict[str, None] = field(default_factory=dict)
    pending: dict[ID, Pending] = field(default_factory=dict)

    def of(self, consumer: str) -> list[ID]:
        """Return the entries that are pending for a consumer, in order."""
        return sorted(one for one, its in self.pending.items() if its.consumer == consumer)


class Stream:
    """The value of a key. `last`: the highest ID ever used. `added`: the number of entries ever
    added."""

    def __init__(self, of: Stream | None = None) -> None:
        self.entries: dict[ID, list[str]] = dict(of.entries) if of else {}
        self.added: int = of.added if of else 0
        self.last: ID = of.last if of else (0, 0)
        self.groups: dict[str, Group] = {}
        for name, group in (of.groups if of else {}).items():
            pending = {one: replace(its) for one, its in group.pending.items()}
            self.groups[name] = Group(group.last, dict(group.consumers), pending)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Stream) and self.__dict__ == other.__dict__

    __hash__ = None  # type: ignore[assignment]  # it changes

    def between(self, first: ID, last: ID) -> list[ID]:
        return [one for one in self.entries if first <= one <= last]

    def shown(self, one: ID) -> Entry:
        """Return an entry as replies have it; a deleted one has no fields."""
        return [words(one), self.entries.get(one, NoList())]


def words(one: ID) -> str:
    return f"{one[0]}-{one[1]}"
