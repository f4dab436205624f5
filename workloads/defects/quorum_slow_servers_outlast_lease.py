"""A lock that waits so long for each silent server that its lease expires meanwhile."""

from _majority import Majority as Sound

from fencepost.workloads.contract.defect import Defect


class Lock(Sound):
    timeout_s = 1.0


DEFECT = Defect(
    name="quorum-slow-servers-outlast-lease",
    family="quorum",
    what="Two silent servers of five take up the whole lease, so that no client is granted it.",
    seen="redis-py 8.1 with its default timeout of 5 s and 10 retries, used for Redlock",
    breaks="The lock is available while a minority of its servers is down.",
    checker="liveness",
    promises=("minority",),
    servers="redis:5",
    faults=("pause:minority", "partition:minority"),
)
