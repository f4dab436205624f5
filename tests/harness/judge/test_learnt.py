"""What only a history tells of its run."""

from __future__ import annotations

from fencepost.checker.checkers import CHECKERS
from fencepost.checker.history.history import History, Op
from fencepost.harness.judge.learnt import learnt


def granted(token: int | None) -> History:
    value = {"lock": "a", "hold": "h", "token": token}
    return History(
        [
            Op(
                index=0,
                time=1,
                process=0,
                type="invoke",
                f="acquire",
                value={"lock": "a"},
                node="n",
            ),
            Op(index=1, time=2, process=0, type="ok", f="acquire", value=value, node="n"),
        ]
    )


def described(token: object) -> dict:
    return {"lock": {"name": "mine", "token": token}, "checkers": ["lease_exclusion", "fencing"]}


def test_nothing_is_learnt_of_a_lock_whose_tokens_are_known():
    assert learnt(described(True), granted(None)) == {}
    assert learnt(described(False), granted(7)) == {}


def test_a_lock_that_has_granted_a_token_is_checked_for_fencing():
    facts = learnt(described("unknown"), granted(7))
    assert facts["lock"] == {"token": True}
    assert facts["checkers"] == ["lease_exclusion", "fencing"]


def test_a_lock_that_has_granted_no_token_is_not():
    facts = learnt(described("unknown") | {"not_checked": {"store": "why"}}, granted(None))
    assert facts["lock"] == {"token": False}
    assert facts["checkers"] == ["lease_exclusion"]
    why = CHECKERS["fencing"].applies({"lock": {"token": False}, "checkers": []})
    assert why and facts["not_checked"] == {"store": "why", "fencing": why}
