"""The faults of a run, reconstructed from the nemesis' ops: when each was active, and its receipt.

A nemesis op is invoked when the fault is ordered and completes with its receipt: `ok` if the
receipt proves it, `info` if nothing proves it. Its value carries `phase`, "start" or "end", and
`fault`, a name that both share.

The nemesis writes into the op which nodes the fault keeps from answering, which links it cuts and
whether servers can forget by it. Checkers know no family: where an op lacks one of these facts,
nothing follows from the fault.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence, Set
from dataclasses import dataclass, field
from typing import Any

from fencepost.checker.facts.spans import Spans
from fencepost.checker.history.history import History, Op

_NAMED = 5
"""The most faults that a sentence names."""


@dataclass(frozen=True)
class Fault:
    """One fault, active from `start` to `end` (ns; `end` None: never seen to end).

    `impairs`: the nodes that cannot answer, or not in time, while it is active; `links`: the pairs
    of nodes that it separates; `forgets`: whether servers may lose, or end early, what they have
    granted. Each is None if unknown. `surely`: the span in which it was certainly active, from its
    receipt until its heal was ordered; None if one of these was never seen. `loses`: whether it
    loses messages of the nodes that it impairs. `stops`: the nodes whose process it stops for as
    long as it is active. `rejects`: whether it resets each connection that it cuts.
    `only_messages`: whether it acts on messages alone, and so stops and slows no process.
    """

    name: str
    family: str
    targets: list[str]
    arguments: dict[str, Any]
    start: int
    end: int | None
    proved: bool
    healed: bool
    receipts: list[dict[str, Any]] = field(default_factory=list)
    impairs: frozenset[str] | None = None
    links: tuple[tuple[str, str], ...] | None = None
    forgets: bool | None = None
    surely: tuple[int, int] | None = None
    loses: bool = False
    stops: frozenset[str] = frozenset()
    rejects: bool = False
    only_messages: bool = False

    def disconnects(self, node: str | None, servers: Set[str]) -> bool:
        """Return whether it may end this node's connections to a server (to any node, without
        `servers`): it cuts them, it loses messages of either end, or the server stops and loses its
        state. A fault with unknown effects may."""
        if self.links is None or self.impairs is None or self.forgets is None:
            return True
        others = {far for link in self.links for far in link if node in link and far != node}
        if self.loses and node in self.impairs:
            return True
        if self.forgets or self.loses:
            others |= self.impairs - {node}
        return bool(others & servers if servers else others)

    @property
    def what(self) -> str:
        """Return the effect in the words that the nemesis recorded."""
        of = f"{self.family} of {', '.join(self.targets)}" if self.targets else self.family
        return str(self.arguments.get("words") or of)

    def describe(self) -> str:
        """Return the effect, and when it began."""
        return f"{self.what} (from {self.start / 1e9:.3f} s)"

    def to_json(self) -> dict[str, Any]:
        return {
            "fault": self.name,
            "family": self.family,
            "targets": self.targets,
            "arguments": self.arguments,
            "start_ns": self.start,
            "end_ns": self.end,
            "proved": self.proved,
            "healed": self.healed,
            "receipts": self.receipts,
        }


def faults(history: History) -> list[Fault]:
    """Return every fault that was ordered, in order of start."""
    return history.once("faults", lambda: _faults(history))


def _faults(history: History) -> list[Fault]:
    started: dict[str, list[Op]] = {}
    ended: dict[str, list[Op]] = {}
    for op in history.nemesis():
        name = str(op.value.get("fault", op.f))
        by = ended if op.value.get("phase") == "end" else started
        by.setdefault(name, []).append(op)
    return [_fault(name, ops, ended.get(name, [])) for name, ops in started.items()]


def _fault(name: str, start: list[Op], end: list[Op]) -> Fault:
    value = start[0].value
    targets, arguments = list(value.get("targets", [])), dict(value.get("arguments", {}))
    return Fault(
        name=name,
        family=start[0].f,
        targets=targets,
        arguments=arguments,
        start=start[0].time,
        end=end[-1].time if end else None,
        proved=_proved(start),
        healed=_proved(end),
        receipts=[op.value["receipt"] for op in (*start, *end) if op.value.get("receipt")],
        impairs=frozenset(value["impairs"]) if "impairs" in value else None,
        links=tuple((near, far) for near, far in value["links"]) if "links" in value else None,
        forgets=value.get("forgets"),
        loses=value.get("loses", False),
        stops=frozenset(value.get("stops", ())),
        rejects=value.get("rejects", False),
        only_messages=value.get("only_messages", False),
        surely=next(((op.time, end[0].time) for op in start if end and _proved([op])), None),
    )


def _proved(ops: list[Op]) -> bool:
    return any(
        op.type == "ok" and bool((op.value.get("receipt") or {}).get("proved")) for op in ops
    )


def stopped_at(found: Iterable[Fault], *points: str) -> dict[int, list[tuple[int, int]]]:
    """Return when each client's process was stopped at one of these failpoints of its code, as
    receipts prove."""
    spans: dict[int, list[tuple[int, int]]] = {}
    for fault in found:
        if fault.family != "pause" or fault.surely is None:
            continue
        receipt = fault.receipts[0]
        if receipt.get("at") in [f"at {point}" for point in points] and "process" in receipt:
            spans.setdefault(receipt["process"], []).append(fault.surely)
    return spans


def over_time(found: Iterable[Fault]) -> Spans[Fault]:
    """Index faults by the time in which they were active."""
    return Spans((fault.start, fault.end, fault) for fault in found)


class FaultsOfNodes:
    """Faults by the node that they may affect, and by time. `affects`: whether one may affect a
    node."""

    def __init__(
        self, found: Sequence[Fault], affects: Callable[[Fault, str | None], bool]
    ) -> None:
        self._found, self._affects = found, affects
        self._of: dict[str | None, Spans[Fault]] = {}

    def of(self, node: str | None) -> Spans[Fault]:
        if node not in self._of:
            self._of[node] = over_time(f for f in self._found if self._affects(f, node))
        return self._of[node]


def during(found: Spans[Fault], start: float, end: float) -> str:
    """Return the faults active between two times, as the end of a sentence that names the latest
    few."""
    on = [fault.describe() for fault in found.latest(start, end, _NAMED)]
    more = found.count(start, end) - len(on)
    on += [f"and {more} that began earlier"] if more > 0 else []
    return f" On at that time: {'; '.join(on)}." if on else " No fault was on at that time."
