"""Locks with several holders at once: `rw-lock` and `semaphore`.

rw-lock: the value of acquire has `mode`: "shared" or "exclusive" (also "read" and "write"), or is
that word; without one it is exclusive. Owned: a process releases its own hold.

semaphore: acquire and release take `permits` in their value, or the number as the value, else 1.
Permits have no owner; no more can be released than were acquired.
"""

from __future__ import annotations

from collections.abc import Hashable
from functools import partial
from typing import Any

from fencepost.checker.lincheck.history import Call
from fencepost.checker.lincheck.model import Action, BadValue, Inconsistent, Model
from fencepost.checker.lincheck.models.lock import FREE, RESOURCE_OPS, lock_function, lock_name

_MODES = {"shared": "shared", "read": "shared", "exclusive": "exclusive", "write": "exclusive"}


def rw_lock(init: Any = None, failed_release: str = "nothing") -> Model:
    """Build a lock for many readers or one writer. State: None, ("exclusive", process) or
    ("shared", processes)."""
    if init is not None:
        raise BadValue("rw-lock always starts free: it takes no initial value")
    return Model(
        name="rw-lock",
        initial=FREE,
        action=partial(_rw_action, failed_release),
        step=_rw_step,
        functions=frozenset({"acquire", "release"}),
        ignored=RESOURCE_OPS | {"extend"},
        partition=_rw_name,
        gives=lambda action: ("held by", action.owner) if action.f == "acquire" else FREE,
        wants=lambda action: FREE if action.f == "acquire" else ("held by", action.owner),
        show=_show_rw,
    )


def _rw_name(call: Call) -> Hashable:
    return None if isinstance(call.value, str) and call.value in _MODES else lock_name(call)


def _rw_action(failed_release: str, call: Call) -> Action | None:
    f = lock_function(call, failed_release)
    if f != "acquire":
        return None if f is None else Action(f, owner=call.process)
    mode = call.value.get("mode") if isinstance(call.value, dict) else call.value
    if not isinstance(mode, str) or (mode not in _MODES and not isinstance(call.value, dict)):
        mode = "exclusive" if mode is None or not isinstance(call.value, dict) else mode
    if mode not in _MODES:
        raise BadValue(f"mode must be shared or exclusive, not {mode!r:.40}")
    return Action(f, _MODES[mode], owner=call.process)


def _rw_step(state: Any, action: Action) -> Any:
    f, mode, _, owner = action
    if f == "acquire":
        if state is FREE:
            return (mode, owner) if mode == "exclusive" else (mode, frozenset({owner}))
        if mode == "exclusive" or state[0] == "exclusive" or owner in state[1]:
            return Inconsistent(f"{owner} can't acquire {mode}: {_show_rw(state)}")
        return mode, state[1] | {owner}
    if state is not FREE and state[0] == "exclusive" and state[1] == owner:
        return FREE
    if state is not FREE and state[0] == "shared" and owner in state[1]:
        return ("shared", state[1] - {owner}) if len(state[1]) > 1 else FREE
    if f == "ended":
        return state
    return Inconsistent(f"{owner} can't release: {_show_rw(state)}")


def _show_rw(state: Any) -> str:
    if state is FREE:
        return "free"
    holders = (
        state[1] if state[0] == "exclusive" else ", ".join(map(str, sorted(state[1], key=str)))
    )
    return f"held {state[0]} by {holders}"


def semaphore(init: Any = 1, failed_release: str = "nothing") -> Model:
    """Build a semaphore. `init`: its number of permits, an int of at least 1. State: how many are
    free."""
    if init is None:
        init = 1
    if type(init) is not int or init < 1:
        raise BadValue(f"a semaphore needs its number of permits, an int from 1, not {init!r}")
    return Model(
        name="semaphore",
        initial=init,
        action=partial(_semaphore_action, failed_release),
        step=partial(_semaphore_step, init),
        functions=frozenset({"acquire", "release"}),
        ignored=RESOURCE_OPS | {"extend"},
        partition=_semaphore_name,
        show=lambda free: f"{free} of {init} permits free",
    )


def _semaphore_name(call: Call) -> Hashable:
    return lock_name(call) if isinstance(call.value, dict | str) else None


def _semaphore_action(failed_release: str, call: Call) -> Action | None:
    f = lock_function(call, failed_release)
    if f is None:
        return None
    if f == "release" and call.type == "info" and failed_release == "ended":
        f = "ended"  # it may turn out to have failed, and then has that effect
    permits = call.value.get("permits") if isinstance(call.value, dict) else call.value
    if permits is None or isinstance(permits, str):
        permits = 1
    if type(permits) is not int or permits < 1:
        raise BadValue(f"permits must be an int from 1, not {permits!r:.40}")
    return Action(f, permits)


def _semaphore_step(total: int, free: int, action: Action) -> int | Inconsistent:
    permits: int = action.value
    if action.f == "acquire":
        return (
            free - permits
            if permits <= free
            else Inconsistent(f"can't acquire {permits}: {free} of {total} permits are free")
        )
    if action.f == "ended":
        return min(total, free + permits)
    return (
        free + permits
        if free + permits <= total
        else Inconsistent(f"can't release {permits}: {free} of {total} permits are free already")
    )
