"""One run from start to end: servers, clients, faults, history.

However a run ends, the harness stops the processes that it started, heals the faults that it
injected, and keeps a history that can be judged. Each step of the cleanup is tried, even if the one
before it failed. Each failure becomes a note of the run, and a note makes the verdict unknown.
"""

from __future__ import annotations

import platform
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from fencepost import runfiles
from fencepost.harness import package
from fencepost.harness.clients.recorder import Recorder
from fencepost.harness.cluster import libraries
from fencepost.harness.cluster.cluster import Cluster
from fencepost.harness.errors import Crashed
from fencepost.harness.execute import lacking, timed
from fencepost.harness.execute.periodic import give_back, now_and_then, share_heaps
from fencepost.harness.execute.program_promises import adopt
from fencepost.harness.execute.progress import Live, Progress, logged
from fencepost.harness.execute.running import Running
from fencepost.harness.execute.site import RunSite
from fencepost.harness.execute.stage import NOT_CARRIED_OUT, NotAsScheduled, Stage
from fencepost.harness.execute.timed import Played
from fencepost.harness.interrupts import interruptible, undisturbed
from fencepost.harness.results import results
from fencepost.harness.results.run_facts import learn, now
from fencepost.harness.servers import crash_lines
from fencepost.harness.spec.spec import Spec, layout_of
from fencepost.nemesis.director import Director
from fencepost.nemesis.schedule import Scheduled
from fencepost.workloads.scenarios.scenario import Scenario


@dataclass(frozen=True)
class Ended:
    """How a run ended, before it is judged. `notes`: errors of the run itself.

    written: number of ops in its history. time_s: how long clients worked and faults came.
    `unhealed`: faults that could not be healed. `stopped`: the checker that stopped it early, if
    one did. `failure`: the error that ended it, if any, to be raised after the judgement. `spec`:
    its test, with the promises that its program named.
    """

    notes: list[str]
    written: int
    unhealed: list[str]
    time_s: float = 0.0
    stopped: str = ""
    failure: BaseException | None = None
    spec: Spec | None = None


def run_once(
    folder: Path,
    spec: Spec,
    cluster: Cluster,
    progress: Progress,
    schedule: list[Scheduled],
    scenario: Scenario | None = None,
    servers_run: bool = False,
    play: Callable[[Running], Played] | None = None,
    lacks: Mapping[str, Sequence[str]] | None = None,
) -> Ended:
    """Carry out a test and record it in `folder`. Raise nothing: `failure` has the error.

    `servers_run`: the servers run already, and keep their data. `play` replaces the clients' own
    work, and a scenario. `lacks`: the nodes that cannot have a fault, by FAMILY/VARIANT.
    """
    share_heaps()
    if spec.own is not None:
        spec = replace(spec, own=spec.own.kept(folder))
    locks = [lock for lock, _ in spec.locked]
    recorder = Recorder(folder / "history.jsonl", locks, spec.concurrency)
    site: RunSite | None = None
    director: Director | None = None
    notes: list[str] = []
    failure: BaseException | None = None
    played = Played()
    with undisturbed():
        try:
            with interruptible():
                versions = describe(folder, spec, schedule, cluster.versions)
                log = folder / "harness.log"
                with logged(log, progress) as tell, Live(recorder, tell) as live:
                    site = RunSite(spec, cluster, recorder)
                    live.director = director = _director(site, recorder, spec)
                    if lacks:
                        learn(folder, lacks=lacks)
                    live.say("starting servers" + (f" ({lacking.words(lacks)})" if lacks else ""))
                    began = site.resume if servers_run else site.prepare
                    versions |= began(live.say)
                    clocks = site.client_fleet.clocks()
                    lines = crash_lines.of_file(spec.foreign.kind if spec.foreign else None)
                    clocked = {"clocks": clocks} if clocks else {}
                    learn(folder, versions=versions, **clocked, **lines)
                    _start_clients(site, recorder, folder, live)
                    spec = adopt(folder, spec, site.client_fleet.workers)
                    running = Running(
                        spec,
                        site,
                        director,
                        recorder,
                        live.say,
                        notes.append,
                        live.follow,
                        lacks or {},
                    )
                    with now_and_then(site.server_fleet.shorten_logs, give_back):
                        played = _perform(running, play or _player(scenario, schedule))
                    if spec.segment and 0 < played.time_s < spec.time_s:  # full, or stopped
                        learn(folder, time_s=played.time_s)
                    notes += [*site.client_fleet.drifted(), *site.server_fleet.restarted()]
        except NotAsScheduled as error:
            notes.append(f"{NOT_CARRIED_OUT}: {error}")
        except BaseException as error:  # Ctrl-C too: the history so far is judged
            failure = error
            words = f"The run ended early: {type(error).__name__} {error}"
            notes.append(words.strip())
        notes += _put_away(folder, site, director, recorder)
    unhealed = director.unhealed if director is not None else []
    if failure is not None:
        _warn(unhealed)  # its results may never be read
    elif recorder.failure is not None:
        strerror = recorder.failure.strerror
        failure = Crashed(f"{recorder.path} could not be written: {strerror}")
    return Ended(notes, recorder.written, unhealed, played.time_s, played.stopped, failure, spec)


