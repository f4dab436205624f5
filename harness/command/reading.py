"""`fencepost analyze` and `fencepost report`: a run that is over, judged or shown again."""

from __future__ import annotations

from fencepost.harness.command import screen
from fencepost.harness.command.exits import EXIT
from fencepost.harness.command.options import Run
from fencepost.harness.run.results import find


def analyze(run: Run) -> int:
    from fencepost.harness.run.judge import judge

    outcome = judge(find(run))
    screen.verdict(outcome)
    return EXIT[outcome.valid]


def report(run: Run) -> None:
    from fencepost.harness.run.judge import write_report

    screen.write(str(write_report(find(run))))
