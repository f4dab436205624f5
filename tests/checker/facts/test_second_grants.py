"""Second grants, compared with their definition for each pair of holds."""

from __future__ import annotations

from collections import namedtuple
from random import Random

from fencepost.checker.facts.second_grants import FOREVER, doubled, ended_together

Hold = namedtuple("Hold", "lock process asked start index given_back deadline")


def drawn(random):
    """Draw holds of a few processes, which ask for one after another, in order of grant."""
    found, last = [], {}
    for index in range(random.randrange(1, 8)):
        lock, process = random.choice("ab"), random.randrange(2)
        asked = last.get(process, 0) + random.randrange(4)
        start = last[process] = asked + random.randrange(3)
        ends = [random.choice((start + random.randrange(8), FOREVER)) for _ in range(2)]
        found.append(Hold(lock, process, asked, start, index, *ends))
    return sorted(found, key=lambda hold: (hold.start, hold.index))


def over(hold):
    return min(hold.given_back, hold.deadline)


def together(one, other):
    first, second = sorted((one, other), key=lambda hold: (hold.start, hold.index))
    same = (first.lock, first.process) == (second.lock, second.process)
    return same and over(first) > second.asked


def chain(holds, one):
    """Return the holds that this one is joined with, one after another, and this one."""
    joined = [one]
    for some in joined:
        joined += [other for other in holds if other not in joined and together(some, other)]
    return joined


def test_doubled_are_the_chains_of_holds_that_a_process_asked_for_while_it_had_one():
    several = apart = 0
    for seed in range(2000):
        holds = drawn(Random(seed))
        chains = {tuple(sorted(chain(holds, one), key=holds.index)) for one in holds}
        expected = [list(joined) for joined in chains if len(joined) > 1]
        assert sorted(doubled(holds)) == sorted(expected), seed
        several += len(expected) > 1
        owners = [(joined[0].lock, joined[0].process) for joined in expected]
        apart += len(set(owners)) < len(owners)
    assert several > 50 and apart > 5


def test_a_hold_may_end_with_every_other_of_its_chain():
    chained = 0
    for seed in range(2000):
        holds = drawn(Random(seed))
        for joined in doubled(holds):
            expected = {}
            for n, hold in enumerate(joined):
                later = [max(one.start, over(one)) for one in joined[n + 1 :]]
                before = [one.given_back for one in joined[:n] if one.given_back > hold.start]
                expected[hold.index] = min([*later, *before], default=FOREVER)
            assert ended_together(joined) == expected, seed
            chained += len(joined) > 2
    assert chained > 100
