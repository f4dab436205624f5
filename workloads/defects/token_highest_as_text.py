"""A lock service that keeps its tokens in a sorted set, which orders them as text."""

from _counted import Counted as Sound

import fencepost
from fencepost.workloads.contract.defect import Defect

# The lock has been in use: its last token was 9. All members have the score 0.
ACQUIRE = """
local tokens = KEYS[1] .. ':tokens'
if not redis.call('set', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then return false end
local last = redis.call('zrange', tokens, -1, -1)[1] or '9'
local token = string.format('%d', tonumber(last) + 1)
redis.call('zadd', tokens, 0, last)
redis.call('zadd', tokens, 0, token)
return tonumber(token)
"""


class Lock(Sound):
    def acquire(self, name, ttl):
        token = self.client.eval(ACQUIRE, 1, name, self.owner, int(ttl * 1000))
        return token is not None and fencepost.Grant(token=token)


DEFECT = Defect(
    name="token-highest-as-text",
    family="tokens",
    what="Tokens are compared as text, so that 9 stays the highest, and 10 is given again.",
    seen="by construction",
    breaks="No two grants have the same token.",
    checker="fencing",
    also=("linearizable",),
)
