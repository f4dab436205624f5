"""The harness' handle on a worker, with the real program behind it on this machine."""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
import time
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace

import pytest

import node_program
from fencepost.checker.history import read
from fencepost.checker.holds import holds
from fencepost.compose.node.places import CODE, MARK, PYTHON
from fencepost.harness.errors import Crashed
from fencepost.harness.remote.processes import CLIENT
from fencepost.harness.run import worker as process
from fencepost.harness.run.client_program import command
from fencepost.harness.run.recorder import Recorder
from fencepost.harness.run.worker import Worker
from fencepost.workloads.locks.registry import LOCKS

ROOT = Path(__file__).parents[2]
COMMAND = command(LOCKS["redis"])
MARKED = ("env", f"{MARK}={CLIENT}")


class Local:
    """A Remote that starts a node's programs on this machine."""

    node = "client-1"

    def __init__(self, spawn):
        self._spawn = spawn

    def spawn(self, argv):
        here = {
            PYTHON: sys.executable,
            f"PYTHONPATH={CODE}": f"PYTHONPATH={ROOT}/src",
        }
        return self._spawn(node_program.here(here.get(word, word) for word in argv))

    def run(self, argv):
        return SimpleNamespace(out=subprocess.check_output(node_program.here(argv), text=True))


@pytest.fixture
def recorder(tmp_path):
    recorder = Recorder(tmp_path / "history.jsonl")
    yield recorder
    recorder.close()


@pytest.fixture
def worker(recorder, spawn, setup, state):
    worker = Worker(Local(spawn), recorder, setup, COMMAND)
    worker.wait_ready()
    yield worker
    if state(worker.pid):
        os.kill(worker.pid, signal.SIGKILL)
    worker.close()


ACQUIRE = ("acquire", {"lock": "orders", "ttl": 10**9})
WRITE = ("write", {"resource": "account", "version": 0})


def ops(recorder):
    return [(op.process, op.f, op.type) for op in read(recorder.path)]


@pytest.fixture
def stopped(worker, eventually, state):
    """The worker, stopped before its write is sent."""

    def stop():
        worker.arm("before-write")
        worker.begin(*WRITE)
        assert worker.wait_failpoint("before-write", 10)
        eventually(lambda: state(worker.pid) == "T")

    return stop


def test_an_op_is_recorded_and_its_completion_handed_over(worker, recorder):
    worker.begin(*ACQUIRE)
    done = worker.finish(10)
    assert (done["type"], done["value"]["token"]) == ("ok", 1)
    assert ops(recorder) == [(3, "acquire", "invoke"), (3, "acquire", "ok")]


def test_an_op_that_does_not_complete_in_time_gives_nothing(worker, stopped):
    stopped()
    assert worker.finish(0.02) is None
    os.kill(worker.pid, signal.SIGCONT)
    assert worker.finish(10)["type"] == "fail"


def test_a_kill_in_the_middle_of_an_op_completes_it_as_unknown_by_death(worker, recorder, stopped):
    worker.begin(*ACQUIRE)
    worker.finish(10)
    stopped()
    os.kill(worker.pid, signal.SIGKILL)
    worker.wait_gone(10)
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
    worker.finish(10)
    os.kill(worker.pid, signal.SIGKILL)
    worker.wait_gone(10)
    assert ops(recorder) == [(3, "acquire", "invoke"), (3, "acquire", "ok")]


def test_a_worker_killed_at_full_speed_leaves_a_history_that_can_be_paired(
    worker, recorder, eventually
):
    worker.work({"ttl_ns": 10**9, "write": False, "think_ms": 0, "pause_ms": 0}, 10**15)
    eventually(lambda: recorder.counts["release", "ok"] > 50)
    os.kill(worker.pid, signal.SIGKILL)
    worker.wait_gone(10)
    calls = read(recorder.path).calls()
    assert len(calls) > 100
    assert all(call.end is not None for call in calls)
    assert all(call.type == "ok" for call in calls[:-1])


def test_a_point_is_waited_for_and_forgotten_when_it_is_armed_anew(worker, stopped):
    stopped()
    os.kill(worker.pid, signal.SIGCONT)
    worker.finish(10)
    worker.arm("before-write")
    assert worker.wait_failpoint("before-write", 0.02) is False


