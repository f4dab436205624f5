"""redis-lock (npm): a release that arrives late deletes the key of the next client.

Run with redis-lock 1.0.0, redis (npm) 4.7.1 and Redis 7.0.15, Node 20.20
Needs: npm install redis-lock@1.0.0 redis@4, with NODE_PATH set to that node_modules;
redis-server and node in the PATH.
CONTROL=1 does not delay the release.
Exit 1 with an AssertionError where the defect shows, 0 where it does not.
"""

import os
import time

from frame.node_program import node
from frame.proxy import proxy
from frame.redis_server import redis_server

TTL_MS = 2000
PROGRAM = """
const { createClient } = require("redis");
const lock = require("redis-lock");
const [ours, slow, ttl] = process.argv.slice(1).map(Number);
const connected = async (port) => createClient({ socket: { port } }).connect();
const client = async (port) => lock(await connected(port), 10);
const got = (locking) => Promise.race([locking.then(() => true),
  new Promise((resolve) => setTimeout(() => resolve(false), ttl / 2))]);
(async () => {
  const [first, second, third] = [await client(slow), await client(ours), await client(ours)];
  const release = await first("job", ttl);
  release();  // in time, and on its way for longer than the rest of the lease
  await second("job", 2 * ttl);
  console.log(await got(third("job", ttl)) ? "two" : "one");
  process.exit(0);
})().catch((error) => { console.error(error); process.exit(3); });
"""


def show(port):
    def late(data):
        if b"DEL" in data and not os.environ.get("CONTROL"):
            time.sleep(1.25 * TTL_MS / 1000)

    got = node(PROGRAM, port, proxy(port, late), TTL_MS)
    assert got != "two", (
        "the release of the first client, sent within its lease, freed the lock of the second one: "
        "a third one holds it too"
    )


if __name__ == "__main__":
    with redis_server() as server:
        show(server.port)
