"""Translates a counterexample into a scenario for real clients and servers.

It replays and traces the run (trace.py), orders the events up to the broken promise (events.py) as
real clients can execute them (schedule_order.py), and writes them as steps (to_scenario.py). Times
are those of the simulation, stretched, because real servers use part of a lease themselves.

`notes` lists how the faults on real servers differ from the simulated ones. `cannot` lists the
faults that cannot be reproduced; if there are any, the result confirms nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from fencepost.checker.checker import Run as Judged
from fencepost.checker.checkers import CHECKERS
from fencepost.checker.history.history import NEMESIS
from fencepost.hunt.bridge.events import events, long_ns, unseen
from fencepost.hunt.bridge.records import Event
from fencepost.hunt.bridge.schedule_order import reorder, segments
from fencepost.hunt.bridge.to_scenario import Writer
from fencepost.hunt.bridge.trace import Trace, Traced
from fencepost.hunt.faults.registry import SIMULATED, table
from fencepost.hunt.models.registry import MODELS
from fencepost.hunt.run import Run
from fencepost.hunt.search.hunt import Counterexample
from fencepost.hunt.sim.record import to_history
from fencepost.hunt.sim.setting import Setting
from fencepost.workloads.scenarios.scenario import (
    Begin,
    Do,
    Inject,
    Plain,
    Scenario,
    SyncDue,
    Timed,
)

TTL_MS = 8000
"""The shortest lease on real servers (ms)."""
_SOURCE = "found by fencepost hunt"


@dataclass(frozen=True)
class Bridge:
    """A scenario, and how it differs from the simulation."""

    scenario: Scenario
    notes: tuple[str, ...]
    cannot: tuple[str, ...]


def bridge(setting: Setting, find: Counterexample, traced: Traced | None = None) -> Bridge:
    """Return the scenario of a counterexample. `traced`: of its run with real clients, which does
    not repeat itself exactly."""
    trace: Traced
    if traced is None:
        trace = Trace()
        run = trace.play(setting, find.schedule, table(setting))
    else:
        trace, run = traced, find.run
    checker = next(iter(find.broken))
    until = min(_proven_at_ns(run, checker, find.story[-1].time_ns), run.healed_ns)
    ttl_ms = max(TTL_MS, setting.ttl_ns // 1_000_000)
    scale = ttl_ms * 1e6 / setting.ttl_ns
    writer = Writer(setting, scale, checker, unseen(setting, trace))
    happened = events(run, trace, until)
    gap_ns = long_ns(setting)
    for segment in segments(happened, gap_ns):
        writer.segment(reorder(segment, gap_ns))
    steps = _unsynced(writer.written(), writer) if setting.survives == "crash" else writer.written()
    served = {"server": f"{setting.kind}={setting.version}"} if setting.version else {}
    scenario = Scenario(
        name=f"confirm-{setting.test['name']}",
        claims=(),
        source=_SOURCE,
        what=" ".join(step.words for step in find.story),
        guard=setting.guard,
        steps=steps,
        expected={checker: False},
        options=_stretched_options(setting, happened, scale),
        clients=len(setting.clients),
        ttl_ms=ttl_ms,
        lock=setting.lock,
        settings={"persistence": setting.persistence, "store": setting.store, **served},
    )
    return Bridge(scenario, tuple(dict.fromkeys(writer.notes)), tuple(dict.fromkeys(writer.cannot)))


def _stretched_options(setting: Setting, happened: Sequence[Event], scale: float) -> dict[str, Any]:
    """Return options with retries stretched as the lease is.

    A lock that retried for a good part of a lease, and was then granted, gets proportionally more
    retries. The delay between retries stays: clients that stop for each other need some.
    """
    begun = {event.op: event.time_ns for event in happened if event.what == "begin"}
    outlasts = any(
        event.op.tries_again
        and event.op.type == "ok"
        and event.time_ns - begun.get(event.op, event.time_ns) >= setting.ttl_ns // 2
        for event in happened
        if event.what == "end" and event.op is not None
    )
    names = {"wait_ms", "retries"} if outlasts else {"wait_ms"}
    found = dict(setting.options)
    for name in found.keys() & names:
        found[name] = round(found[name] * scale)
    return found


def _proven_at_ns(run: Run, checker: str, since_ns: int) -> int:
    """Return when the checker has seen enough to find a violation, possibly after the story's end.

    For example, the loss of a hold shows only when another client is granted the lock.
    """
    for place, row in enumerate(run.rows):
        ends = row[1] != NEMESIS and row[2] != "invoke"
        if row[0] >= since_ns and ends:
            judged = Judged(to_history(run.rows[: place + 1]), run.test)
            if CHECKERS[checker].check(judged).valid is False:
                return row[0]
    return run.healed_ns


def _unsynced(steps: tuple[Timed, ...], writer: Writer) -> tuple[Timed, ...]:
    """Add a write in the same second before the grant that the fault loses.

    With `appendfsync everysec`, Redis syncs the first write after a second without writes at once.
    """
    made, model = list(steps), MODELS[writer.setting.model]
    grants = [
        place
        for place, timed in enumerate(steps)
        if isinstance(timed.step, Begin | Do) and timed.step.f == "acquire"
    ]
    losses = [
        place
        for place, timed in enumerate(steps)
        if isinstance(timed.step, Inject) and SIMULATED[timed.step.family].unsynced_lost
    ]
    for loss in reversed(losses):
        ahead = [place for place in grants if place < loss]
        if not ahead:
            continue
        timed = made[ahead[-1]]
        assert isinstance(timed.step, Begin | Do)
        client = timed.step.client
        first: list[Plain] = [Do(client, "acquire"), SyncDue(), Do(client, "release")]
        made[ahead[-1] : ahead[-1]] = [Timed(step, timed.at_s) for step in first]
        writer.notes.append(
            f"{model.title or model.name} syncs the first write after a second without writes at "
            f"once: {client} acquires and releases the lock before, so that the grant that the "
            "fault loses is a later write"
        )
        break
    return tuple(made)
