"""A queue that a client enters in two steps: it draws a number, and then takes its place."""

from _tickets import Queue as Sound

from fencepost.workloads.contract.defect import Defect


class Lock(Sound):
    def enter(self, name, place, ttl):
        ticket = self.client.incr(f"{name}:tickets")
        self.client.set(f"{name}:alive:{place}", 1, px=int(ttl * 1000))
        self.client.zadd(f"{name}:queue", {place: ticket})


DEFECT = Defect(
    name="wait-entry-in-two-steps",
    family="waiting",
    what="A client that is paused between its number and its place comes before the holder.",
    seen="found by fencepost's hunt in the first version of this catalogue's queue",
    breaks="A lease excludes all others while it runs.",
    checker="lease_exclusion",
    also=("linearizable", "ownership"),
    faults=("pause:client",),
    clients=3,
)
