"""An executor on which nothing runs: clusters and runs are noted."""

from __future__ import annotations

from contextlib import contextmanager

from fencepost.checker.verdict import Verdict
from fencepost.harness.campaigns import engine
from fencepost.harness.campaigns.item import UP_S
from fencepost.harness.judge.judge import Outcome
from fencepost.harness.results import results


class Places:
    """`ups`: the kinds of servers of each cluster; `ran`: (lock, nemesis, guard, seed, cluster) of
    each run. `fails`: what the nth run raises; `notes`: its run_notes."""

    def __init__(self, lanes=1):
        self.lanes, self.up_s = lanes, UP_S
        self.ups, self.downs, self.ran, self.schedules = [], 0, [], []
        self.fails, self.notes, self.stopped = {}, {}, False
        self.said = []

    @contextmanager
    def place(self, items):
        self.ups.append(sorted({spec.lock_type.kind for item in items for spec in item.specs}))
        cluster = f"cluster {len(self.ups)}"
        try:
            yield lambda item: self.run(item, cluster)
        finally:
            self.downs += 1

    def run(self, item, cluster):
        spec = item.spec
        self.ran.append((spec.lock, spec.nemesis, spec.guard, spec.seed, cluster))
        self.schedules.append(item.schedule)
        if error := self.fails.get(len(self.ran)):
            raise error
        run = results.create(spec.name)
        results.write(run / "test.json", {"versions": {"server": "1.0"}})
        notes = self.notes.get(len(self.ran), [])
        return Outcome(run, True, {"faults": Verdict(True, "")}, {"run_notes": notes})

    def stop(self):
        self.stopped = True

    def carry_out(self, campaign, most=1, budget_s=None, say=None):
        self.said = []
        return engine.carry_out(
            [campaign], self, say or (lambda _, line: self.said.append(line)), most, budget_s
        )


def counted(outcome):
    """What is counted of a run in which nothing was broken (tally.py)."""
    return {
        "valid": True,
        "checkers": {"lease_exclusion": True},
        "service": {"lease_exclusion": True},
        "questions": {"service": True, "clients": True, "data": True},
        "holds": 100,
        "granted": 100,
        "work_s": 10.0,
        "violations": {"service": 0, "clients": 0, "data": 0},
        "first_s": {"service": None, "clients": None, "data": None},
        "longest_s": 0.5,
        "longest_calm_s": 0.2,
        "faults": 1,
    }
