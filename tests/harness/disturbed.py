"""Whole runs on a cluster in memory, each disturbed at one point, and their common properties.

Whatever disturbs it, a run is judged, its notes give the reason for its end, and it leaves nothing.
"""

from __future__ import annotations

import json
import signal
import threading
from dataclasses import dataclass, replace
from pathlib import Path

from fencepost.checker.history import history
from fencepost.harness.execute.run import run
from fencepost.harness.judge.judge import Outcome
from fencepost.harness.results import results
from fencepost.harness.spec import needs
from fencepost.harness.spec.spec import Spec
from fencepost.nemesis.schedule import Scheduled
from fencepost.workloads.locks.registry import LOCKS
from fencepost.workloads.scenarios.scenario import Begin, Do, Finish, Heal, Inject, Scenario
from tests.harness.memory import Cluster

OPTIONS = LOCKS["redis"].read_options({})

SPEC = Spec(
    "short", "redis", OPTIONS, concurrency=2, time_s=0.05, ttl_ms=200, liveness_bound_s=0.3,
    hold="0..1ms", think="0..1ms", contention="all",
)  # fmt: skip

PAUSES = [
    Scheduled(0.01, 0.02, "pause", ["redis-1"], {}),
    Scheduled(0.02, 0.02, "pause", ["client-1"], {}),
]

# Enough time for both, on a busy machine too.
FAULTY = replace(SPEC, time_s=1.0)

ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)


@dataclass
class Ended:
    """A run that has ended: its result or its exception, and its output."""

    folder: Path
    outcome: Outcome | None
    error: BaseException | None

    @property
    def results(self):
        return json.loads((self.folder / "results.json").read_text())

    @property
    def notes(self):
        return " ".join(self.results["run_notes"])


def carried_out(cluster, spec=SPEC, schedule=PAUSES, scenario=None, progress=lambda status: None):
    try:
        outcome, error = run(spec, cluster, progress, scenario, schedule), None
    except BaseException as raised:
        outcome, error = None, raised
    return Ended((results.root() / "latest").resolve(), outcome, error)


def assert_judged_and_put_away(ended, cluster, but=()):
    """`but`: unreachable nodes."""
    assert ended.results["checkers"]
    assert (ended.folder / "report.html").exists()
    assert json.loads((ended.folder / "test.json").read_text())["seed"] == SPEC.seed
    times = [op.time for op in history.read(ended.folder / "history.jsonl")]
    assert times == sorted(times)
    assert [what for what in cluster.left if what.split(":")[0] not in but] == []
    assert listeners(but) == []
    # A signal that arrives after the run itself does not change its verdict.
    over = isinstance(ended.error, KeyboardInterrupt) and not ended.notes
    if ended.error is not None and not over:
        assert ended.results["valid"] is not True
        assert "The run ended early" in ended.notes


def listeners(but=()):
    """Return the threads that still listen to a client, except those of unreachable nodes.

    They end with the client, a moment later.
    """
    found = [one for one in threading.enumerate() if one.name.startswith(("read ", "hear "))]
    found = [one for one in found if one.name.split()[1] not in but]
    for one in found:
        one.join(120)
    return [one.name for one in found if one.is_alive()]


def undisturbed_calls(cluster):
    carried_out(cluster)
    return kinds_of_calls(cluster.calls)


def kinds_of_calls(calls):
    """Return the first call of each kind, in their order."""
    return list({(call.node, call.verb, call.what[:30]): call for call in reversed(calls)}.values())


def fresh(call, action):
    """Return a cluster on which an event happens at the first call of this kind."""
    cluster = Cluster()
    cluster.up(needs.nodes([SPEC]))
    done = threading.Event()

    def before(now):
        if like(now, call) and not done.is_set():
            done.set()
            action(cluster)

    cluster.before = before
    return cluster


def like(call, other):
    return (call.node, call.verb, call.what[:30]) == (other.node, other.verb, other.what[:30])


def scenario(*steps, expected=None):
    return Scenario(
        "stop", ("C0",), "", "", "none", tuple(steps), expected or {}, clients=2, ttl_ms=200
    )


PAUSED = (
    Do("client-1", "acquire"),
    Do("client-1", "read"),
    Begin("client-1", "write", stop_at="before-write"),
    Inject("stop", "pause", ("client-1",), {"point": "before-write"}),
    Do("client-2", "acquire", again=True),
    Do("client-2", "read"),
    Do("client-2", "write"),
    Do("client-2", "release"),
    Heal("stop"),
    Finish("client-1"),
)
