"""A counter that each holder reads and then writes."""

from _counted import CountedAfter as Sound

from fencepost.workloads.contract.defect import Defect


class Lock(Sound):
    def count(self, key):
        token = int(self.client.get(key) or 0) + 1
        # The lock protects the counter, as long as its lease runs.
        self.client.set(key, token)
        return token


DEFECT = Defect(
    name="token-counted-in-two-steps",
    family="tokens",
    what="The counter is read and written in two requests, and a late write sets it back.",
    seen="by construction",
    breaks="A token rises with every grant.",
    checker="fencing",
    also=("linearizable", "lease_exclusion"),
    faults=("pause:client",),
    clients=3,
)
