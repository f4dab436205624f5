"""A faulty program in another language gets an error with the faulty line."""

from __future__ import annotations

import sys

import pytest

from fencepost.harness.clients.client_program import command
from fencepost.harness.clients.worker import Worker
from fencepost.harness.errors import Crashed
from fencepost.workloads.contract.locktype import LockType
from tests.harness.local import Local, recorded
from tests.harness.talk import typed

pytestmark = pytest.mark.slow

BEGIN = """
import json, os, sys, time
setup = json.loads(sys.stdin.readline())

def say(**line):
    print(json.dumps(line), flush=True)

def event(type, f, **value):
    now = time.monotonic_ns() - setup["origin_ns"]
    say(time=now, process=setup["process"], type=type, f=f, value=value, node=setup["node"])

def ready(**more):
    say(control="ready", pid=os.getpid(), generates=False, **more)
"""
SERVE = """
for line in sys.stdin:
    order = json.loads(line)
    event("invoke", order["f"], **order["value"])
    answer(order["f"], order["value"])
"""


@pytest.fixture
def worker(recorder, spawn, setup, eventually):
    """Start a program under its pump; the test's end closes it."""
    started = []

    def start(*words):
        lock = LockType(name="own", what="", make=None, servers=1, program=words)
        started.append(Worker(Local(spawn), recorder, typed(setup), command(lock), "./worker"))
        return started[0]

    yield start
    for one in started:
        one.close()


@pytest.fixture
def program(worker):
    """Start a program that begins as above and continues with this text."""
    return lambda text: worker(sys.executable, "-c", BEGIN + text)


def why_not_up(worker):
    with pytest.raises(Crashed) as error:
        worker.wait_ready()
    return str(error.value)


def test_a_missing_binary_is_named(worker):
    said = why_not_up(worker("./no-such-worker"))
    assert said.startswith(
        "./worker on client-1 did not report 'ready'; it ended with exit code 127"
    )
    assert "./no-such-worker cannot be started: No such file or directory" in said


def test_a_file_that_is_no_program_is_named(worker, tmp_path):
    (tmp_path / "worker").write_text("text")
    said = why_not_up(worker(str(tmp_path / "worker")))
    assert "exit code 126" in said and "cannot be started: Permission denied" in said


def test_a_program_that_exits_before_it_is_ready_is_quoted(program):
    said = why_not_up(program("sys.exit('no config')"))
    assert said == (
        "./worker on client-1 did not report 'ready'; it ended with exit code 1; it said: no config"
    )


@pytest.mark.parametrize("rubbish", ["hello", '{"ready": true}', '{"control":"hello"}'])
def test_rubbish_instead_of_ready_is_reported_at_once(program, rubbish):
    said = why_not_up(program(f"print('{rubbish}', flush=True)\nsys.stdin.read()"))
    assert said.startswith(f"client-1 wrote before it was ready {rubbish!r}: ")
    assert said.endswith('The correct form is in docs/protocol.md, "setup, and `ready`"')


def test_a_program_of_another_protocol_is_refused(program):
    said = why_not_up(program("ready(version=7)\nsys.stdin.read()"))
    assert said.startswith("./worker on client-1 uses version 7 of the line protocol, but this ")
    assert "supports 1:" in said


def test_a_program_that_is_an_elector_needs_the_option_for_it(program):
    said = why_not_up(program("ready(elector=True)\nsys.stdin.read()"))
    assert said == "./worker on client-1 is an elector: add --elector"


def test_a_program_that_names_no_version_speaks_the_first(program):
    program("ready()\nsys.stdin.read()").wait_ready()


LOCK = {"lock": "orders", "ttl": 1, "hold": "3-1"}
ACQUIRED = {**LOCK, "token": None, "deadline": None}
TOLD = {
    "acquire": ACQUIRED,
    "extend": {**LOCK, "deadline": None},
    "read": {"resource": "account", "value": None, "version": 0},
    "write": {"resource": "account", "value": "x", "version": 0},
}


