"""A suite that cannot be right is refused with a sentence, when it is made or registered."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fencepost.workloads.scenarios.registry import SUITES, known
from fencepost.workloads.scenarios.scenario import Scenario
from fencepost.workloads.scenarios.suite import Cost, Suite, TimedRun

ENTRY = TimedRun("calm", "Nothing goes wrong.", {"resource": True})
COST = Cost("price", "What it costs.", ("C25",), "overview", ("redis",), 1.0)


def suite(*entries, **more):
    fields = {"name": "mine", "what": "My suite.", "lock": "redis", "entries": entries}
    return Suite(**{**fields, **more})


@pytest.mark.parametrize("name", SUITES)
def test_each_suite_of_ours_is_valid(name):
    known(SUITES[name])


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: suite(), "suite 'mine': give it a name, a sentence and entries"),
        (lambda: suite(ENTRY, what=""), "suite 'mine': give it a name, a sentence and entries"),
        (lambda: suite(ENTRY, "calm"), "suite mine: 'calm' is no entry of a suite"),
        (lambda: suite(ENTRY, ENTRY), "suite mine: entry calm with guard none is twice"),
        (
            lambda: replace(ENTRY, claims="C4"),
            "entry calm: claims 'C4' is not a tuple of ids of claims",
        ),
        (
            lambda: replace(COST, claims=("",)),
            "entry price: claims ('',) is not a tuple of ids of claims",
        ),
        (
            lambda: Scenario("one", "C4", "", "", "none", (), {}),
            "entry one: claims 'C4' is not a tuple of ids of claims",
        ),
    ],
)
def test_a_suite_that_is_wrong_in_itself_cannot_be_made(make, words):
    with pytest.raises(ValueError) as error:
        make()
    assert str(error.value) == words


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        (replace(ENTRY, claims=("C99",)), "there is no claim 'C99'"),
        (replace(ENTRY, lock="padlock"), "there is no lock 'padlock'"),
        (replace(ENTRY, guard="dog"), "there is no guard 'dog'"),
        (replace(ENTRY, expected={"neat": True}), "there is no checker 'neat'"),
        (replace(ENTRY, settings={"speed": 1}), "there is no setting 'speed'"),
        (
            replace(ENTRY, settings={"ttl_ms": 1}),
            "TTL 1 ms is out of range (100 ms to 10 min)",
        ),
        (replace(COST, name="calm", locks=("padlock",)), "there is no lock 'padlock'"),
    ],
)
def test_a_suite_that_names_what_does_not_exist_cannot_be_registered(entry, words):
    with pytest.raises(ValueError) as error:
        known(suite(entry))
    assert str(error.value) == f"entry calm: {words}"
