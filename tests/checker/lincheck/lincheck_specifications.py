"""Specify each model separately from it: a plain function for each model, and ops."""

from collections.abc import Callable
from typing import Any, NamedTuple

from fencepost.checker.lincheck import UNKNOWN
from fencepost.checker.lincheck.history import Call

NEVER = object()  # the answer of a specification where the op cannot happen


def call(process, f, value=None, result=None, type="ok"):
    if type == "info":
        return Call(process, f, type, value, UNKNOWN, 0, None, 0, None, 1)
    return Call(process, f, type, value, result, 0, 1, 0, 1, 1)


class Spec(NamedTuple):
    """`after(state, process, f, value, result)`: the next state or NEVER; `ops` are calls."""

    name: str
    init: Any
    start: Any
    after: Callable[..., Any]
    ops: list[Call]
    failed_release: str = "nothing"
    depth: int = 5


def register(state, process, f, value, result):
    if f == "write":
        return value
    if f == "read":
        return state if result == state else NEVER
    old, new = value
    if result is False:
        return NEVER if state == old else state
    return new if state == old else NEVER


def transactions(state, process, f, value, result):
    values = dict(state)
    if f != "txn":
        result = [[f, *(result if f == "read" else value)]]
    for kind, name, said in value if result is UNKNOWN else result:
        if kind in ("w", "write"):
            values[name] = said
        elif said is not None and result is not UNKNOWN and values.get(name) != said:
            return NEVER
    return tuple(sorted(values.items()))


def texts(state, process, f, value, result):
    values = dict(state)
    key = value[0]
    if f == "get":
        return state if values.get(key, "") == (result[1] or "") else NEVER
    values[key] = value[1] if f == "put" else values.get(key, "") + value[1]
    return tuple(sorted(values.items()))


def growing_set(state, process, f, value, result):
    if f == "add":
        return tuple(sorted({*state, value}))
    return state if sorted(set(result)) == list(state) else NEVER


def number(state, process, f, value, result):
    if f == "add":
        return state + value
    return state if state == result else NEVER


def fifo(state, process, f, value, result):
    if f == "enqueue":
        return [*state, value]
    if result is None:
        return NEVER if state else state
    if not state or (result is not UNKNOWN and state[0] != result):
        return NEVER
    return state[1:]


def bag(state, process, f, value, result):
    if f == "enqueue":
        return sorted([*state, value])
    if result not in state:
        return NEVER
    rest = list(state)
    rest.remove(result)
    return rest


def anybodys(state, process, f, value, result):
    if f == "acquire":
        return process if state is None else NEVER
    if f == "ended":
        return None if state == process else state
    return NEVER if state is None else None


def free_or_held(state, process, f, value, result):
    """Specify the same as `anybodys`, without a check of the holder."""
    if f == "acquire":
        return "held" if state is None else NEVER
    return NEVER if state is None else None


def owned(state, process, f, value, result):
    if f == "acquire":
        return process if state is None else NEVER
    if state == process:
        return None
    return state if f == "ended" else NEVER


def twice(state, process, f, value, result):
    """Let the holder take the lock twice: the state is a list of holders."""
    if f == "acquire":
        return [*state, process] if state in ([], [process]) else NEVER
    if state and state[0] == process:
        return state[1:]
    return state if f == "ended" else NEVER


def fenced(state, process, f, value, result):
    holder, last = state
    if f == "acquire":
        if holder is not None:
            return NEVER
        if result is UNKNOWN:
            return process, None if last is None else last + 1
        token = result["token"]
        if token is None:
            return process, last
        return NEVER if last is not None and token <= last else (process, token)
    if holder == process:
        return None, last
    return state if f == "ended" else NEVER


def leased(state, process, f, value, result):
    """Let grants expire: (holder, when it may, last token, the grants that have expired)."""
    grant, until, last, expired = state
    own = process, value.get("hold") if f != "acquire" else (result or {}).get("hold")
    if f == "acquire":
        if grant is not None:
            return NEVER
        token = result["token"]
        if token is not None and last is not None and token <= last:
            return NEVER
        return own, value.get("ttl"), last if token is None else token, expired
    if f == "expire":
        if (grant, until) != (own, value["at"]):
            return NEVER
        return None, None, last, sorted({*expired, own})
    if grant == own:
        return (
            (own, value.get("ttl"), last, expired) if f == "extend" else (None, None, last, expired)
        )
    if f == "ended" or (f == "release" and own in expired):
        return grant, until, last, [one for one in expired if one != own]
    return NEVER


