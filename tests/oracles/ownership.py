"""`ownership`: compare every release with every hold that proved to have ended early."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from fencepost.checker.history.history import Op
from fencepost.nemesis.families import FAMILIES
from tests.oracles.holds import (
    FOREVER,
    Held,
    before,
    bound,
    completion,
    gap,
    invocation,
    ordered_holds,
)
from tests.oracles.ownership_drawn import draw

__all__ = ["draw", "verdict"]


def verdict(ops: list[Op], test: dict[str, Any]) -> set[bool | str]:
    found = ordered_holds(ops, test)
    sent = [op for op in ops if op.f == "release" and op.type == "invoke"]
    releases = [(op, completion(ops, op), *_named(ops, found, op)) for op in sent]
    doubt = False
    for begun, done, hold, own in releases:
        if hold is not None and not own and done is not None and done.type == "ok":
            on, over = _span(ops, test, hold)
            between = gap(test, begun.node, hold.node)
            if done.time + between < on:
                return {False}
            doubt = doubt or begun.time <= over + between
    certain, frail = set(), set()
    for victim in found:
        shown = _shown(ops, test, found, victim)
        if shown is None:
            continue
        near = [
            (begun, done if done is not None and done.type == "ok" else None, hold, own)
            for begun, done, hold, own in releases
            if hold is not None
            and hold is not victim
            and hold.lock == victim.lock
            and not (done is not None and done.type == "fail")
            and not before(test, shown, begun)
            and not _before_it_went_on(ops, test, shown, begun)
            and not (done and done.type == "ok" and before(test, done, victim.asked))
            and not (done and done.type == "ok" and _outlived(ops, test, victim, shown, done))
        ]
        others = [row for row in near if row[0].process != victim.process]
        thefts = [row for row in others if _theft(ops, test, *row, victim, shown)]
        maybe = [row for row in others if not _harmless(ops, test, *row, victim)]
        excused = len(others) < len(near) or _forgotten(ops, test, victim, shown)
        excused = excused or victim.other <= shown.time
        if thefts and not excused:
            certain.add(victim.lock)
        alone = not near and shown.process == victim.process
        if alone and not _forgotten(ops, test, victim, shown):
            frail.add(victim.lock)
        doubt = doubt or bool(thefts or maybe)
    if certain - frail:
        return {False}
    answered = [done for _, done, hold, _ in releases if hold and done and done.type == "ok"]
    return {"unknown"} if doubt or not answered else {True}


def _outlived(ops: list[Op], test: dict[str, Any], victim: Held, shown: Op, done: Op) -> bool:
    """Return whether an extend that was sent after a release's answer shows a hold still there."""
    for op in victim.said:
        answer = completion(ops, op) if op.f == "extend" and op.type == "invoke" else None
        ok = answer is not None and answer.type == "ok"
        if ok and before(test, done, op) and not before(test, shown, op):
            return True
    return False


def _span(ops: list[Op], test: dict[str, Any], hold: Held) -> tuple[float, float]:
    """Return until when a hold was certainly on, and by when it was certainly over."""
    seen = hold.leases[-1][1]
    on, over = [seen, _told(ops, hold, len(ops)), hold.early], [seen]
    for op in _lost(ops, hold):
        on.append(op.time)
        over.append(op.time)
    for op in hold.said:
        if op.f != "release" or op.type != "invoke":
            continue
        done = completion(ops, op)
        if not _may_end(test, done):
            continue
        on.append(op.time)
        if done is not None and done.type != "info":
            over.append(done.time)
    return min(on), min(over)


def _sure(victim: Held) -> list[tuple[float, float]]:
    """Return the leases as far as they are certain: for the ttl where no deadline can be seen."""
    ttl = victim.asked.value.get("ttl")
    if victim.leases[-1][1] < FOREVER or ttl is None:
        return victim.leases
    found = [lease for lease in victim.leases if lease[1] < FOREVER]
    if victim.leases[0][1] == FOREVER:
        found.append((victim.grant.time, victim.asked.time + ttl))
    return found


def _before_it_went_on(ops: list[Op], test: dict[str, Any], shown: Op, begun: Op) -> bool:
    waited = _waited(ops, test, begun)
    if waited is None:
        return False
    return shown.time + gap(test, begun.node, shown.node) < waited


def _named(ops: list[Op], found: list[Held], op: Op) -> tuple[Held | None, bool]:
    """Return the hold that an op is about, and whether it is its process' own."""
    name = op.value.get("hold")
    if name is None:
        mine = [
            held
            for held in found
            if held.process == op.process
            and held.grant.value.get("hold") is None
            and held.lock == op.value.get("lock")
            and held.grant.index < op.index
        ]
        return (mine[-1], True) if mine else (None, False)
    for held in found:
        if held.grant.value.get("hold") == name:
            return held, held.process == op.process
    return None, False


