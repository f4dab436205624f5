"""Parse acquires and faults of a history, for the oracles of liveness and of fairness."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from fencepost.checker.history.history import Op
from tests.oracles.holds import FOREVER, Held, by_harness, completion


@dataclass
class Fault:
    """A fault in the history; `impairs` is None if that is not recorded. `deafens`: it may keep
    answers from the nodes that it impairs. `wrong`: by how much it sets a clock wrong (ns).
    `resets`: from when until when it certainly resets the connections that it cuts. `hinders`: the
    clients whom it alone hinders, None if it is a fault of servers (cuts.py)."""

    start: float
    end: float
    impairs: set[str] | None
    kills: bool
    targets: list[str]
    deafens: bool
    proved: bool
    wrong: float
    links: list[list[str]]
    resets: tuple[float, float] | None = None
    hinders: set[str] | None = None


@dataclass
class Asked:
    """An acquire with its completion. `died`: when its client was seen dead, if it died in it."""

    begun: Op
    done: Op | None
    ttl: int
    died: float | None
    held: Held | None
    told: float = FOREVER

    def asked_until(self, end: int) -> float:
        """Return its end, or that of its client, of its wait, or else of the history."""
        if self.done is not None:
            return self.done.time if self.held else min(self.done.time, self.told)
        return min(end, self.told) if self.died is None else min(self.died, end, self.told)

    @property
    def unheard(self) -> bool:
        return self.died is not None or (self.done is not None and self.done.type == "info")

    @property
    def over(self) -> float:
        """Return when a grant whose answer its client did not receive would end."""
        gone = self.done.time if self.done is not None else self.died
        return FOREVER if gone is None else gone + self.ttl


def find_faults(ops: list[Op], test: dict[str, Any]) -> list[Fault]:
    clients = {op.node for op in ops if op.process != "nemesis"} - set(test["servers"])
    names = dict.fromkeys(op.value["fault"] for op in ops if op.process == "nemesis")
    found = []
    for name in names:
        mine = [op for op in ops if op.process == "nemesis" and op.value["fault"] == name]
        ends = [op.time for op in mine if op.value["phase"] == "end"]
        impairs = _impairs(mine[0])
        receipts = [op.value["receipt"] for op in mine if "receipt" in op.value]
        killed = any(one["proved"] and one.get("processes") for one in receipts)
        kills = killed and impairs is not None and impairs <= clients
        end = ends[-1] if ends else FOREVER
        value = mine[0].value
        targets = list(value["targets"])
        deafens = "links" not in value or bool(value["links"]) or value.get("loses", False)
        begun = [op for op in mine if op.value["phase"] == "start" and op.type == "ok"]
        proved = any(op.value.get("receipt", {}).get("proved") for op in begun)
        found.append(
            Fault(
                mine[0].time,
                end,
                impairs,
                kills,
                targets,
                deafens,
                proved,
                _wrong(value["arguments"], end - mine[0].time),
                [list(link) for link in value.get("links", ())],
                _resets(mine),
            )
        )
    return found


def _resets(mine: list[Op]) -> tuple[float, float] | None:
    """Return the time between the receipt that a fault is in place and the order to end it."""
    placed = [op for op in mine if op.value["phase"] == "start" and op.type == "ok"]
    placed = [op for op in placed if op.value.get("receipt", {}).get("proved")]
    ordered = [op for op in mine if op.value["phase"] == "end"]
    if not mine[0].value.get("rejects") or not placed or not ordered:
        return None
    return placed[0].time, ordered[0].time


def _wrong(arguments: dict[str, Any], lasted: float) -> float:
    drifted = 0.0 if lasted == FOREVER else abs(arguments.get("rate", 1) - 1) * lasted
    return abs(arguments.get("offset_s", 0)) * 1e9 + drifted


def _impairs(op: Op) -> set[str] | None:
    if "impairs" in op.value:
        return set(op.value["impairs"])
    links = op.value["arguments"].get("links")
    if op.f == "gremlin":
        return None
    if op.f == "clock":
        return set()
    if op.f == "delay":
        return {op.value["arguments"]["source"], op.value["arguments"]["to"]}
    if links:  # one node against one, or against several
        return set(links[0]).intersection(*links)
    return set(op.value["targets"])


def find_deaths(ops: list[Op]) -> dict[Any, tuple[int, int]]:
    """Return when each process that a proved receipt names was ordered to die, and was dead."""
    found: dict[Any, tuple[int, int]] = {}
    for op in ops:
        receipt = op.value.get("receipt") or {}
        if op.process == "nemesis" and op.value["phase"] == "start" and receipt.get("proved"):
            begun = next(o.time for o in ops if o.value.get("fault") == op.value["fault"])
            for process in receipt.get("processes", ()):
                found.setdefault(process, (begun, op.time))
    return found


def find_asked(
    ops: list[Op], begun: Op, found: list[Held], deaths: dict[Any, tuple[int, int]]
) -> Asked:
    done = completion(ops, begun)
    killed = deaths.get(begun.process)
    died: float | None = None
    if done is None and killed:
        died = killed[1]
    elif done is not None and by_harness(done):
        died = done.time
    held = next((one for one in found if one.asked is begun), None)
    told = [
        op.time
        for op in ops[begun.index :]
        if op.process == begun.process
        and op.f == "lost"
        and op.value.get("hold") is None
        and (op.error or [None])[0] != "requeued"
    ]
    ttl = begun.value.get("ttl") or 0
    return Asked(begun, done, ttl, died, held, min(told, default=FOREVER))
