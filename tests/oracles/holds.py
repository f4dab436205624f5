"""Find holds by the letter of docs/design.md, section 4, with a look at every op."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from fencepost.checker.history.history import Op

FOREVER = math.inf


@dataclass
class Held:
    """A grant, with the times at which its hold may have ended.

    `first`, `last`: until when its holder certainly held it, and by when it had released it.
    `given`: from when on the service may know that. `early`: from when on the service may have
    ended it by itself, `other` with another hold of its process. `leases`: spans [from, until).
    `told`: when its client learned by a refused extend that it has no hold, and left it at that.
    `said`: its holder's later ops about it; `went`: whether its holder died before it gave
    it up.
    """

    grant: Op
    asked: Op
    lock: str
    shared: bool
    token: int | None
    first: float
    last: float
    early: float
    leases: list[tuple[float, float]]
    furthest: float
    said: list[Op]
    went: bool
    given: float
    told: float
    other: float = FOREVER

    @property
    def process(self) -> int | str:
        return self.grant.process

    @property
    def node(self) -> str | None:
        return self.grant.node

    def believed(self) -> list[tuple[float, float]]:
        """Return the spans of the holder's belief; an instant is [t, t]."""
        spans = []
        for begun, until in self.leases:
            over = min(until, self.given, self.early, self.other)
            if begun < until and begun <= over:
                spans.append((begun, over))
        return spans

    def believed_until(self) -> float:
        return max((over for _, over in self.believed()), default=self.grant.time)


def bound(test: dict[str, Any], node: str | None) -> int:
    return test.get("clocks", {}).get(node, {}).get("bound_ns", 0)


def gap(test: dict[str, Any], one: str | None, other: str | None) -> int:
    return 0 if one == other else bound(test, one) + bound(test, other)


def before(test: dict[str, Any], one: Op, other: Op) -> bool:
    """Return whether one op certainly happened before the other; one stamp of two processes does
    not tell."""
    between = gap(test, one.node, other.node)
    if one.process == other.process and not between:
        return one.index < other.index
    return one.time + between < other.time


def completion(ops: list[Op], begun: Op) -> Op | None:
    for op in ops[begun.index + 1 :]:
        if op.process == begun.process and op.type != "invoke" and op.f not in ("lost", "renewed"):
            return op
    return None


def invocation(ops: list[Op], done: Op) -> Op:
    for op in reversed(ops[: done.index]):
        if op.process == done.process and op.type == "invoke":
            return op
    raise AssertionError(f"{done} was never invoked")


def by_harness(op: Op) -> bool:
    return bool(op.type == "info" and op.error and op.error[0] in ("killed", "crashed"))


def holds(ops: list[Op], test: dict[str, Any]) -> list[Held]:
    """Return every hold, in order of grant."""
    found = [
        _held(ops, test, op)
        for op in ops
        if op.process != "nemesis" and op.f == "acquire" and op.type == "ok"
    ]
    if not test.get("promises", {}).get("reentrant"):
        for one in found:
            for other in _chained(found, one):
                if other.grant.index > one.grant.index:
                    ended = min(other.given, other.leases[-1][1])
                    one.other = min(one.other, max(other.grant.time, ended))
                elif other.given > one.grant.time:
                    one.other = min(one.other, other.given)
    return found


def _chained(found: list[Held], one: Held) -> list[Held]:
    """Return the other holds that this one is joined with by second grants, one after another."""
    joined = [one]
    for some in joined:
        for other in found:
            near = second_grant(some, other) or second_grant(other, some)
            if near and all(other is not known for known in joined):
                joined.append(other)
    return joined[1:]


def chain_of(found: list[Held], grant: Op) -> list[Held]:
    """Return the hold of this grant, and those that it is joined with by second grants."""
    (mine,) = (held for held in found if held.grant is grant)
    return [mine, *_chained(found, mine)]


