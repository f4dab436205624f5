"""A renewing thread that waits for a mutex, which the client holds while it works."""

import threading

from _lease import Renewed

import fencepost
from fencepost.workloads.contract.defect import Defect


class Lock(Renewed):
    def __init__(self, servers):
        super().__init__(servers)
        self.busy = threading.Lock()

    def acquire(self, name, ttl):
        if not super().acquire(name, ttl):
            return False
        self.busy.acquire()  # the connection is in use until the release
        return fencepost.Grant(deadline=None)

    def renew(self, name, ttl, ended):
        while not ended.wait(ttl / 3):
            with self.busy:
                if ended.is_set():
                    return
            super().renew(name, ttl, ended)

    def release(self, name):
        try:
            return super().release(name)
        finally:
            self.busy.release()


DEFECT = Defect(
    name="renewal-blocked-by-the-work",
    family="renewal",
    what="The work keeps the renewal from running, and outlasts the lease.",
    seen="BullMQ 6.7, issue 3183: an event loop blocked past lockDuration",
    breaks="A holder learns that it has lost the lock.",
    checker="lease_exclusion",
    also=("linearizable", "ownership"),
    twin=False,
)
