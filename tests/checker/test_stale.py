"""Which writes are stale, held to a look at each pair of them."""

from __future__ import annotations

from random import Random

from histories import MS, Story
from hypothesis import given, settings
from hypothesis import strategies as st

from checker.clocks import Clocks
from checker.holds import holds
from checker.rulers import Rulers
from checker.stale import stale
from checker.writes import owners, registers


def pairwise(writes, held, clocks):
    """The stale writes by the definition."""
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
    """Whether the second hold is certainly the later one."""
    if first.lock != second.lock:
        return False
    if None not in (first.token, second.token) and first.token != second.token:
        return first.token < second.token
    gap = clocks.between(first.node, second.node)
    asked_after = first.start + gap < second.asked if gap else first.index < second.asked_index
    return asked_after and first.believed_end + gap <= second.start


def drawn(random):
    """Holds that are asked for early and granted late, each with a write at some other time."""
    story, many = Story(), random.randint(2, 9)
    tokens = random.choice((0, 0, 0.5, 1))
    numbered = random.choice((1, 1, 0.5, 0))
    numbers = random.sample(range(1, 20), many)
    for n in range(many):
        asked = random.randrange(30)
        at = asked + random.choice((0, 1, 4, 12))
        until = at + random.choice((-1, 1, 3, 10))
        token = random.randint(1, 5) if random.random() < tokens else None
        lock = random.choice(("orders", "orders", "orders", "invoices"))
        story.grant(n, f"h{n}", at, until, asked=asked, token=token, lock=lock)
        sent = random.randint(at, 60)
        stored = numbers[n] if random.random() < numbered else None
        done = sent + random.choice((0, 3))
        story.write(n, sent, f"v{n}", None, stored, done=done, hold=f"h{n}")
    bounds = {f"client-{n}": {"bound_ns": random.choice((0, 1, 2)) * MS} for n in range(many)}
    return story.history(), {"clocks": bounds} if random.random() < 0.4 else {}


@given(st.integers(0, 2**32))
@settings(deadline=None, max_examples=400)
def test_a_write_is_stale_exactly_where_some_pair_shows_it(seed):
    history, test = drawn(Random(seed))
    clocks, held = Clocks(test), owners(holds(history, test))
    (register,) = registers(history, clocks)
    found = stale(register, held, Rulers(clocks))
    assert {write.value for write, _ in found} == pairwise(register.writes, held, clocks)
    for write, other in found:
        assert accepted_after(other, write, clocks)
        assert later(held[write.hold], held[other.hold], clocks)
