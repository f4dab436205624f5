"""Decides by the numbers of an election, without a run, whether it can be safe.

A leader that cannot renew its lease stops `renew_deadline` after its last attempt that succeeded,
or a request's timeout later, if a request is under way then. A candidate takes over once the lease
has run out. So the first sum must be less than the lease.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

RENEW_DEADLINE, REQUEST_TIMEOUT, RETRY = (
    "renew_deadline_ms",
    "request_timeout_ms",
    "retry_period_ms",
)


def grace_ms(ttl_ms: int, options: Mapping[str, Any]) -> float | None:
    """Return how long before the end of the lease a leader stops at the latest, by its numbers;
    None if they do not say. A grace of zero or less cannot be safe."""
    deadline = options.get(RENEW_DEADLINE)
    if not isinstance(deadline, int | float):
        return None
    timeout = options.get(REQUEST_TIMEOUT)
    return ttl_ms - deadline - (timeout if isinstance(timeout, int | float) else 0)


def cannot_be_safe(ttl_ms: int, options: Mapping[str, Any]) -> str:
    """Return why an election with these numbers cannot be safe; "" if they do not show it."""
    grace = grace_ms(ttl_ms, options)
    if grace is None:
        return ""
    deadline, timeout = options[RENEW_DEADLINE], options.get(REQUEST_TIMEOUT)
    if deadline >= ttl_ms:
        return (
            f"a leader tries to renew for {deadline} ms ({RENEW_DEADLINE}), and another one may "
            f"lead after {ttl_ms} ms (the lease): make {RENEW_DEADLINE} shorter than the lease"
        )
    if grace <= 0:
        return (
            f"a request that begins just before the deadline may take {timeout} ms "
            f"({REQUEST_TIMEOUT}), so a leader stops after {deadline + timeout} ms, and another "
            f"one may lead after {ttl_ms} ms (the lease): make the sum shorter than the lease"
        )
    retry = options.get(RETRY)
    if isinstance(retry, int | float) and retry >= deadline:
        return (
            f"a leader renews every {retry} ms ({RETRY}), and gives up after {deadline} ms "
            f"({RENEW_DEADLINE}): one lost request ends its reign. Make {RETRY} shorter"
        )
    return ""
