"""`liveness`: check each wait for a lock by the letter of docs/design.md, and its queue's order."""

from __future__ import annotations

from functools import cached_property
from itertools import pairwise
from typing import Any

from fencepost.checker.history.history import Op
from tests.oracles.cuts import earlier, sorted_out
from tests.oracles.drawn import MS
from tests.oracles.fairness import unfair
from tests.oracles.holds import FOREVER, Held, bound, ordered_holds
from tests.oracles.liveness_drawn import draw
from tests.oracles.refusals import refused_to_a_holder, refused_untruly
from tests.oracles.taken import Taken, mode_of
from tests.oracles.waiting import Asked, Fault, find_asked, find_deaths, find_faults

__all__ = ["draw", "verdict"]


def verdict(ops: list[Op], test: dict[str, Any]) -> set[bool | str]:
    drawn = find_faults(ops, test)
    faults = sorted_out(ops, test, drawn)
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
        stuck = stuck or one_lock.may_refuse_one_another(faults)
        known = sorted_out(ops, test, [one for one in drawn if one.impairs is not None])
        hidden = hidden or one_lock.dead(known)[0]
        stuck = stuck or one_lock.stuck()
        given = {one.grant.index: one_lock.taken.given_back(one) for one in held}
        promised = test["promises"].get("true_refusals")
        refused = promised and refused_untruly(ops, test, mine, held, earlier(faults))
        hidden = hidden or bool(refused and lost)
        reentrant = test["promises"].get("reentrant")
        again = reentrant and refused_to_a_holder(ops, test, mine, held, faults)
        if again or (refused and not lost) or unfair(ops, test, mine, found, faults, given):
            outcomes.append(False)
    if False in outcomes:
        return {False}
    if hidden and any(fault.impairs is None for fault in faults):
        return {"unknown"}
    told = True in outcomes and "unknown" not in outcomes and not stuck
    return {True} if told else {"unknown"}


