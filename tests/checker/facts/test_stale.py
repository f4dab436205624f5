"""Stale writes, compared with a check of every pair of writes."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from fencepost.checker.facts.clocks import Clocks
from fencepost.checker.facts.holds import holds
from fencepost.checker.facts.stale import stale
from fencepost.checker.facts.time_order import Axes, tied
from fencepost.checker.facts.writes import owners, registers
from tests.histories import MS, Story


def pairwise(writes, held, clocks):
    """Return the stale writes by the definition."""
    numbered = [write for write in writes if write.stored is not None]
    if any(
        clocks.before(a.applied, b.sent) and a.stored >= b.stored
        for a in numbered
        for b in numbered
    ):
        writes = [replace(write, stored=None) for write in writes]  # they prove nothing
    return {
        late.value
        for late in writes
        for other in writes
        if accepted_after(other, late, clocks) and later(held[late.hold], held[other.hold], clocks)
    }


def accepted_after(first, second, clocks):
    if first.stored is not None and second.stored is not None:
        return first.stored < second.stored
    return clocks.before(first.applied, second.sent)


def later(first, second, clocks):
    """Return whether the second hold is certainly the later one."""
    if first.lock != second.lock:
        return False
    if None not in (first.token, second.token) and first.token != second.token:
        return first.token < second.token
    gap = clocks.between(first.node, second.node)
    in_turn = first.process == second.process and not gap and first.index < second.asked_index
    asked_after = in_turn or first.start + gap < second.asked
    return asked_after and first.believed_end + gap <= second.start


def drawn(random):
    """Draw holds requested early and granted late, each with a write at some other time."""
    story, many = Story(), random.randint(2, 9)
    tokens = random.choice((0, 0, 0.5, 1))
    numbered, wrong = random.choice((1, 1, 0.5, 0)), random.choice((0, 0, 0, 0.3))
    for n in range(many):
        asked = random.randrange(30)
        at = asked + random.choice((0, 1, 4, 12))
        until = at + random.choice((-1, 1, 3, 10))
        token = random.randint(1, 5) if random.random() < tokens else None
        lock = random.choice(("orders", "orders", "orders", "invoices"))
        story.grant(n, f"h{n}", at, until, asked=asked, token=token, lock=lock)
        sent = random.randint(at, 60)
        done = sent + random.choice((0, 3, 20))
        # In the order in which the store applied them, which is any between the two.
        stored = random.randint(sent, done) * many + n + 1 if random.random() < numbered else None
        if stored is not None and random.random() < wrong:
            stored = random.randint(1, 60 * many)
        story.write(n, sent, f"v{n}", None, stored, done=done, hold=f"h{n}")
    bounds = {f"client-{n}": {"bound_ns": random.choice((0, 1, 2)) * MS} for n in range(many)}
    return story.history(), {"clocks": bounds} if random.random() < 0.4 else {}


@given(st.integers(0, 2**32))
@settings(max_examples=400)
def test_a_write_is_stale_exactly_where_some_pair_shows_it(seed):
    history, test = drawn(Random(seed))
    clocks, held = Clocks(test), owners(holds(history, test))
    (register,) = registers(history, clocks)
    found = stale(register, held, Axes(clocks, tied(history)))
    assert {write.value for write, _ in found} == pairwise(register.writes, held, clocks)
    for write, other in found:
        assert later(held[write.hold], held[other.hold], clocks)


@pytest.mark.parametrize("first", [2, 3])
def test_a_hold_requested_sooner_and_granted_later_counts_next_to_the_reverse_case(first):
    """h1 is believed until 15, so h2 is later than it; h3, granted at 12, is not."""
    story = Story()
    story.grant(1, "h1", at=4, until=15, asked=0)
    story.grant(2, "h2", at=20, until=30, asked=5)
    story.grant(3, "h3", at=12, until=14, asked=10)
    for number, process in enumerate((first, 5 - first, 1), 1):
        story.write(process, 30 + number, f"v{process}", None, number, hold=f"h{process}")
    history = story.history()
    (register,) = registers(history)
    found = stale(register, owners(holds(history)), Axes(Clocks(), tied(history)))
    assert [(write.value, other.value) for write, other in found] == [("v1", "v2")]


def test_a_later_hold_is_found_though_one_between_two_others_was_added_after_it():
    """h1 is believed until 18: only h2 was granted after that."""
    story = Story()
    story.grant(1, "h1", at=4, until=18, asked=0)
    story.grant(2, "h2", at=20, until=30, asked=5)
    story.grant(3, "h3", at=12, until=14, asked=10)
    story.grant(4, "h4", at=15, until=16, asked=6)
    for number, process in enumerate((2, 3, 4, 1), 1):
        story.write(process, 30 + number, f"v{process}", None, number, hold=f"h{process}")
    history = story.history()
    (register,) = registers(history)
    found = stale(register, owners(holds(history)), Axes(Clocks(), tied(history)))
    assert [(write.value, other.value) for write, other in found] == [("v1", "v2")]
