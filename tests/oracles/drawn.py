"""Random histories of lock ops: small, dense in time, and as wrong as chance makes them.

Nothing is simulated. Each client's answers are drawn on their own, so that sound and broken
histories are equally likely, and so are ties, late grants, and repeated events.
"""

from __future__ import annotations

from random import Random
from typing import Any

from fencepost.checker.history.history import Op
from fencepost.nemesis.families import facts

MS = 1_000_000
ENDS_WITH = ("lease", "close", "connection")
KINDS = ("not-held", "not-held", "not-held", "no-quorum", "unreachable")
"""Of errors of a failed op."""


def in_order(ops: list[Op]) -> list[Op]:
    """Sort by time, and by the order of drawing within one time. Indices are positions."""
    ops = sorted(ops, key=lambda op: op.time)
    return [
        Op(i, o.time, o.process, o.type, o.f, o.value, o.error, o.node) for i, o in enumerate(ops)
    ]


class Drawing:
    """One history: a few clients, each with a few ops one after the other.

    locks, shared, tokens, named: the number of locks, the probability that an acquire is shared,
    whether grants carry tokens, and whether holds have names.
    """

    def __init__(
        self,
        random: Random,
        *,
        clients: int = 3,
        most: int = 4,
        locks: int = 2,
        shared: float = 0.2,
        tokens: float = 0.5,
        named: float = 0.9,
        blind: float = 0.15,
        bounds: float = 0.2,
        span: int = 30,
    ) -> None:
        self.random = random
        self.ops: list[Op] = []
        self.span = span
        self._locks = random.randint(1, locks)
        self._shared = shared if random.random() < 0.4 else 0.0
        self._tokens = random.random() < tokens
        self._named = random.random() < named
        self._blind = blind
        self._count = 0
        self.test: dict[str, Any] = {
            "lock": {"name": "drawn", "ends_with": random.choice(ENDS_WITH)},
            "failed_release": random.choice(("ended", "ended", "nothing")),
            "servers": ["s1", "s2", "s3"],
            "promises": {"reentrant": True} if random.random() < 0.5 else {},
        }
        if random.random() < bounds:
            self.test["clocks"] = {
                f"client-{n}": {"offset_ns": 0, "bound_ns": random.choice((0, 1, 2)) * MS}
                for n in range(clients)
            }
        for number in range(clients):
            self._client(number, clients, random.randint(1, most))
        self.ops = in_order(self.ops)
        if random.random() < 0.3:
            self.test["session_ends"] = {
                f"client-{n}": [random.randrange(span) * MS for _ in range(random.randrange(3))]
                for n in range(clients)
                if random.random() < 0.8
            }

    def op(
        self,
        time: int,
        process: int | str,
        type: str,
        f: str,
        value: dict[str, Any],
        error: list[Any] | None = None,
        node: str | None = None,
    ) -> None:
        self.ops.append(Op(0, time * MS, process, type, f, value, error, node))  # type: ignore[arg-type]

    def _client(self, number: int, clients: int, many: int) -> None:
        random, node, process = self.random, f"client-{number}", number
        now = random.randrange(self.span // 2)
        held: list[dict[str, Any]] = []
        # A client whose releases do not reach the service asks again at once.
        cut = random.random() < 0.15
        kinds = ("unreachable",) if cut else KINDS
        unsent: dict[str, Any] | None = None
        for _ in range(many):
            begun = now + random.choice((0, 0, 1, 2, 4))
            over = begun + random.choice((0, 1, 1, 2, 5, 9))
            f, asked = self._asked(held)
            if cut and unsent is not None and random.random() < 0.8:
                f, asked = "acquire", {"lock": unsent["lock"], "ttl": 8 * MS}
            self.op(begun, process, "invoke", f, asked, node=node)
            how = random.random()
            if how < 0.1:  # it never returns: a kill may hit the client in it
                if random.random() < 0.6:
                    self._kill(process, node, random.randrange(begun, over + 4), within=f)
                return
            type = "ok" if how < 0.75 else "fail" if how < 0.88 else "info"
            if cut and f == "release" and type == "ok":
                type = "fail"
            answer = dict(asked)
            if type == "ok":
                answer |= self._answered(f, over, held, asked)
            kind = random.choice(kinds)
            unsent = asked if (f, type, kind) == ("release", "fail", "unreachable") else None
            error = {"ok": None, "fail": [kind, "no"], "info": ["timeout", "-"]}[type]
            self.op(over, process, type, f, answer, error, node)
            now = over
            self._aside(process, node, begun, now, held)
            if type == "info":
                now = self._close(process, node, now)
                process, held = process + clients, []
        if random.random() < 0.3:
            self._kill(process, node, now + random.randrange(6))
        elif random.random() < 0.3:
            self._close(process, node, now + random.randrange(6))
        elif random.random() < 0.3:  # killed while it closes
            begun = now + random.randrange(6)
            self.op(begun, process, "invoke", "close", {}, None, node)
            self._kill(process, node, begun + random.choice((0, 0, 1)), within="close")

    def _asked(self, held: list[dict[str, Any]]) -> tuple[str, dict[str, Any]]:
        random = self.random
        if not held or random.random() < 0.4:
            value = {
                "lock": f"l{random.randrange(self._locks)}",
                "ttl": random.choice((3, 8, 20)) * MS,
            }
            return "acquire", value | ({"mode": "shared"} if random.random() < self._shared else {})
        value = {key: held[-1][key] for key in ("lock", "hold") if key in held[-1]}
        if random.random() < 0.3:
            return "extend", value | {"ttl": random.choice((3, 8, 20)) * MS}
        return "release", value

    def _answered(
        self, f: str, now: int, held: list[dict[str, Any]], asked: dict[str, Any]
    ) -> dict[str, Any]:
        random = self.random
        if f == "release":
            if random.random() < 0.9:
                held.pop()
            return {}
        deadline = None
        if random.random() >= self._blind:
            deadline = (now + random.choice((-2, 1, 3, 5, 9, 15))) * MS
        if f == "extend":
            return {"deadline": deadline}
        self._count += 1
        answer: dict[str, Any] = {"deadline": deadline, "token": None}
        if self._tokens and random.random() < 0.9:
            answer["token"] = max(1, self._count + random.choice((-1, 0, 0, 0, 1)))
        if self._named:
            answer["hold"] = f"h{self._count}"
        held.append(asked | answer)
        return answer

    def _aside(
        self, process: int, node: str, begun: int, now: int, held: list[dict[str, Any]]
    ) -> None:
        """Draw a library's own event, at any time after the op's start."""
        if not held or "hold" not in held[-1] or self.random.random() >= 0.15:
            return
        value = {"lock": held[-1]["lock"], "hold": held[-1]["hold"]}
        at = self.random.randint(begun, now + 3)
        if self.random.random() < 0.2:
            kind = self.random.choice(("expired", "requeued"))
            self.op(at, process, "info", "lost", value | {"hold": None}, [kind, "-"], node)
        elif self.random.random() < 0.5:
            self.op(at, process, "info", "lost", value, ["lost", "-"], node)
        else:
            deadline = self.random.choice((None, (at + 4) * MS, (at + 10) * MS))
            self.op(at, process, "info", "renewed", value | {"deadline": deadline}, None, node)

    def _close(self, process: int, node: str, now: int) -> int:
        if self.random.random() < 0.4:
            return now
        begun = now + self.random.choice((0, 0, 1))
        over = begun + self.random.choice((0, 1, 4))
        self.op(begun, process, "invoke", "close", {}, None, node)
        if self.random.random() < 0.8:
            type = self.random.choice(("ok", "ok", "info"))
            error = ["timeout", "-"] if type == "info" else None
            self.op(over, process, type, "close", {}, error, node)
        return over

    def _kill(self, process: int, node: str, at: int, within: str | None = None) -> None:
        """Draw the kill's receipt, or none, and the harness' event for an open op."""
        over = at + self.random.choice((0, 0, 1))
        if self.random.random() < 0.85:
            proved = self.random.random() < 0.85
            named = {"processes": [process]} if proved or at % 4 else {}
            self.fault("kill", at, over, [node], proved=proved, **named)
        if within is not None:
            late = over + self.random.choice((0, 1))
            self.op(late, process, "info", within, {}, ["killed", "-"], node)

    def fault(
        self,
        family: str,
        at: int,
        over: int,
        targets: list[str],
        /,
        *,
        proved: bool = True,
        arguments: dict[str, Any] | None = None,
        until: int | None = None,
        ordered: int | None = None,
        **receipt: Any,
    ) -> None:
        """Draw a fault ordered at `at` and in force at `over`; it ends at `until`, or never. Its
        end is ordered then, or at `ordered`."""
        name = f"{family}-{len(self.ops)}"
        value = {"fault": name, "targets": targets, "arguments": arguments or {}}
        told = facts(family, targets, arguments or {})
        for begun, done, phase in (
            (at, over, "start"),
            (until if ordered is None else ordered, until, "end"),
        ):
            if begun is None or done is None:
                continue
            shown = {"proved": proved, "how": "drawn", **receipt}
            said = value | {"phase": phase} | (told if phase == "start" else {})
            self.op(begun, "nemesis", "invoke", family, said)
            type = "ok" if proved else "info"
            self.op(done, "nemesis", type, family, said | {"receipt": shown})
