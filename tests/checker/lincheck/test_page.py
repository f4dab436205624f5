"""The data of the page: which parts of an object it draws, and which it omits."""

import json
from dataclasses import replace

import pytest

from fencepost.checker.lincheck import check
from fencepost.checker.lincheck.page import (
    LONGEST_STATE,
    MOST_DRAWN,
    MOST_OBJECTS,
    _way,
    page,
    page_data,
)


def event(process, kind, f, value=None, **more):
    return {"process": process, "type": kind, "f": f, "value": value, **more}


def on(resource, value):
    return {"resource": resource, "value": value}


def seen(read):
    """Return a write of 1 in the first resource, an open one of 2, and a read of `read`."""
    return [
        event(0, "invoke", "write", on("a", 1), time=10),
        event(0, "ok", "write", on("a", 1), time=20),
        event(1, "invoke", "write", on("a", 2), time=21),
        event(2, "invoke", "read", {"resource": "a"}, time=22),
        event(2, "ok", "read", on("a", read), time=33),
    ]


def data(events, model="register", init=0, **more):
    verdict = check(events, model, init=init, **more)
    return page_data("a file", verdict, verdict.evidence())


def step(op, text, before, after):
    return {"op": op, "text": text, "before": before, "after": after}


def op(id, process, text, returned, line, time, ended):
    return {"id": id, "process": process, "text": text, "returned": returned, "line": line,
            "time": time, "ended": ended}  # fmt: skip


WRITES = [op(0, 0, "write 1", 1, 1, 10, 20), op(2, 1, "write 2", None, 3, 21, None)]


def test_a_valid_object_is_drawn_with_one_way_to_explain_it():
    found = data(seen(2))
    seconds = found.pop("seconds")
    assert seconds == round(seconds, 6)
    assert found == {
        "file": "a file",
        "valid": True,
        "model": "register",
        "operations": 3,
        "reason": None,
        "objects_left_out": 0,
        "objects": [
            {
                "key": "a",
                "initial": "0",
                "left_out": 0,
                "ops": [*WRITES, op(3, 2, "read -> 2", 4, 4, 22, 33)],
                "ways": [
                    {
                        "steps": [
                            step(0, "write 1", "0", "1"),
                            step(2, "write 2", "1", "2"),
                            step(3, "read -> 2", "2", "2"),
                        ],
                        "skipped": 0,
                        "placed": 3,
                    }
                ],
                "ways_in_all": 0,
                "failed": None,
                "small": [],
                "minimal": False,
            }
        ],
    }


def test_a_failed_object_is_drawn_with_the_best_partial_orders_and_the_reasons_they_end():
    found = data(seen(7))
    [drawn] = found.pop("objects")
    assert (found["valid"], found["objects_left_out"]) == (False, 0)
    [way] = drawn.pop("ways")
    assert drawn == {
        "key": "a",
        "initial": "0",
        "left_out": 0,
        "ops": [*WRITES, op(3, 2, "read -> 7", 4, 4, 22, 33)],
        "ways_in_all": 1,
        "failed": 3,
        "small": [3],
        "minimal": True,
    }
    assert way["steps"] == [step(0, "write 1", "0", "1")]
    assert (way["state"], way["skipped"], way["placed"]) == ("1", 0, 1)
    assert way["blocked"] == [
        {"op": 3, "text": "read -> 7", "why": "can't read 7 from 1"},
        {"op": 2, "text": "write 2", "why": None},
    ]


def test_an_object_without_a_name_has_none():
    [drawn] = data([event(0, "invoke", "write", 1), event(0, "ok", "write", 1)])["objects"]
    assert drawn["key"] is None


def test_of_many_valid_objects_the_first_are_drawn_and_the_rest_counted():
    events = []
    for resource in range(MOST_OBJECTS + 3):
        events += [event(0, kind, "write", on(resource, 1)) for kind in ("invoke", "ok")]
    found = data(events)
    assert [drawn["key"] for drawn in found["objects"]] == [str(i) for i in range(MOST_OBJECTS)]
    assert found["objects_left_out"] == 3
    events += [event(1, "invoke", "read", on(1, None)), event(1, "ok", "read", on(1, 9))]
    found = data(events)
    assert [drawn["key"] for drawn in found["objects"]] == ["1"]
    assert found["objects_left_out"] == 0


def writes(count, process=0):
    for value in range(1, count + 1):
        yield from (event(process, kind, "write", value) for kind in ("invoke", "ok"))


def test_of_a_long_valid_object_the_beginning_is_drawn():
    [drawn] = data(list(writes(MOST_DRAWN + 20)))["objects"]
    assert [op["id"] for op in drawn["ops"]] == [2 * i for i in range(MOST_DRAWN)]
    assert drawn["left_out"] == 20
    [way] = drawn["ways"]
    assert (len(way["steps"]), way["skipped"], way["placed"]) == (
        MOST_DRAWN, 20, MOST_DRAWN + 20,
    )  # fmt: skip
    assert way["steps"][-1] == step(598, "write 300", "299", "300")


