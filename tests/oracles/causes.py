"""The chain of causes, by the letter of docs/design.md ("Why: the chain of causes").

The oracle compares each link of the evidence, and no verdict. Of the links on why a holder still
held, it expects exactly its own. A link on the second grant must be possible, and none may be sure
except the one that a server granted both holds.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from random import Random
from typing import Any

from fencepost.checker.checker import Run
from fencepost.checker.checkers import CHECKERS
from fencepost.checker.history.history import History, Op
from tests.oracles import exclusion
from tests.oracles.causes_drawn import Row, draw
from tests.oracles.holds import FOREVER, Held, bound, by_harness, completion, holds

EXPLAINED = ("lease_exclusion", "mutual_exclusion", "ownership", "fencing", "resource")
NAMED = 3
Link = tuple[str, bool, float]
"""A sort of link, whether it is sure, and its time."""


@dataclass(frozen=True)
class Fault:
    """A fault, `on` from its order until it was healed; `surely` between its receipts.
    `anywhere`: whether it may have struck any node; `processes`: those that it stopped, if named.
    """

    family: str
    on: tuple[float, float]
    surely: tuple[float, float] | None
    impaired: frozenset[str]
    stopped: frozenset[str]
    forgets: bool
    targets: tuple[str, ...]
    anywhere: bool
    processes: frozenset[Any]

    def strikes(self, node: str) -> bool:
        return self.anywhere or node in self.impaired

    def stopped_process(self, held: Held) -> bool:
        mine = not self.processes or held.process in self.processes
        return mine and held.node in self.stopped

    def was_on(self, since: float, until: float) -> bool:
        return self.on[0] <= until and since <= self.on[1]


def check(seed: str, first: int, count: int) -> tuple[Counter[str], list[str]]:
    """Count the links of these histories, and return the chains that the oracle refuses."""
    outcomes: Counter[str] = Counter()
    wrong: list[str] = []
    for number in range(first, first + count):
        ops, test = draw(Random(f"{seed}/causes/{number}"))
        for name in EXPLAINED:
            try:
                evidence = CHECKERS[name].check(Run(History(ops), test)).evidence
            except Exception as error:  # a checker that raises is wrong, too
                wrong.append(f"{name} raises {error!r} (--seed {seed} --from {number})")
                continue
            for piece in evidence:
                for link in piece.get("cause", ()):
                    outcomes[f"{link['sort']} {'sure' if link['sure'] else 'likely'}"] += 1
                why = refused(ops, test, name, piece)
                if why:
                    text = [piece["what"], *(str(op.to_json()) for op in ops)]
                    wrong.append("\n".join([f"{name}: {why} (--from {number})", str(test), *text]))
    return outcomes, wrong


def refused(ops: list[Op], test: Row, name: str, piece: Row) -> str:
    """Return why a piece of evidence has a wrong chain of causes; "" if it is right."""
    said = [_link(link) for link in piece.get("cause", ())]
    if name == "resource" and piece["kind"] == "phantom":
        return f"a phantom has causes {said}" if said else ""
    if len(piece["ops"]) == 1:
        return f"a grant without another has causes {said}" if said else ""
    case = _Case(ops, test)
    if "exclusion" in name:
        first, second = map(case.granted, piece["ops"])
        chains = [case.overlap(first, second, piece["time_ns"])]
    else:
        chains = list(case.worked(name, piece))
    if any(case.agrees(said, chain) for chain in chains):
        return _impossible(case, name, piece)
    return f"it says {said}, and one of these was right: {[chain[0] for chain in chains]}"


def _link(row: Row) -> Link:
    return row["sort"], row["sure"], FOREVER if row["time_ns"] is None else row["time_ns"]


Chain = tuple[list[Link], bool]
"""Links on why a holder still held, and whether others on the second grant may follow."""
_OF_THE_HOLDER = ("lease-over", "expired-grant", "kept-by-fault", "kept-on")


class _Case:
    def __init__(self, ops: list[Op], test: Row) -> None:
        self.ops, self.test = ops, test
        self.holds = holds(ops, test)
        self.faults = list(_faults(ops))

    def agrees(self, said: list[Link], chain: Chain) -> bool:
        """Return whether these links are the chain, of which not all faults need be named."""
        links, more = chain
        mine = Counter(link for link in said if link[0] in _OF_THE_HOLDER)
        kept = Counter(link for link in links if link[0] == "kept-by-fault")
        # The first one is about the grant, the others about the faults by which it was late.
        late = Counter([link for link in links if link[0] == "expired-grant"][1:])
        fixed = Counter(links) - kept - late
        found = mine - fixed
        whole = found <= kept + late
        for faults in (kept, late):
            named = sum(many for link, many in found.items() if link in faults)
            whole = whole and named == min(faults.total(), NAMED)
        return whole and fixed <= mine and (more or mine.total() == len(said))

    def overlap(self, first: Held, second: Held, at: float) -> Chain:
        over = _over(first, at)
        if over <= at:
            return self.kept(first, at, FOREVER, True), False
        links = self.kept(first, at, FOREVER, True) if over == FOREVER else []
        return links + self._second(second), True

    def _second(self, second: Held) -> list[Link]:
        """Return the links of a second grant whose own lease had expired when it arrived."""
        at = second.grant.time
        return self.kept(second, at, FOREVER, True) if _over(second, at) <= at else []

    def worked(self, name: str, piece: Row) -> Iterator[Chain]:
        """Return what may be said of each hold under which the work may have been done."""
        if name == "ownership":
            for held in self._named(piece["holds"][0]) if len(piece["holds"]) == 2 else []:
                yield from self._work(held, self.ops[piece["ops"][0]].time, FOREVER, [FOREVER])
            yield [], False
            return
        if name == "fencing" and "holds" in piece:
            yield [], True
            return
        sent = self.ops[piece["ops"][1] if name == "fencing" else piece["ops"][0]]
        done = piece["time_ns"]
        moments = [0, *(op.time for op in self.ops if op.type == "invoke")]
        for held in self._named(sent.value.get("hold")):
            yield from self._work(held, done, sent.time, moments)
            if _over(held, done) <= done:
                return
        yield [], False
        if name != "resource" or piece["kind"] != "lost_update":
            return
        for other in self.ops:
            if other.type == "invoke" and other.f == "write" and other is not sent:
                for held in self._named(other.value.get("hold")):
                    for by in self._accepted(other):
                        yield from self._work(held, by, other.time, [self._read(sent)])

    def _work(self, held: Held, done: float, sent: float, moments: list[float]) -> Iterator[Chain]:
        """Return what may be said of work that was done by `done`, at one of these moments at the
        earliest."""
        over = _over(held, done)
        if over > done:
            yield [], False
            for one, other in product(self.holds, self.holds):
                if held in (one, other) and one.lock == other.lock and one is not other:
                    yield from (self.overlap(one, other, at) for at, _ in other.leases)
            return
        begun = done if sent == FOREVER else sent
        for since in moments:
            yield self.kept(held, done, begun, over <= max(begun, since)), False

    def _accepted(self, write: Op) -> Iterator[float]:
        """Return when a write had been accepted, by its answer or by the first read of it."""
        done = completion(self.ops, write)
        if done is not None and done.type == "ok":
            yield done.time
        for op in self.ops:
            if op.f == "read" and op.type == "ok" and op.value.get("value") == write.value["value"]:
                yield op.time
                return

    def _read(self, write: Op) -> float:
        """Return when the last read began on which this write is based."""
        begun = [
            op.time
            for op in self.ops[: write.index]
            if op.process == write.process and op.f == "read" and op.type == "invoke"
            if (done := completion(self.ops, op)) is not None
            and done.type == "ok"
            and done.value.get("version") == write.value.get("version")
            and done.value.get("resource") == write.value.get("resource")
        ]
        return max(begun, default=0)

    def _named(self, name: Any) -> list[Held]:
        return [held for held in self.holds if _name(held) == str(name)]

    def granted(self, index: int) -> Held:
        return next(held for held in self.holds if held.grant.index == index)

    def kept(self, held: Held, at: float, begun: float, certain: bool) -> list[Link]:
        """Return why a hold was not given up by `at`; `begun`: when the client acted, if that was
        before; `certain`: whether what it did came certainly after its lease."""
        node, over = held.node or "", _over(held, at)
        near = [fault for fault in self.faults if fault.strikes(node)]
        if over <= held.grant.time:
            of_a_lease = self.test.get("lock", {}).get("ends_with", "lease") == "lease"
            sure = of_a_lease and exclusion.too_late(self.ops, held)
            over = held.leases[0][1]
            late = [f for f in near if f.was_on(held.asked.time, held.grant.time)]
            return [("expired-grant", sure, over)] + [
                ("expired-grant", False, fault.on[0]) for fault in late
            ]
        if over > at:
            before = [fault for fault in near if fault.was_on(held.asked.time, at)]
            on = [fault for fault in before if fault.on[1] >= at]
            last = sorted(before, key=lambda fault: fault.on[0])[-1:]
            early = self._when_it_renewed_last(held, before, at)
            return [("kept-by-fault", False, fault.on[0]) for fault in early or on or last]
        acted = begun if over < begun < at else at
        stops = [f for f in near if f.stopped_process(held) and f.was_on(over, acted)]
        others = [
            f
            for f in near
            if f not in stops and f.was_on(over, acted) and not self._worked_on(held, f, over)
        ]
        rival = begun <= over and bool(others)
        found: list[Link] = [("lease-over", True, over)]
        for fault in [*stops, *others]:
            half = min(fault.on[1], acted) - max(fault.on[0], over)
            if fault.on[0] > over and half * 2 <= acted - over:
                continue
            sure = (
                fault in stops and certain and not rival and self._through(held, fault, over, acted)
            )
            found.append(("kept-by-fault", sure, fault.on[0]))
        if len(found) == 1:
            found.append(("kept-on", True, over))
        return found

    def _when_it_renewed_last(self, held: Held, before: list[Fault], at: float) -> list[Fault]:
        """Return a leader's faults that were on one lease before the next one's grant, or began in
        the half of a lease after that."""
        ttl = held.asked.value.get("ttl")
        if not self.test.get("lock", {}).get("elector") or ttl is None:
            return []
        return [fault for fault in before if fault.was_on(at - ttl, at - ttl / 2)]

    def _through(self, held: Held, fault: Fault, over: float, acted: float) -> bool:
        """Return whether a stop was certainly on at the end of a lease, and for nine tenths of the
        time from then until the client acted."""
        error = bound(self.test, held.node)
        if fault.surely is None:
            return False
        since, end = fault.surely[0] + error, fault.surely[1] - error
        if any(
            op.process == held.process and since < op.time < end and not by_harness(op)
            for op in self.ops
        ):
            return False
        return since <= over <= end and 10 * (acted - end) <= acted - over

    def _worked_on(self, held: Held, fault: Fault, over: float) -> bool:
        """Return whether the client began another op under its expired lease and this fault."""
        if any(
            (op.f == "renewed" and op.value.get("deadline") is not None)
            or (op.f == "extend" and op.type == "ok")
            for op in held.said
        ):
            return False
        return any(
            op.process == held.process
            and op.type == "invoke"
            and op.f not in ("release", "close")
            and max(over, fault.on[0]) < op.time <= min(fault.on[1], held.first)
            for op in self.ops
        )


def _impossible(case: _Case, name: str, piece: Row) -> str:
    """Return the link on a second grant that is impossible; "" if there is none."""
    links = [link for link in piece.get("cause", ()) if link["sort"] not in _OF_THE_HOLDER]
    clients = {op.node for op in case.ops if op.process != "nemesis"}
    servers = case.test.get("servers")
    pairs = list(product(case.holds, case.holds))
    if "exclusion" in name:
        pairs = [tuple(map(case.granted, piece["ops"]))]  # type: ignore[list-item]
    for link in links:
        sort, at, nodes = link["sort"], link["time_ns"], set(link.get("nodes", ()))
        if link["sure"] and sort != "granted-both":
            return f"{sort} is sure"
        possible = {
            "granted-both": any(nodes == _by(one) & _by(other) for one, other in pairs),
            "forgot": bool(nodes & set(servers) if servers else nodes - clients)
            and any(nodes & _both(one, other) or not _both(one, other) for one, other in pairs),
            "extend-failed": any(_may_free(case, held, at) for held, _ in pairs),
            "stolen": any(
                op.f == "release" and op.type == "invoke" and op.time == at for op in case.ops
            ),
            "counted-late": case.test.get("lock", {}).get("ends_with", "lease") == "lease",
            "none": True,
        }
        if not possible[sort]:
            return f"{sort} at {at} cannot have been"
    return ""


def _may_free(case: _Case, held: Held, at: float) -> bool:
    """Return whether an extend of this hold, sent then, may have had an effect: it was not refused
    as gone, it was sent before any that was, and it did not fail before it reached a server."""
    for op in held.said:
        if op.f != "extend" or op.type != "invoke":
            continue
        done = completion(case.ops, op)
        kind = done.error[0] if done is not None and done.error else ""
        failed = done is not None and done.type == "fail"
        if failed and kind == "not-held":
            return False
        if op.time == at and (done is None or done.type != "ok") and kind != "unreachable":
            return True
    return False


def _by(held: Held) -> set[str]:
    return set(held.grant.value.get("granted_by") or ())


def _both(one: Held, other: Held) -> set[str]:
    named = [_by(held) for held in (one, other) if _by(held)]
    return set.intersection(*named) if named else set()


def _name(held: Held) -> str:
    return str(held.grant.value.get("hold", held.grant.index))


def _over(held: Held, at: float) -> float:
    """Return when the lease that ran before that time expired."""
    return max((end for begun, end in held.leases if begun <= at), default=held.leases[-1][1])


def _faults(ops: list[Op]) -> Iterator[Fault]:
    for start in ops:
        if start.process != "nemesis" or start.type != "invoke" or start.value["phase"] != "start":
            continue
        same = [op for op in ops if op.value.get("fault") == start.value["fault"]]
        proofs = [op for op in same if op.type == "ok" and op.value["phase"] == "start"]
        ends = [op for op in same if op.value["phase"] == "end"]
        nodes = {node for link in start.value.get("links", ()) for node in link}
        yield Fault(
            family=start.f,
            on=(start.time, ends[-1].time if ends else FOREVER),
            surely=(proofs[0].time, ends[0].time) if proofs and ends else None,
            impaired=frozenset(nodes | set(start.value.get("impairs", start.value["targets"]))),
            stopped=frozenset(start.value.get("stops", ())),
            forgets=start.value.get("forgets", False),
            targets=tuple(start.value["targets"]),
            anywhere="impairs" not in start.value and not start.value["targets"],
            processes=frozenset(
                op.value["receipt"]["process"]
                for op in same
                if "process" in op.value.get("receipt", ())
            ),
        )
