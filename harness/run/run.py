"""One run from start to end: servers, clients, faults, history, verdict, report.

However a run ends, what was started is stopped, what was injected is healed, and what was seen is
judged. Each step of the cleanup is tried, even if the one before it failed. What failed becomes a
note of the run, and a note makes the verdict unknown.
"""

from __future__ import annotations

import platform
import sys
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from fencepost.harness.cluster import libraries
from fencepost.harness.cluster.cluster import Cluster
from fencepost.harness.errors import Crashed
from fencepost.harness.interrupts import interruptible, undisturbed
from fencepost.harness.run import results, timed
from fencepost.harness.run.chores import give_back, now_and_then, share_heaps
from fencepost.harness.run.judge import Outcome, judge
from fencepost.harness.run.progress import Live, Progress, logged
from fencepost.harness.run.recorder import Recorder
from fencepost.harness.run.running import Running
from fencepost.harness.run.site import RunSite
from fencepost.harness.run.spec import Spec, layout_of
from fencepost.harness.run.stage import NotAsScheduled, Stage
from fencepost.nemesis.director import Director
from fencepost.nemesis.schedule import Scheduled, draw
from fencepost.workloads.scenarios.scenario import Scenario


def run(
    spec: Spec,
    cluster: Cluster,
    progress: Progress,
    scenario: Scenario | None = None,
    schedule: list[Scheduled] | None = None,
) -> Outcome:
    """Carry out a test on a cluster that is up, and judge it.

    Without a schedule, the faults are drawn from the seed. The history is sorted and judged even if
    the run was interrupted or crashed; the run's error is raised after that.

    Raises:
        Crashed: a server or a client did not come up, or the history could not be written.
        RemoteError: a node did not answer while it was set up.
    """
    if schedule is None:
        schedule = [] if scenario else schedule_of(spec)
    share_heaps()
    folder = results.create(spec.name)
    locks = [lock for lock, _ in spec.locked]
    recorder = Recorder(folder / "history.jsonl", locks, spec.concurrency)
    site: RunSite | None = None
    director: Director | None = None
    notes: list[str] = []
    failure: BaseException | None = None
    with undisturbed():
        try:
            with interruptible():
                test = _describe(spec, schedule, cluster.versions)
                results.write(folder / "test.json", test)
                log = folder / "harness.log"
                with logged(log, progress) as tell, Live(recorder, tell) as live:
                    site = RunSite(spec, cluster, recorder)
                    live.director = director = _director(site, recorder)
                    _set_up(site, recorder, folder, test, live)
                    del test  # a night's schedule is in it
                    running = Running(spec, site, director, recorder, live.say, notes.append)
                    with now_and_then(site.shorten_logs, give_back):
                        _carry_out(running, scenario, schedule)
                    notes += site.drifted()
        except NotAsScheduled as error:
            notes.append(f"The schedule was not carried out: {error}")
        except BaseException as error:  # Ctrl-C too: what was seen is judged
            failure = error
            words = f"The run ended before it was over: {type(error).__name__} {error}"
            notes.append(words.strip())
        notes += _put_away(folder, site, director, recorder)
        if failure is not None and director is not None:
            _warn(director.unhealed)  # whoever ended it may never look at the results
        return _judged(folder, notes, recorder, failure)


def schedule_of(spec: Spec) -> list[Scheduled]:
    """The faults of a timed run, from its seed."""
    return draw(spec.nemesis, spec.seed, spec.time_s, spec.interval_s, layout_of(spec))


def _set_up(
    site: RunSite, recorder: Recorder, folder: Path, test: dict[str, Any], live: Live
) -> None:
    """Start servers, then clients; write versions and clocks into test.json."""
    live.say("starting servers")
    test["versions"] |= site.prepare(live.say)
    if clocks := site.clocks():
        test["clocks"] = clocks
    results.write(folder / "test.json", test)
    recorder.start()
    live.say("starting clients")
    site.start_clients(live.say)


def _director(site: RunSite, recorder: Recorder) -> Director:
    def record(type: str, f: str, value: dict[str, Any], error: list[str] | None) -> None:
        recorder.op("nemesis", type, f, value, error)

    return Director(site, record)


def _carry_out(running: Running, scenario: Scenario | None, schedule: list[Scheduled]) -> None:
    try:
        if scenario is None:
            timed.play(running, schedule)
        else:
            Stage(scenario, running).perform()
    finally:
        with undisturbed():
            running.director.heal_all()


def _put_away(
    folder: Path, site: RunSite | None, director: Director | None, recorder: Recorder
) -> list[str]:
    """Heal what is on, close clients, fetch logs, close the history.

    Returns a sentence for each step that failed, and for each fault that could not be healed.
    """
    steps: list[tuple[str, Callable[[], None]]] = []
    failed: list[str] = []
    if director is not None:
        # Once more: a signal may have come just before it was the first time.
        steps.append(("The faults could not be healed", director.heal_all))
    if site is not None:
        steps.append(("The clients could not be closed", site.close_clients))
        fetch = partial(_keep_logs, folder, site)
        steps.append(("The nodes' logs could not be fetched", fetch))
    steps.append(("The history could not be closed", recorder.close))
    for words, step in steps:
        try:
            step()
        except Exception as error:  # the next step is tried in any case
            failed.append(f"{words}: {error}")
    if recorder.failure is not None:
        failed.append(f"The history is not complete: {recorder.failure.strerror}.")
    if director is not None:
        failed += [f"This could not be healed: {what}." for what in director.unhealed]
    return failed


def _warn(unhealed: list[str]) -> None:
    with suppress(OSError):  # its terminal may be gone
        for what in unhealed:
            print(f"fencepost: warning: this could not be healed: {what}", file=sys.stderr)


def _judged(
    folder: Path, notes: list[str], recorder: Recorder, failure: BaseException | None
) -> Outcome:
    """Judge what was recorded; then raise the error that ended the run early, if one did."""
    try:
        outcome = judge(folder, notes, recorder.written)
    except Exception as error:
        # A person has to know what went wrong first.
        raise failure or error from error
    if failure is not None:
        raise failure
    if recorder.failure is not None:
        raise Crashed(f"{recorder.path} could not be written: {recorder.failure.strerror}")
    return outcome


def _keep_logs(folder: Path, site: RunSite) -> None:
    for name, log in site.logs().items():
        place = folder / "nodes" / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(log)


def _describe(spec: Spec, schedule: list[Scheduled], cluster: dict[str, str]) -> dict[str, Any]:
    try:
        ours = version("fencepost")
    except PackageNotFoundError:
        ours = "not installed"
    versions = {
        "fencepost": ours,
        "python": sys.version.split()[0],
        "kernel": platform.release(),
        **cluster,
    }
    if spec.lock_type.library:
        versions[spec.lock_type.library] = libraries.version(spec.lock_type.library)
    return spec.to_json() | {
        "schedule": [fault.to_json() for fault in schedule],
        "versions": versions,
        "started": datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z"),
    }
