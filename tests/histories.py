"""Build histories op by op, for tests of code that judges them. Times are in ms."""

from __future__ import annotations

from typing import Any

from fencepost.checker.history.history import History, Op
from fencepost.nemesis.families import facts

MS = 1_000_000


class Story:
    """Collects ops in any order. The history sorts them by time, in a stable order."""

    def __init__(self) -> None:
        self._ops: list[Op] = []

    def op(
        self,
        at: float,
        process: int | str,
        type: str,
        f: str,
        value: dict[str, Any] | None = None,
        error: list[Any] | None = None,
    ) -> None:
        node = None if process == "nemesis" else f"client-{process}"
        time = round(at * MS)
        self._ops.append(Op(0, time, process, type, f, value or {}, error, node))  # type: ignore[arg-type]

    def history(self) -> History:
        ops = sorted(self._ops, key=lambda op: op.time)
        return History(
            [
                Op(i, o.time, o.process, o.type, o.f, o.value, o.error, o.node)
                for i, o in enumerate(ops)
            ]
        )

    def call(
        self,
        process: int,
        f: str,
        at: float,
        done: float | None,
        asked: dict[str, Any],
        answered: dict[str, Any] | None = None,
        type: str = "ok",
        error: list[Any] | None = None,
    ) -> None:
        """Add an op from `at` to `done`. With `done` None it never completed."""
        self.op(at, process, "invoke", f, asked)
        if done is not None:
            self.op(done, process, type, f, asked | (answered or {}), error)

    def grant(
        self,
        process: int,
        hold: str,
        at: float,
        until: float | None,
        *,
        asked: float | None = None,
        token: int | None = None,
        lock: str = "orders",
        ttl: float = 1000,
        shared: bool = False,
    ) -> None:
        """Add a grant at `at` with a lease whose end, as its holder sees it, is `until`."""
        deadline = None if until is None else round(until * MS)
        self.call(
            process,
            "acquire",
            at if asked is None else asked,
            at,
            {"lock": lock, "ttl": round(ttl * MS)} | ({"mode": "shared"} if shared else {}),
            {"hold": hold, "token": token, "deadline": deadline},
        )

    def denied(self, process: int, at: float, done: float | None, ttl: float = 1000) -> None:
        """Add an acquire that is refused at `done`."""
        asked = {"lock": "orders", "ttl": round(ttl * MS)}
        self.call(process, "acquire", at, done, asked, type="fail", error=["not-granted", "no"])

    def release(
        self,
        process: int,
        hold: str,
        at: float,
        done: float | None = None,
        type: str = "ok",
        lock: str = "orders",
        kind: str = "not-held",
    ) -> None:
        asked = {"lock": lock, "hold": hold}
        error = [kind, "no"] if type == "fail" else None
        self.call(process, "release", at, at if done is None else done, asked, {}, type, error)

    def extend(
        self,
        process: int,
        hold: str,
        at: float,
        until: float | None,
        type: str = "ok",
        kind: str = "not-held",
    ) -> None:
        asked = {"lock": "orders", "hold": hold, "ttl": 1000 * MS}
        deadline = None if until is None else round(until * MS)
        error = [kind, "it is gone"] if type == "fail" else None
        answered = {"deadline": deadline} if type == "ok" else {}
        self.call(process, "extend", at, at, asked, answered, type, error)

    def read(self, process: int, at: float, value: Any, version: int, done: float | None = None):
        asked = {"resource": "account"}
        self.call(
            process,
            "read",
            at,
            at if done is None else done,
            asked,
            {"value": value, "version": version},
        )

    def write(
        self,
        process: int,
        at: float,
        value: Any,
        version: int | None,
        stored: int | None = None,
        *,
        done: float | None = None,
        hold: str | None = None,
        token: int | None = None,
        type: str = "ok",
        resource: str = "account",
    ) -> None:
        """Add a write built on `version`; `stored` is the version that the resource reports."""
        asked = {"resource": resource, "value": value, "version": version}
        asked |= {"hold": hold, "token": token}
        answered = {} if stored is None else {"stored": stored}
        error = {"ok": None, "fail": ["refused", "no"], "info": ["timeout", "silence"]}[type]
        self.call(process, "write", at, at if done is None else done, asked, answered, type, error)

    def fault(
        self,
        family: str,
        start: float,
        end: float | None,
        targets: list[str],
        *,
        name: str | None = None,
        proved: bool = True,
        healed: bool = True,
        arguments: dict[str, Any] | None = None,
        placed: float | None = None,
        ordered: float | None = None,
        **receipt: Any,
    ) -> None:
        """Add a fault as the nemesis records it. With `end` None it was never healed. Its receipt
        comes at once, or at `placed`; its end is ordered at its end, or at `ordered`."""
        fault = {
            "fault": name or f"{family}-{start}-{targets[0]}",
            "targets": targets,
            "arguments": arguments or {},
        }
        begun = start if placed is None else placed
        ends = end if ordered is None else ordered
        rows = ((start, begun, "start", proved), (ends, end, "end", healed))
        for invoked, at, phase, right in rows:
            if invoked is None or at is None:
                continue
            value = {**fault, "phase": phase}
            if phase == "start":
                value |= facts(family, targets, arguments or {})
            shown = {"proved": right, "how": "as told", **receipt}
            self.op(invoked, "nemesis", "invoke", family, value)
            error = None if right else ["unproved", "as told"]
            type = "ok" if right else "info"
            self.op(at, "nemesis", type, family, {**value, "receipt": shown}, error)

    def killed(self, process: int, at: float, f: str) -> None:
        """Add the open op of a killed process, as the harness completes it."""
        self.op(at, process, "info", f, {}, ["killed", "the worker is gone"])


def over(hold: str, at: float) -> dict[str, Any]:
    """Return the link of a chain of causes that gives the time at which a lease expired."""
    what = f"The lease of hold {hold} expired at {at / 1000:.3f} s"
    return {"sort": "lease-over", "what": what, "time_ns": round(at * MS), "sure": True}


def kept_on(process: int, over_at: float, at: float) -> dict[str, Any]:
    """Return the link that says that no fault kept a holder from giving up its hold."""
    who, length = f"client-{process} (process {process})", f"{(at - over_at) / 1000:.3f} s"
    return {
        "sort": "kept-on",
        "what": f"No fault explains why {who} had not given it up {length} later",
        "time_ns": round(over_at * MS),
        "sure": True,
        "nodes": [f"client-{process}"],
    }
