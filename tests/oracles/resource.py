"""`resource`: compare every pair of writes, and every read with every write.

Clients take locks as in drawn.py, and in between read and write registers: under their own hold,
a former one, another's, an unknown one, or none.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import Any

from fencepost.checker.history.history import Op
from tests.oracles.drawn import Drawing
from tests.oracles.holds import Held, before, chain_of, completion, gap, ordered_holds
from tests.oracles.values import plain, rewritten

Verdicts = set[bool | str]


def draw(random: Random) -> tuple[list[Op], dict[str, Any]]:
    drawing = _Drawing(random)
    _Store(drawing).answer()
    if random.random() < 0.1:
        drawing.test["guard"] = "compare-and-set"
    ops = rewritten(random, drawing.ops) if random.random() < 0.2 else drawing.ops
    return ops, drawing.test


@dataclass(frozen=True)
class Written:
    """An accepted write; `by` is the op that proves it, `number` its version if reported."""

    sent: Op
    by: Op
    acknowledged: bool
    number: int | None

    @property
    def value(self) -> Any:
        return self.sent.value["value"]

    @property
    def base(self) -> int | None:
        return self.sent.value.get("version")


@dataclass(frozen=True)
class Read:
    begun: Op
    done: Op
    value: Any
    version: int | None


def verdict(ops: list[Op], test: dict[str, Any]) -> Verdicts:
    ops = plain(ops)
    invoked = [op for op in ops if op.type == "invoke" and op.f in ("read", "write")]
    accepted = 0
    held = {
        op.grant.value["hold"]: op for op in ordered_holds(ops, test) if "hold" in op.grant.value
    }
    for name in {op.value["resource"] for op in invoked}:
        mine = [(op, completion(ops, op)) for op in invoked if op.value["resource"] == name]
        reads = [
            Read(op, done, done.value.get("value"), done.value.get("version"))
            for op, done in mine
            if op.f == "read" and done is not None and done.type == "ok"
        ]
        sent = [(op, done) for op, done in mine if op.f == "write"]
        writes = [w for op, done in sent for w in _accepted(op, done, sent, reads, test)]
        accepted += len(writes)
        if (
            any(_phantom(read, sent, test) for read in reads)
            or _lost(writes, reads, test)
            or any(_missing(write, writes, reads, test) for write in writes)
            or (test.get("guard") != "compare-and-set" and _stale(writes, held, test))
        ):
            return {False}
    return {True} if accepted else {"unknown"}


def _accepted(
    op: Op, done: Op | None, sent: list[Any], reads: list[Read], test: dict[str, Any]
) -> list[Written]:
    """Return the write, if it was accepted: acknowledged, or the only one whose value was read."""
    same = [(o, d) for o, d in sent if o.value["value"] == op.value["value"]]
    if any(d is None or d.type != "fail" for _, d in same):
        same = [(o, d) for o, d in same if d is None or d.type != "fail"]
    shown = [
        read
        for read in reads
        if read.value == op.value["value"] and not before(test, read.done, op) and len(same) == 1
    ]
    numbers = [read.version for read in shown if read.version is not None]
    if done is not None and done.type == "ok":
        numbers = [n for n in [done.value.get("stored")] if n is not None] + numbers
        return [Written(op, done, True, numbers[0] if numbers else None)]
    if not shown or (op, done) not in same:
        return []
    by = min((read.done for read in shown), key=lambda end: end.index)
    return [Written(op, by, False, numbers[0] if numbers else None)]


def _phantom(read: Read, sent: list[Any], test: dict[str, Any]) -> bool:
    """Return whether no write can have written the value that was read."""
    return read.value is not None and not any(
        op.value["value"] == read.value
        and not (done is not None and done.type == "fail")
        and not before(test, read.done, op)
        for op, done in sent
    )


def _lost(writes: list[Written], reads: list[Read], test: dict[str, Any]) -> bool:
    """Return whether some write was applied to another version than its writer had read."""
    for one in writes:
        if one.base is None:
            continue
        if one.number is not None:
            if one.number != one.base + 1:
                return True
            continue
        for other in writes:
            rival = other is not one and other.base == one.base
            if rival and other.number in (None, one.base + 1):
                return True
            above = other.number is not None and other.number > one.base
            if above and before(test, other.by, one.sent):
                return True
        for read in reads:
            if read.version == one.base + 1 and read.value != one.value:
                return True
            above = read.version is not None and read.version > one.base
            if above and before(test, read.done, one.sent):
                return True
    return False


def _missing(
    write: Written, writes: list[Written], reads: list[Read], test: dict[str, Any]
) -> bool:
    """Return whether something certainly later shows that an acknowledged write is missing."""
    reached = write.number
    if reached is None and write.base is not None:
        reached = write.base + 1
    if not write.acknowledged or reached is None:
        return False
    for read in reads:
        if read.version is not None and before(test, write.by, read.begun):
            if read.version < reached:
                return True
            if read.version == write.number and read.value != write.value:
                return True
    for other in writes:
        if other is write or other.number is None:
            continue
        if before(test, write.by, other.sent) and other.number <= reached:
            return True
        if other.acknowledged and other.number == write.number:
            return True
    return False


def _stale(writes: list[Written], held: dict[str, Held], test: dict[str, Any]) -> bool:
    """Return whether a write was accepted after one of a hold that is certainly later."""
    under = [write for write in writes if write.sent.value["hold"] in held]
    fell = any(
        a.number is not None
        and b.number is not None
        and a.number >= b.number
        and before(test, a.by, b.sent)
        for a in under
        for b in under
    )
    for late in under:
        for other in under:
            mine, its = held[late.sent.value["hold"]], held[other.sent.value["hold"]]
            if any(its is one for one in chain_of(list(held.values()), mine.grant)):
                continue
            if _later(test, mine, its) and _after(test, other, late, fell):
                return True
    return False


def _after(test: dict[str, Any], first: Written, second: Written, fell: bool) -> bool:
    """Return whether the first write precedes the second; a falling number orders nothing."""
    if not fell and first.number is not None and second.number is not None:
        return first.number < second.number
    return before(test, first.by, second.sent)


def _later(test: dict[str, Any], first: Held, second: Held) -> bool:
    """Return whether the second hold is certainly the later one of their lock."""
    if first.lock != second.lock:
        return False
    if None not in (first.token, second.token) and first.token != second.token:
        return bool(first.token < second.token)  # type: ignore[operator]
    between = gap(test, first.node, second.node)
    asked = before(test, first.grant, second.asked)
    return asked and first.believed_until() + between <= second.grant.time


class _Drawing(Drawing):
    """Clients that read and write as well. The store decides their answers."""

    def __init__(self, random: Random) -> None:
        self.grants: list[dict[str, Any]] = []
        self._resources = ["account", "stock"][: random.choice((1, 1, 1, 2))]
        self._numbers = 0
        self._same = random.random() < 0.1
        self._honest = random.random() < 0.5
        super().__init__(random, most=random.choice((3, 5, 7)), shared=0.1, named=1.0, blind=0.1)

    def _asked(self, held: list[dict[str, Any]]) -> tuple[str, dict[str, Any]]:
        random = self.random
        if random.random() < (0.7 if held else 0.2):
            value: dict[str, Any] = {"resource": random.choice(self._resources)}
            if random.random() < 0.25:
                return "read", value
            self._numbers += 1
            name = random.choice(("a", "b")) if self._same else f"v{self._numbers}"
            grant = self._under(held)
            value |= {"value": name, "hold": grant.get("hold"), "token": grant.get("token")}
            return "write", value
        return super()._asked(held)

    def _under(self, held: list[dict[str, Any]]) -> dict[str, Any]:
        random = self.random
        if held and (self._honest or random.random() < 0.8):
            return held[-1]
        if self.grants and random.random() < 0.7:
            return random.choice(self.grants)
        return {"hold": random.choice((None, "nobody's"))}

    def _answered(
        self, f: str, now: int, held: list[dict[str, Any]], asked: dict[str, Any]
    ) -> dict[str, Any]:
        if f in ("read", "write"):
            return {}
        answer = super()._answered(f, now, held, asked)
        if f == "acquire":
            self.grants.append(held[-1])
        return answer


class _Store:
    """Answers the reads and writes of a drawing, in order of time, with random errors."""

    def __init__(self, drawing: _Drawing) -> None:
        self._ops = drawing.ops
        self._random = drawing.random
        self._lies = self._random.choice((0.0, 0.0, 0.02, 0.1))
        self._hidden = self._random.choice((0.0, 0.0, 0.2, 1.0))
        # Whether a read and its write are adjacent, except for other errors.
        self._alone = self._random.random() < 0.6
        # The probability that a writer names another version than the current one.
        self._blind = self._random.choice((0.0, 0.0, 0.05, 0.3))
        self._states: dict[str, list[Any]] = {}
        self._sent: dict[int | str, Op] = {}

    def answer(self) -> None:
        for op in self._ops:
            if op.type == "invoke" and op.f in ("read", "write"):
                self._sent[op.process] = op
                if op.f == "write":
                    self._built(op)
            elif op.f in ("read", "write") and op.process in self._sent:
                self._done(self._sent.pop(op.process), op)

    def _built(self, op: Op) -> None:
        random = self._random
        states = self._of(op)
        base = len(states) - 1
        if random.random() < self._blind:
            base = random.randrange(len(states) + 1)
        op.value["version"] = None if random.random() < self._lies else base

    def _done(self, sent: Op, done: Op) -> None:
        random, states = self._random, self._of(sent)
        if sent.f == "read":
            if done.type == "ok":
                done.value.update(self._read(states))
            return
        if self._alone:
            self._built(sent)
        chance = {"ok": 1 - self._lies, "info": 0.6, "fail": self._lies}[done.type]
        if random.random() < chance:
            states.append(sent.value["value"])
        done.value["version"] = sent.value["version"]
        if done.type == "ok" and random.random() >= self._hidden:
            done.value["stored"] = max(0, len(states) - 1 + self._off())
        if random.random() < self._lies / 2:
            states.pop() if len(states) > 1 else None

    def _read(self, states: list[Any]) -> dict[str, Any]:
        random = self._random
        version = len(states) - 1
        if random.random() < self._lies:
            version = random.randrange(len(states))
        answer = {"value": states[version], "version": max(0, version + self._off())}
        if random.random() < self._lies / 2:
            answer["value"] = random.choice(("v1", "v2", "v3", "nobody's"))
        if random.random() < self._hidden / 2:
            answer["version"] = None
        return answer

    def _off(self) -> int:
        return self._random.choice((-1, 1)) if self._random.random() < self._lies / 2 else 0

    def _of(self, op: Op) -> list[Any]:
        return self._states.setdefault(op.value["resource"], [None])