def _client(one: Op | Held) -> int | str:
    return one.node or one.process


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
        self.taken = Taken(ops, test, asked, held, faults, lease)
        self.bound = round(test["liveness_bound_s"] * 1000) * MS + self.apart

    def outcomes(self) -> list[bool | str | None]:
        found: list[bool | str | None] = []
        healed = self._healed()
        if healed < FOREVER:
            found.append(self._wait(healed, healed + self.lease, self.faults))
        for held in self.held:
            if held.went and held.first < held.leases[-1][1]:
                due = max(held.last, self.taken.left(held))
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
        ways += [(h.grant.time, self.taken.left(h)) for h in self.held if h.grant.time < since]
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
        """Return whether clients have asked in vain until the end, since a fault that was never
        healed and the end of each hold; or, where each was healed, since the last heal and the end
        of each lease as it was asked for, of those whose holders are gone."""
        begun = [fault.start for fault in self.all if fault.end == FOREVER and not fault.kills]
        left = {id(held): self.taken.left(held) for held in self.held}
        if begun:
            return self._in_vain_since(max([*begun, *left.values()]))
        shorter = dict(left)
        for held in self.held:
            lasts = held.last + (held.asked.value.get("ttl") or self.lease)
            shorter[id(held)] = min(lasts, left[id(held)])
        return self._in_vain_since(max([self._healed(), *shorter.values()]))

    def _in_vain_since(self, since: float) -> bool:
        for a, b in self._stretches(self._spans()):
            if b + self.bound / 10 >= self.end and self.end - max(a, since) > self.bound:
                return True
        return False

    def _healed(self) -> float:
        heals = [f.start if f.kills and f.end == FOREVER else f.end for f in self.all]
        return max([self.test.get("ready_s", 0) * 1_000_000_000, *heals])

    # Dead time.

    def dead(self, faults: list[Fault]) -> tuple[bool, bool]:
        """Return whether the lock was ever dead, and whether it was ever granted in time."""
        faults = earlier(faults)
        spans = self.taken.spans(faults)
        dead = served = False
        free = self._free(spans)
        modes = {mode_of(one.begun) for one in self.asked}
        for mode in modes:
            mine = [one for one in self.asked if mode_of(one.begun) == mode]
            calm = self._stretches(self._calm(mine, faults))
            grants = [at for at, _, granted in spans if granted == mode]
            dead = dead or any(self._wanted(*span, calm, mine, faults) for span in free)
            dead = dead or (len(modes) > 1 and self._starved(free, calm, grants))
            served = served or any(
                mark in grants and since <= mark <= since + self.bound for since, mark in free
            )
        return dead or self._shut_out(free, faults) or self._turned_away(faults), served

    def may_refuse_one_another(self, faults: list[Fault]) -> bool:
        """Return whether the lock would be dead if its clients could not refuse one another."""
        if not self.taken.each:
            return False
        faults = earlier(faults)
        free = self._free(self.taken.spans(faults))
        modes = {mode_of(one.begun) for one in self.asked}
        rows = [[one for one in self.asked if mode_of(one.begun) == mode] for mode in modes]
        return any(self._twice(*span, mine, faults, True) for span in free for mine in rows)

    def _free(self, spans: list[tuple[float, float, str]]) -> list[tuple[float, float]]:
        """Return the times at which no client can have the lock."""
        free = []
        for mark in sorted({self.end, *(at for at, _, _ in spans)}):
            # The lock is free from the last end of those that began before, or from their grants.
            before = [row for row in spans if row[0] < mark]
            since = self.test.get("ready_s", 0) * 1_000_000_000
            since = max([since, *(over for _, over, _ in before)])
            since = max([since, *(at for at, _, granted in before if granted)])
            if mark <= self.end:
                free.append((since, mark))
        return free

    def _turned_away(self, faults: list[Fault]) -> bool:
        """Return whether one node got an error twice, with nothing in its way, in a time in which
        no client was granted the lock, after the first error and its lease."""
        failed = [one for one in self.asked if self._failed(one, faults)]
        crowded = [one for group in self._together if len(group) > 1 for one in group]
        spans = self.taken.spans(faults, failed)
        for since, until in self._free(spans):
            last = max([0, *(at for at, _, granted in spans if granted and at <= since)])
            first = min((one.begun.time for one in failed if one.begun.time >= last), default=0)
            over = [one.over for one in failed if one.begun.time <= max(first, last)]
            nodes = []
            for one in failed:
                counts = one.begun.time > max([since, *over]) + self.bound
                if self.taken.each and any(one is two for two in crowded):
                    counts = False
                if counts and one.done is not None and one.done.time <= until:
                    nodes.append(one.begun.node or one.begun.process)
            if len(nodes) > len(set(nodes)):
                return True
        return False

    def _failed(self, one: Asked, faults: list[Fault]) -> bool:
        """Return whether a request got an error that neither a fault nor its client explains."""
        if one.done is None or one.done.type != "info" or one.died is not None:
            return False
        if one.told < one.done.time:
            return False
        kind = one.done.error[0] if one.done.error else "timeout"
        begin, end = one.begun.time, one.done.time
        if kind == "timeout" and (
            10 * (end - begin) < self.bound or not self.taken.calm(faults, one)
        ):
            return False
        return kind != "cancelled" and not self.taken.meets(faults, one.begun.node, begin, end)

    def _shut_out(self, free: list[tuple[float, float]], faults: list[Fault]) -> bool:
        """Return whether a client asked in vain for longer than the bound in all, less a tenth each
        time, in free times that ended with a grant to another at its first request."""
        ended = []
        for since, until in free:
            grants = [one for one in self.held if one.grant.time == until and since < until]
            first = [
                one
                for one in grants
                if one.asked.time >= since
                and not any(
                    _client(two.begun) == _client(one)
                    and two.done is not None
                    and two.done.type != "ok"
                    and since <= two.begun.time <= until
                    for two in self.asked
                )
            ]
            if first:
                by = min(one.asked.time for one in grants)
                ended.append((since, by, {_client(one) for one in first}))
        for client in {_client(one.begun) for one in self.asked}:
            mine = [one for one in self.asked if _client(one.begun) == client]
            granted = [-1, *(n for n, one in enumerate(mine) if one.held is not None), len(mine)]
            for begin, end in pairwise(granted):
                asked = 0.0
                for since, by, served in ended:
                    if served - {client}:
                        parts = [
                            (one.begun.time, one.done.time)
                            for one in mine[begin + 1 : end]
                            if self._refused_in(one, since, by, faults) and one.done is not None
                        ]
                        merged = self._stretches(parts)
                        asked += sum(max(0, b - a - self.bound / 10) for a, b in merged)
                if asked > self.bound:
                    return True
        return False

    def _refused_in(self, one: Asked, since: float, until: float, faults: list[Fault]) -> bool:
        """Return whether a request began and was refused in a free time, in calm."""
        if one.done is None or one.done.type != "fail" or one.told < one.done.time:
            return False
        begin, end = one.begun.time, one.done.time
        if begin - self.apart < since or end + self.apart >= until:
            return False
        if self.taken.each and any(self._overlap(one, two) for two in self.asked if two is not one):
            return False
        return self.taken.calm(faults, one)

    def _starved(
        self,
        free: list[tuple[float, float]],
        calm: list[tuple[float, float]],
        grants: list[float],
    ) -> bool:
        """Return whether clients asked without a pause in enough free time, though not of one
        piece, without a grant in their mode. `calm`: when they asked, and no fault met them."""
        marks = sorted({-FOREVER, *grants, FOREVER})
        for begin, end in calm:
            for one, other in pairwise(marks):
                asked = 0.0
                for since, until in free:
                    # A grant ends the free time before it.
                    if one <= since and until <= other:
                        asked += max(0, min(end, until) - max(begin, since) - self.bound / 10)
                if asked > self.bound:
                    return True
        return False

    def _wanted(
        self,
        since: float,
        until: float,
        calm: list[tuple[float, float]],
        mine: list[Asked],
        faults: list[Fault],
    ) -> bool:
        """Return whether clients asked between two times so that the lock had to be granted.
        `calm`: see above."""
        for a, b in calm:
            if min(b, until) - max(a, since) > self.bound:
                return True
        return self._twice(since, until, mine, faults, not self.taken.each)

    def _twice(
        self, since: float, until: float, mine: list[Asked], faults: list[Fault], several: bool
    ) -> bool:
        """Return whether clients asked in vain twice after the bound. `several`: also if they asked
        at the same time."""
        limit = since + self.bound
        vain = 0
        for together in self._together:
            free = [
                one
                for one in together
                if one in mine
                and not self.taken.meets(
                    faults, one.begun.node, one.begun.time, min(one.asked_until(self.end), self.end)
                )
            ]
            begins = min(one.begun.time for one in together)
            counts = limit < begins and (several or len(together) == 1)
            vain += counts and self._in_vain(free, together, until)
        return vain > 1

    @cached_property
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
            cuts = self.taken.meets(faults, one.begun.node, begin, end)
            marks = sorted({begin, end, *(f.start for f in cuts), *(f.end for f in cuts)})
            for a, b in pairwise(mark for mark in marks if begin <= mark <= end):
                if not any(f.start <= a and b <= f.end for f in cuts):
                    spans.append((a, b))
        return spans

    def _spans(self) -> list[tuple[float, float]]:
        return [(one.begun.time, one.asked_until(self.end)) for one in self.asked]

    def _in_vain(self, free: list[Asked], together: list[Asked], end: float) -> bool:
        """Return whether these requests ended by then without a grant: one alone, or such as
        failed. No request before them may still be granted. At least one of them counts: it was not
        hindered (`free`), and its client waited until its end."""
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
