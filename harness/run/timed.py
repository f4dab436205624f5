"""A timed run: clients work on their own while a schedule of faults is carried out.

Then everything is healed, and the run goes on until each lock was granted once more. A lock that is
not granted within its bound is a violation of liveness, so the run has to wait for that long.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from fencepost.harness.run.early_stop import EarlyStop
from fencepost.harness.run.recorder import Recorder
from fencepost.harness.run.running import Running
from fencepost.harness.run.spec import Spec
from fencepost.harness.run.worker import Worker
from fencepost.nemesis.schedule import Scheduled

_LOOK_S = 0.05
# Added to the bound of liveness: until a grant at its very end is recorded, until a client has
# left its critical section, and until a client ends that cannot be told to.
_MARGIN_S, _REST_S, _UNTOLD_S = 0.5, 10.0, 60.0
_READ_S = 30.0


def play(running: Running, schedule: Sequence[Scheduled]) -> None:
    """Let the clients work, inject the faults, heal them, wait for grants, and read a last time.

    Raises:
        OSError: the history could not be written.
    """
    spec, site, recorder = running.spec, running.site, running.recorder
    bound_s = spec.ttl_ms / 1000 + spec.liveness_bound_s
    until_ns = recorder.now() + int((spec.time_s + bound_s + _UNTOLD_S) * 1e9)
    running.say("running")
    for worker in site.workers:
        worker.work(client_settings(spec), until_ns)
    if seen := _strike(running, schedule):
        running.say(f"{seen} is violated; stopping")
    if recorder.failure is not None:
        raise recorder.failure
    running.say("healed; recovering")
    await_grants(spec, recorder, bound_s + _MARGIN_S)
    running.say("stopping clients")
    rested = []
    for worker in site.workers:
        if worker.rest(bound_s + _REST_S):
            rested.append(worker)
        else:
            running.note(f"{worker.node} did not come to rest: {worker.describe()}.")
    if rested:
        # Any other takes no op.
        read_all(spec, rested[-1])


def _strike(running: Running, schedule: Sequence[Scheduled]) -> str:
    """Carry out the schedule until the time is up or a checker finds a violation; which one."""
    end = time.monotonic() + running.spec.time_s
    with _early_stop(running.spec, running.recorder) as early:

        def over() -> bool:
            late = time.monotonic() > end or running.recorder.failure is not None
            return late or bool(early and early.seen)

        running.director.run(schedule, over)
        while not over():
            time.sleep(_LOOK_S)
    return early.seen if early else ""


def _early_stop(spec: Spec, recorder: Recorder) -> AbstractContextManager[EarlyStop | None]:
    if not spec.until:
        return nullcontext()
    return EarlyStop(recorder.path, spec.to_json())


def client_settings(spec: Spec) -> dict[str, Any]:
    """What the clients' generators are told (workloads/critical_section.py)."""
    settings: dict[str, Any] = {
        "ttl_ns": spec.ttl_ms * 1_000_000,
        "shared": spec.shared,
        "locks": spec.locks,
    }
    if not spec.lock_type.extends:
        settings["extend"] = 0
    return settings | dict(spec.work)


def await_grants(spec: Spec, recorder: Recorder, timeout_s: float) -> None:
    """Wait until every lock was granted once more, or the time is up."""
    before = {lock: recorder.grants_of(lock) for lock, _ in spec.locked}
    end = time.monotonic() + timeout_s
    while time.monotonic() < end and any(
        recorder.grants_of(lock) <= count for lock, count in before.items()
    ):
        time.sleep(_LOOK_S)


def read_all(spec: Spec, worker: Worker) -> None:
    """Read every resource a last time, so that lost writes are seen."""
    for _, resource in spec.locked:
        if worker.do("read", {"resource": resource}, _READ_S) is None:
            return  # it does not answer, and takes no other op before that
