"""Missing writes and lost updates, compared with a check of every pair of answers."""

from __future__ import annotations

from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from fencepost.checker.facts.clocks import Clocks
from fencepost.checker.facts.lost_updates import lost, missing
from fencepost.checker.facts.time_order import Axes, tied
from fencepost.checker.facts.writes import registers
from tests.histories import MS, Story


def judged(history, test):
    clocks = Clocks(test)
    (register,) = registers(history, clocks)
    return register, clocks, Axes(clocks, tied(history))


def reasons(found):
    return {write.value: why for write, why in found}


def losses(register, axes):
    return [(found.write, found.why) for found in lost(register, axes)]


def gone(write, register, clocks):
    """Return whether an acknowledged write is missing, by the definition."""
    reached = write.stored
    if reached is None and write.built_on is not None:
        reached = write.built_on + 1
    if not write.acknowledged or reached is None:
        return False
    lower = any(
        read.call.value["version"] < reached
        or (read.call.value["version"] == write.stored and read.call.value["value"] != write.value)
        for read in register.reads
        if clocks.before(write.applied, read.call.begin)
    )
    again = any(
        other.stored is not None and other.stored <= reached
        for other in register.writes
        if clocks.before(write.applied, other.sent)
    )
    return lower or again or gave_way(write, register)


def gave_way(write, register):
    """Return whether the resource gave the write's version to another acknowledged write too."""
    shown = [(read.call.value["version"], read.call.value["value"]) for read in register.reads]
    twins = [w for w in register.writes if w.acknowledged and w.stored == write.stored is not None]
    claims = [((w.stored, w.value) in shown, w.begin) for w in twins]
    return bool(twins) and max(claims) != ((write.stored, write.value) in shown, write.begin)


def drawn(random):
    """Answers of a store that gives few versions to many writes."""
    story, many = Story(), random.randint(1, 5)
    span = random.choice((8, 30))
    for n in range(many):
        at = random.randrange(span)
        stored = random.randint(1, 3) if random.random() < 0.8 else None
        type = "ok" if random.random() < 0.8 else "info"
        base = random.choice((None, 0, 1, 2))
        done = at + random.choice((0, 2, 6))
        story.write(n, at, f"v{n}", base, stored if type == "ok" else None, done=done, type=type)
    for n in range(random.randint(0, 5)):
        at, value = random.randrange(span), f"v{random.randrange(many)}"
        version = random.randint(1, 3)
        story.read(many + n, at, value, version, done=at + random.choice((0, 2, 6)))
    nodes = [f"client-{n}" for n in range(many + 5)]
    bounds = {node: {"bound_ns": random.choice((0, 1, 2)) * MS} for node in nodes}
    return story.history(), {"clocks": bounds} if random.random() < 0.4 else {}


@given(st.integers(0, 2**32))
@settings(max_examples=800)
def test_a_write_is_missing_exactly_where_some_other_answer_shows_it(seed):
    history, test = drawn(Random(seed))
    register, clocks, axes = judged(history, test)
    expected = {write.value for write in register.writes if gone(write, register, clocks)}
    assert set(reasons(missing(register, axes))) == expected


def test_each_proof_of_a_missing_write_names_its_observation():
    story = Story()
    story.write(1, 10, "a", 4, 5)
    story.write(2, 20, "b", 1, 2, done=30)
    story.write(3, 25, "c", 1, 2, done=35)
    story.write(4, 50, "d", 5, 6)
    story.write(5, 45, "e", 6, type="info", done=90)
    story.read(6, 70, "e", 6, done=80)
    register, _, axes = judged(story.history(), {})
    assert reasons(missing(register, axes)) == {
        "a": "version 2 was given again, to the write 'c' of process 3",
        "b": "version 2 was given twice, to the write 'c' of process 3",
        "d": "version 6, its own, was read as 'e' by process 6 at 0.070 s",
    }


def test_a_version_given_again_to_a_write_that_was_sent_later_is_proof_before_any_later_read():
    story = Story()
    story.read(3, 5, "b", 1, done=30)
    story.write(1, 10, "a", 0, 1)
    story.write(2, 20, "b", 0, type="info", done=40)
    register, _, axes = judged(story.history(), {})
    assert set(reasons(missing(register, axes))) == {"a"}


def test_reads_that_agree_hide_none_that_does_not():
    story = Story()
    story.write(2, 5, "b", 0, type="info", done=90)
    story.write(1, 6, "a", 0, 1)
    story.read(3, 10, "b", 1)
    story.read(3, 20, "a", 1)
    story.read(3, 30, "a", 1)
    register, _, axes = judged(story.history(), {})
    assert set(reasons(missing(register, axes))) == {"a"}


def test_a_version_that_existed_before_a_write_was_sent_is_proved_by_its_reader():
    """Two writes wrote x, and neither is proved to be the one."""
    story = Story()
    story.write(3, 1, "x", None, type="info")
    story.write(4, 1, "x", None, type="info")
    story.read(1, 10, "x", 5)
    story.write(2, 20, "b", 3)
    register, _, axes = judged(story.history(), {})
    assert reasons(losses(register, axes)) == {
        "b": "version 5 existed before it was sent: process 1 had read it"
    }


def test_a_version_that_was_given_before_a_write_was_sent_proves_a_lost_update():
    story = Story()
    story.write(1, 10, "a", 4, 5)
    story.write(2, 20, "b", 3)
    register, _, axes = judged(story.history(), {})
    assert reasons(losses(register, axes)) == {
        "b": "version 5 existed before it was sent: it was given to the write 'a'"
    }


def test_a_read_of_a_lower_version_is_quoted_as_proof():
    story = Story()
    story.write(3, 5, "x", None, type="info")
    story.write(1, 10, "a", 4)
    story.read(2, 20, "x", 4)
    register, _, axes = judged(story.history(), {})
    assert reasons(missing(register, axes)) == {"a": "process 2 read version 4, 'x', at 0.020 s"}


def test_a_write_that_says_no_base_does_not_hide_two_that_say_the_same():
    story = Story()
    story.write(1, 10, "x", None, 1)
    story.write(2, 20, "a", 1)
    story.write(3, 30, "b", 1)
    register, _, axes = judged(story.history(), {})
    assert reasons(losses(register, axes)) == {
        "b": "the write 'a' of process 2 built on it as well"
    }


def test_the_version_of_an_unacknowledged_write_comes_from_a_read():
    story = Story()
    asked = {"resource": "account", "value": "a", "version": 0}
    story.call(1, "write", 10, 11, asked, {"stored": 7}, "info", ["timeout", "-"])
    story.read(2, 20, "a", 1)
    register, _, _ = judged(story.history(), {})
    assert [write.stored for write in register.writes] == [1]


def test_a_read_before_a_write_was_acknowledged_hides_no_later_read():
    story = Story()
    for n, value in ((2, "z"), (3, "y"), (4, "b")):
        story.write(n, 1, value, 0, type="info", done=900)
    story.write(1, 5, "a", 0, 1, done=100)
    story.read(5, 50, "z", 1)
    story.read(5, 60, "y", 1)
    story.read(5, 200, "b", 1)
    register, _, axes = judged(story.history(), {})
    assert set(reasons(missing(register, axes))) == {"a"}
