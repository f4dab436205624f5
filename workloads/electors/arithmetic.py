"""Decides by the numbers of an election, without a run, whether it can be safe.

A leader renews its lease every retry period. If it cannot, it tries for `renew_deadline`, as the
libraries of Kubernetes do. So it stops the sum of both after its last renewal, or a request's
timeout later, if a request is under way then. A candidate takes over once the lease has run out. So
the sum must be less than the lease.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

RENEW_DEADLINE, REQUEST_TIMEOUT, RETRY = (
    "renew_deadline_ms",
    "request_timeout_ms",
    "retry_period_ms",
)

_PARTS = {
    RETRY: "a leader renews every {} ms ({})",
    RENEW_DEADLINE: "tries for {} ms ({})",
    REQUEST_TIMEOUT: "a request that begins just before that may take {} ms ({})",
}
"""What passes between the last renewal and the end of a leader's work, in its order."""


def grace_ms(ttl_ms: int, options: Mapping[str, Any]) -> float | None:
    """Return how long before the end of the lease a leader stops at the latest, by its numbers;
    None if they do not say. A grace of zero or less cannot be safe."""
    if _number(options, RENEW_DEADLINE) is None:
        return None
    return ttl_ms - sum(_number(options, name) or 0 for name in _PARTS)


def cannot_be_safe(ttl_ms: int, options: Mapping[str, Any]) -> str:
    """Return why an election with these numbers cannot be safe; "" if they do not show it."""
    if why := cannot_work(ttl_ms, options):
        return why
    grace = grace_ms(ttl_ms, options)
    if grace is None or grace > 0:
        return ""
    parts = [
        words.format(value, name)
        for name, words in _PARTS.items()
        if (value := _number(options, name))
    ]
    return (
        f"{', '.join(parts)}: so it stops {ttl_ms - grace:g} ms after its last renewal, and "
        f"another one may lead after {ttl_ms} ms (the lease). Make the sum shorter than the lease"
    )


def cannot_work(ttl_ms: int, options: Mapping[str, Any]) -> str:
    """Return why an election with these numbers makes no sense, whatever its requests take; "" if
    it does. The libraries of Kubernetes refuse such numbers."""
    deadline, retry = _number(options, RENEW_DEADLINE), _number(options, RETRY)
    if deadline is not None and deadline >= ttl_ms:
        return (
            f"a leader tries to renew for {deadline} ms ({RENEW_DEADLINE}), and another one may "
            f"lead after {ttl_ms} ms (the lease): make {RENEW_DEADLINE} shorter than the lease"
        )
    if deadline is not None and retry is not None and retry >= deadline:
        return (
            f"a leader renews every {retry} ms ({RETRY}), and gives up after {deadline} ms "
            f"({RENEW_DEADLINE}): one lost request ends its reign. Make {RETRY} shorter"
        )
    return ""


def _number(options: Mapping[str, Any], name: str) -> float | None:
    found = options.get(name)
    return found if isinstance(found, int | float) else None
