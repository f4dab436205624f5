"""The set-ups with which a search begins: what client-1 does, and what all others do.

A defect shows only if another client asks at the right moment. In most of these the others ask when
client-1's lease has just expired: then they are granted the lock while client-1 still acts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from fencepost.hunt.sim.schedule import EACH, HEAD
from fencepost.hunt.sim.setting import Setting
from fencepost.hunt.work import BEGINS, EXTENDS, HOLDS_FOR, HURRIES, MORE, begin_times, work_times

Head = tuple[int, ...]
_PART = 1
"""The place of a part of a lease among the times of work."""


def set_ups(setting: Setting) -> Iterator[Head]:
    """Yield the set-ups. The other clients ask when client-1's lease has just expired, all ask at
    once, or client-1 asks while another holds the lock. The others hold it for part of a lease:
    then a release that is refused shows that the lock was taken away. Otherwise client-1's second
    hold shows it. An extend in the middle of a long hold is answered, if it is late, when another
    client may have the lock. Clients of a user lock hurry as well (work.py), or client-1 is the
    last at work."""
    late, longest = len(begin_times(setting)) - 1, len(work_times(setting)) - 1
    part = {BEGINS: late, HOLDS_FOR: _PART}
    yield _head(setting, {HOLDS_FOR: longest}, part)
    yield _head(setting, {MORE: 1}, part)
    if setting.extends:
        yield _head(setting, {HOLDS_FOR: longest, EXTENDS: 1}, part)
    yield _head(setting, {}, {HOLDS_FOR: _PART})
    yield overtaken(setting)
    yield _head(setting, {BEGINS: 1}, {HOLDS_FOR: _PART, MORE: 1})
    if setting.extends:
        yield _head(setting, {EXTENDS: 1}, part)
    if setting.own is None:
        return
    yield hurried(setting)
    yield _head(setting, {BEGINS: late, MORE: 1}, {})


def overtaken(setting: Setting) -> Head:
    """Return a set-up in which client-1 holds the lock twice. The others ask when its lease has
    just expired, and hold the lock past their lease: so its second hold begins within theirs if the
    end of its first one frees the lock too late."""
    late, longest = len(begin_times(setting)) - 1, len(work_times(setting)) - 1
    return _head(setting, {MORE: 1}, {BEGINS: late, HOLDS_FOR: longest})


def renewing(setting: Setting) -> Head:
    """Return a set-up in which client-1 holds the lock for part of its lease, and extends it
    meanwhile if it can. The others ask soon after that, a few times in a row."""
    late = len(begin_times(setting)) - 1
    others = {BEGINS: late, EXTENDS: HURRIES, HOLDS_FOR: _PART}
    return _head(setting, {EXTENDS: 1, HOLDS_FOR: _PART}, others)


def hurried(setting: Setting) -> Head:
    """Return a set-up in which all clients hurry, and client-1 asks again after its first hold."""
    others = {BEGINS: 1, EXTENDS: HURRIES, HOLDS_FOR: _PART}
    return _head(setting, {EXTENDS: HURRIES, MORE: 1}, others)


def long_hold(setting: Setting) -> Head:
    """Return a set-up in which client-1 holds the lock for as long as possible, while the others
    ask again and again."""
    return _head(setting, {HOLDS_FOR: len(work_times(setting)) - 1}, {BEGINS: 1, MORE: 1})


def waiting(setting: Setting) -> Iterator[Head]:
    """Yield set-ups in which client-1 asks a little later than the others, who hold the lock for
    part of a lease, or for as long as possible, and ask again. Then client-1 holds it for as long
    as possible."""
    longest = len(work_times(setting)) - 1
    for holds_for in (_PART, longest):
        others = {HOLDS_FOR: holds_for, MORE: 1}
        yield _head(setting, {BEGINS: 1, HOLDS_FOR: longest}, others)


def _head(setting: Setting, first: Mapping[int, int], others: Mapping[int, int]) -> Head:
    """Return a head: what client-1 does, and what all others do (work.py)."""
    numbers = [0] * HEAD
    for client in range(len(setting.clients)):
        plan = others if client else first
        numbers += [plan.get(place, 0) for place in range(EACH)]
    return tuple(numbers)
