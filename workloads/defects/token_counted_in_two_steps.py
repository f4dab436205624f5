"""A counter that each holder reads at first, and writes when it releases the lock."""

from _counted import CountedAfter as Sound

from fencepost.workloads.contract.defect import Defect


class Lock(Sound):
    """The lock protects the counter, as long as its lease runs."""

    def count(self, key):
        self.counted = int(self.client.get(key) or 0) + 1
        return self.counted

    def release(self, name):
        self.client.set(f"{name}:token", self.counted)
        return super().release(name)


DEFECT = Defect(
    name="token-counted-in-two-steps",
    family="tokens",
    what="The counter is read and written in two requests, and a late write sets it back.",
    seen="by construction",
    breaks="A token rises with every grant.",
    checker="fencing",
    also=("linearizable", "lease_exclusion"),
    faults=("pause:client",),
)
