"""Locks on Redis, each of which uses one more part of Python's standard library."""

from __future__ import annotations

import asyncio
import importlib
import os
import select
import selectors
import socket
import ssl
import threading
import uuid
from concurrent.futures import ThreadPoolExecutor, as_completed

import redis
import redis.asyncio

TLS = {"ssl": True, "ssl_cert_reqs": "none"}
RELEASE = """
if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) end
return 0
"""


class Plain:
    """Uses nothing more."""

    encrypts = False

    def __init__(self, servers):
        host, port = servers[0]
        more = TLS if self.encrypts else {}
        self.client = redis.Redis(host=host, port=port, socket_timeout=1, retry=None, **more)
        self.secret = uuid.uuid4().hex

    def use(self):
        pass

    def acquire(self, name, ttl):
        self.use()
        return bool(self.client.set(name, self.secret, nx=True, px=int(ttl * 1000)))

    def release(self, name):
        return self.client.eval(RELEASE, 1, name, self.secret) == 1


class Polls(Plain):
    def use(self):
        one, other = socket.socketpair()
        poll = select.poll()
        poll.register(other, select.POLLIN)
        assert not poll.poll(5)
        one.send(b"x")
        assert poll.poll(5)


class Epolls(Plain):
    def use(self):
        one, other = socket.socketpair()
        with select.epoll() as poll:
            poll.register(other.fileno(), select.EPOLLIN)
            assert not poll.poll(0.005)
            one.send(b"x")
            assert poll.poll(0.005, 1) == [(other.fileno(), select.EPOLLIN)]
        assert poll.closed


class Selects(Plain):
    def use(self):
        one, other = socket.socketpair()
        with selectors.DefaultSelector() as selector:
            selector.register(other, selectors.EVENT_READ)
            assert not selector.select(0.005)
            one.send(b"x")
            assert selector.select(0.005)


class Pipes(Plain):
    def use(self):
        reads, writes = os.pipe()
        os.set_blocking(reads, False)
        assert not os.get_blocking(reads) and not select.select([reads], [], [], 0.005)[0]
        threading.Timer(0.01, os.write, (writes, b"xyz")).start()
        assert select.select([reads], [], [], 1)[0] == [reads]
        assert os.read(reads, 2) == b"xy" and os.read(reads, 2) == b"z"
        os.close(writes)
        assert os.read(reads, 2) == b""
        os.close(reads)


class Pools(Plain):
    def use(self):
        with ThreadPoolExecutor(2) as pool:
            futures = [pool.submit(pow, 2, number) for number in range(3)]
            assert sorted(one.result() for one in as_completed(futures)) == [1, 2, 4]


class Encrypts(Plain):
    """Its client wraps its socket by TLS, and verifies nothing."""

    encrypts = True


class Wraps(Plain):
    """Wraps its own socket, and looks at the handshake."""

    def __init__(self, servers):
        context = ssl.create_default_context()
        plain = socket.create_connection(servers[0], timeout=1)
        self.socket = context.wrap_socket(plain, server_hostname=servers[0][0])
        self.socket.do_handshake()
        assert self.socket.version() == "TLSv1.3" and self.socket.cipher()
        assert self.socket.getpeercert() == {} and not self.socket.pending()
        self.answers = self.socket.makefile("rb")
        self.secret = uuid.uuid4().hex

    def ask(self, words):
        self.socket.sendall(words.encode() + b"\r\n")
        return self.answers.readline().strip()

    def acquire(self, name, ttl):
        return self.ask(f"SET {name} {self.secret} NX PX {int(ttl * 1000)}") == b"+OK"

    def release(self, name):
        script = "if redis.call('get',KEYS[1])==ARGV[1] then return redis.call('del',KEYS[1]) end"
        return self.ask(f'EVAL "{script} return 0" 1 {name} {self.secret}') == b":1"


class Awaits:
    """Of asyncio."""

    encrypts = False

    def __init__(self, servers):
        host, port = servers[0]
        more = TLS if self.encrypts else {}
        self.client = redis.asyncio.Redis(
            host=host, port=port, socket_timeout=1, retry=None, **more
        )
        self.secret = uuid.uuid4().hex

    async def use(self):
        pass

    async def acquire(self, name, ttl):
        await self.use()
        return bool(await self.client.set(name, self.secret, nx=True, px=int(ttl * 1000)))

    async def release(self, name):
        return await self.client.eval(RELEASE, 1, name, self.secret) == 1

    async def close(self):
        await self.client.aclose()


class AwaitsEncrypted(Awaits):
    encrypts = True


class AnotherPolicy(Awaits):
    """Its file sets a policy, as uvloop.install() does."""

    def __init__(self, servers):
        class Foreign(asyncio.DefaultEventLoopPolicy):
            def new_event_loop(self):
                raise AssertionError("its loop connects outside of Python")

        asyncio.set_event_loop_policy(Foreign())
        super().__init__(servers)


class Handles(Awaits):
    async def use(self):
        asyncio.get_running_loop().add_signal_handler(15, print)


class Starts(Awaits):
    async def use(self):
        await asyncio.create_subprocess_exec("true")


def _calls(module, name, *arguments):
    class Calls(Plain):
        def use(self):
            owner = importlib.import_module(module)
            getattr(owner, name)(*arguments)

    return Calls


Forks = _calls("os", "fork")
Runs = _calls("subprocess", "run", ["true"])
ProcessPool = _calls("concurrent.futures", "ProcessPoolExecutor", 1)
ProcessPipe = _calls("multiprocessing", "Pipe")
Alarm = _calls("signal", "alarm", 1)
Handler = _calls("signal", "signal", 15, print)
Kills = _calls("os", "kill", 1, 0)


class NamesItself(Awaits):
    """Its owner is the name of its task and of its thread, which each process counts for itself."""

    async def use(self):
        thread = threading.Thread(target=str)
        self.secret = f"{asyncio.current_task().get_name()} {thread.name}"
