"""Draw random histories of every model: run ops on the model, then perhaps corrupt them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Any

from fencepost.checker.lincheck.history import Call
from fencepost.checker.lincheck.model import Inconsistent, Model
from fencepost.checker.lincheck.models import named

Event = dict[str, Any]
MS = 1_000_000


@dataclass(frozen=True)
class Subject:
    """How to exercise a model.

    op(random, process, holding) -> (f, value); results(f, value) -> all results of such an op.
    """

    name: str
    op: Callable[[Random, int, bool], tuple[str, Any]]
    results: Callable[[str, Any], list[Any]]
    init: Any = None
    lock: bool = False

    def model(self, failed_release: str = "nothing") -> Model:
        return named(self.name, self.init, failed_release)


def _register(random: Random, process: int, holding: bool) -> tuple[str, Any]:
    return random.choice([("read", None), ("write", random.randrange(3))])


def _cas(random: Random, process: int, holding: bool) -> tuple[str, Any]:
    pair = [random.randrange(3), random.randrange(3)]
    return random.choice([("read", None), ("write", random.randrange(3)), ("cas", pair)])


def _cas_results(f: str, value: Any) -> list[Any]:
    if f == "cas":
        return [value, False]
    return [0, 1, 2] if f == "read" else [value]


def _txn(random: Random, process: int, holding: bool) -> tuple[str, Any]:
    names = random.sample("xy", random.randrange(1, 3))
    kinds = random.choice([("r",), ("w",), ("r", "w")])
    return "txn", [
        ["r", name, None] if random.choice(kinds) == "r" else ["w", name, random.randrange(2)]
        for name in names
    ]


def _txn_results(f: str, value: Any) -> list[Any]:
    results: list[Any] = [[]]
    for kind, name, written in value:
        values = [0, 1] if kind == "r" else [written]
        results = [[*result, [kind, name, v]] for result in results for v in values]
    return results


def _kv(random: Random, process: int, holding: bool) -> tuple[str, Any]:
    key = random.choice("pq" if random.random() < 0.3 else "p")
    f = random.choice(["put", "append", "append", "get", "get"])
    return f, [key, None if f == "get" else random.choice("ab")]


def _kv_results(f: str, value: Any) -> list[Any]:
    texts = ["", "a", "b", "aa", "ab", "ba", "bb", "aab", "aba", "baa", "abb", "bab", "bba"]
    return [[value[0], text] for text in texts] if f == "get" else [value]


def _set(random: Random, process: int, holding: bool) -> tuple[str, Any]:
    return random.choice([("read", None), ("add", random.randrange(3))])


def _set_results(f: str, value: Any) -> list[Any]:
    subsets = [[], [0], [1], [2], [0, 1], [0, 2], [1, 2], [0, 1, 2]]
    return subsets if f == "read" else [value]


def _counter(random: Random, process: int, holding: bool) -> tuple[str, Any]:
    return random.choice([("read", None), ("add", random.choice([1, 2, -1, 0]))])


def _queue(random: Random, process: int, holding: bool) -> tuple[str, Any]:
    return random.choice([("dequeue", None), ("enqueue", random.randrange(3))])


def _bag(random: Random, process: int, holding: bool) -> tuple[str, Any]:
    return random.choice([("dequeue", None), ("dequeue", None), ("enqueue", random.randrange(2))])


def _lock(random: Random, process: int, holding: bool) -> tuple[str, Any]:
    wanted = "release" if holding else "acquire"
    return (wanted if random.random() < 0.9 else random.choice(["acquire", "release"])), None


def _permits(random: Random, process: int, holding: bool) -> tuple[str, Any]:
    return _lock(random, process, holding)[0], {"permits": random.choice([1, 1, 2])}


def _modes(random: Random, process: int, holding: bool) -> tuple[str, Any]:
    return _lock(random, process, holding)[0], {"mode": random.choice(["shared", "exclusive"])}


def _lease(random: Random, process: int, holding: bool) -> tuple[str, Any]:
    f = _lock(random, process, holding)[0]
    if holding and random.random() < 0.25:
        f = "extend"
    return f, {"lock": "a", "ttl": random.choice([3, 10, 30]) * MS} if f != "release" else (
        {"lock": "a"}
    )


def _tokens(f: str, value: Any) -> list[Any]:
    return [{"token": token} for token in (1, 2, 3, 4, None)] if f == "acquire" else [value]


def _only(f: str, value: Any) -> list[Any]:
    return [value]


SUBJECTS = {
    subject.name: subject
    for subject in (
        Subject("register", _register, lambda f, v: [0, 1, 2] if f == "read" else [v], 0),
        Subject("cas-register", _cas, _cas_results, 0),
        Subject("multi-register", _txn, _txn_results, {"x": 0, "y": 0}),
        Subject("kv", _kv, _kv_results),
        Subject("set", _set, _set_results),
        Subject("counter", _counter, lambda f, v: list(range(-2, 6)) if f == "read" else [v]),
        Subject("fifo-queue", _queue, lambda f, v: [0, 1, 2, None] if f == "dequeue" else [v]),
        Subject("unordered-queue", _bag, lambda f, v: [0, 1, 2] if f == "dequeue" else [v]),
        Subject("mutex", _lock, _only, lock=True),
        Subject("owner-mutex", _lock, _only, lock=True),
        Subject("reentrant-mutex", _lock, _only, 2, lock=True),
        Subject("semaphore", _permits, _only, 2, lock=True),
        Subject("rw-lock", _modes, _only, lock=True),
        Subject("fenced-mutex", _lock, _tokens, lock=True),
        Subject("lease-mutex", _lease, _tokens, lock=True),
    )
}


def history(
    random: Random,
    subject: Subject,
    ops: int = 6,
    processes: int = 3,
    crash: float = 0.2,
    spoil: float = 0.5,
    failed_release: str = "nothing",
    reuse: float = 0.0,
    holds: bool = False,
) -> list[Event]:
    """Draw a history of `ops` ops. With probability `spoil` some results are made up or swapped.

    reuse: how likely a process continues after an info. holds: grants of a lock with leases have
    names, which its releases and extends repeat.
    """
    model = subject.model(failed_release)
    wrong = 0.3 if random.random() < spoil else 0.0
    state = model.initial
    events: list[Event] = []
    open_ops: dict[int, tuple[str, Any, int]] = {}
    placed: dict[int, Any] = {}
    holding: dict[int, bool] = {}
    named_holds: dict[int, int] = {}
    idle = list(range(processes))
    newest = processes
    started = 0
    time = 0

    def emit(process: int, kind: str, f: str, value: Any) -> None:
        nonlocal time
        time += random.choice([1, 1, 5]) * MS
        events.append({"process": process, "type": kind, "f": f, "value": value, "time": time})

    def place(process: int) -> bool:
        nonlocal state
        f, value, at = open_ops[process]
        results = subject.results(f, value)
        for result in random.sample(results, len(results)):
            if holds and f == "acquire":
                result = {**result, "hold": len(events)}
            call = Call(process, f, "ok", value, result, 0, 1, at, None, 1)
            action = model.action(call)
            if action is None:
                continue
            after = model.step(state, action)
            if not isinstance(after, Inconsistent):
                state = after
                placed[process] = result
                return True
        return False

    while started < ops or open_ops:
        if idle and started < ops and (not open_ops or random.random() < 0.5):
            process = random.choice(idle)
            idle.remove(process)
            f, value = subject.op(random, process, holding.get(process, False))
            if f != "acquire" and process in named_holds:
                value = {**value, "hold": named_holds[process]}
            open_ops[process] = f, value, time
            emit(process, "invoke", f, value)
            open_ops[process] = f, value, time
            started += 1
            if random.random() < 0.3:
                place(process)
            continue
        process = random.choice(list(open_ops))
        f, value, _ = open_ops[process]
        if random.random() < 0.3 and process not in placed:
            place(process)
            continue
        if random.random() < crash:
            told = random.random() < 0.5
            if told:
                emit(process, "info", f, value)
            if told and reuse and random.random() < reuse:
                idle.append(process)
                if subject.lock and random.random() < 0.5:
                    holding[process] = f != "release"
            else:
                idle.append(newest)
                newest += 1
        else:
            if process not in placed:
                place(process)
            if process in placed or random.random() < wrong:
                result = placed.get(process, value)
                if random.random() < wrong:
                    result = random.choice(subject.results(f, value))
                if holds and f == "acquire":
                    result = {"hold": len(events), **placed.get(process, {}), **result}
                    named_holds[process] = result["hold"]
                emit(process, "ok", f, result)
                holding[process] = (f != "release") if subject.lock else False
            else:
                emit(process, "fail", f, value)
            idle.append(process)
        del open_ops[process]
        placed.pop(process, None)
    return events


def leases(random: Random, ops: int = 6, processes: int = 2, info: float = 0.4) -> list[Event]:
    """Draw ops of a lock with leases and made-up outcomes, of clients that continue after an info.

    Grants have names or no names, and either the service or the client chooses a name. With coarse
    clocks, leases of one client may end at one time.
    """
    steps, ttls = random.choice([((0, 1, 1, 4), (2, 5, 9)), ((0, 0, 0, 1, 3), (0, 1, 2))])
    naming = random.choice(["none", "told", "chosen"])
    events: list[Event] = []
    open_ops: dict[int, Event] = {}
    holds: dict[int, int] = {}
    granted: set[int] = set()
    time = token = 0
    while len(events) < 2 * ops or open_ops:
        time += random.choice(steps) * MS
        process = random.randrange(processes)
        asked = open_ops.pop(process, None)
        if asked is None:
            if len(events) >= 2 * ops:
                continue
            fs = ["extend", "release", "release"] if process in granted else ["acquire"]
            f = random.choice(fs if random.random() < 0.8 else ["acquire", "extend", "release"])
            value: dict[str, Any] = {"lock": "a"}
            if f != "release":
                value["ttl"] = random.choice(ttls) * MS
            if f != "acquire" and process in holds:
                value["hold"] = holds[process]
            if f == "acquire" and naming == "chosen":
                holds[process] = value["hold"] = len(events)
            event = {"process": process, "type": "invoke", "f": f, "value": value, "time": time}
            open_ops[process] = event
            events.append(event)
            continue
        kind = "info" if random.random() < info else random.choice(["ok", "ok", "ok", "fail"])
        f, value = asked["f"], dict(asked["value"])
        if f == "acquire" and kind == "ok":
            token += random.choice([1, 1, 2])
            value["token"] = random.choice([token, token, None, token - 1])
            if naming == "told":
                holds[process] = value["hold"] = len(events)
        if f == "acquire" and kind != "fail":
            granted.add(process)
        elif f == "release":
            granted.discard(process)
        events.append({"process": process, "type": kind, "f": f, "value": value, "time": time})
    return events