def three_permits(free, process, f, value, result):
    permits = value["permits"]
    if f == "acquire":
        return free - permits if free - permits >= 0 else NEVER
    if free + permits > 3:
        return 3 if f == "ended" else NEVER
    return free + permits


def readers_and_writer(state, process, f, value, result):
    readers, writer = state
    if f == "acquire" and value["mode"] == "shared":
        free = writer is None and process not in readers
        return (sorted([*readers, process]), None) if free else NEVER
    if f == "acquire":
        return NEVER if readers or writer is not None else ([], process)
    if writer == process:
        return [], None
    if process in readers:
        return [reader for reader in readers if reader != process], None
    return state if f == "ended" else NEVER


def both(f, value=None, result=None):
    """Return the op by each of two processes, completed and open."""
    return [call(p, f, value, result, type) for p in (1, 2) for type in ("ok", "info")]


LOCKING = both("acquire") + both("release")
SHARING = [
    call(p, f, {"mode": mode})
    for p in (1, 2, 3)
    for f, mode in [("acquire", "shared"), ("acquire", "exclusive"), ("release", None)]
]
PERMITS = [
    call(p, f, {"permits": n}) for p in (1, 2) for f in ("acquire", "release") for n in (1, 2, 3, 4)
]
SPECS = [
    Spec(
        "register",
        0,
        0,
        register,
        [
            call(1, "write", 1),
            call(1, "write", 2, type="info"),
            *(call(1, "read", None, seen) for seen in (None, 0, 1, 2)),
        ],
    ),
    Spec(
        "cas-register",
        0,
        0,
        register,
        [
            call(1, "write", 1),
            call(1, "write", 2, type="info"),
            *(call(1, "read", None, seen) for seen in (0, 1, 2)),
            call(1, "cas", [1, 2], [1, 2]),
            call(1, "cas", [1, 2], False),
            call(1, "cas", [2, 0], None),
            call(1, "cas", [0, 1], type="info"),
            call(1, "cas", [2, 2], [2, 2]),
            call(1, "cas", [2, 2], False),
        ],
    ),
    Spec(
        "multi-register",
        {"x": 1},
        (("x", 1),),
        transactions,
        [
            call(1, "txn", [["w", "x", 1], ["write", "y", 2]], [["w", "x", 1], ["write", "y", 2]]),
            call(1, "txn", [["r", "x", None], ["w", "x", 2]], [["r", "x", 1], ["w", "x", 2]]),
            call(1, "txn", [["w", "x", 3], ["r", "x", None]], [["w", "x", 3], ["r", "x", 3]]),
            call(1, "txn", [["w", "x", 3], ["r", "x", None]], [["w", "x", 3], ["r", "x", 2]]),
            call(1, "txn", [["r", "x", None], ["r", "y", None]], [["read", "x", 2], ["r", "y", 2]]),
            call(1, "txn", [["r", "y", 9], ["w", "x", 2]], type="info"),
            call(1, "txn", [["r", "y", None], ["w", "x", 2]], [["r", "y", None], ["w", "x", 2]]),
            call(1, "txn", [["w", "x", None]], [["w", "x", None]]),
            call(1, "write", ["y", 1], ["y", 1]),
            call(1, "read", ["y", None], ["y", 1]),
        ],
    ),
    Spec(
        "kv",
        {"a": "x"},
        (("a", "x"),),
        texts,
        [
            call(1, "put", ["a", "x"]),
            call(1, "put", ["b", "y"]),
            call(1, "put", ["a", "z"], type="info"),
            call(1, "append", ["a", "y"]),
            call(1, "append", ["b", "x"], type="info"),
            *(
                call(1, "get", [key, None], [key, text])
                for key in "ab"
                for text in (None, "", "x", "xy", "y", "yx")
            ),
        ],
        depth=3,
    ),
    Spec(
        "set",
        [1],
        (1,),
        growing_set,
        [
            *(call(1, "add", n) for n in (1, 2, 3)),
            call(1, "add", 2, type="info"),
            *(
                call(1, "read", None, seen)
                for seen in ([], [1], [2], [1, 2], [2, 1, 1], [1, 2, 3], [1, 3])
            ),
        ],
    ),
    Spec(
        "counter",
        5,
        5,
        number,
        [
            *(call(1, "add", n) for n in (1, 2, 0, -1)),
            call(1, "add", 3, type="info"),
            *(call(1, "read", None, seen) for seen in range(2, 9)),
        ],
        depth=3,
    ),
    Spec(
        "fifo-queue",
        [1],
        [1],
        fifo,
        [
            *(call(1, "enqueue", n) for n in (1, 2)),
            call(1, "enqueue", 2, type="info"),
            *(call(1, "dequeue", None, seen) for seen in (None, 1, 2)),
            call(1, "dequeue", type="info"),
        ],
    ),
    Spec(
        "unordered-queue",
        [1, 1],
        [1, 1],
        bag,
        [
            *(call(1, "enqueue", n) for n in (1, 2)),
            call(1, "enqueue", 2, type="info"),
            *(call(1, "dequeue", None, seen) for seen in (1, 2)),
        ],
    ),
    Spec("mutex", None, None, free_or_held, LOCKING),
    Spec("mutex", True, "held", free_or_held, LOCKING),
    Spec(
        "mutex",
        None,
        None,
        anybodys,
        [call(p, "release", type="fail") for p in (1, 2)]
        + [call(p, f) for p in (1, 2) for f in ("acquire", "release")],
        "ended",
    ),
    Spec("owner-mutex", None, None, owned, LOCKING),
    Spec("owner-mutex", 2, 2, owned, LOCKING),
    Spec(
        "owner-mutex",
        None,
        None,
        owned,
        [*LOCKING, *both("release"), *(call(p, "release", type="fail") for p in (1, 2))],
        "ended",
    ),
    Spec("reentrant-mutex", 2, [], twice, LOCKING),
    Spec(
        "reentrant-mutex",
        2,
        [],
        twice,
        [*LOCKING, *(call(p, "release", type="fail") for p in (1, 2))],
        "ended",
    ),
    Spec(
        "fenced-mutex",
        None,
        (None, None),
        fenced,
        [
            *both("release"),
            *(call(p, "acquire", None, {"token": t}) for p in (1, 2) for t in (None, 3, 4, 5)),
            call(1, "acquire", type="info"),
        ],
    ),
    Spec(
        "fenced-mutex",
        3,
        (None, 3),
        fenced,
        [
            *both("release"),
            *(call(p, "release", type="fail") for p in (1, 2)),
            *(call(p, "acquire", None, {"token": t}) for p in (1, 2) for t in (None, 2, 3, 4, 5)),
            call(1, "acquire", type="info"),
        ],
        "ended",
        4,
    ),
    Spec("semaphore", 3, 3, three_permits, PERMITS),
    Spec(
        "semaphore",
        3,
        3,
        three_permits,
        [*PERMITS, *(call(1, "release", {"permits": n}, type="fail") for n in (1, 2))],
        "ended",
    ),
    Spec("rw-lock", None, ([], None), readers_and_writer, SHARING),
    Spec(
        "rw-lock",
        None,
        ([], None),
        readers_and_writer,
        [*SHARING, *(call(p, "release", {"mode": "shared"}, type="fail") for p in (1, 2))],
        "ended",
    ),
    *(
        Spec(
            "lease-mutex",
            start,
            (None, None, start, []),
            leased,
            [
                *(
                    call(p, "acquire", value, {"token": token, "hold": "h"})
                    for p in (1, 2)
                    for value in ({"ttl": 10}, {"ttl": 20}, {})
                    for token in (None, 3, 4)
                ),
                *(
                    call(p, f, {"hold": hold, "ttl": 15})
                    for p, hold in ((1, "h"), (2, "h"), (1, "g"))
                    for f in ("extend", "release")
                ),
                *more,
            ],
            failed_release,
            3,
        )
        for start, failed_release, more in [
            (None, "nothing", []),
            (3, "nothing", []),
            (2, "ended", [call(p, "release", {"hold": "h"}, type="fail") for p in (1, 2)]),
        ]
    ),
]
