"""Random histories with faults, for the oracle of causes."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any

from msgspec.structs import replace

from fencepost.checker.history.history import Op
from fencepost.nemesis.families import facts
from tests.oracles import exclusion, resource
from tests.oracles.drawn import MS, in_order

FAMILIES = ("pause", "pause", "pause", "packet", "partition", "clock", "kill", "cpu", "gremlin")
Row = dict[str, Any]


def draw(random: Random) -> tuple[list[Op], Row]:
    """Draw a history with up to four faults, with names of servers, and with assumed deadlines."""
    ops, test = random.choice((exclusion.draw, resource.draw))(random)
    several = random.random() < 0.3
    for op in ops:
        if op.f == "acquire" and op.type == "ok":
            if several:
                op.value["granted_by"] = random.sample(("s1", "s2", "s3"), random.randint(1, 2))
            if random.random() < 0.1:
                op.value["assumed"] = True
    if random.random() < 0.2:
        test.pop("servers", None)
    leases = [
        (str(op.node), op.value["deadline"] // MS)
        for op in ops
        if op.f == "acquire" and op.type == "ok" and op.value.get("deadline") is not None
    ]
    for number in range(random.randint(0, 4)):
        node = random.choice(("client-0", "client-0", "client-1", "client-2", "s1", "s2"))
        at = random.randrange(25)
        if leases and random.random() < 0.5:
            node, over = random.choice(leases)
            at = max(0, over - random.choice((-2, 0, 1, 1, 2, 4)))
        struck = list(_fault(random, number, node, at))
        if struck[0].f == "pause" and len(struck) == 4 and random.random() < 0.7:
            ops = [_held_back(op, node, at, struck[-1].time // MS) for op in ops]
        ops += struck
    if random.random() < 0.3:
        test["lock"] = {**test.get("lock", {}), "elector": True}
    return in_order(ops), test


def _held_back(op: Op, node: str, since: int, until: int) -> Op:
    """Let an event of a stopped client come when it resumes."""
    stopped = op.node == node and since * MS < op.time < until * MS
    return replace(op, time=until * MS) if stopped else op


def _fault(random: Random, number: int, node: str, at: int) -> Iterator[Op]:
    family = random.choice(FAMILIES)
    arguments: Row = {}
    if family == "partition":
        arguments = {"links": [[node, random.choice(("s3", "storage"))]]}
    elif family == "packet":
        arguments = {"kind": random.choice(("delay", "loss"))}
    elif family == "pause" and random.random() < 0.2:
        arguments = {"threads": "renewal"}
    targets = [] if family == "gremlin" and random.random() < 0.7 else [node]
    value: Row = {"fault": f"f{number}", "targets": targets, "arguments": arguments}
    named: Row = {}
    if family == "pause" and node.startswith("client") and random.random() < 0.5:
        # Mostly the first process of that client.
        named = {"process": int(node[-1]) if random.random() < 0.6 else random.randrange(6)}
    times = [at, at + random.choice((0, 0, 1)), at + random.choice((2, 4, 8, 15))]
    proved = random.random() < 0.85
    for phase, begun, done in (("start", *times[:2]), ("end", times[2], times[2])):
        if phase == "end" and random.random() < 0.1:
            return
        told = value | {"phase": phase}
        if phase == "start":
            told |= facts(family, [node], arguments)
        type = "ok" if proved or phase == "end" else "info"
        receipt = {"proved": type == "ok", "how": "drawn"} | (named if phase == "start" else {})
        yield Op(0, begun * MS, "nemesis", "invoke", family, told)
        yield Op(0, done * MS, "nemesis", type, family, told | {"receipt": receipt})
