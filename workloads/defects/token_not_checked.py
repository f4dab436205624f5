"""A lock with sound tokens, and a resource that stores them unread."""

from _counted import Counted

from fencepost.workloads.contract.defect import Defect


class Lock(Counted):
    """Its tokens are right. The resource accepts any (guard none)."""


DEFECT = Defect(
    name="token-not-checked",
    family="tokens",
    what="The lock hands out tokens, and the resource does not check them.",
    seen="ShedLock, issue 2201: the resource has to check the token, which the lock cannot ensure",
    breaks="A resource refuses the late write of a paused client.",
    checker="resource",
    faults=("pause:client/other-holds",),
    twin=False,
)
