"""Compares a random value of each write, and nothing else.

The value distinguishes grants but does not order them. The best possible rule is to refuse a value
that another one has replaced. This refuses a client that writes, pauses and writes again. A client
whose first write is late shows a new value, and is accepted (Kleppmann 2016).
"""

from __future__ import annotations

from fencepost.workloads.contract.guard import TOKEN, Guard, Rule

_LUA = """
local last = redis.call('hget', KEYS[1], 'last')
if last ~= ARGV[4] then
  if redis.call('hexists', KEYS[1], 'shown:' .. ARGV[4]) == 1 then return {0, last} end
  redis.call('hset', KEYS[1], 'last', ARGV[4], 'shown:' .. ARGV[4], '1')
end
"""

GUARD = Guard(
    "new-value",
    "refuses a write only if its token was replaced by another one (not enough: the first write "
    "of a paused client has a new one)",
    needs=TOKEN,
    rules={"lua": Rule(_LUA, refused="token {token} was replaced by {seen}")},
)
