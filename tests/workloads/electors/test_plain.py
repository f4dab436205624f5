"""An elector as a lock: a campaign is an acquire, a reign is a hold."""

from __future__ import annotations

import asyncio
import re
import threading
import time
from contextlib import suppress
from random import Random
from types import SimpleNamespace

import pytest

from fencepost.workloads.contract.lock import BadAnswer, Failed, Indeterminate
from fencepost.workloads.electors.plain import CAMPAIGNS_FOR, ElectorLock, is_elector

S = 10**9
TTL_NS = S // 10
LONG_S = 10


class World:
    """The env of an elector, and the notices that it was given."""

    def __init__(self):
        self.told, self.raised, self.heard = [], [], threading.Event()
        origin = time.monotonic_ns() - 5 * S
        self.env = SimpleNamespace(
            now=lambda: time.monotonic_ns() - origin,
            address={"k-1": ("10.0.0.7", 6443)}.__getitem__,
            random=Random(1),
            background=self.background,
            identity="client-1.0",
            end_threads=lambda: self.told.append(("end_threads",)),
            lost=lambda secret, why: self.hear("lost", secret, why),
            renewed=lambda secret, until: self.hear("renewed", secret, until),
        )

    def hear(self, *words):
        self.told.append(words)
        self.heard.set()

    def background(self, work):
        def run():
            try:
                work()
            except BadAnswer as error:
                self.raised.append(str(error))

        threading.Thread(target=run, daemon=True).start()

    def lock(self, run, resign=None):
        class Elector:
            def __init__(self, servers):
                self.servers = servers
                self.resigned = threading.Event()

        Elector.run = run
        if resign is not None:
            Elector.resign = resign
        return ElectorLock("mine.py:Elector", Elector, self.env, ["k-1"], {})


@pytest.fixture
def world():
    return World()


def until_resigned(elector, name, identity, ttl, started, stopped):
    started(token=7)
    elector.resigned.wait(LONG_S)
    stopped()


def resign(elector):
    elector.resigned.set()


def test_a_campaign_is_granted_when_the_elector_is_started(world):
    given = []

    def run(elector, name, identity, ttl, started, stopped):
        given.append((elector.servers, name, identity, ttl))
        until_resigned(elector, name, identity, ttl, started, stopped)

    grant = world.lock(run, resign).acquire("orders", TTL_NS)
    assert (grant.name, grant.token, grant.deadline) == ("orders", 7, None)
    assert given == [([("10.0.0.7", 6443)], "orders", "client-1.0", 0.1)]


def test_a_release_resigns_and_waits_for_the_end_of_run(world):
    lock = world.lock(until_resigned, resign)
    assert lock.resigns
    lock.release(lock.acquire("orders", TTL_NS))
    with pytest.raises(Failed, match="run returned"):
        lock.release(SimpleNamespace())
    assert lock.acquire("orders", TTL_NS).token == 7, "each campaign has an elector of its own"


def test_a_release_is_indeterminate_if_run_goes_on(world):
    lock = world.lock(until_resigned, lambda elector: None)
    with pytest.raises(Indeterminate, match="did not return"):
        lock.release(lock.acquire("orders", TTL_NS))


def test_stopped_ends_the_reign(world):
    def run(elector, name, identity, ttl, started, stopped):
        started()
        stopped()

    grant = world.lock(run).acquire("orders", TTL_NS)
    assert world.heard.wait(LONG_S)
    assert world.told == [("lost", grant.secret, "stopped was called")]


def test_an_exception_of_run_ends_the_reign(world):
    def run(elector, name, identity, ttl, started, stopped):
        started()
        raise OSError("reset")

    grant = world.lock(run).acquire("orders", TTL_NS)
    assert world.heard.wait(LONG_S)
    assert world.told == [("lost", grant.secret, "run raised OSError: reset")]


def test_a_deadline_is_of_the_monotonic_clock_and_can_be_renewed(world):
    begun = time.monotonic()

    def run(elector, name, identity, ttl, started, stopped):
        started(deadline=begun + 1)(begun + 2)
        stopped()

    grant = world.lock(run).acquire("orders", TTL_NS)
    assert world.heard.wait(LONG_S)
    (kind, secret, until), *_ = world.told
    assert (kind, secret, round((until - grant.deadline) / S, 6)) == ("renewed", grant.secret, 1.0)
    assert abs(grant.deadline - world.env.now() - S) < LONG_S * S