def _shown(ops: list[Op], test: dict[str, Any], found: list[Held], victim: Held) -> Op | None:
    """Return the first op by which a hold proved to have ended early."""
    refusals = (op for op in ops if _refuses(ops, test, found, victim, op))
    grants = (held.grant for held in found if _replaces(test, victim, held))
    return min([*refusals, *grants], key=lambda op: op.index, default=None)


def _refuses(ops: list[Op], test: dict[str, Any], found: list[Held], victim: Held, op: Op) -> bool:
    if op.type != "fail" or op.f not in ("extend", "release") or op.error[0] != "not-held":
        return False
    begun = invocation(ops, op)
    if _named(ops, found, begun) != (victim, True):
        return False
    if any(_gives_up(ops, test, found, victim, o) for o in ops[: op.index] if o is not begun):
        return False
    if begun.time > victim.given or op.time >= victim.early:
        return False
    return any(since <= begun.time and op.time < until for since, until in _sure(victim))


def _gives_up(ops: list[Op], test: dict[str, Any], found: list[Held], held: Held, op: Op) -> bool:
    """Return whether its process gave up a hold by this op: by a release or a reported loss."""
    if op.f == "lost":
        name = held.grant.value.get("hold")
        return name is not None and (op.process, op.value.get("hold")) == (held.process, name)
    if op.f != "release" or op.type != "invoke" or _named(ops, found, op) != (held, True):
        return False
    return _may_end(test, completion(ops, op))


def _may_end(test: dict[str, Any], done: Op | None) -> bool:
    """Return whether a release that was answered like this may have ended its hold."""
    if done is None or done.type != "fail" or done.error[0] == "not-held":
        return True
    return done.error[0] != "unreachable" and test["failed_release"] != "nothing"


def _replaces(test: dict[str, Any], victim: Held, other: Held) -> bool:
    """Return whether another was granted the lock, in conflict with an active hold."""
    if other.lock != victim.lock or (other.shared and victim.shared):
        return False
    if other.process == victim.process or other.grant.index < victim.grant.index:
        return False
    between = gap(test, victim.node, other.node)
    mine, its = victim.token, other.token
    ordered = mine is not None and its is not None and mine != its
    if ordered and its < mine:
        return False
    gave, gives = (one.grant.value.get("granted_by") or () for one in (victim, other))
    if gave and gives and not any(server in gives for server in gave):
        return False
    for since, until in _sure(victim):
        until = min(until, victim.given, victim.early)
        if since >= until and since != victim.grant.time:
            continue
        if not (since <= other.grant.time and other.grant.time + between < until):
            continue
        if since != victim.grant.time:
            if since + between < other.asked.time:
                return True
        elif (
            ordered
            or before(test, victim.grant, other.asked)
            or since + between < other.leases[0][1] < FOREVER
        ):
            return True
    return False


def _theft(
    ops: list[Op],
    test: dict[str, Any],
    begun: Op,
    done: Op | None,
    hold: Held,
    own: bool,
    victim: Held,
    shown: Op,
) -> bool:
    if done is None or _harmless(ops, test, begun, done, hold, own, victim):
        return False
    between = gap(test, hold.node, victim.node)
    over = min(
        [_lease(hold, begun)]
        + [end for _, end in _earlier(ops, test, hold, begun)]
        + [op.time for op in _lost(ops, hold) if op.index < begun.index]
    )
    on = _on(ops, test, hold, begun)
    if not own:
        on, over = _span(ops, test, hold)
    together = hold.shared and victim.shared
    sound = together or on + between <= victim.grant.time
    waited = _waited(ops, test, begun)
    if waited is None:
        late = over <= begun.time and sound and before(test, victim.grant, begun)
    else:
        sent = victim.grant.time + gap(test, begun.node, victim.node)
        late = over <= waited and sound and sent <= waited
    crossed = over + between < victim.asked.time and before(test, victim.grant, done)
    early = before(test, begun, shown)
    if waited is not None:
        early = waited + gap(test, begun.node, shown.node) <= shown.time
    return early and (late or crossed)


def _harmless(
    ops: list[Op],
    test: dict[str, Any],
    begun: Op,
    done: Op | None,
    hold: Held,
    own: bool,
    victim: Held,
) -> bool:
    """Return whether a release ended its own hold."""
    if not own:  # during the hold, such a release is theft by itself
        between = gap(test, begun.node, hold.node)
        return done is not None and done.time + between < _span(ops, test, hold)[0]
    on = _on(ops, test, hold, begun)
    if done is not None and done.time <= on:
        return True
    apart = not (hold.shared and victim.shared)
    between = gap(test, hold.node, victim.node)
    waited = _waited(ops, test, begun)
    sent = begun.time if waited is None else waited
    return apart and sent < on and victim.grant.time + between < on


