"""A user lock whose verbs are coroutines: one event loop for its life, in a thread of its own."""

from __future__ import annotations

import asyncio
import socket
import socketserver
import threading
import time
from random import Random
from types import SimpleNamespace

import pytest

from fencepost.workloads.client.sockets import Sockets
from fencepost.workloads.client.steps import Steps
from fencepost.workloads.contract.lock import CANCELLED, BadAnswer, Env, Failed, Indeterminate
from fencepost.workloads.locks.event_loop import is_async
from fencepost.workloads.locks.plain import Grant, PlainLock

S = 10**9
HELD = SimpleNamespace(name="orders", deadline=0, token=None)


class Base:
    def __init__(self, servers):
        self.loop = asyncio.get_running_loop()
        self.ticks = 0

    async def acquire(self, name, ttl):
        return asyncio.get_running_loop() is self.loop

    async def release(self, name):
        await asyncio.sleep(0)
        return True


def env(**changed):
    never = lambda *_: None  # noqa: E731
    given = {"now": time.monotonic_ns, "sleep": time.sleep, "random": Random(1), "connect": never,
             "address": lambda node: ("127.0.0.1", 1), "failpoint": never, "background": never,
             "renewed": never, "lost": never, "expired": never}  # fmt: skip
    return Env(**given | changed)


@pytest.fixture
def made():
    locks = []

    def make(kind, **changed):
        locks.append(PlainLock("mine.py:Mine", kind, env(**changed), ["redis-1"], {}))
        return locks[-1]

    yield make
    for lock in locks:
        if lock._loop is not None:
            lock.close()


def threads():
    return [one for one in threading.enumerate() if one.name == "loop"]


def test_it_is_made_and_called_in_one_loop(made):
    lock = made(Base)
    assert lock.acquire("orders", S).name == "orders"
    assert len(threads()) == 1
    lock.release(HELD)
    lock.close()
    assert threads() == []


def test_a_task_that_it_starts_continues_between_its_calls(made):
    ticked = threading.Event()

    class Ticks(Base):
        async def acquire(self, name, ttl):
            self.task = asyncio.create_task(self.tick())
            return True

        async def tick(self):
            await asyncio.sleep(0)
            ticked.set()
            await asyncio.sleep(3600)

    lock = made(Ticks)
    lock.acquire("orders", S)
    assert ticked.wait(120)
    task = lock._lock.task
    lock.close()
    assert task.cancelled()


def test_some_verbs_may_be_functions_and_a_function_may_make_it(made):
    class Mixed(Base):
        def release(self, name):
            return False

    with pytest.raises(Failed, match="release answered False"):
        made(Mixed).release(HELD)

    class Made(Base):
        def __init__(self):
            self.loop = None

        async def acquire(self, name, ttl):
            return Grant(token=7)

    assert made(lambda servers: Made()).acquire("orders", S).token == 7


def test_a_coroutine_may_make_it(made):
    async def connect(servers):
        await asyncio.sleep(0)
        return Base(servers)

    assert made(connect).acquire("orders", S)


@pytest.mark.parametrize(
    ("error", "kind"), [(TimeoutError("late"), Indeterminate), (Failed("not-granted", "x"), Failed)]
)
def test_an_error_has_the_meaning_of_a_function_s(made, error, kind):
    class Fails(Base):
        async def acquire(self, name, ttl):
            raise error

    with pytest.raises(kind):
        made(Fails).acquire("orders", S)


def test_wrong_arguments_are_a_mistake(made):
    class Wrong(Base):
        async def acquire(self, name):
            return True

    with pytest.raises(BadAnswer, match="acquire raised TypeError"):
        made(Wrong).acquire("orders", S)

    class Within(Base):
        async def acquire(self, name, ttl):
            return int(None)

    with pytest.raises(Indeterminate):
        made(Within).acquire("orders", S)


@pytest.mark.parametrize(("kind", "found"), [(Base, True), (object, False), (socket.socket, False)])
def test_coroutines_are_recognized(kind, found):
    assert is_async(kind) is found


class Echo(socketserver.StreamRequestHandler):
    def handle(self):
        while line := self.rfile.readline():
            self.wfile.write(line)


