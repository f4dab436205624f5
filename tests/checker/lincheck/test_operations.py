"""Calls become operations of independent objects, in the order of their events."""

import pytest

from fencepost.checker.lincheck import BadHistory
from fencepost.checker.lincheck.models import named
from fencepost.checker.lincheck.operation import Events, Operation, objects


def event(process, kind, f, value=None, **more):
    return {"process": process, "type": kind, "f": f, "value": value, **more}


def divided(*events, model="kv", **more):
    return objects(enumerate(events, 11), named(model), **more)


def test_each_key_is_an_object_with_its_own_operations():
    found = divided(
        event(1, "invoke", "put", ["a", "x"], time=5),
        event(2, "invoke", "get", "b", time=6),
        event(1, "ok", "put", ["a", "x"], time=7),
        event(2, "ok", "get", "", time=8),
        event(3, "invoke", "append", ["a", "y"], time=9),
        event(4, "invoke", "get", "a"),
    )
    assert found.operations == 4  # the open get constrains no order, and is counted
    assert list(found.parts) == ["a", "b"]
    write, append = found.parts["a"]
    assert write == Operation(0, 2, write.action, 1, 5, 7, 11)
    assert append == Operation(4, None, append.action, 3, 9, None, 15)
    [get] = found.parts["b"]
    assert get == Operation(1, 3, get.action, 2, 6, 8, 12)


def test_without_partition_all_is_one_object():
    events = [event(1, "invoke", "put", [key, "x"]) for key in "ab"]
    events.insert(1, event(1, "ok", "put"))
    found = divided(*events, partition=False)
    assert list(found.parts) == [None]
    assert len(found.parts[None]) == 2


def test_an_observer_that_never_returned_is_no_operation():
    found = divided(event(1, "invoke", "txn", [["r", "x", 1]]), model="multi-register")
    assert (found.parts, found.operations) == ({}, 1)


def test_ops_of_another_kind_are_passed_over_or_refused():
    told = divided(event(1, "invoke", "acquire"), event(2, "invoke", "write", 1), model="register")
    assert (told.operations, len(told.parts[None])) == (1, 1)
    with pytest.raises(BadHistory) as caught:
        divided(event(1, "invoke", "put", ["a", "x"]), event(2, "invoke", "add" * 20, 1))
    assert str(caught.value) == (f"history:12: kv knows append, get, put, not {'add' * 20!r:.40}")


@pytest.mark.parametrize(("model", "value"), [("kv", 3), ("mutex", 1.5)])
def test_a_value_that_cannot_be_read_is_refused_with_its_line(model, value):
    f = "put" if model == "kv" else "acquire"
    with pytest.raises(BadHistory, match=f"^history:11: {f} needs .* not {value}$"):
        divided(event(1, "invoke", f, value), model=model)


def operation(first, last):
    return Operation(first, last, None, 0, None, None, 1)


def test_events_are_the_invocations_and_returns_in_order():
    ops = [operation(4, 9), operation(0, 7), operation(2, None), operation(3, 5)]
    events = Events(ops)
    assert len(events) == 7
    everything = [
        (0, ops[1]), (2, ops[2]), (3, ops[3]), (4, ops[0]), (5, ops[3]), (7, ops[1]), (9, ops[0]),
    ]  # fmt: skip
    assert list(events) == everything
    assert list(events.between(2, 5)) == everything[2:5]
    assert list(events.between(5, 99)) == everything[5:]
    assert list(Events([])) == []


@pytest.mark.parametrize("count", [1, 2, 3, 4, 7, 8, 9])
def test_events_are_distinct_for_any_number_of_operations(count):
    ops = [operation(2 * index, 2 * index + 1) for index in range(count)]
    assert [op for _, op in Events(ops)] == [op for op in ops for _ in range(2)]
