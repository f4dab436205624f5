"""A queue that keeps the place of a client that died while it waited."""

from _tickets import ENTER, LOOK
from _tickets import Queue as Sound

from fencepost.workloads.contract.defect import Defect


class Lock(Sound):
    # Only the holder has a lease.
    entry = ENTER.replace(", 'PX', ARGV[2]", "")
    look = LOOK.replace(", 'PX', ARGV[2]", "").replace(
        "if head == ARGV[1] then return 1 end",
        """if head == ARGV[1] then
    redis.call('pexpire', KEYS[1] .. ':alive:' .. head, ARGV[2])
    return 1
  end""",
    )


DEFECT = Defect(
    name="wait-dead-waiter-stays",
    family="waiting",
    what="A client that dies while it waits keeps its place, and no client behind it is granted.",
    seen="kazoo issue 732: a contender stays behind and the lock is stuck",
    breaks="A lock becomes available once its holders and waiters are gone.",
    checker="liveness",
    faults=("kill:client",),
)
