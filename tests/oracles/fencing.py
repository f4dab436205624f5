"""`fencing`: compare every two grants of a lock, and every two writes of a resource and lock."""

from __future__ import annotations

from random import Random
from typing import Any

from fencepost.checker.history.history import Op
from tests.oracles.drawn import MS, in_order
from tests.oracles.holds import (
    before,
    bound,
    chain_of,
    completion,
    given_again,
    holds,
    invocation,
    second_grant,
)

LOCKS = ("a", "b")


def draw(random: Random) -> tuple[list[Op], dict[str, Any]]:
    drawing = _Drawing(random)
    return in_order(drawing.ops), drawing.test


class _Drawing:
    """A few clients that acquire, write and read, mostly with the tokens of a sound lock.

    `careful`: the resource numbers its writes in order, and reads show the accepted ones.
    """

    def __init__(self, random: Random) -> None:
        self.random = random
        self.ops: list[Op] = []
        self.test: dict[str, Any] = {}
        self._locks = LOCKS[: random.choice((1, 1, 2))]
        self._shared = random.choice((0.0, 0.0, 0.5, 0.9))
        self._numbered = random.choice((0.0, 0.5, 0.9, 1.0))
        self._named = random.choice((0.0, 0.8, 1.0, 1.0))
        self._bare = random.choice((0.0, 0.0, 0.3, 1.0))
        self._resources = random.choice((("x",), ("x",), ("x", "y")))
        self._writes: dict[str, list[tuple[str, int | None]]] = {}
        if random.random() < 0.3:
            self.test["clocks"] = {
                f"client-{n}": {"bound_ns": random.choice((0, 1, 2)) * MS} for n in range(3)
            }
        if random.random() < 0.2:
            self.test["lower_only"] = True
        for process in range(random.choice((2, 3, 3))):
            self._client(process, random.randrange(8))

    def _client(self, process: int, now: int) -> None:
        random, held = self.random, None
        for _ in range(random.choice((1, 2, 3, 4))):
            begun = now + random.choice((0, 0, 1, 2, 5))
            now = begun + random.choice((0, 0, 1, 2, 5))
            if held is not None and random.random() < 0.2:
                self._release(process, begun, now, held)
            elif held is None or random.random() < 0.35:
                held = self._acquire(process, begun, now) or held
            elif random.random() < 0.75:
                self._write(process, begun, now, held)
            else:
                self._read(process, begun, now)

    def _op(self, at: int, process: int, type: str, f: str, value: dict[str, Any]) -> None:
        kind = "refused" if self.random.random() < 0.9 else "unreachable"
        error = {"fail": [kind, "no"], "info": ["timeout", "-"]}.get(type)
        op = Op(0, at * MS, process, type, f, value, error, f"client-{process}")  # type: ignore[arg-type]
        self.ops.append(op)

    def _acquire(self, process: int, begun: int, now: int) -> dict[str, Any] | None:
        random = self.random
        asked: dict[str, Any] = {"lock": random.choice(self._locks), "ttl": 9 * MS}
        shared = random.random() < self._shared
        if shared:
            asked["mode"] = "shared"
        type = random.choice(("ok",) * 6 + ("fail", "info"))
        # A sound lock's tokens rise with time, by one of three clocks of its own.
        token = 2 + begun // random.choice((1, 3, 3, 6)) + random.choice((0, 0, 0, 0, -1, 1))
        without = not shared and random.random() < self._bare
        until = random.choice((None, None, None, (now + random.choice((1, 5, 20))) * MS))
        answer: dict[str, Any] = {"deadline": until, "token": None if without else token}
        if random.random() < self._named:
            answer["hold"] = f"h{len(self.ops)}"
        self._op(begun, process, "invoke", "acquire", asked)
        self._op(now, process, type, "acquire", asked | (answer if type == "ok" else {}))
        return asked | answer if type == "ok" else None

    def _release(self, process: int, begun: int, now: int, held: dict[str, Any]) -> None:
        value = {name: held[name] for name in ("lock", "hold") if name in held}
        self._op(begun, process, "invoke", "release", value)
        self._op(now, process, self.random.choice(("ok", "ok", "fail", "info")), "release", value)

    def _write(self, process: int, begun: int, now: int, held: dict[str, Any]) -> None:
        random, resource = self.random, self.random.choice(self._resources)
        hold = held.get("hold") if random.random() < 0.9 else random.choice((None, "h99"))
        token = held["token"] if random.random() < 0.95 else random.randrange(1, 12)
        value = f"v{len(self.ops)}"
        asked = {"resource": resource, "value": value, "version": 0, "hold": hold, "token": token}
        type = random.choice(("ok", "ok", "ok", "fail", "info"))
        number = random.choice((begun, begun, now, random.randrange(20)))
        stored = number if random.random() < self._numbered else None
        self._writes.setdefault(resource, []).append((value, stored))
        answer = {"stored": stored} if type == "ok" and stored is not None else {}
        self._op(begun, process, "invoke", "write", asked)
        self._op(now, process, type, "write", asked | answer)

    def _read(self, process: int, begun: int, now: int) -> None:
        resource = self.random.choice(self._resources)
        written = self._writes.get(resource)
        value, stored = self.random.choice(written) if written else (None, 0)
        asked = {"resource": resource}
        self._op(begun, process, "invoke", "read", asked)
        self._op(now, process, "ok", "read", asked | {"value": value, "version": stored})


