"""Locks without leases: `mutex`, `owner-mutex`, `reentrant-mutex`, `fenced-mutex`.

An acquire or release names its lock as `lock` in its value, or as the value itself, or not at all;
each lock is an object of its own. A failed acquire did not happen. The effect of a failed release
is a setting: `nothing`, or `ended`: then its process's hold, if any, has ended once the release
returns. `extend`, `lost` and `renewed` change nothing here, and reads and writes of the protected
resource are skipped.

A crashed acquire without a release never enables another op, and `gives` states it: it names the
holder, and only that holder's release wants it.
"""

from __future__ import annotations

from collections.abc import Hashable
from functools import partial
from typing import Any, Final

from fencepost.checker.lincheck.history import SPONTANEOUS, UNKNOWN, UNSENT, Call
from fencepost.checker.lincheck.model import (
    UNSAID,
    Action,
    BadValue,
    Inconsistent,
    Model,
    State,
    frozen,
)

RESOURCE_OPS = frozenset({"read", "write", "close"}) | SPONTANEOUS
FREE: Final = None
HELD: Final = "held"
FAILED_RELEASE = ("nothing", "ended")


def mutex(init: Any = None, failed_release: str = "nothing") -> Model:
    """Build an ownerless mutex: any process may release it, as in Knossos. `init` true: held at
    first."""
    owned = failed_release == "ended"  # only then does a release depend on whose hold it would end
    held = (HELD, None) if init else FREE
    return Model(
        name="mutex",
        initial=held,
        action=partial(_mutex_action, owned, failed_release),
        step=_mutex_step,
        functions=frozenset({"acquire", "release"}),
        ignored=RESOURCE_OPS | {"extend"},
        partition=lock_name,
        facet=lambda state: FREE if state is FREE else HELD,
        needs=lambda action: FREE if action.f == "acquire" else HELD,
        gives=lambda action: HELD if action.f == "acquire" else FREE,
        wants=_mutex_wants,
        show=lambda state: "free" if state is FREE else "held",
    )


def _mutex_action(owned: bool, failed_release: str, call: Call) -> Action | None:
    f = lock_function(call, failed_release)
    if f is None:
        return None
    if f == "release":
        return Action(f)
    if f == "ended":
        return Action(f, owner=call.process)
    # A holder without an answer will not release, so crashed acquires are alike.
    return Action(f, owner=call.process if owned and call.type == "ok" else None)


def _mutex_step(state: Any, action: Action) -> State | Inconsistent:
    if action.f == "acquire":
        return (HELD, action.owner) if state is FREE else Inconsistent("can't acquire: it is held")
    if action.f == "release":
        return FREE if state is not FREE else Inconsistent("can't release: it is free")
    return FREE if state == (HELD, action.owner) else state


def _mutex_wants(action: Action) -> Hashable:
    if action.f == "ended":  # its effect depends on whose hold it meets
        return UNSAID
    return FREE if action.f == "acquire" else HELD


def owner_mutex(init: Any = None, failed_release: str = "nothing") -> Model:
    """Build a mutex that only its holder can release. `init`: the first holder, or null."""
    return Model(
        name="owner-mutex",
        initial=frozen(init),
        action=partial(_owned_action, failed_release),
        step=_owner_step,
        functions=frozenset({"acquire", "release"}),
        ignored=RESOURCE_OPS | {"extend"},
        partition=lock_name,
        facet=lambda state: state,
        needs=_needs,
        gives=_gives,
        wants=_needs,
        show=_holder,
    )


def _owned_action(failed_release: str, call: Call) -> Action | None:
    f = lock_function(call, failed_release)
    return None if f is None else Action(f, owner=call.process)


def _owner_step(state: Hashable, action: Action) -> State | Inconsistent:
    if action.f == "acquire":
        return (
            action.owner
            if state is FREE
            else Inconsistent(f"{action.owner} can't acquire: {state} holds it")
        )
    if state == action.owner:
        return FREE
    return state if action.f == "ended" else _not_holding(action, state)


def _not_holding(action: Action, holder: Hashable) -> Inconsistent:
    whose = "it is free" if holder is FREE else f"{holder} holds it"
    return Inconsistent(f"{action.owner} can't release: {whose}")


def _holder(state: Hashable) -> str:
    return "free" if state is FREE else f"held by {state}"


def _needs(action: Action) -> Hashable:
    return FREE if action.f == "acquire" else action.owner


def _gives(action: Action) -> Hashable:
    return action.owner if action.f == "acquire" else FREE


