"""A true verdict has a verified linearization, or the evidence is incomplete and says why."""

import pytest

from fencepost.checker.lincheck import check, evidence


def written(count):
    for value in range(count):
        for kind in ("invoke", "ok"):
            yield {"process": value % 3, "type": kind, "f": "write", "value": value}


def test_evidence_of_a_valid_history_is_a_linearization_of_every_object():
    events = [
        {"process": key, "type": kind, "f": "put", "value": [key, "x"]}
        for key in (1, 2)
        for kind in ("invoke", "ok")
    ]
    found = check(events, "kv").evidence()
    assert (found.valid, found.complete, found.reason) == (True, True, None)
    assert {key: len(steps) for key, steps in found.linearizations.items()} == {1: 1, 2: 1}


def test_evidence_that_had_no_time_is_incomplete_and_says_why():
    found = check(written(3000), "register").evidence(time_limit=0)
    assert (found.valid, found.complete) == (True, False)
    assert "time limit" in found.reason


def test_an_unknown_verdict_has_no_linearization():
    verdict = check(written(3000), "register", time_limit=1e-9)
    found = verdict.evidence()
    assert (found.valid, found.complete, found.reason) == ("unknown", False, "nothing is known")
    assert found.linearizations == {}


def test_a_linearization_that_is_wrong_is_a_defect(monkeypatch):
    verdict = check(written(3), "register")
    monkeypatch.setattr(evidence, "verify", lambda operations, steps, model: "a step is wrong")
    with pytest.raises(AssertionError, match="the linearization found is wrong: a step is wrong"):
        verdict.evidence()
