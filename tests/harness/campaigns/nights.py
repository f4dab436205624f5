"""Nightly runs whose stages are no processes, and the folders that those would leave."""

from __future__ import annotations

from fencepost.harness.campaigns import nightly, outcomes, suite
from fencepost.harness.results import results


def scenario(name, as_expected=True, why="", **more):
    expected = {"resource": False}
    return {
        "test": name, "run": f"../../{name}/20260102T030405.000000Z", "scenario": name,
        "lock": "redis", "guard": "none", "expected": expected,
        "observed": expected if as_expected else {"resource": True},
        "as_expected": as_expected, "why": why, **more,
    }  # fmt: skip


def suite_of(*rows):
    folder = results.create("suite-redis")
    results.write(folder / "suite.json", list(rows))
    return outcomes.of_suite(folder)


class Parts:
    """Replaces the processes: each ends with its code, and leaves its folder."""

    def __init__(self, codes=None, up=()):
        self.ran, self.codes, self.up = [], codes or {}, up

    def __call__(self, words, limit_s):
        self.ran.append((words, limit_s))
        name = words[0]
        if name == "suite" and name not in self.codes:
            names = words[1 : words.index("--seed")]
            every = [item.spec.name for one in names for item in suite.entries(one, 7)]
            suite_of(*map(scenario, ["redis-control-none"] if "suite" in self.up else every))
        return self.codes.get(name, 0), name in self.up


def night(parts, budget_s=600.0, known=None):
    folder, made = nightly.begin(7, budget_s)
    nightly.carry_out(folder, made, known or {}, parts, lambda words: None)
    return folder, made
