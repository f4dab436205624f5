"""Random histories for the oracle of liveness.

They are drawn in ms and written in tenths of a second, the scale of half a second in a queue.
"""

from __future__ import annotations

from random import Random
from typing import Any

from fencepost.checker.history.history import Op
from tests.oracles.drawn import MS, Drawing, in_order

SLOWER = 100
SERVERS = ["s1", "s2", "s3", "s4", "s5"]
FAMILIES = ("partition", "pause", "kill", "power", "failover", "delay", "disk", "clock")


def draw(random: Random) -> tuple[list[Op], dict[str, Any]]:
    few = random.random() < 0.6
    drawing = Drawing(
        random, clients=2 if few else 3, most=3 if few else 5, shared=0.3, named=0.95, bounds=0.1
    )
    test = drawing.test
    test["servers"] = SERVERS[: random.choice((1, 3, 3, 5, 5))]
    # One of these alone: more of them would hide its verdict.
    alone = random.random() < 0.25
    if alone:
        drawing.ops.clear()
        scene = random.choice((_outlast, _cut_from_some, _shut_out, _refuse_at_once, _turn_away))
        scene(drawing)
    late, resets = not alone and random.random() < 0.2, random.random() < 0.5
    at_once = not alone and random.random() < 0.1
    if not alone:
        _mix(drawing, late, resets)
    if at_once:
        _refuse_at_once(drawing)
    test["liveness_bound_s"] = random.choice((0.3, 0.5, 1.0))
    if random.random() < 0.2:
        test["ready_s"] = random.choice((0.1, 0.4, 1.0, 2.5))
    test["promises"] = {
        name: True
        for name, often in (
            ("minority", 0.5),
            ("fifo", 0.5),
            ("one_wakeup", 0.5),
            ("true_refusals", 0.9 if late or at_once else 0.25),
            ("reentrant", 0.4),
        )
        if random.random() < often
    }
    return [_slower(op) for op in in_order(drawing.ops)], test | _bounds(test)


def _mix(drawing: Drawing, late: bool, resets: bool) -> None:
    """Draw clients and faults, and sometimes a scene of the kinds below."""
    random = drawing.random
    for number in range(random.choice((0, 1, 1, 2, 3))):
        _ask(drawing, 90 + number)
    for _ in range(0 if late and resets else random.choice((0, 0, 1, 1, 2, 3))):
        _fault(drawing)
    if random.random() < 0.2:
        _ask_a_free_lock(drawing)
    if late:
        _refuse_after_silence(drawing, resets)
    if random.random() < 0.1:
        _refuse_a_holder(drawing)
    if random.random() < 0.1:
        _shut_out(drawing)


def _ask(drawing: Drawing, process: int) -> None:
    """Draw a client that asks again and again, or one time and for long, and mostly in vain."""
    random, node = drawing.random, f"client-{process}"
    now = random.randrange(20)
    value: dict[str, Any] = {"lock": f"l{random.randrange(2)}", "ttl": random.choice((3, 8)) * MS}
    if random.random() < 0.2:
        value["mode"] = "shared"
    for number in range(random.randint(1, 4)):
        over = now + random.choice((0, 1, 3, 6, 12, 20))
        drawing.op(now, process, "invoke", "acquire", value, node=node)
        if over > now and random.random() < 0.1:
            lost = {"lock": value["lock"], "hold": None}
            at = random.randint(now, over)
            drawing.op(at, process, "info", "lost", lost, ["expired", "-"], node)
        ending = random.random()
        if ending < 0.15:
            if random.random() < 0.6:
                drawing.fault("kill", over, over + 1, [node], processes=[process])
            return
        if ending < 0.2:
            error = random.choice((["killed", "-"], ["timeout", "-"]))
            drawing.op(over, process, "info", "acquire", value, error, node)
            if error[0] == "timeout" and random.random() < 0.5:
                drawing.op(over, process, "invoke", "close", {}, None, node)
                drawing.op(over + random.choice((0, 1)), process, "ok", "close", {}, None, node)
            return
        if ending < 0.3:
            got = {"hold": f"a{process}-{number}", "token": None, "deadline": (over + 5) * MS}
            got |= {"wakeups": random.randrange(4)}
            drawing.op(over, process, "ok", "acquire", value | got, None, node)
            drawing.op(over + 1, process, "invoke", "release", value | got, None, node)
            drawing.op(over + 1, process, "ok", "release", value | got, None, node)
            over += 1
        else:
            drawing.op(over, process, "fail", "acquire", value, ["not-granted", "-"], node)
        now = over + random.choice((0, 1, 1, 2, 5))


