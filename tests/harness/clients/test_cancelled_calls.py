"""A client's program cancels a call of its lock when a signal asks for it."""

from __future__ import annotations

import os

import pytest

from fencepost.workloads.client.cancelling import SIGNAL
from tests.harness.talk import ACQUIRE, PROGRAM, Talk

pytestmark = pytest.mark.slow

BODIES = {
    "asyncio": """
import asyncio

class Lock:
    def __init__(self, servers):
        pass
    async def acquire(self, name, ttl):
        await asyncio.sleep(0 if name == "free" else 3600)
        return True
    async def release(self, name):
        pass
""",
    "threads": """
import time

class Lock:
    def __init__(self, servers):
        pass
    def acquire(self, name, ttl):
        time.sleep(0 if name == "free" else 3600)
        return True
    def release(self, name):
        pass
""",
}


@pytest.fixture(params=BODIES)
def talk(request, tmp_path, spawn, setup):
    (tmp_path / "mine.py").write_text(BODIES[request.param])
    own = {"folder": str(tmp_path), "lock": "mine.py:Lock"}
    talk = Talk(spawn(PROGRAM))
    talk.say(control="setup", **setup | {"lock": "Lock", "options": {}, "own": own})
    assert talk.hear()["control"] == "ready"
    return talk


def acquire(talk, lock="orders"):
    talk.say(f="acquire", value={**ACQUIRE["value"], "lock": lock})
    assert talk.hear()["type"] == "invoke"


def completed(talk):
    told = talk.hear()
    assert told == {"control": "cancelled"}
    return talk.hear()


def test_the_running_call_is_cancelled_and_its_outcome_is_unknown(talk):
    acquire(talk)
    os.kill(talk.program.pid, SIGNAL)
    done = completed(talk)
    assert (done["type"], done["error"][0]) == ("info", "cancelled")
    assert [talk.hear()["f"] for _ in range(2)] == ["close", "close"]


def test_if_none_is_running_the_next_one_is(talk):
    acquire(talk, "free")
    assert talk.hear()["type"] == "ok"
    os.kill(talk.program.pid, SIGNAL)
    acquire(talk)
    assert completed(talk)["type"] == "info"


def test_the_client_goes_on_with_its_successor(talk):
    acquire(talk)
    os.kill(talk.program.pid, SIGNAL)
    process = completed(talk)["process"]
    assert [talk.hear()["type"] for _ in range(2)] == ["invoke", "ok"]
    acquire(talk, "free")
    granted = talk.hear()
    assert granted["type"] == "ok" and granted["process"] > process
