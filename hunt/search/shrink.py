"""Makes a schedule that breaks a promise as small as it gets, with the promise still broken.

A schedule is simpler with fewer strikes; then with less of a set-up; then with simpler actions
(lower numbers of the same kind); then with earlier steps. Each pass tries what is simpler by one of
these, and keeps it where the run still breaks one of the same promises: delta debugging (Zeller
2002) on the list of integers. Passes are repeated until none helps, so that of the result no strike
can be left out.

Hypothesis' own shrinker was looked at: it wants to draw each number itself while the test runs,
which costs more than a whole run does here, and its interface is internal.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import count
from random import Random

from fencepost.hunt.faults.action import Action
from fencepost.hunt.sim.schedule import Schedule

Breaks = Callable[[Schedule], bool]
_MOST = 3000
_ELSEWHERE, _EARLY = 300, 12
"""Runs that one shrinking may take."""


def shrink(
    schedule: Schedule, actions: Sequence[Action], breaks: Breaks, again: bool = False
) -> Schedule:
    """A schedule that breaks as this one does, and of which nothing can be left out. `again`:
    nothing else is tried than to leave something out."""
    best, tried, left = schedule, {schedule}, _MOST

    def better(one: Schedule) -> bool:
        nonlocal best, left
        if one in tried or left <= 0 or one.size >= best.size or not one.in_order:
            return False
        tried.add(one)
        left -= 1
        if not breaks(one):
            return False
        best = one
        return True

    before = None
    while before != best:
        before = best
        for step in (_fewer,) if again else (_fewer, _plainer, _simpler, _earlier):
            step(lambda: best, actions, better)
        if before == best and not again:
            _elsewhere(lambda: best, actions, better)
    return best


Inside = Callable[[Schedule], list[tuple[int, int]]]
"""The steps from the beginning to the end of each acquire of a run that was granted."""


def settled(schedule: Schedule, breaks: Breaks, inside: Inside) -> Schedule:
    """Let what strikes in the middle of an acquire strike after it, where that breaks as well.

    It is no simpler, and easier to tell: first the grant, then what goes wrong.
    """
    for number in range(len(inside(schedule))):
        grants = inside(schedule)
        if number >= len(grants):
            break
        begin, end = grants[number]
        there = [one for one in schedule.injections if begin <= one[0] < end]
        for first in range(len(there)):
            later = _after(schedule, there[first:], end)
            if breaks(later):
                schedule = later
                break
    return schedule


def _after(schedule: Schedule, moved: Sequence[tuple[int, int]], step: int) -> Schedule:
    """With these strikes after a step, in the order that they had, all others where they are."""
    stay = [one for one in schedule.injections if one not in moved]
    taken = {at for at, _ in stay}
    free = (at for at in count(step + 1) if at not in taken)
    return replace(
        schedule, injections=tuple(sorted([*stay, *zip(free, (n for _, n in moved), strict=False)]))
    )


Better = Callable[[Schedule], bool]
Best = Callable[[], Schedule]


def _fewer(best: Best, actions: Sequence[Action], better: Better) -> None:
    """Leave strikes out: halves first, then ever smaller parts, then one by one."""
    size = max(1, len(best().injections) // 2)
    while size:
        place = 0
        while place < len(best().injections):
            injections = best().injections
            left = injections[:place] + injections[place + size :]
            if not any(better(one) for one in _moved(best(), left, place)):
                place += size
        size //= 2


def _moved(
    schedule: Schedule, injections: tuple[tuple[int, int], ...], place: int
) -> Iterator[Schedule]:
    """With these strikes; and with those from a place on a little earlier or later, because what
    was left out took steps of its own."""
    yield replace(schedule, injections=injections)
    if place and place >= len(injections):
        return
    for by in (-2, 2, -6, 6, -14, 14, -30, 30):
        moved = tuple((step + by, n) for step, n in injections[place:])
        first = injections[place - 1][0] if place else 0
        if moved and moved[0][0] > first:
            yield replace(schedule, injections=injections[:place] + moved)


def _plainer(best: Best, actions: Sequence[Action], better: Better) -> None:
    """Take back what the head sets up."""
    for place in range(len(best().head)):
        for number in range(min(best().head[place], 3)):
            head = best().head
            if better(replace(best(), head=(*head[:place], number, *head[place + 1 :]))):
                break


def _simpler(best: Best, actions: Sequence[Action], better: Better) -> None:
    """Strike with simpler actions of the same kind."""
    for place in range(len(best().injections)):
        step, number = best().injections[place]
        kind = actions[number - 1].kind
        for lower in range(1, number):
            if actions[lower - 1].kind == kind and better(_with(best(), place, step, lower)):
                break


def _earlier(best: Best, actions: Sequence[Action], better: Better) -> None:
    """Strike earlier."""
    for place in range(len(best().injections)):
        step, number = best().injections[place]
        first = best().injections[place - 1][0] + 1 if place else 1
        far = step - first
        for target in (first, *(step - far // part for part in (2, 4, 8)), step - 1):
            if better(_with(best(), place, target, number)):
                break


def _elsewhere(best: Best, actions: Sequence[Action], better: Better) -> None:
    """Look for one with no set-up and no more strikes, of the same kinds, somewhere else.

    What was met first is often a roundabout way to break a lock, and no small change of it leads
    to the straight one.
    """
    kinds = {actions[number - 1].kind for _, number in best().injections}
    numbers = [n for n, action in enumerate(actions, 1) if action.kind in kinds]
    last = max((step for step, _ in best().injections), default=1)
    random = Random(f"Schedule(head={best().head!r}, strikes={best().injections!r})")
    many_ways = len(best().injections) > 2 or (any(best().head) and best().injections)
    for _ in range(_ELSEWHERE if many_ways else 0):
        many = 1 + random.randrange(min(3, len(best().injections)))
        # What is so from the beginning on is easily told, and often all that is needed.
        first = [random.randrange(1, _EARLY)] if random.random() < 0.5 else []
        steps = sorted({*first, *random.sample(range(_EARLY, last + 60), many - len(first))})
        if better(Schedule((), tuple((step, random.choice(numbers)) for step in steps))):
            return


def _with(schedule: Schedule, place: int, step: int, number: int) -> Schedule:
    found = schedule.injections
    return replace(schedule, injections=(*found[:place], (step, number), *found[place + 1 :]))