def test_of_a_long_failed_object_only_the_failure_and_its_surroundings_are_drawn():
    before, after = MOST_DRAWN + 20, 12
    read = [event(1, "invoke", "read"), event(1, "ok", "read", 5)]
    [drawn] = data([*writes(before), *read, *writes(after, 2)])["objects"]
    failed = 2 * before
    assert drawn["failed"] == failed
    ids = [op["id"] for op in drawn["ops"]]
    near = list(range(failed - 2 * (MOST_DRAWN - 1), failed + 1, 2))
    small = [op for op in drawn["small"] if op not in near]
    assert ids == [*small, *near, *(failed + 2 + 2 * i for i in range(8))]
    assert 8 in drawn["small"]  # the write of 5
    assert drawn["left_out"] == before + 1 + after - len(ids)
    [way] = drawn["ways"]
    assert way["placed"] == before
    assert way["skipped"] == before - len(way["steps"])
    assert way["steps"][-1]["after"] == way["state"] == str(before)
    first = way["steps"][len(small)]
    assert first["before"] == str(int(first["after"]) - 1)


def test_a_long_state_is_cut_in_its_middle():
    [drawn] = data([event(0, kind, "write", "x" * 300) for kind in ("invoke", "ok")])["objects"]
    half = LONGEST_STATE // 2
    assert drawn["ways"][0]["steps"][0]["after"] == "'" + "x" * (half - 1) + " ... " + (
        "x" * (half - 1) + "'"
    )
    exact = "x" * (LONGEST_STATE - 2)
    [drawn] = data([event(0, kind, "write", exact) for kind in ("invoke", "ok")])["objects"]
    assert drawn["ways"][0]["steps"][0]["after"] == f"'{exact}'"


def test_an_end_of_a_lease_is_a_step_without_an_op():
    grants = [
        event(process, kind, "acquire", {"ttl": 10}, time=time)
        for process, kind, time in [
            (0, "invoke", 0),
            (0, "ok", 1),
            (1, "invoke", 12),
            (1, "ok", 13),
        ]
    ]
    [drawn] = data(grants, "lease-mutex", init=None)["objects"]
    steps = drawn["ways"][0]["steps"]
    assert [one["op"] for one in steps] == [0, None, 2]
    assert steps[1]["text"].startswith("expire")


def test_an_unknown_verdict_draws_the_first_object_with_the_reason():
    verdict = check(
        [event(i, kind, "enqueue", i // 2) for kind in ("invoke", "ok") for i in range(200)],
        "fifo-queue", time_limit=0.05,
    )  # fmt: skip
    found = page_data("a file", verdict, verdict.evidence())
    assert found["valid"] == "unknown"
    assert found["reason"] == verdict.reason
    [drawn] = found["objects"]
    assert (drawn["ways"], drawn["failed"], drawn["left_out"]) == (
        [], None, 0,
    )  # fmt: skip


def test_seconds_have_microseconds_and_an_unknown_verdict_draws_one_object():
    verdict = check(
        [*seen(2), *[event(5, k, "write", on("b", 1)) for k in ("invoke", "ok")]], "register"
    )
    unknown = replace(verdict, valid="unknown", seconds=0.123456789)
    found = page_data("a file", unknown, unknown.evidence())
    assert found["seconds"] == 0.123457
    assert [drawn["key"] for drawn in found["objects"]] == ["a"]


def test_of_a_very_long_way_the_end_is_drawn():
    verdict = check(list(writes(1)), "register", init=0)
    [[step]] = verdict.evidence().linearizations.values()
    way = _way(verdict.model, (step,) * (3 * MOST_DRAWN + 5), {0})
    assert (len(way["steps"]), way["placed"]) == (3 * MOST_DRAWN, 3 * MOST_DRAWN + 5)
    assert way["steps"][0]["before"] == "1"


def test_the_reason_is_that_of_the_verdict_or_else_of_the_evidence():
    verdict = check(list(writes(3000)), "register", init=0)
    evidence = verdict.evidence(time_limit=0)
    assert "time limit" in page_data("a file", verdict, evidence)["reason"]


@pytest.mark.parametrize("text", ["</script><b>", "<!--", "__DATA__"])
def test_no_value_can_end_the_script_that_holds_the_data(text):
    verdict = check([event(0, kind, "write", text) for kind in ("invoke", "ok")], "register")
    html = page("a file", verdict, verdict.evidence())
    _, _, rest = html.partition('id="data">')
    held, _, _ = rest.partition("</script>")
    assert "<" not in held
    found = json.loads(held)
    assert found["file"] == "a file"
    assert found["objects"][0]["ops"][0]["text"] == f"write {text!r}"
