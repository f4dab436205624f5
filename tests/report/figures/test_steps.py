"""Plain steps are read strictly, and drawn where they belong."""

from __future__ import annotations

from itertools import pairwise

import pytest

from fencepost.report.figures.steps import Step, lanes, read, sentence
from fencepost.report.figures.steps_drawing import drawing

STORY = (
    "A > redis: SET job NX",
    "redis > A: OK",
    "A holds",
    "A pauses: for 4 s",
    "... the TTL passes",
    "A loses",
    "B > redis: SET job NX",
    "redis >x B: OK",
    "B > redis: SET job NX",
    "redis >.. B: OK",
    "redis ..> B",
    "B holds: at last",
    "A resumes",
    "A: acquired is True",
    "! two holders",
)


def test_each_form_is_a_step():
    found = read(STORY, "row")
    assert [one.kind for one in found] == [
        ">", ">", "holds", "pauses", "...", "loses", ">", ">x", ">", ">..", "..>", "holds",
        "resumes", "note", "!",
    ]  # fmt: skip
    assert found[0] == Step(">", "A", "redis", "SET job NX")
    assert found[10] == Step("..>", "redis", "B")
    assert found[11] == Step("holds", "B", words="at last")
    assert found[13] == Step("note", "A", words="acquired is True")
    assert lanes(found) == ["A", "redis", "B"]


@pytest.mark.parametrize("line", [
    "", "A", "A sleeps", "A -> redis: x", "A > redis", "A > redis:", "A >redis: x",
    "A ..> redis: x", "A B: x", "A holds now", "!", "...", "! ", " A: x", "A: `x`",
    "two words > redis: x", "A > redis: " + "x" * 47, "... " + "x" * 47,
])  # fmt: skip
def test_a_line_of_another_form_is_an_error_that_names_row_and_step(line):
    with pytest.raises(ValueError, match=r"^row, step 2, "):
        read(["A: begins", line], "row")


@pytest.mark.parametrize("lines", [
    ["A > A: x"],
    ["A dies", "A > redis: x"],
    ["A pauses", "A >x redis: x"],
    ["A pauses", "A >.. redis: x"],
    ["A is cut off", "A > redis: x"],
    ["redis dies", "A > redis: x"],
    ["redis pauses", "A > redis: x"],
    ["redis is cut off", "A > redis: x"],
    ["A ..> redis"],
    ["A >.. redis: x", "redis ..> A"],
    ["A >.. redis: x", "A ..> redis", "A ..> redis"],
    ["A >.. redis: x", "redis dies", "A ..> redis"],
    ["A resumes"],
    ["A pauses", "A starts"],
    ["A pauses", "B resumes"],
    ["A pauses", "A resumes", "A resumes"],
    ["A pauses", "A pauses"],
    ["A dies", "A pauses"],
    ["A is cut off", "A is cut off"],
    ["A holds", "A holds"],
    ["A pauses", "A holds"],
    ["A loses"],
    ["A frees"],
    ["A holds", "A loses", "A loses"],
    ["A holds", "A frees", "A loses"],
    ["A holds", "A frees", "A frees"],
    ["A holds", "B frees"],
])  # fmt: skip
def test_a_step_that_cannot_follow_is_an_error(lines):
    with pytest.raises(ValueError, match=rf"^row, step {len(lines)}, "):
        read(lines, "row")


@pytest.mark.parametrize("lines", [
    ["A is cut off", "A >x redis: x", "A is back", "A > redis: x"],
    ["A >.. redis: x", "A dies", "A ..> redis"],
    ["redis pauses", "A >.. redis: x", "redis resumes", "A ..> redis"],
    ["A is cut off", "A dies", "A starts", "A is back", "A > redis: x"],
    ["A holds", "A loses", "A frees", "A holds", "A frees"],
    ["A holds", "A pauses", "A loses", "A: sees nothing"],
])  # fmt: skip
def test_a_step_that_can_follow_is_read(lines):
    assert len(read(lines, "row")) == len(lines)


def test_a_request_and_its_answer_are_one_row():
    drawn = drawing(["A > redis: GET", "redis > A: nil", "! x"], "row")
    asked, answered = drawn.lines
    assert (asked.x1, asked.x2) == (25, 75) and (answered.x1, answered.x2) == (75, 25)
    assert answered.y1 == asked.y2 and asked.head and answered.head
    (label, _) = drawn.labels
    assert (label.text, label.answer, label.anchor) == ("GET", "→ nil", "start")


@pytest.mark.parametrize("lines", [
    ["A > redis: GET", "redis >x A: nil"],
    ["A > redis: GET", "A: waits", "redis > A: nil"],
    ["A > redis: " + "x" * 40, "redis > A: nil nil"],
    ["A > redis: GET", "redis > B: nil"],
])  # fmt: skip
def test_other_messages_have_a_row_each(lines):
    assert not any(label.answer for label in drawing(lines, "row").labels)