def second_grant(first: Held, second: Held) -> bool:
    """Return whether a process asked for the second hold while it had the first one."""
    return (
        (first.process, first.lock) == (second.process, second.lock)
        and first.grant.index < second.asked.index
        and min(first.given, first.leases[-1][1]) > second.asked.time
    )


def given_again(found: list[Held], grant: Op) -> bool:
    """Return whether a grant repeats the token of a hold that its process had when it asked."""
    (second,) = (held for held in found if held.grant is grant)
    return any(second_grant(one, second) and one.token == second.token for one in found)


def ordered_holds(ops: list[Op], test: dict[str, Any]) -> list[Held]:
    """Return the same, without the tokens of a lock with a falling one among ordered grants."""
    found = holds(ops, test)
    fell = {
        late.lock
        for early in found
        for late in found
        if early.lock == late.lock
        and None not in (early.token, late.token)
        and early.token > late.token  # type: ignore[operator]
        and before(test, early.grant, late.asked)
        and not given_again(found, late.grant)
    }
    for held in found:
        held.token = None if held.lock in fell else held.token
    return found


def _held(ops: list[Op], test: dict[str, Any], grant: Op) -> Held:
    asked = invocation(ops, grant)
    value = asked.value | grant.value
    lock = str(value.get("lock", ""))
    name = value.get("hold")
    mine = [op for op in ops if _speaks_of(ops, op, grant, lock, name)]
    ends: list[tuple[float, float]] = []
    for op in mine:
        if op.f == "lost":
            ends.append((op.time, op.time))
        if op.f == "release" and op.type == "invoke":
            done = completion(ops, op)
            failed = done is not None and done.type == "fail"
            kind = done.error[0] if failed and done is not None and done.error else ""
            if kind == "not-held" or not (failed and test.get("failed_release") == "nothing"):
                if kind != "unreachable":
                    ends.append((op.time, op.time))
                elif not _goes_on(ops, mine, op, name):
                    ends.append((op.time, FOREVER))
    refused = [op.time for op in mine if _refused_for_good(ops, mine, op, name)]
    ends += [(at, FOREVER) for at in refused]
    gone, how = _gone(ops, test, grant)
    maybe = FOREVER if gone else _perhaps_killed(ops, grant)
    ends += [(maybe, FOREVER)] if maybe < FOREVER else []
    went = gone is not None and all(gone < end for end in ends)
    if gone:
        ends.append(gone)
    kind = test.get("lock", {}).get("ends_with", "lease")
    early = FOREVER
    if gone and ((how == "left" and kind != "lease") or (how == "killed" and kind == "connection")):
        early = gone[0]
    if kind == "connection":
        early = min(early, maybe)
        told = [op.time for op in mine if op.f == "lost"]
        early = min([early, _cut(ops, test, asked, mine), *told])
    early = min([early, *_asked_again(ops, mine, grant.process, lock)])
    leases = _leases(ops, mine, grant)
    furthest = _leases(ops, [op for op in mine if op.type != "invoke"], grant)[-1][1]
    first = min((end[0] for end in ends), default=FOREVER)
    given = min((end[0] for end in ends if end[1] < FOREVER), default=FOREVER)
    if kind == "connection":
        given = min([given, *refused])
    return Held(
        grant=grant,
        asked=asked,
        lock=lock,
        shared=value.get("mode") == "shared",
        token=value.get("token"),
        first=first,
        last=min((end[1] for end in ends), default=FOREVER),
        given=given if leases[-1][1] < FOREVER else first,
        told=min(refused, default=FOREVER),
        early=early,
        leases=leases,
        furthest=FOREVER if kind == "connection" else furthest,
        said=mine,
        went=went,
    )


def _asked_again(ops: list[Op], mine: list[Op], process: Any, lock: str) -> list[float]:
    """Return when the process asked for the lock after a release that reached no server."""
    unsent = []
    for op in mine:
        done = completion(ops, op) if op.f == "release" and op.type == "invoke" else None
        if done is not None and done.type == "fail" and done.error:
            unsent += [op.index] if done.error[0] == "unreachable" else []
    return [
        op.time
        for op in ops
        if (op.process, op.f, op.type) == (process, "acquire", "invoke")
        and str(op.value.get("lock", "")) == lock
        and any(op.index > index for index in unsent)
    ]


