"""Checks that the evidence of a scenario's violation names the cause declared by the scenario."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fencepost.checker.verdict import Verdict
from fencepost.workloads.scenarios.scenario import Inject, Scenario, plain

NAMING = ("lease_exclusion", "mutual_exclusion", "resource")
"""The checkers whose evidence explains an overlap, or a write without the lock."""


def unnamed(scenario: Scenario, verdicts: Mapping[str, Verdict]) -> list[str]:
    """Return the checkers that should say no, did, and whose first evidence names another cause, or
    none; each with its evidence, in a sentence."""
    found = []
    for name in NAMING:
        verdict = verdicts.get(name)
        if scenario.expected.get(name) is not False or verdict is None or not verdict.evidence:
            continue
        piece = verdict.evidence[0]
        if not any(_names(scenario, link) for link in piece.get("cause", ())):
            known = " or ".join(causes(scenario))
            found.append(f"{name} should name {known}, but reports: {piece['what']}")
    return found


def causes(scenario: Scenario) -> tuple[str, ...]:
    """Return the faults that break the lock, or the sorts of cause (checker/why/link.py)."""
    if scenario.causes:
        return scenario.causes
    # A partition by itself breaks no lock: it only limits which servers a client can ask.
    faults = [step.name for step in _faults(scenario) if step.family != "partition"]
    if len(faults) != 1:
        raise ValueError(f"{scenario.name}: declare its causes: one of its faults, or a sort")
    return tuple(faults)


def _names(scenario: Scenario, link: Mapping[str, Any]) -> bool:
    known = causes(scenario)
    if link["sort"] in known:
        return True
    return any(
        link.get("family") == step.family and set(step.targets) & set(link.get("nodes", ()))
        for step in _faults(scenario)
        if step.name in known
    )


def _faults(scenario: Scenario) -> list[Inject]:
    return [step for step in map(plain, scenario.steps) if isinstance(step, Inject)]