@pytest.mark.parametrize(
    "f, lacking",
    [
        ("acquire", "hold"),
        ("acquire", "token"),
        ("acquire", "deadline"),
        ("extend", "deadline"),
        ("read", "version"),
        ("write", "value"),
    ],
)
def test_an_ok_without_a_required_field_is_the_client_s_mistake(
    program, recorder, eventually, f, lacking
):
    told = {name: value for name, value in TOLD[f].items() if name != lacking}
    worker = program(f"ready()\ndef answer(f, value): event('ok', f, **{told!r})\n{SERVE}")
    worker.wait_ready()
    worker.begin(f, TOLD[f])
    eventually(lambda: worker.broken)
    assert f"every ok of {f} must have {lacking!r}, and this one does not" in worker.broken
    assert worker.broken.startswith("client-1 wrote '{")
    assert worker.broken.endswith('docs/protocol.md, "Ops, and their events"')
    assert recorded(recorder) == [(3, f, "invoke")]


def test_a_hold_that_is_null_is_a_mistake_and_a_token_that_is_null_is_none(program, eventually):
    answer = f"def answer(f, value): event('ok', f, **{ACQUIRED!r} | value)"
    worker = program(f"ready()\n{answer}\n{SERVE}")
    worker.wait_ready()
    assert worker.do("acquire", {"lock": "orders"}, 120)["value"]["token"] is None
    assert worker.broken == ""
    worker.begin("acquire", {"lock": "orders", "hold": None})
    eventually(lambda: worker.broken)
    assert "every ok of acquire must have 'hold', and here it is null" in worker.broken


def test_output_of_a_library_during_a_run_is_ignored(program):
    answer = f"def answer(f, value):\n  print('a warning')\n  event('ok', f, **{ACQUIRED!r})"
    worker = program(f"ready()\n{answer}\n{SERVE}")
    worker.wait_ready()
    assert worker.do("acquire", {"lock": "orders"}, 120)["type"] == "ok"
    assert worker.broken == ""


def test_a_program_that_ends_during_a_run_is_reported_with_its_last_lines(program, eventually):
    worker = program(f"ready()\ndef answer(f, value): sys.exit('out of ideas')\n{SERVE}")
    worker.wait_ready()
    worker.begin("acquire", {"lock": "orders"})
    eventually(lambda: worker.gone)
    assert worker.broken == (
        "./worker on client-1 ended by itself: it ended with exit code 1; it said: out of ideas"
    )


def test_a_program_that_a_fault_kills_made_no_mistake(program, eventually):
    worker = program("ready()\nsys.stdin.readline()\nos.kill(os.getpid(), 9)")
    worker.wait_ready()
    worker.begin("acquire", {"lock": "orders"})
    eventually(lambda: worker.gone)
    assert worker.broken == ""


def test_a_program_that_ends_with_its_input_made_no_mistake(program):
    worker = program("ready()\nsys.stdin.read()\nsys.exit(3)")
    worker.wait_ready()
    worker.close()
    assert (worker.gone, worker.broken) == (True, "")


def test_a_program_in_an_endless_loop_is_described_as_such_and_ended(program, eventually):
    worker = program(f"ready()\ndef answer(f, value):\n  while True: pass\n{SERVE}")
    worker.wait_ready()
    worker.work({}, 10**18)  # fencepost runs its generator
    eventually(lambda: worker.busy)
    assert not worker.rest(0.1)
    loops = (
        "its acquire has no answer yet, and its program never waits: it may be in an endless loop"
    )
    eventually(lambda: worker.describe() == loops)
    worker.close()
    assert (worker.gone, worker.broken) == (True, "")


def test_a_program_that_waits_for_ever_is_not_said_to_loop(program, eventually):
    worker = program(f"ready()\ndef answer(f, value):\n  time.sleep(10**6)\n{SERVE}")
    worker.wait_ready()
    worker.begin("acquire", {"lock": "orders"})
    assert worker.wait_begun(120)
    eventually(lambda: worker.describe() == "its acquire has no answer yet")
