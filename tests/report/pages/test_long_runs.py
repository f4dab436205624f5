"""The page of a long run draws the violations, and counts the rest."""

from __future__ import annotations

import json
import random
import re
from html import unescape

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fencepost.report.figures import focus as focusing
from fencepost.report.figures import sampling as drawing
from fencepost.report.figures.blocks import blocks
from fencepost.report.figures.focus import apart, focus
from fencepost.report.figures.lanes import Lanes
from fencepost.report.figures.recorded import STATES, recorded
from fencepost.report.figures.sampling import Mention, drawn
from fencepost.report.figures.timeline import timeline
from fencepost.report.pages.run import render

SECOND = 10**9


@pytest.fixture
def room(monkeypatch):
    """Return a page that draws some 30 holds one by one, in a run of 10 blocks."""
    monkeypatch.setattr(focusing, "HOLDS", 30)
    monkeypatch.setattr(focusing, "BLOCKS", 10)


@pytest.fixture
def night(story):
    """Take a hundred turns in 40 s, and at 20 s grant a hold during another."""
    for turn in range(100):
        story.turn(turn * 400, turn % 2)
    first = story.acquire(20_020, 2)
    second = story.acquire(20_040, 3)
    story.release(20_060, 2, first)
    story.release(20_080, 3, second)
    return story


def rows(table):
    return [dict(zip(table["columns"], row, strict=True)) for row in table["rows"]]


def test_around_a_violation_everything_is_drawn(room, night):
    history = night.history()
    found = drawn(history, {})
    assert [clash.leased for clash in found.clashes] == [False, True]
    assert found.counted_clashes == []
    whole = [hold for hold in [*found.holds, *found.counted] if 19.02 < hold.start / SECOND < 21.06]
    assert len(whole) == 7
    assert {hold.name for hold in whole} <= {hold.name for hold in found.holds}
    near = [write for write in recorded(history).writes if 19.02 < write.time / SECOND < 21.06]
    shown = {write.number for write in found.recorded.writes}
    assert len(near) == 5 and {write.number for write in near} <= shown


def test_violations_on_the_page_come_first_and_their_holds_are_always_drawn(room, night):
    told = [Mention(30 * SECOND, 30 * SECOND, ["h1"]), Mention(5 * SECOND, 5 * SECOND)]
    found = drawn(night.history(), {}, told)
    assert "h1" in {hold.name for hold in found.holds}
    assert found.focus.shows(29 * SECOND) and found.focus.shows(31 * SECOND - 1)
    assert found.focus.shows(5 * SECOND)
    monopoly = [Mention(at * SECOND, at * SECOND) for at in range(0, 16, 2)]
    assert drawn(night.history(), {}, monopoly).clashes == []


def test_a_run_is_drawn_whole_if_it_is_short(night):
    found = drawn(night.history(), {})
    assert found.counted == found.counted_clashes == found.shaded == []
    assert found.numbers() == {"holds": (102, 102), "writes": (100, 100), "overlaps": (2, 2),
                               "faults": (0, 0)}  # fmt: skip


@pytest.mark.parametrize("seed", range(30))
def test_drawn_and_counted_holds_add_up_to_all_holds(monkeypatch, story, seed):
    chance = random.Random(seed)
    for turn in range(60):
        at = turn * 100 + chance.random() * 150
        hold = story.acquire(at, turn % 5)
        version = story.read(at + 7, turn % 5)
        story.write(at + 9, turn % 5, hold, version, refused=chance.random() < 0.3)
        story.release(at + 12 + chance.random() * 300, turn % 5, hold)
        if chance.random() < 0.3:
            story.fault(at, at + chance.random() * 300, "pause", ["redis-1"])
    history = story.history()
    whole = drawn(history, {})
    monkeypatch.setattr(focusing, "HOLDS", chance.randrange(5, 50))
    monkeypatch.setattr(focusing, "_NEAR_NS", 10**8)
    monkeypatch.setattr(drawing, "LONG", 2)
    found = drawn(history, {})
    lanes = Lanes({}, {hold.node for hold in whole.holds}, [])
    counted = rows(blocks(found, lanes))
    assert sorted(h.name for h in [*found.holds, *found.counted]) == sorted(
        hold.name for hold in whole.holds
    )
    assert sum(row["holds"] for row in counted) == len(found.counted) > 0
    for state in STATES:
        shown = sum(write.state == state for write in found.recorded.writes)
        assert shown + sum(row[state] for row in counted) == sum(
            write.state == state for write in whole.recorded.writes
        )
    clashes = len(found.clashes) + sum(row["overlaps"] for row in counted)
    assert clashes == len(whole.clashes)
    assert [*whole.faults] == sorted([*found.faults, *found.shaded], key=whole.faults.index)


