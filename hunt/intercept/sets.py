"""Sets that keep the order of insertion, for libraries that use the order of their sets.

kazoo keeps listeners and watchers in sets, and calls them in the set's order, which follows from
memory addresses and so differs from run to run. Its modules get these sets under the name `set`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any


class OrderedSet(set[Any]):
    """A set that is iterated in the order of insertion."""

    def __init__(self, things: Iterable[Any] = ()) -> None:
        super().__init__()
        self._order: dict[Any, None] = {}
        self.update(things)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._order)

    def __reduce__(self) -> tuple[Any, ...]:
        return OrderedSet, (list(self._order),)

    def add(self, thing: Any) -> None:
        super().add(thing)
        self._order[thing] = None

    def update(self, *others: Iterable[Any]) -> None:
        for other in others:
            for thing in other:
                self.add(thing)

    def discard(self, thing: Any) -> None:
        super().discard(thing)
        self._order.pop(thing, None)

    def remove(self, thing: Any) -> None:
        super().remove(thing)
        del self._order[thing]

    def pop(self) -> Any:
        """Remove the first one."""
        thing = next(iter(self._order))
        self.remove(thing)
        return thing

    def clear(self) -> None:
        super().clear()
        self._order.clear()
