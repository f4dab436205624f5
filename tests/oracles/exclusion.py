"""`lease_exclusion` and `mutual_exclusion`: compare every pair of holds."""

from __future__ import annotations

from random import Random
from typing import Any

from fencepost.checker.history.history import Op
from tests.oracles.drawn import Drawing, in_order
from tests.oracles.holds import Held, gap, holds

Verdicts = set[bool | str]


def draw(random: Random) -> tuple[list[Op], dict[str, Any]]:
    drawing = Drawing(random)
    if random.random() < 0.3:
        at = random.randrange(20)
        until = random.choice((None, at + 5))
        one, far = f"client-{random.randrange(3)}", random.choice(("s1", "storage"))
        families = ("partition", "partition", "kill", "power", "pause", "clock", "packet")
        family = random.choice(families)
        targets = [one] if family == "partition" else [random.choice((one, far, far))]
        arguments: dict[str, Any] = {"links": [[one, far]]} if family == "partition" else {}
        if family == "packet":
            arguments = {"kind": random.choice(("loss", "loss", "delay"))}
        drawing.fault(family, at, at, targets, arguments=arguments, until=until)
        drawing.ops = in_order(drawing.ops)
    return drawing.ops, drawing.test


def lease(ops: list[Op], test: dict[str, Any]) -> Verdicts:
    return _verdict(ops, test, lambda held: held.believed())


def mutual(ops: list[Op], test: dict[str, Any]) -> Verdicts:
    return _verdict(
        ops,
        test,
        lambda held: [(held.grant.time, held.first)] if held.grant.time <= held.first else [],
    )


def _verdict(ops: list[Op], test: dict[str, Any], spans: Any) -> Verdicts:
    found = holds(ops, test)
    if not found:
        return {"unknown"}
    pairs = [(one, other) for place, one in enumerate(found) for other in found[:place]]
    return {not any(_both(test, one, other, spans) for one, other in pairs)}


def _both(test: dict[str, Any], one: Held, other: Held, spans: Any) -> bool:
    """Return whether each certainly started before the other ended."""
    if one.lock != other.lock or (one.shared and other.shared) or one.process == other.process:
        return False
    between = gap(test, one.node, other.node)
    return any(_in(a, b, one, other, between) for a in spans(one) for b in spans(other))


def _in(a: Any, b: Any, one: Held, other: Held, between: int) -> bool:
    if (a[0], one.grant.index) > (b[0], other.grant.index):
        a, b = b, a
    if between:
        return bool(b[0] + between < a[1] and a[0] + between < b[1])
    return bool(b[0] < a[1])  # also one that is released in the instant in which it starts
