"""Rows of matrix.json, for tests of pages and tables."""

from __future__ import annotations

from typing import Any

from fencepost.nemesis.families import columns

QUESTIONS = ("service", "clients", "data")
COLUMNS = {one.entry: {"title": one.title, "sentence": one.sentence} for one in columns()}
"""What a matrix tells of its columns."""


def run(holds: int = 1000, **more: Any) -> dict[str, Any]:
    """Return a run without violations, with this number of grants in ten seconds."""
    checkers = {"faults": True, "lease_exclusion": True, "mutual_exclusion": True, "liveness": True,
                "resource": True}  # fmt: skip
    return {
        "round": 1,
        "seed": 7,
        "run": "../../matrix-redis/20260102T030405.000000Z",
        "valid": True,
        "checkers": checkers | more.pop("checkers", {}),
        "service": {"lease_exclusion": True, "liveness": True} | more.pop("service", {}),
        "questions": dict.fromkeys(QUESTIONS, True) | more.pop("questions", {}),
        "holds": holds,
        "granted": holds,
        "work_s": 10.0,
        "violations": dict.fromkeys(QUESTIONS, 0) | more.pop("violations", {}),
        "first_s": dict.fromkeys(QUESTIONS) | more.pop("first_s", {}),
        "longest_s": 0.5,
        "longest_calm_s": 0.2,
        "faults": 3,
    } | more


def led(reigns: int = 9, overlaps: int = 0, **more: Any) -> dict[str, Any]:
    """Return the figures of an election without overlaps (harness/campaigns/tally.py)."""
    return {
        "reigns": reigns,
        "overlaps": overlaps,
        "overlap_longest_s": 0.0,
        "overlap_total_s": 0.0,
        "clock_error_s": 0.0,
        "without_leader_s": 1.5,
        "changes_without_cause": 0,
        "beats_after_stopped": 0,
        "took_s": {"resign": [0.5]},
    } | more


def violated(question: str, count: int, first_s: float = 2.0, **more: Any) -> dict[str, Any]:
    """Return a run in which this number of holds violated one question."""
    judges = {"service": "lease_exclusion", "clients": "mutual_exclusion", "data": "resource"}
    wrong = {judges[question]: False}
    service = {"service": wrong} if question == "service" else {}
    return run(
        valid=False,
        checkers=wrong,
        questions={question: False},
        violations={question: count},
        first_s={question: first_s},
        **service,
        **more,
    )


def cell(
    *runs: dict[str, Any], lock: str = "redis", fault: str = "none", guard: str = "none",
    reason: str = "",
) -> dict[str, Any]:  # fmt: skip
    return {
        "lock": lock,
        "fault": fault,
        "guard": guard,
        "nemesis": [] if fault == "none" else [fault],
        "ttl_ms": None if reason else 2000,
        "options": {},
        "reason": reason,
        "runs": list(runs),
    }


def stored(*cells: dict[str, Any]) -> dict[str, Any]:
    """Return the content of a matrix.json."""

    def names(of: str) -> list[str]:
        return list(dict.fromkeys(row[of] for row in cells))

    return {
        "schema": 1,
        "plan": {
            "locks": names("lock"), "faults": names("fault"), "guards": names("guard"),
            "seed": 7, "time_s": 10.0, "ttl_ms": 2000, "columns": COLUMNS,
        },
        "versions": {"redis": {"redis-1": "7.0.15", "python": "3.11"}},
        "cells": list(cells),
    }  # fmt: skip
