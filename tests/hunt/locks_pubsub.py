"""Locks on Redis in the plain contract that subscribe, watch, or interrupt their main thread."""

from __future__ import annotations

import _thread
import threading
import time
import uuid

import redis


class Woken:
    """A lock that waits for the message of a release."""

    waits_s = 1.0

    def __init__(self, servers):
        host, port = servers[0]
        self.client = redis.Redis(host=host, port=port, socket_timeout=3.0)
        self.secret = uuid.uuid4().hex

    def acquire(self, name, ttl):
        with self.client.pubsub(ignore_subscribe_messages=True) as waits:
            waits.subscribe(f"{name}:free")
            waits.get_message(timeout=1.0)
            for _ in range(3):
                if self.client.set(name, self.secret, nx=True, px=int(ttl * 1000)):
                    return True
                waits.get_message(timeout=self.waits_s)
        return False

    def release(self, name):
        with self.client.pipeline() as pipe:
            while True:
                try:
                    pipe.watch(name)
                    if pipe.get(name) != self.secret.encode():
                        return False
                    pipe.multi()
                    pipe.delete(name)
                    pipe.publish(f"{name}:free", "1")
                    return bool(pipe.execute()[0])
                except redis.WatchError:
                    continue


class Interrupting(Woken):
    """A thread of it interrupts the main thread once the lock is held."""

    def acquire(self, name, ttl):
        granted = super().acquire(name, ttl)
        if granted:
            threading.Thread(target=_thread.interrupt_main, daemon=True).start()
        return granted


class ListensForEver(Woken):
    """Waits for a message without a limit, and hears nothing of a lease that ends."""

    def acquire(self, name, ttl):
        with self.client.pubsub(ignore_subscribe_messages=True) as waits:
            waits.subscribe(f"{name}:free")
            waits.get_message(timeout=1.0)
            while not self.client.set(name, self.secret, nx=True, px=int(ttl * 1000)):
                waits.get_message(timeout=None)
        return True


class ListensAndAsks(Woken):
    """Waits without a limit as well, and asks again after each second."""

    def acquire(self, name, ttl):
        with self.client.pubsub(ignore_subscribe_messages=True) as waits:
            waits.subscribe(f"{name}:free")
            waits.get_message(timeout=1.0)
            while not self.client.set(name, self.secret, nx=True, px=int(ttl * 1000)):
                waits.get_message(timeout=1.0)
        return True


class KeptForEver(ListensAndAsks):
    """Asks again and again as well. Its keys have no lease."""

    def acquire(self, name, ttl):
        while not self.client.set(name, self.secret, nx=True):
            time.sleep(ttl / 4)
        return True


class ReleasesForEver(Woken):
    """A release waits for a message that does not come."""

    def release(self, name):
        super().release(name)
        with self.client.pubsub(ignore_subscribe_messages=True) as waits:
            waits.subscribe(f"{name}:confirmed")
            while waits.get_message(timeout=None) is None:
                pass
