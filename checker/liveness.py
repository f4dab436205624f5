"""`liveness`: does the lock become available again?

A lock that is never granted is perfectly safe. So whenever clients ask for a lock that no client
can have, it must be granted within a stated bound (`liveness_bound_s`, default 5 s; dead_time.py):
after a release, at the end of a lease, after a fault. If the service promises to survive a minority
of dead nodes (`promises.minority`), this holds while only a minority is impaired. Each lock is
judged by itself. The waits that a run tested are named (waits.py).

Three further promises are judged if the lock makes them: an order of grants (`promises.fifo`), a
release that wakes one client (`promises.one_wakeup`; both in fairness.py), and no refusal of a free
lock (`promises.true_refusals`, refusals.py). An untested promise is named, and counts as neither
kept nor broken.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fencepost.checker.checker import Checker, of_history
from fencepost.checker.facts.clocks import Clocks
from fencepost.checker.facts.due_grants import DueGrants, waited
from fencepost.checker.facts.fairness import Fairness, fairness
from fencepost.checker.facts.faults import faults
from fencepost.checker.facts.hold_events import trusted_hold_events
from fencepost.checker.facts.obstacles import freed
from fencepost.checker.facts.reentrance import refused_again
from fencepost.checker.facts.refusals import Refusals, refusals
from fencepost.checker.facts.second_grants import doubled
from fencepost.checker.facts.tokens import trusted
from fencepost.checker.facts.waits import Wait
from fencepost.checker.history.history import History
from fencepost.checker.signs import WAITED, any_of
from fencepost.checker.verdict import Valid, Verdict, count, noted

DEFAULT_BOUND_S = 5.0


def liveness(history: History, test: Mapping[str, Any]) -> Verdict:
    """Check that the lock is granted in time: after the last heal, after each lost holder, and
    during the failure of a minority."""
    on, clocks = faults(history), Clocks(test)
    found = trusted(history, test, clocks)
    calls = history.calls()
    acquires = [call for call in calls if call.begin.f == "acquire"]
    bound = int(test.get("liveness_bound_s", DEFAULT_BOUND_S) * 1e9)
    apart = _apart(history, clocks)
    due = DueGrants(history, test, on, bound, apart)
    events = trusted_hold_events(history, test, clocks)
    given = freed(events.own, due.hindered.reached)
    locks = waited(history, calls, found, events, given, due, apart)
    waits = [wait for lock in locks for wait in due.waits(lock)]
    judged = [due.dead_times(lock) for lock in locks]
    dead = [one for times in judged for one in times.dead]
    served, leases = sum(t.served for t in judged), sum(t.leases for t in judged)
    fair = fairness(acquires, found, on, history, clocks, given, due.concerned(acquires))
    promises = test.get("promises") or {}
    denied = Refusals()
    if promises.get("true_refusals"):
        unanswered = dict(row for lock in locks for row in due.unanswered(lock))
        denied = refusals(acquires, found, events.own, unanswered, apart, due.agree)
    again = []
    if promises.get("reentrant"):
        again = list(refused_again(acquires, found, on, bound, history.end_ns))
    # A lost node may have been gone before this was noticed, and requests refused for it.
    gone = any(one.impairs is None and one.end is None and not one.proved for one in on)
    unfair = _unfair(fair, promises) + again + ([] if gone else denied.untrue)
    strange = sorted({fault.family for fault in on if fault.impairs is None})
    hidden = gone and bool(denied.untrue)
    if strange and not hidden and not any(due.dead_times(lock, known=True).dead for lock in locks):
        strange = []
    untested: list[str] = []
    if not dead:
        untested = [*_unjudged(waits, due.healed), *_untested(waits, fair, denied, promises)]
        if promises.get("reentrant") and not any(doubled(found)):
            untested.append("reentrant")
    bad = sorted([one.to_json() for one in dead] + unfair, key=lambda row: row["time_ns"])
    valid: Valid = False if bad else "unknown" if strange else _valid(waits, served)
    doubts = [*(one.doubt() for one in judged), *map(due.stuck, locks)]
    stuck = [what for what in doubts if what is not None]
    if valid is True and stuck:
        valid, untested = "unknown", []
    untested += ["the end of a lease"] if valid is True and not leases else []
    evidence = bad or [w.to_json() for w in waits if w.valid is not None or w.kind == "heal"]
    details = {
        "bound_s": bound / 1e9,
        "waits": sum(1 for wait in waits if wait.valid is True),
        "served": served,
        "leases": leases,
        "after_deaths_s": [
            round(wait.waited_s, 3)
            for wait in waits
            if wait.kind == "holder" and wait.valid is not None and wait.waited_s is not None
        ],
        **fair.details(),
        "untested": untested,
    }
    summary = _summary(valid, waits, evidence, strange, leases, stuck)
    return Verdict(valid, noted(summary, untested), evidence, details)


def _apart(history: History, clocks: Clocks) -> int:
    """Return how far apart the stamps of two nodes may be at most (ns)."""
    return 2 * max(map(clocks.bound, {op.node for op in history}), default=0) if clocks else 0


def _valid(waits: list[Wait], served: int) -> Valid:
    """Combine the waits into a verdict. Untested ones are ignored if any was tested."""
    verdicts = {wait.valid for wait in waits} | ({True} if served else set())
    return True if True in verdicts and "unknown" not in verdicts else "unknown"


def _summary(
    valid: Valid,
    waits: list[Wait],
    evidence: list[dict[str, Any]],
    strange: list[str],
    leases: int,
    stuck: list[str],
) -> str:
    if valid is False:
        return str(evidence[0]["what"])
    if strange:
        return f"It is not known which nodes {', '.join(strange)} keeps from answering."
    if valid is True:
        longest = max((w.waited_s or 0.0 for w in waits if w.valid is True), default=None)
        if longest is None or not leases:
            return "The lock was granted in time whenever it was free and a client asked for it."
        return f"The lock became available every time; the longest wait was {longest:.3f} s."
    cut_short = next((wait for wait in waits if wait.valid == "unknown"), None)
    if cut_short:
        return cut_short.describe()
    if stuck:
        return stuck[0]
    return "No client asked for the lock for long enough while it was certainly free."


def _unfair(fair: Fairness, promises: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the evidence against a promise of order."""
    found = list(fair.overtakings) if promises.get("fifo") else []
    return found + (fair.herds if promises.get("one_wakeup") else [])