def test_work_comes_to_rest_when_it_is_told_to(worker, recorder, eventually):
    worker.work({"ttl_ns": 10**9, "write": False}, 10**15)
    eventually(lambda: recorder.counts["acquire", "ok"])
    assert worker.rest(10)
    assert recorder.counts["acquire", "ok"] == recorder.counts["release", "ok"]


def test_a_stopped_worker_does_not_come_to_rest(worker, recorder, stopped):
    stopped()
    assert worker.rest(0.02) is False


def test_a_program_that_does_not_come_up_is_a_crash_with_its_last_words(recorder, spawn, setup):
    worker = Worker(Local(spawn), recorder, setup | {"lock": "no-such-lock"}, COMMAND)
    with pytest.raises(Crashed) as error:
        worker.wait_ready()
    assert "the worker on client-1 did not say 'ready'" in str(error.value)
    assert "no-such-lock" in str(error.value)
    worker.close()


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
    worker.finish(10)
    monkeypatch.undo()
    # The answer that came too late is not taken for the next one's.
    low_s, high_s = worker.look_at_clock("wall", {})
    assert low_s <= 0 <= high_s


def test_closing_ends_the_program_and_twice_is_no_error(worker, recorder, eventually, state):
    worker.close()
    eventually(lambda: state(worker.pid) is None)
    worker.close()
    assert ops(recorder) == [(3, "close", "invoke"), (3, "close", "ok")]


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
    monkeypatch.setattr(process, "_END_S", 0.3)
    worker = Worker(Local(spawn), recorder, setup, [*MARKED, sys.executable, "-c", HANGS])
    worker.wait_ready()
    worker.close()
    assert ops(recorder) == [(3, "close", "invoke"), (3, "close", "info")]
    assert read(recorder.path).ops[-1].error[0] == "killed"


class Fed:
    """A Remote whose worker's program says nothing: the test hands over what it would have said."""

    node = "client-1"

    def spawn(self, argv):
        out, self._into = os.pipe()
        stdout = os.fdopen(out, "rb", buffering=0)
        return SimpleNamespace(stdin=io.BytesIO(), stdout=stdout, stderr=io.BytesIO())

    def end(self):
        if self._into is not None:
            os.close(self._into)
            self._into = None


@pytest.fixture
def fed(recorder, setup):
    """A worker, how to hand it a chunk of (process, f, type), and how to end its program."""
    made = []

    def make():
        remote = Fed()
        worker = Worker(remote, recorder, setup, [])

        def take(*events):
            names = ("process", "f", "type")
            rows = [dict(zip(names, e, strict=True)) | {"time": 0, "value": {}} for e in events]
            worker._take([json.dumps(row).encode() for row in rows])

        def end():
            remote.end()
            worker.wait_gone(10)

        made.append(end)
        return worker, take, end

    yield make
    for end in made:
        end()


GONE = [(3, "write", "invoke"), (3, "write", "info"), (3, "close", "invoke"), (3, "close", "ok")]
FOLLOWS = [(8, "acquire", "invoke"), (8, "acquire", "ok")]


def splits(events):
    """Every way to hand them over in chunks."""
    for cuts in range(2 ** (len(events) - 1)):
        places = [n for n in range(1, len(events)) if cuts >> (n - 1) & 1]
        yield [events[a:b] for a, b in pairwise([0, *places, len(events)])]


def test_a_client_goes_by_its_successor_s_number_from_its_info_on_in_whatever_chunks(fed, recorder):
    written = 0
    for chunks in splits([*GONE, *FOLLOWS]):
        worker, take, end = fed()
        seen = []
        for chunk in chunks:
            take(*chunk)
            seen += chunk
            assert worker.process == (8 if GONE[1] in seen else 3), chunks
        end()
        assert worker.process == 8
        # All is over, so nothing is made up at its end.
        assert ops(recorder)[written:] == seen
        written += len(seen)


def test_a_close_completes_no_op_that_was_sent(fed):
    for chunks in splits(GONE):
        worker, take, _ = fed()
        worker.begin("write", {})
        done = []
        for chunk in chunks:
            take(*chunk)
            if (completion := worker.finish(0)) is not None:
                done.append((completion["f"], completion["type"]))
        assert done == [("write", "info")], chunks


