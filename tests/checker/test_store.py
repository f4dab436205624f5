"""The resource's own history: one order to try, that of the versions, against real time."""

from __future__ import annotations

from itertools import permutations
from random import Random

import pytest
from histories import Story
from hypothesis import given, settings
from hypothesis import strategies as st

from checker.store import store


@pytest.fixture
def story():
    return Story()


def valid(story):
    return store(story.history(), {}).valid


def test_reads_and_writes_in_the_order_of_their_versions_are_valid(story):
    story.read(0, 1, None, 0)
    story.write(0, 2, "a", 0, 1, done=5)
    story.read(1, 3, "a", 1, done=4)
    story.write(1, 6, "b", 1, 2)
    assert valid(story) is True


def test_nothing_answered_is_unknown(story):
    story.write(0, 1, "a", 0, type="info")
    assert valid(story) == "unknown"


def test_a_write_that_does_not_say_its_version_leaves_no_order_to_try(story):
    story.write(0, 1, "a", 0)
    found = store(story.history(), {})
    assert found.valid == "unknown"
    assert "does not say its version" in found.summary


def test_a_read_that_goes_back_is_no_order(story):
    story.write(0, 1, "a", 0, 1)
    story.write(0, 2, "b", 1, 2)
    story.read(1, 3, "a", 1)
    found = store(story.history(), {})
    assert found.valid is False
    assert "turned round" in found.evidence[0]["what"]


def test_one_version_with_two_values_is_no_register(story):
    story.write(0, 1, "a", 0, 1)
    story.read(1, 2, "b", 1)
    assert "Version 1 is 'a' and also 'b'" in store(story.history(), {}).summary


def test_a_version_given_twice_is_no_register(story):
    story.write(0, 1, "a", 0, 1, done=9)
    story.write(1, 2, "a", 0, 1, done=9)
    assert valid(story) is False


def test_a_version_that_no_write_can_have_made_is_no_register(story):
    story.write(0, 1, "a", 0, 1)
    story.write(0, 2, "c", 1, 3)
    assert "No write can have made version 2" in store(story.history(), {}).summary


def test_a_write_that_never_returned_may_have_made_it(story):
    story.write(0, 1, "a", 0, 1)
    story.write(1, 2, "b", 1, type="info", done=9)
    story.write(0, 5, "c", 1, 3)
    assert valid(story) is True


def test_but_not_one_that_was_sent_later(story):
    story.write(0, 1, "a", 0, 1)
    story.write(0, 5, "c", 1, 3)
    story.write(1, 6, "b", 1, type="info", done=9)
    assert valid(story) is False


@st.composite
def told(draw):
    """Ops of three processes on a register that works, some of their versions then changed."""
    random = Random(draw(st.integers(0, 10**9)))
    ops, time, free, version, value = [], 0, dict.fromkeys(range(3), 0), 0, None
    for number in range(draw(st.integers(1, 6))):
        process = random.randrange(3)
        start = max(time, free[process]) + random.randrange(3)
        end = start + random.randrange(6)
        free[process] = end + 1
        time = start
        if random.random() < 0.5:
            version, value = version + 1, f"v{number}"
            ops.append(["write", process, start, end, value, version, random.random() < 0.25])
        else:
            ops.append(["read", process, start, end, value, version, False])
    known = {0: None} | {op[5]: op[4] for op in ops if op[0] == "write"}
    for op in ops:
        if op[0] == "read" and random.random() < 0.3:
            op[5] = random.choice(list(known))
            op[4] = known[op[5]]
    return ops


def possible(ops):
    """Whether any order of the ops, the pending ones anywhere or nowhere, is a register's."""
    pending = [op for op in ops if op[6]]
    for taken in range(1 << len(pending)):
        chosen = [op for op in ops if not op[6]]
        chosen += [op for place, op in enumerate(pending) if taken >> place & 1]
        if any(fits(order) for order in permutations(chosen)):
            return True
    return False


def fits(order):
    version, value = 0, None
    for place, (f, _, start, _, written, said, lost) in enumerate(order):
        if any(not other[6] and other[3] < start for other in order[place + 1 :]):
            return False
        if f == "write":
            version, value = version + 1, written
            if not lost and said != version:
                return False
        elif (said, written) != (version, value):
            return False
    return True


@given(told())
@settings(deadline=None, max_examples=200)
def test_the_verdict_is_that_of_trying_every_order(ops):
    story = Story()
    for f, process, start, end, value, version, lost in ops:
        if f == "read":
            story.read(process, start, value, version, done=end)
        elif lost:
            story.write(100 + start * 3 + process, start, value, 0, type="info", done=end)
        else:
            story.write(process, start, value, version - 1, version, done=end)
    if all(op[6] for op in ops):
        return
    assert valid(story) is possible(ops)
