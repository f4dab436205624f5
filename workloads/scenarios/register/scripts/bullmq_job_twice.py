"""BullMQ (npm): a job runs twice at a time where the event loop of its worker was blocked.

Run with bullmq 5.0.0 to 6.7.0, ioredis 6.0.0 and Redis 7.0.15, Node 20.20
Needs: npm install bullmq@6.7.0 ioredis, with NODE_PATH set to that node_modules; redis-server
and node in the PATH. CONTROL=1 blocks the loop for less than lockDuration.
Exit 1 with an AssertionError where the defect shows, 0 where it does not.
"""

import os
import socket
import subprocess
import tempfile
import time

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
    return subprocess.Popen(command, stdout=subprocess.DEVNULL)


def ask(port, *words):
    """Send a command that is answered with a number or with a list of words."""
    with socket.create_connection(("127.0.0.1", port)) as connection:
        connection.sendall((" ".join(words) + "\r\n").encode())
        return connection.recv(65536).decode()


def wait_for(port, key):
    for _ in range(1200):
        if (answer := ask(port, "LRANGE", key, "0", "-1")) != "*0\r\n":
            return answer.split("\r\n")[2::2]
        time.sleep(0.05)
    raise RuntimeError(f"no worker has {key} the job")


def show(port, processes):
    subprocess.run(["node", "-e", ADD, str(port)], check=True, timeout=300)
    processes.append(worker(port, "first"))
    wait_for(port, "begun")
    processes.append(worker(port, "second"))
    said = wait_for(port, "ended")[0]
    assert said in ("1", "told"), (
        f"two workers run one job: the loop of the first was blocked for {BLOCKED_MS} ms, the job "
        f"passed to the second after {LOCK_MS} ms, and {2 * LOCK_MS} ms after the block the "
        "signal of the first is not aborted"
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
        processes = [server]
        try:
            show(port, processes)
        finally:
            for process in reversed(processes):
                process.kill()
                process.wait()


if __name__ == "__main__":
    main()
