"""redis-semaphore (npm): a lock is lost while its refresh waits, and its holder does not learn of it.

Run with redis-semaphore 5.8.0, ioredis 6.0.0 and Redis 7.0.15, Node 20.20
Needs: npm install redis-semaphore@5.8.0 ioredis, with NODE_PATH set to that node_modules;
redis-server and node in the PATH. CONTROL=1 holds back answers for less than the lock's time.
Exit 1 with an AssertionError where the defect shows, 0 where it does not.
"""

import json
import os

from frame.node_program import node
from frame.redis_server import redis_server

LOCK_MS = 1000
HELD_BACK_MS = 300 if os.environ.get("CONTROL") else 5000
PROGRAM = """
const net = require("net");
const Redis = require("ioredis");
const { Mutex } = require("redis-semaphore");
const [port, lockTimeout, heldBack] = process.argv.slice(1).map(Number);
const sleep = (ms) => new Promise((next) => setTimeout(next, ms));
let until = 0;  // answers wait until then
const slow = net.createServer((client) => {
  const server = net.connect(port, "127.0.0.1");
  const later = () => Math.max(0, until - Date.now());
  client.on("data", (data) => setTimeout(() => server.write(data), later()));
  server.on("data", (data) => setTimeout(() => client.write(data), later()));
});
slow.listen(0, "127.0.0.1", async () => {
  let lost = false;
  const options = { lockTimeout, refreshInterval: lockTimeout / 4 };
  const far = new Redis(slow.address().port), near = new Redis(port);
  const first = new Mutex(far, "job", { ...options, onLockLost: () => { lost = true; } });
  const second = new Mutex(near, "job", { ...options, acquireTimeout: 2 * lockTimeout });
  await first.acquire();
  await sleep(lockTimeout);
  until = Date.now() + heldBack;
  const other = await second.tryAcquire();
  const believes = first.isAcquired && !lost;
  console.log(JSON.stringify({ other, believes }));
  process.exit(0);
});
"""


def show(port):
    seen = json.loads(node(PROGRAM, port, LOCK_MS, HELD_BACK_MS))
    assert not (seen["other"] and seen["believes"]), (
        "two clients hold the lock: the refresh of the first has no answer, its TTL has passed, "
        "the second acquired the lock, isAcquired of the first is true, and onLockLost was not "
        "called"
    )


if __name__ == "__main__":
    with redis_server() as server:
        show(server.port)
