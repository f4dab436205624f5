"""What the charts draw beside the timeline's own tables: latencies, as plain tables.

The browser draws them in the timeline's view, so that both show the same span. Tokens are in the
timeline's tables already, with the holds and writes that carried them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fencepost.report.measures import QUANTILES, Answer, windows
from fencepost.report.timeline import table


def latencies(answers: Sequence[Answer], end_s: float) -> dict[str, Any]:
    """Each answer with its latency in µs, and quantiles of the granted ones over time."""
    return {
        "acquires": table(
            ("time", "latency", "what"),
            (
                (round(answer.time_s * 1e6), round(answer.latency_ms * 1000), answer.what)
                for answer in answers
            ),
        ),
        "quantiles": table(
            ("time", *(f"p{percent}" for percent in QUANTILES)),
            (
                (round(time_s * 1e6), *(round(ms * 1000) for ms in found))
                for time_s, found in windows(answers, end_s)
            ),
        ),
    }


def has_tokens(timeline: dict[str, Any]) -> bool:
    """Whether any grant or write of a timeline carried a token."""
    return any(
        row[timeline[name]["columns"].index("token")] is not None
        for name in ("holds", "writes")
        for row in timeline[name]["rows"]
    )
