"""@sesamecare-oss/redlock (npm): a retry of acquire is blocked by the key that its own first attempt has set.

Run with @sesamecare-oss/redlock 1.4.0, ioredis 6.0.0 and Redis 7.0.15, Node 20.20
Needs: npm install @sesamecare-oss/redlock@1.4.0 ioredis, with NODE_PATH set to that
node_modules; redis-server and node in the PATH.
CONTROL=1 leaves the key free on two servers of three from the start.
Exit 1 with an AssertionError where the defect shows, 0 where it does not.
"""

import socket
import subprocess
import tempfile
import time

COUNT = 3
PACKAGE = "@sesamecare-oss/redlock"
PROGRAM = """
const Redis = require("ioredis");
const library = require(process.argv[1]);
const Redlock = library.default || library.Redlock;
(async () => {
  const nodes = process.argv.slice(2).map((port) => new Redis(Number(port)));
  if (!process.env.CONTROL) await nodes[1].set("job", "another client");
  await nodes[2].set("job", "another client");
  const locks = new Redlock(nodes, { retryCount: 10, retryDelay: 100, retryJitter: 0 });
  locks.on("error", () => {});
  setTimeout(() => nodes[1].del("job"), 250);  // from now on the key is free on a majority
  const got = await locks.acquire(["job"], 10000).then(
    () => "acquired", (error) => "refused: " + error.message);
  console.log(got);
  process.exit(0);
})().catch((error) => { console.error(error); process.exit(3); });
"""


def show(ports):
    command = ["node", "-e", PROGRAM, PACKAGE, *map(str, ports)]
    got = subprocess.run(command, capture_output=True, text=True, timeout=300)
    if got.returncode:
        raise RuntimeError(got.stderr)
    assert got.stdout.strip() == "acquired", (
        "no other client has the key on two of three servers for 0.75 s, and acquire() was "
        f"{got.stdout.strip()}"
    )


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return listener.getsockname()[1]


def start(folder):
    port = free_port()
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
        servers, ports = [], []
        try:
            for _ in range(COUNT):
                server, port = start(folder)
                servers.append(server)
                ports.append(port)
            show(ports)
        finally:
            for server in servers:
                server.kill()
                server.wait()


if __name__ == "__main__":
    main()
