"""Numbers of an election that cannot be safe."""

from __future__ import annotations

import pytest

from fencepost.workloads.electors.arithmetic import cannot_be_safe, grace_ms


@pytest.mark.parametrize(
    ("lease", "deadline", "timeout", "grace", "words"),
    [
        (15_000, 10_000, None, 5000, ""),
        (15_000, 10_000, 4999, 1, ""),
        (15_000, 10_000, 5000, 0, "a leader stops after 15000 ms"),
        (15_000, 15_000, None, 0, "make renew_deadline_ms shorter than the lease"),
        (137_000, 107_000, None, 30_000, ""),
    ],
)
def test_the_grace_is_what_the_deadline_and_a_request_leave_of_the_lease(
    lease, deadline, timeout, grace, words
):
    options = {"renew_deadline_ms": deadline}
    if timeout is not None:
        options["request_timeout_ms"] = timeout
    assert grace_ms(lease, options) == grace
    said = cannot_be_safe(lease, options)
    assert words in said and bool(said) == bool(words)


def test_a_retry_period_that_is_not_shorter_than_the_deadline_is_named():
    numbers = {"renew_deadline_ms": 1500, "retry_period_ms": 1500}
    assert "one lost request ends its reign" in cannot_be_safe(2000, numbers)
    assert cannot_be_safe(2000, numbers | {"retry_period_ms": 500}) == ""


def test_numbers_that_are_not_given_say_nothing():
    assert cannot_be_safe(2000, {"retry_period_ms": 5000}) == ""
    assert grace_ms(2000, {}) is None
