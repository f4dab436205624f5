"""Hashes of objects that do not depend on where they lie in memory, which differs from run to run.

A library may keep its connections in a set, as pottery does, and ask them in the order of the set.
So an object of a simulated client is hashed by a number, in the order in which its client's
objects were first hashed. An object keeps the hash that it had first.
"""

from __future__ import annotations

from typing import Any

from fencepost.hunt.intercept.context import here

_NUMBER = "_fencepost_number"


def number(thing: Any) -> int:
    """In the place of object.__hash__."""
    own: dict[str, Any] = thing.__dict__
    found: int | None = own.get(_NUMBER)
    if found is None:
        place = here()
        if place is None:
            found = object.__hash__(thing)
        else:
            node = place.task.node.index
            found = place.numbered[node]
            place.numbered[node] += 1
        own[_NUMBER] = found
    return found
