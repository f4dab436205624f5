"""The page of a campaign: counterexamples by minimal schedule, coverage, speed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from fencepost.report.pages import page


def render(folder: Path, values: dict[str, Any]) -> Path:
    """Write report.html into the folder of a campaign; return its path.

    `values`: lock, command, seeds, left, found, schedules, seconds, rate, states, covered, new,
    struck (by kind), coverage (hunt/search/coverage.py; empty without a schedule), inherent (seeds
    by faults and checker), failures (seed and reason), and groups: each with broken, strikes,
    seeds, story, drawing and the path of its report.
    """
    return page.write(folder / "report.html", "campaign.html", values)
