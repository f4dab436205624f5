"""Evidence that hits a limit or fails a check contains the certain part, and names the rest.

The tests reach each limit alone, by replacing one step of the work.
"""

import time

import pytest

from fencepost.checker.lincheck import check, evidence, partials, shrink
from fencepost.checker.lincheck.budget import Budget, Exhausted
from fencepost.checker.lincheck.evidence import evidence_for
from fencepost.checker.lincheck.partials import partials as partials_of
from fencepost.checker.lincheck.shrink import Small


def op(process, f, value=None, result=None):
    return [
        {"process": process, "type": "invoke", "f": f, "value": value},
        {"process": process, "type": "ok", "f": f, "value": value if result is None else result},
    ]


def stale(key="k"):
    """Return a get of one key that misses an earlier append, after unrelated appends."""
    appends = [event for n in range(6) for event in op(0, "append", [key, f"{n},"])]
    return check([*appends, *op(1, "get", [key, None], [key, "0,"])], "kv")


def evidence_of(verdict, budget):
    return evidence_for(
        False, verdict.parts, verdict.key, None, verdict.near, verdict.model, budget
    )


def test_evidence_covers_the_check_s_result_within_the_given_limits(monkeypatch):
    asked = []
    monkeypatch.setattr(
        "fencepost.checker.lincheck.verdict.evidence_for", lambda *given: asked.append(given)
    )
    found = [stale(), check([*op(0, "read", None, 1)], "register", init=0, fast=False)]
    for one in found:
        one.evidence()
        one.evidence(time_limit=2.0, memory_limit=3.0)
        [usual, limited] = [given[-1] for given in asked[-2:]]
        assert (usual.time_limit, usual.memory_limit) == (5.0, None)
        assert (limited.time_limit, limited.memory_limit) == (2.0, 3.0)
        known = (one.parts, one.key, one.failed, one.near, one.model)
        assert asked[-1][:-1] == (False, *known)
    assert found[0].near is not None
    assert found[1].failed is not None


def raising(*_):
    raise Exhausted("the limit")


def test_evidence_names_the_object_that_fails_whether_its_op_is_found_or_not(monkeypatch):
    assert stale().evidence().key == "k"
    monkeypatch.setattr(evidence, "first_failure", raising)
    found = stale().evidence()
    assert (found.key, found.failed, found.complete, found.reason) == (
        "k",
        None,
        False,
        "the limit",
    )


def test_the_op_that_failed_is_sought_where_the_check_stopped(monkeypatch):
    verdict = stale()
    sought = []

    def recorded(operations, model, budget, near=None):
        sought.append(near)
        return operations[-1]

    monkeypatch.setattr(evidence, "first_failure", recorded)
    assert verdict.near is not None
    verdict.evidence()
    assert sought == [verdict.near]


@pytest.mark.parametrize(("left", "given"), [(0.5, 1.0), (5.0, 5.0), (None, None)])
def test_checking_a_sub_history_is_given_a_second_where_less_is_left(monkeypatch, left, given):
    monkeypatch.setattr(time, "monotonic", lambda: 100.0)
    budgets = []

    def recorded(operations, model, budget):
        budgets.append(budget.left())
        return partials_of(operations, model, budget)

    monkeypatch.setattr(evidence, "partials", recorded)
    evidence_of(stale(), Budget.starting_now(left))
    assert budgets == [given, left]


def test_partials_of_the_sub_history_are_shown_where_those_of_the_whole_take_too_long(monkeypatch):
    verdict = stale()
    whole = verdict.parts["k"]

    def cut(operations, model, budget):
        if len(operations) == len(whole):
            raise Exhausted("the limit")
        return partials_of(operations, model, budget)

    monkeypatch.setattr(evidence, "partials", cut)
    found = verdict.evidence()
    assert len(found.small.operations) < len(whole)
    assert len(found.partials[0].steps) == len(found.small.operations) - 1
    assert (found.complete, found.reason) == (False, "the limit")
    monkeypatch.setattr(evidence, "any_order", lambda *_: None)
    assert verdict.evidence().reason == (
        "the limit; the sub-history has too many orders to try them all"
    )


@pytest.mark.parametrize("orders", [(False, None), (None, True)])
def test_a_sub_history_is_in_doubt_if_either_count_of_its_orders_had_no_end(monkeypatch, orders):
    answers = iter(orders)
    monkeypatch.setattr(evidence, "any_order", lambda *_: next(answers))
    found = stale().evidence()
    assert found.small is not None
    assert found.reason == "the sub-history has too many orders to try them all"


def test_a_sub_history_that_fails_without_the_op_to_blame_is_not_shown(monkeypatch):
    verdict = check(
        [*op(0, "write", 1), *op(0, "read", None, 9), *op(0, "read", None, 8)], "register"
    )
    whole = Small(tuple(sorted(verdict.parts[None])), True)
    monkeypatch.setattr(evidence, "shrink", lambda *_: whole)
    found = verdict.evidence()
    assert (found.failed.action.result, found.small) == (9, None)
    assert found.reason == "the sub-history found fails for another reason, and is not shown"


def test_a_sub_history_of_as_many_ops_as_may_be_shown_is_shown(monkeypatch):
    size = len(stale().evidence().small.operations)
    monkeypatch.setattr(evidence, "MOST_SMALL", size)
    assert stale().evidence().small is not None
    monkeypatch.setattr(evidence, "MOST_SMALL", size - 1)
    assert stale().evidence().small is None


def test_interrupted_shrinking_returns_its_best_result_or_nothing(monkeypatch):
    verdict = stale()
    operations = verdict.parts["k"]
    explore_up_to = shrink.explore_up_to
    left = [0]

    def limited(*given, **named):
        if not left[0]:
            raise Exhausted("the limit")
        left[0] -= 1
        return explore_up_to(*given, **named)

    monkeypatch.setattr(shrink, "explore_up_to", limited)
    assert shrink.shrink(operations, operations[-1], verdict.model, Budget()) is None
    left[0] = 3
    cut = shrink.shrink(operations, operations[-1], verdict.model, Budget())
    assert cut.minimal is False
    assert len(cut.operations) > 2
    left[0] = 10**6
    assert shrink.shrink(operations, operations[-1], verdict.model, Budget()).minimal is True


def test_a_partial_linearization_that_is_wrong_is_a_defect(monkeypatch):
    monkeypatch.setattr(partials, "verify", lambda *_, **__: "a step is wrong")
    with pytest.raises(AssertionError, match="the partial linearization found is wrong: a step"):
        stale().evidence()
