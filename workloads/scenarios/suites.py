"""The suites by name: scenarios, each against its published outcome."""

from __future__ import annotations

from workloads.scenarios import redlock
from workloads.scenarios.scenario import Scenario

SUITES: dict[str, tuple[Scenario, ...]] = {"redlock": redlock.SCENARIOS}
