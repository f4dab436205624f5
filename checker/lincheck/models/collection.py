"""Collections: `set`, `counter`, `fifo-queue`, `unordered-queue`.

set: add(value), read -> the values (a list, in any order). counter: add(int), read -> int. Queues:
enqueue(value), dequeue -> value. A dequeue from the fifo-queue that returned null found it empty;
from the unordered-queue it has no information, like a read of null.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, Final

from fencepost.checker.lincheck.history import UNKNOWN, Call
from fencepost.checker.lincheck.model import (
    Action,
    BadValue,
    Inconsistent,
    Model,
    frozen,
    refuse_pair,
)

_NOTHING: Final = (
    "nothing",
    None,
)  # never equal to a value of a history, which is never such a pair


def set_model(init: Any = None) -> Model:
    """Build a set that only grows. `init`: a list of its values, or null for none."""
    return Model(
        name="set",
        initial=frozenset(map(frozen, _items("set", init))),
        action=_set_action,
        step=_set_step,
        functions=frozenset({"add", "read"}),
        observes=lambda action: action.f == "read",
        reaches=lambda state, action: state <= action.result,
        rests_on=lambda action, other: action.f == "read" and other.value in action.result,
        show=lambda state: "{" + ", ".join(map(repr, sorted(state, key=repr))) + "}",
    )


def _items(name: str, init: Any) -> list[Any]:
    if init is None:
        return []
    if not isinstance(init, list | tuple):
        raise BadValue(f"{name} starts with a list, not {init!r:.40}")
    return list(init)


def _set_action(call: Call) -> Action | None:
    if call.f == "add":
        return None if call.type == "fail" else Action("add", frozen(call.value))
    refuse_pair(call)
    if call.type != "ok" or call.result is UNKNOWN or call.result is None:
        return None
    if not isinstance(call.result, list | tuple | set | frozenset):
        raise BadValue(f"a set reads as a list of its values, not {call.result!r:.40}")
    return Action("read", result=frozenset(map(frozen, call.result)))


def _set_step(state: frozenset[Hashable], action: Action) -> frozenset[Hashable] | Inconsistent:
    if action.f == "add":
        return state if action.value in state else state | {action.value}
    if state == action.result:
        return state
    read: frozenset[Hashable] = action.result
    return Inconsistent(
        "can't read the set: "
        + " and ".join(
            f"{len(items)} {what}, such as {sorted(items, key=repr)[0]!r}"
            for items, what in ((read - state, "not in it"), (state - read, "missing"))
            if items
        )
    )


def counter(init: Any = 0) -> Model:
    """Build a number to add to. `init`: where it starts, an int."""
    init = 0 if init is None else init
    if type(init) is not int:
        raise BadValue(f"counter starts with an int, not {init!r:.40}")
    return Model(
        name="counter",
        initial=init,
        action=_counter_action,
        step=_counter_step,
        functions=frozenset({"add", "read"}),
        observes=lambda action: action.f == "read",
        reaches=lambda state, action: state <= action.result,
        resets=lambda action: action.f == "add" and action.value < 0,
        rests_on=lambda action, other: action.f == "read" != other.f and other.value != 0,
    )


def _counter_action(call: Call) -> Action | None:
    if call.f == "add":
        if type(call.value) is not int:
            raise BadValue(f"a counter adds an int, not {call.value!r:.40}")
        return None if call.type == "fail" else Action("add", call.value)
    if call.type != "ok" or call.result is UNKNOWN or call.result is None:
        return None
    if type(call.result) is not int:
        raise BadValue(f"a counter reads as an int, not {call.result!r:.40}")
    return Action("read", result=call.result)


def _counter_step(state: int, action: Action) -> int | Inconsistent:
    if action.f == "add":
        return state + int(action.value)
    return (
        state
        if state == action.result
        else Inconsistent(f"can't read {action.result}: it is {state}")
    )


def fifo_queue(init: Any = None) -> Model:
    """Build a first-in, first-out queue. `init`: a list, the head first."""
    return Model(
        name="fifo-queue",
        initial=tuple(map(frozen, _items("fifo-queue", init))),
        action=_queue_action,
        step=_fifo_step,
        functions=frozenset({"enqueue", "dequeue"}),
        observes=lambda action: action.f == "dequeue" and action.result is None,
        rests_on=lambda action, other: action.f == "dequeue" and action.result == other.value,
        show=lambda state: f"[{', '.join(map(repr, state))}]",
    )


def _queue_action(call: Call) -> Action | None:
    if call.type == "fail":
        return None
    if call.f == "enqueue":
        if call.value is None:
            raise BadValue("null cannot be enqueued: a dequeue of null means an empty queue")
        return Action("enqueue", frozen(call.value))
    refuse_pair(call)
    return Action("dequeue", result=frozen(call.result) if call.type == "ok" else UNKNOWN)


def _fifo_step(state: tuple[Hashable, ...], action: Action) -> tuple[Hashable, ...] | Inconsistent:
    f, value, result, _ = action
    if f == "enqueue":
        return (*state, value)
    if not state:
        return (
            state
            if result is None
            else Inconsistent(f"can't dequeue {result!r}: the queue is empty")
        )
    if result is UNKNOWN or state[0] == result:
        return state[1:]
    return Inconsistent(f"can't dequeue {result!r}: the head is {state[0]!r}")


def unordered_queue(init: Any = None) -> Model:
    """Build a bag: any value in it may be dequeued. State: the set of (value, how often).

    A dequeue that never returned is left out: it could only remove a value, which enables no op of
    a bag.
    """
    counts: dict[Hashable, int] = {}
    for item in map(frozen, _items("unordered-queue", init)):
        counts[item] = counts.get(item, 0) + 1
    return Model(
        name="unordered-queue",
        initial=frozenset(counts.items()),
        action=_bag_action,
        step=_bag_step,
        functions=frozenset({"enqueue", "dequeue"}),
        gives=lambda action: action.value if action.f == "enqueue" else _NOTHING,
        wants=lambda action: _NOTHING if action.f == "enqueue" else action.result,
        cells=lambda action: frozenset({action.value if action.f == "enqueue" else action.result}),
        show=lambda state: (
            "{" + ", ".join(f"{v!r} x {n}" for v, n in sorted(state, key=repr)) + "}"
        ),
    )


def _bag_action(call: Call) -> Action | None:
    action = _queue_action(call)
    if action is None or (action.f == "dequeue" and action.result in (UNKNOWN, None)):
        return None
    return action


def _bag_step(
    state: frozenset[tuple[Hashable, int]], action: Action
) -> frozenset[tuple[Hashable, int]] | Inconsistent:
    f, value, result, _ = action
    counts = dict(state)
    if f == "enqueue":
        counts[value] = counts.get(value, 0) + 1
        return frozenset(counts.items())
    if result not in counts:
        return Inconsistent(f"can't dequeue {result!r}: it is not in the queue")
    if counts[result] == 1:
        del counts[result]
    else:
        counts[result] -= 1
    return frozenset(counts.items())
