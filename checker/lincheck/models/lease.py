"""`lease-mutex`: a lock whose grants expire, with fencing tokens if the history has them.

In addition to acquire, extend and release, every grant has one step without an invocation:
`expire`, at any time from `acquire's invocation + ttl` on, or never; after an ok extend, from
`extend's invocation + ttl` on. A service with good clocks cannot expire a grant sooner, because the
request reached it later than that. So a history fails to linearize if a lock was granted twice
while leased, or expired early. A client's belief (`deadline`) decides nothing.

A release of a grant that has expired changes nothing and may be answered with ok, because it harms
no client. An ok extend of an expired grant is a broken promise.

If a grant has no ttl (Jepsen's EDN histories of locks have none) it has no lease: it never expires,
and the model is the fenced-mutex. With a ttl, ops need a time.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import partial
from typing import Any, NamedTuple

from fencepost.checker.lincheck.history import UNKNOWN, Call
from fencepost.checker.lincheck.model import (
    UNSAID,
    Action,
    BadValue,
    Inconsistent,
    Model,
    Name,
    Timed,
)
from fencepost.checker.lincheck.models.lock import (
    FREE,
    RESOURCE_OPS,
    lock_function,
    lock_name,
    next_token,
    shown_token,
    token_of,
)


class Lease(NamedTuple):
    """The holder's grant (or FREE), when it may expire (ns, or None), the lowest possible last
    token, and the grants that have expired."""

    grant: Hashable
    expires_ns: int | None
    token: int | None
    expired: frozenset[Hashable]


class Grant(NamedTuple):
    """A hold: its id in the history if known, else that of its process."""

    process: Hashable
    hold: Hashable

    def __repr__(self) -> str:
        return f"{self.process}" if self.hold is None else f"{self.process} (hold {self.hold})"


def lease_mutex(init: Any = None, failed_release: str = "nothing") -> Model:
    """Build the model; see the module's docstring. `init`: the last token given before the history,
    or null."""
    if init is not None and type(init) is not int:
        raise BadValue(f"lease-mutex starts with the last token, an int or null, not {init!r}")
    return Model(
        name="lease-mutex",
        initial=Lease(FREE, None, init, frozenset()),
        action=partial(_action, failed_release),
        step=step,
        functions=frozenset({"acquire", "extend", "release"}),
        ignored=RESOURCE_OPS,
        partition=lock_name,
        facet=lambda state: state.grant,
        needs=_needs,
        gives=_gives,
        leads=_leads,
        wants=_needs,
        spawns=spawns,
        settles=lambda action: action.owner if action.f in ("release", "ended") else None,
        resumes=lambda action: action.owner if action.f in ("release", "extend") else None,
        trimmed=_trimmed,
        show=_show,
    )


def _action(failed_release: str, call: Call) -> Action | None:
    f = lock_function(call, failed_release)
    if f is None:
        return None
    value = call.value if isinstance(call.value, dict) else {}
    grant = Grant(call.process, _hold(call, value))
    if f == "acquire":
        return Action(f, _expires_ns(call, value), token_of(call), grant)
    if f == "extend":
        return Action(f, _expires_ns(call, value), owner=grant)
    return Action(f, owner=grant)


def _hold(call: Call, value: dict[str, Any]) -> Hashable:
    hold = value.get("hold")
    if call.f == "acquire" and isinstance(call.result, dict):
        hold = call.result.get("hold", hold)
    if hold is not None and type(hold) not in (int, str, Name):
        raise BadValue(f"a hold must be an id, int or string, not {hold!r:.40}")
    return hold


def _expires_ns(call: Call, value: dict[str, Any]) -> int | None:
    ttl_ns = value.get("ttl")
    if ttl_ns is None:
        return None
    if type(ttl_ns) is not int or ttl_ns < 0:
        raise BadValue(f"a ttl must be an int of ns, not {ttl_ns!r:.40}")
    if call.time is None:
        raise BadValue(f"{call.f} has a ttl and the event has no time, so no lease can be timed")
    return call.time + ttl_ns


def step(state: Lease, action: Action) -> Lease | Inconsistent:
    f, expires_ns, _, grant = action
    if f == "acquire":
        if state.grant is not FREE:
            return Inconsistent(f"{grant} can't acquire: {_held(state)}")
        token = next_token(state.token, action)
        if isinstance(token, Inconsistent):
            return token
        return Lease(grant, expires_ns, token, state.expired)
    if f == "expire":
        if state.grant != grant or state.expires_ns != expires_ns:
            return Inconsistent(f"the grant of {grant} can't expire: {_held(state)}")
        return Lease(FREE, None, state.token, state.expired | {grant})
    if f == "extend":
        if state.grant == grant:
            return Lease(grant, expires_ns, state.token, state.expired)
        return Inconsistent(f"{grant} can't extend: {_held(state)}")
    if state.grant == grant:
        return Lease(FREE, None, state.token, state.expired)
    if f == "ended" or grant in state.expired:
        # A released grant needs no record of its expiry.
        return state._replace(expired=state.expired - {grant})
    return Inconsistent(f"{grant} can't release: {_held(state)}")


def spawns(action: Action) -> Timed | None:
    """Return the end of the lease that this call gives, if it gives one.

    An extend that never returned may have taken effect, and shortened the lease. A grant without an
    answer matters only if its process continues and releases or extends it.
    """
    if action.value is None or action.f not in ("acquire", "extend"):
        return None
    expire = Action("expire", action.value, owner=action.owner)
    unheard = action.f == "acquire" and action.result is UNKNOWN
    return Timed(action.value, expire, action.owner, unheard)


def _needs(action: Action) -> Hashable:
    return FREE if action.f == "acquire" else action.owner


def _gives(action: Action) -> Hashable:
    if action.f == "expire":  # releases of this grant also have another effect after it
        return UNSAID
    return action.owner if action.f in ("acquire", "extend") else FREE


def _leads(action: Action) -> Hashable:
    return action.owner if action.f in ("acquire", "extend") else FREE


def _trimmed(state: Lease, wanted: Callable[[Hashable], bool]) -> Lease:
    """Drop an expired grant unless one of its ops is pending: only those depend on its expiry."""
    expired = frozenset(grant for grant in state.expired if wanted(grant))
    return state if len(expired) == len(state.expired) else state._replace(expired=expired)


def _held(state: Lease) -> str:
    if state.grant is FREE:
        return "it is free"
    if state.expires_ns is None:
        return f"{state.grant} holds it"
    return f"{state.grant} holds it and can't expire before {state.expires_ns / 1e9:.6f} s"


def _show(state: Lease) -> str:
    held = "free" if state.grant is FREE else f"held by {state.grant}"
    until = "" if state.expires_ns is None else f" until {state.expires_ns / 1e9:.6f} s or later"
    return held + until + shown_token(state.token)