def test_its_requests_are_steps_of_the_op_and_those_between_calls_are_not(made, monkeypatch):
    seen = []
    watcher = SimpleNamespace(
        comes=lambda step: seen.append((step.f, step.kind)), over=lambda step: None
    )
    steps = Steps(watcher)
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Echo) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()

        class Asks(Base):
            async def acquire(self, name, ttl):
                self.streams = await asyncio.open_connection(*server.server_address)
                return await self.ask()

            async def release(self, name):
                return await self.ask() and await self.ask()

            async def ask(self):
                self.streams[1].write(b"GET x\n")
                await self.streams[1].drain()
                return bool(await self.streams[0].readline())

            async def close(self):
                self.streams[1].close()
                await self.streams[1].wait_closed()

        counting(monkeypatch, Sockets(steps), server.server_address)
        lock = made(Asks, lend=steps.around(env()).lend)
        steps.begin("acquire")
        lock.acquire("orders", S)
        steps.begin("release")
        lock.release(HELD)
        lock._loop._run(lock._lock.ask()).result()  # as a task of its own asks
        lock.close()
        server.shutdown()
    assert [kind for f, kind in seen if f == "acquire"][-2:] == ["send", "receive"]
    assert [kind for f, kind in seen if f == "release"] == ["send", "receive"] * 2


def counting(monkeypatch, sockets, address):
    from fencepost.workloads.client import sockets as module

    # Tests of hunts replace the class for as long as the process lives.
    real = next(kind for kind in socket.socket.__mro__ if kind.__module__ == "socket")
    monkeypatch.setattr(socket, "socket", real)
    for name in module._CALLS:
        monkeypatch.setattr(socket.socket, name, getattr(socket.socket, name), raising=False)
    module.count(sockets, {"redis-1": address})


class Hangs(Base):
    """Waits for as long as it is not cancelled."""

    def __init__(self, servers):
        super().__init__(servers)
        self.asked = threading.Event()
        self.after = "raise"

    async def acquire(self, name, ttl):
        self.asked.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            if self.after == "raise":
                raise
            return self.after == "granted"


def cancelled(lock, after, times=1):
    """Cancel a call of the lock while it waits, and return how often that took effect."""
    lock._lock.after = after
    lock._lock.asked.clear()
    effects = []

    def cancel():
        assert lock._lock.asked.wait(120)
        for _ in range(times):
            lock.cancel(lambda: effects.append(after))

    cancels = threading.Thread(target=cancel)
    cancels.start()
    try:
        return lock.acquire("orders", S)
    finally:
        cancels.join()
        assert len(effects) == 1


def test_a_cancelled_call_is_unknown_unless_the_lock_answers(made):
    lock = made(Hangs)
    with pytest.raises(Indeterminate) as raised:
        cancelled(lock, "raise")
    assert raised.value.kind == CANCELLED
    with pytest.raises(Failed, match="answered False") as failed:
        cancelled(lock, "refused")
    assert not isinstance(failed.value, Indeterminate)
    assert cancelled(lock, "granted").name == "orders"


def test_two_requests_cancel_a_call_once(made):
    with pytest.raises(Indeterminate):
        cancelled(made(Hangs), "raise", times=2)


def test_a_call_is_cancelled_although_its_task_has_not_begun(made):
    lock, gate, cancelled = made(Hangs), threading.Event(), threading.Event()
    lock._loop._loop.call_soon_threadsafe(gate.wait)

    def ask():
        with pytest.raises(Indeterminate):
            lock.acquire("orders", S)

    asks = threading.Thread(target=ask)
    asks.start()
    while lock._loop._running is None:
        time.sleep(0.001)
    lock.cancel(cancelled.set)
    gate.set()
    at_once = cancelled.wait(120)
    lock.cancel(cancelled.set)
    asks.join()
    assert at_once


def test_outside_of_a_call_there_is_nothing_to_cancel(made):
    lock = made(Base)
    lock.acquire("orders", S)
    lock.cancel(lambda: pytest.fail("nothing was cancelled"))
    assert lock.acquire("orders", S)


def test_a_call_that_ends_in_the_same_tick_was_not_cancelled(made):
    class Ends(Base):
        async def acquire(self, name, ttl):
            lock.cancel(lambda: pytest.fail("it had ended"))
            return True

    lock = made(Ends)
    assert lock.acquire("orders", S)
    assert lock.acquire("orders", S)


def test_a_lock_that_cancels_itself_was_not_cancelled_by_a_fault(made):
    class Itself(Base):
        async def acquire(self, name, ttl):
            raise asyncio.CancelledError

    with pytest.raises(Indeterminate) as raised:
        made(Itself).acquire("orders", S)
    assert raised.value.kind == "raised"
