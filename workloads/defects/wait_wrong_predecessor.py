"""A waiter that takes the end of its predecessor for its own turn."""

from _tickets import Queue as Sound

from fencepost.workloads.contract.defect import Defect

LOOK = """
redis.call('set', KEYS[1] .. ':alive:' .. ARGV[1], 1, 'PX', ARGV[2])
local before = redis.call('get', KEYS[1] .. ':before:' .. ARGV[1])
if not before then
  for _, place in ipairs(redis.call('zrange', KEYS[1] .. ':queue', 0, -1)) do
    if place == ARGV[1] then break end
    before = place
  end
  redis.call('set', KEYS[1] .. ':before:' .. ARGV[1], before or 'none', 'PX', 60000)
end
if not before or before == 'none' then return 1 end
if redis.call('exists', KEYS[1] .. ':alive:' .. before) == 1 then return 0 end
redis.call('zrem', KEYS[1] .. ':queue', before)
return 1
"""


class Lock(Sound):
    look = LOOK


DEFECT = Defect(
    name="wait-wrong-predecessor",
    family="waiting",
    what="A waiter takes the lock when its predecessor gives up, without a look at the queue.",
    seen="ZooKeeper's recipe for locks requires the second look at the queue",
    breaks="A lease excludes all others while it runs.",
    checker="lease_exclusion",
    also=("linearizable", "fencing"),
    faults=("kill:client", "pause:client"),
    clients=3,
)
