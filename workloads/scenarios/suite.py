"""The bundle of a suite: schedules and timed runs about one lock, each with what is expected.

Each suite's file ends with its bundle, and registry.py lists ours.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from fencepost.workloads.scenarios.expectations import Expected
from fencepost.workloads.scenarios.scenario import Scenario


@dataclass(frozen=True)
class TimedRun:
    """One entry of a suite that runs for a time, its faults (if any) drawn from the seed.

    `settings` are the run's by name (fencepost/settings.py). Where nothing is expected it explores:
    whatever it finds is a finding.
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


@dataclass(frozen=True)
class Suite:
    """Scenarios and timed runs in the order in which they run.

    `lock` is that of every entry that names none.
    """

    name: str
    what: str
    lock: str
    entries: tuple[Scenario | TimedRun, ...]

    @property
    def scenarios(self) -> list[Scenario]:
        return [entry for entry in self.entries if isinstance(entry, Scenario)]
