"""A lock whose release wakes all waiters."""

import time

from _tickets import Queue

import fencepost
from fencepost.workloads.contract.defect import Defect


class Sound(Queue):
    """Wakes when its predecessor is gone."""

    def acquire(self, name, ttl):
        place, until = self.new_place(), time.monotonic() + self.wait_s
        self.enter(name, place, ttl)
        seen, wakeups = None, 0
        while True:
            asked = time.monotonic()
            state = self.watched(name, place)
            if seen is not None and state != seen:
                wakeups += 1
            if state != seen and self.client.eval(self.look, 1, name, place, int(ttl * 1000)):
                self.places[name] = place
                return fencepost.Grant(deadline=asked + ttl, wakeups=wakeups)
            seen = state
            self.client.set(f"{name}:alive:{place}", 1, px=int(ttl * 1000))
            if asked >= until:
                self.leave(name, place)
                return False
            time.sleep(0.05)

    def new_place(self):
        import uuid

        return uuid.uuid4().hex

    def watched(self, name, place):
        """Return what this waiter watches: the entry before its own."""
        queue = self.client.zrange(f"{name}:queue", 0, -1)
        at = queue.index(place.encode()) if place.encode() in queue else 0
        before = queue[at - 1].decode() if at else ""
        return before, bool(before) and self.client.exists(f"{name}:alive:{before}")


class Lock(Sound):
    def watched(self, name, place):
        """Return the head of the queue, which all waiters watch."""
        head = self.client.zrange(f"{name}:queue", 0, 0)
        return head, bool(head) and self.client.exists(f"{name}:alive:{head[0].decode()}")


DEFECT = Defect(
    name="wait-herd",
    family="waiting",
    what="All waiters watch the holder, so that each release wakes all of them.",
    seen="the herd effect that ZooKeeper's recipe for locks avoids",
    breaks="A release wakes one waiter.",
    checker="liveness",
    promises=("one_wakeup",),
    clients=5,
)
