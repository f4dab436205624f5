"""`true_refusals`: check each refused acquire by the letter of docs/design.md, pair by pair."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from fencepost.checker.history.history import Op
from tests.oracles.holds import FOREVER, Held, bound, by_harness, completion
from tests.oracles.waiting import Asked, Fault, find_deaths


def refused_untruly(
    ops: list[Op],
    test: dict[str, Any],
    asked: list[Asked],
    held: list[Held],
    faults: list[Fault],
) -> bool:
    """Return whether a client was refused a lock that no client can have had. All are of one
    lock."""
    apart = _apart(ops, test)
    for one in asked:
        if one.done is None or one.done.type != "fail" or one.done.error[0] != "not-granted":  # type: ignore[index]
            continue
        begin, end = one.begun.time, one.done.time
        spans = [(hold.asked.time, _over(ops, test, hold, held)) for hold in held]
        spans += [
            (other.begun.time, _stands(ops, test, other, held, faults))
            for other in asked
            if other is not one
        ]
        if all(over + apart < begin or end + apart < since for since, over in spans):
            return True
    return _refused_together(ops, test, asked, held, faults)


def _refused_together(
    ops: list[Op],
    test: dict[str, Any],
    asked: list[Asked],
    held: list[Held],
    faults: list[Fault],
) -> bool:
    """Return whether clients that asked at the same time were all refused, in calm, a lock that no
    client can have had, by servers that agree."""
    if len(test["servers"]) > 1 and test["lock"]["ends_with"] == "lease":
        return False
    apart = 2 * max(bound(test, op.node) for op in ops)
    stands = {id(one): _stands(ops, test, one, held, faults) for one in asked}
    for first in asked:
        group = [first]
        for _ in asked:
            for one in asked:
                near = any(
                    one.begun.time <= stands[id(two)] + apart
                    and two.begun.time <= stands[id(one)] + apart
                    for two in group
                )
                if near and not any(one is two for two in group):
                    group.append(one)
        if len(group) == 1 or not all(_refused_soon(one) for one in group):
            continue
        begin = min(one.begun.time for one in group)
        end = max(stands[id(one)] for one in group)
        if any(fault.start <= end and fault.end >= begin for fault in faults):
            continue
        spans = [(hold.asked.time, _over(ops, test, hold, held)) for hold in held]
        if all(over + apart < begin or end + apart < since for since, over in spans):
            return True
    return False


def _refused_soon(one: Asked) -> bool:
    done = one.done
    if done is None or done.type != "fail" or (done.error or [""])[0] != "not-granted":
        return False
    ttl = one.begun.value.get("ttl")
    return not ttl or done.time - one.begun.time < ttl


def refused_to_a_holder(
    ops: list[Op], test: dict[str, Any], asked: list[Asked], held: list[Held], faults: list[Fault]
) -> bool:
    """Return whether a process was refused an exclusive lock that it certainly had, in calm, while
    no other was granted it; or waited for it for longer than the bound."""
    waits_for = round(test["liveness_bound_s"] * 1e9)
    for one in asked:
        kind = (one.done.error or [""])[0] if one.done is not None else ""
        over = one.done.time if one.done is not None else ops[-1].time
        if (one.done is None or one.done.type != "fail") or kind != "not-granted":
            if one.done is not None and one.done.type == "ok":
                continue
            # One that died by itself may have died at once.
            by_itself = one.begun.process not in find_deaths(ops)
            if one.done is not None and by_harness(one.done) and by_itself:
                continue
            if kind == "unreachable" or over - one.begun.time <= waits_for:
                continue
            over = one.begun.time + waits_for
        for hold in held:
            mine = hold.process == one.begun.process and hold.grant.index < one.begun.index
            lasts = min(hold.leases[0][1], hold.given, hold.early, hold.other)
            if not mine or hold.shared or len(hold.leases) > 1 or over >= lasts:
                continue
            if hold.leases[0][0] >= hold.leases[0][1]:
                continue
            since = hold.asked.time
            if any(fault.start <= over and fault.end >= since for fault in faults):
                continue
            others = [other for other in held if other.process != hold.process]
            if not any(hold.grant.time <= other.grant.time <= over for other in others):
                return True
    return False


def _stands(
    ops: list[Op], test: dict[str, Any], other: Asked, held: list[Held], faults: list[Fault]
) -> float:
    """Return until when a request may be, or come to be, granted."""
    begun = other.begun.time
    if other.done is not None and other.done.type != "info":
        return other.done.time
    gone = other.died if other.done is None else other.done.time
    if gone is None or not other.ttl:
        return FOREVER
    apart = _apart(ops, test)
    bound_ns = round(test["liveness_bound_s"] * 1e9)
    met = [fault for fault in faults if _holds_back(fault, ops, test, other.begun.node)]
    arrived = arrives(ops, test, other.begun, gone, faults)
    stands_for = bound_ns + apart + other.ttl
    prolong = [f for f in met if _of_servers(f, test) and not separates_clients(f, ops, test)]
    stands, before = arrived + stands_for, -FOREVER
    while stands > before:
        before = stands
        ends = [fault.end + fault.wrong for fault in prolong if fault.start <= stands]
        stands = max([stands, *(end + stands_for for end in ends if end >= begun)])
    # A client that is granted the lock after that shows that no other client has it.
    shared = other.begun.value.get("mode") == "shared"
    for hold in held:
        of_another = hold.asked.node != other.begun.node and not (shared and hold.shared)
        if of_another and hold.asked.time > arrived:
            stands = min(stands, hold.grant.time)
    return stands


def _apart(ops: list[Op], test: dict[str, Any]) -> int:
    """Return by how much the stamps of two clocks may differ."""
    return 2 * max(bound(test, node) for node in {op.node for op in ops})


def travels(ops: list[Op], test: dict[str, Any]) -> float:
    """Return how long a message is under way at most that nothing holds back."""
    apart = _apart(ops, test)
    return round(test["liveness_bound_s"] * 1e9) / 10 + apart


def arrives(
    ops: list[Op], test: dict[str, Any], begun: Op, gone: float, faults: list[Fault]
) -> float:
    """Return by when a request has arrived that its client gave up, behind these faults."""
    met = [fault for fault in faults if _holds_back(fault, ops, test, begun.node)]
    # A client that was stopped when it was given up may have sent it afterwards: once nothing stops
    # it any more.
    own = [f for f in faults if begun.node in (f.hinders or set()) and not f.kills]
    sent = gone
    for _ in own:
        sent = max([sent, *(f.end for f in own if f.start <= sent <= f.end)])
    arrived = _delivered(ops, test, begun, sent, met)
    # One that has closed, or is dead, sends nothing more.
    closed = [
        done.time
        for op in ops[begun.index :]
        if op.f == "close" and op.type == "invoke" and op.process == begun.process
        if (done := completion(ops, op)) is not None and done.type == "ok"
    ][:1]
    killed = find_deaths(ops).get(begun.process)
    closed += [killed[1]] if killed else []
    if not closed:
        return arrived
    waits = [part for fault in met for part in _in_which_messages_wait(fault, ops, test)]
    return min(arrived, _delivered(ops, test, begun, max(gone, min(closed)), waits))


def _in_which_messages_wait(fault: Fault, ops: list[Op], test: dict[str, Any]) -> list[Fault]:
    """Return the parts of a fault in which it drops messages that it would reset later."""
    if fault.resets is None or not separates_clients(fault, ops, test):
        return [fault]
    placed, ordered = fault.resets
    return [replace(fault, end=placed), replace(fault, start=ordered)]


def _delivered(
    ops: list[Op], test: dict[str, Any], begun: Op, gone: float, met: list[Fault]
) -> float:
    delay = travels(ops, test)
    met = [fault for fault in met if fault.impairs != set() and fault.end >= begun.time]
    arrived = gone + delay
    # Messages that it sent earlier met none of them.
    sent = min([gone, *(fault.start - delay for fault in met)])
    before = -FOREVER
    while arrived > before:
        before = arrived
        ends = [fault.end for fault in met if fault.start <= arrived]
        arrived = max([arrived, *(end + end - max(sent, begun.time) + delay for end in ends)])
    return arrived


def begins_again(
    ops: list[Op],
    test: dict[str, Any],
    begun: Op,
    arrived: float,
    lease: float,
    faults: list[Fault],
) -> float:
    """Return when the lease of a request has certainly ended that had arrived by then."""
    over, before = arrived + lease, -FOREVER
    while over > before:
        before = over
        for fault in faults:
            if fault.kills or not _of_servers(fault, test) or separates_clients(fault, ops, test):
                continue
            if fault.start <= over and fault.end + fault.wrong >= begun.time:
                over = max(over, fault.end + fault.wrong + lease)
    return over


def _holds_back(fault: Fault, ops: list[Op], test: dict[str, Any], node: str | None) -> bool:
    elsewhere = all(node not in link for link in fault.links)
    if fault.kills or (elsewhere and separates_clients(fault, ops, test)):
        return False
    if separates_clients(fault, ops, test):
        return bool(fault.impairs)
    return _of_servers(fault, test) or (fault.deafens and node in (fault.impairs or set()))


def separates_clients(fault: Fault, ops: list[Op], test: dict[str, Any]) -> bool:
    """Return whether a fault separates nothing but clients from others."""
    if fault.impairs is None or not fault.links:
        return False
    return all(_meets_client(link, ops, test) for link in fault.links)


def _meets_client(link: list[str], ops: list[Op], test: dict[str, Any]) -> bool:
    clients = {op.node for op in ops if op.process != "nemesis"} - set(test["servers"])
    return bool(clients & set(link))


def _of_servers(fault: Fault, test: dict[str, Any]) -> bool:
    if fault.impairs is None:
        return True
    return bool((fault.impairs or set(fault.targets)) & set(test["servers"]))


def _over(ops: list[Op], test: dict[str, Any], hold: Held, held: list[Held]) -> float:
    """Return when a hold had certainly ended."""
    ends = [FOREVER]
    for op in hold.said:
        done = completion(ops, op) if op.type == "invoke" else None
        told = done is not None and done.type == "fail" and (done.error or [""])[0] == "not-held"
        if op.f == "release" and done is not None and (done.type == "ok" or told):
            ends.append(done.time)
    for other in held:
        # One that was asked for before may have been granted before, and answered late.
        later = other.asked.time > hold.grant.time + _apart(ops, test)
        if later and other.process != hold.process and not (hold.shared and other.shared):
            ends.append(other.grant.time)
    return min(ends)
