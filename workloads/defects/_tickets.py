"""A sound lock with a queue on one Redis server, which the wait-* locks change.

Each request has a ticket in a sorted set, and a key that shows that its client is alive. The first
of the queue whose client is alive holds the lock.
"""

import time
import uuid

import redis

import fencepost

LOOK = """
redis.call('set', KEYS[1] .. ':alive:' .. ARGV[1], 1, 'PX', ARGV[2])
while true do
  local head = redis.call('zrange', KEYS[1] .. ':queue', 0, 0)[1]
  if not head then return 0 end
  if head == ARGV[1] then return 1 end
  if redis.call('exists', KEYS[1] .. ':alive:' .. head) == 1 then return 0 end
  redis.call('zrem', KEYS[1] .. ':queue', head)
end
"""
ENTER = """
redis.call('set', KEYS[1] .. ':alive:' .. ARGV[1], 1, 'PX', ARGV[2])
redis.call('zadd', KEYS[1] .. ':queue', redis.call('incr', KEYS[1] .. ':tickets'), ARGV[1])
"""
LEAVE = """
redis.call('del', KEYS[1] .. ':alive:' .. ARGV[1])
return redis.call('zrem', KEYS[1] .. ':queue', ARGV[1])
"""


class Queue:
    entry, look = ENTER, LOOK
    wait_s = 3.0

    def __init__(self, servers):
        self.client = redis.Redis(*servers[0], socket_timeout=0.5, retry=None)
        self.places = {}

    def acquire(self, name, ttl):
        place, until = uuid.uuid4().hex, time.monotonic() + self.wait_s
        self.enter(name, place, ttl)
        while True:
            asked = time.monotonic()
            if self.client.eval(self.look, 1, name, place, int(ttl * 1000)):
                self.places[name] = place
                return fencepost.Grant(deadline=asked + ttl)
            if asked >= until:
                self.leave(name, place)
                return False
            time.sleep(0.05)

    def enter(self, name, place, ttl):
        self.client.eval(self.entry, 1, name, place, int(ttl * 1000))

    def leave(self, name, place):
        return self.client.eval(LEAVE, 1, name, place) == 1

    def release(self, name):
        return self.leave(name, self.places.pop(name))
