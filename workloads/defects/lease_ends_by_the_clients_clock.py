"""A lease whose end is a time of its client's wall clock."""

import time

from _lease import Lease as Sound

from fencepost.workloads.contract.defect import Defect

ACQUIRE = """
if redis.call('set', KEYS[1], ARGV[1], 'NX') then
  redis.call('pexpireat', KEYS[1], ARGV[2])
  return 1
end
return 0
"""


class Lock(Sound):
    def acquire(self, name, ttl):
        ends_ms = int((time.time() + ttl) * 1000)
        return self.client.eval(ACQUIRE, 1, name, self.owner, ends_ms) == 1


DEFECT = Defect(
    name="lease-ends-by-the-clients-clock",
    family="lease",
    what="The end of a lease is sent as a time of the client's wall clock, which may be wrong.",
    seen="Redis' documentation of SETNX: a lock with a timestamp of its client",
    breaks="A lease excludes all others while it runs.",
    checker="lease_exclusion",
    also=("linearizable", "ownership", "liveness"),
    faults=("clock:client",),
    hunt="it skews the clocks of servers alone",
)
