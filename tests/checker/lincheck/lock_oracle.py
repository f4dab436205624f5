"""Decide locks by brute force, written from docs/lincheck.md alone: own event reader, own steps.

It shares no code with lincheck, so it detects an error in a model. `lincheck_specifications` has
the steps of the locks without a lease; the steps of `lease-mutex` are below.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from fencepost.checker.lincheck import UNKNOWN
from tests.checker.lincheck import lincheck_specifications as specifications
from tests.checker.lincheck.lincheck_specifications import NEVER

PLAIN: dict[str, tuple[Any, Callable[..., Any]]] = {
    "mutex": (None, specifications.anybodys),
    "owner-mutex": (None, specifications.owned),
    "reentrant-mutex": ([], specifications.twice),
    "semaphore": (3, specifications.three_permits),
    "rw-lock": (([], None), specifications.readers_and_writer),
    "fenced-mutex": ((None, None), specifications.fenced),
}
NAMES = [*PLAIN, "lease-mutex"]


class Op(NamedTuple):
    """type: ok, fail or info. begin and end are positions; end is None if the op is open."""

    process: Any
    f: str
    type: str
    asked: Any
    told: Any
    begin: float
    end: int | None
    time: int


def accepts(name: str, events: list[dict[str, Any]], failed_release: str) -> bool:
    """Return whether some order of the lock's ops satisfies this model in docs/lincheck.md."""
    ops = []
    for op in read(events):
        if op.type == "fail":
            if op.f != "release" or failed_release == "nothing":
                continue
            op = op._replace(f="ended")
        elif name == "semaphore" and (op.f, op.type, failed_release) == (
            "release",
            "info",
            "ended",
        ):
            op = op._replace(f="ended")  # it may have failed, and then returns its permits
        ops.append(op)
    if name == "lease-mutex":
        ops += ends_of_leases(ops, [event["time"] for event in events])
        return search(ops, (None, None, None, ()), lease)
    start, after = PLAIN[name]

    def step(state: Any, op: Op) -> Any:
        return after(state, op.process, op.f, op.asked, op.told)

    return search(ops, start, step)


def read(events: list[dict[str, Any]]) -> list[Op]:
    ops, open_ops = [], {}
    for place, event in enumerate(events):
        if event["type"] == "invoke":
            open_ops[event["process"]] = place, event
            continue
        begin, asked = open_ops.pop(event["process"])
        told = event["value"] if event["type"] == "ok" else UNKNOWN
        if event["type"] == "ok" and event["f"] == "acquire":
            told = {"token": None, **(told or {})}
        done = event["type"] != "info"
        ops.append(
            Op(
                event["process"],
                event["f"],
                event["type"],
                asked["value"],
                told,
                begin,
                place if done else None,
                asked["time"],
            )
        )
    for begin, asked in open_ops.values():
        ops.append(
            Op(
                asked["process"],
                asked["f"],
                "info",
                asked["value"],
                UNKNOWN,
                begin,
                None,
                asked["time"],
            )
        )
    return ops


def grant(op: Op) -> Any:
    """A grant is identified by its hold where the history has one, else by its process."""
    told = op.told if op.f == "acquire" and isinstance(op.told, dict) else {}
    return op.process, told.get("hold", (op.asked or {}).get("hold"))


def ends_of_leases(ops: list[Op], times: list[int]) -> list[Op]:
    """Add an op for every acquire and extend: its lease expires, from its time on or never."""
    ends = []
    for op in ops:
        if op.f in ("acquire", "extend"):
            until = op.time + op.asked["ttl"]
            late = [place for place, time in enumerate(times) if time >= until]
            if late:
                ends.append(op._replace(f="expire", begin=late[0] - 0.5, end=None))
    return ends


def lease(state: Any, op: Op) -> Any:
    """state: (holder, the earliest end of its lease, last token, expired grants)."""
    holder, until, last, gone = state
    own = grant(op._replace(f="acquire")) if op.f == "expire" else grant(op)
    if op.f == "acquire":
        if holder is not None:
            return NEVER
        token = op.told["token"] if op.type == "ok" else None
        if token is not None and last is not None and token <= last:
            return NEVER
        if op.type != "ok" and last is not None:
            token = last + 1
        return own, op.time + op.asked["ttl"], last if token is None else token, gone
    if op.f == "extend":
        return (own, op.time + op.asked["ttl"], last, gone) if holder == own else NEVER
    if op.f == "expire":
        if holder != own or until != op.time + op.asked["ttl"]:
            return NEVER
        return None, None, last, tuple(sorted({*gone, own}, key=repr))
    if holder == own:
        return None, None, last, gone
    if own in gone:
        return holder, until, last, tuple(other for other in gone if other != own)
    return state if op.f == "ended" else NEVER


def search(ops: list[Op], state: Any, step: Callable[[Any, Op], Any]) -> bool:
    if all(op.end is None for op in ops):
        return True
    first_end = min(op.end for op in ops if op.end is not None)
    for index, op in enumerate(ops):
        if op.begin < first_end or op.end == first_end:
            after = step(state, op)
            if after is not NEVER and search(ops[:index] + ops[index + 1 :], after, step):
                return True
    return False
