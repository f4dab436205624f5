"""One register: `register` (read, write) and `cas-register` (read, write, cas).

The value of a write and the result of a read are the register's value; cas takes [old, new]. An ok
cas has matched, unless its result is false: then it found another value. In fencepost's own
histories values are maps with `resource` and `value`: each resource is a separate register. A
failed op did not happen. Ops of a lock in the same history are skipped.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

from fencepost.checker.lincheck.history import SPONTANEOUS, UNKNOWN, Call
from fencepost.checker.lincheck.model import (
    ANY_STATE,
    UNSAID,
    Action,
    BadValue,
    Inconsistent,
    Model,
    Pair,
    State,
    frozen,
    refuse_pair,
    shown,
)

LOCK_OPS = frozenset({"acquire", "extend", "release", "close"}) | SPONTANEOUS


def register(init: Any = None) -> Model:
    """Build a read-write register that starts as `init`."""
    return _model("register", init, frozenset({"read", "write"}))


def cas_register(init: Any = None) -> Model:
    """Build a register with compare-and-set that starts as `init`."""
    return _model("cas-register", init, frozenset({"read", "write", "cas"}))


def _model(name: str, init: Any, functions: frozenset[str]) -> Model:
    return Model(
        name=name,
        initial=frozen(init),
        action=action,
        step=step,
        functions=functions,
        ignored=LOCK_OPS,
        partition=resource,
        observes=observes,
        facet=lambda state: state,
        needs=needs,
        gives=gives,
        wants=wants,
    )


def action(call: Call) -> Action | None:
    if call.type == "fail":
        return None
    if call.f == "read":
        if call.value is not None:
            refuse_pair(call)
        if call.type != "ok" or call.result is UNKNOWN:
            return None
        return Action("read", result=frozen(_plain(call.result)))
    if call.f == "write":
        return Action("write", frozen(_plain(call.value)))
    return _cas(call)


def _cas(call: Call) -> Action | None:
    if type(call.value) is Pair:
        frozen(call.value)
    if not isinstance(call.value, list | tuple) or len(call.value) != 2:
        raise BadValue(f"cas needs [old, new], not {call.value!r:.40}")
    if _is_list_of_two(call.value[1]) and not isinstance(call.value[0], list | tuple):
        raise BadValue(
            f"cas is invoked with {list(call.value)!r:.40}, which is [key, [old, new]] in "
            "jepsen.independent: add --keyed"
        )
    old, new = frozen(call.value[0]), frozen(call.value[1])
    if call.type == "ok" and call.result is False:
        return Action("cas", (old, new), frozen(False))
    if old == new and call.type != "ok":
        return None
    return Action("cas", (old, new))


def _is_list_of_two(value: Any) -> bool:
    return isinstance(value, list | tuple) and len(value) == 2


def step(state: State, action: Action) -> State | Inconsistent:
    f, value, result, _ = action
    if f == "write":
        return value
    if f == "read":
        return (
            state
            if state == result
            else Inconsistent(f"can't read {shown(result)} from {shown(state)}")
        )
    old, new = value
    if result is not UNKNOWN:
        return (
            state
            if state != old
            else Inconsistent(
                f"can't fail to CAS {shown(state)} from {shown(old)} to {shown(new)}: it matches"
            )
        )
    return (
        new
        if state == old
        else Inconsistent(f"can't CAS {shown(state)} from {shown(old)} to {shown(new)}")
    )


def observes(action: Action) -> bool:
    if action.f == "cas":
        old, new = action.value
        return action.result is not UNKNOWN or old == new
    return action.f == "read"


def needs(action: Action) -> Any:
    if action.f == "read":
        return action.result
    if action.f == "write" or action.result is not UNKNOWN:
        return UNSAID
    return action.value[0]


def gives(action: Action) -> Any:
    return action.value if action.f == "write" else action.value[1]


def wants(action: Action) -> Any:
    if action.f == "write":
        return ANY_STATE
    return needs(action)  # any change may enable a cas that must not match: UNSAID


def resource(call: Call) -> Hashable:
    value = call.value if isinstance(call.value, dict) else call.result
    return frozen(value["resource"]) if isinstance(value, dict) and "resource" in value else None


def _plain(value: Any) -> Any:
    return value.get("value") if isinstance(value, dict) and "resource" in value else value