def _refused_for_good(ops: list[Op], mine: list[Op], op: Op, name: Any) -> bool:
    """Return whether this is the answer to an extend by which its client learned that it has no
    hold, and which it left at that."""
    refused = (
        op.f == "extend" and op.type == "fail" and bool(op.error) and op.error[0] == "not-held"
    )  # type: ignore[index]
    return refused and not _goes_on(ops, mine, op, name)


def _goes_on(ops: list[Op], mine: list[Op], tried: Op, name: Any) -> bool:
    """Return whether a process did more with a hold after a release or an extend that failed."""
    later = [op for op in mine if op.type == "invoke" and op.index > tried.index]
    writes = [
        op
        for op in ops[tried.index :]
        if op.f == "write" and op.type == "invoke" and op.process == tried.process
    ]
    return bool(later) or any(name is not None and op.value.get("hold") == name for op in writes)


def _speaks_of(ops: list[Op], op: Op, grant: Op, lock: str, name: Any) -> bool:
    """Return whether an op is about this grant: by its name, else by being the latest."""
    if op.process != grant.process or op.f not in ("release", "extend", "lost", "renewed"):
        return False
    if name is not None:
        return op.value.get("hold") == name
    if op.value.get("hold") is not None or op.index < grant.index or op.f == "lost":
        return False
    if str(op.value.get("lock", "")) != lock:
        return False
    return not any(
        other.process == grant.process
        and other.f == "acquire"
        and other.type == "ok"
        and other.value.get("hold") is None
        and str(other.value.get("lock", "")) == lock
        for other in ops[grant.index + 1 : op.index]
    )


def _gone(ops: list[Op], test: dict[str, Any], grant: Op) -> tuple[tuple[float, float] | None, str]:
    """Return when the client of this grant was gone, and whether it was killed or left."""
    me = grant.process
    own = [op for op in ops if op.process == me and not by_harness(op)]
    seen = own[-1].time
    died = [op for op in ops if op.process == me and by_harness(op)]
    deaths = []
    for op in ops:
        receipt = op.value.get("receipt") or {}
        named = me in receipt.get("processes", ()) and receipt.get("proved")
        if op.process == "nemesis" and op.value.get("phase") == "start" and named:
            ordered = next(o for o in ops if o.value.get("fault") == op.value["fault"])
            deaths.append((ordered.time, op.time))
    closed = [
        op for op in own if op.f == "close" and op.type == "invoke" and op.index > grant.index
    ]
    ends: list[tuple[float, float, str]] = []
    if deaths and not (died and died[0].time < deaths[0][0]):
        ends.append((max(seen, deaths[0][0]), max(seen, deaths[0][1]), "killed"))
    elif died:
        ends.append((min(seen, died[0].time), died[0].time, "killed"))
    if closed:
        ends.append((closed[0].time, closed[0].time, "left"))
    unknown = [op for op in own if op.type == "info" and op.f not in ("lost", "renewed")]
    if not ends and unknown:
        kind = test.get("lock", {}).get("ends_with", "lease")
        begun = invocation(ops, unknown[0]).time
        ends.append((seen if kind == "lease" else max(begun, grant.time), seen, "left"))
    if not ends:
        return None, ""
    # Of two in one instant, the one that the service may have received.
    soonest = min(ends, key=lambda end: (end[0], end[1], end[2] != "left"))
    return (soonest[0], min(end[1] for end in ends)), soonest[2]


