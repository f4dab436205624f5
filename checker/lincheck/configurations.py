"""Sets of configurations: (state, which open ops are done) -> the records of crashed ops used.

For one state and mask, only records that no other covers are kept (crashed.py).
"""

from __future__ import annotations

from typing import NamedTuple

from fencepost.checker.lincheck.crashed import COST, Crashed, faults
from fencepost.checker.lincheck.model import Action, State


class Taken(NamedTuple):
    """One entry of a path: the last ops that a configuration linearized, and the path before it.

    `mover` and `observers` are slots' bits of open ops, resolved by `slots` as they were then; the
    observers come after the mover. `crashed` is the action of a crashed op; then there is no mover.
    `state` is the state after all of them.
    """

    mover: int
    observers: int
    crashed: Action | None
    slots: list[int]
    state: State
    before: Taken | None


Key = tuple[int, int]  # (state, bits of the open ops that are done)
Entry = tuple[int, Taken | None]  # (record of the crashed ops used, the path)
Configurations = dict[Key, list[Entry]]


def put(into: Configurations, key: Key, used: int, path: Taken | None, crashed: Crashed) -> bool:
    """Add a configuration unless an existing one dominates it; drop those that it dominates.

    One record covers another if no counted class's count is higher: then subtracting it from the
    other, with every guard bit set, leaves those classes' guard bits set.
    """
    known = into.get(key)
    if known is None:
        into[key] = [(used, path)]
        return True
    guards, compared = crashed.guards, crashed.compared
    guarded = used | guards
    for other, _ in known:
        if (guarded - other) & compared == compared:
            return False
    known[:] = [entry for entry in known if ((entry[0] | guards) - used) & compared != compared]
    known.append((used, path))
    return True


def put_all(into: Configurations, key: Key, entries: list[Entry], crashed: Crashed) -> None:
    """Do the same as `put` for entries that do not dominate one another."""
    if key not in into:
        into[key] = list(entries)
        return
    for used, path in entries:
        put(into, key, used, path, crashed)


def narrowed(configurations: Configurations, width: int) -> Configurations:
    """Return the `width` most promising: those that used few crashed ops, some of every state."""
    ranked = sorted(
        (rank, entry[0] & COST, index, key, entry)
        for index, (key, entries) in enumerate(configurations.items())
        for rank, entry in enumerate(sorted(entries, key=lambda entry: entry[0] & COST))
    )
    kept: Configurations = {}
    for *_, key, entry in ranked[:width]:
        kept.setdefault(key, []).append(entry)
    return kept


def best(configurations: Configurations) -> tuple[Key, Entry]:
    """Return the one that used the fewest crashed ops, and above all the fewest that do not
    exist."""
    return min(
        ((key, entry) for key, entries in configurations.items() for entry in entries),
        key=lambda one: waste(one[1][0]),
    )


def faultless(configurations: Configurations) -> Configurations:
    """Return those that used no more crashed ops than there are."""
    kept = {
        key: [entry for entry in entries if not faults(entry[0])]
        for key, entries in configurations.items()
    }
    return {key: entries for key, entries in kept.items() if entries}


def waste(used: int) -> tuple[int, int]:
    """Return a record's rank: the number of overused classes, then the worth of the ops used."""
    return faults(used), used & COST
