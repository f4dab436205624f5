"""Hashes objects independently of their memory addresses, which differ from run to run.

A library may keep its connections in a set, as pottery does, and use them in the set's order. So
the hash of a simulated client's object is a number, in the order in which the client's objects are
first hashed. An object keeps its first hash.
"""

from __future__ import annotations

from typing import Any

from fencepost.hunt.intercept.context import here

_NUMBER = "_fencepost_number"


def number(thing: Any) -> int:
    """Replace object.__hash__."""
    own: dict[str, Any] = thing.__dict__
    found: int | None = own.get(_NUMBER)
    if found is None:
        found = own[_NUMBER] = _next(thing)
    return found


class Numbered:
    """Replaces object.__hash__ in subclasses of types whose objects have no `__dict__`. They have a
    slot `numbered`."""

    __slots__ = ()
    numbered: int

    def __hash__(self) -> int:
        try:
            return self.numbered
        except AttributeError:
            self.numbered = _next(self)  # type: ignore[misc]  # a slot of the subclass
            return self.numbered


def _next(thing: Any) -> int:
    place = here()
    if place is None:
        return object.__hash__(thing)
    node = place.task.node.index
    found = place.numbered[node]
    place.numbered[node] += 1
    return found