def _perhaps_killed(ops: list[Op], grant: Op) -> float:
    """Return when a process may have died by a kill without proof, and no op shows otherwise."""
    seen = max(op.time for op in ops if op.process == grant.process)
    found = FOREVER
    for op in ops:
        if op.f not in _GOES or op.type != "invoke" or op.value["phase"] != "start":
            continue
        done = [
            one
            for one in ops
            if one.value.get("fault") == op.value["fault"]
            and one.value["phase"] == "start"
            and one.type != "invoke"
        ]
        receipt = done[0].value["receipt"] if done else {"proved": False}
        named = receipt.get("processes")
        hit = grant.process in named if named else grant.node in op.value["impairs"]
        if hit and not receipt["proved"] and not (done and done[0].time < seen):
            found = min(found, max(seen, op.time))
    return found


# Faults by which a server goes down, and all its connections with it.
_GOES = ("kill", "power", "failover", "membership", "disk", "memory")


def _survived(ops: list[Op], mine: list[Op], fault: Op) -> bool:
    """Return whether an extend was sent after a fault was certainly over, and answered ok."""
    ends = [
        op
        for op in ops
        if op.value.get("fault") == fault.value["fault"] and op.value["phase"] == "end"
    ]
    if not any(op.value.get("receipt", {}).get("proved") and op.type == "ok" for op in ends):
        return False
    for op in mine:
        done = completion(ops, op) if (op.f, op.type) == ("extend", "invoke") else None
        if done is not None and done.type == "ok" and all(end.time < op.time for end in ends):
            return True
    return False


def _cut(ops: list[Op], test: dict[str, Any], asked: Op, mine: list[Op]) -> float:
    """Return when a server was first down, or cut off from this client, after its request, and no
    extend shows that the hold survived that. Where the test tells when the servers ended its
    sessions, this was the first time."""
    ends = test.get("session_ends", {}).get(asked.node)
    if ends is not None:
        longer = [op.time for op in mine if _extended(ops, op)]
        return min((at for at in ends if at >= max([asked.time, *longer])), default=FOREVER)
    found = FOREVER
    for op in ops:
        if op.process != "nemesis" or op.type != "invoke" or op.value.get("phase") == "end":
            continue
        arguments = op.value.get("arguments", {})
        links = list(arguments.get("links", ()))
        if op.f == "delay":
            links.append([arguments.get("source"), arguments.get("to")])
        far = {node for link in links if asked.node in link for node in link} - {asked.node}
        hit = set(op.value.get("impairs", op.value["targets"]))
        lost = op.value.get("loses") or (op.f == "packet" and arguments.get("kind") == "loss")
        if lost:
            far |= set(test.get("servers", ("some server",))) if asked.node in hit else hit
        if op.f in _GOES or op.value.get("forgets"):
            far |= set(op.value.get("impairs", op.value["targets"])) - {asked.node}
        unknown = op.f == "gremlin" and "links" not in op.value
        if _survived(ops, mine, op):
            continue
        if (unknown or far & set(test.get("servers", far))) and op.time >= asked.time:
            found = min(found, op.time)
    return found


def _extended(ops: list[Op], op: Op) -> bool:
    done = completion(ops, op) if (op.f, op.type) == ("extend", "invoke") else None
    return done is not None and done.type == "ok"


def _leases(ops: list[Op], mine: list[Op], grant: Op) -> list[tuple[float, float]]:
    deadline = grant.value.get("deadline")
    leases: list[tuple[float, float]] = [(grant.time, FOREVER if deadline is None else deadline)]
    for op in mine:
        begun, until = leases[-1]
        told = op.value.get("deadline")
        if op.f == "extend" and op.type == "invoke":
            done = completion(ops, op)
            wanted = op.value.get("ttl")
            maybe = done is None or done.type != "fail"
            if maybe and wanted is not None and op.time <= until < FOREVER:
                leases[-1] = (begun, min(until, op.time + wanted))
        elif told is not None and (op.f == "renewed" or (op.f == "extend" and op.type == "ok")):
            if op.time > until:
                leases.append((op.time, told))
            else:
                leases[-1] = (begun, told)
    return leases
