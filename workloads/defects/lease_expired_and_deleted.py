"""A lock whose waiters delete an expired key, and then ask for it."""

import time

from _lease import RELEASE, Lease

from fencepost.workloads.contract.defect import Defect


class Sound(Lease):
    """The key has its end as a time, and no expiry: whoever finds it expired deletes it."""

    value = ""

    def acquire(self, name, ttl):
        found = self.client.get(name)
        if found is not None:
            if float(found.split()[0]) > time.time():
                return False
            self.remove(name, found)
        self.value = f"{time.time() + ttl} {self.owner}"
        return bool(self.client.setnx(name, self.value))

    def remove(self, name, found):
        """Delete the key if it still has this value."""
        self.client.eval(RELEASE, 1, name, found)

    def release(self, name):
        return self.client.eval(RELEASE, 1, name, self.value) == 1


class Lock(Sound):
    def remove(self, name, found):
        self.client.delete(name)


DEFECT = Defect(
    name="lease-expired-and-deleted",
    family="lease",
    what="Two clients find an expired key; the second deletes the key that the first set.",
    seen="Redis' documentation of SETNX warns of it",
    breaks="A lease excludes all others while it runs.",
    checker="lease_exclusion",
    also=("linearizable", "ownership"),
    faults=("kill:client", "pause:client"),
    clients=3,
)
