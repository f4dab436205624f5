"""Leases renewed in the background: in time, or lost by the clock."""

from __future__ import annotations

import dataclasses
import threading
import time
from random import Random

import pytest

from fencepost.workloads.contract.lock import Env, Failed, Indeterminate
from fencepost.workloads.locks.keepalive import Keepalive

pytestmark = pytest.mark.slow

TTL = 300_000_000
# A live lease is renewed at each look, and lost only on a machine that is paused for 5 s.
LONG, OFTEN = 5_000_000_000, 24
PATIENCE_S = 10.0


class World:
    """The real clock and real threads; the lock's events are kept."""

    def __init__(self):
        self.said = []
        self.changed = threading.Condition()

    def env(self):
        return Env(
            now=time.monotonic_ns,
            sleep=time.sleep,
            random=Random(1),
            connect=lambda node, timeout_s: pytest.fail("no connection is needed"),
            address=lambda node: (node, 0),
            failpoint=lambda point: None,
            background=lambda work: threading.Thread(target=work, daemon=True).start(),
            renewed=lambda secret, deadline: self.say("renewed", secret),
            lost=lambda secret, why: self.say("lost", secret, why),
            expired=lambda why: self.say("expired", why),
        )

    def say(self, *words):
        with self.changed:
            self.said.append(words)
            self.changed.notify_all()

    def until(self, condition):
        with self.changed:
            assert self.changed.wait_for(lambda: condition(self.said), PATIENCE_S), self.said


@pytest.fixture
def world():
    return World()


@pytest.fixture
def keepalive(world):
    keepalive = Keepalive(world.env())
    yield keepalive
    keepalive.close()


def longer(ttl_ns=TTL):
    return time.monotonic_ns() + ttl_ns


def renewed():
    return longer(LONG)


def test_a_lease_is_renewed_again_and_again(world, keepalive):
    keepalive.watch("a", LONG, renewed(), renewed, OFTEN)
    world.until(lambda said: said.count(("renewed", "a")) >= 3)
    assert {words[0] for words in world.said} == {"renewed"}


def test_a_lease_that_the_server_reports_as_ended_is_lost_at_once(world, keepalive):
    def gone():
        raise Failed("not-held", "the key is gone")

    keepalive.watch("a", TTL, longer(), gone)
    world.until(lambda said: said == [("lost", "a", "the key is gone")])


@pytest.mark.parametrize(
    "error", [Indeterminate("timeout", "silence"), Failed("unreachable", "refused")]
)
def test_silence_is_tolerated_until_the_lease_expires(world, keepalive, error):
    deadline = longer()

    def silent():
        raise error

    keepalive.watch("a", TTL, deadline, silent)
    world.until(lambda said: bool(said))
    assert time.monotonic_ns() >= deadline
    assert world.said[0][:2] == ("lost", "a")


def test_a_hanging_request_does_not_hide_that_the_lease_has_expired(world, keepalive):
    hangs = threading.Event()

    def hanging():
        hangs.wait(PATIENCE_S)
        raise Indeterminate("timeout", "silence")

    keepalive.watch("a", TTL, longer(), hanging)
    try:
        world.until(lambda said: bool(said))
        assert world.said[0][:2] == ("lost", "a")
    finally:
        hangs.set()


def test_a_forgotten_lease_is_neither_renewed_nor_lost(world, keepalive):
    keepalive.watch("a", TTL, longer(), lambda: pytest.fail("it was asked about"))
    keepalive.forget("a")
    keepalive.watch("b", LONG, renewed(), renewed, OFTEN)
    world.until(lambda said: said.count(("renewed", "b")) >= 3)
    assert all(words[1] == "b" for words in world.said)


@pytest.mark.parametrize(("renews", "name"), [(True, "_renew_all"), (False, "_ask_all")])
def test_its_threads_are_named_by_their_work(world, renews, name):
    started = []
    env = dataclasses.replace(world.env(), background=started.append)
    keepalive = Keepalive(env, renews=renews)
    keepalive.watch("a", LONG, renewed(), renewed, OFTEN)
    assert [work.__name__ for work in started] == [name, "_watch_all"]
    keepalive.close()
    for work in started:
        work()
