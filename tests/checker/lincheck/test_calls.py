"""Events become calls with values, positions and times; malformed events are refused."""

import pytest

from fencepost.checker.lincheck import UNKNOWN, BadHistory
from fencepost.checker.lincheck.history import Call, calls


def event(process, kind, f, value=None, **more):
    return {"process": process, "type": kind, "f": f, "value": value, **more}


def paired(*events, first_line=1):
    return list(calls(enumerate(events, first_line)))


def refused(*events):
    with pytest.raises(BadHistory) as caught:
        paired(*events)
    return caught.value.line, caught.value.reason


def test_a_call_has_its_request_and_answer_with_both_positions_and_times():
    told = paired(
        event(1, "invoke", "write", 5, time=10),
        event("b", "invoke", "read", time=20),
        event(1, "ok", "write", 6, time=30),
        event("b", "fail", "read", 7, time=40),
        first_line=100,
    )
    assert told == [
        Call(1, "write", "ok", 5, 6, 0, 2, 10, 30, 100),
        Call("b", "read", "fail", None, 7, 1, 3, 20, 40, 101),
    ]


def test_a_call_that_ended_info_or_never_has_no_result_and_no_end():
    told = paired(
        event(1, "invoke", "write", 5, time=10),
        event(2, "invoke", "cas", [1, 2], time=11),
        event(1, "info", "write", 6, time=30),
    )
    assert told == [
        Call(1, "write", "info", 5, UNKNOWN, 0, None, 10, None, 1),
        Call(2, "cas", "info", [1, 2], UNKNOWN, 1, None, 11, None, 2),
    ]


@pytest.mark.parametrize("f", ["lost", "renewed"])
def test_a_notice_is_a_call_by_itself_and_leaves_the_open_op_open(f):
    told = paired(
        event(1, "info", f, "x", time=5),
        event(1, "invoke", "acquire", "a", time=6),
        event(1, "info", f, "y", time=7),
        event(1, "ok", "acquire", "b", time=8),
    )
    assert told == [
        Call(1, f, "info", "x", UNKNOWN, 0, None, 5, None, 1),
        Call(1, f, "info", "y", UNKNOWN, 2, None, 7, None, 3),
        Call(1, "acquire", "ok", "a", "b", 1, 3, 6, 8, 2),
    ]


def test_a_notice_that_was_invoked_is_completed_like_any_op():
    told = paired(event(1, "invoke", "lost", "x"), event(1, "info", "lost", "y"))
    assert told == [Call(1, "lost", "info", "x", UNKNOWN, 0, None, None, None, 1)]


def test_a_notice_can_only_be_information():
    assert refused(event(1, "ok", "lost")) == (
        1,
        "process 1 completes lost, which it never invoked",
    )
    opened = event(1, "invoke", "read")
    line, reason = refused(opened, event(1, "ok", "lost"))
    assert (line, reason) == (2, "process 1 completes lost, but line 1 invoked read")


def test_the_nemesis_is_passed_over_and_keeps_its_place():
    told = paired(
        event("nemesis", "info", "kill"), {"process": "nemesis", "type": "x", "f": 3},
        event(1, "invoke", "read"),
    )  # fmt: skip
    assert told == [Call(1, "read", "info", None, UNKNOWN, 2, None, None, None, 3)]


def test_a_call_without_value_or_time_has_none():
    [call] = paired(
        {"process": 1, "type": "invoke", "f": "read"}, {"process": 1, "type": "ok", "f": "read"}
    )
    assert call == Call(1, "read", "ok", None, None, 0, 1, None, None, 1)


@pytest.mark.parametrize(
    ("events", "line", "reason"),
    [
        ([event(1, "invoke", "read"), event(1, "invoke", "write")], 2,
         "process 1 invokes write, and its read of line 1 is still open"),
        ([event(1, "ok", "read")], 1, "process 1 completes read, which it never invoked"),
        ([event(1, "info", "read")], 1, "process 1 completes read, which it never invoked"),
        ([event(1, "done", "read")], 1, "type must be invoke, ok, fail or info, not 'done'"),
        ([event(1, "invoke", "read"), event(1, "done", "read")], 2,
         "type must be invoke, ok, fail or info, not 'done'"),
        ([event(1, "invoke", "read"), event(1, "ok", "write")], 2,
         "process 1 completes write, but line 1 invoked read"),
        ([event(True, "invoke", "read")], 1,
         'process must be an integer, a name or "nemesis", not True'),
        ([event(1.5, "invoke", "read")], 1,
         'process must be an integer, a name or "nemesis", not 1.5'),
        ([event(1, "invoke", 3)], 1, "f must be a name, not 3"),
        ([event("a", "invoke", None)], 1, "f must be a name, not None"),
        ([event(1, "invoke", "read", time=0.5)], 1, "time must be an integer of ns, not 0.5"),
        ([event(1, "invoke", "read", time=True)], 1, "time must be an integer of ns, not True"),
        ([{"process": 1}], 1, "the event has no type and no f"),
        ([{"type": "ok", "f": "x"}], 1, "the event has no process"),
        ([[1]], 1, "an event must be a mapping, this is [1]"),
    ],
)  # fmt: skip
def test_events_that_break_the_shape_of_a_history_are_refused(events, line, reason):
    assert refused(*events) == (line, reason)


def test_a_complaint_names_the_place_as_far_as_it_is_known():
    assert str(BadHistory("why")) == "history: why"
    assert str(BadHistory("why", 3)) == "history:3: why"
    assert str(BadHistory("why", 3, "file")) == "file:3: why"
    assert str(BadHistory("why", file="file")) == "file: why"
    assert BadHistory("why", 3, "file").args == ("why", 3, "file")


def test_a_place_is_filled_in_only_where_it_was_not_known():
    assert str(BadHistory("why").at(4, "file")) == "file:4: why"
    assert str(BadHistory("why", 3, "here").at(4, "file")) == "here:3: why"
    assert str(BadHistory("why", 3).at(file="file")) == "file:3: why"


def test_an_unknown_result_is_shown_as_a_question_mark():
    assert repr(UNKNOWN) == "?"


@pytest.mark.parametrize("kind", ["ok", "fail", "info"])
def test_no_completion_is_taken_for_an_unknown_type(kind):
    told = event(1, kind, "write")
    assert refused(told) == (1, "process 1 completes write, which it never invoked")
