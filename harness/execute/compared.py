"""Compares the violation of a user lock on real servers with a reference lock, in a simulation.

Some faults break every lock on such servers (hunt/search/inherent.py). A user who tests a lock of
their own has to know whether a client could have prevented the violation.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from fencepost.harness.errors import BadArguments
from fencepost.harness.judge.judge import Outcome, write_report
from fencepost.harness.results import results
from fencepost.harness.results.run_facts import learn
from fencepost.harness.spec import reference
from fencepost.harness.spec.simulation import setting_of
from fencepost.harness.spec.spec import Spec
from fencepost.hunt.faults.registry import SIMULATED, family_of, name_of, table
from fencepost.hunt.search.inherent import compared
from fencepost.runfiles import RESULTS


def compare(spec: Spec, outcome: Outcome) -> Outcome:
    """Write the comparison into the run's folder, if there is one, and return the outcome with
    it."""
    words = _words(spec, outcome)
    if not words:
        return outcome
    learn(outcome.folder, compared=words)
    outcome.results["compared"] = words
    results.write(outcome.folder / RESULTS, outcome.results)
    write_report(outcome.folder, found=outcome.results)
    return outcome


def _words(spec: Spec, outcome: Outcome) -> str:
    other = reference.of(spec)
    broken = [name for name, found in outcome.verdicts.items() if found.valid is False]
    if other is None or not broken:
        return ""
    hit = {(fault["family"], _is_client(fault)) for fault in outcome.results["faults"]}
    families = sorted({family for family, _ in hit} & set(SIMULATED))
    try:
        setting = setting_of(other, ",".join(families), None, False)
    except BadArguments:
        return ""  # no model of the servers, or of a fault on them
    checker = next((name for name in setting.goals if name in broken), "")
    names = {name_of(action) for action in table(setting)}
    used = {name for name in names if _was_met(name, names, hit)}
    if not checker or not used:
        return ""
    found = compared(setting, checker, used, spec.seed)
    words = found.sentence(reference.servers(spec))
    if found.inherent:
        words += " Leave these faults out of --nemesis to see the defects of the lock itself."
    return words


def _is_client(fault: Mapping[str, Any]) -> bool:
    return any(node.startswith("client-") for node in fault["targets"][:1])


def _was_met(name: str, names: Collection[str], hit: Collection[tuple[str, bool]]) -> bool:
    """Return whether the run had this fault. Of a family that hits servers or clients, each side
    has a name of its own."""
    family = family_of(name)
    if f"{family}:client" in names:
        return (family, name.endswith(":client")) in hit
    return any(one == family for one, _ in hit)
