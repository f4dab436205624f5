"""The harness' handle on a worker, with the real program on this machine."""

from __future__ import annotations

import os
import signal
import sys

import pytest

from fencepost.checker.facts.holds import holds
from fencepost.checker.history.history import read
from fencepost.harness.clients import streams
from fencepost.harness.clients import worker as process
from fencepost.harness.clients.worker import Worker
from fencepost.harness.errors import Crashed
from tests.harness.local import COMMAND, MARKED, Local, recorded
from tests.harness.talk import typed

pytestmark = pytest.mark.slow


@pytest.fixture
def worker(recorder, spawn, setup, state):
    worker = Worker(Local(spawn), recorder, typed(setup), COMMAND)
    worker.wait_ready()
    yield worker
    if state(worker.pid):
        os.kill(worker.pid, signal.SIGKILL)
    worker.close()


ACQUIRE = ("acquire", {"lock": "orders", "ttl": 10**9})

WRITE = ("write", {"resource": "account", "version": 0})


@pytest.fixture
def stopped(worker, eventually, state):
    """Return the worker, stopped before it sends its write."""

    def stop():
        worker.arm("before-write")
        worker.begin(*WRITE)
        assert worker.wait_failpoint("before-write", 120)
        eventually(lambda: state(worker.pid) == "T")

    return stop


def test_an_op_is_recorded_and_its_completion_handed_over(worker, recorder):
    worker.begin(*ACQUIRE)
    done = worker.finish(120)
    assert (done["type"], done["value"]["token"]) == ("ok", 1)
    assert recorded(recorder) == [(3, "acquire", "invoke"), (3, "acquire", "ok")]


def test_an_op_that_does_not_complete_in_time_gives_nothing(worker, stopped):
    stopped()
    assert worker.finish(0.02) is None
    os.kill(worker.pid, signal.SIGCONT)
    assert worker.finish(120)["type"] == "fail"


def test_a_kill_in_the_middle_of_an_op_completes_it_as_unknown_by_death(worker, recorder, stopped):
    worker.begin(*ACQUIRE)
    worker.finish(120)
    stopped()
    os.kill(worker.pid, signal.SIGKILL)
    worker.wait_gone(120)
    history = read(recorder.path)
    last = history.ops[-1]
    assert (last.process, last.f, last.type, last.node) == (3, "write", "info", "client-1")
    assert last.error[0] == "killed"
    (hold,) = holds(history)
    assert hold.ended_by == "death"
    assert hold.strict_end == history.ops[-2].time
    assert worker.process == 3


def test_a_kill_between_two_ops_completes_nothing(worker, recorder):
    worker.begin(*ACQUIRE)
    worker.finish(120)
    os.kill(worker.pid, signal.SIGKILL)
    worker.wait_gone(120)
    assert recorded(recorder) == [(3, "acquire", "invoke"), (3, "acquire", "ok")]


def test_a_worker_killed_at_full_speed_leaves_a_history_that_can_be_paired(
    worker, recorder, eventually
):
    worker.work({"ttl_ns": 10**9, "write": False, "hold_ms": (0, 0), "think_ms": (0, 0)}, 10**15)
    eventually(lambda: recorder.counts["release", "ok"] > 50)
    os.kill(worker.pid, signal.SIGKILL)
    worker.wait_gone(120)
    calls = read(recorder.path).calls()
    assert len(calls) > 100
    assert all(call.end is not None for call in calls)
    assert all(call.type == "ok" for call in calls[:-1])


def test_a_failpoint_is_waited_for_and_cleared_when_it_is_armed_again(worker, stopped):
    stopped()
    os.kill(worker.pid, signal.SIGCONT)
    worker.finish(120)
    worker.arm("before-write")
    assert worker.wait_failpoint("before-write", 0.02) is False


def test_a_resumed_client_is_at_no_failpoint_even_before_its_next_event(worker, stopped):
    stopped()
    assert worker.wait_failpoint("before-write", 0.0)
    worker.leave_failpoint()
    assert worker.wait_failpoint("before-write", 0.0) is False
    os.kill(worker.pid, signal.SIGCONT)
    worker.finish(120)


def test_work_stops_on_request(worker, recorder, eventually):
    worker.work({"ttl_ns": 10**9, "write": False}, 10**15)
    eventually(lambda: recorder.counts["acquire", "ok"])
    assert worker.rest(120)
    assert recorder.counts["acquire", "ok"] == recorder.counts["release", "ok"]


def test_a_stopped_worker_does_not_finish_its_work(worker, recorder, stopped):
    stopped()
    assert worker.rest(0.02) is False


def test_a_program_shows_its_wall_clock_whether_it_works_or_not(worker):
    for _ in range(2):
        low_s, high_s = worker.look_at_clock("wall", worker.mark_clock("wall"))
        assert low_s <= 0 <= high_s < low_s + 0.01
        worker.work({"ttl_ns": 10**9, "write": False}, 10**15)


def test_a_stopped_program_shows_no_clock(worker, stopped, monkeypatch):
    monkeypatch.setattr(process, "_CLOCK_S", 0.05)
    stopped()
    with pytest.raises(Crashed):
        worker.look_at_clock("wall", {})
    os.kill(worker.pid, signal.SIGCONT)
    worker.finish(120)
    monkeypatch.undo()
    # The late answer is not taken for the next op's.
    low_s, high_s = worker.look_at_clock("wall", {})
    assert low_s <= 0 <= high_s


def test_closing_ends_the_program_and_twice_is_no_error(worker, recorder, eventually, state):
    worker.close()
    eventually(lambda: state(worker.pid) is None)
    worker.close()
    assert recorded(recorder) == [(3, "close", "invoke"), (3, "close", "ok")]


HANGS = """
import json, os, sys, time
sys.stdin.readline()
print('{"control":"ready","pid":%d,"generates":false}' % os.getpid(), flush=True)
sys.stdin.read()
event = {"time": 1, "process": 3, "type": "invoke", "f": "close", "value": {}, "node": "client-1"}
print(json.dumps(event), flush=True)
time.sleep(60)
"""


def test_a_close_that_hangs_at_the_end_is_killed_and_unknown(recorder, spawn, setup, monkeypatch):
    monkeypatch.setattr(streams, "_END_S", 0.3)
    worker = Worker(Local(spawn), recorder, typed(setup), [*MARKED, sys.executable, "-c", HANGS])
    worker.wait_ready()
    worker.close()
    assert recorded(recorder) == [(3, "close", "invoke"), (3, "close", "info")]
    assert read(recorder.path).ops[-1].error[0] == "killed"