def test_an_answer_is_no_request_of_what_follows_it():
    lines = ["A > redis: GET", "A: waits", "redis > A: nil", "A > redis: SET", "redis > A: OK"]
    found = [label for label in drawing(lines, "row").labels if label.answer]
    assert [(label.text, label.answer) for label in found] == [("SET", "→ OK")]


def test_a_lost_message_ends_at_a_cross_before_its_lane():
    drawn = drawing(["A >x redis: GET"], "row")
    (line,), (cross,) = drawn.lines, drawn.crosses
    assert line.what == "lost" and not line.head and cross == (line.x2, line.y2)
    assert 25 < line.x2 < 75


def test_a_held_message_arrives_where_its_step_says_and_otherwise_never():
    lines = ["A >.. redis: one", "A >.. redis: two", "redis: waits", "A ..> redis"]
    drawn = drawing(lines, "row")
    arrived, left = drawn.lines
    assert arrived.y1 < left.y1  # the first sent arrives first
    assert arrived.head and arrived.x2 == 75 and arrived.what == left.what == "late"
    waits = next(label for label in drawn.labels if label.text == "waits")
    assert arrived.y2 > waits.y
    assert not left.head and left.x2 < 75 and left.y2 > arrived.y2
    assert drawn.fates == ["late"]


def test_a_bar_spans_from_its_step_to_the_one_that_ends_it():
    drawn = drawing(STORY, "row")
    bars = {bar.what: bar for bar in drawn.bars}
    assert set(bars) == {"hold one", "past one", "hold two", "stop"}
    held, past, other, stop = (bars[k] for k in ("hold one", "past one", "hold two", "stop"))
    assert held.x == past.x == stop.x and held.x < other.x
    assert held.y + held.height == past.y
    assert held.y < stop.y < past.y < other.y < stop.y + stop.height
    assert past.y + past.height == other.y + other.height == drawn.height
    assert stop.title == "client A pauses: for 4 s" and stop.family == "fault"
    assert drawn.marks == [(stop.x, stop.y, "fault")]


def test_a_hold_that_was_lost_ends_where_its_client_frees_it():
    drawn = drawing(["A holds", "A loses", "A frees", "A: works on"], "row")
    held, past = drawn.bars
    assert (held.what, past.what) == ("hold one", "past one")
    assert held.y + held.height == past.y and past.y + past.height < drawn.height - 20


def test_a_message_that_does_not_fit_next_to_its_lane_on_a_phone_is_at_the_edge_there():
    lines = [f"A > redis: {'x' * 44}", f"A > redis: {'x' * 30}", f"B > redis: {'x' * 46}"]
    drawn = drawing(lines, "row")
    assert [label.narrow for label in drawn.labels] == [True, False, True]


def test_a_cut_and_a_death_have_bars_of_their_own_and_a_third_holder_another_colour():
    lines = ["A is cut off", "B dies", *(f"{one} holds" for one in "CDE")]
    bars = [(bar.what, bar.family) for bar in drawing(lines, "row").bars]
    assert bars == [
        ("fault", "fault"), ("stop", "fault"), ("hold one", ""), ("hold two", ""),
        ("hold more", ""),
    ]  # fmt: skip


def test_the_defect_is_the_title_and_a_line_across():
    drawn = drawing(STORY, "row")
    assert drawn.title == "Two holders"
    (moment,) = drawn.moments
    (label,) = [one for one in drawn.labels if one.what == "broken"]
    assert label.x == 50 and moment.y < label.y < drawn.height
    assert len(drawn.cuts) == 1 and not drawn.stamps


def test_rows_go_down_and_no_text_covers_another():
    places = [label.y for label in drawing(STORY, "row").labels]
    assert all(after - before >= 10 for before, after in pairwise(places))


def test_the_words_say_each_step():
    drawn = drawing(STORY, "row")
    assert len(drawn.said) == len(STORY) and drawn.arrows == 6
    assert drawn.said[0] == "client A to redis: SET job NX"
    assert drawn.said[2] == "client A holds the lock"
    assert drawn.said[7] == "redis to client B: OK (lost)"
    assert drawn.said[9] == "redis to client B: OK (held up)"
    assert drawn.said[10] == "redis to client B: the message that was held up arrives"
    assert drawn.said[11] == "client B holds: at last"
    assert drawn.said[4] == "Time passes: the TTL passes"
    assert drawn.said[-1] == "The defect: two holders"
    assert sentence(Step("note", "etcd-1", words="leads")) == "etcd-1: leads"
