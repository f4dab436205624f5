"""`liveness`: how long a lock may be taken, by a client, by a request, or by what faults leave.

Each rule is that of docs/design.md, section 4, on dead time.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from fencepost.checker.history.history import Op
from tests.oracles.cuts import active, cut_from, earlier
from tests.oracles.holds import FOREVER, Held, completion
from tests.oracles.refusals import arrives, begins_again, separates_clients, travels
from tests.oracles.waiting import Asked, Fault


class Taken:
    """When one lock is taken. `lease` is the longest that was asked for. `each`: clients may ask
    each server by itself, so that a try that failed may have left its keys."""

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
        self.all = faults
        self.lease = lease
        self.end = ops[-1].time
        self.each = len(test["servers"]) > 1 and test["lock"]["ends_with"] == "lease"

    def spans(
        self, faults: list[Fault], without: Sequence[Asked] = ()
    ) -> list[tuple[float, float, str]]:
        """Return when the lock is taken, from and until, and in which mode by a grant; "" without a
        grant. `without`: requests that do not count, unless a fault disturbed them."""
        return [*self.by_clients(faults, without), *self.by_servers(faults)]

    def _client_faults(self, faults: list[Fault]) -> list[Fault]:
        return [fault for fault in faults if not (self.of_servers(fault) or fault.kills)]

    def of_servers(self, fault: Fault) -> bool:
        return fault.hinders is None

    def meets(
        self, faults: list[Fault], node: str | None, begin: float, over: float
    ) -> list[Fault]:
        return [
            fault
            for fault in self._client_faults(faults)
            if node in (fault.hinders or ()) and fault.start <= over and fault.end >= begin
        ]

    def by_clients(
        self, faults: list[Fault], without: Sequence[Asked] = ()
    ) -> list[tuple[float, float, str]]:
        found = []
        for held in self.held:
            over = self.left(held)
            lease = held.asked.value.get("ttl") or self.lease
            renews = any(op.f == "renewed" and op.value.get("deadline") for op in held.said)
            while over < FOREVER and over != self.given_back(held):
                met = self.meets(faults, held.node, held.grant.time, over)
                if held.furthest < FOREVER:
                    met = [fault for fault in met if renews and fault.deafens]
                if all(fault.end + lease <= over for fault in met):
                    break
                over = max(fault.end + lease for fault in met)
            over = min(over, self.given_back(held))
            found.append((held.grant.time, over, mode_of(held.asked)))
        for one in self.asked:
            over = self._unheard_until(one, faults)
            until = one.asked_until(self.end) if one.done or one.died is not None else FOREVER
            if one.done is None and one.died is not None:
                until = FOREVER
            if self.meets(faults, one.begun.node, one.begun.time, min(until, self.end)):
                over = max(over, one.died if one.died is not None else until)
            if self.each and one.done is not None and one.done.type == "fail":
                over = max(over, self._keys_until(one, faults))
            if over <= one.begun.time:
                continue
            if over == one.over and any(one is other for other in without):
                continue
            found.append((self._heard_until(one, faults), over, ""))
        return found

    def _heard_until(self, one: Asked, faults: list[Fault]) -> float:
        """Return until when its client would have heard of a grant."""
        if one.done is None or one.done.type != "info" or one.died is not None or self.each:
            return one.begun.time
        if not self.calm(faults, one):
            return one.begun.time
        return max(one.begun.time, one.done.time - travels(self.ops, self.test))

    def calm(self, faults: list[Fault], one: Asked) -> bool:
        """Return whether no fault of servers, or of its client, was on while a request was open, or
        had ended more recently than it was on for."""
        assert one.done is not None
        for fault in faults:
            mine = one.begun.node in (fault.hinders or ())
            theirs = self.of_servers(fault) and fault.impairs != set()
            again = fault.end + (fault.end - fault.start)
            on = fault.start <= one.done.time and again >= one.begun.time
            if (mine or theirs) and not fault.kills and on:
                return False
        return True

    def _keys_until(self, one: Asked, faults: list[Fault]) -> float:
        """Return until when single servers may have keys of a request that failed behind a fault
        of its client or of its messages."""
        assert one.done is not None
        done = one.done.time
        late = self._outlasted(faults)
        arrived = arrives(self.ops, self.test, one.begun, done, late)
        if arrived > done + travels(self.ops, self.test):
            return begins_again(self.ops, self.test, one.begun, arrived, one.ttl, faults)
        met = self.meets(faults, one.begun.node, one.begun.time, done)
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
        """Return the faults that a message outlasts: those of clients, and those of servers that
        drop messages, unless the lock promises to survive them. One that only separates clients
        from servers counts all the same if the servers agree among themselves."""
        mine = [fault for fault in faults if self.of_servers(fault) and not fault.kills]
        promised = self.test["promises"].get("minority")
        found = []
        for fault in faults:
            survived = fault in mine and promised and not self._loses_majority(fault, mine)
            if separates_clients(fault, self.ops, self.test):
                counts = not (survived and self.each)
            else:
                counts = fault not in mine or (fault.deafens and not survived)
            found += [fault] if counts else []
        return found

    def by_servers(self, faults: list[Fault]) -> list[tuple[float, float, str]]:
        mine = [fault for fault in faults if self.of_servers(fault) and not fault.kills]
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
        """Return whether at some moment of a fault no majority of the servers was left. A cut of
        clients is among these faults only if it leaves a majority to each."""
        servers = set(self.test["servers"])
        clients = {op.node for op in self.ops if op.process != "nemesis"} - servers
        if cut_from(fault, clients):
            return False
        mine = [one for one in mine if not cut_from(one, clients)]
        for at in {one.start for one in mine if fault.start <= one.start <= fault.end}:
            on = active(mine, at)
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
            over = self.left(held)
            released = over == self.given_back(held)
            if not released and held.asked.time <= fault.end and over >= fault.start:
                met.append(held.asked.value.get("ttl") or self.lease)
        return max(met)

    def given_back(self, held: Held) -> float:
        """Return when a release that certainly reached all servers was answered."""
        for op in held.said:
            done = completion(self.ops, op) if op.type == "invoke" else None
            if op.f != "release" or done is None or done.type != "ok":
                continue
            down = [
                fault
                for fault in self.all
                if self.of_servers(fault)
                and fault.impairs != set()
                and fault.start <= done.time
                and fault.end >= op.time
            ]
            cut_off = self.meets(self.all, op.node, op.time, done.time)
            if not self.each or not (down or cut_off):
                return done.time
        return FOREVER

    def left(self, held: Held) -> float:
        """Return when nothing is left of a hold."""
        lease = held.asked.value.get("ttl") or self.lease
        over = held.furthest
        if over == FOREVER:
            told = [until for _, until in held.leases[-1:] if until < FOREVER]
            over = max([held.last + lease, *told])
        else:
            over = max([over, *self._on_arrival(held, lease)])
        for op in held.said:
            if op.f == "renewed" and op.value.get("deadline") is not None:
                # One more renewal may have been under way.
                over = max(over, min(held.last, held.furthest) + lease)
        # Each extension of unknown outcome in the order in which they help most.
        unheard = sorted(self._extended(held))
        for arrived, gone, ttl in unheard:
            over = max(over, gone + (ttl or lease), min(arrived, over) + (ttl or lease))
        return min(over, self.given_back(held))

    def _on_arrival(self, held: Held, lease: int) -> Iterator[float]:
        """Yield the latest end of each lease that was answered: its request arrived by then."""
        begun = [(held.asked, held.grant, held.leases[0][1])]
        for op in held.said:
            done = completion(self.ops, op) if op.type == "invoke" else None
            if op.f == "extend" and done is not None and done.type == "ok":
                begun += [(op, done, done.value["deadline"])] if done.value.get("deadline") else []
        for op, done, deadline in begun:
            ttl = op.value.get("ttl") or lease
            yield min(deadline + done.time - op.time, done.time + ttl if ttl else FOREVER)

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


def mode_of(asked: Op) -> str:
    return str(asked.value.get("mode", "exclusive"))