def reentrant_mutex(init: Any = None, failed_release: str = "nothing") -> Model:
    """Build a mutex that its holder may acquire again. State: (holder, depth) or free.

    `init`: the maximal depth, or null.
    """
    if init is not None and (type(init) is not int or init < 1):
        raise BadValue(f"reentrant-mutex starts with the most depth allowed, an int, not {init!r}")
    return Model(
        name="reentrant-mutex",
        initial=FREE,
        action=partial(_owned_action, failed_release),
        step=partial(_reentrant_step, init),
        functions=frozenset({"acquire", "release"}),
        ignored=RESOURCE_OPS | {"extend"},
        partition=lock_name,
        gives=lambda action: ("held by", action.owner) if action.f == "acquire" else FREE,
        wants=lambda action: FREE if action.f == "acquire" else ("held by", action.owner),
        show=lambda state: "free" if state is FREE else f"held {state[1]} times by {state[0]}",
    )


def _reentrant_step(most: int | None, state: Any, action: Action) -> State | Inconsistent:
    owner = action.owner
    if action.f == "acquire":
        if state is FREE:
            return owner, 1
        if state[0] != owner:
            return Inconsistent(f"{owner} can't acquire: {state[0]} holds it")
        if state[1] == most:
            return Inconsistent(f"{owner} can't acquire: it holds it {most} times already")
        return owner, state[1] + 1
    if state is not FREE and state[0] == owner:
        return (owner, state[1] - 1) if state[1] > 1 else FREE
    return state if action.f == "ended" else _not_holding(action, state and state[0])


def fenced_mutex(init: Any = None, failed_release: str = "nothing") -> Model:
    """Build an owner-mutex with rising tokens. State: (holder, lowest possible last token).

    `init`: the last token given before the history, or null. A grant without a token is not
    checked; an unobserved grant gets the lowest token that it can have had.
    """
    if init is not None and type(init) is not int:
        raise BadValue(f"fenced-mutex starts with the last token, an int or null, not {init!r}")
    return Model(
        name="fenced-mutex",
        initial=(FREE, init),
        action=partial(_fenced_action, failed_release),
        step=_fenced_step,
        functions=frozenset({"acquire", "release"}),
        ignored=RESOURCE_OPS | {"extend"},
        partition=lock_name,
        facet=lambda state: state[0],
        needs=_needs,
        gives=_gives,
        wants=_needs,
        show=lambda state: _holder(state[0]) + shown_token(state[1]),
    )


def _fenced_action(failed_release: str, call: Call) -> Action | None:
    f = lock_function(call, failed_release)
    if f != "acquire":
        return None if f is None else Action(f, owner=call.process)
    return Action(f, result=token_of(call), owner=call.process)


def _fenced_step(state: Any, action: Action) -> State | Inconsistent:
    holder, last = state
    if action.f == "acquire":
        if holder is not FREE:
            return Inconsistent(f"{action.owner} can't acquire: {holder} holds it")
        token = next_token(last, action)
        return token if isinstance(token, Inconsistent) else (action.owner, token)
    if holder == action.owner:
        return FREE, last
    return state if action.f == "ended" else _not_holding(action, holder)


def token_of(call: Call) -> Hashable:
    """Return the token of a grant: an int, None without one, UNKNOWN if it was not observed."""
    if call.type != "ok":
        return UNKNOWN
    token = call.result.get("token") if isinstance(call.result, dict) else None
    if type(call.result) is int and call.value is None:
        token = call.result  # Jepsen's fenced locks return the fence as the value
    if token is not None and type(token) is not int:
        raise BadValue(f"a token must be an int or null, not {token!r:.40}")
    return token


def next_token(last: int | None, action: Action) -> int | Inconsistent | None:
    """Return the last token after this grant, or why its token cannot follow `last`."""
    token: int | None = None if action.result is UNKNOWN else action.result
    if token is None:
        return last + 1 if action.result is UNKNOWN and last is not None else last
    if last is not None and token <= last:
        return Inconsistent(
            f"{action.owner} can't be granted token {token}: {last} was granted before"
        )
    return token


def shown_token(token: int | None) -> str:
    return "" if token is None else f", last token {token}"


def lock_function(call: Call, failed_release: str) -> str | None:
    """Return acquire, release or ended; None for a call that did not happen, such as any that
    reached no server."""
    if call.type != "fail":
        return call.f
    ended = call.f == "release" and failed_release == "ended" and call.result is not UNSENT
    return "ended" if ended else None


def lock_name(call: Call) -> Any:
    """Return the lock of the call, or None if it names none."""
    value = call.value
    if isinstance(value, dict):
        return frozen(value.get("lock"))
    if value is None or isinstance(value, str) or type(value) is int:
        return value
    raise BadValue(f"{call.f} needs the lock's name or {{lock: name}}, not {value!r:.40}")