def _waited(ops: list[Op], test: dict[str, Any], begun: Op) -> float | None:
    """Return until when the client of a release was stopped before it sent its delete.

    None: it was not stopped there, or the history does not show when it stopped or resumed.
    """
    done = completion(ops, begun)
    off = bound(test, begun.node)
    for op in ops:
        receipt = op.value.get("receipt", {})
        if op.f != "pause" or op.type != "ok" or op.value["phase"] != "start":
            continue
        if receipt.get("at") != "at between-check-and-delete" or not receipt["proved"]:
            continue
        ends = [
            o.time
            for o in ops
            if o.value.get("fault") == op.value["fault"] and o.value["phase"] == "end"
        ]
        mine = receipt["process"] == begun.process and begun.time + off <= op.time
        if ends and mine and (done is None or done.time + off >= ends[0]):
            return ends[0] - off if ends[0] - off > begun.time else None
    return None


def _on(ops: list[Op], test: dict[str, Any], hold: Held, begun: Op) -> float:
    """Return until when a hold was certainly on, but for this release of it."""
    starts = [start for start, _ in _earlier(ops, test, hold, begun)]
    lost = [op.time for op in _lost(ops, hold)]
    sure = min(_lease(hold, begun), _told(ops, hold, begun.index))
    return min([sure, hold.early, *starts, *lost])


def _told(ops: list[Op], hold: Held, place: int) -> float:
    """Return until when a lease without a deadline certainly runs, by the answers to requests
    before this place."""
    ttl = hold.asked.value.get("ttl")
    if hold.leases[-1][1] < FOREVER or ttl is None:
        return FOREVER
    sure: float = hold.asked.time + ttl
    asked = [op for op in hold.said if (op.f, op.type) == ("extend", "invoke") and op.index < place]
    for op in asked:
        done, longer = completion(ops, op), op.value.get("ttl", FOREVER)
        if longer < FOREVER and op.time <= sure:
            if done is not None and done.type == "ok":
                sure = op.time + longer
            elif done is None or done.type == "info":
                sure = min(sure, op.time + longer)
    return sure


def _lease(hold: Held, begun: Op) -> float:
    ends = [until for since, until in hold.leases if since <= begun.time]
    return ends[-1] if ends else hold.leases[-1][1]


def _earlier(
    ops: list[Op], test: dict[str, Any], hold: Held, begun: Op
) -> Iterator[tuple[float, float]]:
    """Return when earlier releases of a hold may have ended it, and by when they certainly had."""
    for op in ops[: begun.index]:
        same = op.value.get("hold") == hold.grant.value.get("hold")
        if op.f == "release" and op.type == "invoke" and op.process == hold.process and same:
            if op.value.get("hold") is None and (
                op.value.get("lock") != hold.lock or not _latest(ops, hold, op)
            ):
                continue
            done = completion(ops, op)
            type = "info" if done is None else done.type
            if _may_end(test, done):
                yield op.time, FOREVER if done is None or type == "info" else done.time


def _latest(ops: list[Op], hold: Held, op: Op) -> bool:
    """Return whether this nameless hold is the latest of its process and lock at the op's start."""
    return hold.grant.index < op.index and not any(
        o.f == "acquire"
        and o.type == "ok"
        and o.process == hold.process
        and o.value.get("lock") == hold.lock
        for o in ops[hold.grant.index + 1 : op.index]
    )


def _lost(ops: list[Op], hold: Held) -> list[Op]:
    name = hold.grant.value.get("hold")
    mine = [op for op in ops if op.f == "lost" and op.process == hold.process]
    return [op for op in mine if name is not None and op.value.get("hold") == name][:1]


def _forgotten(ops: list[Op], test: dict[str, Any], victim: Held, shown: Op) -> bool:
    """Return whether a fault, from acquire to loss, may have made a server forget a hold."""
    clients = {op.node for op in ops if op.process != "nemesis"}
    longer = any(
        (op.f, op.type) == ("extend", "ok") or (op.f == "renewed" and op.value.get("deadline"))
        for op in victim.said
    )
    gave = victim.grant.value.get("granted_by")
    for op in ops:
        if op.process != "nemesis" or op.type != "invoke" or op.value["phase"] != "start":
            continue
        target = op.value["targets"][0]
        hit = target in test["servers"] if "servers" in test else target not in clients
        if op.f in FAMILIES and not (FAMILIES[op.f].forgets and hit):
            continue
        if op.f in FAMILIES and gave and target not in gave and not longer:
            continue
        ends = [
            o.time
            for o in ops
            if o.value.get("fault") == op.value["fault"]
            and o.value["phase"] == "end"
            and o.value.get("receipt", {}).get("proved")
        ]
        over = ends[-1] if ends else FOREVER
        since = victim.asked.time - bound(test, victim.node)
        if op.time <= shown.time + bound(test, shown.node) and since <= over:
            return True
    return False
