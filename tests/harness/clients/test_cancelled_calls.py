"""A client's program cancels a call of its lock when a signal asks for it."""

from __future__ import annotations

import os
import signal

import pytest

from fencepost.harness.clients.worker import Worker
from fencepost.workloads.client.cancelling import SIGNAL
from tests.harness.local import COMMAND, Local
from tests.harness.talk import ACQUIRE, PROGRAM, Talk, typed

pytestmark = pytest.mark.slow

ASYNCIO = """
import asyncio

class Lock:
    def __init__(self, servers):
        pass
    async def acquire(self, name, ttl):
        await asyncio.sleep(0 if name == "free" else 3600)
        return True
    async def release(self, name):
        pass
"""
BLOCKING = """
import os, signal, time, fencepost

class Asks(fencepost.Grant):
    @property
    def token(self):  # read once acquire has returned
        os.kill(os.getpid(), signal.SIGUSR1)
        return 7

class Lock:
    def __init__(self, servers):
        pass
    def acquire(self, name, ttl):
        if name == "asks":
            return Asks.__new__(Asks)
        time.sleep(0 if name == "free" else 3600)
        return True
    def release(self, name):
        time.sleep(3600)
"""
SIGNALLED = (
    """
import os, signal
from fencepost.workloads.locks import event_loop

class Begins(event_loop._Call):
    def __init__(self):  # the call has begun, and the loop does not know it yet
        super().__init__()
        if signal.getsignal(signal.SIGUSR1) != signal.SIG_DFL:  # not while the lock is made
            os.kill(os.getpid(), signal.SIGUSR1)

event_loop._Call = Begins
"""
    + ASYNCIO
)
BODIES = {"asyncio": ASYNCIO, "blocking": BLOCKING}


@pytest.fixture
def started(tmp_path, spawn, setup):
    def start(body, **more):
        (tmp_path / "mine.py").write_text(body)
        own = {"folder": str(tmp_path), "lock": "mine.py:Lock"}
        talk = Talk(spawn(PROGRAM))
        talk.say(control="setup", **setup | {"lock": "Lock", "options": {}, "own": own} | more)
        assert talk.hear()["control"] == "ready"
        return talk

    return start


@pytest.fixture(params=BODIES)
def talk(request, started):
    return started(BODIES[request.param])


def acquire(talk, lock="orders"):
    talk.say(f="acquire", value={**ACQUIRE["value"], "lock": lock})
    assert talk.hear()["type"] == "invoke"


def completed(talk, later=False):
    told = talk.hear()
    assert told["control"] == "cancelled"
    assert told.get("later", False) in (later, True)  # the signal may come before the call
    return talk.hear()


def test_the_running_call_is_cancelled_and_its_outcome_is_unknown(talk):
    acquire(talk)
    os.kill(talk.program.pid, SIGNAL)
    done = completed(talk)
    assert (done["type"], done["error"][0]) == ("info", "cancelled")


def test_if_none_is_running_the_next_one_is(talk):
    acquire(talk, "free")
    assert talk.hear()["type"] == "ok"
    os.kill(talk.program.pid, SIGNAL)
    acquire(talk)
    assert completed(talk, later=True)["type"] == "info"


@pytest.mark.parametrize(
    ("body", "more", "closes"),
    [(ASYNCIO, {}, 0), (ASYNCIO, {"closes": True}, 2), (BLOCKING, {}, 2)],
    ids=["asyncio", "asyncio, --after-cancel close", "blocking"],
)
def test_the_client_continues_as_another_process_and_closes_a_lock_that_blocks(
    started, body, more, closes
):
    talk = started(body, **more)
    acquire(talk)
    os.kill(talk.program.pid, SIGNAL)
    process = completed(talk)["process"]
    assert [talk.hear()["f"] for _ in range(closes)] == ["close"] * closes
    acquire(talk, "free")
    granted = talk.hear()
    assert granted["type"] == "ok" and granted["process"] > process


def test_an_answer_that_a_lock_has_given_is_not_lost_and_the_next_call_is_cancelled(started):
    talk = started(BLOCKING)
    acquire(talk, "asks")
    granted = talk.hear()
    assert (granted["type"], granted["value"]["token"]) == ("ok", 7)
    talk.say(f="release", value={"lock": "asks", "hold": granted["value"]["hold"]})
    assert talk.hear()["type"] == "invoke"
    assert completed(talk, later=True)["type"] == "info"


def test_a_call_that_begins_as_the_signal_comes_is_cancelled(started):
    talk = started(SIGNALLED)
    acquire(talk)
    assert completed(talk)["error"][0] == "cancelled"


def test_the_harness_counts_cancelled_calls_and_waits_for_no_dead_client(
    recorder, spawn, setup, tmp_path
):
    (tmp_path / "mine.py").write_text(ASYNCIO)
    own = {"folder": str(tmp_path), "lock": "mine.py:Lock"}
    asked = setup | {"lock": "Lock", "options": {}, "own": own}
    worker = Worker(Local(spawn), recorder, typed(asked), COMMAND)
    worker.wait_ready()
    assert not worker.wait_cancelled(0, 0.02)
    os.kill(worker.pid, SIGNAL)
    worker.begin("acquire", ACQUIRE["value"])
    assert worker.wait_cancelled(0, 120) and worker.cancelled_later
    assert worker.finish(120)["error"][0] == "cancelled"
    os.kill(worker.pid, signal.SIGKILL)
    assert not worker.wait_cancelled(1, 60)
    worker.close()