def test_a_close_is_not_the_begin_of_an_op_that_was_sent(fed):
    """The next op is sent when the write is known to be over, and its client still closes."""
    worker, take, _ = fed()
    worker.begin("write", {})
    take(*GONE[:2])
    assert worker.finish(0)["type"] == "info"
    worker.begin("acquire", {})
    take(*GONE[2:3])
    assert worker.wait_begun(0) is False
    take(*GONE[3:], *FOLLOWS[:1])
    assert worker.wait_begun(0) is True
    assert worker.finish(0) is None
    take(*FOLLOWS[1:])
    assert worker.finish(0)["f"] == "acquire"


@pytest.mark.parametrize("chunks", list(splits(GONE[:3])))
def test_a_close_that_a_death_interrupts_is_unknown(fed, recorder, chunks):
    worker, take, end = fed()
    for chunk in chunks:
        take(*chunk)
    end()
    assert ops(recorder) == [*GONE[:3], (3, "close", "info")]
    assert read(recorder.path).ops[-1].error[0] == "killed"
    assert worker.process == 8


def test_news_of_a_library_between_a_close_and_its_end_changes_nothing(fed, recorder):
    worker, take, end = fed()
    take(*GONE[:3], (3, "lost", "info"))
    assert worker.process == 8
    take(GONE[3])
    end()
    assert ops(recorder) == [*GONE[:3], (3, "lost", "info"), GONE[3]]


def test_a_driver_takes_no_close_for_the_answer_to_the_successor_s_first_op(
    fed, eventually, monkeypatch
):
    """The client in another language closes while its driver has gone on already."""
    worker, take, end = fed()
    sent = []
    monkeypatch.setattr(worker, "_send", lambda message: sent.append(message["f"]))
    worker._generates = False
    worker.work({"think_ms": 0, "pause_ms": 0}, 10**15)
    eventually(lambda: len(sent) == 1)
    take((3, "acquire", "invoke"), (3, "acquire", "info"))
    eventually(lambda: len(sent) == 2)
    take(*GONE[2:])
    time.sleep(0.05)  # a driver that was answered would have sent the next op
    assert sent == ["acquire", "acquire"]
    end()
    assert worker.rest(10)


LOUD = """
import os, sys
sys.stdin.readline()
for n in range(20_000):
    print("an error of a library's", n, file=sys.stderr)
print('{"control":"ready","pid":%d,"generates":false}' % os.getpid(), flush=True)
sys.stdin.read()
"""


def test_a_library_that_logs_much_does_not_stop_at_a_full_pipe(recorder, spawn, setup):
    worker = Worker(Local(spawn), recorder, setup, [*MARKED, sys.executable, "-c", LOUD])
    worker.wait_ready()
    worker.close()
    assert len(worker.last_words()) <= 3000
    assert worker.last_words().endswith("an error of a library's 19999")


FOREIGN = """
import sys
sys.stdin.readline()
print('{"control":"ready","pid":PID}', flush=True)
sys.stdin.read()
"""


@pytest.mark.parametrize("whose", ["nobody's", "init's", "the harness's", "none's"])
def test_a_client_that_gives_the_pid_of_another_process_is_refused(recorder, spawn, setup, whose):
    pid = {"nobody's": -1, "init's": 1, "the harness's": os.getpid(), "none's": 2**22 + 1}[whose]
    program = FOREIGN.replace("PID", str(pid))
    worker = Worker(Local(spawn), recorder, setup, [*MARKED, sys.executable, "-c", program])
    with pytest.raises(Crashed, match=f"says that its pid is {pid}, and no process of its own"):
        worker.wait_ready()
    worker.close()


SLOW = """
import os, sys
sys.stdin.readline()
open(sys.argv[1]).read()
print('{"control":"ready","pid":%d}' % os.getpid(), flush=True)
sys.stdin.read()
"""


def test_a_client_that_is_slow_to_come_up_is_named_and_waited_for(
    recorder, spawn, setup, monkeypatch, tmp_path
):
    """It comes up once it was twice said to be slow: it waits for a pipe to be opened."""
    monkeypatch.setattr(process, "_SLOW_S", 0.01)
    gate, said = tmp_path / "gate", []
    os.mkfifo(gate)

    def say(words):
        said.append(words)
        if len(said) == 2:
            gate.write_text("now")

    started = [*MARKED, sys.executable, "-c", SLOW, str(gate)]
    worker = Worker(Local(spawn), recorder, setup, started)
    worker.wait_ready(say)
    worker.close()
    assert len(said) >= 2
    assert said[0].startswith("waiting for client-1, which was started ")
