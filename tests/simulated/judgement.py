"""Compare the verdicts of the checkers on a run with its truth."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tests.simulated import promises, truth
from tests.simulated.defects import KINDS
from tests.simulated.simulation import Run


@dataclass(frozen=True)
class Facts:
    """The verdicts that the truth allows and demands, by checker.

    `allows`: checkers that may return false about this run, and the reason; `demands`: those that
    must;
    `seen`: those that must because of the run's defect.
    """

    allows: dict[str, str]
    demands: dict[str, str]
    seen: frozenset[str]


def facts(run: Run) -> Facts:
    damage = truth.damage(run.truth, run.store)
    allows: dict[str, str] = {}
    demands: dict[str, str] = {}
    if truth.met(run.truth):
        allows["mutual_exclusion"] = "two clients held a lock at once"
    whole = not run.plan.cut_off
    if whole and truth.met_surely(run.truth):
        demands["mutual_exclusion"] = "two clients held a lock at once, and it was seen"
    compares = run.plan.guard == "compare-and-set"
    if damage.lost or (damage.stale and not compares):
        allows["resource"] = "data was damaged"
    # Falling tokens order nothing, and time alone may not decide which came later.
    ordered = not (run.plan.defect == "repeats_token" and run.struck)
    if whole and (damage.seen_lost or (damage.seen_stale and not compares and ordered)):
        demands["resource"] = "data was damaged, and it was acknowledged"
    if damage.lower:
        allows["fencing"] = "the resource accepted a lower token"
    # A store that loses writes reuses numbers, which order nothing then.
    rolls_back = run.plan.defect == "loses_update" and run.struck
    if whole and damage.seen_lower and not rolls_back:
        demands["fencing"] = "the resource accepted a lower token, and acknowledged it"
    seen: list[str] = []
    if run.struck and truth.released_late(run.truth):
        # With it, anything else that a defect removed looks stolen.
        allows["ownership"] = "a release was answered ok when its own lease was over"
    if run.struck:
        kind = KINDS[run.plan.defect]
        allows |= dict.fromkeys((*kind.must, *kind.may), kind.what)
        seen = _seen(run)
        demands |= dict.fromkeys(seen, kind.what)
    checked = run.test["checkers"]
    return Facts(
        {name: why for name, why in allows.items() if name in checked},
        {name: why for name, why in demands.items() if name in checked},
        frozenset(seen) & frozenset(checked),
    )


def _seen(run: Run) -> list[str]:
    """Return the checkers that must return false, because the defect was certainly seen."""
    told, ops = run.truth, run.ops
    match run.plan.defect:
        case "grants_early" | "forgets" | "mixes_modes":
            return [
                *(["lease_exclusion"] if truth.doubled(told) else []),
                *(["linearizable"] if truth.doubled_in_any_order(told) else []),
            ]
        case "extends_lost":
            return [
                *(["lease_exclusion"] if truth.doubled(told) else []),
                *(["linearizable"] if truth.extended_lost(told) else []),
            ]
        case "repeats_token":
            return ["fencing", "linearizable"] if truth.tokens_repeated(told) else []
        case "jumps_queue":
            return ["liveness"] if promises.jumped(told, ops) else []
        case "wakes_herd":
            return ["liveness"] if promises.woken(ops) else []
        case "keeps_dead":
            return ["liveness"] if promises.kept(told, ops) else []
        case "releases_foreign":
            return ["ownership"] if truth.stolen(told) else []
        case "accepts_stale":
            return ["fencing", "resource"] if truth.damage(told, run.store).seen_lower else []
        case "loses_update":
            return ["store", "resource"] if truth.lost_updates(told) else []
        case "shows_refused":
            return ["store"] if truth.refused_and_shown(told) else []
    return []


@dataclass(frozen=True)
class Wrong:
    """A verdict that the truth refutes."""

    checker: str
    said: Any
    why: str


def wrong(found: Facts, verdicts: Mapping[str, Any]) -> list[Wrong]:
    """Refute false where it is untrue, and any other verdict where only false is left."""
    rows = []
    for name, said in verdicts.items():
        if said not in (True, False, "unknown"):
            rows.append(Wrong(name, said, "every history has a verdict"))
        elif said is False and name not in found.allows:
            rows.append(Wrong(name, said, "nothing of that kind happened"))
        elif name == "ownership" and said == "unknown":
            continue  # a release of unknown outcome may have been the thief as well
        elif said is not False and name in found.demands:
            rows.append(Wrong(name, said, found.demands[name]))
    return rows
