"""A timed run: clients work on their own while a schedule of faults is carried out.

Then everything is healed, and the run continues until each lock was granted again. A lock that is
not granted within its bound is a violation of liveness, so the run has to wait that long.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from typing import Any

from fencepost.harness.clients.current_holders import Held
from fencepost.harness.clients.recorder import Recorder
from fencepost.harness.clients.worker import Worker
from fencepost.harness.errors import Crashed
from fencepost.harness.execute.client_fleet import ClientFleet
from fencepost.harness.execute.running import Running
from fencepost.harness.execute.site import RunSite
from fencepost.harness.judge.live_check import EVERY_S, LiveVerdict
from fencepost.harness.results.run_facts import learn
from fencepost.harness.spec.spec import Spec, layout_of, work_of
from fencepost.nemesis.aim import Aim
from fencepost.nemesis.failpoints import EXTENDING
from fencepost.nemesis.schedule import Scheduled
from fencepost.nemesis.targets import Layout
from fencepost.settings import SETTINGS

_LOOK_S = 0.05
# Added to the bound of liveness: time until a grant at its very end is recorded, until a client has
# left its critical section, and until a client ends that does not react to orders.
_MARGIN_S, _REST_S, _UNTOLD_S = 0.5, 10.0, 60.0
_REIGNS, _AIMED_REIGNS = (0.5, 6), (4, 12)
"""The shortest and the longest reign, in leases; a lock's default is shorter. With --aim the faults
end reigns. A leader that stepped down during one, before the next leader comes, would hide what it
does to its work."""
_AGAIN = 0.3  # how often a holder of a reentrant lock acquires it a second time
_READ_S = 30.0
# A shorter run ends before the first look.
WHILE_S = 30.0


MOST_EVENTS = 250_000
"""A segment of a long run ends after this many ops, so that judging it takes seconds."""


@dataclass(frozen=True)
class Played:
    """How long the clients worked and faults came (s), and the checker whose violation stopped it
    ('' if none did)."""

    time_s: float = 0.0
    stopped: str = ""


def play(running: Running, schedule: Sequence[Scheduled]) -> Played:
    """Let the clients work, inject the faults, heal them, wait for grants, and do the final reads.

    Raises:
        OSError: the history could not be written.
        Crashed: a client reported a mistake of its own.
    """
    spec, clients, recorder = running.spec, running.site.client_fleet, running.recorder
    bound_s = spec.ttl_ms / 1000 + spec.liveness_bound_s
    until_ns = recorder.now() + int((spec.time_s + bound_s + _UNTOLD_S) * 1e9)
    running.say("running")
    calm_ns = recorder.now() + int(spec.time_s * 1e9)
    for number, worker in enumerate(clients.workers):
        worker.work(client_settings(spec) | {"client": number, "calm_ns": calm_ns}, until_ns)
    played = _inject(running, schedule)
    must_be_sound(clients)
    if played.stopped:
        running.say(f"{played.stopped} is violated; stopping")
    if recorder.failure is not None:
        raise recorder.failure
    running.say("healed; recovering")
    await_grants(spec, recorder, bound_s + _MARGIN_S)
    must_be_sound(clients)
    running.say("stopping clients")
    # All at once: a client that stops later would take locks meanwhile.
    with ThreadPoolExecutor(len(clients.workers)) as pool:
        over = list(pool.map(lambda worker: worker.rest(bound_s + _REST_S), clients.workers))
    rested = [worker for worker, rests in zip(clients.workers, over, strict=True) if rests]
    for worker in clients.workers:
        if worker not in rested:
            running.note(f"{worker.node} did not stop its work: {worker.describe()}.")
    if rested:
        # A client that did not stop takes no op.
        read_all(spec, rested[-1])
    must_be_sound(clients)
    return played


def _inject(running: Running, schedule: Sequence[Scheduled]) -> Played:
    """Carry out the schedule until the time is up, a checker finds a violation, or a segment is
    full."""
    spec, recorder = running.spec, running.recorder
    began = time.monotonic()
    most = MOST_EVENTS if spec.segment else math.inf
    with _followed(spec, recorder) as live:
        running.follow(live)

        def over() -> bool:
            late = time.monotonic() - began > spec.time_s or recorder.failure is not None
            full = recorder.written >= most
            return (
                late
                or full
                or broken(running.site.client_fleet) != ""
                or bool(live and live.stopped)
            )

        if spec.aim:
            _aimed(running, over)
        else:
            running.director.run(schedule, over, layout_of(spec))
        while not over():
            time.sleep(_LOOK_S)
    return Played(time.monotonic() - began, live.stopped if live else "")


def _aimed(running: Running, over: Callable[[], bool]) -> None:
    """Inject faults at their moments; record which triggered them, and the faults as a schedule."""
    spec, director, recorder = running.spec, running.director, running.recorder
    watch = _Watch(running.site, recorder)
    aim = Aim(spec.nemesis, spec.seed, _reached(running), watch, spec.plays)
    try:
        aim.run(director, over)
    finally:
        director.heal_all()
        learn(
            recorder.path.parent,
            plays=[play.to_json() for play in aim.triggered],
            schedule=[fault.to_json() for fault in aim.schedule],
        )


def _reached(running: Running) -> Layout:
    """Return the layout without the faults that its nodes cannot have, and without the failpoints
    that no client reaches, because its lock cannot be extended: a user lock is known to have that
    verb only once its clients are ready."""
    at, site = layout_of(running.spec, lacks=running.lacks), running.site
    if any(site.client(node).extends for node in site.clients):
        return at
    return replace(at, failpoints=tuple(one for one in at.failpoints if one not in EXTENDING))


@dataclass(frozen=True)
class _Watch:
    """The state of a run that triggers see."""

    site: RunSite
    recorder: Recorder

    def now(self) -> int:
        return self.recorder.now()

    def leases(self) -> Sequence[Held]:
        return self.recorder.holding.unreleased

    def grants(self, without: str) -> int:
        return self.site.grants(without)


def broken(clients: ClientFleet) -> str:
    """Return the first mistake that a client reported about itself; empty if there is none."""
    return next((worker.broken for worker in clients.workers if worker.broken), "")


def must_be_sound(clients: ClientFleet) -> None:
    """Raise Crashed if a client reports its own mistake: its lock is not to blame."""
    if why := broken(clients):
        raise Crashed(why)


def _followed(spec: Spec, recorder: Recorder) -> AbstractContextManager[LiveVerdict | None]:
    """Return the live check of the run, if one is requested or the run is long."""
    if not spec.until and spec.time_s < WHILE_S:
        return nullcontext()
    return LiveVerdict(recorder.path.parent, EVERY_S)


def client_settings(spec: Spec) -> dict[str, Any]:
    """Return the settings of the clients' generators (workloads/client/critical_section.py),
    without the client that each belongs to."""
    settings: dict[str, Any] = {
        "ttl_ns": spec.ttl_ms * 1_000_000,
        "shared": spec.shared,
        "locks": spec.locks,
        "lock": spec.lock_name,
        "resource": spec.resource_name,
        "clients": spec.concurrency,
        "shared_seed": str(spec.seed),
        "extend": None if spec.lock_type.extends else 0,
        "again": _AGAIN if spec.lock_type.promises.get("reentrant") else 0,
    }
    settings |= work_of(spec)
    if spec.lock_type.elector and spec.hold == SETTINGS["hold"].default:
        leases = _AIMED_REIGNS if spec.aim else _REIGNS
        settings["hold_ms"] = tuple(many * spec.ttl_ms for many in leases)
    return settings


def await_grants(spec: Spec, recorder: Recorder, timeout_s: float) -> None:
    """Wait until every lock was granted again, or the time is up."""
    before = {lock: recorder.grants_of(lock) for lock, _ in spec.locked}
    end = time.monotonic() + timeout_s
    while time.monotonic() < end and any(
        recorder.grants_of(lock) <= count for lock, count in before.items()
    ):
        time.sleep(_LOOK_S)


def read_all(spec: Spec, worker: Worker) -> None:
    """Read every resource a last time, which reveals lost writes."""
    for _, resource in spec.locked:
        if worker.do("read", {"resource": resource}, _READ_S) is None:
            return  # it does not answer, so it takes no other op
