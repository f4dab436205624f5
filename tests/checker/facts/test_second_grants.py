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


def test_doubled_are_the_holds_of_a_process_that_asked_for_its_own_lock():
    several = 0
    for seed in range(2000):
        holds = drawn(Random(seed))
        expected = []
        for owner in {(hold.lock, hold.process) for hold in holds}:
            mine = [hold for hold in holds if (hold.lock, hold.process) == owner]
            pairs = [(a, b) for n, b in enumerate(mine) for a in mine[:n]]
            if any(over(a) > b.asked for a, b in pairs):
                expected.append(mine)
        assert sorted(doubled(holds)) == sorted(expected), seed
        several += len(expected) > 1
    assert several > 50


def test_a_hold_may_end_with_a_later_one_or_with_one_that_is_on_when_it_is_granted():
    for seed in range(2000):
        random = Random(seed)
        mine = [hold for hold in drawn(random) if hold.process == 0]
        expected = {}
        for n, hold in enumerate(mine):
            later = [max(one.start, over(one)) for one in mine[n + 1 :]]
            before = [
                one.given_back
                for one in mine[:n]
                if one.given_back > hold.start and one.deadline > hold.asked
            ]
            expected[hold.index] = min([*later, *before], default=FOREVER)
        assert ended_together(mine) == expected, seed
