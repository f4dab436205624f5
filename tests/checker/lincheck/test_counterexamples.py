"""Brute force refuses a counterexample's sub-history, and accepts it without the blamed op.

A counterexample that fails this check is not shown.
"""

import json
from dataclasses import replace

import pytest

from fencepost.checker.lincheck import check, evidence
from fencepost.checker.lincheck.bruteforce import any_order
from fencepost.checker.lincheck.budget import Budget, Exhausted
from fencepost.checker.lincheck.command import main, report
from fencepost.checker.lincheck.failure import first_failure
from fencepost.checker.lincheck.page import page_data
from fencepost.checker.lincheck.shrink import Small
from tests.checker.lincheck.lincheck_soak import SOAKED, soak

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("subject", SOAKED)
def test_counterexamples_of_random_histories_agree_with_brute_force(subject):
    tally, shown = soak(subject, "unit", 0, 300)
    assert not tally["wrong"], "\n".join(shown)
    assert tally["false"] > 10
    assert tally["true"] > 10


def op(process, f, value=None, result=None):
    return [
        {"process": process, "type": "invoke", "f": f, "value": value},
        {"process": process, "type": "ok", "f": f, "value": value if result is None else result},
    ]


MISSING = [*op(0, "add", 1), *op(1, "read", None, [])]


def test_an_add_that_a_later_read_misses_is_not_blamed_for_it():
    verdict = check(MISSING, "set", fast=False)
    assert verdict.failed is None, "the search stopped at the add"
    found = verdict.evidence()
    assert found.complete
    assert found.failed.action.f == "read"
    assert found.why == "can't read the set: 1 missing, such as 1"
    assert [op.action.f for op in found.small.operations] == ["add", "read"]
    [partial] = found.partials
    assert [step.action.f for step in partial.steps] == ["add"]


def test_no_op_is_blamed_where_there_is_no_time_to_tell_which_one_failed():
    verdict = check(MISSING, "set", fast=False)
    found = verdict.evidence(time_limit=0.0)
    assert (found.valid, found.failed, found.small) == (False, None, None)
    line = report("file", verdict, found)
    assert "failed" not in line
    assert "sub_history_lines" not in line
    assert line["incomplete"].startswith("time limit of 0 s")


def test_the_page_draws_the_object_that_fails_even_where_no_op_is_blamed():
    events = [*op(0, "put", ["fine", "x"]), *op(0, "append", ["k", "x"]), *op(0, "get", "k", "y")]
    verdict = check(events, "kv")
    for found in (verdict.evidence(), verdict.evidence(time_limit=0.0)):
        [drawn] = page_data("file", verdict, found)["objects"]
        assert (drawn["key"], len(drawn["ops"])) == ("k", 2)


def test_the_command_prints_both_lines_of_a_counterexample_of_two_ops(tmp_path, capsys):
    file = tmp_path / "history"
    file.write_text("".join(json.dumps(event) + "\n" for event in MISSING))
    assert main([str(file), "--model", "set"]) == 1
    line = json.loads(capsys.readouterr().out)
    assert line["failed"]["line"] == 3
    assert line["sub_history_lines"] == [1, 3]
    assert line["why"] == "can't read the set: 1 missing, such as 1"
    assert "incomplete" not in line


def sub_history_of(verdict, *lines):
    operations = sorted(op for op in verdict.parts[verdict.key] if op.line in lines)
    return Small(tuple(operations), True)


def test_a_sub_history_that_the_search_without_pruning_accepts_is_not_shown(monkeypatch):
    verdict = check(MISSING, "set")
    innocent = sub_history_of(verdict, 1)
    monkeypatch.setattr(evidence, "shrink", lambda *_: innocent)
    assert_not_shown(verdict)


def test_a_sub_history_that_some_order_explains_is_not_shown(monkeypatch):
    monkeypatch.setattr(evidence, "any_order", lambda *_: True)
    assert_not_shown(check(MISSING, "set"))


