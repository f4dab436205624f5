"""`fencepost.run`: a test called from Python, with the settings that the command line has."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from fencepost.harness.run import written
from fencepost.harness.run.judge import Outcome
from fencepost.harness.run.needs import cluster_for
from fencepost.harness.run.progress import Status
from fencepost.harness.run.run import run as carry_out


def run(
    lock: str,
    *,
    options: Mapping[str, Any] | None = None,
    schedule: Path | str | None = None,
    leave_up: bool = False,
    remote: str = "docker",
    hosts: Path | str | None = None,
    say: Callable[[str], None] = lambda text: None,
    progress: Callable[[Status], None] = lambda status: None,
    **settings: Any,
) -> Outcome:
    """Test a lock: bring its cluster up, run clients and faults, judge, and remove the cluster.

        outcome = fencepost.run("redlock", nemesis="partition,pause", time="30s", seed=7)
        assert outcome.valid is True, outcome.verdicts["lease_exclusion"].summary
        print(outcome.folder / "report.html")

    `settings` are those of `fencepost test --help`, named as there with `_` for `-`, written as
    there or as numbers and lists: `ttl="500ms"`, `failed_release="nothing"`, `nemesis=["pause"]`.
    Numbers for times are seconds. `options` are the lock's own (`fencepost locks redlock`).
    Results are written to results/ or where FENCEPOST_RESULTS says. `say` is told what is being
    set up, `progress` twice a second how the run goes.

    Returns the run's `valid` (True, False or "unknown"), `verdicts` by checker, and `folder`.

    Raises:
        BadArguments: a setting or an option makes no sense; nothing was started.
        Crashed, RemoteError: the cluster could not be brought up, or a node did not answer.
    """
    spec = written.spec(lock, options or {}, settings)
    spec, faults = written.scheduled(spec, Path(schedule) if schedule is not None else None)
    place = Path(hosts) if hosts is not None else None
    with cluster_for([spec], say, leave_up, remote, place) as cluster:
        return carry_out(spec, cluster, progress, schedule=faults)
