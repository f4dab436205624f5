"""Carries out a test on a cluster that is up, judges it and stores it."""

from __future__ import annotations

from pathlib import Path

from fencepost.harness.cluster.cluster import Cluster
from fencepost.harness.execute import lacking, long
from fencepost.harness.execute.compared import compare
from fencepost.harness.execute.interrupted import must_have_ended
from fencepost.harness.execute.progress import Progress
from fencepost.harness.execute.run_once import Ended, run_once
from fencepost.harness.interrupts import undisturbed
from fencepost.harness.judge.judge import Outcome, judge
from fencepost.harness.locked import locked
from fencepost.harness.results import results
from fencepost.harness.spec.spec import Spec, schedule_of
from fencepost.nemesis.schedule import Scheduled
from fencepost.workloads.scenarios.scenario import Scenario


def run(
    spec: Spec,
    cluster: Cluster,
    progress: Progress,
    scenario: Scenario | None = None,
    schedule: list[Scheduled] | None = None,
) -> Outcome:
    """Carry out a test on a cluster that is up, and judge it.

    Without a schedule, the faults are drawn from the seed, and a long run is cut into segments
    (long.py). The history is sorted and judged even if the run was interrupted or crashed; the
    run's error is raised after that.

    Raises:
        Interrupted: it was interrupted, and its history is judged.
        Crashed: a server or a client did not start, or the history could not be written.
        RemoteError: a node did not answer while it was set up.
    """
    if schedule is None and scenario is None and long.is_long(spec):
        return long.run(spec, cluster, progress)
    lacks = lacking.ask(spec, cluster, schedule or ())
    if schedule is None:
        schedule = [] if scenario else schedule_of(spec, lacks)
    folder = results.create(spec.name)
    with undisturbed(), locked(folder):
        ended = run_once(folder, spec, cluster, progress, schedule, scenario, lacks=lacks)
        return compare(ended.spec or spec, _judged(folder, ended))


def _judged(folder: Path, ended: Ended) -> Outcome:
    """Judge the recorded history; then raise the error that ended the run early, if one did."""
    try:
        outcome = judge(folder, ended.notes, ended.written)
    except Exception as error:
        # The first error is the one that matters.
        raise ended.failure or error from error
    must_have_ended(ended.failure, outcome)
    return outcome
