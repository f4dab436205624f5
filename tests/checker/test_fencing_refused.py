"""A guard that refuses a write which has no lower token. Times are in ms."""

from __future__ import annotations

import pytest

from tests.checker.fencing_stories import verdict
from tests.histories import MS

LOWER_ONLY = {"guard": "mine", "lower_only": True}


def write(story, process, at, token, *, done=None, kind="refused", resource="account", **value):
    """A write with a token, which is refused, or accepted with kind None."""
    asked = {"resource": resource, "value": f"v{at}", "version": 0, "token": token, "hold": None}
    done = at + 10 if done is None else done
    error = None if kind is None else [kind, "no"]
    type = "ok" if kind is None else "info" if kind == "timeout" else "fail"
    story.call(process, "write", at, done, asked | value, type=type, error=error)


def holders(story, *tokens):
    for number, token in enumerate(tokens, start=1):
        story.grant(number, f"h{number}", at=100 * number, until=9000, token=token)
        story.release(number, f"h{number}", at=100 * number + 10)


def test_a_write_with_the_highest_token_is_not_refused(story):
    holders(story, 1, 2)
    write(story, 1, 1000, 1, kind=None)
    write(story, 2, 2000, 2)
    found = verdict(story, **LOWER_ONLY)
    assert found.valid is False
    assert found.summary.startswith("1 write refused that had no lower token.")
    (row,) = found.evidence
    assert row["what"] == (
        "client-2 (process 2) wrote 'v2000' with token 2 and was refused at 2.010 s, though no "
        "write with a higher token had been sent to the resource."
    )
    assert (row["time_ns"], row["resource"], row["ops"]) == (2010 * MS, "account", [10, 11])
    assert found.details["writes"] is False


@pytest.mark.parametrize(
    ("test", "valid"),
    [
        ({"guard": "fenced"}, False),
        ({"guard": "fenced", "lower_only": False}, True),
        ({"guard": "compare-and-set"}, True),
        ({}, True),
        (LOWER_ONLY, False),
    ],
)
def test_only_a_guard_that_refuses_lower_tokens_alone_is_blamed(story, test, valid):
    holders(story, 1, 2)
    write(story, 2, 2000, 2)
    assert verdict(story, **test).valid is valid


@pytest.mark.parametrize(("token", "valid"), [(2, False), (3, True)])
@pytest.mark.parametrize("kind", [None, "unreachable", "timeout"])
def test_one_with_a_higher_token_may_have_come_before_it(story, token, kind, valid):
    holders(story, 1, 2, 3)
    write(story, 3, 1000, token, kind=kind)
    write(story, 2, 2000, 2)
    assert verdict(story, **LOWER_ONLY).valid is valid


@pytest.mark.parametrize(("at", "valid"), [(2010, True), (2011, False)])
def test_one_that_was_sent_after_the_refusal_explains_nothing(story, at, valid):
    holders(story, 1, 2, 3)
    write(story, 2, 2000, 2)
    write(story, 3, at, 3, kind=None)
    assert verdict(story, **LOWER_ONLY).valid is valid


@pytest.mark.parametrize(("at", "valid"), [(2015, True), (2016, False)])
def test_its_clock_may_be_ahead(story, at, valid):
    holders(story, 1, 2, 3)
    write(story, 2, 2000, 2)
    write(story, 3, at, 3, kind=None)
    clocks = {"client-2": {"bound_ns": 2 * MS}, "client-3": {"bound_ns": 3 * MS}}
    assert verdict(story, **LOWER_ONLY, clocks=clocks).valid is valid


def test_a_higher_token_at_another_resource_explains_nothing(story):
    holders(story, 1, 2, 3)
    write(story, 3, 1000, 3, kind=None, resource="other")
    write(story, 2, 2000, 2)
    assert verdict(story, **LOWER_ONLY).valid is False


def test_only_a_refusal_counts(story):
    holders(story, 1, 2)
    write(story, 2, 2000, 2, kind="unreachable")
    write(story, 2, 3000, None)
    assert verdict(story, **LOWER_ONLY).valid is True


def test_tokens_may_be_negative(story):
    holders(story, -5, -4)
    write(story, 2, 2000, -4)
    write(story, 1, 1000, -5, kind=None)
    assert verdict(story, **LOWER_ONLY).valid is False


def test_tokens_of_other_locks_count_for_the_guard(story):
    holders(story, 1, 2)
    story.grant(5, "h5", at=900, until=9000, token=9, lock="other")
    write(story, 5, 1000, 9, kind=None, hold="h5")
    write(story, 2, 2000, 2, hold="h2")
    assert verdict(story, **LOWER_ONLY).valid is True


@pytest.mark.parametrize(("tokens", "valid"), [((1, 2), False), ((1, 3), True), ((3, 1), True)])
def test_the_highest_token_that_another_client_has_sent_counts(story, tokens, valid):
    holders(story, 1, 2, 3)
    for number, token in enumerate(tokens):
        write(story, 3, 1000 + 100 * number, token, kind="unreachable")
    write(story, 2, 2000, 2)
    assert verdict(story, **LOWER_ONLY).valid is valid


def test_only_writes_show_tokens_to_the_resource(story):
    holders(story, 1, 2)
    asked = {"lock": "orders", "hold": "h1", "token": 9, "resource": "account"}
    story.call(1, "release", 1000, 1010, asked)
    write(story, 2, 2000, 2)
    assert verdict(story, **LOWER_ONLY).valid is False