def verdict(ops: list[Op], test: dict[str, Any]) -> set[bool | str]:
    granted = [op for op in ops if op.f == "acquire" and op.type == "ok"]
    tokens = [op for op in granted if op.value.get("token") is not None]
    if not tokens:
        return {"unknown"}
    if any(_wrong(ops, test, granted, one, two) for one in tokens for two in tokens):
        return {False}
    if test.get("lower_only") and any(_wrongly_refused(ops, test, op) for op in ops):
        return {False}
    writes = _accepted(ops, test, granted)
    pairs = any(a is not b and a.value["lock"] == b.value["lock"] for a in tokens for b in tokens)
    pairs = pairs or any(a is not b and a[0] == b[0] for a in writes for b in writes)
    if not pairs:
        return {"unknown"}
    late = (
        _late(test, one, two, _fell(test, writes, one))
        for one in writes
        for two in writes
        if one[:2] == two[:2]
    )
    return {not any(late)}


def _wrongly_refused(ops: list[Op], test: dict[str, Any], op: Op) -> bool:
    """Return whether this write was refused with a token, and no other that was sent by then, by
    the clocks, had a higher one."""
    if op.f != "write" or op.type != "invoke" or op.value["token"] is None:
        return False
    done = completion(ops, op)
    if done is None or done.type != "fail" or done.error is None or done.error[0] != "refused":
        return False
    for other in ops:
        if other.f != "write" or other.type != "invoke" or other.value["token"] is None:
            continue
        apart = bound(test, op.node) + bound(test, other.node) if op.node != other.node else 0
        same = other.value["resource"] == op.value["resource"]
        if same and other.value["token"] > op.value["token"] and other.time <= done.time + apart:
            return False
    return True


def _wrong(ops: list[Op], test: dict[str, Any], granted: list[Op], one: Op, two: Op) -> bool:
    """Return whether `two` carries a token that is impossible after the token of `one`."""
    if one is two or one.value["lock"] != two.value["lock"]:
        return False
    if one.value["token"] > two.value["token"]:
        return before(test, one, invocation(ops, two)) and not given_again(holds(ops, test), two)
    if one.value["token"] < two.value["token"]:
        return False
    if _within(ops, test, one, two) or _within(ops, test, two, one):
        return False
    if not (_is_shared(one) and _is_shared(two)):
        return True
    return any(
        other.value["lock"] == one.value["lock"]
        and not _is_shared(other)
        and not given_again(holds(ops, test), other)
        and before(test, one, invocation(ops, other))
        and before(test, other, invocation(ops, two))
        for other in granted
    )


def _within(ops: list[Op], test: dict[str, Any], outer: Op, inner: Op) -> bool:
    """Return whether a process asked for one grant while it had the other."""
    found = holds(ops, test)
    first, second = (next(o for o in found if o.grant is one) for one in (outer, inner))
    return second_grant(first, second)


def _is_shared(op: Op) -> bool:
    return op.value.get("mode") == "shared"


# An accepted write: resource, lock, token, number, its invocation, the op that proves it accepted,
# and the positions of the grants in the chain of its hold.
Accepted = tuple[str, str, int, int | None, Op, Op, set[int]]


def _accepted(ops: list[Op], test: dict[str, Any], granted: list[Op]) -> list[Accepted]:
    """Return the writes with a token and a lock that were acknowledged, or whose value was read."""
    locks = {op.value["hold"]: op.value["lock"] for op in granted if "hold" in op.value}
    asked = {op.value["lock"] for op in ops if op.f == "acquire" and op.type == "invoke"}
    found = []
    for op in ops:
        if op.f != "write" or op.type != "invoke" or op.value["token"] is None:
            continue
        lock = locks.get(op.value["hold"], min(asked) if len(asked) == 1 else None)
        done = completion(ops, op)
        assert done is not None
        reads = [
            read
            for read in ops
            if read.f == "read"
            and read.type == "ok"
            and (read.value["resource"], read.value["value"])
            == (op.value["resource"], op.value["value"])
            and not before(test, read, op)
        ]
        if lock is None or not (done.type == "ok" or reads):
            continue
        told = [done.value.get("stored")] if done.type == "ok" else []
        told += [read.value["version"] for read in reads]
        number = next((version for version in told if version is not None), None)
        by = done if done.type == "ok" else reads[0]
        chain = _chain(ops, test, granted, op.value["hold"])
        found.append((op.value["resource"], lock, op.value["token"], number, op, by, chain))
    return found


def _chain(ops: list[Op], test: dict[str, Any], granted: list[Op], name: str | None) -> set[int]:
    """Return the positions of the grants that the hold of this name is in a chain with, and its
    own; none if it is in no chain."""
    mine = [op for op in granted if name is not None and op.value.get("hold") == name]
    found = {held.grant.index for op in mine for held in chain_of(holds(ops, test), op)}
    return found if len(found) > 1 else set()


def _fell(test: dict[str, Any], writes: list[Accepted], like: Accepted) -> bool:
    """Return whether numbers of these writes of one resource and lock contradict certain time."""
    mine = [write for write in writes if write[:2] == like[:2] and write[3] is not None]
    return any(before(test, a[5], b[4]) and a[3] >= b[3] for a in mine for b in mine)


def _late(test: dict[str, Any], one: Accepted, two: Accepted, fell: bool) -> bool:
    """Return whether `two` was accepted after `one`, whose token is higher."""
    if one[:2] != two[:2] or one[2] <= two[2]:
        return False
    if one[6] & two[6]:
        return False
    if not fell and one[3] is not None and two[3] is not None:
        return one[3] < two[3]
    return before(test, one[5], two[4])