def _fault(drawing: Drawing) -> None:
    random = drawing.random
    nodes = [*SERVERS[:3], *SERVERS, "client-0", "client-1", "client-90", "storage"]
    targets = random.sample(nodes, random.choice((1, 1, 1, 2, 3)))
    family, at = random.choice(FAMILIES), random.randrange(40)
    family = "gremlin" if random.random() < 0.03 else family
    until = None if random.random() < 0.1 else at + random.choice((0, 1, 4, 10, 25))
    arguments: dict[str, Any] = {}
    if family == "partition" and random.random() < 0.5:
        near, *far = random.sample(nodes, random.choice((2, 3)))
        arguments = {"links": [[near, one] for one in far if one != near]}
    if family == "delay":
        arguments = {"source": targets[0], "to": random.choice(SERVERS)}
    if family == "clock":
        arguments = random.choice(({"offset_s": -0.5}, {"offset_s": 2.0}, {"rate": 1.5}))
    before = len(drawing.ops)
    proved = random.random() < 0.9
    more = _reject(random, arguments, at, until) if family == "partition" else {}
    over = at + more.pop("placed", 0)
    drawing.fault(
        family, at, over, targets, proved=proved, arguments=arguments, until=until, **more
    )
    if random.random() < 0.3:  # the director writes it like this: the facts with the fault
        says = {"impairs": random.sample(nodes, random.choice((0, 1, 2)))}
        for place in range(before, before + 2):
            op = drawing.ops[place]
            drawing.ops[place] = Op(
                0, op.time, op.process, op.type, op.f, op.value | says, op.error
            )


def _reject(
    random: Random, arguments: dict[str, Any], at: int, until: int | None
) -> dict[str, Any]:
    """Let some cuts reject, which takes a while to be put in place and to be taken off."""
    if not arguments or random.random() < 0.3:
        return {}
    arguments["how"] = "reject"
    if until is None:
        return {"placed": random.choice((0, 1))}
    placed = random.choice([0, *([1, 2] if until > at + 2 else [])])
    return {"placed": placed, "ordered": random.randint(at + placed, until)}


def _ask_a_free_lock(drawing: Drawing) -> None:
    """Draw clients that ask in vain for a lock without a holder, while faults hinder them."""
    random = drawing.random
    value = {"lock": "l8", "ttl": random.choice((3, 8)) * MS}
    for process in range(95, 95 + random.choice((1, 1, 2))):
        node, now = f"client-{process}", random.randrange(4)
        for _ in range(random.randint(1, 3)):
            over = now + random.choice((4, 8, 16))
            drawing.op(now, process, "invoke", "acquire", value, node=node)
            if random.random() < 0.15:
                break
            error = random.choice((["not-granted", "-"], ["not-granted", "-"], ["killed", "-"]))
            type = "info" if error[0] == "killed" else "fail"
            drawing.op(over, process, type, "acquire", value, error, node)
            now = over + random.choice((0, 0, 1, 6))
    for family in random.choices(("partition", "pause", "gremlin", "disk"), k=random.randrange(4)):
        at, node = (
            random.randrange(24),
            random.choice(("client-95", "client-95", "client-96", "s1")),
        )
        until = None if random.random() < 0.1 else at + random.choice((1, 3, 6, 12))
        links = {"links": [[node, "s1"], [node, "s2"]]} if family == "partition" else {}
        targets = [node] if family != "gremlin" else random.choice(([node], []))
        drawing.fault(
            family, at, at, targets, arguments=links, until=until, proved=random.random() < 0.8
        )