spans = st.lists(
    st.tuples(st.integers(-100, 2000), st.integers(1, 300)).map(lambda s: (s[0], s[0] + s[1])),
    max_size=8,
)


@given(spans, st.integers(-50, 1500))
def test_every_moment_of_a_run_is_in_one_span_or_in_one_block(given_spans, time):
    found = focus(10**9, [], given_spans, 1500)
    assert found.shows(time) == any(start <= time < end for start, end in given_spans)
    within = [number for number, (start, end) in enumerate(found.blocks) if start <= time < end]
    if 0 <= time < 1500 and not found.shows(time):
        assert within == [found.block(time)]
    else:
        assert within == []


@given(spans, st.integers(0, 100), spans)
def test_shades_that_lie_near_are_one_but_not_in_focus(given_spans, least, in_focus):
    sharp = focus(10**9, [], in_focus, 1500)
    found = apart(given_spans, least, sharp)
    for time in range(-100, 2300, 7):
        covered = any(start <= time < end for start, end in given_spans)
        shaded = any(start <= time < end for start, end in found)
        assert shaded == covered if sharp.shows(time) else shaded >= covered
    assert found == sorted(found)


def test_a_fault_that_is_not_drawn_shades_the_lane_of_its_node(room, night):
    for at in range(2000, 38_000, 500):
        night.fault(at, at + 100, "pause", ["redis-1"])
    found = drawn(night.history(), {"clients": ["client-1"], "servers": ["redis-1"]})
    tables = timeline(found, {"servers": ["redis-1"]})
    assert len(found.faults) < len(found.faults) + len(found.shaded) == 72
    server = [row["name"] for row in rows(tables["lanes"])].index("redis-1")
    shades = [(row["start"], row["until"]) for row in rows(tables["shades"])]
    assert {row["lane"] for row in rows(tables["shades"])} == {server}
    for fault in found.shaded:
        assert any(start <= fault.start / 1000 <= until for start, until in shades)
    for fault in found.faults:
        assert not any(start <= fault.start / 1000 <= until for start, until in shades)


def test_the_page_says_how_many_holds_are_not_drawn(room, store, night):
    html = render(store(night)).read_text()
    assert "This run is too long to draw in full" in html
    said = re.search(r"one by one:\s(.*?)\. The rest", unescape(html), re.S)
    assert re.fullmatch(
        r"(\d+) of 102 holds, (\d+) of 100 writes, 2 of 2 overlaps\s+and (\d+) of 102 acquires",
        said.group(1),
    )


def test_the_page_of_a_short_run_says_nothing_of_it(store, night):
    assert "too long" not in render(store(night)).read_text()


@pytest.mark.oracle
def test_the_page_of_a_run_of_any_length_is_small(store, story):
    """Every hold overlaps another, every write is refused, and faults never cease."""
    for turn in range(12_000):
        hold = story.acquire(turn * 20, turn % 3, took=1)
        story.write(turn * 20 + 2, turn % 3, hold, 0, refused=True, value="long " * 500)
        story.release(turn * 20 + 40, turn % 3, hold)
        if turn % 4 == 0:
            story.fault(turn * 20, turn * 20 + 30, "pause", ["redis-1"], states={"redis-1": "T"})
    page = render(store(story, checked=False, time_s=300))
    assert page.stat().st_size < 8_000_000
    html = page.read_text()
    assert html.count("<tr>") < 500
    assert "2,800 more, which are in results.json" in html


@pytest.mark.oracle
def test_writes_without_end_are_counted_where_nothing_is_held(story):
    """A history of another tool may have no lock at all."""
    for turn in range(70_000):
        value = {"resource": "register", "value": turn, "version": turn}
        story.op(turn, turn % 2, "invoke", "write", value=value)
        story.op(turn + 0.5, turn % 2, "ok", "write", value=value)
    found = drawn(story.history(), {})
    tables = timeline(found, {})
    assert len(found.recorded.writes) == 0
    assert sum(row["accepted"] for row in rows(tables["blocks"])) == 70_000
    assert len(json.dumps(tables)) < 1_000_000


def test_of_two_writes_of_one_value_none_is_proved_by_a_read(story):
    value = {"resource": "register", "value": "v1", "version": 0}
    for process in (0, 1):
        story.op(100 + process, process, "invoke", "write", value=value)
        story.op(150 + process, process, "info", "write", value=value, error=["timeout", "late"])
    story.versions = 1
    story.read(200, 2)
    states = [write.state for write in recorded(story.history()).writes]
    assert states == ["unknown", "unknown"]
