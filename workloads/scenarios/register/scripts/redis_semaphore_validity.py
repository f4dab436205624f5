"""redis-semaphore (npm): acquire returns a lock that has expired, and that another client holds.

Run with redis-semaphore 5.8.0, ioredis 6.0.0 and Redis 7.0.15, Node 20.20
Needs: npm install redis-semaphore@5.8.0 ioredis, with NODE_PATH set to that node_modules;
redis-server and node in the PATH. CONTROL=1 delays the answer for less than the lock's time.
Exit 1 with an AssertionError where the defect shows, 0 where it does not.
"""

import json
import os

from frame.node_program import node
from frame.redis_server import redis_server

LOCK_MS = 1000
LATE_MS = 200 if os.environ.get("CONTROL") else 2500
PROGRAM = """
const net = require("net");
const Redis = require("ioredis");
const { Mutex } = require("redis-semaphore");
const [port, lockTimeout, late] = process.argv.slice(1).map(Number);
const slow = net.createServer((client) => {  // answers arrive late
  const server = net.connect(port, "127.0.0.1");
  client.on("data", (data) => server.write(data));
  server.on("data", (data) => setTimeout(() => client.write(data), late));
});
slow.listen(0, "127.0.0.1", async () => {
  const far = new Redis(slow.address().port, { enableReadyCheck: false });
  const near = new Redis(port);
  await far.ping();
  const first = new Mutex(far, "job", { lockTimeout, acquireTimeout: 10 * lockTimeout });
  const second = new Mutex(near, "job", { lockTimeout: 30000, acquireTimeout: 2 * lockTimeout });
  const pending = first.tryAcquire();
  while (!(await near.exists("mutex:job"))) await new Promise((next) => setTimeout(next, 5));
  const other = second.tryAcquire();
  const got = await pending;
  const believes = got && first.isAcquired;
  const held = await Promise.race([other, new Promise((next) => setTimeout(next, 50, false))]);
  console.log(JSON.stringify({ other: held, believes }));
  process.exit(0);
});
"""


def show(port):
    seen = json.loads(node(PROGRAM, port, LOCK_MS, LATE_MS))
    assert not (seen["other"] and seen["believes"]), (
        f"two clients hold the lock: the answer to SET arrived {LATE_MS} ms late, after the "
        f"TTL of {LOCK_MS} ms, when another client had acquired the lock"
    )


if __name__ == "__main__":
    with redis_server() as server:
        show(server.port)
