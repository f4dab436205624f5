"""`liveness`: check each wait for a lock by the letter of docs/design.md, and its queue's order."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from typing import Any

from fencepost.checker.history.history import Op
from tests.oracles.drawn import MS
from tests.oracles.fairness import unfair
from tests.oracles.holds import FOREVER, Held, bound, completion, ordered_holds
from tests.oracles.liveness_drawn import draw
from tests.oracles.refusals import (
    arrives,
    begins_again,
    refused_to_a_holder,
    refused_untruly,
    separates_clients,
    travels,
)
from tests.oracles.waiting import Asked, Fault, find_asked, find_deaths, find_faults

__all__ = ["draw", "verdict"]


def verdict(ops: list[Op], test: dict[str, Any]) -> set[bool | str]:
    faults = find_faults(ops, test)
    found = ordered_holds(ops, test)
    deaths = find_deaths(ops)
    asked: dict[str, list[Asked]] = {}
    for op in ops:
        if op.f == "acquire" and op.type == "invoke":
            asked.setdefault(str(op.value.get("lock", "")), []).append(
                find_asked(ops, op, found, deaths)
            )
    outcomes: list[bool | str | None] = []
    hidden = stuck = False
    # A node that was lost may have been gone when a client was refused.
    lost = any(f.impairs is None and f.end == FOREVER and not f.proved for f in faults)
    for lock, mine in asked.items():
        longest = max(one.ttl for one in mine)
        for one in mine:
            one.ttl = one.ttl or longest
        held = [one for one in found if one.lock == lock]
        one_lock = _Lock(ops, test, mine, held, faults, longest)
        outcomes += one_lock.outcomes()
        dead, served = one_lock.dead(faults)
        outcomes += [False] * dead + [True] * served
        known = [fault for fault in faults if fault.impairs is not None]
        hidden = hidden or one_lock.dead(known)[0]
        stuck = stuck or one_lock.stuck()
        given = {one.grant.index: one_lock.given_back(one) for one in held}
        promised = test["promises"].get("true_refusals")
        refused = promised and refused_untruly(ops, test, mine, held, earlier(faults))
        hidden = hidden or bool(refused and lost)
        again = test["promises"].get("reentrant") and refused_to_a_holder(ops, mine, held, faults)
        if again or (refused and not lost) or unfair(ops, test, mine, found, faults, given):
            outcomes.append(False)
    if False in outcomes:
        return {False}
    if hidden and any(fault.impairs is None for fault in faults):
        return {"unknown"}
    told = True in outcomes and "unknown" not in outcomes and not stuck
    return {True} if told else {"unknown"}


def earlier(faults: list[Fault]) -> list[Fault]:
    """Begin the loss of a node at the start: it may have been gone before this was noticed."""
    return [
        replace(one, start=0)
        if one.impairs is None and one.end == FOREVER and not one.proved
        else one
        for one in faults
    ]


class _Lock:
    """The waits for one lock."""

    def __init__(
        self,
        ops: list[Op],
        test: dict[str, Any],
        asked: list[Asked],
        held: list[Held],
        faults: list[Fault],
        lease: int,
    ) -> None:
        self.ops, self.test, self.asked, self.held = ops, test, asked, held
        self.faults = [fault for fault in faults if fault.impairs and not fault.kills]
        self.all = faults
        self.lease = lease
        self.end = ops[-1].time
        widest = max(bound(test, op.node) for op in ops)
        self.apart = 2 * widest
        # Clients may ask each server by itself: a try that failed may have left its keys.
        self.each = len(test["servers"]) > 1 and test["lock"]["ends_with"] == "lease"
        self.bound = round(test["liveness_bound_s"] * 1000) * MS + self.apart
        self.bound += lease if self.each else 0

    def outcomes(self) -> list[bool | str | None]:
        found: list[bool | str | None] = []
        heals = [f.start if f.kills and f.end == FOREVER else f.end for f in self.all]
        healed = max([self.test.get("ready_s", 0) * 1_000_000_000, *heals])
        if healed < FOREVER:
            found.append(self._wait(healed, healed + self.lease, self.faults))
        for held in self.held:
            if held.went and held.first < held.leases[-1][1]:
                due = max(held.last, self._left(held))
                found.append(self._wait(held.first, due, self.faults, own=held))
        if self.test["promises"].get("minority"):
            found += self._minorities()
        return found

    def _minorities(self) -> list[bool | str | None]:
        servers = set(self.test["servers"])
        marks = {0, self.end, *(f.start for f in self.faults), *(f.end for f in self.faults)}
        edges = sorted(mark for mark in marks if mark < FOREVER)
        others = [f for f in self.faults if f.impairs and f.impairs - servers]
        found = []
        for start, end in pairwise(edges):
            down: set[str] = set()
            for fault in self.faults:
                if fault.start <= start and end <= fault.end:
                    down |= (fault.impairs or set()) & servers
            minority = 0 < len(down) < len(servers) / 2
            if minority and end - start >= self.lease + self.bound:
                found.append(self._wait(start, start + self.lease, others, until=end))
        return found

    def _wait(
        self,
        since: float,
        due: float,
        faults: list[Fault],
        until: float = FOREVER,
        own: Held | None = None,
    ) -> bool | str | None:
        ways = [(f.start, f.end + self.lease) for f in faults]
        ways += [(h.grant.time, self._left(h)) for h in self.held if h.grant.time < since]
        for one in self.asked:
            if one.unheard and (one.begun.time < since or one.died is not None):
                ways.append((one.begun.time, one.over))
        while True:
            longer = [over for at, over in ways if at <= due + self.bound and over > due]
            if not longer:
                break
            due = max(longer)
        limit = due + self.bound
        grants = [h.grant.time for h in self.held if h is not own and h.grant.time >= since]
        granted = min((at for at in grants), default=FOREVER)
        granted = FOREVER if granted > until else granted
        if granted < FOREVER and granted <= limit:
            return True
        again = min((at for at, over in ways if at > limit and over > since), default=FOREVER)
        end = min(granted, again, until, self.end)
        stretches = [(max(a, due), min(b, end)) for a, b in self._stretches(self._spans())]
        stretches = [(a, b) for a, b in stretches if a < b]
        pause = self.bound / 10
        cut_short = granted == FOREVER and end == self.end and end <= limit
        if cut_short and any(b + pause >= end for _, b in stretches):
            return "unknown"
        return None

    def stuck(self) -> bool:
        """Return whether a fault was never healed, and clients have asked in vain since, after the
        end of each hold, until the end."""
        begun = [fault.start for fault in self.all if fault.end == FOREVER and not fault.kills]
        if not begun:
            return False
        since = max([*begun, *(self._left(held) for held in self.held)])
        for a, b in self._stretches(self._spans()):
            if b + self.bound / 10 >= self.end and self.end - max(a, since) > self.bound:
                return True
        return False

    # Dead time.

    def dead(self, faults: list[Fault]) -> tuple[bool, bool]:
        """Return whether the lock was ever dead, and whether it was ever granted in time."""
        faults = earlier(faults)
        ready = self.test.get("ready_s", 0) * 1_000_000_000
        spans = [*self._taken(faults), *self._taken_by_servers(faults)]
        dead = served = False
        free = []
        marks = sorted({self.end, *(at for at, _, _ in spans)})
        for mark in marks:
            # The lock is free from the last end of those that began before, or from their grants.
            before = [row for row in spans if row[0] < mark]
            since = max([ready, *(over for _, over, _ in before)])
            since = max([since, *(at for at, _, granted in before if granted)])
            if mark <= self.end:
                free.append((since, mark))
        modes = {_mode(one.begun) for one in self.asked}
        for mode in modes:
            mine = [one for one in self.asked if _mode(one.begun) == mode]
            grants = [at for at, _, granted in spans if granted == mode]
            dead = dead or any(self._wanted(*span, mine, faults) for span in free)
            dead = dead or (len(modes) > 1 and self._starved(free, mine, grants, faults))
            served = served or any(
                mark in grants and since <= mark <= since + self.bound for since, mark in free
            )
        return dead, served

    def _starved(
        self,
        free: list[tuple[float, float]],
        mine: list[Asked],
        grants: list[float],
        faults: list[Fault],
    ) -> bool:
        """Return whether clients asked without a pause in enough free time, though not of one
        piece, without a grant in their mode."""
        marks = sorted({-FOREVER, *grants, FOREVER})
        for begin, end in self._stretches(self._calm(mine, faults)):
            for one, other in pairwise(marks):
                asked = 0.0
                for since, until in free:
                    # A grant ends the free time before it.
                    if one <= since and until <= other:
                        asked += max(0, min(end, until) - max(begin, since) - self.bound / 10)
                if asked > self.bound:
                    return True
        return False

    def _client_faults(self, faults: list[Fault]) -> list[Fault]:
        return [fault for fault in faults if not (self._of_servers(fault) or fault.kills)]

    def _of_servers(self, fault: Fault) -> bool:
        if fault.impairs is None:
            return True
        return bool((fault.impairs or set(fault.targets)) & set(self.test["servers"]))

    def _meets(
        self, faults: list[Fault], node: str | None, begin: float, over: float
    ) -> list[Fault]:
        return [
            fault
            for fault in self._client_faults(faults)
            if node in (fault.impairs or ()) and fault.start <= over and fault.end >= begin
        ]

    def _taken(self, faults: list[Fault]) -> list[tuple[float, float, str]]:
        found = []
        for held in self.held:
            over = self._left(held)
            lease = held.asked.value.get("ttl") or self.lease
            renews = any(op.f == "renewed" and op.value.get("deadline") for op in held.said)
            while over < FOREVER and over != self.given_back(held):
                met = self._meets(faults, held.node, held.grant.time, over)
                if held.furthest < FOREVER:
                    met = [fault for fault in met if renews and fault.deafens]
                if all(fault.end + lease <= over for fault in met):
                    break
                over = max(fault.end + lease for fault in met)
            over = min(over, self.given_back(held))
            found.append((held.grant.time, over, _mode(held.asked)))
        for one in self.asked:
            over = self._unheard_until(one, faults)
            until = one.asked_until(self.end) if one.done or one.died is not None else FOREVER
            if one.done is None and one.died is not None:
                until = FOREVER
            if self._meets(faults, one.begun.node, one.begun.time, min(until, self.end)):
                over = max(over, one.died if one.died is not None else until)
            if self.each and one.done is not None and one.done.type == "fail":
                over = max(over, self._keys_until(one, faults))
            if over <= one.begun.time:
                continue
            found.append((self._heard_until(one, faults), over, ""))
        return found

    def _heard_until(self, one: Asked, faults: list[Fault]) -> float:
        """Return until when its client would have heard of a grant."""
        if one.done is None or one.done.type != "info" or one.died is not None or self.each:
            return one.begun.time
        for fault in faults:
            mine = one.begun.node in (fault.impairs or ())
            theirs = self._of_servers(fault) and fault.impairs != set()
            again = fault.end + (fault.end - fault.start)
            on = fault.start <= one.done.time and again >= one.begun.time
            if (mine or theirs) and not fault.kills and on:
                return one.begun.time
        return max(one.begun.time, one.done.time - travels(self.ops, self.test))

    def _keys_until(self, one: Asked, faults: list[Fault]) -> float:
        """Return until when single servers may have keys of a request that failed behind a fault
        of its client or of its messages."""
        assert one.done is not None
        done = one.done.time
        late = self._outlasted(faults)
        arrived = arrives(self.ops, self.test, one.begun, done, late)
        if arrived > done + travels(self.ops, self.test):
            return begins_again(self.ops, self.test, one.begun, arrived, one.ttl, faults)
        met = self._meets(faults, one.begun.node, one.begun.time, done)
        return done + one.ttl if met else one.begun.time

    def _unheard_until(self, one: Asked, faults: list[Fault]) -> float:
        """Return until when a grant may last of which the client did not hear."""
        gone = one.done.time if one.done is not None else one.died
        if not one.unheard or gone is None:
            return one.begun.time
        arrived = arrives(self.ops, self.test, one.begun, gone, self._outlasted(faults))
        if arrived <= gone + travels(self.ops, self.test):
            return gone + one.ttl
        return begins_again(self.ops, self.test, one.begun, arrived, one.ttl, faults)

    def _outlasted(self, faults: list[Fault]) -> list[Fault]:
        """Return the faults that a message outlasts: those of clients, those that only separate
        clients from servers, and those of servers that drop messages, unless the lock promises to
        survive them."""
        mine = [fault for fault in faults if self._of_servers(fault) and not fault.kills]
        promised = self.test["promises"].get("minority")
        return [
            fault
            for fault in faults
            if fault not in mine
            or separates_clients(fault, self.ops, self.test)
            or (fault.deafens and not (promised and not self._loses_majority(fault, mine)))
        ]

    def _taken_by_servers(self, faults: list[Fault]) -> list[tuple[float, float, str]]:
        mine = [fault for fault in faults if self._of_servers(fault) and not fault.kills]
        found = []
        for fault in mine:
            if not self.test["promises"].get("minority") or self._loses_majority(fault, mine):
                found.append((fault.start, self._after(fault), ""))
                continue
            found.append((fault.start, fault.start + self._prolonged(fault), ""))
            if fault.end < FOREVER:
                found.append((fault.end, self._after(fault), ""))
        return found

    def _loses_majority(self, fault: Fault, mine: list[Fault]) -> bool:
        """Return whether at some moment of a fault no majority of the servers was left."""
        servers = set(self.test["servers"])
        for at in {one.start for one in mine if fault.start <= one.start <= fault.end}:
            # A fault that ends at this moment has ended, unless it began then as well.
            on = [one for one in mine if one.start <= at < one.end or one.start == at == one.end]
            if fault not in on:
                continue
            down = {node for one in on for node in one.impairs or one.targets}
            if any(one.impairs is None for one in on) or 2 * len(down & servers) >= len(servers):
                return True
        return False

    def _after(self, fault: Fault) -> float:
        return fault.end + self._prolonged(fault) + fault.wrong

    def _prolonged(self, fault: Fault) -> int:
        """Return the longest lease of those that a fault met."""
        met = [0]
        for one in self.asked:
            if one.done is not None and one.done.type == "fail" and not self.each:
                continue
            over = one.done.time if one.done is not None else FOREVER
            over = one.died if one.died is not None else over
            over = over if one.held else min(over, one.told)
            if one.begun.time <= fault.end and over >= fault.start:
                met.append(one.ttl)
        for held in self.held:
            over = self._left(held)
            released = over == self.given_back(held)
            if not released and held.asked.time <= fault.end and over >= fault.start:
                met.append(held.asked.value.get("ttl") or self.lease)
        return max(met)

    def _wanted(self, since: float, until: float, mine: list[Asked], faults: list[Fault]) -> bool:
        """Return whether clients asked between two times so that the lock had to be granted."""
        for a, b in self._stretches(self._calm(mine, faults)):
            if min(b, until) - max(a, since) > self.bound:
                return True
        limit = since + self.bound
        vain = 0
        for together in self._together():
            free = [
                one
                for one in together
                if one in mine
                and not self._meets(
                    faults, one.begun.node, one.begun.time, min(one.asked_until(self.end), self.end)
                )
            ]
            begins = min(one.begun.time for one in together)
            vain += limit < begins and self._in_vain(free, together, until)
        return vain > 1

    def _together(self) -> list[list[Asked]]:
        """Return the requests, those together that were open at the same time, one after the
        other."""
        found: list[list[Asked]] = []
        for one in self.asked:
            near = [group for group in found if any(self._overlap(one, two) for two in group)]
            found = [group for group in found if group not in near]
            found.append([one, *(two for group in near for two in group)])
        return found

    def _overlap(self, one: Asked, two: Asked) -> bool:
        return (
            one.begun.time <= self._open_until(two) + self.apart
            and two.begun.time <= self._open_until(one) + self.apart
        )

    def _open_until(self, one: Asked) -> float:
        if one.done is not None:
            return one.done.time
        return FOREVER if one.died is None else one.died

    def _calm(self, mine: list[Asked], faults: list[Fault]) -> list[tuple[float, float]]:
        """Return the parts of requests in which no fault hinders their clients."""
        spans = []
        for one in mine:
            begin, end = one.begun.time, min(one.asked_until(self.end), self.end)
            cuts = self._meets(faults, one.begun.node, begin, end)
            marks = sorted({begin, end, *(f.start for f in cuts), *(f.end for f in cuts)})
            for a, b in pairwise(mark for mark in marks if begin <= mark <= end):
                if not any(f.start <= a and b <= f.end for f in cuts):
                    spans.append((a, b))
        return spans

    def _spans(self) -> list[tuple[float, float]]:
        return [(one.begun.time, one.asked_until(self.end)) for one in self.asked]

    def _in_vain(self, free: list[Asked], together: list[Asked], end: float) -> bool:
        """Return whether these requests ended by then without a grant: one alone, or such as
        failed, of servers that agree. No request before them may still be granted. At least one of
        them counts: it was not hindered (`free`), and its client waited until its end."""
        if len(together) > 1 and self.each:
            return False
        for one in together:
            if one.done is None or one.died is not None or one.done.type == "ok":
                return False
            if len(together) > 1 and one.done.type != "fail":
                return False
        if not any(one.done is not None and one.told >= one.done.time for one in free):
            return False
        begins = min(one.begun.time for one in together)
        for other in self.asked:
            if other in together or other.begun.time > begins:
                continue
            over = self._open_until(other)
            over = max(over, other.over) if other.unheard else over
            if over + self.apart >= begins:
                return False
        return max(self._open_until(one) for one in together) <= end

    def _stretches(self, spans: list[tuple[float, float]]) -> list[tuple[float, float]]:
        """Merge the requests that follow one another within a pause."""
        spans = list(spans)
        grown = True
        while grown:
            grown = False
            for place, (a, b) in enumerate(spans):
                for c, d in spans[place + 1 :]:
                    if c <= b + self.bound / 10 and a <= d + self.bound / 10:
                        spans.remove((a, b))
                        spans.remove((c, d))
                        spans.append((min(a, c), max(b, d)))
                        grown = True
                        break
                if grown:
                    break
        return spans

    def given_back(self, held: Held) -> float:
        """Return when a release that certainly reached all servers was answered."""
        for op in held.said:
            done = completion(self.ops, op) if op.type == "invoke" else None
            if op.f != "release" or done is None or done.type != "ok":
                continue
            down = [
                fault
                for fault in self.all
                if self._of_servers(fault)
                and fault.impairs != set()
                and fault.start <= done.time
                and fault.end >= op.time
            ]
            cut_off = self._meets(self.all, op.node, op.time, done.time)
            if not self.each or not (down or cut_off):
                return done.time
        return FOREVER

    def _left(self, held: Held) -> float:
        """Return when nothing is left of a hold."""
        lease = held.asked.value.get("ttl") or self.lease
        over = held.furthest
        if over == FOREVER:
            told = [until for _, until in held.leases[-1:] if until < FOREVER]
            over = max([held.last + lease, *told])
        for op in held.said:
            if op.f == "renewed" and op.value.get("deadline") is not None:
                # One more renewal may have been under way.
                over = max(over, min(held.last, held.furthest) + lease)
        # Each extension of unknown outcome in the order in which they help most.
        unheard = sorted(self._extended(held))
        for arrived, gone, ttl in unheard:
            over = max(over, gone + (ttl or lease), min(arrived, over) + (ttl or lease))
        return min(over, self.given_back(held))

    def _extended(self, held: Held) -> Iterator[tuple[float, float, int]]:
        """Yield by when each extend has arrived that may have taken effect unheard, when its client
        gave it up, and its ttl."""
        for op in held.said:
            if op.f != "extend" or op.type != "invoke":
                continue
            done = completion(self.ops, op)
            kind = done.error[0] if done is not None and done.error else None
            unclear = done is not None and done.type == "fail" and self.each
            unclear = unclear and kind not in ("not-held", "unreachable")
            if done is None or done.type == "info" or unclear:
                gone = (done or op).time
                arrived = arrives(self.ops, self.test, op, gone, self._outlasted(earlier(self.all)))
                late = arrived > gone + travels(self.ops, self.test)
                yield arrived if late else gone, gone, op.value.get("ttl") or 0


def _mode(asked: Op) -> str:
    return str(asked.value.get("mode", "exclusive"))
