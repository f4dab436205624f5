"""BullMQ (npm): a job runs twice at a time where the event loop of its worker was blocked.

Run with bullmq 5.0.0 to 6.7.0, ioredis 6.0.0 and Redis 7.0.15, Node 20.20
Needs: npm install bullmq@6.7.0 ioredis, with NODE_PATH set to that node_modules; redis-server
and node in the PATH. CONTROL=1 blocks the loop for less than lockDuration.
Exit 1 with an AssertionError where the defect shows, 0 where it does not.
"""

import os
import socket
import subprocess

from frame.processes import running, wait_for
from frame.redis_server import redis_server

LOCK_MS = 1000
BLOCKED_MS = 300 if os.environ.get("CONTROL") else 4000
PROGRAM = """
const { Queue, Worker } = require("bullmq");
const Redis = require("ioredis");
const [port, lockDuration, blocked] = process.argv.slice(1, 4).map(Number);
const name = process.argv[4];
const connection = { host: "127.0.0.1", port };
const log = new Redis({ ...connection, maxRetriesPerRequest: null });
const sleep = (ms) => new Promise((next) => setTimeout(next, ms));
const settings = { connection, lockDuration, stalledInterval: lockDuration, drainDelay: 1 };
const worker = new Worker("jobs", async (job, token, signal) => {
  await log.rpush("begun", name);
  if (name === "first") {
    await sleep(lockDuration);
    for (const end = Date.now() + blocked; Date.now() < end; );  // blocks the event loop
    await sleep(2 * lockDuration);  // from now on the locks can be renewed again
    await log.rpush("ended", signal && signal.aborted ? "told" : await log.llen("begun"));
  } else {
    await sleep(30 * lockDuration);
  }
}, settings);
worker.on("error", () => {});
"""
ADD = """
const { Queue } = require("bullmq");
const queue = new Queue("jobs", { connection: { host: "127.0.0.1", port: +process.argv[1] } });
queue.add("job", {}).then(() => process.exit(0));
"""


def worker(port, name):
    command = ["node", "-e", PROGRAM, *map(str, (port, LOCK_MS, BLOCKED_MS)), name]
    return running(command, stderr=None)


def logged(port, key):
    answer = ask(port, "LRANGE", key, "0", "-1")
    return answer.split("\r\n")[2::2] if answer != "*0\r\n" else []


def ask(port, *words):
    """Send a command that is answered with a number or with a list of words."""
    with socket.create_connection(("127.0.0.1", port)) as connection:
        connection.sendall((" ".join(words) + "\r\n").encode())
        return connection.recv(65536).decode()


def show(port):
    subprocess.run(["node", "-e", ADD, str(port)], check=True, timeout=300)
    with worker(port, "first"):
        wait_for(lambda: logged(port, "begun"), "no worker has begun the job")
        with worker(port, "second"):
            said = wait_for(lambda: logged(port, "ended"), "no worker has ended the job")[0]
    assert said in ("1", "told"), (
        f"two workers run one job: the loop of the first was blocked for {BLOCKED_MS} ms, the job "
        f"passed to the second after {LOCK_MS} ms, and {2 * LOCK_MS} ms after the block the "
        "signal of the first is not aborted"
    )


if __name__ == "__main__":
    with redis_server() as server:
        show(server.port)
