"""Paired tokens (idelvall under Kleppmann 2016): each write names the grants still held.

The minor token is the lowest grant that was not released. A write is accepted if no token from it
on was seen, or by the writer of the last accepted write. A refused write still counts as seen:
earlier tokens are refused from now on, so that a holder that wrote and died obstructs one successor
and not all.
"""

from __future__ import annotations

from fencepost.workloads.contract.guard import PAIR, Guard, Rule

_LUA = """
local highest = seen('highest')
local accepted = minor > highest or token == seen('writer')
if token > highest then
  redis.call('hset', KEYS[1], 'highest', ARGV[4], 'writer', accepted and ARGV[4] or '-1')
end
if not accepted then return {0, highest} end
"""

GUARD = Guard(
    "paired",
    "accepts a write only if its minor token, the lowest grant not yet released, is above "
    "the highest token that it has seen",
    needs=PAIR,
    rules={
        "lua": Rule(
            _LUA, refused="minor {minor} of token {token} is not above {seen}, the highest seen"
        )
    },
)
