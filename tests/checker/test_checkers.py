"""Checkers apply to the tests and histories that have ops for them, with expected verdicts."""

from __future__ import annotations

from dataclasses import replace

from fencepost.checker import checkers
from fencepost.checker.checker import Checker, Run, of_history
from fencepost.checker.checkers import CHECKERS, sound
from fencepost.checker.history.history import History
from fencepost.checker.verdict import Verdict
from tests.histories import Story

TEST = {"lock": {"token": "majority"}, "shared": False}
FINE = Verdict(True, "Fine.")


def test_a_check_of_the_history_gets_the_run_s_history_and_its_test():
    seen = []

    def look(history, test):
        seen.append((history, test))
        return FINE

    run = Run(History([]), {"ttl_ms": 1000})
    assert of_history(look)(run) is FINE
    assert seen == [(run.history, run.test)]


def test_a_checker_that_names_no_condition_applies_to_all():
    checker = Checker("any", "Nothing is wrong.", ("service",), of_history(lambda *_: FINE), "any")
    assert checker.applies({}) is None
    assert checker.touches(History([])) is True


def test_fencing_applies_where_the_lock_hands_out_tokens():
    applies = CHECKERS["fencing"].applies
    assert applies({"lock": {"token": None}}) == "the lock issues no token"
    assert applies({"lock": {"token": "one"}}) is None


def test_linearizable_does_not_apply_to_shared_holds():
    applies = CHECKERS["linearizable"].applies
    assert applies({"shared": True}) == "shared holds with leases have no model"
    assert applies({"shared": False}) is None
    assert applies({}) is None


def test_a_calm_run_keeps_every_promise_that_its_test_has():
    expected = sound(TEST)
    elections = sound(TEST | {"lock": TEST["lock"] | {"elector": True}})
    assert elections == expected | {"leadership": True}
    drives = {"elector": True, "drives_work": True}
    schedulers = sound(TEST | {"lock": TEST["lock"] | drives})
    assert schedulers == elections | {"jobs": True}
    assert schedulers == {name: one.control for name, one in CHECKERS.items() if one.control}
    less = sound({"lock": {"token": None}, "shared": True})
    assert {"fencing", "linearizable"} <= expected.keys() - less.keys()


def test_a_checker_that_is_expected_to_be_silent_has_no_expected_verdict(monkeypatch):
    bundle = Checker("x", "?", ("service",), of_history(lambda *_: FINE), "x", control=None)
    monkeypatch.setattr(checkers, "CHECKERS", {"x": bundle})
    assert sound(TEST) == {}


def test_a_history_without_test_json_is_judged_by_the_checkers_that_it_has_ops_for():
    story = Story()
    touched = {name for name, one in CHECKERS.items() if one.touches(story.history())}
    assert {"lease_exclusion", "mutual_exclusion", "ownership", "liveness"} <= touched
    assert not {"linearizable", "fencing", "resource", "store", "server-log"} & touched
    story.grant(1, "h", at=0, until=1000)
    assert CHECKERS["linearizable"].touches(story.history())
    assert not CHECKERS["fencing"].touches(story.history())


def test_a_checker_that_the_memory_does_not_suffice_for_is_unknown(monkeypatch):
    def fails(run):
        raise MemoryError

    name = "ownership"
    monkeypatch.setattr(checkers, "CHECKERS", {name: replace(CHECKERS[name], check=fails)})
    found = checkers.check(Run(History([]), {}), [name])
    assert found[name] == Verdict("unknown", "The memory did not suffice to judge this.")
