"""`store`: try every order of the answers, with writes of unknown outcome anywhere or nowhere.

The register follows its definition: version 0 is None, each accepted write adds one, a read
returns the current value. An order may not contradict any two ops of which one certainly ended
before the other started.
"""

from __future__ import annotations

from random import Random
from typing import Any, NamedTuple

from fencepost.checker.history.history import Op
from tests.oracles.drawn import MS, in_order
from tests.oracles.holds import before
from tests.oracles.values import plain, rewritten

Verdicts = set[bool | str]


class Asked(NamedTuple):
    """One op on a resource; `done` is None if it never completed, `version` if not reported."""

    f: str
    type: str
    value: Any
    version: int | None
    begun: Op
    done: Op | None


def draw(random: Random) -> tuple[list[Op], dict[str, Any]]:
    drawing = _Drawing(random)
    ops = in_order(drawing.ops)
    return rewritten(random, ops) if random.random() < 0.2 else ops, drawing.test


def verdict(ops: list[Op], test: dict[str, Any]) -> Verdicts:
    """Return False if a resource has no order; unknown if an answer had no place, or none came."""
    asked = _asked(plain(ops))
    if not any(one.type == "ok" for calls in asked.values() for one in calls):
        return {"unknown"}
    unplaced = False
    for calls in asked.values():
        placed, left = _placed(calls)
        unplaced = unplaced or bool(left)
        if _from_nowhere(calls) or not _has_order(placed, left, test):
            return {False}
    return {"unknown"} if unplaced else {True}


def _asked(ops: list[Op]) -> dict[Any, list[Asked]]:
    found: dict[Any, list[Asked]] = {}
    for begun in ops:
        if begun.type != "invoke":
            continue
        later = (op for op in ops[begun.index + 1 :] if op.process == begun.process)
        done = next(later, None)
        said = begun.value | (done.value if done else {})
        version = said.get("version" if begun.f == "read" else "stored")
        type = done.type if done else "info"
        one = Asked(begun.f, type, said.get("value"), version, begun, done)
        found.setdefault(begun.value["resource"], []).append(one)
    return found


def _placed(calls: list[Asked]) -> tuple[list[Asked], list[Asked]]:
    """Return the calls with their versions, and the answers without any version."""
    placed, left = [], []
    for one in calls:
        if one.type != "ok" or one.version is not None:
            placed.append(one)
            continue
        same = [other for other in calls if other.type == "ok" and other.value == one.value]
        versions = {other.version for other in same if other.version is not None}
        writers = [w for w in calls if w.f == "write" and w.type != "fail" and w.value == one.value]
        if one.value is None:
            versions.add(0)
        if len(versions) == 1 and len(writers) + (one.value is None) == 1:
            placed.append(one._replace(version=versions.pop()))
        else:
            left.append(one)
    return placed, left


def _from_nowhere(calls: list[Asked]) -> bool:
    """Return whether a value without a writer was read."""
    written = [None, *(w.value for w in calls if w.f == "write" and w.type != "fail")]
    return any(r.f == "read" and r.type == "ok" and r.value not in written for r in calls)


def _has_order(placed: list[Asked], left: list[Asked], test: dict[str, Any]) -> bool:
    must = [one for one in placed if one.type == "ok"]
    # A write without its version did happen, at an unknown time.
    perhaps = [
        one for one in placed + left if one.f == "write" and (one.type == "info" or one in left)
    ]
    every = must + perhaps
    first = [
        [
            place
            for place, other in enumerate(must)
            if other.done and before(test, other.done, one.begun)
        ]
        for one in every
    ]
    dead: set[tuple[int, Any]] = set()

    def goes_on(done: int, version: int, value: Any) -> bool:
        """Return whether the rest has an order; `done` has a bit for each op that has ended."""
        if all(done >> place & 1 for place in range(len(must))):
            return True
        if (done, value) in dead:
            return False
        for place, one in enumerate(every):
            if done >> place & 1 or not all(done >> other & 1 for other in first[place]):
                continue
            after = done | 1 << place
            if one.f == "read":
                if (one.version, one.value) == (version, value) and goes_on(after, version, value):
                    return True
            elif place < len(must) and one.version != version + 1:
                continue
            elif goes_on(after, version + 1, one.value):
                return True
        dead.add((done, value))
        return False

    return goes_on(0, 0, None)


