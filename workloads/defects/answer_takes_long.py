"""A lock that answers slowly."""

import time

from _lease import Lease

from fencepost.workloads.contract.defect import Defect


class Lock(Lease):
    def acquire(self, name, ttl):
        time.sleep(ttl / 4)
        return super().acquire(name, ttl)


DEFECT = Defect(
    name="answer-takes-long",
    family="answers",
    what="Each request waits for a fixed time before it is sent.",
    seen="by construction",
    breaks="Nothing but patience.",
    checker="",
    hidden="A lock makes no promise about the time of an answer; only a benchmark shows it. An "
    "answer that takes longer than liveness_bound_s counts as none.",
    twin=False,
)
