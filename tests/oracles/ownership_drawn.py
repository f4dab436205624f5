"""Random histories of releases, for the oracle of `ownership`."""

from __future__ import annotations

from random import Random
from typing import Any

from fencepost.checker.history.history import Op
from fencepost.nemesis.families import FAMILIES
from tests.oracles.drawn import ENDS_WITH, MS, Drawing, in_order
from tests.oracles.holds import completion


def draw(random: Random) -> tuple[list[Op], dict[str, Any]]:
    if random.random() < 0.15:
        drawing = Drawing(random, most=4, locks=2, named=0.8, blind=random.choice((0.1, 0.1, 0.6)))
    else:
        drawing = _Robbery(random)
    if random.random() < 0.25:
        _fault(drawing, random)
    if random.random() < 0.4:
        _stop(drawing, random)
    drawing.ops = in_order(drawing.ops)
    if random.random() < 0.2:
        misname(drawing.ops, random)
    if random.random() < 0.3:
        del drawing.test["servers"]
    return drawing.ops, drawing.test


def _fault(drawing: Drawing, random: Random) -> None:
    at = random.randrange(35)
    # A quake is an unknown family; it might cut clients off, which is another oracle's question.
    cut_off = drawing.test["lock"]["ends_with"] == "connection"
    family = random.choice((*FAMILIES, "pause" if cut_off else "quake"))
    if family in ("partition", "delay") and cut_off:
        family = "pause"
    targets = [random.choice(("s1", "s2", "client-0", "client-1"))]
    until = random.choice((None, at, at + 2, at + 8))
    drawing.fault(family, at, at, targets, until=until, proved=random.random() < 0.8)


def _stop(drawing: Drawing, random: Random) -> None:
    """Stop a client in a release, mostly between its check and its delete."""
    sent = [op for op in drawing.ops if op.f == "release" and op.type == "invoke"]
    if not sent:
        return
    begun = random.choice(sent)
    at = begun.time // MS + random.choice((0, 0, 1, 1, 2, 5, -1))
    process = begun.process if random.random() < 0.9 else random.randrange(3)
    drawing.fault(
        random.choice(("pause", "pause", "pause", "pause", "cpu")),
        max(0, at + random.choice((0, -1))),
        max(0, at),
        [str(begun.node)],
        until=random.choice((None, *[max(0, at) + n for n in (0, 1, 3, 6, 10, 15)])),
        proved=random.random() < 0.9,
        process=process,
        at=random.choice(("at between-check-and-delete",) * 5 + ("wherever it was",)),
    )


def misname(ops: list[Op], random: Random) -> None:
    """Let one release name any hold that had been granted."""
    sent = [op for op in ops if op.f == "release" and op.type == "invoke"]
    if not sent:
        return
    begun = random.choice(sent)
    names = [
        op.value["hold"]
        for op in ops[: begun.index]
        if op.f == "acquire" and op.type == "ok" and "hold" in op.value
    ]
    if not names:
        return
    name = random.choice(names)
    for op in (begun, completion(ops, begun)):
        if op is not None and op.f == "release" and op.value.get("hold"):
            op.value["hold"] = name


class _Robbery(Drawing):
    """One lock with a late first holder, a second and a third, each a little shifted."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.ops = []
        self.test = {
            "lock": {"ends_with": random.choice(("lease", *ENDS_WITH))},
            "failed_release": random.choice(("ended", "nothing")),
            "servers": ["s1", "s2"],
        }
        if random.random() < 0.25:
            bounds = {f"client-{n}": random.choice((0, 1, 2)) * MS for n in range(3)}
            self.test["clocks"] = {n: {"bound_ns": b, "offset_ns": 0} for n, b in bounds.items()}
        self._tokens = random.random() < 0.3
        self._readers = random.random() < 0.25
        self._shows = random.random() < 0.25
        self._names = 0.0 if random.random() < 0.1 else 1.0
        for process, start in enumerate((0, 10, 18)):
            self._holder(process, start + random.choice((0, 0, 0, -3, 3)))

    def _holder(self, process: int, now: int) -> None:
        random = self.random
        hold, now = self._grant(process, max(0, now))
        type = "ok"
        count = random.choice((1, 2, 2, 3) if process == 0 else (0, 1, 1, 2))
        for _ in range(count):
            now += random.choice((0, 1, 3, 6, 10))
            if random.random() < 0.1:
                hold, now = self._grant(process, now)
                continue
            type = random.choice(("ok", "ok", "ok", "fail", "fail", "info"))
            f = "release" if random.random() < (0.85 if process == 0 else 0.5) else "extend"
            begun, now = now, now + random.choice((0, 0, 1, 3, 6, 14))
            answer = {"deadline": (now + random.choice((1, 8))) * MS} if f == "extend" else {}
            kind = random.choice(("not-held", "not-held", "no-quorum", "unreachable"))
            error = {"ok": None, "fail": [kind, "no"], "info": ["timeout", "-"]}[type]
            node, asked = f"client-{process}", dict(hold)
            self.op(begun, process, "invoke", f, asked, node=node)
            said = dict(asked) | (answer if type == "ok" else {})
            self.op(now, process, type, f, said, error, node)
            if random.random() < 0.1 and "hold" in hold:
                at = random.randint(begun, now + 2)
                self.op(at, process, "info", "lost", dict(hold), ["lost", "-"], node)
            if type == "info":
                break
        if type == "info" or random.random() < 0.15:
            self._leave(process, f"client-{process}", now)

    def _leave(self, process: int, node: str, now: int) -> None:
        if self.random.random() < 0.5:
            self._close(process, node, now)
        elif self.random.random() < 0.5:
            self._kill(process, node, now + self.random.randrange(4))

    def _grant(self, process: int, now: int) -> tuple[dict[str, Any], int]:
        random = self.random
        at = now + random.choice((0, 0, 1, 1, 4, 9))
        hold: dict[str, Any] = {"lock": "a" if random.random() < 0.95 else "b"}
        asked = hold | {"ttl": 8 * MS}
        if self._readers and random.random() < 0.6:
            asked["mode"] = "shared"
        lease = random.choice(
            (3, 6, 9, 3, 6, 3, 6, 3, 6, None) if process == 0 else (6, 15, 15, None)
        )
        answer: dict[str, Any] = {
            "deadline": None if lease is None else (now + lease) * MS,
            "token": process + random.choice((0, 0, 1, 2)) if self._tokens else None,
        }
        if self._shows:
            answer["granted_by"] = random.sample(["s1", "s2", "s3"], random.choice((1, 2)))
        if self._names:
            hold["hold"] = f"h{len(self.ops)}"
        self.op(now, process, "invoke", "acquire", asked, node=f"client-{process}")
        self.op(at, process, "ok", "acquire", asked | answer | hold, node=f"client-{process}")
        return hold, at
