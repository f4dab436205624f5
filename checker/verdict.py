"""A checker's verdict."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

Valid = Literal["unknown"] | bool

_RANK: dict[Valid, int] = {True: 0, "unknown": 1, False: 2}


@dataclass(frozen=True)
class Verdict:
    """`valid` true, false or "unknown"; `summary` one sentence; `evidence` its proof.

    Each piece of evidence has `what` (who, when, how long and why) and, where it applies,
    `time_ns`, `holds`, `ops` (indices), `cause` (cause.py) and numbers.
    """

    valid: Valid
    summary: str
    evidence: list[dict[str, Any]] = field(default_factory=list)
    details: dict[str, Any] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        return {
            "valid": self.valid,
            "summary": self.summary,
            "evidence": self.evidence,
        } | self.details


def noted(summary: str, untested: Sequence[str]) -> str:
    """Return the summary, followed by the untested properties."""
    return f"{summary} Not tested: {', '.join(untested)}." if untested else summary


def worst(verdicts: Iterable[Valid]) -> Valid:
    """Return the worst: false beats unknown beats true; nothing checked is unknown."""
    return max(verdicts, key=lambda valid: _RANK[valid], default="unknown")


def count(number: int, noun: str) -> str:
    """Return for example '1 write' or '2 writes'."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
