"""Shrinks a schedule that breaks a promise to a minimal one that still breaks it.

A schedule is simpler with fewer injections; then with less set-up; then with simpler actions (lower
numbers of the same kind); then with earlier steps. Each pass tries changes of one of these kinds,
and keeps a change if the run still breaks one of the same promises: delta debugging (Zeller 2002)
on the list of integers. Passes repeat until none helps, so no injection of the result is
dispensable.

Hypothesis' own shrinker was considered: it draws each number itself while the test runs, which
costs more than a whole run does here, and its interface is internal.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import count
from random import Random

from fencepost.hunt.faults import cancel
from fencepost.hunt.faults.simulated import Action
from fencepost.hunt.sim.schedule import Schedule

Breaks = Callable[[Schedule], bool]
MILDEST = cancel.SIMULATED.name
"""The kind of action by which any other is replaced if the run then still breaks a promise."""
_MOST = 3000
_ELSEWHERE, _EARLY, _MILDER = 300, 12, 100
"""Maximum number of runs of one shrinking."""


def shrink(
    schedule: Schedule,
    actions: Sequence[Action],
    breaks: Breaks,
    again: bool = False,
    near: bool = False,
) -> Schedule:
    """Return a minimal schedule that breaks the same promise. `again`: only remove injections.
    `near`: only change the schedule, because a run is dear."""
    best, tried, left = schedule, {schedule}, _MOST

    def better(one: Schedule, milder: bool = False) -> bool:
        nonlocal best, left
        simpler = milder or one.size < best.size
        if one in tried or left <= 0 or not simpler or not one.in_order:
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
        if before == best and not again and not near:
            _elsewhere(lambda: best, actions, better)
            _milder(lambda: best, actions, partial(better, milder=True))
    return best


Inside = Callable[[Schedule], list[tuple[int, int]]]
"""Returns the first and last steps of each granted acquire of a run."""


def settle(schedule: Schedule, breaks: Breaks, inside: Inside) -> Schedule:
    """Move injections in the middle of an acquire behind it, if the run still breaks the promise.

    The result is no simpler, but its story is: first the grant, then the faults.
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
    """Return the schedule with these injections after a step, in their order, and all others
    unchanged."""
    stay = [one for one in schedule.injections if one not in moved]
    taken = {at for at, _ in stay}
    free = (at for at in count(step + 1) if at not in taken)
    return replace(
        schedule, injections=tuple(sorted([*stay, *zip(free, (n for _, n in moved), strict=False)]))
    )


Better = Callable[[Schedule], bool]
Best = Callable[[], Schedule]


def _fewer(best: Best, actions: Sequence[Action], better: Better) -> None:
    """Remove injections: halves first, then smaller parts, then one by one."""
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
    """Yield the schedule with these injections, and with those from a place on a little earlier or
    later.

    The removed injections took steps, by which the others may have to move.
    """
    yield replace(schedule, injections=injections)
    if place and place >= len(injections):
        return
    for by in (-2, 2, -6, 6, -14, 14, -30, 30):
        moved = tuple((step + by, n) for step, n in injections[place:])
        first = injections[place - 1][0] if place else 0
        if moved and moved[0][0] > first:
            yield replace(schedule, injections=injections[:place] + moved)


def _plainer(best: Best, actions: Sequence[Action], better: Better) -> None:
    """Reset the numbers of the head to 0."""
    for place in range(len(best().head)):
        for number in range(min(best().head[place], 3)):
            head = best().head
            if better(replace(best(), head=(*head[:place], number, *head[place + 1 :]))):
                break


def _simpler(best: Best, actions: Sequence[Action], better: Better) -> None:
    """Replace actions by simpler ones of the same kind."""
    for place in range(len(best().injections)):
        step, number = best().injections[place]
        kind = actions[number - 1].kind
        for lower in range(1, number):
            if actions[lower - 1].kind == kind and better(_with(best(), place, step, lower)):
                break


def _earlier(best: Best, actions: Sequence[Action], better: Better) -> None:
    """Move injections to earlier steps."""
    for place in range(len(best().injections)):
        step, number = best().injections[place]
        first = best().injections[place - 1][0] + 1 if place else 1
        far = step - first
        for target in (first, *(step - far // part for part in (2, 4, 8)), step - 1):
            if better(_with(best(), place, target, number)):
                break


def _elsewhere(best: Best, actions: Sequence[Action], better: Better) -> None:
    """Search for a schedule without set-up and with no more injections of the same kinds elsewhere.

    The first counterexample is often an indirect one, and no small change leads to a direct one.
    """
    kinds = {actions[number - 1].kind for _, number in best().injections}
    numbers = [n for n, action in enumerate(actions, 1) if action.kind in kinds]
    last = max((step for step, _ in best().injections), default=1)
    random = _random(best())
    many_ways = len(best().injections) > 2 or (any(best().head) and best().injections)
    for _ in range(_ELSEWHERE if many_ways else 0):
        many = 1 + random.randrange(min(3, len(best().injections)))
        # Faults that exist from the beginning are easily explained, and often suffice.
        first = [random.randrange(1, _EARLY)] if random.random() < 0.5 else []
        steps = sorted({*first, *random.sample(range(_EARLY, last + 60), many - len(first))})
        if better(Schedule((), tuple((step, random.choice(numbers)) for step in steps))):
            return


def _milder(best: Best, actions: Sequence[Action], better: Better) -> None:
    """Search for a cancelled call that breaks the promise, too: then it takes no more than an
    impatient client."""
    numbers = [n for n, action in enumerate(actions, 1) if action.kind == MILDEST]
    kinds = {actions[number - 1].kind for _, number in best().injections}
    last, random = max((step for step, _ in best().injections), default=1), _random(best())
    for _ in range(_MILDER if numbers and kinds - {MILDEST} else 0):
        step = 1 + random.randrange(last + 60)
        if better(replace(best(), injections=((step, random.choice(numbers)),))):
            return


def _random(schedule: Schedule) -> Random:
    return Random(f"Schedule(head={schedule.head!r}, strikes={schedule.injections!r})")


def _with(schedule: Schedule, place: int, step: int, number: int) -> Schedule:
    found = schedule.injections
    return replace(schedule, injections=(*found[:place], (step, number), *found[place + 1 :]))
