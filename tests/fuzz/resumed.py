"""Campaigns to resume: sound ones of each kind, in one file, and the command that reads them.

The file has campaign.json in its first line and campaign.jsonl in the others. No item runs: there
are no servers, and simulations take too long.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

from fencepost.harness.campaigns import costs, defects, hunts, matrix, suite, sweep, track_record
from fencepost.harness.campaigns.campaign import Campaign
from fencepost.harness.campaigns.executors import Execute
from fencepost.harness.campaigns.item import Item, Plan
from fencepost.harness.errors import Crashed
from fencepost.report.campaign_files import ASKED, LINES
from tests.report import matrices

_PLACES = (
    "command.campaign.Clusters", "command.hunt_campaign.Processes", "campaigns.defects.Processes",
)  # fmt: skip

_RATES = ("one-redis-kill", "costs")


def plans() -> dict[str, tuple[str, Plan, list[dict[str, Any]]]]:
    """Return the words of each command, its plan, and the results of the first rows."""
    figures = {"pair_p50": 1.0, "acquire_p50": 1.0, "acquire_p99": 2.0, "rate": 100.0}
    measured = {"phases": dict.fromkeys(("alone", "contended", "apart"), figures),
                "trips": {"acquire": 1, "release": 1}}  # fmt: skip
    played = {"found": True, "tried": 3, "seconds": 1.0, "accused": [], "lacks": [], "cannot": ""}
    seen = {"outcome": "seen", "said": "words", "date": "2026-01-01"}
    cost = {"lock": "redis", "ms": 1.0, "trips": 2, "rate": 100.0}
    dear = {"observed": {}, "cost": {"locks": [cost, cost], "published": "p"}, "as_expected": True,
             "why": ""}  # fmt: skip
    counted = {"counts": {"data": [1, 9]}}
    ended = {"observed": {"resource": True}, "as_expected": True, "carried_out": True, "why": ""}
    nothing = {"schedules": 9, "seconds": 1.0, "struck": {"kill": 1}, "covered": [["kill", "rest"]],
               "states": [1, 2], "failure": ""}  # fmt: skip
    broken = nothing | {
        "schedule": [0] * 89 + [1, 2, 3],
        "broken": ["mutual_exclusion"],
        "strikes": 0,
        "story": [],
    }
    hunted = hunts.plan("redlock", {"options": {}, "settings": {"seed": "7"}, "faults": "clock"}, 3)
    swept = sweep.plan("redlock", "ttl=1s..4s", "pause=0.5s..2s", 7, "2x2")
    run, crashed = matrices.run(), {"crashed": "why"}
    return {
        "matrix": ("matrix", matrix.plan(["redis"], ["none", "kill"], ["none"], 7, 5.0),
                   [run, crashed]),
        "sweep": ("sweep", swept, [run, matrices.violated("data", 3), crashed]),
        "suite": ("suite", suite.Plan("redlock", 7, only=("clock-jump",)), [ended, crashed]),
        "suite of rates": ("suite", suite.Plan("rates", 7, seeds=2, only=_RATES),
                           [counted, counted | {"why": "no proof"}, dear]),
        "defects": ("defects", defects.Plan(7, ("release-without-owner-check",), seeds=1),
                    [played] * 6),
        "track record": ("track-record", track_record.Plan(7, ("redis-py",)), [seen]),
        "bench": ("bench", costs.plan(("redlock",), 1.0, 7), [measured, crashed]),
        "hunt": ("hunt redlock", hunted, [nothing, broken]),
    }  # fmt: skip


def sound(plan: Plan, results: Sequence[dict[str, Any]]) -> bytes:
    """Return the file of a campaign whose first rows have these results."""
    made = Campaign(plan)
    lines: list[dict[str, Any]] = [
        {"row": item.row, "number": item.number, "seed": item.seed, "run": "../../a/b",
         "versions": {"redis": "7"}} | found
        for item, found in zip((*plan.items(1), *plan.items(2)), results, strict=False)
    ]  # fmt: skip
    return "".join(json.dumps(one) + "\n" for one in (made.stored().to_json(), *lines)).encode()


def store(kind: str, content: bytes) -> None:
    folder = Path("results", kind, "20260101T000000.000001Z")
    folder.mkdir(parents=True)
    asked, _, lines = content.partition(b"\n")
    (folder / ASKED).write_bytes(asked)
    (folder / LINES).write_bytes(lines)


class _Nowhere:
    """Executes nothing: each item crashes."""

    lanes, up_s = 1, 0.0

    def __init__(self, *arguments: object) -> None:
        pass

    @contextmanager
    def place(self, items: Sequence[Item]) -> Iterator[Execute]:
        yield _crash

    def stop(self) -> None:
        pass

    def close(self) -> None:
        pass


def _crash(item: Item) -> Any:
    raise Crashed("nothing runs here")


@contextmanager
def nothing_runs() -> Iterator[None]:
    with (
        patch(f"fencepost.harness.{_PLACES[0]}", _Nowhere),
        patch(f"fencepost.harness.{_PLACES[1]}", _Nowhere),
        patch(f"fencepost.harness.{_PLACES[2]}", _Nowhere),
    ):
        yield
