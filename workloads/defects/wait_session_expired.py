"""A waiter that is granted the lock although its place in the queue expired."""

from _tickets import LOOK
from _tickets import Queue as Sound

from fencepost.workloads.contract.defect import Defect


class Lock(Sound):
    # The queue no longer has it, so no client is before it.
    look = LOOK.replace("if not head then return 0 end", "if not head then return 1 end").replace(
        "if redis.call('exists', KEYS[1] .. ':alive:' .. head) == 1 then return 0 end",
        """if redis.call('exists', KEYS[1] .. ':alive:' .. head) == 1 then
    local waits = false
    for _, place in ipairs(redis.call('zrange', KEYS[1] .. ':queue', 0, -1)) do
      waits = waits or place == ARGV[1]
    end
    return waits and 0 or 1
  end""",
    )


DEFECT = Defect(
    name="wait-session-expired",
    family="waiting",
    what="A waiter whose session expired is granted the lock, though its place is gone.",
    seen="etcd 3.4.23, issue 11456, found by Jepsen in 2020",
    breaks="A lease excludes all others while it runs.",
    checker="lease_exclusion",
    also=("linearizable", "fencing", "ownership"),
    faults=("pause:client", "partition:client"),
    clients=3,
)
