"""Locks on other servers than Redis, each as a program: the first argument names it."""

from __future__ import annotations

import sys

from fencepost_sdk import Grant, run


def postgres():
    from locks_postgres_raw import Advisory

    class Impatient(Advisory):
        """Its session keeps the lock until an unknown time."""

        patience_s = 0.06

        def acquire(self, name, ttl):
            return Grant(deadline=None) if super().acquire(name, ttl) else False

    class SilenceIsConsent(Impatient):
        def acquire(self, name, ttl):
            try:
                return super().acquire(name, ttl)
            except TimeoutError:
                return Grant(deadline=None)

    return {"sound": Impatient, "silence-is-consent": SilenceIsConsent}


def zookeeper():
    from kazoo.client import KazooClient

    class Contender:
        """The first contender has the lock; nobody waits."""

        def __init__(self, servers):
            self.client = KazooClient(",".join(f"{host}:{port}" for host, port in servers))
            self.mine = {}

        def acquire(self, name, ttl):
            if not self.client.connected:
                self.client.start(10)
            folder = f"/locks/{name}"
            mine = self.client.create(f"{folder}/c-", ephemeral=True, sequence=True, makepath=True)
            first = min(self.client.get_children(folder))
            if mine != f"{folder}/{first}":
                self.client.delete(mine)
                return False
            self.mine[name] = mine
            return Grant(deadline=None)

        def release(self, name):
            self.client.delete(self.mine.pop(name))

        def close(self):
            self.client.stop()
            self.client.close()

    return {"sound": Contender}


def etcd():
    from locks_etcd import DeletesAnothers, Sound

    return {"sound": Sound, "deletes-anothers": DeletesAnothers}


run({"postgres": postgres, "zookeeper": zookeeper, "etcd": etcd}[sys.argv[1]]()[sys.argv[2]])
