"""One picture shows why two believed: both holds, the granting servers, the active faults."""

from __future__ import annotations

from fencepost.checker.facts.faults import Fault
from fencepost.checker.facts.holds import holds
from fencepost.report.figures.overlap_diagram import look
from tests.histories import MS, Story

TEST = {"servers": ["redis-1", "redis-2", "redis-3"], "clients": ["client-1", "client-2"]}
JUMP = Fault(
    "jump", "clock", ["redis-2"], {"words": "redis-2 jumps"}, 300 * MS, 700 * MS, True, True
)
PIECE = {
    "holds": ["h1", "h2"],
    "time_ns": 600 * MS,
    "until_ns": 1000 * MS,
    "cause": [
        {"what": "redis-2 granted both", "time_ns": 600 * MS, "sure": True},
        {"what": "it forgot", "time_ns": 300 * MS, "sure": False},
    ],
}


def found(released=None):
    story = Story()
    if released is not None:
        answer = {"hold": "h1", "deadline": 1000 * MS, "granted_by": TEST["servers"]}
        story.call(1, "acquire", 0, 0, {"lock": "orders", "ttl": 1000 * MS}, answer)
        story.release(1, "h1", at=released)
        answer = answer | {"hold": "h2", "deadline": 2000 * MS}
        story.call(2, "acquire", 600, 600, {"lock": "orders", "ttl": 1000 * MS}, answer)
        return holds(story.history(), TEST)
    for process, name, at, servers in (
        (1, "h1", 0, ["redis-1", "redis-2"]),
        (2, "h2", 600, ["redis-2", "redis-3"]),
    ):
        asked = {"lock": "orders", "ttl": 1000 * MS}
        answer = {"hold": name, "deadline": (at + 1000) * MS, "granted_by": servers}
        story.call(process, "acquire", at, at, asked, answer)
    return holds(story.history(), TEST)


def shown(piece=PIECE, on=(JUMP,)):
    return look([{"what": "no holds"}, piece], found(), list(on), TEST)


def test_each_server_s_row_shows_its_grants_and_the_one_that_granted_both_is_highlighted():
    picture = shown()
    assert [(row.said, row.twice) for row in picture.rows[2:]] == [
        ("granted hold h1", False),
        ("granted both", True),
        ("granted hold h2", False),
    ]
    assert [row.name for row in picture.rows[2:]] == TEST["servers"]
    assert picture.rows[3].faults == ["redis-2 jumps"]
    assert {bar.what for bar in picture.rows[3].bars} == {"both", "fault", "vote one", "vote two"}


def test_the_cause_is_described_in_order_of_time_and_inferred_parts_are_marked():
    assert [(step.what, step.sure) for step in shown().steps] == [
        ("it forgot", False),
        ("redis-2 granted both", True),
    ]


def test_every_bar_lies_within_the_picture():
    for row in shown().rows:
        for bar in row.bars:
            assert 0 <= bar.left <= bar.left + bar.width <= 100.001


def test_a_fault_that_hit_most_nodes_is_named_once():
    everywhere = Fault("all", "disk", TEST["servers"], {"words": "slow"}, 0, None, True, True)
    picture = shown(on=(JUMP, everywhere))
    assert picture.common == ["slow"]
    assert [row.faults for row in picture.rows[2:]] == [[], ["redis-2 jumps"], []]


def test_evidence_about_no_two_holds_has_no_picture():
    assert shown(PIECE | {"holds": ["h1"]}) is None
    assert shown(PIECE | {"holds": ["h1", "gone"]}) is None
    assert shown(PIECE | {"time_ns": None}) is None


def test_a_server_that_granted_again_after_a_release_is_not_accused():
    picture = look([PIECE], found(released=500), [], TEST)
    assert {(row.said, row.twice) for row in picture.rows[2:]} == {
        ("granted hold h1 and then h2", False)
    }
