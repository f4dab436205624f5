"""The bundle of a suite: schedules, timed runs, rates and costs, each with what is expected.

Each suite's file ends with its bundle, and registry.py lists ours.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from fencepost.workloads.scenarios.expectations import Expected
from fencepost.workloads.scenarios.scenario import Scenario


@dataclass(frozen=True)
class Rate:
    """What is counted of a timed run, over runs with so many seeds that follow one another.

    `of`: of all holds those that broke a promise (`violations`), or of all acknowledged updates
    those that are lost (`lost`; harness/campaigns/rate_counts.py). `published` is the
    published figure, as a sentence.
    """

    of: Literal["violations", "lost"]
    seeds: int = 3
    published: str = ""


@dataclass(frozen=True)
class TimedRun:
    """One entry of a suite that runs for a time, its faults (if any) drawn from the seed.

    `settings` are the run's by name (fencepost/settings.py). Where nothing is expected it explores,
    or a `rate` is counted: whatever it finds is a finding. `faults` are the schedule of its faults,
    as a file has it that `--schedule` names, where they are not drawn.
    """

    name: str
    what: str
    expected: Expected
    claim: str = "control"
    source: str = ""
    lock: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)
    guard: str = "none"
    settings: Mapping[str, Any] = field(default_factory=dict)
    faults: tuple[Mapping[str, Any], ...] = ()
    rate: Rate | None = None


@dataclass(frozen=True)
class Cost:
    """What locks cost without faults, against one Redis server (harness/campaigns/bench.py).

    Each of `locks` is measured for `time_s` a phase, and is expected to take longer than the one
    Redis server. `published` are the figures that somebody else has published, as a sentence.
    """

    name: str
    what: str
    claim: str
    source: str
    locks: tuple[str, ...]
    time_s: float
    published: str = ""


Entry = Scenario | TimedRun | Cost


@dataclass(frozen=True)
class Suite:
    """Scenarios and timed runs in the order in which they run.

    `lock` is that of every entry that names none.
    """

    name: str
    what: str
    lock: str
    entries: tuple[Entry, ...]

    @property
    def scenarios(self) -> list[Scenario]:
        return [entry for entry in self.entries if isinstance(entry, Scenario)]