def _start_clients(site: RunSite, recorder: Recorder, folder: Path, live: Live) -> None:
    """Start the history and the clients; record when they began and were ready."""
    recorder.start()
    # Wall-clock time, like the times in servers' logs.
    began_unix_s = time.time()
    live.say("starting clients")
    site.client_fleet.start(live.say)
    learn(folder, began_unix_s=began_unix_s, ready_s=recorder.now() / 1e9)


def _director(site: RunSite, recorder: Recorder, spec: Spec) -> Director:
    def record(type: str, f: str, value: dict[str, Any], error: list[str] | None) -> None:
        recorder.op("nemesis", type, f, value, error)

    return Director(site, record, loses=layout_of(spec).loses)


def _player(scenario: Scenario | None, schedule: list[Scheduled]) -> Callable[[Running], Played]:
    def play(running: Running) -> Played:
        if scenario is None:
            return timed.play(running, schedule)
        Stage(scenario, running).perform()
        return Played()

    return play


def _perform(running: Running, play: Callable[[Running], Played]) -> Played:
    """Carry out ops and faults, then heal."""
    try:
        return play(running)
    finally:
        with undisturbed():
            running.director.heal_all()


def _put_away(
    folder: Path, site: RunSite | None, director: Director | None, recorder: Recorder
) -> list[str]:
    """Heal active faults, close clients, fetch logs, close the history.

    Return a sentence for each step that failed, and for each fault that could not be healed.
    """
    steps: list[tuple[str, Callable[[], None]]] = []
    failed: list[str] = []
    if director is not None:
        # Again: a signal may have come just before the first call.
        steps.append(("The faults could not be healed", director.heal_all))
    if site is not None:
        steps.append(("The clients could not be closed", site.client_fleet.close))
        steps.append(("Lost nodes could not be recorded", partial(_book_lost, site, recorder)))
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


def _book_lost(site: RunSite, recorder: Recorder) -> None:
    """Record a lost server as a fault of unknown start and effect, so that a lock that never came
    back is not counted against its service."""
    for node in site.server_fleet.lost():
        words = f"{node} no longer answers, and no fault of the run has caused that"
        value: dict[str, Any] = {
            "fault": f"lost-{node}",
            "phase": "start",
            "targets": [node],
            "arguments": {"words": words},
        }
        recorder.op("nemesis", "invoke", "lost-node", value)
        recorder.op("nemesis", "info", "lost-node", value, ["unproved", words])


def _warn(unhealed: list[str]) -> None:
    with suppress(OSError):  # the terminal may be closed
        for what in unhealed:
            print(f"fencepost: warning: this could not be healed: {what}", file=sys.stderr)


def _keep_logs(folder: Path, site: RunSite) -> None:
    for name, log in site.logs().items():
        place = folder / "nodes" / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(log)


def describe(
    folder: Path, spec: Spec, schedule: list[Scheduled] | None, cluster: dict[str, str]
) -> dict[str, str]:
    """Write test.json and begin run.json; return the versions known so far.

    Without a `schedule`, leave it out of test.json: each segment of a long run has its own.
    """
    faults = {} if schedule is None else {"schedule": [fault.to_json() for fault in schedule]}
    results.write(folder / runfiles.TEST, spec.to_json() | faults)
    versions = {
        "fencepost": package.version(),
        "python": sys.version.split()[0],
        "kernel": platform.release(),
        **cluster,
    }
    if spec.lock_type.library:
        versions[spec.lock_type.library] = libraries.version(spec.lock_type.library)
    learn(folder, started=now(), versions=versions)
    return versions
