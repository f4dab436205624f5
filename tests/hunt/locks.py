"""User locks for the hunt: each brings its own connections."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
import uuid
from concurrent.futures import ThreadPoolExecutor, as_completed

import redis

import fencepost

RELEASE = """
if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) end
return 0
"""


class Right:
    """Releases only its own key."""

    def __init__(self, servers, wait_s=0):
        self.client = redis.Redis(*servers[0], socket_timeout=0.5, retry=None)
        self.release_script = self.client.register_script(RELEASE)
        self.values = {}
        self.wait_s = wait_s

    def acquire(self, name, ttl):
        value, until = uuid.uuid4().hex, time.monotonic() + self.wait_s
        while not self.client.set(name, value, nx=True, px=int(ttl * 1000)):
            if time.monotonic() >= until:
                return False
            time.sleep(0.05)
        self.values[name] = value
        return True

    def release(self, name):
        return bool(self.release_script(keys=[name], args=[self.values.pop(name)]))


class Deletes(Right):
    """Deletes the key whatever its value is."""

    def release(self, name):
        self.client.delete(name)


class Raw:
    """Speaks Redis' protocol itself, as a person types it."""

    def __init__(self, servers):
        self.socket = socket.create_connection(servers[0], timeout=0.5)
        self.answers = self.socket.makefile("rb")

    def acquire(self, name, ttl):
        self.socket.sendall(b"SET %s held NX PX %d\r\n" % (name.encode(), int(ttl * 1000)))
        return self.answers.readline() == b"+OK\r\n"

    def release(self, name):
        self.socket.sendall(b"DEL %s\r\n" % name.encode())
        self.answers.readline()


class Renews(Right):
    """A thread renews the lease."""

    def acquire(self, name, ttl):
        if not super().acquire(name, ttl):
            return False
        self.over = threading.Event()
        self.thread = threading.Thread(target=self.renew, args=(name, ttl), daemon=True)
        self.thread.start()
        return True

    def renew(self, name, ttl):
        while not self.over.wait(ttl / 3):
            self.client.pexpire(name, int(ttl * 1000))

    def release(self, name):
        self.over.set()
        self.thread.join()
        return super().release(name)


class Left:
    """Reads the clock when it is collected, which is when its cycle is."""

    def __init__(self):
        self.circle = self

    def __del__(self):
        time.time()


class Leaves(Right):
    """Leaves objects that act when they are collected."""

    def acquire(self, name, ttl):
        for _ in range(5):
            Left()
        return super().acquire(name, ttl)


class Pools(Right):
    """A pool of threads sends the requests, as many as the machine has processors for."""

    def acquire(self, name, ttl):
        ask = super().acquire
        with ThreadPoolExecutor() as pool:
            assert pool._max_workers == 8
            asked = {pool.submit(ask, name, ttl) for _ in range(3)}
            return sum(one.result() for one in as_completed(asked)) == 1


class NoOrders(Right):
    """Sends a command that the model does not have."""

    def acquire(self, name, ttl):
        return bool(self.client.geoadd(name, (1.0, 2.0, "held")))


class Waits(Raw):
    """Waits for its turn in a list, and sends more requests meanwhile on the same connection."""

    def acquire(self, name, ttl):
        while not super().acquire(name, ttl):
            self.socket.sendall(b"PING\r\nBLPOP free 0.2\r\nSET seen 1\r\n")
            assert self.answers.readline() == b"+PONG\r\n"
            found = self.answers.readline()
            if found != b"*-1\r\n":
                assert [found, *(self.answers.readline() for _ in range(4))][2] == b"free\r\n"
            assert self.answers.readline() == b"+OK\r\n"
        return True

    def release(self, name):
        super().release(name)
        self.socket.sendall(b"RPUSH free 1\r\n")
        assert self.answers.readline() == b":1\r\n"


class Elsewhere(Right):
    def acquire(self, name, ttl):
        return redis.Redis("example.org").ping()


class Raises(Right):
    def acquire(self, name, ttl):
        return undefined  # noqa: F821


class Loops(Right):
    def acquire(self, name, ttl):
        while True:
            with contextlib.suppress(Exception):
                time.time()


class Insists(Right):
    """Asks until it is granted a lock that no client releases."""

    def acquire(self, name, ttl):
        self.client.set(name, "kept")
        while not self.client.set(name, "held", nx=True):
            time.sleep(0.1)
        return True


class Spins(Right):
    def acquire(self, name, ttl):
        while True:
            pass


COUNT = 0


class Counts(Right):
    """A global of its module belongs to one client."""

    def acquire(self, name, ttl):
        global COUNT
        COUNT += 1
        assert COUNT <= 40
        return super().acquire(name, ttl)


class Counted(Right):
    """Its tokens come from a counter, incremented in the same script."""

    SET = """
    if redis.call('set', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then
      return redis.call('incr', KEYS[1] .. ':token')
    end
    return false
    """

    def acquire(self, name, ttl):
        asked, self.values[name] = time.monotonic(), uuid.uuid4().hex
        token = self.client.eval(self.SET, 1, name, self.values[name], int(ttl * 1000))
        return token is not None and fencepost.Grant(deadline=asked + ttl, token=token)


class Looks(Right):
    """A release that looks, and then deletes: its own defect."""

    def release(self, name):
        if self.client.get(name) != self.values.pop(name).encode():
            return False
        return bool(self.client.delete(name))


class Binary(Right):
    """Its key is no UTF-8, and it sets the key whether or not another client holds the lock."""

    def acquire(self, name, ttl):
        return bool(self.client.set(b"\xff" + name.encode(), b"\xfe\xff", px=int(ttl * 1000)))

    def release(self, name):
        return bool(self.client.delete(b"\xff" + name.encode()))


class Prolongs(Right):
    """A request that is refused prolongs the lease of the holder."""

    def acquire(self, name, ttl):
        self.values[name] = value = uuid.uuid4().hex
        with self.client.pipeline() as pipe:
            pipe.setnx(name, value)
            pipe.pexpire(name, int(ttl * 1000))
            return bool(pipe.execute()[0])


class Interrupted(Right):
    """Ctrl-C arrives while its own code runs."""

    asked = 0

    def acquire(self, name, ttl):
        Interrupted.asked += 1
        if Interrupted.asked > 20:
            raise KeyboardInterrupt
        return super().acquire(name, ttl)