def assert_not_shown(verdict):
    found = verdict.evidence()
    assert found.failed.action.f == "read"
    assert (found.small, found.complete) == (None, False)
    assert found.reason == "the sub-history found is linearizable, and is not shown"
    assert "sub_history_lines" not in report("file", verdict, found)
    [shown] = page_data("file", verdict, found)["objects"]
    assert (shown["small"], shown["minimal"]) == ([], False)


def test_a_sub_history_with_too_many_orders_to_try_is_shown_and_says_so(monkeypatch):
    monkeypatch.setattr(evidence, "any_order", lambda *_: None)
    found = check(MISSING, "set").evidence()
    assert len(found.small.operations) == 2
    assert not found.complete
    assert found.reason == "the sub-history has too many orders to try them all"


def test_a_sub_history_of_hundreds_of_ops_is_not_shown(monkeypatch):
    monkeypatch.setattr(evidence, "MOST_SMALL", 20)
    adds = [event for _ in range(20) for event in op(0, "add", 1)]
    found = check([*adds, *op(1, "read", None, 19)], "counter").evidence()
    assert found.failed.action.f == "read"
    assert found.small is None
    assert found.reason == "the smallest sub-history found has 21 ops: too many"
    assert len(found.partials[0].steps) == 20


def test_a_sub_history_is_called_minimal_only_if_shrinking_completed(monkeypatch):
    events = [event for n in range(40) for event in op(n, "write", n)] + op(0, "read", None, 7)
    verdict = check(events, "register")
    whole = verdict.evidence()
    assert (len(whole.small.operations), whole.small.minimal, whole.complete) == (3, True, True)
    small = replace(whole, small=whole.small._replace(minimal=False))
    monkeypatch.setattr(evidence, "shrink", lambda *_: small.small)
    cut = verdict.evidence()
    assert not cut.complete
    assert cut.reason == "the sub-history could be smaller: a limit was reached"


def test_the_first_failure_is_found_wherever_the_search_for_it_begins():
    events = [event for n in range(30) for event in op(0, "write", n)]
    events[41]["value"] = 20
    events[40:40] = op(1, "read", None, 3)
    verdict = check(events, "register", fast=False)
    operations = verdict.parts[None]
    read = next(op for op in operations if op.action.f == "read")
    for near in [None, *operations]:
        assert first_failure(operations, verdict.model, Budget(), near) == read


def test_the_op_that_failed_is_found_among_ops_that_run_in_any_of_a_billion_orders():
    appends = [event for n in range(16) for event in op(n, "append", ["k", f"{n},"])]
    crowd = sorted(appends, key=lambda event: event["type"])  # all are invoked, then all return
    seen = "".join(f"{n}," for n in range(15))
    verdict = check([*crowd, *op(0, "get", ["k", None], ["k", seen])], "kv")
    assert verdict.valid is False
    operations = verdict.parts["k"]
    found = first_failure(operations, verdict.model, Budget.starting_now(10), verdict.near)
    assert found.action.f == "get"


def test_a_search_that_keeps_everything_respects_its_memory_limit(monkeypatch):
    held = [100_000_000]
    monkeypatch.setattr("fencepost.checker.lincheck.budget.resident", lambda: held[0])
    budget = Budget().growing(5).growing(500)
    held[0] += 5_000_000
    budget.spend("with all of it")
    held[0] += 1
    with pytest.raises(Exhausted, match="memory limit of 5 MB"):
        budget.spend("with a byte more")


def test_any_order_tries_them_all():
    concurrent = [
        {"process": 0, "type": "invoke", "f": "write", "value": 1},
        {"process": 1, "type": "invoke", "f": "write", "value": 2},
        {"process": 2, "type": "invoke", "f": "write", "value": 3},
        {"process": 1, "type": "ok", "f": "write", "value": 2},
        {"process": 0, "type": "ok", "f": "write", "value": 1},
    ]
    for seen, expected in ((1, True), (2, True), (3, True), (None, False), (4, False)):
        verdict = check([*concurrent, *op(0, "read", None, seen or 0)], "register", init=9)
        assert any_order(verdict.parts[None], verdict.model) is expected
        assert any_order(verdict.parts[None], verdict.model, most=1) is None
        assert verdict.valid is expected


