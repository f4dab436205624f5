"""Locks on ZooKeeper in the plain contract: the recipes of kazoo, and some of our own."""

from __future__ import annotations

import threading

from kazoo.client import KazooClient
from kazoo.exceptions import LockTimeout, NodeExistsError, NoNodeError

from fencepost import Grant

WAITS_S = 3.0


class OnKazoo:
    """A session, from the first request for the lock on."""

    def __init__(self, servers):
        self._hosts = ",".join(f"{host}:{port}" for host, port in servers)
        self._client = None

    def client(self, ttl):
        if self._client is None:
            self._client = KazooClient(self._hosts, timeout=ttl)
            self._client.start(WAITS_S)
        return self._client

    def close(self):
        if self._client is not None:
            self._client.stop()
            self._client.close()


class Recipe(OnKazoo):
    """kazoo.recipe.lock.Lock."""

    def recipe(self, client, name):
        return client.Lock(f"/recipes/{name}")

    def acquire(self, name, ttl):
        self._lock = self.recipe(self.client(ttl), name)
        try:
            return self._lock.acquire(timeout=WAITS_S)
        except LockTimeout:
            return False

    def release(self, name):
        return self._lock.release()


class Semaphore(Recipe):
    """kazoo.recipe.lock.Semaphore with one lease."""

    def recipe(self, client, name):
        return client.Semaphore(f"/recipes/{name}", max_leases=1)


class Election(OnKazoo):
    """kazoo.recipe.election.Election: the lock is held while the function of the leader runs."""

    def acquire(self, name, ttl):
        won, self._over = threading.Event(), threading.Event()
        over = self._over
        election = self.client(ttl).Election(f"/recipes/{name}")

        def lead():
            won.set()
            over.wait()

        self._thread = threading.Thread(target=election.run, args=(lead,))
        self._thread.start()
        if won.wait(WAITS_S):
            return True
        election.cancel()
        over.set()
        self._thread.join()
        return False

    def release(self, name):
        self._over.set()
        self._thread.join()
        return True


class Own(OnKazoo):
    """One ephemeral znode: whoever creates it has the lock."""

    ephemeral = True

    def acquire(self, name, ttl):
        client = self.client(ttl)
        client.ensure_path("/own")
        try:
            client.create(f"/own/{name}", ephemeral=self.ephemeral)
        except NodeExistsError:
            return False
        return True

    def release(self, name):
        try:
            self._client.delete(f"/own/{name}")
        except NoNodeError:
            return False
        return True


class Persistent(Own):
    """The same with a znode that outlives the session of a dead holder."""

    ephemeral = False


class Words(OnKazoo):
    """Asks for the server's version, with a four-letter word."""

    def acquire(self, name, ttl):
        return bool(self.client(ttl).server_version())

    def release(self, name):
        return True


class DeletesPlainly:
    """One znode, which its release deletes whosever it is. Its sessions last for 10 s."""

    def __init__(self, servers):
        self.client = KazooClient(hosts=",".join(f"{host}:{port}" for host, port in servers))
        self.client.start(5)

    def acquire(self, name, ttl):
        try:
            self.client.create(f"/{name}", b"", ephemeral=True)
        except NodeExistsError:
            return False
        return Grant(deadline=None)

    def release(self, name):
        try:
            self.client.delete(f"/{name}")
        except NoNodeError:
            return False

    def close(self):
        self.client.stop()
        self.client.close()
