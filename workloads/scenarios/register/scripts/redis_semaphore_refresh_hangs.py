"""redis-semaphore (npm): a lock is lost while its refresh waits, and its holder does not learn of it.

Run with redis-semaphore 5.8.0, ioredis 6.0.0 and Redis 7.0.15, Node 20.20
Needs: npm install redis-semaphore@5.8.0 ioredis, with NODE_PATH set to that node_modules;
redis-server and node in the PATH. CONTROL=1 holds back answers for less than the lock's time.
Exit 1 with an AssertionError where the defect shows, 0 where it does not.
"""

import json
import os
import socket
import subprocess
import tempfile
import time

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
    command = ["node", "-e", PROGRAM, *map(str, (port, LOCK_MS, HELD_BACK_MS))]
    got = subprocess.run(command, capture_output=True, text=True, timeout=300)
    if got.returncode:
        raise RuntimeError(got.stderr)
    seen = json.loads(got.stdout)
    assert not (seen["other"] and seen["believes"]), (
        "two clients hold the lock: the refresh of the first has no answer, its TTL has passed, "
        "the second acquired the lock, isAcquired of the first is true, and onLockLost was not "
        "called"
    )


def start(folder):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    command = ["redis-server", "--port", str(port), "--save", "", "--dir", folder]
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    for _ in range(1200):
        try:
            socket.create_connection(("127.0.0.1", port)).close()
            return server, port
        except OSError:
            time.sleep(0.05)
    server.kill()
    raise RuntimeError("redis-server did not start")


def main():
    with tempfile.TemporaryDirectory() as folder:
        server, port = start(folder)
        try:
            show(port)
        finally:
            server.kill()
            server.wait()


if __name__ == "__main__":
    main()
