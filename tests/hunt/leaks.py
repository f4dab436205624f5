"""A lock that uses each source of chance and time that a simulated client has."""

from __future__ import annotations

import hashlib
import importlib
import os
import platform
import random
import secrets
import socket
import threading
import time
import uuid

import redis

RELEASE = """
if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) end
return 0
"""
DATES = importlib.import_module("datetime")
SOURCES = {
    "Random": lambda: random.Random().random(),
    "seed": lambda: (random.seed(), random.random()),
    "SystemRandom": lambda: random.SystemRandom().random(),
    "urandom": lambda: os.urandom(8),
    "getrandom": lambda: os.getrandom(8),
    "secrets": lambda: (secrets.token_hex(8), secrets.randbits(64), secrets.choice("abcdefgh")),
    "uuid": lambda: (uuid.uuid1(), uuid.uuid4(), uuid.getnode()),
    "time": lambda: (time.time(), time.time_ns()),
    "monotonic": lambda: (time.monotonic(), time.perf_counter_ns()),
    "processor": lambda: (time.process_time(), time.thread_time_ns(), os.times()),
    "clock_gettime": lambda: [time.clock_gettime(kind) for kind in range(8)],
    "clock_gettime_ns": lambda: time.clock_gettime_ns(time.CLOCK_REALTIME),
    "parts": lambda: (time.gmtime(), time.localtime(), time.mktime(time.localtime())),
    "text": lambda: (time.strftime("%F %T"), time.ctime(), time.asctime()),
    "datetime": lambda: (DATES.datetime.now(), DATES.datetime.utcnow(), DATES.date.today()),
    "timestamp": lambda: DATES.datetime.now().timestamp(),
    "zone": lambda: DATES.datetime.now(DATES.UTC).isoformat(),
    "processes": lambda: (os.getpid(), os.getppid(), threading.get_native_id()),
    "machine": lambda: (socket.gethostname(), platform.node(), os.uname().nodename),
    "processors": lambda: (os.cpu_count(), sorted(os.sched_getaffinity(0))),
}


class Everything:
    """Its secret depends on every source."""

    def __init__(self, servers):
        self.client = redis.Redis(*servers[0], socket_timeout=0.5, retry=None)

    def acquire(self, name, ttl):
        drawn = repr([(name, source()) for name, source in SOURCES.items()])
        self.secret = hashlib.sha256(drawn.encode()).hexdigest()
        return bool(self.client.set(name, self.secret, nx=True, px=int(ttl * 1000)))

    def release(self, name):
        return self.client.eval(RELEASE, 1, name, self.secret) == 1


class Opens(Everything):
    def acquire(self, name, ttl):
        with open("/dev/urandom", "rb") as file:
            return file.read(1) > b"a"


class Writes(Everything):
    def acquire(self, name, ttl):
        with open("count", "a") as file:
            return file.write("x") == 1


class Exports(Everything):
    def acquire(self, name, ttl):
        os.environ["COUNT"] = "1"
        return True


class Keeps(Everything):
    """Stores something in a module that outlives a run."""

    def acquire(self, name, ttl):
        random.acquired = getattr(random, "acquired", 0) + 1
        self.client.get(f"seen-{random.acquired % 7}")
        return bool(self.client.set(name, "held", nx=True, px=int(ttl * 1000)))

    def release(self, name):
        self.client.delete(name)


class Hashes(Everything):
    """Asks in the order of a set of strings."""

    def acquire(self, name, ttl):
        for word in {"alpha", "beta", "gamma", "delta", "epsilon", "zeta"}:
            self.client.get(word)
        return bool(self.client.set(name, "held", nx=True, px=int(ttl * 1000)))

    def release(self, name):
        self.client.delete(name)
