"""A fence that is broken on purpose: it compares tokens as text, so that 9 is above 10.

A column or a field of the wrong type does that: `WHERE fence <= :token` on text.
"""

from __future__ import annotations

from fencepost.workloads.contract.guard import TOKEN, Guard, Rule

_LUA = """
local highest = redis.call('hget', KEYS[1], 'highest') or ''
if ARGV[4] < highest then return {0, highest} end
redis.call('hset', KEYS[1], 'highest', ARGV[4])
"""

GUARD = Guard(
    "broken-as-text",
    "broken on purpose: compares fencing tokens as text, so that it accepts 9 after 10",
    needs=TOKEN,
    rules={"lua": Rule(_LUA, refused="token {token} is below {seen}, compared as text")},
)
