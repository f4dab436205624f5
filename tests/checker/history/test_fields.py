"""Reading a history reports a field of the wrong type by its name."""

from __future__ import annotations

import pytest

from fencepost.checker.history.fields import check

CLIENTS = {
    "deadline": [0, 1.5, None, -(2**127)],
    "ttl": [1, 2.0, None],
    "token": [7, None, 2**127 - 1, -(2**127)],
    "version": [0, None],
    "stored": [1, None],
    "lock": ["orders", 3, None],
    "hold": ["h", 0, None],
    "resource": ["account", None],
    "mode": ["shared", None],
    "granted_by": [[], ["redis-1", "redis-2"], None],
    "assumed": [True, False],
}
NEMESIS = {
    "fault": ["f"],
    "phase": ["start"],
    "targets": [[], ["redis-1"]],
    "impairs": [[], ["redis-1"]],
    "stops": [[], ["client-1"]],
    "links": [[], [["a", "b"], ["b", "c"]]],
    "forgets": [True, False],
    "loses": [True, False],
    "rejects": [True, False],
    "only_messages": [True, False],
    "arguments": [{}, {"x": [1]}, {"links": [["a", "b"]]}],
    "receipt": [None, {}, {"processes": [1, "client-1"]}, {"proved": True, "how": "x"}],
}
NO_NAMES = [None, "redis-1", [1], [["a"]], {}]
WRONG = {
    "deadline": ["x", True, [], 2**127, -(2**127) - 1, 1e300],
    "ttl": ["x", {}, False],
    "token": ["x", 1.0, True, 2**127, -(2**127) - 1],
    "version": ["1", 0.5],
    "stored": ["1", []],
    "lock": [{}, [], True, 1.5],
    "hold": [{}, [], True],
    "resource": [[]],
    "mode": [{}],
    "granted_by": ["redis-1", [1], [["a"]], {}, 5],
    "assumed": [None, 0, 1, "true", []],
    "fault": [1, None, []],
    "phase": [0, {}],
    "targets": NO_NAMES,
    "impairs": NO_NAMES,
    "stops": NO_NAMES,
    "links": [None, ["a", "b"], [["a"]], [["a", "b", "c"]], [["a", 1]], "x", [None]],
    "forgets": [None, 0, "true"],
    "loses": [None, 0, "true"],
    "rejects": [None, 0, "true"],
    "only_messages": [None, 0, "true"],
    "arguments": [None, [], {"links": [["a"]]}, {"links": None}],
    "receipt": [[], "x", {"processes": 1}, {"processes": [None]}, {"processes": [[1]]}],
}


@pytest.mark.parametrize(
    ("name", "value", "nemesis"),
    [
        (name, value, whose is NEMESIS)
        for whose in (CLIENTS, NEMESIS)
        for name, values in whose.items()
        for value in values
    ],
)
def test_a_field_that_is_as_the_protocol_has_it_passes(name, value, nemesis):
    check({name: value}, nemesis)


@pytest.mark.parametrize(
    ("name", "value"), [(name, value) for name, values in WRONG.items() for value in values]
)
def test_a_field_of_another_type_is_named(name, value):
    with pytest.raises(ValueError, match=rf"^value\.{name} .* is not ") as told:
        check({"other": 1, name: value}, name in NEMESIS)
    assert len(str(told.value)) < 200


def test_fields_that_no_checker_reads_may_hold_any_value():
    for nemesis in (False, True):
        check({"x": [{}], "": None, "value": {"deep": [[]]}}, nemesis)


def test_the_fields_of_clients_are_theirs_and_those_of_faults_are_the_nemesis_s():
    check({"targets": 1, "links": "x"}, nemesis=False)
    check({"token": "x", "deadline": []}, nemesis=True)