def _unjudged(waits: list[Wait], healed: bool) -> list[str]:
    """Return the waits that were not tested, in short phrases."""
    several = len({wait.lock for wait in waits}) > 1
    nobody = [wait for wait in waits if wait.valid is None]
    found = [
        f"{wait.why[0].lower()}{wait.why[1:]}" + (f" ({wait.lock})" if several else "")
        for wait in nobody
        if wait.kind == "heal"
    ]
    if not healed:
        found.append("after the last fault was healed")
    gone = sum(1 for wait in nobody if wait.kind == "holder")
    return found + ([f"after {count(gone, 'holder')} that disappeared"] if gone else [])


def _untested(
    waits: list[Wait], fair: Fairness, denied: Refusals, promises: Mapping[str, Any]
) -> list[str]:
    """Return the promises that nothing in this run could have broken."""
    minority = any(wait.kind == "minority" and isinstance(wait.valid, bool) for wait in waits)
    tested = {
        "minority": minority,
        "fifo": fair.ordered,
        "one_wakeup": fair.woken,
        "true_refusals": denied.judged > 0,
    }
    return [name for name, was in tested.items() if promises.get(name) and not was]


CHECKER = Checker(
    name="liveness",
    question="Whenever the lock was free and a client asked for it, it was granted in time.",
    about=("service",),
    check=of_history(liveness),
    column="live",
    goal=True,
    goal_rank=40,
    suspect=any_of(WAITED),
    at_the_end=True,
    of_time=True,
)
