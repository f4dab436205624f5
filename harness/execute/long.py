"""A long run: segment after segment on the same servers, each like a short run.

A history of many hours cannot be judged or shown as a whole in reasonable time and memory. So the
run is cut into segments, as Jepsen cuts its long histories into keys. Between segments, servers
keep running with their data, faults are healed, clients restart, and lock and resource get new
names. A separate process (harness/judge/judge_process.py) judges each segment during the next one.
The run's results.json and its page always have the sum of the judged segments
(harness/judge/segments.py).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from fencepost.harness.cluster.cluster import Cluster
from fencepost.harness.cluster.healing import heal
from fencepost.harness.errors import Crashed
from fencepost.harness.execute import lacking
from fencepost.harness.execute.interrupted import must_have_ended
from fencepost.harness.execute.program_promises import write
from fencepost.harness.execute.progress import Progress, Status
from fencepost.harness.execute.run_once import Ended, describe, run_once
from fencepost.harness.interrupts import undisturbed
from fencepost.harness.judge import segments
from fencepost.harness.judge.judge import Outcome
from fencepost.harness.judge.judge_process import Judging
from fencepost.harness.locked import locked
from fencepost.harness.remote.remote import RemoteError
from fencepost.harness.results import results
from fencepost.harness.spec.spec import Spec, schedule_of

_REST = 0.02
"""The minimum length of a segment; a shorter rest of a run becomes part of the last one."""


def is_long(spec: Spec) -> bool:
    """Return whether this run is cut into segments."""
    return spec.time_s > 1.5 * spec.segment_s


def run(spec: Spec, cluster: Cluster, progress: Progress) -> Outcome:
    """Carry out a long run on a cluster that is up, and judge its segments.

    It ends with the first segment that fails or that `until` stops. If a segment leaves a fault
    unhealed, the nodes are healed again, and the servers restart, as in a new run.

    Raises:
        Interrupted, Crashed, RemoteError: as for a short run.
    """
    lacks = lacking.ask(spec, cluster)
    folder = results.create(spec.name)
    (folder / results.SEGMENTS).mkdir()
    if spec.own is not None:
        spec = replace(spec, own=spec.own.kept(folder))
    with undisturbed(), locked(folder / results.SEGMENTS):
        describe(folder, spec, None, cluster.versions)
        found = segments.Sum(folder, spec.time_s)
        failure: BaseException | None = None
        with Judging(found.add) as judging:
            try:
                for part, ended in _parts(spec, folder, cluster, progress, lacks):
                    _as_named(folder, spec, ended.spec)
                    judging.begin(results.segment(folder, part.segment), ended.notes, ended.written)
                    failure = ended.failure
                    if failure is not None:
                        break
                    if spec.until and judging.stops(spec.to_json()):
                        break
            except (Crashed, RemoteError) as error:  # the next segment cannot start
                failure = error
            if failure is not None:
                found.notes.append(f"The run ended early: {failure}".rstrip(": "))
        outcome = found.write(live=False)
        must_have_ended(failure, outcome)
        return outcome


def _as_named(folder: Path, spec: Spec, ended: Spec | None) -> None:
    """Write the promises that the clients' program named in a segment to the test of the run."""
    if spec.own and ended and ended.own and ended.own.promises != spec.own.promises:
        write(folder, replace(spec, own=replace(spec.own, promises=ended.own.promises)))


def _parts(
    spec: Spec,
    folder: Path,
    cluster: Cluster,
    progress: Progress,
    lacks: Mapping[str, Sequence[str]],
) -> Iterator[tuple[Spec, Ended]]:
    """Yield each segment once it has ended."""
    many = max(1, round(spec.time_s / spec.segment_s))
    gone_s, number = 0.0, 0
    unhealed: list[str] = []
    while spec.time_s - gone_s > _REST * spec.segment_s:
        number += 1
        part = segment(spec, number, min(spec.time_s / many, spec.time_s - gone_s))
        place = results.segment(folder, number)
        place.mkdir()
        shown = _shown(progress, f"segment {number}, {gone_s:.0f} of {spec.time_s:.0f} s done")
        if unhealed:
            heal(cluster, cluster.nodes)  # or Crashed, naming the nodes that could not be healed
        servers_run = number > 1 and not unhealed
        schedule = schedule_of(part, lacks)
        ended = run_once(
            place, part, cluster, shown, schedule, servers_run=servers_run, lacks=lacks
        )
        unhealed = ended.unhealed
        gone_s += ended.time_s
        yield part, ended


def segment(spec: Spec, number: int, time_s: float) -> Spec:
    """Return a segment of a long run, from 1. Its seed derives from the run's."""
    return replace(spec, segment=number, seed=spec.seed + number - 1, time_s=time_s)


def _shown(progress: Progress, done: str) -> Progress:
    def tell(status: Status) -> None:
        progress(replace(status, phase=f"{done}: {status.phase}"))

    return tell
