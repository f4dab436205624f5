"""Programs that do not start, start slowly, or report false data."""

from __future__ import annotations

import os
import sys

import pytest

from fencepost.harness.clients import answers
from fencepost.harness.clients.worker import Worker
from fencepost.harness.errors import Crashed
from tests.harness.local import COMMAND, MARKED, Local
from tests.harness.talk import typed

pytestmark = pytest.mark.slow


def test_a_program_that_does_not_start_is_a_crash_with_its_last_output(recorder, spawn, setup):
    worker = Worker(Local(spawn), recorder, typed(setup | {"lock": "no-such-lock"}), COMMAND)
    with pytest.raises(Crashed) as error:
        worker.wait_ready()
    assert "the worker on client-1 did not report 'ready'" in str(error.value)
    assert "no-such-lock" in str(error.value)
    worker.close()


LOUD = """
import os, sys
sys.stdin.readline()
for n in range(20_000):
    print("an error of a library's", n, file=sys.stderr)
print('{"control":"ready","pid":%d,"generates":false}' % os.getpid(), flush=True)
sys.stdin.read()
"""


def test_a_library_that_logs_much_does_not_stop_at_a_full_pipe(recorder, spawn, setup):
    worker = Worker(Local(spawn), recorder, typed(setup), [*MARKED, sys.executable, "-c", LOUD])
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
    worker = Worker(Local(spawn), recorder, typed(setup), [*MARKED, sys.executable, "-c", program])
    with pytest.raises(Crashed, match=f"reports pid {pid}, which no process of its own has"):
        worker.wait_ready()
    worker.close()


SLOW = """
import os, sys
sys.stdin.readline()
open(sys.argv[1]).read()
print('{"control":"ready","pid":%d}' % os.getpid(), flush=True)
sys.stdin.read()
"""


def test_a_client_that_starts_slowly_is_named_and_waited_for(
    recorder, spawn, setup, monkeypatch, tmp_path
):
    """It starts after two messages that it is slow: it waits for a pipe to be opened."""
    monkeypatch.setattr(answers, "_SLOW_S", 0.01)
    gate, said = tmp_path / "gate", []
    os.mkfifo(gate)

    def say(words):
        said.append(words)
        if len(said) == 2:
            gate.write_text("now")

    started = [*MARKED, sys.executable, "-c", SLOW, str(gate)]
    worker = Worker(Local(spawn), recorder, typed(setup), started)
    worker.wait_ready(say)
    worker.close()
    assert len(said) >= 2
    assert said[0].startswith("waiting for client-1, which was started ")
