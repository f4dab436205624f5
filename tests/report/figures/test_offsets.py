"""A run's page draws clocks as receipts saw them, and as faults moved them in between."""

from __future__ import annotations

from fencepost.checker.history.history import History, Op
from fencepost.report.figures.offsets import CLOCKS, courses, offsets

S = 1_000_000_000


def look(begun, seen, phase, arguments, receipt, fault="clock-1"):
    value = {"fault": fault, "phase": phase, "targets": ["redis-1"], "arguments": arguments}
    answer = value | {"receipt": {"proved": True, "offset_bounds_s": receipt}}
    return [
        Op(0, begun * S, "nemesis", "invoke", "clock", value=value),
        Op(0, seen * S, "nemesis", "ok", "clock", value=answer),
    ]


def history(*looks, end=20):
    ops = [op for pair in looks for op in pair]
    last = {"fault": "other", "phase": "start", "targets": []}
    return History([*ops, Op(0, end * S, "nemesis", "invoke", "pause", value=last)])


def points(course):
    return [(time / S, round(offset, 6)) for time, offset in course.points]


def test_a_jump_stays_off_until_the_clock_is_set_right():
    jump = {"kind": "jump", "offset_s": 4.0}
    (course,), _ = courses(
        history(
            look(2, 3, "start", jump, {"redis-1": {"wall": [3.5, 4.5]}}),
            look(8, 9, "end", jump, {"redis-1": {"wall": [-0.5, 0.5]}}),
        )
    )
    assert (course.node, course.clock) == ("redis-1", "wall")
    assert course.seen == [(3 * S, 3.5, 4.5), (9 * S, -0.5, 0.5)]
    assert points(course) == [(0, 0), (2, 0), (3, 4), (8, 4), (9, 0), (20, 0)]


def test_a_drift_grows_at_its_rate_until_it_ends_or_the_run_does():
    drift = {"kind": "drift", "rate": 1.5}
    (course,), _ = courses(
        history(look(2, 4, "start", drift, {"redis-1": {"wall": [0.9, 1.1]}}), end=10)
    )
    assert points(course) == [(0, 0), (2, 0), (4, 1), (10, 4)]


def test_a_clock_fault_that_alternates_is_a_box():
    strobe = {"kind": "strobe", "offset_s": -2.0, "period_s": 0.1}
    (course,), _ = courses(
        history(
            look(1, 2, "start", strobe, {"redis-1": {"wall": None}}),
            look(6, 7, "end", strobe, {"redis-1": {"wall": [-0.1, 0.1]}}),
        )
    )
    box = [(2, 0), (2, -2), (6, -2), (6, 0), (2, 0), (6, 0)]
    found = points(course)
    assert found[found.index(box[0]) :][: len(box)] == box


def test_each_clock_of_a_node_goes_its_own_way_and_too_many_are_counted():
    seen = {f"redis-{number}": {"wall": [1, 1], "monotonic": [2, 2]} for number in range(CLOCKS)}
    tables = offsets(history(look(1, 2, "start", {"kind": "jump"}, seen)))
    names = [row[:2] for row in tables["clocks"]["rows"]]
    assert names[:2] == [["redis-0", "wall"], ["redis-0", "monotonic"]]
    assert (len(names), tables["left_out"]) == (CLOCKS, CLOCKS)
    assert tables["nodes"] == sorted(seen)


def test_a_hidden_clock_has_no_line_until_it_is_seen_again():
    jump = {"kind": "jump", "offset_s": 5.0}
    first = look(1, 2, "start", jump, {"a": {"monotonic": None}, "b": {"monotonic": None}})
    second = look(6, 7, "end", jump, {"a": {"monotonic": [4.0, 6.0]}})
    tables = offsets(history(first, second, end=9))
    assert tables["clocks"]["rows"] == [
        ["a", "monotonic", [[0, 0], [1e6, 0], [2e6, None], [6e6, None], [7e6, 5], [9e6, 5]]]
    ]
    assert (tables["hidden"], tables["nodes"]) == (["b, monotonic"], ["a", "b"])


def test_an_invalid_receipt_is_no_observation():
    for junk in ({"redis-1": {"wall": ["a", None]}}, {"redis-1": 7}, "none", [1]):
        found, _ = courses(history(look(1, 2, "start", {"rate": "fast"}, junk)))
        assert [course.seen for course in found] in ([], [[]])
