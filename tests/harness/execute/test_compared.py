"""The violation of a user lock on real servers is its own, or inherent to them."""

from __future__ import annotations

from pathlib import Path

import pytest

from fencepost.checker.verdict import Verdict
from fencepost.harness.execute.compared import compare
from fencepost.harness.judge.judge import Outcome
from fencepost.harness.spec import from_arguments
from fencepost.harness.userlock.resolve import LockRequest, resolve
from fencepost.report.words.answer import sentence
from fencepost.workloads.locks import registry

LOCKS = Path(__file__).parents[2] / "hunt" / "locks.py"


@pytest.fixture
def outcome(tmp_path, monkeypatch):
    """Return the outcome of a run with these faults that violates a checker."""
    for name in ("write_report", "results.write"):
        monkeypatch.setattr(f"fencepost.harness.execute.compared.{name}", lambda *_, **__: None)

    def build(checker, *faults):
        verdicts = {checker: Verdict(False, "two holders")}
        rows = [{"family": family, "targets": [target]} for family, target in faults]
        results = {"valid": False, "checkers": {checker: {"valid": False}}, "faults": rows}
        return Outcome(tmp_path, False, verdicts, results)

    return build


def spec(servers="redis:1"):
    name, own = resolve(f"{LOCKS}:Right", LockRequest(servers))
    return from_arguments.spec(name, {}, {"seed": 1}, own)


@pytest.mark.parametrize(
    ("faults", "words"),
    [
        ([("clock", "redis-1")], "Inherent: on one Redis server without persistence"),
        ([("kill", "redis-1"), ("pause", "client-1")], "violated by kill:one whatever"),
        ([("pause", "client-1"), ("kill", "client-2")], "Yours: `redis`"),
        ([("partition", "client-1")], "Yours: `redis`"),
    ],
)
@pytest.mark.slow
def test_a_violation_of_a_user_lock_is_compared_with_the_reference_lock(outcome, faults, words):
    found = compare(spec(), outcome("lease_exclusion", *faults))
    assert words in found.results["compared"]
    assert ("Leave these faults out" in found.results["compared"]) is words.startswith(
        ("Inherent", "violated")
    )
    assert found.results["compared"] in sentence(found.results)


@pytest.mark.parametrize(
    ("checker", "faults"),
    [
        ("resource", [("clock", "redis-1")]),  # the service kept its promise
        ("lease_exclusion", [("disk", "redis-1")]),  # not simulated
        ("lease_exclusion", []),
    ],
)
def test_without_a_fault_or_a_promise_to_compare_nothing_is_said(outcome, checker, faults):
    assert "compared" not in compare(spec(), outcome(checker, *faults)).results


def test_there_is_no_reference_lock_if_it_is_unknown_what_a_session_keeps(outcome):
    assert "compared" not in compare(spec("postgres:1"), outcome("liveness", ("kill", "x"))).results


def test_a_variant_of_a_lock_is_no_reference_in_its_place():
    """A copy of a lock keeps its fields, and a reference that breaks would excuse every lock."""
    found = {name for name, lock in registry.LOCKS.items() if lock.reference is not None}
    assert found == {
        "redlock", "redis", "zookeeper", "etcd", "postgres", "postgres-lease", "mariadb",
    }  # fmt: skip
