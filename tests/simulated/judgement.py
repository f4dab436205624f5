"""Compare the verdicts of the checkers on a run with its truth."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tests.simulated import dead, promises, reached, truth
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
    allows, demands = _happened(run)
    kind, seen = KINDS[run.plan.defect], list[str]()
    if run.struck and reached.released_late(run.truth):
        # With it, anything else that a defect removed looks stolen.
        allows["ownership"] = "a release was answered ok when its own lease was over"
    if run.struck:
        allows |= dict.fromkeys((*kind.must, *kind.may), kind.what)
        seen = [name for name in kind.must if _shows(run, name)]
        demands |= dict.fromkeys(seen, kind.what)
    checked = run.test["checkers"]
    return Facts(
        {name: why for name, why in allows.items() if name in checked},
        {name: why for name, why in demands.items() if name in checked},
        frozenset(seen) & frozenset(checked),
    )


def _happened(run: Run) -> tuple[dict[str, str], dict[str, str]]:
    """Return the verdicts that the truth allows and demands for any defect."""
    told, plan = run.truth, run.plan
    damage = truth.damage(told, run.store)
    allows: dict[str, str] = {}
    demands: dict[str, str] = {}
    if truth.met(told):
        allows["mutual_exclusion"] = "two clients held a lock at once"
        if not plan.visible:
            allows["lease_exclusion"] = "two clients held a lock at once, and saw no lease"
    if reached.late(told):
        allows["lease_exclusion"] = "the lock handed out a grant whose lease had expired"
    compares = plan.guard == "compare-and-set"
    if damage.lost or (damage.stale and not compares):
        allows["resource"] = "data was damaged"
    if damage.lower:
        allows["fencing"] = "the resource accepted a lower token"
    if plan.cut_off:
        return allows, demands
    if reached.late(told):
        demands["lease_exclusion"] = "the lock handed out a grant whose lease had expired"
    if truth.met_surely(told):
        demands["mutual_exclusion"] = "two clients held a lock at once, and it was seen"
    # Falling tokens order nothing, and time alone may not decide which came later.
    kind = KINDS[plan.defect]
    numbered = "fencing" in (*kind.must, *kind.may) and kind.name != "accepts_stale"
    ordered = not (run.struck and numbered)
    if damage.seen_lost or (damage.seen_stale and not compares and ordered):
        demands["resource"] = "data was damaged, and it was acknowledged"
    # A store that loses writes reuses numbers, which order nothing then.
    rolls_back = plan.defect == "loses_update" and run.struck
    if damage.seen_lower and not rolls_back:
        demands["fencing"] = "the resource accepted a lower token, and acknowledged it"
    return allows, demands


def _shows(run: Run, checker: str) -> bool:
    """Return whether a defect was certainly seen, so that this checker must return false."""
    told, ops = run.truth, run.ops
    match checker:
        case "lease_exclusion":
            return bool(reached.doubled(told) or reached.doubled_again(told) or reached.late(told))
        case "linearizable":
            return bool(
                reached.doubled_in_any_order(told)
                or reached.extended_lost(told)
                or reached.tokens_repeated(told)
                or reached.tokens_fell(told)
            )
        case "mutual_exclusion":
            return bool(reached.late_and_met(told))
        case "fencing":
            return bool(reached.tokens_repeated(told)) or truth.damage(told, run.store).seen_lower
        case "ownership":
            return bool(reached.stolen(told))
        case "liveness":
            unmet = dead.dead(told, ops) or dead.refused_alone(told, ops) or dead.raised(told, ops)
            return bool(unmet) or _unfair(run)
        case "store":
            return bool(reached.lost_updates(told) or reached.refused_and_shown(told))
        case "resource":
            stale = truth.damage(told, run.store)
            return bool(reached.lost_updates(told)) or stale.seen_stale
    return False


def _unfair(run: Run) -> bool:
    promised = run.plan.promises
    jumped = promised["fifo"] and promises.jumped(run.truth, run.ops)
    return bool(jumped or (promised["one_wakeup"] and promises.woken(run.ops)))


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