class _Drawing:
    """A few clients of a correct register, with some changed answers."""

    def __init__(self, random: Random) -> None:
        self._random = random
        self.ops: list[Op] = []
        self._alike = random.random() < 0.2
        self._hidden = random.choice((0.0, 0.0, 0.0, 0.4))
        self._lies = random.choice((0.0, 0.0, 0.1, 0.3))
        self._states: dict[str, list[Any]] = {}
        self._late: list[tuple[str, Any]] = []
        self.test: dict[str, Any] = {}
        if random.random() < 0.25:
            bounds = {f"client-{n}": random.choice((0, 1, 2)) * MS for n in range(3)}
            self.test["clocks"] = {node: {"bound_ns": bound} for node, bound in bounds.items()}
        names = ["account", "stock"][: random.choice((1, 1, 1, 2))]
        free, self._successors, now = [0, 0, 0], [0, 0, 0], 1
        for number in range(random.randint(1, 7)):
            client = random.randrange(3)
            now = max(now + random.choice((0, 1, 1, 2)), free[client])
            self._number = number
            free[client] = self._op(client, random.choice(names), free[client], now)

    def _op(self, client: int, name: str, free: int, now: int) -> int:
        random = self._random
        begun = max(free, now - random.choice((0, 0, 1, 2, 4)))
        over = now + random.choice((0, 0, 1, 2, 4))
        self._settle()
        states = self._states.setdefault(name, [None])
        asked: dict[str, Any] = {"resource": name}
        if random.random() < 0.5:
            answer = self._read(states)
            type = "ok" if random.random() < 0.95 else "fail"
            self._say(client, begun, over, type, "read", asked, answer)
            return over
        asked["value"] = self._value()
        type = random.choice(("ok", "ok", "ok", "ok", "ok", "info", "info", "info", "fail", ""))
        if type in ("info", "") and random.random() < 0.6:
            self._late.append((name, asked["value"]))
        elif type == "ok" or (type == "fail" and random.random() < self._lies):
            states.append(asked["value"])
        stored = len(states) - 1
        if random.random() < self._lies / 2:
            stored += random.choice((-1, 1))
        self._say(client, begun, over, type, "write", asked, {"stored": stored})
        return over

    def _say(
        self,
        client: int,
        begun: int,
        over: int,
        type: str,
        f: str,
        asked: dict[str, Any],
        answer: dict[str, Any],
    ) -> None:
        process, node = client + 10 * self._successors[client], f"client-{client}"
        self.ops.append(Op(0, begun * MS, process, "invoke", f, asked, None, node))
        if type:
            if self._random.random() < self._hidden:
                answer.pop("version", answer.pop("stored", None))
            value = asked | (answer if type == "ok" else {})
            error = None if type == "ok" else ["timeout", "-"]
            self.ops.append(Op(0, over * MS, process, type, f, value, error, node))  # type: ignore[arg-type]
        if type in ("info", ""):
            self._successors[client] += 1

    def _settle(self) -> None:
        """Let a write of unknown outcome take effect at any later time, or never."""
        if self._late and self._random.random() < 0.6:
            name, value = self._late.pop(self._random.randrange(len(self._late)))
            self._states[name].append(value)

    def _value(self) -> Any:
        if self._alike:
            return self._random.choice(("a", "a", "b", None))
        return f"v{self._number}"

    def _read(self, states: list[Any]) -> dict[str, Any]:
        version = len(states) - 1
        if self._random.random() < self._lies:
            version = self._random.randrange(len(states))
        answer = {"value": states[version], "version": version}
        if self._random.random() < self._lies / 3:
            answer["value"] = self._random.choice((None, "v0", "v1", "v2", "nobody's"))
        if self._random.random() < self._lies / 3:
            answer["version"] += self._random.choice((-1, 1, 2))
        return answer
