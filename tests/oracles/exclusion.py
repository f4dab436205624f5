"""`lease_exclusion` and `mutual_exclusion`: compare every pair of holds."""

from __future__ import annotations

from random import Random
from typing import Any

from fencepost.checker.history.history import Op
from tests.oracles.drawn import MS, Drawing, in_order
from tests.oracles.holds import Held, completion, gap, holds

Verdicts = set[bool | str]


def draw(random: Random) -> tuple[list[Op], dict[str, Any]]:
    drawing = Drawing(random)
    if random.random() < 0.15:
        _hand_out_late(drawing)
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


def _hand_out_late(drawing: Drawing) -> None:
    """Let some grants arrive long after their deadlines, and let faults hit clients meanwhile."""
    random = drawing.random
    for op in drawing.ops:
        if op.f == "acquire" and op.type == "ok" and random.random() < 0.4:
            op.value["deadline"] = op.time - random.choice((249, 250, 251, 400)) * MS
        if op.f == "extend" and op.type == "ok" and random.random() < 0.4:
            op.value["deadline"] = op.time - random.choice((249, 250, 251, 400)) * MS
        if op.f in ("acquire", "extend") and op.type == "ok" and random.random() < 0.1:
            op.value["assumed"] = random.choice((True, True, False))
    for _ in range(random.choice((0, 0, 1))):
        client = f"client-{random.randrange(3)}"
        family = random.choice(("pause", "clock", "cpu", "packet", "partition", "gremlin"))
        arguments: dict[str, Any] = {"kind": random.choice(("loss", "delay"))}
        if family == "partition":
            arguments = {"links": [[client, "s1"]]}
        at = random.randrange(20)
        until = random.choice((None, at + random.randrange(8)))
        drawing.fault(family, at, at, [client], arguments=arguments, until=until)
    drawing.ops = in_order(drawing.ops)


def lease(ops: list[Op], test: dict[str, Any]) -> Verdicts:
    of_a_lease = test["lock"]["ends_with"] == "lease"
    found = holds(ops, test) if of_a_lease else []
    if any(too_late(ops, held) or _extended_too_late(ops, held) for held in found):
        return {False}
    return _verdict(ops, test, lambda held: held.believed())


def too_late(ops: list[Op], held: Held) -> bool:
    """Return whether the lock itself said that the lease had expired when the grant arrived, and
    nothing may have kept its client from seeing that in time."""
    renewed = any(op.f == "renewed" and op.value["deadline"] is not None for op in held.said)
    if held.grant.value.get("assumed") or renewed:
        return False
    over = max(until for since, until in held.leases if since <= held.grant.time)
    if held.grant.time - over < 250 * MS:
        return False
    meanwhile = ops[held.asked.index : held.grant.index]
    if any(op.f == "lost" and op.process == held.process for op in meanwhile):
        return False
    return not any(_stops(ops, op, held, over) for op in ops if op.process == "nemesis")


def _extended_too_late(ops: list[Op], held: Held) -> bool:
    """Return whether an extend was answered ok long after the deadline of its own answer."""
    if any(op.f == "renewed" and op.value["deadline"] is not None for op in held.said):
        return False
    lost = [op.time for op in held.said if op.f == "lost"]
    for begun in held.said:
        done = completion(ops, begun) if begun.f == "extend" and begun.type == "invoke" else None
        if done is None or done.type != "ok" or done.value.get("assumed"):
            continue
        over = done.value.get("deadline")
        if over is None or done.time - over < 250 * MS or any(at < done.time for at in lost):
            continue
        if not any(_stops(ops, op, held, over, done) for op in ops if op.process == "nemesis"):
            return True
    return False


def _stops(ops: list[Op], begun: Op, held: Held, over: float, told: Op | None = None) -> bool:
    """Return whether this is the start of a fault that may have stopped the client in that time,
    which ends with `told`, or with its grant."""
    if begun.type != "invoke" or begun.value["phase"] == "end":
        return False
    ends = [
        op.time
        for op in ops
        if op.value.get("fault") == begun.value["fault"] and op.value["phase"] == "end"
    ]
    if begun.time > (told or held.grant).time or (ends and max(ends) < over):
        return False
    if "impairs" not in begun.value:
        return True
    network = begun.value["links"] or begun.value["only_messages"]
    return held.node in (*begun.value["impairs"], *begun.value["targets"]) and not network


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
