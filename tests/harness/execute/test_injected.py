"""Failures of the harness' environment lose no acknowledged write and leave nothing.

Whole runs on a cluster in memory (memory.py). The resource keeps a list of all that it stored,
which is compared with the history. tests/cluster/test_injected.py does the same to containers.
"""

from __future__ import annotations

import re
import threading
from collections import Counter

import pytest

from fencepost.checker.history import history
from fencepost.harness.errors import Crashed
from fencepost.harness.judge import judge
from fencepost.harness.remote.remote import NoAnswer, RemoteError
from fencepost.harness.spec import needs
from fencepost.nemesis.schedule import Scheduled
from tests.harness.disturbed import FAULTY, PAUSES, SPEC, assert_judged_and_put_away, carried_out
from tests.harness.memory import Cluster
from tests.harness.memory_service import Silent

pytestmark = pytest.mark.slow

STRUCK = [*PAUSES, Scheduled(0.05, 0.02, "kill", ["redis-1"], {}),
          Scheduled(0.06, 0.02, "kill", ["client-2"], {})]  # fmt: skip


def assert_nothing_acknowledged_is_lost(ended, cluster):
    """Check that the history agrees with the resource's stored writes."""
    stored = Counter(value for _, value in cluster.service.written)
    ops = [op for op in history.read(ended.folder / "history.jsonl") if op.f == "write"]
    begun = {op.value["value"] for op in ops if op.type == "invoke"}
    done = Counter(op.value["value"] for op in ops if op.type == "ok")
    assert set(stored) <= begun
    assert done <= stored
    # A stored write without `ok` in the history is unknown there; each client has one at most.
    open = {op.process for op in ops if op.type == "info"}
    assert sum((stored - done).values()) <= len(open)


def one_by_one(calls):
    """Count each call by its kind."""
    counted = Counter()
    for call in calls:
        kind = kind_of(call)
        counted[kind] += 1
        yield kind, counted[kind]


def kind_of(call):
    return call.node, call.verb, re.sub(r"\d+", "N", call.what[:60])


def failing(kind, which, error):
    """Raise the error at that call, one time."""
    counted, lock = Counter(), threading.Lock()

    def fail(call):
        with lock:
            counted[kind_of(call)] += 1
            if (kind_of(call), counted[kind]) == (kind, which):
                raise error

    return fail


@pytest.mark.oracle
@pytest.mark.parametrize("when", ["before", "after"])
def test_each_call_of_a_node_may_fail_once_and_nothing_is_lost_or_left(cluster, when):
    """Raise it before the call, or after it, so that its outcome is unknown."""
    ended = carried_out(cluster, schedule=STRUCK)
    # On a busy machine the end may come before a fault has its receipt, which is unknown then.
    assert ended.error is None and ended.outcome.valid is not False, ended.results
    assert_nothing_acknowledged_is_lost(ended, cluster)
    crashed = 0
    for kind, which in list(one_by_one(cluster.calls)):
        with Cluster() as hit:
            hit.up(needs.nodes([SPEC]))
            error = NoAnswer(f"{kind[0]}: the connection was lost")
            setattr(hit, when, failing(kind, which, error))
            ended = carried_out(hit, schedule=STRUCK)
            assert isinstance(ended.error, RemoteError | Crashed | None), kind
            crashed += ended.error is not None
            assert_judged_and_put_away(ended, hit)
            assert_nothing_acknowledged_is_lost(ended, hit)
    assert crashed > 10


def cut_off(cluster, at):
    """Lose the output of client-2 from its op number `at` on, while it continues to work."""
    done = []

    def answers(node, f):
        if node == "client-2":
            done.append(f)
            if len(done) == at:
                cluster.remote(node).programs[0].go_on_unheard()

    cluster.service.answers = answers


@pytest.mark.parametrize("at", range(6, 14))
def test_the_lost_events_of_a_client_count_as_no_violation(short, at):
    """Other clients read its writes, and are granted the lock after its releases."""
    with Cluster() as cluster:
        cluster.up(needs.nodes([SPEC]))
        cut_off(cluster, at)
        # It reaches that op on a busy machine too.
        ended = carried_out(cluster, FAULTY, schedule=[])
    again = judge.judge(ended.folder)
    for found in (ended.outcome, again):
        assert found.valid == "unknown"
        assert False not in [verdict.valid for verdict in found.verdicts.values()]
        assert found.verdicts["resource"].summary.endswith("may be missing, and could explain it.")
        assert "lost contact with client-2: events after" in found.verdicts["run"].summary


def test_a_violation_of_before_stays_one_though_a_client_was_lost_later(cluster):
    cluster.service.broken = True
    cut_off(cluster, 30)
    ended = carried_out(cluster, FAULTY, schedule=[])
    assert ended.outcome.verdicts["lease_exclusion"].valid is False
    assert "lost contact with client-2: events after" in ended.outcome.verdicts["run"].summary


@pytest.mark.parametrize("f", ["acquire", "write"])
def test_a_client_that_hangs_in_an_op_is_read_to_its_end_and_hides_no_violation(cluster, f):
    """Its node answers, so the harness ends its program there and knows its open op."""
    cluster.service.broken = True

    def answers(node, asked):
        if (node, asked) == ("client-2", f):
            raise Silent

    cluster.service.answers = answers
    ended = carried_out(cluster, schedule=[])
    assert_judged_and_put_away(ended, cluster)
    assert "client-2 did not stop its work: its " + f in ended.notes
    assert "lost contact with" not in ended.outcome.verdicts["run"].summary
    assert_nothing_acknowledged_is_lost(ended, cluster)
