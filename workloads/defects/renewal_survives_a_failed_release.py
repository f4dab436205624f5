"""A release that stops the renewal only once it has succeeded."""

from _lease import Renewed as Sound

from fencepost.workloads.contract.defect import Defect


class Lock(Sound):
    def release(self, name):
        released = super(Sound, self).release(name)
        self.ended.set()
        return released

    def close(self):
        """Close the connections; the thread opens one of its own."""
        self.client.close()


DEFECT = Defect(
    name="renewal-survives-a-failed-release",
    family="renewal",
    what="A release that raises leaves the thread that renews the lock, for as long as its client "
    "lives.",
    seen="Redisson, issue 4232: unlock fails, and the watchdog renews",
    breaks="A lease ends by itself.",
    checker="liveness",
    faults=("packet/loss", "partition:client"),
)
