"""A counter of tokens that expires with the lease."""

from _counted import ACQUIRE
from _counted import Counted as Sound

import fencepost
from fencepost.workloads.contract.defect import Defect

EXPIRING = ACQUIRE.replace(
    "return redis.call('incr', KEYS[1] .. ':token')",
    """local token = redis.call('incr', KEYS[1] .. ':token')
  redis.call('pexpire', KEYS[1] .. ':token', ARGV[2])
  return token""",
)


class Lock(Sound):
    def acquire(self, name, ttl):
        token = self.client.eval(EXPIRING, 1, name, self.owner, int(ttl * 1000))
        return token is not None and fencepost.Grant(token=token)


DEFECT = Defect(
    name="token-counter-expires",
    family="tokens",
    what="The counter of the tokens has an expiry, and starts again at 1.",
    seen="by construction",
    breaks="A token rises with every grant.",
    checker="fencing",
    also=("linearizable",),
    faults=("pause:client",),
)