def invoked(process, f, value=None):
    return {"process": process, "type": "invoke", "f": f, "value": value}


def unheard(process, f, value):
    return [invoked(process, f, value), {**invoked(process, f, value), "type": "info"}]


def test_any_order_does_not_rest_on_the_order_in_which_the_ops_are_given():
    write = op(0, "write", 1)
    events = [write[0], *op(1, "read", None, 1), *op(1, "read", None, 1), write[1]]
    verdict = check(events, "register", init=0)
    operations = verdict.parts[None]
    assert any_order(operations, verdict.model) is True
    assert any_order(sorted(operations), verdict.model) is True
    assert any_order(sorted(operations, reverse=True), verdict.model) is True


def test_any_order_stops_after_a_number_of_steps_and_tries_none_twice():
    two = check([*op(0, "write", 1), *op(0, "write", 2)], "register")
    assert any_order(two.parts[None], two.model, most=2) is None
    assert any_order(two.parts[None], two.model, most=3) is True
    reads = [event for n in range(4) for event in op(n, "read", None, 0)]
    crowd = sorted(reads, key=lambda event: event["type"])  # all are invoked, then all return
    wrong = check([*crowd, *op(5, "read", None, 1)], "register", init=0)
    assert any_order(wrong.parts[None], wrong.model, most=47) is None
    assert any_order(wrong.parts[None], wrong.model, most=48) is False


def test_of_explanations_with_most_ops_the_longest_comes_first():
    first, second = op(0, "write", 1), op(1, "write", 2)
    reads = [*op(2, "read", None, 1), *op(2, "read", None, 9)]
    events = [first[0], second[0], *reads, first[1], second[1]]
    found = check(events, "register", init=0, fast=False).evidence()
    assert [len(partial.steps) for partial in found.partials] == [3, 2]
    next_ops = [[blocked.operation.action.f for blocked in p.blocked] for p in found.partials]
    assert next_ops == [["read"], ["read", "write"]]


def test_of_equally_long_explanations_the_one_with_fewer_crashed_ops_comes_first():
    events = [
        *unheard(0, "cas", [0, 1]),
        *unheard(1, "cas", [1, 3]),
        *unheard(2, "write", 3),
        *op(3, "read", None, 3),
        *op(3, "read", None, 9),
    ]
    found = check(events, "cas-register", init=0).evidence()
    ways = [[step.action.f for step in partial.steps] for partial in found.partials]
    assert ways == [["cas", "cas", "read"], ["write", "read"]]


def test_ways_that_take_as_many_crashed_ops_of_values_that_do_not_compare_are_both_shown():
    events = [
        *unheard(0, "cas", [0, 1]),
        *unheard(1, "cas", [1, 3]),
        *unheard(2, "cas", [0, "two"]),
        *unheard(3, "cas", ["two", 3]),
        *op(4, "read", None, 3),
        *op(4, "read", None, 9),
    ]
    found = check(events, "cas-register", init=0).evidence()
    ways = [partial.steps[0].action.value for partial in found.partials]
    assert ways == [(0, 1), (0, "two")]


@pytest.mark.parametrize(("granted_ms", "expected"), [(9, False), (10, True)])
def test_any_order_expires_a_lease_in_its_time_and_not_before(granted_ms, expected):
    grant = {"lock": "a", "ttl": 10}
    events = [
        {"process": 0, "type": "invoke", "f": "acquire", "value": grant, "time": 0},
        {"process": 0, "type": "ok", "f": "acquire", "value": grant, "time": 1},
        {"process": 1, "type": "invoke", "f": "acquire", "value": grant, "time": 2},
        {"process": 1, "type": "ok", "f": "acquire", "value": grant, "time": granted_ms},
    ]
    verdict = check(events, "lease-mutex")
    assert any_order(verdict.parts["a"], verdict.model) is expected is verdict.valid
