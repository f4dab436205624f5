"""A client hangs, dies or prints rubbish: the run continues, and names the client."""

from __future__ import annotations

import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from fencepost.checker.history import history
from fencepost.harness.clients.client_events import ClientEvents
from fencepost.harness.clients.worker import Worker
from fencepost.harness.execute.site import RunSite
from fencepost.harness.judge import judge
from tests.harness.disturbed import (
    SPEC,
    assert_judged_and_put_away,
    carried_out,
)
from tests.harness.memory_service import Silent

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning"),
]


def test_a_client_that_hangs_is_named_with_the_op_that_it_hangs_in(cluster):
    def answers(node, f):
        if (node, f) == ("client-2", "acquire"):
            raise Silent

    cluster.service.answers = answers
    ended = carried_out(cluster, schedule=[])
    assert_judged_and_put_away(ended, cluster)
    assert "client-2 did not stop its work: its acquire has no answer yet." in ended.notes
    assert ended.outcome.valid == "unknown"


def test_all_clients_are_asked_to_stop_before_the_first_has_stopped(cluster, monkeypatch):
    met, rest = threading.Barrier(SPEC.concurrency), Worker.rest

    def together(worker, timeout_s):
        met.wait(120)  # BrokenBarrierError, and so a note, if one is waited for first
        return rest(worker, timeout_s)

    monkeypatch.setattr(Worker, "rest", together)
    ended = carried_out(cluster, schedule=[])
    assert_judged_and_put_away(ended, cluster)
    assert not ended.notes


def test_a_client_that_dies_by_itself_leaves_its_op_unknown_and_a_note(cluster):
    gone = threading.Event()

    def answers(node, f):
        if (node, f) == ("client-2", "write") and not gone.is_set():
            gone.set()
            remote = cluster.remote("client-2")
            remote.signal(remote.programs[0].pid, signal.SIGKILL)

    cluster.service.answers = answers
    ended = carried_out(cluster, schedule=[])
    assert_judged_and_put_away(ended, cluster)
    assert "client-2 did not stop its work: its program has ended." in ended.notes
    last = [op for op in history.read(ended.folder / "history.jsonl") if op.node == "client-2"][-1]
    assert (last.f, last.type, last.error[0]) == ("write", "info", "killed")


def test_a_client_that_two_faults_have_ended_is_replaced_once(cluster, recorder):
    """Two programs of one process would record a history with unpaired ops"""
    site = RunSite(SPEC, cluster, recorder)
    site.client_fleet.start()
    old, node = site.client("client-1"), cluster.remote("client-1")
    node.signal(old.pid, signal.SIGKILL)

    def slowly(call):
        if call.verb == "spawn":
            time.sleep(0.1)

    cluster.before = slowly
    with ThreadPoolExecutor(2) as pool:
        found = list(pool.map(site.restart_client, ["client-1"] * 2))
    assert found[0] is found[1]
    assert found[0].process == old.process + SPEC.concurrency
    assert len([one for one in node.programs if one.alive]) == 1
    site.client_fleet.close()


def writes(cluster, rubbish):
    """client-2 also prints this before each of its reads."""

    def answers(node, f):
        if (node, f) == ("client-2", "read"):
            cluster.remote(node).programs[0].stdout.write(rubbish)

    cluster.service.answers = answers


RUBBISH = [b"\n", b"a.py:7: DeprecationWarning: \xff is old\n", b'{"time":1,"pro\n', b"{}{}\n"]


@pytest.mark.parametrize("rubbish", RUBBISH)
def test_a_client_that_prints_rubbish_is_named_and_its_events_are_recorded(cluster, rubbish):
    writes(cluster, rubbish)
    ended = carried_out(cluster, schedule=[])
    assert_judged_and_put_away(ended, cluster)
    assert ended.error is None
    assert ended.outcome.valid == ("unknown" if b"{" in rubbish else True)
    (said,) = [note for note in ended.results["notes"] if note.startswith("client-2 wrote ")]
    ops = [op for op in history.read(ended.folder / "history.jsonl") if op.node == "client-2"]
    # A machine that is busy for longer than the lease leaves it no time to write.
    assert {"read", "close"} <= {op.f for op in ops if op.type == "ok"}
    again = judge.judge(ended.folder)
    assert (again.valid, said in again.results["notes"]) == (ended.outcome.valid, True)


def test_an_error_in_the_reader_of_a_client_ends_the_run_and_leaves_its_verdict_unknown(
    cluster, monkeypatch
):
    take = ClientEvents.take

    def fails(hearing, lines):
        heard = take(hearing, lines)
        if hearing._node == "client-2" and any(event.type == "ok" for event in heard.events):
            raise KeyError("hold")
        return heard

    monkeypatch.setattr(ClientEvents, "take", fails)
    ended = carried_out(cluster, replace(SPEC, time_s=29.0), schedule=[])  # which ends earlier
    assert ended.results["valid"] == "unknown"
    assert "The run ended early: Crashed the reader for the worker on client-2" in ended.notes