def _refuse_after_silence(drawing: Drawing, resets: bool) -> None:
    """Draw a lock of which one client gets no answer, and of which another is refused later.
    `resets`: that client is cut off, mostly by rejection, and closes."""
    random = drawing.random
    value = {"lock": "l9", "ttl": random.choice((3, 8)) * MS}
    asked = random.randrange(10)
    given_up = asked + random.randrange(6)
    mine = value | random.choice(({}, {}, {"mode": "shared"}))
    drawing.op(asked, 98, "invoke", "acquire", mine, node="client-98")
    drawing.op(given_up, 98, "info", "acquire", mine, ["timeout", "-"], "client-98")
    if random.random() < (0.9 if resets else 0.3):
        done = given_up + random.choice((0, 0, 1, 4))
        type = random.choice(("ok", "ok", "ok", "info"))
        drawing.op(given_up, 98, "invoke", "close", {}, None, "client-98")
        drawing.op(done, 98, type, "close", {}, None, "client-98")
    if resets:
        _cut_off(drawing, asked, given_up)
    for family in random.choices(("partition", "pause", "clock", "power"), k=random.randrange(3)):
        if resets and random.random() < 0.7:
            continue
        at = random.randrange(max(0, asked - 3), given_up + 12)
        arguments: dict[str, Any] = {}
        targets = [random.choice(("client-98", "client-98", "s1", "client-0"))]
        if family == "clock":
            arguments = {"offset_s": random.choice((-0.5, 1.0))}
        elif family == "partition" and random.random() < 0.7:
            ends = ("client-98", "client-0", "client-97", "s2")
            arguments = {
                "links": [[one, "s1"] for one in random.sample(ends, random.choice((1, 2)))]
            }
        until = at + random.choice((1, 3, 6))
        drawing.fault(family, at, at, targets, arguments=arguments, until=until)
    refused = given_up + random.randrange(70)
    for process in range(93, 93 + random.choice((0, 0, 1, 1, 2))):
        _grant_between(drawing, process, value, given_up, refused)
    for at in {refused, refused + random.randrange(2, 12)}:
        drawing.op(at, 97, "invoke", "acquire", value, node="client-97")
        drawing.op(at + 1, 97, "fail", "acquire", value, ["not-granted", "-"], "client-97")


def _refuse_a_holder(drawing: Drawing) -> None:
    """Draw a process that asks again for a lock that it has, mostly, and is refused, or waits."""
    random = drawing.random
    lasts = random.choice((6, 9, 30))
    value: dict[str, Any] = {"lock": "l7", "ttl": lasts * MS}
    mine = value | random.choice(({}, {}, {}, {"mode": "shared"}))
    at = random.randrange(10)
    got = mine | {"hold": "again", "token": None, "deadline": (at + lasts) * MS}
    drawing.op(at, 88, "invoke", "acquire", mine, node="client-88")
    drawing.op(at, 88, "ok", "acquire", got, None, "client-88")
    now = at + random.randrange(1, 5)
    if random.random() < 0.3:
        extended = {"lock": "l7", "hold": "again", "ttl": lasts * MS}
        until = {"deadline": (now + lasts) * MS}
        drawing.op(now, 88, "invoke", "extend", extended, None, "client-88")
        drawing.op(now, 88, "ok", "extend", extended | until, None, "client-88")
    elif random.random() < 0.3:
        drawing.op(now, 88, "invoke", "release", got, None, "client-88")
        drawing.op(now, 88, "ok", "release", got, None, "client-88")
    if random.random() < 0.3:
        _grant_between(drawing, 87, value, at, at + 8)
    asked = now + random.randrange(5)
    who = random.choice((88, 88, 88, 86))
    drawing.op(asked, who, "invoke", "acquire", value, node=f"client-{who}")
    if random.random() < 0.5:
        error = [random.choice(("not-granted",) * 4 + ("no-quorum",)), "-"]
        over = asked + random.randrange(3)
        drawing.op(over, who, "fail", "acquire", value, error, f"client-{who}")
    elif random.random() < 0.8:
        over = asked + random.randrange(2, 13)
        type, kind = random.choice(
            (("info", "timeout"), ("fail", "timeout"), ("info", "killed"), ("fail", "unreachable"))
        )
        drawing.op(over, who, type, "acquire", value, [kind, "-"], f"client-{who}")


def _shut_out(drawing: Drawing) -> None:
    """Draw a client that asks in vain, mostly, for a lock that another client is granted again and
    again."""
    random = drawing.random
    value: dict[str, Any] = {"lock": "l5", "ttl": 8 * MS}
    now, fair = random.randrange(4), random.random() < 0.2
    process = 70
    for number in range(random.randint(1, 5)):
        for _ in range(random.randint(0, 3)):
            over = now + random.choice((1, 1, 2))
            process = 73 if random.random() < 0.1 else process  # as after an error
            _vain(drawing, now, over, process, value, "client-70")
            if random.random() < 0.1:
                _vain(drawing, now, over, random.choice((71, 72)), value)
            now = over + random.choice((0, 0, 0, 1))
        now += random.randrange(2)
        done = now + random.randrange(2)
        mine = process if fair and random.random() < 0.5 else 71
        node = "client-71" if mine == 71 else "client-70"
        hold = {"hold": f"s{number}", "token": None}
        got = value | hold | {"deadline": (done + 8) * MS}
        drawing.op(now, mine, "invoke", "acquire", value, node=node)
        drawing.op(done, mine, "ok", "acquire", got, None, node)
        now = done + random.randrange(2)
        drawing.op(now, mine, "invoke", "release", got, None, node)
        drawing.op(now, mine, "ok", "release", got, None, node)
        now += random.randrange(2)
    if random.random() < 0.2:
        at = random.randrange(now + 1)
        drawing.fault("pause", at, at, [random.choice(("client-70", "s1"))], until=at + 1)