def test_a_run_that_ends_before_it_led_is_a_refusal_and_its_threads_end(world):
    with pytest.raises(Failed, match="run returned") as caught:
        world.lock(lambda *_: None).acquire("orders", TTL_NS)
    assert (type(caught.value), caught.value.kind) == (Failed, "not-granted")
    assert world.told == [("end_threads",)]


def test_a_campaign_without_an_end_is_indeterminate(world):
    ended = threading.Event()
    lock = world.lock(lambda *_: ended.wait(LONG_S))
    assert not lock.resigns
    with pytest.raises(Indeterminate, match=f"after {CAMPAIGNS_FOR} leases"):
        lock.acquire("orders", TTL_NS // 20)
    ended.set()
    lock.close()
    assert world.told[-1] == ("end_threads",)


def twice(elector, name, identity, ttl, started, stopped):
    started()
    started()


def stopped_first(elector, name, identity, ttl, started, stopped):
    stopped()


def returns(elector, name, identity, ttl, started, stopped):
    started()


def exits(elector, name, identity, ttl, started, stopped):
    raise SystemExit("bad numbers")


def takes_too_little(elector, name):
    pass


def calls_wrongly(elector, name, identity, ttl, started, stopped):
    started(leader=True)


def names_no_token(elector, name, identity, ttl, started, stopped):
    started(token="7")


def names_the_wall_clock(elector, name, identity, ttl, started, stopped):
    started(deadline=time.time() + ttl)


def has_a_bug(elector, name, identity, ttl, started, stopped):
    raise NameError("no such name")


@pytest.mark.parametrize(
    ("run", "words"),
    [
        (twice, "started was called twice"),
        (stopped_first, "stopped was called before started"),
        (returns, "run returned while it leads; it should call stopped"),
        (exits, "run ended its process: bad numbers"),
        (takes_too_little, "run cannot be called: .*takes 2 positional arguments"),
        (calls_wrongly, "started takes a token and a deadline"),
        (names_no_token, "the token '7'; it is an integer"),
        (names_the_wall_clock, r"it should be in s of time.monotonic\(\)"),
        (has_a_bug, "NameError: no such name. That is a bug"),
    ],
)
def test_a_bug_of_an_elector_is_told_in_a_sentence_that_names_it(world, run, words):
    lock = world.lock(run)
    with suppress(Failed):
        lock.acquire("orders", TTL_NS)
    deadline = time.monotonic() + LONG_S
    while not world.raised and time.monotonic() < deadline:
        time.sleep(0.001)
    assert world.raised
    said = world.raised[0]
    assert said.startswith("mine.py:Elector: ") and "\n" not in said
    assert re.search(words, said), said


def test_a_class_with_run_and_without_acquire_is_an_elector():
    class Lock:
        def acquire(self, name, ttl): ...
        def run(self): ...

    class Elector:
        def run(self): ...

    assert is_elector(Elector) and is_elector(Elector())
    assert not is_elector(Lock) and not is_elector(object)


def test_an_elector_needs_a_run(world):
    made = type("Elector", (), {"__init__": lambda self, servers: None})
    with pytest.raises(BadAnswer, match="run"):
        ElectorLock("mine.py:Elector", made, world.env, [], {})


def test_run_and_resign_may_be_coroutine_functions(world):
    async def run(elector, name, identity, ttl, started, stopped):
        started(token=9)
        while not elector.resigned.is_set():
            await asyncio.sleep(0.001)
        stopped()

    async def resign(elector):
        elector.resigned.set()

    lock = world.lock(run, resign)
    grant = lock.acquire("orders", LONG_S * S)
    assert grant.token == 9
    lock.release(grant)
    assert world.told[-1] == ("lost", grant.secret, "stopped was called")


@pytest.mark.parametrize(("stops", "told"), [("exit", 1), ("callback", 0)])
def test_an_exception_of_run_is_no_callback(world, stops, told):
    def run(elector, name, identity, ttl, started, stopped):
        started()
        raise OSError("reset")

    lock = world.lock(run)
    lock.stops = stops
    lock.acquire("orders", TTL_NS)
    assert lock._campaign.ended.wait(LONG_S)
    assert len(world.told) == told


def test_a_client_that_checks_asks_is_leader(world):
    lock = world.lock(until_resigned, resign)
    lock.stops = "checked"
    lock.acquire("orders", TTL_NS)
    assert not lock.denies, "it has no is_leader"
    lock._campaign._elector.is_leader = lambda: False
    assert lock.denies
    lock.stops = "exit"
    assert not lock.denies
