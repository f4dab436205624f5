"""Numbers of an election that cannot be safe."""

from __future__ import annotations

import pytest

from fencepost.harness.spec.make import make
from fencepost.workloads.electors.arithmetic import cannot_be_safe, cannot_work, grace_ms
from fencepost.workloads.locks.registry import LOCKS


def numbers(deadline, retry=None, timeout=None):
    named = {
        "renew_deadline_ms": deadline, "retry_period_ms": retry, "request_timeout_ms": timeout,
    }  # fmt: skip
    return {name: value for name, value in named.items() if value is not None}


@pytest.mark.parametrize(
    ("lease", "given", "grace", "words"),
    [
        (15_000, numbers(10_000), 5000, ""),
        (15_000, numbers(10_000, 2000), 3000, ""),
        (15_000, numbers(10_000, 2000, 2999), 1, ""),
        (15_000, numbers(10_000, 2000, 3000), 0, "so it stops 15000 ms after its last renewal"),
        (15_000, numbers(10_000, 5000), 0, "so it stops 15000 ms after its last renewal"),
        (15_000, numbers(15_000), 0, "make renew_deadline_ms shorter than the lease"),
        (137_000, numbers(107_000, 26_000), 4000, ""),
    ],
)
def test_the_grace_is_what_a_renewal_s_failure_leaves_of_the_lease(lease, given, grace, words):
    assert grace_ms(lease, given) == grace
    said = cannot_be_safe(lease, given)
    assert words in said and bool(said) == bool(words)


def test_a_retry_period_added_to_the_deadline_that_exceeds_the_lease_is_named_with_the_numbers():
    assert cannot_be_safe(2000, numbers(1500, 1000)) == (
        "a leader renews every 1000 ms (retry_period_ms), tries for 1500 ms (renew_deadline_ms): "
        "so it stops 2500 ms after its last renewal, and another one may lead after 2000 ms (the "
        "lease). Make the sum shorter than the lease"
    )


def test_a_retry_period_that_is_not_shorter_than_the_deadline_is_named():
    for say in (cannot_be_safe, cannot_work):
        assert "one lost request ends its reign" in say(9000, numbers(1500, 1500))
        assert say(9000, numbers(1500, 500)) == ""


@pytest.mark.parametrize("elector", [lock for lock in LOCKS.values() if lock.elector])
def test_the_numbers_of_a_published_elector_s_default_test_can_be_safe(elector):
    spec = make(elector.name, {}, {})
    assert cannot_be_safe(spec.ttl_ms, spec.options) == ""


def test_the_default_lease_of_the_kubernetes_client_outlasts_its_own_loop():
    spec = make("kubernetes-client", {}, {})
    retry, deadline = (spec.options[name] for name in ("retry_period_ms", "renew_deadline_ms"))
    # renew_loop sleeps a retry period before it counts the deadline, and one after its last try.
    assert retry + deadline + retry < spec.ttl_ms


def test_numbers_that_are_not_given_say_nothing():
    assert cannot_be_safe(2000, {"retry_period_ms": 5000}) == ""
    assert grace_ms(2000, {}) is None