def _outlast(drawing: Drawing) -> None:
    """Draw holders whose leases are longer than they asked for, mostly, and clients that ask in
    vain until the end."""
    random = drawing.random
    value: dict[str, Any] = {"lock": "l4", "ttl": random.choice((3, 8)) * MS}
    over = random.randrange(4)
    for number in range(random.choice((1, 1, 2))):
        lasts = random.choice((value["ttl"] // MS, 60, 60, None))
        deadline = None if lasts is None else (over + lasts) * MS
        got = value | {"hold": f"o{number}", "token": None, "deadline": deadline}
        process, node = 60 + number, f"client-{60 + number}"
        drawing.op(over, process, "invoke", "acquire", value, None, node)
        drawing.op(over, process, "ok", "acquire", got, None, node)
        gone = over + random.randrange(1, 4)
        ending = random.random()
        if ending < 0.5:
            drawing.fault("kill", gone, gone, [node], processes=[process])
        elif ending < 0.7:
            drawing.op(gone, process, "invoke", "close", {}, None, node)
            drawing.op(gone, process, "ok", "close", {}, None, node)
        elif ending < 0.8:
            drawing.op(gone, process, "invoke", "release", got, None, node)
            drawing.op(gone, process, "info", "release", got, ["timeout", "-"], node)
        over = gone + random.randrange(3)
    _ask_in_vain(drawing, over, value, 65)
    if random.random() < 0.2:
        at = random.randrange(over + 10)
        drawing.fault("pause", at, at, ["s1"], until=at + random.randrange(1, 4))


def _cut_from_some(drawing: Drawing) -> None:
    """Draw a client that asks in vain while it, or another, is cut off from some servers, and some
    may be down."""
    random = drawing.random
    value: dict[str, Any] = {"lock": "l3", "ttl": random.choice((3, 8)) * MS}
    _ask_in_vain(drawing, random.randrange(6), value, 65)
    if random.random() < 0.5:
        _ask_in_vain(drawing, random.randrange(6), value, 66)
    for _ in range(random.choice((1, 1, 2, 3))):
        far = random.sample(SERVERS, random.choice((1, 1, 2, 3)))
        near = random.choice(
            (["client-65"], ["client-65"], ["client-66"], ["client-65", "client-66"])
        )
        if random.random() < 0.1:
            far.append(random.choice(("client-66", "storage")))
        at = random.randrange(6)
        until = random.choice((None, at + random.randrange(2, 20)))
        how = {"how": "reject"} if random.random() < 0.2 else {}
        links = [[a, b] for a in near for b in far if a != b]
        drawing.fault(
            *("partition", at, at, [*near, *far]), arguments={"links": links, **how}, until=until
        )
    if random.random() < 0.3:
        at = random.randrange(10)
        drawing.fault("pause", at, at, [random.choice(SERVERS)], until=at + random.randrange(20))


def _ask_in_vain(drawing: Drawing, now: int, value: dict[str, Any], process: int) -> None:
    random = drawing.random
    for _ in range(random.randint(2, 8)):
        over = now + random.choice((1, 2, 2))
        _vain(drawing, now, over, process, value)
        now = over + random.choice((0, 0, 0, 0, 1, 3))


def _vain(
    drawing: Drawing, at: int, over: int, process: int, value: dict[str, Any], node: str = ""
) -> None:
    node = node or f"client-{process}"
    drawing.op(at, process, "invoke", "acquire", value, node=node)
    drawing.op(over, process, "fail", "acquire", value, ["not-granted", "-"], node)


def _refuse_at_once(drawing: Drawing) -> None:
    """Draw clients that ask for a lock at the same time, mostly, and are all refused, mostly."""
    random = drawing.random
    at = random.randrange(30)
    if random.random() < 0.3:
        value: dict[str, Any] = {"lock": "l6", "ttl": 8 * MS}
        _grant_between(drawing, 80, value, max(0, at - 6), at + 2)
    for process in range(81, 81 + random.choice((2, 2, 3))):
        value = {"lock": "l6", "ttl": random.choice((3, 8)) * MS}
        if random.random() < 0.1:
            del value["ttl"]
        if random.random() < 0.2:
            value["mode"] = "shared"
        asked = at + random.randrange(4)
        done = asked + random.choice((0, 1, 2, 3, 4))
        type, kind = random.choice((("fail", "not-granted"),) * 8 + (("info", "timeout"),))
        node = f"client-{process}"
        drawing.op(asked, process, "invoke", "acquire", value, node=node)
        drawing.op(done, process, type, "acquire", value, [kind, "-"], node)


def _turn_away(drawing: Drawing) -> None:
    """Draw a client that asks for a free lock again and again and gets an error, mostly, while
    others are refused the lock in its lease, mostly."""
    random = drawing.random
    value: dict[str, Any] = {"lock": "l2", "ttl": random.choice((3, 3, 8)) * MS}
    now = random.randrange(4)
    if random.random() < 0.3:
        _grant_between(drawing, 77, value, now, now + 3)
        now += random.choice((4, 8))
    kinds = random.choice((("no-quorum", "raised"), ("no-quorum", "timeout", "cancelled")))
    for process in range(40, 40 + random.randint(2, 6)):
        node = random.choice(("client-40",) * 9 + ("client-41",))
        over = now + random.choice((0, 0, 1, 2))
        error = [random.choice(kinds), "-"] if random.random() < 0.98 else None
        drawing.op(now, process, "invoke", "acquire", value, node=node)
        if random.random() < 0.05:
            lost = {"lock": "l2", "hold": None}
            drawing.op(random.randint(now, over), process, "info", "lost", lost, ["-", "-"], node)
        drawing.op(over, process, "info", "acquire", value, error, node)
        ends = over + value["ttl"] // MS
        if random.random() < 0.4:
            asked = random.randint(over, ends) + random.choice((0, 0, 0, 1))
            done = asked + random.choice((0, 1))
            _vain(drawing, asked, done, 78, value)
            ends = max(ends, done)
        if random.random() < 0.05:
            _grant_between(drawing, 60 + process, value, over, ends)
        now = ends + random.choice((0, 1, 1, 1, 2, 4))
    for family in random.choices(("pause", "partition", "kill", "clock"), k=random.choice((0, 1))):
        at = random.randrange(now)
        near = random.choice(("client-40", "s1", "s5"))
        links = {"links": [["client-40", "s2"]]} if family == "partition" else {}
        until = random.choice((None, at + random.randrange(12)))
        drawing.fault(family, at, at, [near], arguments=links, until=until)


def _cut_off(drawing: Drawing, asked: int, given_up: int) -> None:
    """Cut the client off that gets no answer, once or twice, mostly by rejection."""
    random = drawing.random
    at = max(0, random.randint(asked - 2, given_up + 2))
    for _ in range(random.choice((1, 1, 2))):
        near = random.choice(("client-98", "client-98", "client-98", "s2"))
        links = [
            [near, far] for far in random.sample(SERVERS, random.choice((1, 3))) if far != near
        ]
        until = at + random.choice((3, 9, 18))
        arguments: dict[str, Any] = {"links": [*links, ["client-98", "s1"]]}
        more = _reject(random, arguments, at, until)
        over = at + more.pop("placed", 0)
        proved = random.random() < 0.9
        drawing.fault(
            *("partition", at, over, ["client-98"]),
            proved=proved, arguments=arguments, until=until, **more,
        )  # fmt: skip
        at = until + random.randrange(4)


def _grant_between(
    drawing: Drawing, process: int, value: dict[str, Any], begin: int, end: int
) -> None:
    """Draw a hold that ends before the refusal, mostly."""
    random = drawing.random
    node = random.choice(("client-93", "client-93", "client-98"))
    asked = random.randint(begin, end)
    granted = asked + random.choice((0, 0, 1, 3))
    got = value | {"hold": f"between-{process}", "token": None, "deadline": (granted + 5) * MS}
    got |= random.choice(({}, {}, {"mode": "shared"}))
    drawing.op(asked, process, "invoke", "acquire", got, node=node)
    drawing.op(granted, process, "ok", "acquire", got, None, node)
    drawing.op(granted, process, "invoke", "release", got, None, node)
    drawing.op(granted + 1, process, "ok", "release", got, None, node)


def _slower(op: Op) -> Op:
    value = {
        key: held * SLOWER if key in ("deadline", "ttl") and held is not None else held
        for key, held in op.value.items()
    }
    return Op(op.index, op.time * SLOWER, op.process, op.type, op.f, value, op.error, op.node)


def _bounds(test: dict[str, Any]) -> dict[str, Any]:
    told = test.get("clocks", {}).items()
    return {"clocks": {node: {"bound_ns": c["bound_ns"] * SLOWER} for node, c in told}}
